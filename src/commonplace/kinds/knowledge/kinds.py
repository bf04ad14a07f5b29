"""The five kinds of personal material: their names, and the ids and times of their items."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Literal
from urllib.parse import quote

from commonplace.errors import InvalidInput
from commonplace.model import JSON
from commonplace.store.filters import fold_tag

Source = Literal["notes", "media", "chats", "characters", "prompts"]

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
