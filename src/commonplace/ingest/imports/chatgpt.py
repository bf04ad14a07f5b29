"""Conversations of ChatGPT: a tree of messages, of which the branch that was last shown is what was said."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from commonplace.ingest.imports.chats import conversation, conversations_in, spoken_message
from commonplace.ingest.imports.source import ImportFile, Piece, Record, Remarks, Unreadable, text_or_none

_SENDERS = {"user": "User", "assistant": "Assistant"}
_UNSAID = frozenset({"thoughts", "reasoning_recap", "user_editable_context", "model_editable_context"})
"""Content that was never said to anybody: reasoning, and the settings every conversation carries."""


def read_chatgpt(source: ImportFile, remarks: Remarks) -> Iterator[Piece]:
    """Yield the conversations of `conversations.json`, one in memory at a time."""
    for number, entry in enumerate(conversations_in(source, remarks, "mapping"), start=1):
        place = f"conversation {number}"
        mapping = entry.get("mapping")
        if not isinstance(mapping, Mapping):
            raise Unreadable(f'{place} has no "mapping" of messages')
        nodes = _branch(mapping, entry.get("current_node"), remarks, place)
        messages = [message for node in nodes if (message := _message(node.get("message")))]
        about = {"id": entry.get("conversation_id") or entry.get("id"), "title": entry.get("title")}
        about |= {"created_at": entry.get("create_time"), "updated_at": entry.get("update_time")}
        if model := text_or_none(entry.get("default_model_slug")):
            about["metadata"] = {"model": model}
        yield from conversation(about, messages, remarks, place, source.stem)


def _branch(mapping: Mapping[str, Any], current: Any, remarks: Remarks, place: str) -> list[Mapping[str, Any]]:
    """Return the nodes from the root to the current one. A node met twice ends it: parents in a circle have no root."""
    node = current if isinstance(current, str) and current in mapping else _latest(mapping)
    visited: set[str] = set()
    branch: list[Mapping[str, Any]] = []
    while isinstance(node, str) and isinstance(entry := mapping.get(node), Mapping):
        if node in visited:
            remarks.warn(f"the parents of the messages of {place} run in a circle; each was taken once")
            break
        visited.add(node)
        branch.append(entry)
        node = entry.get("parent")
    return branch[::-1]


def _latest(mapping: Mapping[str, Any]) -> str | None:
    """Return the newest node without children, where an export does not say which was shown last."""
    nodes = {name: node for name, node in mapping.items() if isinstance(node, Mapping)}
    leaves = [name for name, node in nodes.items() if not node.get("children")] or list(nodes)
    return max(leaves, key=lambda name: _time(nodes[name]), default=None)


def _time(node: Mapping[str, Any]) -> float:
    message = node.get("message")
    when = message.get("create_time") if isinstance(message, Mapping) else None
    return float(when) if isinstance(when, int | float) else 0.0


def _message(value: Any) -> Record | None:
    """Return a message as it was shown; None for one that was not."""
    if not isinstance(value, Mapping):
        return None
    author, metadata = _object(value.get("author")), _object(value.get("metadata"))
    role = text_or_none(author.get("role")) or "assistant"
    content = _object(value.get("content"))
    hidden = metadata.get("is_visually_hidden_from_conversation") is True or content.get("content_type") in _UNSAID
    if role == "system" or hidden:
        return None
    text = _text(content)
    if not text.strip() and metadata.get("attachments"):
        text = "[file]"
    sender = _SENDERS.get(role) or text_or_none(author.get("name")) or role.capitalize()
    return spoken_message(value.get("id"), sender, role, text, value.get("create_time")) if text.strip() else None


def _text(content: Mapping[str, Any]) -> str:
    parts = content.get("parts")
    if not isinstance(parts, list):
        text = content.get("text") or content.get("result")
        return text if isinstance(text, str) else ""
    return "\n".join(filter(None, map(_part, parts)))


def _part(part: Any) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping):
        return ""
    text = part.get("text")
    if isinstance(text, str):
        return text
    return "[image]" if "image" in str(part.get("content_type", "")) else "[file]"


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
