"""The research profile: `search` and `fetch`, as deep-research clients call them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from commonplace.errors import NotFound
from commonplace.knowledge.finding import Limits
from commonplace.knowledge.kinds import SOURCE_OF, SOURCES, uri_for
from commonplace.knowledge.reading import Read, rendered
from commonplace.knowledge.retrieval import Budget, Wish, read_full
from commonplace.model import JSON, Item, parse_uri
from commonplace.surfaces.knowledge import everything
from commonplace.surfaces.knowledge.characters import limits_of
from commonplace.surfaces.knowledge.finding import READS, open_turn
from commonplace.surfaces.knowledge.options import OFFSET, QUERY, SESSION, Turn, Wished, check, limit, turn
from commonplace.surfaces.knowledge.reading import read_one
from commonplace.surfaces.knowledge.results import compact_get, either_get, either_search, get_response
from commonplace.surfaces.schema import obj, text
from commonplace.surfaces.tool import READ_ONLY, Call, Tool

DOCUMENTS = "documents"
_WINDOW = {"mode": "chunk_with_siblings", "max_tokens": 5000}


def search(call: Call, given: Mapping[str, JSON]) -> dict[str, JSON]:
    turned = open_turn(call, given)
    asked = tuple(dict.fromkeys(given.get("sources") or ()))
    sources = asked or (*SOURCES, *((DOCUMENTS,) if call.library.store.counts().get("document") else ()))
    limits = Limits(tags=limits_of(given["query"]).tags)
    return everything.answered(turned, given, sources, limits, [], _shape(turned))


def fetch(call: Call, given: Mapping[str, JSON]) -> dict[str, JSON]:
    knobs = {"shape": given["shape"]} if "shape" in given else {}
    turned = turn(call, given, knobs)
    shape, public_url = _shape(turned), call.library.settings.public_url
    parts = parse_uri(given["id"])
    if parts and parts[0] == "message":
        _item(call, given["id"])
        response = read_one(call, "chats", given["id"], {**_session(turned), "retrieval": _WINDOW}, "snippet")
        if shape == "full":
            return response
        shown = compact_get(response, response["content"], public_url)
        shown["metadata"]["conversation_uri"] = uri_for("chats", parts[1] or "")
        return {**shown, "id": given["id"]}
    item = _item(call, given["id"])
    if shape == "full" and item.kind != "document":
        source = SOURCE_OF[item.kind]
        asked = {"retrieval": {"mode": "full", "offset": given["offset"]}}
        return read_one(call, source, item.uri, {**asked, **_session(turned)}, "full")
    return _whole(turned, item, given["offset"], shape, public_url)


def _whole(turned: Turn, item: Item, offset: int, shape: str, public_url: str) -> dict[str, JSON]:
    settings, store = turned.settings, turned.call.library.store
    wish = Wish("full", offset=offset, full_chars=settings.full_max_chars)
    wish = replace(wish, budget=Budget(turned.chosen.max_tokens, turned.chosen.chars_per_token))
    passage = read_full(rendered(store, item), wish)
    read = Read(passage.content, "start", None, passage.truncated, passage.next_offset)
    response = get_response(turned, item, read, Wished(wish, []))
    return response if shape == "full" else compact_get(response, passage.content, public_url)


def _session(turned: Turn) -> dict[str, JSON]:
    return {"session": turned.session.id} if turned.session else {}


def _item(call: Call, uri: str) -> Item:
    parts = parse_uri(uri)
    known = parts is not None and parts[0] in {*SOURCE_OF, "document"}
    item = call.library.store.item(*parts) if known and parts else None
    if item is None:
        raise NotFound(f'There is no item "{uri}". Pass an id from search, such as notes://…')
    return item


def _shape(turned: Turn) -> str:
    """Here the compact shape is what is meant where nothing is said."""
    return "compact" if turned.chosen.origin["shape"] == "settings" else turned.chosen.shape


_SOURCES = {
    "type": "array",
    "items": {"type": "string", "enum": [*SOURCES, DOCUMENTS]},
    "maxItems": 20,
    "description": "Where to look; everywhere if left out.",
}

SEARCH = Tool(
    name="search",
    title="Search",
    description=(
        "Search the user's own library: notes, media, chats, characters, prompts and documents. Returns a list of "
        "results with id, title, url and a snippet. Read a result whole with fetch and its id."
    ),
    input=obj(
        required=("query",),
        query=QUERY,
        limit=limit(20),
        offset=OFFSET,
        sources=_SOURCES,
        session=SESSION,
        dedupe=everything.DEDUPE,
        shape={**everything.SHAPE, "description": "compact if left out; full as knowledge.search answers."},
    ),
    output=either_search(),
    annotations=READ_ONLY,
    handler=search,
    check=check,
    meta=READS,
)
FETCH = Tool(
    name="fetch",
    title="Fetch",
    description=(
        "Read one item whole by the id of a search result: its text, title, url and metadata. Where "
        "metadata.next_offset is set, pass it as offset to go on."
    ),
    input=obj(
        required=("id",),
        id=text("The id of a search result, such as notes://tea.", minLength=1),
        offset={"type": "integer", "minimum": 0, "default": 0, "description": "Where to go on."},
        session=SESSION,
        shape={**everything.SHAPE, "description": "compact if left out; full as knowledge.get answers."},
    ),
    output=either_get(),
    annotations=READ_ONLY,
    handler=fetch,
    check=check,
    meta=READS,
)
