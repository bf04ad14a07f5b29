"""From arguments to an answer: result items, responses in both shapes, and what the tools of all sources share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import quote

from commonplace.kinds.knowledge.item_reading import Read, rendered
from commonplace.kinds.knowledge.item_search import Results, SearchRequest, SourceLimits, source_of
from commonplace.kinds.knowledge.item_snippets import KnowledgeHit
from commonplace.kinds.knowledge.kinds import moment_text, shown_id
from commonplace.kinds.knowledge.knowledge import Knowledge
from commonplace.kinds.knowledge.retrieval import Mode, read_full, tokens
from commonplace.kinds.knowledge.tools.options import (
    OFFSET,
    PAGE_SIZE,
    QUERY,
    RETRIEVAL,
    SESSION,
    SNIPPET_LENGTH,
    Turn,
    Wished,
    check,
    limit,
    turn,
    wished,
)
from commonplace.model import JSON, Item
from commonplace.search.request import NO_WORD
from commonplace.tools.schema import BOOLEAN, INTEGER, NUMBER, OBJECT, STRING, STRINGS, Schema, answer, many, maybe, obj
from commonplace.tools.sessions import SessionReport
from commonplace.tools.tool import READ_ONLY, Call, Handler, Tool

Warning = Mapping[str, JSON]


def warning(code: str, reason: str, source: str | None = None) -> Warning:
    """Return a warning of an answer."""
    return {"source": source, "code": code, "reason": reason}


NO_TERMS = warning("no_terms", NO_WORD)


# result items


def result(item: Item, *, talk: Item | None = None, score: float = 1.0, score_type: str = "exact") -> dict[str, JSON]:
    """Return an item as a result without snippet and place. `talk` is the conversation of a message."""
    whole = talk or item
    timed = item.fields.get("timestamp") if talk else None
    source = source_of(item)
    record: dict[str, JSON] = {
        "id": item.uri if source == "documents" else shown_id(whole.kind, whole.key),
        "source": source,
        "uri": item.uri,
        "title": whole.title or None,
        "snippet": None,
        "score": score,
        "score_type": score_type,
        "created_at": timed or moment_text(whole.created_at),
        "last_modified": timed or moment_text(whole.updated_at),
        "version": whole.version,
        "tags": list(whole.tags),
        "loc": None,
    }
    if item.kind == "media":
        record |= {name: item.fields.get(name) for name in ("media_type", "url", "author")}
    elif source == "chats":
        character = whole.fields.get("character")
        record["conversation_id"] = whole.key
        record["message_id"] = item.key if talk else None
        record["sender"] = item.fields.get("sender") if talk else None
        record["character_id"] = shown_id("character", character) if character else None
    return record


def hit_item(hit: KnowledgeHit, score_type: str) -> dict[str, JSON]:
    """Return a hit as a result."""
    record = result(hit.item, talk=hit.talk, score=hit.score, score_type=score_type)
    return {**record, "snippet": hit.snippet, "loc": dict(hit.loc) if hit.loc is not None else None}


@dataclass(frozen=True, slots=True)
class ResultPage:
    """One page of results, and the warnings about it."""

    results: Results
    offset: int
    warnings: Sequence[Warning] = field(default_factory=list)

    @property
    def more(self) -> bool:
        return self.offset + len(self.results.hits) < self.results.total and bool(self.results.hits)


def search_response(turn: Turn, page: ResultPage, session_state: SessionReport | None) -> dict[str, JSON]:
    """Return the answer of a search in the full shape."""
    kind = "hybrid" if page.results.hybrid else "fts"
    records = [hit_item(hit, kind) for hit in page.results.hits]
    warnings = [*page.warnings, *([NO_TERMS] if page.results.no_terms else [])]
    if page.results.words_only:
        warnings.append(warning("words_only", f"Searched by words only: {page.results.words_only}."))
    return {
        "results": records,
        "has_more": page.more,
        "next_offset": page.offset + len(records) if page.more else None,
        "total_estimated": page.results.total,
        "warnings": warnings,
        "applied": {
            "snippet_length": turn.chosen.snippet_length,
            "order_by": turn.chosen.order_by,
            "clamped": turn.clamped("snippet_length", "order_by"),
        },
        "session": session_state.record() if session_state else None,
    }


def get_response(
    turn: Turn, item: Item, read: Read, wished: Wished, warnings: Sequence[Warning] = ()
) -> dict[str, JSON]:
    """Return the answer of a get tool in the full shape."""
    wish = wished.wish
    meta = {**result(item), "loc": dict(read.loc) if read.loc is not None else None}
    if wish.mode == "snippet" and isinstance(read.content, str):
        meta["snippet"] = read.content or None
    return {
        "meta": meta,
        "content": read.content,
        "attachments": None if read.attachments is None else list(read.attachments),
        "tokens_estimated": tokens(read.length, wish.budget.chars_per_token),
        "truncated": read.truncated,
        "next_offset": read.next_offset,
        "warnings": [*turn.warnings(), *warnings],
        "applied": {
            "mode": wish.mode,
            "snippet_length": wish.snippet_length,
            "max_tokens": wish.budget.max_tokens,
            "chars_per_token": wish.budget.chars_per_token,
            "sibling_window": wish.sibling_window,
            "anchor_by": read.anchor_by,
            "clamped": wished.clamped,
        },
    }


# the compact shape


_KEPT = ("media_type", "author", "conversation_id", "message_id", "sender", "character_id")


def compact_item(record: Mapping[str, JSON], text: str, public_url: str) -> dict[str, JSON]:
    """Return a result as the five members of the compact shape."""
    metadata: dict[str, JSON] = {"source": record["source"]}
    metadata |= {name: record[name] for name in ("created_at", "last_modified", "tags")}
    metadata |= {name: record[name] for name in _KEPT if record.get(name) is not None}
    return {
        "id": record["uri"],
        "title": record["title"] or record["uri"],
        "url": _address(record, public_url),
        "text": text,
        "metadata": metadata,
    }


def compact_search(response: Mapping[str, JSON], public_url: str) -> dict[str, JSON]:
    """Return the answer of a search in the compact shape."""
    records = []
    for record in response["results"]:
        item = compact_item(record, record["snippet"] or "", public_url)
        item["metadata"]["score"] = record["score"]
        records.append(item)
    optional = {name: response[name] for name in ("next_offset", "session", "warnings") if response[name]}
    return {"results": records, **optional}


def compact_get(response: Mapping[str, JSON], public_url: str) -> dict[str, JSON]:
    """Return a response whose content is text in the compact shape."""
    item = compact_item(response["meta"], response["content"], public_url)
    item["metadata"] |= {name: response[name] for name in ("tokens_estimated", "truncated", "next_offset")}
    return {**item, "warnings": response["warnings"]} if response["warnings"] else item


def _address(record: Mapping[str, JSON], public_url: str) -> str:
    own = record.get("url") or ""
    if own.lower().startswith(("http://", "https://")):
        return str(own)
    uri = str(record["uri"])
    return f"{public_url.rstrip('/')}/item?uri={quote(uri, safe='')}" if public_url else uri


# schemas


def _nullable(*kinds: str) -> Schema:
    return {"type": [*kinds, "null"]}


RESULT = answer(
    required=(
        "id", "source", "uri", "title", "snippet", "score", "score_type", "created_at", "last_modified", "version",
        "tags", "loc",
    ),
    id={"type": ["string", "integer"]},
    source=STRING,
    uri=STRING,
    title=_nullable("string"),
    snippet=_nullable("string"),
    score=NUMBER,
    score_type={"type": "string", "enum": ["fts", "hybrid", "exact"]},
    created_at=_nullable("string"),
    last_modified=_nullable("string"),
    version=_nullable("integer"),
    tags={"type": ["array", "null"], "items": STRING},
    loc=_nullable("object"),
    media_type=_nullable("string"),
    url=_nullable("string"),
    author=_nullable("string"),
    conversation_id=_nullable("string"),
    message_id=_nullable("string"),
    sender=_nullable("string"),
    character_id=_nullable("integer", "string"),
)  # fmt: skip
WARNING = answer(source=_nullable("string"), code=STRING, reason=STRING)
_SESSION = {**answer(id=STRING, seen=INTEGER, skipped=INTEGER, replayed=BOOLEAN), "type": ["object", "null"]}

SEARCH_RESPONSE = answer(
    results=many(RESULT),
    has_more=BOOLEAN,
    next_offset=maybe(INTEGER),
    total_estimated=INTEGER,
    warnings=many(WARNING),
    applied=answer(snippet_length=INTEGER, order_by=STRING, clamped=STRINGS),
    session=_SESSION,
)
GET_RESPONSE = answer(
    meta=RESULT,
    content={"type": ["string", "object"]},
    attachments={"type": ["array", "null"], "items": OBJECT},
    tokens_estimated=INTEGER,
    truncated=BOOLEAN,
    next_offset=maybe(INTEGER),
    warnings=many(WARNING),
    applied=answer(
        mode=STRING,
        snippet_length=INTEGER,
        max_tokens=INTEGER,
        chars_per_token=NUMBER,
        sibling_window=INTEGER,
        anchor_by={"type": "string", "enum": ["loc", "query", "session", "start"]},
        clamped=STRINGS,
    ),
)
COMPACT_ITEM = answer(
    id=STRING,
    title=STRING,
    url=STRING,
    text=STRING,
    metadata=OBJECT,
)


def either_search() -> Schema:
    """Return a schema that holds for a search response in either shape."""
    properties = {**SEARCH_RESPONSE["properties"], "results": {"type": "array", "items": OBJECT}}
    return {"type": "object", "properties": properties, "required": ["results"]}


def either_get() -> Schema:
    """Return a schema that holds for a get response in either shape."""
    properties = {**GET_RESPONSE["properties"], **COMPACT_ITEM["properties"]}
    return {"type": "object", "properties": properties}


# search tools


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


# get tools


OTHERWISE: Mapping[str, Mode] = {
    "notes": "snippet",
    "media": "snippet",
    "chats": "full",
    "characters": "full",
    "prompts": "full",
}
"""The mode of each source's own get tool for a call without a retrieval object."""


