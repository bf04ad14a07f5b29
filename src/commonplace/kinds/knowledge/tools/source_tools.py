"""The tools of each source: its search, its get, and `media.transcript`."""

from __future__ import annotations

from collections.abc import Mapping

from commonplace.errors import InvalidInput
from commonplace.kinds.knowledge.cards_and_prompts import PROMPT_PARTS
from commonplace.kinds.knowledge.drawer import Records
from commonplace.kinds.knowledge.item_search import SourceLimits
from commonplace.kinds.knowledge.kinds import shown_id
from commonplace.kinds.knowledge.knowledge import Knowledge
from commonplace.kinds.knowledge.media import TranscriptRequest, transcript
from commonplace.kinds.knowledge.tools.item_answers import (
    OTHERWISE,
    READS,
    WARNING,
    Warning,
    get_tool,
    open_turn,
    read_one,
    search_one,
    search_tool,
    warning,
)
from commonplace.kinds.knowledge.tools.options import (
    ID,
    LONGEST_QUERY,
    ORDER_BY,
    PAGE,
    PAGE_SIZE_SCHEMA,
    SESSION,
    check,
    dates,
    turn,
)
from commonplace.model import JSON
from commonplace.store.filters import fold_value
from commonplace.tools.schema import BOOLEAN, INTEGER, STRING, answer, choice, flag, many, maybe, obj, text, texts
from commonplace.tools.tool import READ_ONLY, Call, Tool

# notes


def note_limits(args: Mapping[str, JSON]) -> SourceLimits:
    return SourceLimits(keywords=tuple(args.get("keywords") or ()))


def search_notes(call: Call, args: Mapping[str, JSON]) -> dict[str, JSON]:
    return search_one(open_turn(call, args), "notes", args, note_limits(args))


def get_note(call: Call, args: Mapping[str, JSON]) -> dict[str, JSON]:
    return read_one(call, "notes", args["note_id"], args, OTHERWISE["notes"])


KEYWORDS = texts("Only notes with any of these tags: whole tags, case ignored.", maxItems=100)

NOTES_SEARCH = search_tool(
    "notes.search",
    "Search notes",
    "Find the user's notes by the words of their titles, tags and texts. Use it for what the user has written down. "
    "Each result has a snippet, a score from 0 to 1 and a loc; read on with notes.get, passing its id and loc.",
    search_notes,
    keywords=KEYWORDS,
)
NOTES_GET = get_tool(
    "notes.get",
    "Read a note",
    "Read a note: a snippet unless retrieval says more. Pass a result's loc in retrieval and mode "
    "chunk_with_siblings to read around the match, or mode full for all of it. Find notes with notes.search.",
    get_note,
    ("note_id", text("The note's id or address.", minLength=1)),
)


# media


def media_limits(call: Call, args: Mapping[str, JSON], place: str = "") -> tuple[SourceLimits, list[Warning]]:
    """Return the filters of a call, and warnings about types that do not exist."""
    types = tuple(args.get("media_types") or ())
    low, high = dates(args, place)
    return SourceLimits(media_types=types, date_from=low, date_to=high), _unknown_types(call, types)


def _unknown_types(call: Call, types: tuple[str, ...]) -> list[Warning]:
    """Return a warning for each type that no media item has."""
    if not types:
        return []
    types_there = [name for name in call.space.store.drawer(Records).media_types() if name]
    folded_types = {fold_value(name.strip()) for name in types_there}
    unknown = [name for name in types if fold_value(name.strip()) not in folded_types]
    names = ", ".join(types_there) or "none yet"
    return [
        warning("unknown_media_type", f'There is no media of type "{name}". The types are: {names}.', "media")
        for name in unknown
    ]


def search_media(call: Call, args: Mapping[str, JSON]) -> dict[str, JSON]:
    limits, warnings = media_limits(call, args)
    return search_one(open_turn(call, args), "media", args, limits, warnings)


def get_media(call: Call, args: Mapping[str, JSON]) -> dict[str, JSON]:
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
MEDIA_TYPES = texts("Only media of these types, such as video or pdf, case ignored.", maxItems=100)
DATE_FROM = text("Only media recorded, published or imported then or later: 2024-05-01 or 2024-05-01T09:30:00Z.")
DATE_TO = text("The same, then or earlier; a bare date includes that day.")

