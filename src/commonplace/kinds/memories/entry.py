"""The nouns of memory: an entry as it is, as it comes in, as it is to change, and what came of it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import Enum
from typing import Final, Literal

from commonplace.errors import CommonplaceError, NotFound, Unavailable, VersionConflict
from commonplace.lazy_dataclass import dataclass
from commonplace.model import JSON, Item
from commonplace.store.filters import fold_tag
from commonplace.store.rows import Attachment, EntryRow, Past
from commonplace.store.shaping import json_text
from commonplace.text.normal import normalized

MOST_METADATA = 1 << 20
"""How large the metadata of an entry may be, as JSON."""


class Unset(Enum):
    """The value of what was not given, where None means something."""

    UNSET = 0


UNSET: Final = Unset.UNSET


@dataclass(frozen=True, slots=True)
class Image:
    """An image of an entry. `metadata` is what its owner said of it."""

    data: bytes
    media_type: str
    metadata: str | Mapping[str, JSON] | None = None

    def attachment(self) -> tuple[Attachment, dict[str, JSON]]:
        fields = {} if self.metadata is None else {"metadata": self.metadata}
        return Attachment(hashlib.sha256(self.data).digest(), self.media_type, self.data), fields


@dataclass(frozen=True, slots=True)
class New:
    """An entry to store. What is None was not given: a store that updates its twin keeps what that has."""

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
    """What is to change of an entry. What is None stays; `expires_at` of None means that it no longer expires."""

    number: int
    text: str | None = None
    metadata: Mapping[str, JSON] | None = None
    patch: Mapping[str, JSON] | None = None
    tags: tuple[str, ...] | None = None
    images: tuple[Image, ...] | None = None
    expires_at: datetime | Unset | None = UNSET
    expected_version: int | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry as it is stored."""

    row: EntryRow
    item: Item
    past: tuple[Past, ...] = ()
    """What it was, newest first, where that was asked for."""

    @property
    def number(self) -> int:
        return self.row.number

    @property
    def summary(self) -> str | None:
        return self.item.fields.get("summary") or None


@dataclass(frozen=True, slots=True)
class Stored:
    """What came of a store."""

    number: int
    item_id: int
    thread: str
    version: int
    deduplicated: bool
    images: int
    summary_kept: bool
    summary_made: bool = False
    """In this call."""
    embedding: Literal["generated", "pending", "none"] = "none"


@dataclass(frozen=True, slots=True)
class Revised:
    """What came of an update. `changed` names the fields it touched, in the contract's order."""

    number: int
    item_id: int
    version: int
    changed: tuple[str, ...]
    other_text: bool
    """Whether the text is another now, so that its vectors are to be made anew."""


class NoEntry(NotFound):
    """There is no entry of this number."""

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(f"Context entry with ID {number} not found")


class EntryChanged(VersionConflict):
    """Someone else wrote first."""

    def __init__(self, number: int, expected: int, actual: int) -> None:
        super().__init__(f"memory://{number}", expected, actual)
        self.args = (f"Context entry {number} is at version {actual}, not {expected}; read it again and retry",)


class BatchFailed(CommonplaceError):
    """One of a batch that stands or falls together could not be written. `place` counts from 0."""

    def __init__(self, place: int, error: CommonplaceError) -> None:
        super().__init__(str(error), code=error.code)
        self.place, self.error, self.status = place, error, error.status


class GenerationFailed(Unavailable):
    """Strict mode: what must be made before a write could not be made, so nothing was written."""

    code = "generation_failed"


def json_size(value: JSON) -> int:
    """How many bytes a value takes as JSON."""
    return len(json_text(value).encode())


def normal_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Tags as they are stored and compared: composed, trimmed, single blanks, lower case, each once."""
    kept: dict[str, str] = {}
    for tag in tags:
        normal = " ".join(normalized("NFC", tag).split()).lower()
        if normal:
            kept.setdefault(fold_tag(normal), normal)
    return tuple(sorted(kept.values()))
