"""The research profile: `search` and `fetch`, under the names that deep-research clients call them by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from commonplace.errors import NotFound
from commonplace.kinds.knowledge.item_search import SourceLimits
from commonplace.kinds.knowledge.kinds import SOURCE_OF, SOURCES
from commonplace.kinds.knowledge.knowledge import Knowledge
from commonplace.kinds.knowledge.tools import everything
from commonplace.kinds.knowledge.tools.item_answers import (
    READS,
    compact_get,
    either_get,
    either_search,
    open_turn,
    read_one,
    read_rendered,
    result,
)
from commonplace.kinds.knowledge.tools.options import OFFSET, QUERY, SESSION, Turn, check, limit, turn, wished
from commonplace.kinds.knowledge.tools.source_tools import character_limits
from commonplace.kinds.knowledge.tools.write_tools import WRITING
from commonplace.model import JSON, Item, parse_uri
from commonplace.store.items import Items
from commonplace.store.listing import Listing
from commonplace.tools.profile import Profile
from commonplace.tools.schema import obj, text
from commonplace.tools.tool import READ_ONLY, Call, Tool

if TYPE_CHECKING:
    from commonplace.space import Space


DOCUMENTS = "documents"
_WINDOW = {"mode": "chunk_with_siblings", "max_tokens": 5000}


def search(call: Call, args: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return the answer of `search`."""
    call_turn = open_turn(call, args)
    requested = tuple(dict.fromkeys(args.get("sources") or ()))
    sources = requested or (
        *SOURCES,
        *((DOCUMENTS,) if call.space.store.drawer(Listing).counts().get("document") else ()),
    )
    limits = SourceLimits(tags=character_limits(args["query"]).tags)
    return everything.search_answer(call_turn, args, sources, limits, [], _shape(call_turn))


def fetch(call: Call, args: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return the answer of `fetch`."""
    knobs = {"shape": args["shape"]} if "shape" in args else {}
    call_turn = turn(call, args, knobs)
    shape, public_url = _shape(call_turn), call.space.settings.public_url
    item = _item(call, args["id"])
    if item.kind == "message":
        response = read_one(call, "chats", item.uri, {**_session(call_turn), "retrieval": _WINDOW}, "snippet")
        if shape == "full":
            return response
        talk, _ = call.space.part(Knowledge).item("chats", item.uri, body=False)
        compact = compact_get({**response, "meta": result(item, talk=talk)}, public_url)
        compact["metadata"]["conversation_uri"] = talk.uri
        return compact
    whole = {"mode": "full", "offset": args["offset"]}
    if shape == "full" and item.kind != "document":
        read_args = {"retrieval": whole, **_session(call_turn)}
        return read_one(call, SOURCE_OF[item.kind], item.uri, read_args, "full")
    response = read_rendered(call_turn, item, wished(call_turn, whole, "full"))
    return response if shape == "full" else compact_get(response, public_url)


def _session(call_turn: Turn) -> dict[str, JSON]:
    return {"session": call_turn.session.id} if call_turn.session else {}


def _item(call: Call, uri: str) -> Item:
    parts = parse_uri(uri)
    known = parts is not None and parts[0] in {*SOURCE_OF, "document"}
    item = call.space.store.drawer(Items).find(*parts) if known and parts else None
    if item is None:
        raise NotFound(f'There is no item "{uri}". Pass an id from search, such as notes://…')
    return item


def _shape(call_turn: Turn) -> str:
    """Return the shape of the answer: compact, unless another was asked for."""
    return "compact" if call_turn.chosen.origin["shape"] == "settings" else call_turn.chosen.shape


_SOURCES = {
    "type": "array",
    "items": {"type": "string", "enum": [*SOURCES, DOCUMENTS]},
    "maxItems": 20,
    "description": "Sources to search (default all).",
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


# the profile


_INSTRUCTIONS = """\
The user's own library. search finds notes, media, chats, characters, prompts and documents by their words and returns \
an id, a title, a url and a snippet of each; fetch reads one by its id."""


def instructions(space: Space) -> str:
    """Return the instructions for an agent that has never seen the server."""
    return _INSTRUCTIONS


PROFILE = Profile("research", (SEARCH, FETCH), instructions, unlisted=(*everything.READING, *WRITING))
