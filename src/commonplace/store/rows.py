"""The nouns that go into a store and come out of it beside items and chunks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from commonplace.lazy_dataclass import dataclass
from commonplace.model import JSON, Draft, Span

if TYPE_CHECKING:  # it reads Markdown, which a search does not
    from commonplace.text.outline import Outline


@dataclass(frozen=True, slots=True)
class Passage:
    """A span on its way into the store, with the key its vector will be kept under."""

    span: Span
    vector_key: bytes
    anchor: dict[str, JSON] | None = None


@dataclass(frozen=True, slots=True)
class Write:
    """One item to store. `expected_version` is the version to replace: 0 for "must be new", None for any."""

    draft: Draft
    passages: Sequence[Passage]
    language: str
    expected_version: int | None = None
    outline: Outline | None = None
    """Of a document; None where it is to be read off the body by whoever asks for it first."""


class NumberedWrite(NamedTuple):
    """A write that has its place: the item it is, and the key it is known by."""

    item_id: int
    key: str
    write: Write


@dataclass(frozen=True, slots=True)
class Model:
    """An embedder that has vectors here. `position` is the change up to which every chunk has one."""

    id: int
    fingerprint: str
    name: str
    dims: int
    position: int


MODEL_COLUMNS = "id, fingerprint, name, dims, position"


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file that hangs on an item. `hash` is the SHA-256 of its data."""

    hash: bytes
    media_type: str
    data: bytes


LONGEST_WAIT = 86_400_000_000
"""In microseconds: no work is put off or held for as long. What seems to be was, by a clock that was ahead."""


@dataclass(frozen=True, slots=True)
class Job:
    """A claimed piece of work. `attempts` counts its claims, this one included."""

    id: int
    kind: str
    payload: dict[str, JSON]
    attempts: int


Ending = Literal["file", "path", "end"]
"""A whole `collection/path`, a whole path in any collection, or the last components of a path."""


class Name(NamedTuple):
    """A document's item id, collection and path."""

    item_id: int
    collection: str
    path: str

    @property
    def file(self) -> str:
        return f"{self.collection}/{self.path}"


class DocumentRow(NamedTuple):
    """A document as it is listed. Title and size are None where its outline was never kept."""

    item_id: int
    key: str
    title: str | None
    size: int | None


HEADING_COLUMNS = (
    "level, title, path, line, line_end, char_start, char_end, own_line_end, own_char_end, slug, occurrence"
)


class FileRecord(NamedTuple):
    """A file as it was when it was read. A tuple, for speed: an update looks at one for every file."""

    path: str
    mtime_ns: int
    size: int
    inode: int
    hash: bytes
    read_at: int
    reader: str
    skipped: str
    warnings: int
    version: int = 0
    """Of the document that was made of it; 0 where there is none."""


FILE_COLUMNS = "path, mtime_ns, size, inode, hash, read_at, reader, skipped, warnings, version"
UPDATE_COMMAND = "update_command:"
"""Begins the name of the setting that holds a collection's update command. A setting, as no import brings one."""


@dataclass(frozen=True, slots=True)
class FolderChange:
    """Everything that an update found to differ between a folder and its collection."""

    collection: str
    writes: Iterable[tuple[Write, FileRecord]]
    records: Sequence[FileRecord]
    """Of files whose documents stay as they are, or that have none."""
    gone: Sequence[str]
    """Paths whose documents go."""
    forgotten: Sequence[str]
    """Paths whose records go."""


@dataclass(frozen=True, slots=True)
class FolderResult:
    added: int = 0
    updated: int = 0
    unchanged: int = 0
    removed: int = 0


@dataclass(frozen=True, slots=True)
class Moment:
    """An item and when it was created, in microseconds since 1970: what it is listed by."""

    item_id: int
    created_at: int


ALL_TAGS = "select min(tag), count(*) as held from tags group by folded order by held desc, folded"
"""Every tag with the number of items that have it, as a query."""
