"""`prompts.search` and `prompts.get`."""

from __future__ import annotations

from collections.abc import Mapping

from commonplace.kinds.knowledge.finding import SourceLimits
from commonplace.kinds.knowledge.prompts import SEARCHED
from commonplace.kinds.knowledge.tools.finding import open_turn, search_one, search_tool
from commonplace.kinds.knowledge.tools.options import ID
from commonplace.kinds.knowledge.tools.reading import OTHERWISE, get_tool, read_one
from commonplace.model import JSON
from commonplace.tools.tool import Call


def limits_of(args: Mapping[str, JSON]) -> SourceLimits:
    return SourceLimits(fields=tuple(dict.fromkeys(args.get("fields") or ())))


def search(call: Call, args: Mapping[str, JSON]) -> dict[str, JSON]:
    return search_one(open_turn(call, args), "prompts", args, limits_of(args))


def get(call: Call, args: Mapping[str, JSON]) -> dict[str, JSON]:
    return read_one(call, "prompts", args["prompt_id_or_name"], args, OTHERWISE["prompts"])


FIELDS = {
    "type": "array",
    "items": {"type": "string", "enum": list(SEARCHED)},
    "maxItems": 20,
    "description": "Only prompts that answer in these fields; keywords are the tags.",
}

SEARCH = search_tool(
    "prompts.search",
    "Search prompts",
    "Find prompts in the user's library by name, details, system and user part, author and keywords. Read one with "
    "prompts.get.",
    search,
    fields=FIELDS,
)
GET = get_tool(
    "prompts.get",
    "Read a prompt",
    "Read a prompt by its name or id: its parts, author, keywords and {{variables}}. Find prompts with prompts.search.",
    get,
    ("prompt_id_or_name", {**ID, "description": "The prompt's name, id or address; a name comes before an id."}),
)
