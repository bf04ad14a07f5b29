"""The nouns of memory: an entry as stored, as it comes in, a revision of it, and the result of either."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Final, Literal, NamedTuple

from commonplace.errors import CommonplaceError, NotFound, Unavailable, VersionConflict
from commonplace.model import JSON, Item
from commonplace.store.filters import fold_tag
from commonplace.store.rows import Attachment
from commonplace.store.shaping import json_text
from commonplace.text.normal import normalized

MOST_METADATA = 1 << 20
"""Bytes that the metadata of an entry may have as JSON."""

MOST_THREAD, MOST_TAG = 1000, 200
"""Characters that the name of a thread and a tag may have."""


MOST_NUMBER = (1 << 63) - 1
"""The largest number of an entry: what fits into 64 bits with a sign."""


class Unset(Enum):
    """A marker for a value that was not given, where None has a meaning of its own."""

    UNSET = 0


UNSET: Final = Unset.UNSET


@dataclass(frozen=True, slots=True)
class Image:
    """An image of an entry. `metadata` is its owner's, a text or an object."""

    data: bytes
    media_type: str
    metadata: str | Mapping[str, JSON] | None = None

    def attachment(self) -> tuple[Attachment, dict[str, JSON]]:
        """Return the image as the store keeps it, and its fields."""
        fields = {} if self.metadata is None else {"metadata": self.metadata}
        return Attachment(hashlib.sha256(self.data).digest(), self.media_type, self.data), fields


@dataclass(frozen=True, slots=True)
class New:
    """An entry to store. A field of None was not given: a store that updates its twin keeps the twin's value."""

    thread: str
    source: str
    text: str
    images: tuple[Image, ...] | None = None
    metadata: Mapping[str, JSON] | None = None
    tags: tuple[str, ...] | None = None
    expires_at: datetime | None = None
    supersedes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Revision:
    """A change of an entry.

    A field of None stays as it is, except `expires_at`: None means that it no longer expires.
    """

    number: int
    text: str | None = None
    metadata: Mapping[str, JSON] | None = None
    patch: Mapping[str, JSON] | None = None
    tags: tuple[str, ...] | None = None
    images: tuple[Image, ...] | None = None
    expires_at: datetime | Unset | None = UNSET
    expected_version: int | None = None


@dataclass(frozen=True, slots=True)
class EntryRow:
    """A memory entry as the store counts and orders it. `number` is what callers know it by, its item's key."""

    number: int
    item_id: int
    thread: str
    source: str
    created_at: int
    images: int
    expires_at: int | None
    superseded_by: int | None
    supersedes: tuple[int, ...]


class Said(NamedTuple):
    """An entry of a thread, as far as it matters for what is said next."""

    number: int
    item_id: int
    source: str
    superseded: bool
    body: str
    created_at: int


@dataclass(frozen=True, slots=True)
class Past:
    """A former state of a memory entry. Of its images only their hashes and types are kept."""

    version: int
    updated_at: int
    body: str
    metadata: dict[str, JSON]
    tags: tuple[str, ...]
    images: tuple[tuple[str, str], ...]
    """(SHA-256 in hexadecimal, media type)"""


@dataclass(frozen=True, slots=True)
class ThreadRow:
    """A thread of memory entries. Times are microseconds since 1970, `last_id` the number of its newest entry."""

    thread: str
    entries: int
    from_user: int
    multimodal: int
    first_at: int
    last_at: int
    last_id: int


@dataclass(frozen=True, slots=True)
class Tally:
    """The numbers of memory entries, of each sort."""

    entries: int
    threads: int
    from_user: int
    multimodal: int
    active: tuple[tuple[str, int], ...]
    """The threads with the most entries."""
    common: tuple[tuple[str, int], ...]
    """The commonest tags."""
    images: int
    tags: int
    superseded: int
    expiring: int
    summaries: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry as it is stored."""

    row: EntryRow
    item: Item
    past: tuple[Past, ...] = ()
    """Its earlier versions, newest first, where they were asked for."""

    @property
    def number(self) -> int:
        return self.row.number

    @property
    def summary(self) -> str | None:
        return self.item.fields.get("summary") or None


@dataclass(frozen=True, slots=True)
class Stored:
    """The result of storing one entry."""

    number: int
    item_id: int
    thread: str
    version: int
    deduplicated: bool
    images: int
    summary_kept: bool
    summary_made: bool = False
    """A summary was made in this call."""
    embedding: Literal["generated", "pending", "none"] = "none"


@dataclass(frozen=True, slots=True)
class Revised:
    """The result of updating one entry. `changed` names the fields it touched, in the contract's order."""

    number: int
    item_id: int
    version: int
    changed: tuple[str, ...]
    other_text: bool
    """The text is different now, so its vectors have to be made anew."""


class NoEntry(NotFound):
    """An error: there is no entry with this number."""

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(f"Context entry with ID {number} not found")


class EntryChanged(VersionConflict):
    """An error: someone else changed the entry after the caller read it."""

    def __init__(self, number: int, expected: int, actual: int) -> None:
        super().__init__(f"memory://{number}", expected, actual)
        self.args = (f"Context entry {number} is at version {actual}, not {expected}; read it again and retry",)


class BatchFailed(CommonplaceError):
    """An error: one of an atomic batch could not be written, so none was. `place` is its index, from 0."""

    def __init__(self, place: int, error: CommonplaceError) -> None:
        super().__init__(str(error), code=error.code)
        self.place, self.error, self.status = place, error, error.status


class GenerationFailed(Unavailable):
    """An error of strict mode: a vector or summary could not be made, so nothing was written."""

    code = "generation_failed"


def json_size(value: JSON) -> int:
    """Return how many bytes a value takes as JSON."""
    return len(json_text(value).encode())


def normal_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Return tags as they are stored and compared: NFC, trimmed, single blanks, lower case, each once, sorted."""
    tags_by_fold: dict[str, str] = {}
    for tag in tags:
        normal = " ".join(normalized("NFC", tag).split()).lower()
        if normal:
            tags_by_fold.setdefault(fold_tag(normal), normal)
    return tuple(sorted(tags_by_fold.values()))
