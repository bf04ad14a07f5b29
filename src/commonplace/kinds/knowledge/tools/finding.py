"""What the searches of all sources share: from arguments to a response."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from commonplace.kinds.knowledge.finding import Limits, Search
from commonplace.kinds.knowledge.tools.options import OFFSET, QUERY, SESSION, SNIPPET_LENGTH, Turn, check, limit, turn
from commonplace.kinds.knowledge.tools.results import SEARCH_RESPONSE, Found, Warning, search_response
from commonplace.model import JSON
from commonplace.tools.schema import Schema, obj
from commonplace.tools.tool import READ_ONLY, Call, Handler, Tool

READS = {"readOnlyHint": True}
"""Repeated in `_meta`, where older clients look for it."""


def open_turn(call: Call, given: Mapping[str, JSON]) -> Turn:
    names = ("snippet_length", "order_by", "dedupe", "shape")
    return turn(call, given, {name: given[name] for name in names if name in given})


def search_one(
    turn: Turn, source: str, given: Mapping[str, JSON], limits: Limits, warnings: Sequence[Warning] = ()
) -> dict[str, JSON]:
    """A search of one source. It remembers its query and leaves nothing out."""
    query = query_text(given["query"])
    wanted = Search(
        query,
        (source,),
        limits,
        turn.chosen.order_by,
        given["limit"],
        given["offset"],
        turn.chosen.snippet_length,
        turn.session.recent_queries if turn.session else (),
    )
    results = turn.call.library.knowledge.finding.search(wanted)
    told = turn.session.asked(query) if turn.session else None
    return search_response(turn, Found(results, given["offset"], [*turn.warnings(), *warnings]), told)


def query_text(query: JSON) -> str:
    return query if isinstance(query, str) else " ".join(query)


def search_tool(name: str, title: str, description: str, handler: Handler, **more: Schema) -> Tool:
    own = {"query": QUERY, **more}
    common = {"limit": limit(10), "offset": OFFSET, "snippet_length": SNIPPET_LENGTH, "session": SESSION}
    return Tool(
        name=name,
        title=title,
        description=description,
        input=obj(required=("query",), **{"query": own["query"], **common, **own}),
        output=SEARCH_RESPONSE,
        annotations=READ_ONLY,
        handler=handler,
        check=check,
        meta=READS,
    )
