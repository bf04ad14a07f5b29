"""Chats: a conversation with a title and tags, and its messages, each an item of its own, in order."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from commonplace.errors import InvalidInput
from commonplace.kinds.knowledge.kinds import checked_id, moment_text, read_moment
from commonplace.kinds.knowledge.shape import Message, Shaped, entries, mapping, needed, optional, string
from commonplace.model import JSON, Draft, Item, fingerprint

FIELDS = ("character_id", "character", "messages")
_ROLES = {
    "user": "user", "human": "user", "you": "user", "me": "user",
    "assistant": "assistant", "ai": "assistant", "bot": "assistant", "model": "assistant",
    "chatgpt": "assistant", "claude": "assistant", "gpt": "assistant",
    "system": "system", "tool": "tool",
}  # fmt: skip
"""Senders whose names tell their role."""


def shape(record: Mapping[str, JSON], character: str | None) -> Shaped:
    """`character` is the key of the character that was named, if there is one."""
    title = needed(record, "title", "conversation")
    messages = messages_of(entries(record, "messages"))
    fields: dict[str, JSON] = {"digest": digest(messages), "messages": len(messages)}
    if character:
        fields["character"] = character
    return Shaped(Draft("conversation", "0", title=title, fields=fields), messages=messages)


def messages_of(given: Sequence[Mapping[str, JSON]], first: str = "") -> list[Message]:
    """Messages as a record gives them. `first` is who spoke first, where others were said before."""
    made: list[Message] = []
    for number, message in enumerate(given):
        place = f"messages.{number}"
        if not isinstance(message.get("content"), str):
            raise InvalidInput(f'{place} needs "content".', argument=place)
        sender = string(message, "sender") or string(message, "role")
        if not sender.strip():
            raise InvalidInput(f'{place} needs "sender".', argument=place)
        first = first or sender
        made.append(
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
    ids = [message.id for message in made if message.id]
    if len(ids) != len(set(ids)):
        twice = next(id for id in ids if ids.count(id) > 1)
        raise InvalidInput(f'Two messages have the id "{twice}". Give each its own.', argument="messages")
    return made


def digest(messages: Sequence[Message]) -> str:
    """Of everything that is said, ids apart: a record may come without them."""
    said = [
        json.dumps(
            [one.sender, one.content, one.role, one.timestamp, one.parent_id, dict(one.metadata)],
            ensure_ascii=False,
            sort_keys=True,
        )
        for one in messages
    ]
    return fingerprint(*said).hex()


def message_draft(message: Message, index: int, conversation: Item) -> Draft:
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


def record(item: Item, messages: Sequence[Message], character: JSON) -> dict[str, JSON]:
    return {"character_id": character, "messages": [_message_record(message) for message in messages]}


def _message_record(message: Message) -> dict[str, JSON]:
    made: dict[str, JSON] = {"id": message.id, "sender": message.sender, "content": message.content}
    made |= {"role": message.role, "timestamp": message.timestamp}
    if message.parent_id:
        made["parent_id"] = message.parent_id
    if message.metadata:
        made["metadata"] = dict(message.metadata)
    return made


def _role(sender: str, first: str) -> str:
    known = _ROLES.get(sender.strip().casefold())
    if known:
        return known
    return "user" if sender == first else "assistant"


def _time(message: Mapping[str, JSON], place: str) -> str | None:
    given = message.get("timestamp")
    return None if given is None else moment_text(read_moment(given, f"{place}.timestamp"))
