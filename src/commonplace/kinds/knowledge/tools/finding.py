"""Shared by the search tools of all sources: from arguments to a response."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from commonplace.kinds.knowledge import Knowledge
from commonplace.kinds.knowledge.finding import SearchRequest, SourceLimits
from commonplace.kinds.knowledge.tools.options import OFFSET, QUERY, SESSION, SNIPPET_LENGTH, Turn, check, limit, turn
from commonplace.kinds.knowledge.tools.results import SEARCH_RESPONSE, ResultPage, Warning, search_response
from commonplace.model import JSON
from commonplace.tools.schema import Schema, obj
from commonplace.tools.tool import READ_ONLY, Call, Handler, Tool

READS = {"readOnlyHint": True}
"""An annotation, repeated in `_meta`, where older clients look for it."""


def open_turn(call: Call, args: Mapping[str, JSON]) -> Turn:
    """Return the turn of a search call."""
    names = ("snippet_length", "order_by", "dedupe", "shape")
    return turn(call, args, {name: args[name] for name in names if name in args})


def search_one(
    turn: Turn, source: str, args: Mapping[str, JSON], limits: SourceLimits, warnings: Sequence[Warning] = ()
) -> dict[str, JSON]:
    """Return the answer to a search of one source. It remembers its query and leaves nothing out."""
    query = query_text(args["query"])
    request = SearchRequest(
        query,
        (source,),
        limits,
        turn.chosen.order_by,
        args["limit"],
        args["offset"],
        turn.chosen.snippet_length,
        turn.session.recent_queries if turn.session else (),
    )
    results = turn.call.space.part(Knowledge).finding.search(request)
    session_state = turn.session.asked(query) if turn.session else None
    return search_response(turn, ResultPage(results, args["offset"], [*turn.warnings(), *warnings]), session_state)


def query_text(query: JSON) -> str:
    """Return a query as one text."""
    return query if isinstance(query, str) else " ".join(query)


def search_tool(name: str, title: str, description: str, handler: Handler, **more: Schema) -> Tool:
    """Return a search tool with the arguments that all have."""
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
