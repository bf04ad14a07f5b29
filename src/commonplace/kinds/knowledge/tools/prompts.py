"""`prompts.search` and `prompts.get`."""

from __future__ import annotations

from collections.abc import Mapping

from commonplace.kinds.knowledge.finding import Limits
from commonplace.kinds.knowledge.prompts import SEARCHED
from commonplace.kinds.knowledge.tools.finding import open_turn, search_one, search_tool
from commonplace.kinds.knowledge.tools.options import ID
from commonplace.kinds.knowledge.tools.reading import OTHERWISE, get_tool, read_one
from commonplace.model import JSON
from commonplace.tools.tool import Call


def limits_of(given: Mapping[str, JSON]) -> Limits:
    return Limits(fields=tuple(dict.fromkeys(given.get("fields") or ())))


def search(call: Call, given: Mapping[str, JSON]) -> dict[str, JSON]:
    return search_one(open_turn(call, given), "prompts", given, limits_of(given))


def get(call: Call, given: Mapping[str, JSON]) -> dict[str, JSON]:
    return read_one(call, "prompts", given["prompt_id_or_name"], given, OTHERWISE["prompts"])


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
