"""The five kinds of personal material: what they are called, how their items are identified and timed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Literal
from urllib.parse import quote

from commonplace.errors import InvalidInput
from commonplace.model import JSON

Source = Literal["notes", "media", "chats", "characters", "prompts"]

KIND_OF: Mapping[str, str] = {
    "notes": "note",
    "media": "media",
    "chats": "conversation",
    "characters": "character",
    "prompts": "prompt",
}
"""What an item of a source is called, one at a time."""

SOURCES = tuple(KIND_OF)
KINDS = tuple(KIND_OF.values())
SOURCE_OF: Mapping[str, str] = {**{kind: source for source, kind in KIND_OF.items()}, "message": "chats"}

NUMBERED = frozenset({"media", "character", "prompt"})
"""Kinds whose items are counted from 1 unless a record names them."""

MOST_NUMBER = 2**53 - 1
_ID = re.compile(r"[A-Za-z0-9._~-]{1,128}")
_NUMBER = re.compile(r"[1-9][0-9]{0,15}")
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def is_id(text: str) -> bool:
    return _ID.fullmatch(text) is not None


def checked_id(value: JSON, kind: str, argument: str = "id") -> str:
    """An id as a record or a call gives it, as the key it is kept under."""
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
    if isinstance(value, str) and _UID.fullmatch(value.lower()):
        return value.lower()
    raise InvalidInput("uid must be a UUID, such as 3f0c1a52-7c1d-4b6e-9f57-0d2c1b7a9e11.", argument="uid")


def number_of(key: str) -> int | None:
    """The number a key is, if it is one."""
    return int(key) if _NUMBER.fullmatch(key) and int(key) <= MOST_NUMBER else None


def shown_id(kind: str, key: str) -> str | int:
    """An id as callers see it: numbers as numbers where the kind counts."""
    number = number_of(key) if kind in NUMBERED else None
    return key if number is None else number


def by_id(kind: str, key: str) -> tuple[int, int, str]:
    """Sorts ids: numbers by their size, then names."""
    number = number_of(key) if kind in NUMBERED else None
    return (0, number, "") if number is not None else (1, 0, key)


def uri_for(source: str, *segments: str) -> str:
    return f"{source}://{'/'.join(quote(segment, safe='~') for segment in segments)}"


def moment_text(moment: datetime) -> str:
    """ISO 8601 in UTC, with as many digits as the moment needs."""
    return moment.astimezone(UTC).isoformat().removesuffix("+00:00") + "Z"


def read_moment(value: JSON, name: str) -> datetime:
    """A date or time, UTC unless it says otherwise."""
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
