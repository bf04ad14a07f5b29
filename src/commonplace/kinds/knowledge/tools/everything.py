"""`knowledge.search` and `knowledge.get`: all sources at once, in one order."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace

from commonplace.errors import Busy, CommonplaceError, InvalidInput, NotFound, StorageFull, Unavailable
from commonplace.kinds.knowledge.item_search import Results, SearchRequest, SourceLimits
from commonplace.kinds.knowledge.kinds import SOURCE_OF, SOURCES
from commonplace.kinds.knowledge.knowledge import Knowledge
from commonplace.kinds.knowledge.tools.item_answers import (
    READS,
    ResultPage,
    Warning,
    compact_get,
    compact_search,
    either_get,
    either_search,
    open_turn,
    paging_ignored,
    read,
    read_rendered,
    search_response,
    warning,
)
from commonplace.kinds.knowledge.tools.options import (
    ID,
    OFFSET,
    ORDER_BY,
    PAGE,
    PAGE_SIZE_SCHEMA,
    QUERY,
    RETRIEVAL,
    SESSION,
    SNIPPET_LENGTH,
    Turn,
    check,
    limit,
    turn,
    wished,
)
from commonplace.kinds.knowledge.tools.source_tools import (
    CHARACTER,
    CHARACTERS_GET,
    CHARACTERS_SEARCH,
    CHATS_GET,
    CHATS_SEARCH,
    DATE_FROM,
    DATE_TO,
    KEYWORDS,
    MEDIA_GET,
    MEDIA_SEARCH,
    MEDIA_TRANSCRIPT,
    MEDIA_TYPES,
    NOTES_GET,
    NOTES_SEARCH,
    PROMPT_FIELDS,
    PROMPTS_GET,
    PROMPTS_SEARCH,
    SENDER,
    character_limits,
    chat_limits,
    media_limits,
    note_limits,
    prompt_limits,
)
from commonplace.model import JSON, parse_uri
from commonplace.store.listing import Listing
from commonplace.tools.schema import obj
from commonplace.tools.sessions import SearchAnswer, deduped
from commonplace.tools.soft_config import DEFAULTS
from commonplace.tools.tool import READ_ONLY, Call, Tool

log = logging.getLogger(__name__)


# searching


def search(call: Call, args: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return the answer of `knowledge.search`."""
    call_turn = open_turn(call, args)
    sources = tuple(dict.fromkeys(args.get("sources") or SOURCES))
    limits, warnings = _limits(call, args, sources)
    call_turn, order_warnings = _ordered(call_turn, args, sources)
    return search_answer(call_turn, args, sources, limits, [*warnings, *order_warnings], call_turn.chosen.shape)


def search_answer(
    call_turn: Turn,
    args: Mapping[str, JSON],
    sources: tuple[str, ...],
    limits: SourceLimits,
    warnings: list[Warning],
    shape: str,
) -> dict[str, JSON]:
    """Return the answer to a search of several sources, without what the session has seen."""
    space, chosen = call_turn.call.space, call_turn.chosen
    request = SearchRequest(
        args["query"],
        sources,
        limits,
        chosen.order_by,
        args["limit"],
        args["offset"],
        chosen.snippet_length,
        call_turn.session.recent_queries if call_turn.session else (),
    )

    def run(seen: frozenset[str]) -> SearchAnswer[tuple[Results, list[Warning]]]:
        addresses = [parts for parts in map(parse_uri, seen) if parts]
        without = frozenset(space.store.drawer(Listing).ids_of(addresses)) if addresses else frozenset()
        results, failed = _search_sources(call_turn, replace(request, without=without))
        return SearchAnswer((results, failed), [hit.item.uri for hit in results.hits], results.total, results.skipped)

    listing = [args["query"], sorted(sources), args.get("filters") or {}, chosen.order_by]
    own = chosen.origin["max_session_uris"] != "settings"
    (results, failed), session_state = deduped(
        call_turn.session,
        run,
        query=args["query"],
        listing=listing,
        offset=args["offset"],
        dedupe=chosen.dedupe,
        most_uris=chosen.max_session_uris if own else None,
    )
    page = ResultPage(results, args["offset"], [*call_turn.warnings(), *warnings, *failed])
    response = search_response(call_turn, page, session_state)
    return compact_search(response, space.settings.public_url) if shape == "compact" else response


