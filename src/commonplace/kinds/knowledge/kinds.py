"""The five kinds of personal material: their names, ids and times, and readers of the fields of their records."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from urllib.parse import quote

from commonplace.errors import InvalidInput
from commonplace.kinds.knowledge.drawer import Cue
from commonplace.model import JSON, Draft, Span
from commonplace.store.filters import fold_tag
from commonplace.store.rows import Attachment
from commonplace.text.text_lines import line_of, line_starts

KIND_OF: Mapping[str, str] = {
    "notes": "note",
    "media": "media",
    "chats": "conversation",
    "characters": "character",
    "prompts": "prompt",
}
"""The kind of the items of each source."""

SOURCES = tuple(KIND_OF)
KINDS = tuple(KIND_OF.values())
SOURCE_OF: Mapping[str, str] = {**{kind: source for source, kind in KIND_OF.items()}, "message": "chats"}

NUMBERED = frozenset({"media", "character", "prompt"})
"""Kinds whose items are numbered from 1 unless a record has an id."""

MOST_NUMBER = 2**53 - 1
_ID = re.compile(r"[A-Za-z0-9._~-]{1,128}")
_NUMBER = re.compile(r"[1-9][0-9]{0,15}")
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def is_id(text: str) -> bool:
    """Return whether a text can be an id."""
    return _ID.fullmatch(text) is not None


def checked_id(value: JSON, kind: str, argument: str = "id") -> str:
    """Return the key for an id as a record or a call gives it. Raise InvalidInput."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MOST_NUMBER:
        return str(value)
    if isinstance(value, str) and is_id(value):
        return value
    raise InvalidInput(
        f'The id of a {kind} is 1 to 128 characters of A-Z, a-z, 0-9, ".", "_", "~" and "-"'
        f"{', or a whole number from 1' if kind in NUMBERED else ''}.",
        argument=argument,
    )


def checked_uid(value: JSON) -> str:
    """Return a UUID in lower case. Raise InvalidInput."""
    if isinstance(value, str) and _UID.fullmatch(value.lower()):
        return value.lower()
    raise InvalidInput("uid must be a UUID, such as 3f0c1a52-7c1d-4b6e-9f57-0d2c1b7a9e11.", argument="uid")


def number_of(key: str) -> int | None:
    """Return the number that a key is, or None."""
    return int(key) if _NUMBER.fullmatch(key) and int(key) <= MOST_NUMBER else None


def shown_id(kind: str, key: str) -> str | int:
    """Return an id as callers see it: an integer for a numeric key where the kind is numbered."""
    number = number_of(key) if kind in NUMBERED else None
    return key if number is None else number


def by_id(kind: str, key: str) -> tuple[int, int, str]:
    """Return a sort key for ids: numbers by size, then names."""
    number = number_of(key) if kind in NUMBERED else None
    return (0, number, "") if number is not None else (1, 0, key)


def uri_for(source: str, *segments: str) -> str:
    """Return the address of these path segments in a source."""
    return f"{source}://{'/'.join(quote(segment, safe='~') for segment in segments)}"


def moment_text(moment: datetime) -> str:
    """Return a moment as ISO 8601 in UTC, with as many digits as it needs."""
    return moment.astimezone(UTC).isoformat().removesuffix("+00:00") + "Z"


def read_moment(value: JSON, name: str) -> datetime:
    """Return the moment of an ISO 8601 date or time, UTC unless it has a zone. Raise InvalidInput."""
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
        if moment is None:
            raise ValueError
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        shown = value if isinstance(value, str) else "that"
        raise InvalidInput(
            f'{name} "{shown[:60]}" is not an ISO 8601 date; write 2024-05-01 or 2024-05-01T09:30:00Z.', argument=name
        ) from None


def clean_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Return tags trimmed, each once ignoring case, in the first spelling."""
    tags_by_fold: dict[str, str] = {}
    for tag in tags:
        if tag.strip():
            tags_by_fold.setdefault(fold_tag(tag), tag.strip())
    return tuple(tags_by_fold.values())


# records: readers of their fields, and the draft a kind makes of them


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
