"""`media.search`, `media.get` and `media.transcript`."""

from __future__ import annotations

from collections.abc import Mapping

from commonplace.errors import InvalidInput
from commonplace.kinds.knowledge import Knowledge
from commonplace.kinds.knowledge.finding import SourceLimits
from commonplace.kinds.knowledge.kinds import shown_id
from commonplace.kinds.knowledge.tools.finding import READS, open_turn, search_one, search_tool
from commonplace.kinds.knowledge.tools.options import ID, ORDER_BY, SESSION, check, dates, turn
from commonplace.kinds.knowledge.tools.reading import OTHERWISE, get_tool, read_one
from commonplace.kinds.knowledge.tools.results import WARNING, Warning, warning
from commonplace.kinds.knowledge.transcript import TranscriptRequest, transcript
from commonplace.model import JSON
from commonplace.store.filters import fold_value
from commonplace.tools.schema import BOOLEAN, INTEGER, STRING, answer, choice, flag, many, maybe, obj, text, texts
from commonplace.tools.tool import READ_ONLY, Call, Tool


def limits_of(call: Call, args: Mapping[str, JSON], place: str = "") -> tuple[SourceLimits, list[Warning]]:
    """Return the filters of a call, and warnings about types that do not exist."""
    types = tuple(args.get("media_types") or ())
    low, high = dates(args, place)
    return SourceLimits(media_types=types, date_from=low, date_to=high), _unknown(call, types)


def _unknown(call: Call, types: tuple[str, ...]) -> list[Warning]:
    """Return a warning for each type that no media item has."""
    if not types:
        return []
    types_there = [name for name in call.space.store.media_types() if name]
    folded_types = {fold_value(name.strip()) for name in types_there}
    unknown = [name for name in types if fold_value(name.strip()) not in folded_types]
    names = ", ".join(types_there) or "none yet"
    return [
        warning("unknown_media_type", f'There is no media of type "{name}". The types are: {names}.', "media")
        for name in unknown
    ]


def search(call: Call, args: Mapping[str, JSON]) -> dict[str, JSON]:
    limits, warnings = limits_of(call, args)
    return search_one(open_turn(call, args), "media", args, limits, warnings)


def get(call: Call, args: Mapping[str, JSON]) -> dict[str, JSON]:
    return read_one(call, "media", args["media_id"], args, OTHERWISE["media"])


def read_transcript(call: Call, args: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return the answer of `media.transcript`."""
    call_turn = turn(call, args, {})
    low, high = args.get("from_ms"), args.get("to_ms")
    if low is not None and high is not None and low > high:
        raise InvalidInput(f"from_ms {low} is after to_ms {high}. Swap them.", argument="from_ms")
    item, _ = call.space.part(Knowledge).item("media", args["media_id"])
    request = TranscriptRequest(
        args["format"], args["include_timestamps"], low, high, call.space.settings.full_max_chars
    )
    result = transcript(call.space.store, item, request)
    warnings = call_turn.warnings()
    if not result.timed:
        warnings.append(
            warning("untimed", "This media has no cues: its text is given without times of its own.", "media")
        )
    is_cut = result.next_ms is not None or (not result.timed and len(item.body or "") > request.most_chars)
    return {
        "content": result.content,
        "media_id": shown_id("media", item.key),
        "format": request.format,
        "timed": result.timed,
        "truncated": is_cut,
        "next_ms": result.next_ms,
        "warnings": warnings,
    }


MEDIA_ID = {**ID, "description": "The media's id or address."}
TYPES = texts("Only media of these types, such as video or pdf, case ignored.", maxItems=100)
DATE_FROM = text("Only media recorded, published or imported then or later: 2024-05-01 or 2024-05-01T09:30:00Z.")
DATE_TO = text("The same, then or earlier; a bare date includes that day.")

SEARCH = search_tool(
    "media.search",
    "Search media",
    "Find the user's media (videos, podcasts, PDFs, books, articles) by title, tags, author and text or transcript. A "
    "result's loc has the chunk, the offset and, where there are cues or pages, the time or page of the match. Read "
    "on with media.get, or what is said when with media.transcript. The resource media://types lists the types.",
    search,
    media_types=TYPES,
    date_from=DATE_FROM,
    date_to=DATE_TO,
    order_by=ORDER_BY,
)
GET = get_tool(
    "media.get",
    "Read media",
    "Read the text of a media item: a snippet unless retrieval says more. Pass a result's loc in retrieval and mode "
    "chunk_with_siblings to read around the match. attachments says whether there is a transcript with times.",
    get,
    ("media_id", MEDIA_ID),
)
_MS = {"type": "integer", "minimum": 0}
TRANSCRIPT = Tool(
    name="media.transcript",
    title="Transcript",
    description=(
        "What is said in a media item, as plain text, SRT, WebVTT or JSON cues, all of it or from_ms to to_ms. Use "
        "the start_ms of a media.search result to read around a match; next_ms says where to go on."
    ),
    input=obj(
        required=("media_id",),
        media_id=MEDIA_ID,
        format=choice("What to write it as.", "text", "srt", "vtt", "json"),
        include_timestamps=flag("Begin each line of text with its time."),
        from_ms={**_MS, "description": "Only cues that are not over by then."},
        to_ms={**_MS, "description": "Only cues that begin before then."},
        session=SESSION,
    ),
    output=answer(
        content={"type": ["string", "object"]},
        media_id={"type": ["integer", "string"]},
        format=STRING,
        timed=BOOLEAN,
        truncated=BOOLEAN,
        next_ms=maybe(INTEGER),
        warnings=many(WARNING),
    ),
    annotations=READ_ONLY,
    handler=read_transcript,
    check=check,
    meta=READS,
)