def _search_sources(call_turn: Turn, request: SearchRequest) -> tuple[Results, list[Warning]]:
    """Return what the sources answer. Where one of them fails the others still do; raise where none is left."""
    finding = call_turn.call.space.part(Knowledge).finding
    try:
        return finding.search(request), []
    except (Busy, StorageFull, Unavailable):
        raise  # all sources need what is missing, and each would wait for it in turn
    except CommonplaceError as error:
        if len(request.sources) == 1:
            raise
        log.info("Searching one by one: %s", error.code)
    searchable, warnings = [], list[Warning]()
    for source in request.sources:
        try:
            finding.search(replace(request, sources=(source,)))
            searchable.append(source)
        except CommonplaceError as error:
            warnings.append(warning("source_failed", str(error), source))
    if not searchable:
        raise Unavailable(f"None of the sources could be searched: {warnings[0]['reason']}")
    return finding.search(replace(request, sources=tuple(searchable))), warnings


def _limits(call: Call, args: Mapping[str, JSON], sources: tuple[str, ...]) -> tuple[SourceLimits, list[Warning]]:
    """Return the filters of a call for each source, and warnings about filters that are ignored."""
    filters = args.get("filters") or {}
    warnings = [
        warning("filter_ignored", f"filters.{name} was ignored, because {name} is not searched.", name)
        for name in filters
        if name not in sources and filters[name]
    ]
    limits = SourceLimits(
        keywords=note_limits(filters.get("notes") or {}).keywords,
        fields=prompt_limits(filters.get("prompts") or {}).fields,
        tags=character_limits(args["query"]).tags,
    )
    if "media" in sources:
        own, own_warnings = media_limits(call, filters.get("media") or {}, "filters.media.")
        limits = replace(limits, media_types=own.media_types, date_from=own.date_from, date_to=own.date_to)
        warnings += own_warnings
    if "chats" in sources:
        own, own_warnings = chat_limits(call, filters.get("chats") or {}, "filters.chats.")
        limits = replace(limits, by=own.by, character=own.character, sender=own.sender)
        warnings += own_warnings
    return limits, warnings


def _ordered(call_turn: Turn, args: Mapping[str, JSON], sources: tuple[str, ...]) -> tuple[Turn, list[Warning]]:
    """Return the turn with the order of media, which counts only where media alone are searched; and warnings."""
    order = ((args.get("filters") or {}).get("media") or {}).get("order_by")
    if order is None or "media" not in sources:
        return call_turn, []
    if sources == ("media",) and "order_by" not in args:
        return replace(call_turn, chosen=replace(call_turn.chosen, order_by=order)), []
    return call_turn, [
        warning("filter_ignored", "filters.media.order_by was ignored: the list has one order.", "media")
    ]


# reading


