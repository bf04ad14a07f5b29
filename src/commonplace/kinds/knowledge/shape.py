"""Readers of a record's fields, and the draft a kind makes of a record. Shared by the five kinds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from commonplace.errors import InvalidInput
from commonplace.kinds.knowledge.drawer import Cue
from commonplace.model import JSON, Draft, Span
from commonplace.store.rows import Attachment
from commonplace.text.text_lines import line_of, line_starts


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation. `id` is empty where it has yet to be given one."""

    sender: str
    content: str
    role: str
    id: str = ""
    timestamp: str | None = None
    parent_id: str | None = None
    metadata: Mapping[str, JSON] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Shaped:
    """A draft without its key, and everything else that a store keeps of a record."""

    draft: Draft
    cues: Sequence[Cue] = ()
    messages: Sequence[Message] | None = None
    avatar: Attachment | None = None
    warnings: tuple[str, ...] = ()


def string(record: Mapping[str, JSON], name: str, default: str = "") -> str:
    """Return a string field of a record; the default for null. Raise InvalidInput."""
    value = record.get(name)
    if value is None:
        return default
    if not isinstance(value, str):
        raise InvalidInput(f"{name} must be a string.", argument=name)
    return value


def optional(record: Mapping[str, JSON], name: str) -> str | None:
    """Return a string field, None where it is blank or absent. Raise InvalidInput."""
    return string(record, name) or None


def strings(record: Mapping[str, JSON], name: str) -> list[str]:
    """Return a field that is a list of strings. Raise InvalidInput."""
    value = record.get(name)
    if value is None:
        return []
    if not isinstance(value, list | tuple) or not all(isinstance(entry, str) for entry in value):
        raise InvalidInput(f"{name} must be a list of strings.", argument=name)
    return list(value)


def mapping(record: Mapping[str, JSON], name: str) -> dict[str, JSON]:
    """Return a field that is an object. Raise InvalidInput."""
    value = record.get(name)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidInput(f"{name} must be an object.", argument=name)
    return dict(value)


def whole(record: Mapping[str, JSON], name: str) -> int | None:
    """Return a field that is an integer from 0, None where it is absent. Raise InvalidInput."""
    value = record.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InvalidInput(f"{name} must be a whole number from 0.", argument=name)
    return value


def truth(record: Mapping[str, JSON], name: str) -> bool:
    """Return a boolean field, False where it is absent. Raise InvalidInput."""
    value = record.get(name)
    if value is not None and not isinstance(value, bool):
        raise InvalidInput(f"{name} must be true or false.", argument=name)
    return bool(value)


def needed(record: Mapping[str, JSON], name: str, kind: str) -> str:
    """Return a string field that has to be there and not blank. Raise InvalidInput."""
    value = string(record, name)
    if not value.strip():
        raise InvalidInput(f'{kind} needs "{name}".', argument=name)
    return value


def entries(record: Mapping[str, JSON], name: str) -> list[Mapping[str, JSON]]:
    """Return a field that is a list of objects. Raise InvalidInput."""
    value = record.get(name)
    if value is None:
        return []
    if not isinstance(value, list | tuple) or not all(isinstance(entry, Mapping) for entry in value):
        raise InvalidInput(f"{name} must be a list of objects.", argument=name)
    return list(value)


class BodyLines:
    """The lines of a body, located once for all its spans."""

    def __init__(self, body: str) -> None:
        self._body, self._starts = body, line_starts(body)

    def span(self, start: int, end: int, anchor: Mapping[str, JSON] | None = None) -> Span:
        """Return the span of these characters, with its lines."""
        first = line_of(self._starts, start)
        last = line_of(self._starts, max(start, end - 1))
        return Span(self._body[start:end], start, end, first, last, (), anchor)


def shape_note(record: Mapping[str, JSON]) -> Shaped:
    """Return the draft that a note's record describes. Raise InvalidInput."""
    title = needed(record, "title", "note")
    return Shaped(Draft("note", "0", title=title, body=string(record, "body"), format="markdown"))
