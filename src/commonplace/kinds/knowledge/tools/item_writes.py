"""Shared by the write tools: versions, repeated calls, and the answer to a write."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping

from commonplace.errors import AlreadyExists, NotFound, TooLarge
from commonplace.kinds.knowledge.drawer import KeptAnswer, KeptAnswers
from commonplace.kinds.knowledge.kinds import KIND_OF, shown_id
from commonplace.kinds.knowledge.knowledge import Knowledge
from commonplace.kinds.knowledge.records import RecordOutcome, create_record, delete_item, put_record, record_of
from commonplace.kinds.knowledge.tools.item_answers import RESULT, result
from commonplace.kinds.knowledge.tools.options import check
from commonplace.model import JSON, Item, fingerprint
from commonplace.store.items import Items
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
"""A function that puts the arguments of a call into a record."""


def create(call: Call, tool: str, source: str, args: Mapping[str, JSON], merge: Merge) -> dict[str, JSON]:
    """Create an item from the arguments, once for an idempotency key, and return the answer."""
    return once(call, tool, args, lambda: _create(call, source, args, merge))


def _create(call: Call, source: str, args: Mapping[str, JSON], merge: Merge) -> dict[str, JSON]:
    check_metadata(args)
    record = merge({"kind": KIND_OF[source]}, args)
    outcome = create_record(call.space.store, record)
    return write_answer(call, outcome, changed=True)


def update(call: Call, source: str, id: str | int, args: Mapping[str, JSON], merge: Merge) -> dict[str, JSON]:
    """Replace what the arguments give of an item and return the answer. Raise NotFound or AlreadyExists."""
    check_metadata(args)
    store = call.space.store
    with store.transaction():
        item = item_at_version(call, source, id, args.get("expected_version"))
        record = record_of(store, item)
        del record["updated_at"]
        outcome = put_record(store, merge(record, args), target=item)
        return write_answer(call, outcome, changed=outcome.status == "updated")


def delete(call: Call, source: str, id: str | int, args: Mapping[str, JSON]) -> dict[str, JSON]:
    """Delete an item and return the answer. Raise NotFound or AlreadyExists."""
    store = call.space.store
    with store.transaction():
        item = item_at_version(call, source, id, args.get("expected_version"))
        delete_item(store, item)
    return {"deleted": True, "uri": item.uri, "version": item.version + 1}


def item_at_version(call: Call, source: str, id: str | int, expected: int | None) -> Item:
    """Return the item, at the version that is expected. Raise NotFound, or AlreadyExists for another version."""
    item, message = call.space.part(Knowledge).item(source, id)
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


def write_answer(call: Call, outcome: RecordOutcome, *, changed: bool) -> dict[str, JSON]:
    """Return the answer to a write."""
    item = call.space.store.drawer(Items).get([outcome.item_id])[0]
    return {"meta": result(item), "changed": changed}


def once(call: Call, tool: str, args: Mapping[str, JSON], work: Callable[[], dict[str, JSON]]) -> dict[str, JSON]:
    """Return the result of `work`, or the stored answer of the same call with the same key within a day.

    Raise AlreadyExists where the key was used with other arguments.
    """
    key = args.get("idempotency_key")
    store = call.space.store
    with store.transaction():
        if key is None:
            return work()
        arguments = fingerprint(json.dumps(args, sort_keys=True, ensure_ascii=False))
        now = time.time_ns() // 1000
        since = now - KEPT_S * 1_000_000
        stored = store.drawer(KeptAnswers).find(call.owner, tool, key, since)
        if stored is None:
            result = work()
            store.drawer(KeptAnswers).keep(call.owner, tool, key, KeptAnswer(arguments, result), now=now, since=since)
            return result
        if stored.arguments != arguments:
            raise AlreadyExists(
                f'The idempotency key "{key}" was used with other arguments. Use another one for another call.',
                code="conflict",
            )
        answered: dict[str, JSON] = stored.answer
        return answered


def check_metadata(args: Mapping[str, JSON]) -> None:
    """Raise TooLarge where metadata has more than 64 KiB."""
    metadata = args.get("metadata")
    if metadata and len(json.dumps(metadata, ensure_ascii=False).encode("utf-8", "replace")) > MOST_METADATA:
        raise TooLarge("metadata has more than 64 KiB. Keep what is large in the text.", argument="metadata")


# declarations


def create_tool(
    name: str, title: str, description: str, handler: Handler, required: tuple[str, ...], /, **fields: Schema
) -> Tool:
    input = obj(required=required, **{**fields, "idempotency_key": KEY})
    return Tool(name, title, description, input, _CHANGED, ADDS, handler, check=check)


def update_tool(
    name: str, title: str, description: str, handler: Handler, id: tuple[str, Schema], /, **fields: Schema
) -> Tool:
    input = obj(required=(id[0],), **{id[0]: id[1], **fields, "expected_version": EXPECTED})
    return Tool(name, title, description, input, _CHANGED, _REPEATABLE, handler, check=check)


def delete_tool(name: str, title: str, description: str, handler: Handler, id: tuple[str, Schema]) -> Tool:
    input = obj(required=(id[0],), **{id[0]: id[1], "expected_version": EXPECTED})
    return Tool(name, title, description, input, _DELETED, _REPEATABLE, handler, check=check)