def get(call: Call, args: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return the answer of `knowledge.get`."""
    source = _source(args)
    shape = {"shape": args["shape"]} if "shape" in args else {}
    call_turn = turn(call, args, {**(args.get("retrieval") or {}), **shape})
    if call_turn.chosen.shape != "compact":
        return read(call_turn, source, args["id"], args, "snippet")
    reading = wished(call_turn, args.get("retrieval"), "snippet")
    if reading.wish.mode == "full":
        item, _ = call.space.part(Knowledge).item(source, args["id"])
        response = read_rendered(call_turn, item, reading, paging_ignored(args))
    else:
        response = read(call_turn, source, args["id"], args, "snippet")
    return compact_get(response, call.space.settings.public_url)


def _source(args: Mapping[str, JSON]) -> str:
    """Return the source an address names, or else the one that is given. Raise where they disagree."""
    parts = parse_uri(args["id"]) if isinstance(args["id"], str) and "://" in args["id"] else None
    source_named, source = SOURCE_OF.get(parts[0]) if parts else None, args.get("source")
    if isinstance(args["id"], str) and "://" in args["id"] and source_named is None:
        raise NotFound(f'There is no item "{args["id"]}". Find one with knowledge.search.')
    if source is None and source_named is None:
        raise InvalidInput('knowledge.get needs "source", unless id is an address such as notes://…', argument="source")
    if source is not None and source_named is not None and source != source_named:
        raise InvalidInput(
            f'source is "{source}" and {args["id"]} is of {source_named}. Leave source out, or correct one of them.',
            argument="source",
        )
    return str(source or source_named)


# declarations

_SOURCES = {
    "type": "array",
    "items": {"type": "string", "enum": list(SOURCES)},
    "maxItems": 20,
    "description": "Sources to search (default all).",
}
_BY = {"type": "string", "enum": ["both", "title", "message"]}
FILTERS = {
    **obj(
        media=obj(media_types=MEDIA_TYPES, date_from=DATE_FROM, date_to=DATE_TO, order_by=ORDER_BY),
        notes=obj(keywords=KEYWORDS),
        chats=obj(by=_BY, character_id=CHARACTER, sender=SENDER),
        prompts=obj(fields=PROMPT_FIELDS),
        characters=obj(),
    ),
    "description": 'Arguments of each source\'s own search, as {"media": {"media_types": ["pdf"]}}.',
}
_KINDS = {"order_by": "string", "chars_per_token": "number"}
SESSION_DEFAULTS = {
    **obj(),
    "properties": {name: {"type": [_KINDS.get(name, "integer"), "null"]} for name in DEFAULTS},
    "description": "Defaults for this and later calls of the session; null removes one.",
}
SHAPE = {
    "type": "string",
    "enum": ["full", "compact"],
    "description": "compact: id, title, url, text and metadata of each.",
}
DEDUPE = {"type": "boolean", "description": "Skip what the session has already returned (default true)."}

SEARCH = Tool(
    name="knowledge.search",
    title="Search everything",
    description=(
        "Find anything in the user's notes, media, chats, characters and prompts with one query, best first. Start "
        "here when it is not clear where something is. With a session, results of earlier searches are left out. Read "
        "a result with knowledge.get, passing its uri as id and its loc in retrieval."
    ),
    input=obj(
        required=("query",),
        query=QUERY,
        limit=limit(20),
        offset=OFFSET,
        snippet_length=SNIPPET_LENGTH,
        sources=_SOURCES,
        order_by=ORDER_BY,
        filters=FILTERS,
        session=SESSION,
        session_defaults=SESSION_DEFAULTS,
        dedupe=DEDUPE,
        shape=SHAPE,
    ),
    output=either_search(),
    annotations=READ_ONLY,
    handler=search,
    check=check,
    meta=READS,
)
GET = Tool(
    name="knowledge.get",
    title="Read anything",
    description=(
        "Read an item of any source: a snippet, a chunk, a window around a match (mode chunk_with_siblings with the "
        "result's loc), or all of it (mode full). Takes the uri of a knowledge.search result as id."
    ),
    input=obj(
        required=("id",),
        source={"type": "string", "enum": list(SOURCES), "description": "Not needed where id is an address."},
        id={**ID, "description": "An address such as notes://tea, or an id of the source."},
        retrieval=RETRIEVAL,
        page=PAGE,
        page_size=PAGE_SIZE_SCHEMA,
        session=SESSION,
        shape=SHAPE,
    ),
    output=either_get(),
    annotations=READ_ONLY,
    handler=get,
    check=check,
    meta=READS,
)

READING = (
    NOTES_SEARCH,
    NOTES_GET,
    MEDIA_SEARCH,
    MEDIA_GET,
    MEDIA_TRANSCRIPT,
    CHATS_SEARCH,
    CHATS_GET,
    CHARACTERS_SEARCH,
    CHARACTERS_GET,
    PROMPTS_SEARCH,
    PROMPTS_GET,
    SEARCH,
    GET,
)
"""The tools that read, those of each source first."""
