"""`characters.search` and `characters.get`."""

from __future__ import annotations

from collections.abc import Mapping

from commonplace.kinds.knowledge.finding import SourceLimits
from commonplace.kinds.knowledge.tools.finding import open_turn, search_one, search_tool
from commonplace.kinds.knowledge.tools.options import ID, LONGEST_QUERY
from commonplace.kinds.knowledge.tools.reading import OTHERWISE, get_tool, read_one
from commonplace.model import JSON
from commonplace.tools.tool import Call


def limits_of(query: JSON) -> SourceLimits:
    """Return filters with what may be a whole tag: the parts between commas, or the entries of a list."""
    parts = query.split(",") if isinstance(query, str) else query
    return SourceLimits(tags=tuple(part.strip() for part in parts if part.strip()))


def search(call: Call, args: Mapping[str, JSON]) -> dict[str, JSON]:
    return search_one(open_turn(call, args), "characters", args, limits_of(args["query"]))


def get(call: Call, args: Mapping[str, JSON]) -> dict[str, JSON]:
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

SEARCH = search_tool(
    "characters.search",
    "Search characters",
    "Find the user's character cards by any of their fields, tags and lorebook entries. A part between commas, or an "
    "entry of a list, that is a whole tag comes first. Read a card with characters.get.",
    search,
    query=_QUERY,
)
GET = get_tool(
    "characters.get",
    "Read a character",
    "Read a character card: all of its fields, or the part that retrieval asks for. Find cards with "
    "characters.search, and the chats with one with chats.search and its character_id.",
    get,
    ("character_id", {**ID, "description": "The character's id or address."}),
)
