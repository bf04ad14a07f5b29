"""Conversations: a title, tags, and messages, each an item of its own: read in order, replaced, appended to."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from commonplace.errors import AlreadyExists, InvalidInput
from commonplace.ingest.prepare import prepare
from commonplace.kinds.knowledge.kinds import (
    Message,
    Shaped,
    checked_id,
    entries,
    mapping,
    moment_text,
    needed,
    optional,
    read_moment,
    string,
)
from commonplace.model import JSON, Draft, Item, fingerprint
from commonplace.store.base import Store
from commonplace.store.dialect import NO_LIMIT
from commonplace.store.items import Items
from commonplace.store.messages import Messages

# records


CONVERSATION_FIELDS = ("character_id", "character", "messages")
_ROLES = {
    "user": "user", "human": "user", "you": "user", "me": "user",
    "assistant": "assistant", "ai": "assistant", "bot": "assistant", "model": "assistant",
    "chatgpt": "assistant", "claude": "assistant", "gpt": "assistant",
    "system": "system", "tool": "tool",
}  # fmt: skip
"""Roles of senders, by names that give them away."""


def shape_conversation(record: Mapping[str, JSON], character: str | None) -> Shaped:
    """Return the draft and the messages that a conversation's record describes.

    `character` is the key of its character.
    """
    title = needed(record, "title", "conversation")
    messages = messages_from(entries(record, "messages"))
    fields: dict[str, JSON] = {"digest": digest(messages), "messages": len(messages)}
    if character:
        fields["character"] = character
    return Shaped(Draft("conversation", "0", title=title, fields=fields), messages=messages)


def messages_from(records: Sequence[Mapping[str, JSON]], first: str = "") -> list[Message]:
    """Return the messages that records describe. Raise InvalidInput.

    `first` is the sender of the conversation's first message, where these are added to it.
    """
    messages: list[Message] = []
    for number, message in enumerate(records):
        place = f"messages.{number}"
        if not isinstance(message.get("content"), str):
            raise InvalidInput(f'{place} needs "content".', argument=place)
        sender = string(message, "sender") or string(message, "role")
        if not sender.strip():
            raise InvalidInput(f'{place} needs "sender".', argument=place)
        first = first or sender
        messages.append(
            Message(
                sender,
                string(message, "content"),
                optional(message, "role") or _role(sender, first),
                checked_id(message["id"], "message") if message.get("id") is not None else "",
                _time(message, place),
                optional(message, "parent_id"),
                mapping(message, "metadata"),
            )
        )
    ids = [message.id for message in messages if message.id]
    if len(ids) != len(set(ids)):
        twice = next(id for id in ids if ids.count(id) > 1)
        raise InvalidInput(f'Two messages have the id "{twice}". Give each its own.', argument="messages")
    return messages


def digest(messages: Sequence[Message]) -> str:
    """Return a digest of everything that is said, ids left out: a record may come without them."""
    parts = [
        json.dumps(
            [one.sender, one.content, one.role, one.timestamp, one.parent_id, dict(one.metadata)],
            ensure_ascii=False,
            sort_keys=True,
        )
        for one in messages
    ]
    return fingerprint(*parts).hex()


def message_draft(message: Message, index: int, conversation: Item) -> Draft:
    """Return the draft of a message at this index of a conversation."""
    fields: dict[str, JSON] = {"index": index, "sender": message.sender, "role": message.role}
    if message.timestamp:
        fields["timestamp"] = message.timestamp
    if message.parent_id:
        fields["parent_id"] = message.parent_id
    moment = read_moment(message.timestamp, "timestamp") if message.timestamp else conversation.created_at
    return Draft(
        "message",
        message.id,
        parent=conversation.key,
        body=message.content,
        fields=fields,
        metadata=message.metadata,
        created_at=moment,
        updated_at=moment,
    )


def message_of(item: Item) -> Message:
    """Return the message that an item is."""
    fields = item.fields
    return Message(
        fields.get("sender", ""),
        item.body or "",
        fields.get("role", ""),
        item.key,
        fields.get("timestamp"),
        fields.get("parent_id"),
        item.metadata,
    )


def conversation_record(item: Item, messages: Sequence[Message], character: JSON) -> dict[str, JSON]:
    """Return the fields of a conversation's record."""
    return {"character_id": character, "messages": [_message_record(message) for message in messages]}


def _message_record(message: Message) -> dict[str, JSON]:
    fields: dict[str, JSON] = {"id": message.id, "sender": message.sender, "content": message.content}
    fields |= {"role": message.role, "timestamp": message.timestamp}
    if message.parent_id:
        fields["parent_id"] = message.parent_id
    if message.metadata:
        fields["metadata"] = dict(message.metadata)
    return fields


def _role(sender: str, first: str) -> str:
    """Return the role of a sender: by its name, else `user` for who speaks first and `assistant` for others."""
    known = _ROLES.get(sender.strip().casefold())
    if known:
        return known
    return "user" if sender == first else "assistant"


def _time(message: Mapping[str, JSON], place: str) -> str | None:
    timestamp = message.get("timestamp")
    return None if timestamp is None else moment_text(read_moment(timestamp, f"{place}.timestamp"))


# messages in the store


def put_messages(store: Store, conversation: Item, messages: Sequence[Message]) -> None:
    """Replace a conversation's messages. Those without an id keep the one at their index, or get a new one."""
    old = store.drawer(Items).get(store.drawer(Messages).of(conversation.key))
    kept_ids = {message.id for message in messages if message.id}
    drafts = []
    for index, message in enumerate(messages):
        if not message.id:
            old_key = old[index].key if index < len(old) and old[index].key not in kept_ids else ""
            message = replace(message, id=old_key or str(uuid4()))
            kept_ids.add(message.id)
        drafts.append(prepare(message_draft(message, index, conversation)))
    store.drawer(Items).delete([item.id for item in old if item.key not in kept_ids])
    store.drawer(Items).put(drafts)


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
        fields = {**conversation.fields, "digest": digest(everything), "messages": len(everything)}
        draft = replace(again(conversation), fields=fields, updated_at=later(conversation))
        item = store.drawer(Items).put([prepare(draft)])[0]
        store.drawer(Items).put(
            [prepare(message_draft(one, len(old) + place, item)) for place, one in enumerate(added)]
        )
        return item


def messages_of(store: Store, conversation: Item, limit: int = NO_LIMIT) -> list[Message]:
    """Return the messages of a conversation in order, with their text; at most `limit` of them."""
    ids = store.drawer(Messages).of(conversation.key, limit=limit)
    return [message_of(item) for item in store.drawer(Items).get(ids, body=True)]


def leave_character(store: Store, conversation: int) -> None:
    """Store a conversation, given by its item id, without its character."""
    for item in store.drawer(Items).get([conversation]):
        fields = {name: value for name, value in item.fields.items() if name != "character"}
        store.drawer(Items).put([prepare(replace(again(item), fields=fields, updated_at=item.updated_at))])


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
