"""What the write tools share: versions, repeated calls, and what a write answers."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping

from commonplace.errors import AlreadyExists, NotFound, TooLarge
from commonplace.kinds.knowledge.kinds import KIND_OF, shown_id
from commonplace.kinds.knowledge.records import Outcome, create_record, delete_item, put_record, record_of
from commonplace.kinds.knowledge.tools.options import check
from commonplace.kinds.knowledge.tools.results import RESULT, result
from commonplace.model import JSON, Item, fingerprint
from commonplace.store.rows import KeptAnswer
from commonplace.tools.schema import BOOLEAN, INTEGER, STRING, Schema, answer, obj, text
from commonplace.tools.tool import ADDS, CHANGES, Call, Handler, Tool

KEPT_S = 24 * 3600
MOST_METADATA = 64 * 1024
_LABELS = {"media": "Media item", "conversation": "Conversation"}
_REPEATABLE = {**CHANGES, "idempotentHint": True}

TAGS = {
    "type": "array",
    "items": {"type": "string", "maxLength": 100},
    "maxItems": 64,
    "description": "Words to find it by; all of them.",
}
METADATA = {"type": "object", "description": "Any JSON object of yours, at most 64 KiB."}
TITLE = text("Its title.", minLength=1, maxLength=512)
CREATED_AT = text("When it was made: 2024-05-01 or 2024-05-01T09:30:00Z; now if left out.")
EXPECTED = {"type": "integer", "minimum": 1, "description": "The version you read; refused if it has changed since."}
KEY = text("A key of yours: the same call again within a day returns the first answer.", minLength=1, maxLength=256)

_CHANGED = answer(meta=RESULT, changed=BOOLEAN)
_DELETED = answer(deleted=BOOLEAN, uri=STRING, version=INTEGER)
Merge = Callable[[dict[str, JSON], Mapping[str, JSON]], dict[str, JSON]]
"""Puts what a call gives into a record."""


def create(call: Call, tool: str, source: str, given: Mapping[str, JSON], merge: Merge) -> dict[str, JSON]:
    """A new item of what was given."""
    return once(call, tool, given, lambda: _create(call, source, given, merge))


def _create(call: Call, source: str, given: Mapping[str, JSON], merge: Merge) -> dict[str, JSON]:
    check_metadata(given)
    record = merge({"kind": KIND_OF[source]}, given)
    made = create_record(call.library.store, record)
    return written(call, made, changed=True)


def update(call: Call, source: str, id: str | int, given: Mapping[str, JSON], merge: Merge) -> dict[str, JSON]:
    """The same item with what was given in the place of what it had."""
    check_metadata(given)
    store = call.library.store
    with store.transaction():
        item = found(call, source, id, given.get("expected_version"))
        record = record_of(store, item)
        del record["updated_at"]
        made = put_record(store, merge(record, given), target=item)
        return written(call, made, changed=made.status == "updated")


def delete(call: Call, source: str, id: str | int, given: Mapping[str, JSON]) -> dict[str, JSON]:
    store = call.library.store
    with store.transaction():
        item = found(call, source, id, given.get("expected_version"))
        delete_item(store, item)
    return {"deleted": True, "uri": item.uri, "version": item.version + 1}


def found(call: Call, source: str, id: str | int, expected: int | None) -> Item:
    """The item, at the version that is expected of it."""
    item, message = call.library.knowledge.item(source, id)
    if message is not None:
        raise NotFound(f'There is no conversation "{id}". Find one with chats.search.')
    if expected is not None and item.version != expected:
        label = _LABELS.get(item.kind, item.kind.capitalize())
        raise AlreadyExists(
            f'{label} "{shown_id(item.kind, item.key)}" is at version {item.version}, not {expected}. '
            "Read it again and repeat the change.",
            code="conflict",
        )
    return item


def written(call: Call, made: Outcome, *, changed: bool) -> dict[str, JSON]:
    item = call.library.store.items([made.item_id])[0]
    return {"meta": result(item), "changed": changed}


def once(call: Call, tool: str, given: Mapping[str, JSON], work: Callable[[], dict[str, JSON]]) -> dict[str, JSON]:
    """Do it, unless the same call with the same key was answered within a day: then that is the answer."""
    key = given.get("idempotency_key")
    store = call.library.store
    with store.transaction():
        if key is None:
            return work()
        arguments = fingerprint(json.dumps(given, sort_keys=True, ensure_ascii=False))
        now = time.time_ns() // 1000
        since = now - KEPT_S * 1_000_000
        kept = store.kept_answer(call.owner, tool, key, since)
        if kept is None:
            made = work()
            store.keep_answer(call.owner, tool, key, KeptAnswer(arguments, made), now=now, since=since)
            return made
        if kept.arguments != arguments:
            raise AlreadyExists(
                f'The idempotency key "{key}" was used with other arguments. Use another one for another call.',
                code="conflict",
            )
        answered: dict[str, JSON] = kept.answer
        return answered


def check_metadata(given: Mapping[str, JSON]) -> None:
    metadata = given.get("metadata")
    if metadata and len(json.dumps(metadata, ensure_ascii=False).encode("utf-8", "replace")) > MOST_METADATA:
        raise TooLarge("metadata has more than 64 KiB. Keep what is large in the text.", argument="metadata")


# declarations


def create_tool(
    name: str, title: str, description: str, handler: Handler, required: tuple[str, ...], /, **fields: Schema
) -> Tool:
    taken = obj(required=required, **{**fields, "idempotency_key": KEY})
    return Tool(name, title, description, taken, _CHANGED, ADDS, handler, check=check)


def update_tool(
    name: str, title: str, description: str, handler: Handler, id: tuple[str, Schema], /, **fields: Schema
) -> Tool:
    taken = obj(required=(id[0],), **{id[0]: id[1], **fields, "expected_version": EXPECTED})
    return Tool(name, title, description, taken, _CHANGED, _REPEATABLE, handler, check=check)


def delete_tool(name: str, title: str, description: str, handler: Handler, id: tuple[str, Schema]) -> Tool:
    taken = obj(required=(id[0],), **{id[0]: id[1], "expected_version": EXPECTED})
    return Tool(name, title, description, taken, _DELETED, _REPEATABLE, handler, check=check)
