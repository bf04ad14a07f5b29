"""`chats.search` and `chats.get`."""

from __future__ import annotations

from collections.abc import Mapping

from commonplace.errors import InvalidInput
from commonplace.kinds.knowledge import Knowledge
from commonplace.kinds.knowledge.finding import SourceLimits
from commonplace.kinds.knowledge.tools.finding import open_turn, search_one, search_tool
from commonplace.kinds.knowledge.tools.options import ID, PAGE, PAGE_SIZE_SCHEMA
from commonplace.kinds.knowledge.tools.reading import OTHERWISE, get_tool, read_one
from commonplace.kinds.knowledge.tools.results import Warning, warning
from commonplace.model import JSON
from commonplace.tools.schema import choice, text
from commonplace.tools.tool import Call


def limits_of(call: Call, args: Mapping[str, JSON], place: str = "") -> tuple[SourceLimits, list[Warning]]:
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


def search(call: Call, args: Mapping[str, JSON]) -> dict[str, JSON]:
    limits, warnings = limits_of(call, args)
    return search_one(open_turn(call, args), "chats", args, limits, warnings)


def get(call: Call, args: Mapping[str, JSON]) -> dict[str, JSON]:
    return read_one(call, "chats", args["conversation_id"], args, OTHERWISE["chats"])


BY = choice("Look for messages, for conversations by their titles and tags, or both.", "both", "title", "message")
CHARACTER = {**ID, "description": "Only conversations with this character."}
SENDER = text("Only messages of this sender or role, case ignored.", minLength=1)

SEARCH = search_tool(
    "chats.search",
    "Search chats",
    "Find messages in the user's past conversations, and conversations by title. A result is one message (with its "
    "message_id and sender) or one conversation. Read around a message with chats.get, passing its loc in retrieval.",
    search,
    by=BY,
    character_id=CHARACTER,
    sender=SENDER,
)
GET = get_tool(
    "chats.get",
    "Read a conversation",
    "Read a conversation: a page of its messages, or with retrieval a window of them around a loc or a query. Find "
    "conversations with chats.search.",
    get,
    ("conversation_id", text("The conversation's id or address; that of a message reads around it.", minLength=1)),
    page=PAGE,
    page_size=PAGE_SIZE_SCHEMA,
)
