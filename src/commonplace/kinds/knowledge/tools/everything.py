"""`knowledge.search` and `knowledge.get`: all sources at once, in one order."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace

from commonplace.errors import Busy, CommonplaceError, InvalidInput, NotFound, StorageFull, Unavailable
from commonplace.kinds.knowledge.finding import Limits, Results, Search
from commonplace.kinds.knowledge.kinds import SOURCE_OF, SOURCES
from commonplace.kinds.knowledge.tools import characters, chats, media, notes, prompts
from commonplace.kinds.knowledge.tools.finding import READS, open_turn
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
from commonplace.kinds.knowledge.tools.reading import paging_ignored, read, read_rendered
from commonplace.kinds.knowledge.tools.results import (
    Found,
    Warning,
    compact_get,
    compact_search,
    either_get,
    either_search,
    search_response,
    warning,
)
from commonplace.model import JSON, parse_uri
from commonplace.tools.schema import obj
from commonplace.tools.sessions import SearchAnswer, deduped
from commonplace.tools.soft_config import DEFAULTS
from commonplace.tools.tool import READ_ONLY, Call, Tool

log = logging.getLogger(__name__)


# searching


def search(call: Call, given: Mapping[str, JSON]) -> dict[str, JSON]:
    turned = open_turn(call, given)
    sources = tuple(dict.fromkeys(given.get("sources") or SOURCES))
    limits, warnings = _limits(call, given, sources)
    turned, more = _ordered(turned, given, sources)
    return answered(turned, given, sources, limits, [*warnings, *more], turned.chosen.shape)


def answered(
    turned: Turn,
    given: Mapping[str, JSON],
    sources: tuple[str, ...],
    limits: Limits,
    warnings: list[Warning],
    shape: str,
) -> dict[str, JSON]:
    """The answer to a search of several sources, without what the session has seen."""
    library, chosen = turned.call.library, turned.chosen
    wanted = Search(
        given["query"],
        sources,
        limits,
        chosen.order_by,
        given["limit"],
        given["offset"],
        chosen.snippet_length,
        turned.session.recent_queries if turned.session else (),
    )

    def run(seen: frozenset[str]) -> SearchAnswer[tuple[Results, list[Warning]]]:
        addresses = [parts for parts in map(parse_uri, seen) if parts]
        without = frozenset(library.store.ids_of(addresses)) if addresses else frozenset()
        results, failed = _found(turned, replace(wanted, without=without))
        return SearchAnswer((results, failed), [hit.item.uri for hit in results.hits], results.total, results.skipped)

    listing = [given["query"], sorted(sources), given.get("filters") or {}, chosen.order_by]
    own = chosen.origin["max_session_uris"] != "settings"
    (results, failed), told = deduped(
        turned.session,
        run,
        query=given["query"],
        listing=listing,
        offset=given["offset"],
        dedupe=chosen.dedupe,
        most_uris=chosen.max_session_uris if own else None,
    )
    found = Found(results, given["offset"], [*turned.warnings(), *warnings, *failed])
    response = search_response(turned, found, told)
    return compact_search(response, library.settings.public_url) if shape == "compact" else response


def _found(turned: Turn, wanted: Search) -> tuple[Results, list[Warning]]:
    """What the sources answer. Where one of them fails the others still do; an error only where none is left."""
    finding = turned.call.library.knowledge.finding
    try:
        return finding.search(wanted), []
    except (Busy, StorageFull, Unavailable):
        raise  # what all of them need is not there, and each would be waited for in turn
    except CommonplaceError as error:
        if len(wanted.sources) == 1:
            raise
        log.info("Searching one by one: %s", error.code)
    good, failed = [], list[Warning]()
    for source in wanted.sources:
        try:
            finding.search(replace(wanted, sources=(source,)))
            good.append(source)
        except CommonplaceError as error:
            failed.append(warning("source_failed", str(error), source))
    if not good:
        raise Unavailable(f"None of the sources could be searched: {failed[0]['reason']}")
    return finding.search(replace(wanted, sources=tuple(good))), failed


def _limits(call: Call, given: Mapping[str, JSON], sources: tuple[str, ...]) -> tuple[Limits, list[Warning]]:
    filters = given.get("filters") or {}
    warnings = [
        warning("filter_ignored", f"filters.{name} was ignored, because {name} is not searched.", name)
        for name in filters
        if name not in sources and filters[name]
    ]
    limits = Limits(
        keywords=notes.limits_of(filters.get("notes") or {}).keywords,
        fields=prompts.limits_of(filters.get("prompts") or {}).fields,
        tags=characters.limits_of(given["query"]).tags,
    )
    if "media" in sources:
        own, said = media.limits_of(call, filters.get("media") or {}, "filters.media.")
        limits = replace(limits, media_types=own.media_types, date_from=own.date_from, date_to=own.date_to)
        warnings += said
    if "chats" in sources:
        own, said = chats.limits_of(call, filters.get("chats") or {}, "filters.chats.")
        limits = replace(limits, by=own.by, character=own.character, sender=own.sender)
        warnings += said
    return limits, warnings


def _ordered(turned: Turn, given: Mapping[str, JSON], sources: tuple[str, ...]) -> tuple[Turn, list[Warning]]:
    """The order of media counts where there is nothing else to order."""
    order = ((given.get("filters") or {}).get("media") or {}).get("order_by")
    if order is None or "media" not in sources:
        return turned, []
    if sources == ("media",) and "order_by" not in given:
        return replace(turned, chosen=replace(turned.chosen, order_by=order)), []
    return turned, [warning("filter_ignored", "filters.media.order_by was ignored: the list has one order.", "media")]


# reading


def get(call: Call, given: Mapping[str, JSON]) -> dict[str, JSON]:
    source = _source(given)
    shape = {"shape": given["shape"]} if "shape" in given else {}
    turned = turn(call, given, {**(given.get("retrieval") or {}), **shape})
    if turned.chosen.shape != "compact":
        return read(turned, source, given["id"], given, "snippet")
    asked = wished(turned, given.get("retrieval"), "snippet")
    if asked.wish.mode == "full":
        item, _ = call.library.knowledge.item(source, given["id"])
        response = read_rendered(turned, item, asked, paging_ignored(given))
    else:
        response = read(turned, source, given["id"], given, "snippet")
    return compact_get(response, call.library.settings.public_url)


def _source(given: Mapping[str, JSON]) -> str:
    """The source an address names, or else the one that is given; both have to agree."""
    parts = parse_uri(given["id"]) if isinstance(given["id"], str) and "://" in given["id"] else None
    named, source = SOURCE_OF.get(parts[0]) if parts else None, given.get("source")
    if isinstance(given["id"], str) and "://" in given["id"] and named is None:
        raise NotFound(f'There is no item "{given["id"]}". Find one with knowledge.search.')
    if source is None and named is None:
        raise InvalidInput('knowledge.get needs "source", unless id is an address such as notes://…', argument="source")
    if source is not None and named is not None and source != named:
        raise InvalidInput(
            f'source is "{source}" and {given["id"]} is of {named}. Leave source out, or correct one of them.',
            argument="source",
        )
    return str(source or named)


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
        media=obj(media_types=media.TYPES, date_from=media.DATE_FROM, date_to=media.DATE_TO, order_by=ORDER_BY),
        notes=obj(keywords=notes.KEYWORDS),
        chats=obj(by=_BY, character_id=chats.CHARACTER, sender=chats.SENDER),
        prompts=obj(fields=prompts.FIELDS),
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
