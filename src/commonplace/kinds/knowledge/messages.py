"""The messages of conversations: read in order, replaced, appended to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from commonplace.errors import AlreadyExists
from commonplace.ingest.prepare import prepare
from commonplace.kinds.knowledge import chats
from commonplace.kinds.knowledge.shape import Message
from commonplace.model import Draft, Item
from commonplace.store.base import Store


def put_messages(store: Store, conversation: Item, messages: Sequence[Message]) -> None:
    """Replace a conversation's messages. Those without an id keep the one at their index, or get a new one."""
    old = store.items(store.message_ids(conversation.key))
    kept_ids = {message.id for message in messages if message.id}
    drafts = []
    for index, message in enumerate(messages):
        if not message.id:
            old_key = old[index].key if index < len(old) and old[index].key not in kept_ids else ""
            message = replace(message, id=old_key or str(uuid4()))
            kept_ids.add(message.id)
        drafts.append(prepare(chats.message_draft(message, index, conversation)))
    store.delete([item.id for item in old if item.key not in kept_ids])
    store.put(drafts)


def append_messages(store: Store, conversation: Item, messages: Sequence[Message]) -> Item:
    """Add messages at the end and return the conversation as it is then. Raise AlreadyExists."""
    with store.transaction():
        old = messages_of(store, conversation)
        taken_ids = {message.id for message in old}
        for message in messages:
            if message.id in taken_ids:
                raise AlreadyExists(
                    f'The conversation has a message "{message.id}" already. Leave the id out.', code="conflict"
                )
        added = [message if message.id else replace(message, id=str(uuid4())) for message in messages]
        everything = [*old, *added]
        fields = {**conversation.fields, "digest": chats.digest(everything), "messages": len(everything)}
        draft = replace(again(conversation), fields=fields, updated_at=later(conversation))
        item = store.put([prepare(draft)])[0]
        store.put([prepare(chats.message_draft(one, len(old) + place, item)) for place, one in enumerate(added)])
        return item


def messages_of(store: Store, conversation: Item, limit: int = -1) -> list[Message]:
    """Return the messages of a conversation in order, with their text; `limit` of them, -1 for all."""
    ids = store.message_ids(conversation.key, limit=limit)
    return [chats.message_of(item) for item in store.items(ids, body=True)]


def later(item: Item) -> datetime:
    """Return now, or just after the item's last change where that is in the future."""
    return max(datetime.now(UTC), item.updated_at + timedelta(microseconds=1))


def again(item: Item) -> Draft:
    """Return the draft of an item as it is, without a time of change."""
    return Draft(
        item.kind,
        item.key,
        item.parent,
        item.title,
        item.body or "",
        item.format,
        item.fields,
        item.metadata,
        item.tags,
        item.created_at,
    )
