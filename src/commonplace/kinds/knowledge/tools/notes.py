"""`notes.search` and `notes.get`."""

from __future__ import annotations

from collections.abc import Mapping

from commonplace.kinds.knowledge.finding import SourceLimits
from commonplace.kinds.knowledge.tools.finding import open_turn, search_one, search_tool
from commonplace.kinds.knowledge.tools.reading import OTHERWISE, get_tool, read_one
from commonplace.model import JSON
from commonplace.tools.schema import text, texts
from commonplace.tools.tool import Call


def limits_of(args: Mapping[str, JSON]) -> SourceLimits:
    return SourceLimits(keywords=tuple(args.get("keywords") or ()))


def search(call: Call, args: Mapping[str, JSON]) -> dict[str, JSON]:
    return search_one(open_turn(call, args), "notes", args, limits_of(args))


def get(call: Call, args: Mapping[str, JSON]) -> dict[str, JSON]:
    return read_one(call, "notes", args["note_id"], args, OTHERWISE["notes"])


KEYWORDS = texts("Only notes with any of these tags: whole tags, case ignored.", maxItems=100)

SEARCH = search_tool(
    "notes.search",
    "Search notes",
    "Find the user's notes by the words of their titles, tags and texts. Use it for what the user has written down. "
    "Each result has a snippet, a score from 0 to 1 and a loc; read on with notes.get, passing its id and loc.",
    search,
    keywords=KEYWORDS,
)
GET = get_tool(
    "notes.get",
    "Read a note",
    "Read a note: a snippet unless retrieval says more. Pass a result's loc in retrieval and mode "
    "chunk_with_siblings to read around the match, or mode full for all of it. Find notes with notes.search.",
    get,
    ("note_id", text("The note's id or address.", minLength=1)),
)