def read_one(call: Call, source: str, id: str | int, args: Mapping[str, JSON], otherwise: Mode) -> dict[str, JSON]:
    """Return an item of a source, read as the arguments say."""
    return read(turn(call, args, args.get("retrieval") or {}), source, id, args, otherwise)


def read(call_turn: Turn, source: str, id: str | int, args: Mapping[str, JSON], otherwise: Mode) -> dict[str, JSON]:
    """Return an item of a source for a call whose knobs are chosen already."""
    call, retrieval = call_turn.call, args.get("retrieval")
    reading = wished(call_turn, retrieval, otherwise)
    knowledge = call.space.part(Knowledge)
    item, message = knowledge.item(source, id)
    if message is not None and reading.wish.loc is None:
        reading = Wished(replace(reading.wish, loc={"message_id": message}), reading.clamped)
    if source != "chats":
        return get_response(call_turn, item, knowledge.reading.read(item, reading.wish), reading)
    if reading.wish.mode == "full":
        size, moved = PAGE_SIZE.read(args.get("page_size", PAGE_SIZE.default))
        reading = Wished(reading.wish, [*reading.clamped, *(["page_size"] if moved else [])])
        return get_response(call_turn, item, knowledge.reading.read_page(item, args.get("page", 1), size), reading)
    return get_response(call_turn, item, knowledge.reading.read(item, reading.wish), reading, paging_ignored(args))


def read_rendered(call_turn: Turn, item: Item, asked: Wished, warnings: Sequence[Warning] = ()) -> dict[str, JSON]:
    """Return all of an item as text, whatever its source: the compact shape has room for nothing else."""
    passage = read_full(rendered(call_turn.call.space.store, item), asked.wish)
    shown = Read(passage.content, "start", None, passage.truncated, passage.next_offset)
    return get_response(call_turn, item, shown, asked, warnings)


def paging_ignored(args: Mapping[str, JSON]) -> list[Warning]:
    """Return a warning where page arguments have no effect."""
    ignored = [name for name in ("page", "page_size") if name in args]
    if not ignored:
        return []
    return [warning("ignored", f"{' and '.join(ignored)} count in mode full of the full shape only.", "chats")]


def get_tool(name: str, title: str, description: str, handler: Handler, id: tuple[str, Schema], **more: Schema) -> Tool:
    """Return a get tool with the arguments that all have."""
    return Tool(
        name=name,
        title=title,
        description=description,
        input=obj(required=(id[0],), **{id[0]: id[1], **more, "retrieval": RETRIEVAL, "session": SESSION}),
        output=GET_RESPONSE,
        annotations=READ_ONLY,
        handler=handler,
        check=check,
        meta=READS,
    )
