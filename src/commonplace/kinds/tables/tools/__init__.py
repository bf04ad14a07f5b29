"""The tables profile: projects of JSON tables, tools bound to places in them, and instances that serve those."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace.kinds.tables.json_tables import Tables
from commonplace.kinds.tables.tools import bound, data
from commonplace.tools.profile import Profile

if TYPE_CHECKING:
    from commonplace.space import Space

TOOLS = (*data.TOOLS, *bound.TOOLS)

_INSTRUCTIONS = """\
JSON tables of the user: {counts}. A table holds one JSON value; places in it are JSON Pointers. table_list and \
table_get read. A tool is one operation bound to one place (tool_list); an instance is an MCP endpoint with its own \
key that serves exactly the tools bound to it (instance_list). Names do wherever an id is asked for. Writes take \
expected_version, which every answer tells, against lost updates. search_status says how ready search tools are."""


def instructions(space: Space) -> str:
    """Return the instructions for an agent that has never seen the server."""
    rows = space.part(Tables).rows
    counts = f"{len(rows.projects())} projects, {len(rows.tables())} tables, {len(rows.tools())} tools"
    return _INSTRUCTIONS.format(counts=counts)


PROFILE = Profile("tables", TOOLS, instructions, exact=True)