MEDIA_SEARCH = search_tool(
    "media.search",
    "Search media",
    "Find the user's media (videos, podcasts, PDFs, books, articles) by title, tags, author and text or transcript. A "
    "result's loc has the chunk, the offset and, where there are cues or pages, the time or page of the match. Read "
    "on with media.get, or what is said when with media.transcript. The resource media://types lists the types.",
    search_media,
    media_types=MEDIA_TYPES,
    date_from=DATE_FROM,
    date_to=DATE_TO,
    order_by=ORDER_BY,
)
MEDIA_GET = get_tool(
    "media.get",
    "Read media",
    "Read the text of a media item: a snippet unless retrieval says more. Pass a result's loc in retrieval and mode "
    "chunk_with_siblings to read around the match. attachments says whether there is a transcript with times.",
    get_media,
    ("media_id", MEDIA_ID),
)
_MS = {"type": "integer", "minimum": 0}
MEDIA_TRANSCRIPT = Tool(
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


# chats


def chat_limits(call: Call, args: Mapping[str, JSON], place: str = "") -> tuple[SourceLimits, list[Warning]]:
    """Return the filters of a call, and warnings. Raise InvalidInput for a sender with titles alone."""
    by, sender, character = args.get("by", "both"), args.get("sender"), args.get("character_id")
    if sender is not None and by == "title":
        raise InvalidInput(
            f'{place}sender asks for messages and {place}by is "title". Leave one of them out.',
            argument=f"{place}sender",
        )
    warnings: list[Warning] = []
    key = None
    if character is not None:
        key = call.space.part(Knowledge).character(character)
        if key is None:
            warnings.append(warning("unknown_character", f'There is no character "{character}".', "chats"))
    return SourceLimits(by=by, sender=sender, character=None if character is None else key or ""), warnings


def search_chats(call: Call, args: Mapping[str, JSON]) -> dict[str, JSON]:
    limits, warnings = chat_limits(call, args)
    return search_one(open_turn(call, args), "chats", args, limits, warnings)


def get_chat(call: Call, args: Mapping[str, JSON]) -> dict[str, JSON]:
    return read_one(call, "chats", args["conversation_id"], args, OTHERWISE["chats"])


BY = choice("Look for messages, for conversations by their titles and tags, or both.", "both", "title", "message")
CHARACTER = {**ID, "description": "Only conversations with this character."}
SENDER = text("Only messages of this sender or role, case ignored.", minLength=1)

CHATS_SEARCH = search_tool(
    "chats.search",
    "Search chats",
    "Find messages in the user's past conversations, and conversations by title. A result is one message (with its "
    "message_id and sender) or one conversation. Read around a message with chats.get, passing its loc in retrieval.",
    search_chats,
    by=BY,
    character_id=CHARACTER,
    sender=SENDER,
)
CHATS_GET = get_tool(
    "chats.get",
    "Read a conversation",
    "Read a conversation: a page of its messages, or with retrieval a window of them around a loc or a query. Find "
    "conversations with chats.search.",
    get_chat,
    ("conversation_id", text("The conversation's id or address; that of a message reads around it.", minLength=1)),
    page=PAGE,
    page_size=PAGE_SIZE_SCHEMA,
)


# characters


def character_limits(query: JSON) -> SourceLimits:
    """Return filters with what may be a whole tag: the parts between commas, or the entries of a list."""
    parts = query.split(",") if isinstance(query, str) else query
    return SourceLimits(tags=tuple(part.strip() for part in parts if part.strip()))


def search_characters(call: Call, args: Mapping[str, JSON]) -> dict[str, JSON]:
    return search_one(open_turn(call, args), "characters", args, character_limits(args["query"]))


def get_character(call: Call, args: Mapping[str, JSON]) -> dict[str, JSON]:
    return read_one(call, "characters", args["character_id"], args, OTHERWISE["characters"])


_QUERY = {
    "type": ["string", "array"],
    "items": {"type": "string", "minLength": 1, "maxLength": LONGEST_QUERY},
    "minLength": 1,
    "maxLength": LONGEST_QUERY,
    "minItems": 1,
    "maxItems": 20,
    "description": "Words, or tags with commas between, or a list of either. A whole tag counts most.",
}

CHARACTERS_SEARCH = search_tool(
    "characters.search",
    "Search characters",
    "Find the user's character cards by any of their fields, tags and lorebook entries. A part between commas, or an "
    "entry of a list, that is a whole tag comes first. Read a card with characters.get.",
    search_characters,
    query=_QUERY,
)
CHARACTERS_GET = get_tool(
    "characters.get",
    "Read a character",
    "Read a character card: all of its fields, or the part that retrieval asks for. Find cards with "
    "characters.search, and the chats with one with chats.search and its character_id.",
    get_character,
    ("character_id", {**ID, "description": "The character's id or address."}),
)


# prompts


def prompt_limits(args: Mapping[str, JSON]) -> SourceLimits:
    return SourceLimits(fields=tuple(dict.fromkeys(args.get("fields") or ())))


def search_prompts(call: Call, args: Mapping[str, JSON]) -> dict[str, JSON]:
    return search_one(open_turn(call, args), "prompts", args, prompt_limits(args))


def get_prompt(call: Call, args: Mapping[str, JSON]) -> dict[str, JSON]:
    return read_one(call, "prompts", args["prompt_id_or_name"], args, OTHERWISE["prompts"])


PROMPT_FIELDS = {
    "type": "array",
    "items": {"type": "string", "enum": list(PROMPT_PARTS)},
    "maxItems": 20,
    "description": "Only prompts that answer in these fields; keywords are the tags.",
}

PROMPTS_SEARCH = search_tool(
    "prompts.search",
    "Search prompts",
    "Find prompts in the user's library by name, details, system and user part, author and keywords. Read one with "
    "prompts.get.",
    search_prompts,
    fields=PROMPT_FIELDS,
)
PROMPTS_GET = get_tool(
    "prompts.get",
    "Read a prompt",
    "Read a prompt by its name or id: its parts, author, keywords and {{variables}}. Find prompts with prompts.search.",
    get_prompt,
    ("prompt_id_or_name", {**ID, "description": "The prompt's name, id or address; a name comes before an id."}),
)
