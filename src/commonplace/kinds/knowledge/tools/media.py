"""`media.search`, `media.get` and `media.transcript`."""

from __future__ import annotations

from collections.abc import Mapping

from commonplace.errors import InvalidInput
from commonplace.kinds.knowledge.finding import Limits
from commonplace.kinds.knowledge.kinds import shown_id
from commonplace.kinds.knowledge.tools.finding import READS, open_turn, search_one, search_tool
from commonplace.kinds.knowledge.tools.options import ID, ORDER_BY, SESSION, check, dates, turn
from commonplace.kinds.knowledge.tools.reading import OTHERWISE, get_tool, read_one
from commonplace.kinds.knowledge.tools.results import WARNING, Warning, warning
from commonplace.kinds.knowledge.transcript import Wanted, transcript
from commonplace.model import JSON
from commonplace.store.filters import fold_value
from commonplace.tools.schema import BOOLEAN, INTEGER, STRING, answer, choice, flag, many, maybe, obj, text, texts
from commonplace.tools.tool import READ_ONLY, Call, Tool


def limits_of(call: Call, given: Mapping[str, JSON], place: str = "") -> tuple[Limits, list[Warning]]:
    types = tuple(given.get("media_types") or ())
    low, high = dates(given, place)
    return Limits(media_types=types, date_from=low, date_to=high), _unknown(call, types)


def _unknown(call: Call, types: tuple[str, ...]) -> list[Warning]:
    if not types:
        return []
    there = [name for name in call.library.store.media_types() if name]
    known = {fold_value(name.strip()) for name in there}
    unknown = [name for name in types if fold_value(name.strip()) not in known]
    names = ", ".join(there) or "none yet"
    return [
        warning("unknown_media_type", f'There is no media of type "{name}". The types are: {names}.', "media")
        for name in unknown
    ]


def search(call: Call, given: Mapping[str, JSON]) -> dict[str, JSON]:
    limits, warnings = limits_of(call, given)
    return search_one(open_turn(call, given), "media", given, limits, warnings)


def get(call: Call, given: Mapping[str, JSON]) -> dict[str, JSON]:
    return read_one(call, "media", given["media_id"], given, OTHERWISE["media"])


def read_transcript(call: Call, given: Mapping[str, JSON]) -> dict[str, JSON]:
    turned = turn(call, given, {})
    low, high = given.get("from_ms"), given.get("to_ms")
    if low is not None and high is not None and low > high:
        raise InvalidInput(f"from_ms {low} is after to_ms {high}. Swap them.", argument="from_ms")
    item, _ = call.library.knowledge.item("media", given["media_id"])
    wanted = Wanted(given["format"], given["include_timestamps"], low, high, call.library.settings.full_max_chars)
    made = transcript(call.library.store, item, wanted)
    warnings = turned.warnings()
    if not made.timed:
        warnings.append(
            warning("untimed", "This media has no cues: its text is given without times of its own.", "media")
        )
    cut = made.next_ms is not None or (not made.timed and len(item.body or "") > wanted.most_chars)
    return {
        "content": made.content,
        "media_id": shown_id("media", item.key),
        "format": wanted.format,
        "timed": made.timed,
        "truncated": cut,
        "next_ms": made.next_ms,
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
