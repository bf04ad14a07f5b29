"""Conversations: what each program's export calls a message, said in the words of one record."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from commonplace.ingest.imports.document_files import ID, LONGEST_TITLE
from commonplace.ingest.imports.import_file import (
    ImportFile,
    Piece,
    Record,
    Remarks,
    Unknown,
    Unreadable,
    first_of,
    moment,
    text_or_none,
)
from commonplace.ingest.imports.import_file import without_empty as filled
from commonplace.ingest.imports.json_stream import JsonShape, items, lines, shape_of, whole

UNTITLED = 60
_SENDERS = {"user": "User", "human": "User", "assistant": "Assistant", "system": "System", "tool": "Tool"}
_ROLES = {"human": "user", "ai": "assistant", "bot": "assistant", "model": "assistant"}
_PAIR_NAMES = ("char_name", "character", "name")
_GREETING_MARK = "<|BEGIN-VISIBLE-CHAT|>"
_CHATGPT_SENDERS = {"user": "User", "assistant": "Assistant"}
_UNSAID = frozenset({"thoughts", "reasoning_recap", "user_editable_context", "model_editable_context"})
"""Content that was never said to anybody: reasoning, and the settings every conversation carries."""


def format_of(shape: JsonShape) -> str:
    """Return whose export a JSON text is, by the names in it, or ""."""
    names = shape.names
    if "mapping" in names:
        return "chatgpt"
    if "chat_messages" in names:
        return "claude"
    if shape.type == "object" and ("mes" in names or {"user_name", "character_name"} <= names):
        return "sillytavern"
    if shape.type == "object" and ("history" in names or names & {"internal", "visible"}):
        return "pairs"
    return "messages" if "messages" in names or {"role", "content"} <= names else ""


def read_claude(source: ImportFile, remarks: Remarks) -> Iterator[Piece]:
    """Yield the conversations of an export of Claude: a list of them, or one."""
    for number, entry in enumerate(conversations_in(source, remarks, "chat_messages"), start=1):
        messages = entry.get("chat_messages")
        if not isinstance(messages, list):
            raise Unreadable(f'conversation {number} has no "chat_messages"')
        records = [_claude_message(one) for one in messages if isinstance(one, Mapping)]
        about = {"id": entry.get("uuid"), "title": entry.get("name"), "created_at": entry.get("created_at")}
        about |= {"updated_at": entry.get("updated_at")}
        yield from conversation(about, records, remarks, f"conversation {number}", source.stem)


def _claude_message(entry: Mapping[str, Any]) -> Record:
    blocks = entry.get("content")
    texts = [one.get("text") for one in blocks if _is_text(one)] if isinstance(blocks, list) else []
    texts = [text for text in texts if isinstance(text, str) and text.strip()]
    if not texts:
        texts = [text] if isinstance(text := entry.get("text"), str) and text.strip() else []
    attached = [one for one in _list(entry.get("attachments")) if isinstance(one, Mapping)]
    texts += [text for one in attached if isinstance(text := one.get("extracted_content"), str) and text.strip()]
    if not texts and (attached or _list(entry.get("files"))):
        texts = ["[file]"]
    role = "user" if entry.get("sender") == "human" else "assistant"
    return spoken_message(entry.get("uuid"), _SENDERS[role], role, "\n\n".join(texts), entry.get("created_at"))


def read_sillytavern(source: ImportFile, remarks: Remarks) -> Iterator[Piece]:
    """Yield a chat of SillyTavern: a header, then a message a line. Of several swipes only the chosen one is read."""
    header: Mapping[str, Any] = {}
    messages: list[Record] = []
    character = ""
    for number, line in lines(source, remarks):
        if not isinstance(line, Mapping):
            raise Unreadable("this line is no message", number)
        text = line.get("mes")
        if text is None and not messages and not header:
            header = line
            continue
        if not isinstance(text, str):
            raise Unreadable('this line has no "mes"', number)
        role = "system" if line.get("is_system") is True else "user" if line.get("is_user") is True else "assistant"
        sender = text_or_none(line.get("name")) or _SENDERS[role]
        character = character or (sender if role == "assistant" else "")
        messages.append(spoken_message(None, sender, role, text, line.get("send_date")))
    character_name = text_or_none(header.get("character_name"))
    name = character_name if character_name and character_name != "unused" else character
    about = {"title": source.stem, "created_at": header.get("create_date"), "character": name}
    yield from conversation(about, messages, remarks, "the chat", source.stem)


def read_pairs(source: ImportFile, remarks: Remarks) -> Iterator[Piece]:
    """Yield a conversation of `[user, reply]` pairs with the name of whoever replies."""
    value = whole(source, remarks)
    if not isinstance(value, Mapping):
        raise Unknown
    history = value.get("history", value)
    if isinstance(history, Mapping):
        history = first_of(history, ("internal", "visible"))
    if not isinstance(history, list):
        raise Unreadable('its "history" is no list of pairs')
    name = text_or_none(first_of(value, _PAIR_NAMES)) or ""
    user = text_or_none(first_of(value, ("user_name", "your_name"))) or "User"
    messages = []
    for number, pair in enumerate(history, start=1):
        if not _is_pair(pair):
            remarks.warn(f"pair {number} is not [user, reply] and was left out")
            continue
        for text, sender, role in ((pair[0], "User", "user"), (pair[1], name or "Assistant", "assistant")):
            if text and text != _GREETING_MARK:
                messages.append(spoken_message(None, sender, role, _named(text, user, name or "Assistant"), None))
    about = {"title": value.get("title"), "character": name, "created_at": first_of(value, ("created_at", "date"))}
    yield from conversation(about, messages, remarks, "the history", source.stem)


def _is_pair(pair: Any) -> bool:
    return isinstance(pair, list) and len(pair) == 2 and all(side is None or isinstance(side, str) for side in pair)


def _named(text: str, user: str, character: str) -> str:
    """Return the text with names where its author left places for them."""
    text = re.sub(r"\{\{user\}\}|<USER>", lambda _: user, text, flags=re.IGNORECASE)
    return re.sub(r"\{\{char\}\}|<CHAR>|<BOT>", lambda _: character, text, flags=re.IGNORECASE)


def read_messages(source: ImportFile, remarks: Remarks) -> Iterator[Piece]:
    """Yield `{"title", "messages": [{"role", "content"}]}`, a list or lines of such, or the bare list of messages."""
    shape = shape_of(source)
    if shape.type == "array" and "messages" not in shape.names:
        entries: Iterable[Any] = [{"messages": list(items(source))}]
    elif source.ending == ".jsonl":
        entries = (value for _, value in lines(source, remarks))
    else:
        entries = conversations_in(source, remarks, "messages")
    for number, entry in enumerate(entries, start=1):
        place = f"conversation {number}"
        messages = entry.get("messages") if isinstance(entry, Mapping) else None
        if not isinstance(messages, list):
            raise Unreadable(f'{place} has no "messages"')
        records = [_listed_message(one, f"message {at} of {place}") for at, one in enumerate(messages, start=1)]
        about = {"id": first_of(entry, ("id", "conversation_id", "uuid")), "title": first_of(entry, ("title", "name"))}
        about |= {name: entry.get(name) for name in ("created_at", "updated_at", "character")}
        yield from conversation(about, records, remarks, place, source.stem)


def _listed_message(entry: Any, place: str) -> Record:
    if not isinstance(entry, Mapping):
        raise Unreadable(f"{place} is no object")
    role = text_or_none(first_of(entry, ("role", "sender", "from")))
    if role is None:
        raise Unreadable(f'{place} has no "role"')
    sender = text_or_none(first_of(entry, ("name", "sender"))) or _SENDERS.get(role.lower(), role)
    content = first_of(entry, ("content", "text", "value"))
    when = first_of(entry, ("timestamp", "created_at", "create_time", "date"))
    role = _ROLES.get(role.lower(), role.lower())
    return spoken_message(entry.get("id"), _SENDERS.get(sender.lower(), sender), role, _parts(content), when)


def _parts(content: Any) -> str:
    """Return the words of a message: a text, or parts of which some are none."""
    if isinstance(content, str):
        return content
    texts = []
    for one in _list(content):
        if isinstance(one, str):
            texts.append(one)
        elif isinstance(one, Mapping):
            text = one.get("text")
            kind = str(one.get("type", ""))
            texts.append(text if isinstance(text, str) else "[image]" if "image" in kind else "[file]")
    return "\n\n".join(text for text in texts if text.strip())


def conversation(
    about: Mapping[str, Any], records: Sequence[Record], remarks: Remarks, place: str, stem: str
) -> Iterator[Piece]:
    """Yield the record of a conversation, unless nothing is said in it."""
    messages = [message for message in records if message["content"].strip()]
    name = text_or_none(about.get("title")) or ""
    title = " ".join(name.split())[:LONGEST_TITLE]
    if not messages:
        remarks.skip(f"{place}{f' ({title})' if title else ''} holds no message and was left out")
        return
    record: Record = {"kind": "conversation", "id": _id(about.get("id")), "title": title or _untitled(messages, stem)}
    times = {name: moment(about.get(name)) for name in ("created_at", "updated_at")}
    spoken = [message["timestamp"] for message in messages if "timestamp" in message]
    times["created_at"] = times["created_at"] or min(spoken, key=_digits, default=None)
    times["updated_at"] = times["updated_at"] or max(spoken, key=_digits, default=None)
    metadata = dict(about.get("metadata") or {})
    if character := text_or_none(about.get("character")):
        metadata["character"] = character
    record |= {**times, "character": character, "metadata": metadata, "messages": _distinct(messages)}
    yield Piece(filled(record))


def _digits(when: str) -> str:
    """Return a text that sorts as the moments do, however many digits their seconds have."""
    return when.removesuffix("Z")


def _untitled(messages: Sequence[Record], stem: str) -> str:
    first = next((one for one in messages if one.get("role") == "user"), messages[0])
    return " ".join(first["content"].split())[:UNTITLED].strip() or stem


def _distinct(messages: Sequence[Record]) -> list[Record]:
    """Return messages with each id once: a message that repeats one goes without."""
    ids: set[str] = set()
    distinct = []
    for message in messages:
        if message.get("id") in ids:
            message = {name: value for name, value in message.items() if name != "id"}
        ids.add(message.get("id", ""))
        distinct.append(message)
    return distinct


def spoken_message(id: Any, sender: str, role: str, content: str, when: Any) -> Record:
    record = {"id": _id(id), "sender": sender, "content": content, "role": role, "timestamp": moment(when)}
    return {name: value for name, value in record.items() if value is not None}


def _id(value: Any) -> str | None:
    """Return an id that can be kept, or None: one that cannot is nothing anybody would look for."""
    return value if isinstance(value, str) and ID.fullmatch(value) else None


def _is_text(block: Any) -> bool:
    return isinstance(block, Mapping) and block.get("type", "text") == "text"


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def conversations_in(source: ImportFile, remarks: Remarks, name: str) -> Iterator[Mapping[str, Any]]:
    """Yield the conversations of a list that may be larger than memory, or the one that stands alone."""
    shape = shape_of(source)
    if shape.type == "object" and "conversations" in shape.names and name not in shape.names:
        entries: Iterator[Any] = items(source, "conversations.item")
    else:
        entries = items(source) if shape.type == "array" else iter([whole(source, remarks)])
    for number, entry in enumerate(entries, start=1):
        if not isinstance(entry, Mapping):
            raise Unreadable(f"conversation {number} is no object")
        yield entry


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
    sender = _CHATGPT_SENDERS.get(role) or text_or_none(author.get("name")) or role.capitalize()
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
