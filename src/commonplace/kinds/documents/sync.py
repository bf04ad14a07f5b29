"""Bring the documents of a collection level with where they come from: find the differences, then write them at once.

`sync_collection` does that for folders and for packages; where the two differ it asks an `Origin`. A crash before the
transaction leaves the old state and after it the new one; readers see one or the other. Prepared documents wait in
memory up to a bound and on disk beyond it, so a collection of any size takes the same memory; while a large one is
being written, which takes about a second for 40 MB of text, other writers wait.
"""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import IO, Generic, Literal, Protocol, Self, TypeVar

from commonplace.ingest.files.read import no_text
from commonplace.kinds.documents.collection_files import CollectionFiles
from commonplace.kinds.documents.folders.walk import FileStat
from commonplace.store.base import Store
from commonplace.store.rows import FileRecord, FolderChange, Write

Progress = Callable[[int, int], None]
"""A callback that is called with (done, total)."""

YOUNG_NS = 2_000_000_000
"""A file that was read so soon after it was written may have been written again in the same tick of its clock."""
FAILED = "!"
"""The mark of a failure in `FileRecord.skipped` that may not happen again. Without it the field is a lasting reason."""
MOST_CHARS = 64_000_000
"""Characters of text that wait in memory."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Document = TypeVar("Document")
"""A document as an origin lists it."""


@dataclass(slots=True, kw_only=True)
class SyncOutcome:
    """The counts of a sync, and the documents that were skipped, warned about or failed.

    The reports of folders and of packages are this, and what their callers want to know besides.
    """

    added: int = 0
    updated: int = 0
    removed: int = 0
    unchanged: int = 0
    reread: int = 0
    """The number of documents read and chunked again though their bytes had not changed."""
    total: int = 0
    skipped: list[tuple[str, str]] = field(default_factory=list)
    """(id, reason) of files that are no documents."""
    warnings: list[tuple[str, str]] = field(default_factory=list)
    """(id, the part of it that could not be read), as part of a sentence."""
    failed: list[tuple[str, str]] = field(default_factory=list)
    """(id, reason) of documents that could not be taken."""

    @property
    def changed(self) -> bool:
        """Return whether any document was added, updated or removed."""
        return bool(self.added or self.updated or self.removed)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a file is no document."""

    reason: str
    """A code or a sentence."""
    stays: bool = False
    """True: the file is only unreadable now, and the last good version of its document stays."""
    failed: bool = False
    """True: it counts as failed, and not as skipped."""


class Refused(Exception):
    """A file that cannot be made a document."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.reason)
        self.refusal = refusal


@dataclass(frozen=True, slots=True)
class FileRead:
    """The bytes of a document, and the record to keep of it should it become one."""

    record: FileRecord
    data: bytes


@dataclass(frozen=True, slots=True)
class Converted:
    """A document ready to be written, and what to warn of."""

    write: Write
    warnings: int = 0
    """Places that were no text."""
    notes: Sequence[str] = ()
    """Other parts that could not be read, as parts of sentences."""


@dataclass(slots=True)
class OriginListing(Generic[Document]):
    """The documents that there are at an origin, by id, and the files there that are none."""

    documents: Mapping[str, Document]
    refused: Iterable[tuple[str, Refusal]] = ()
    unlisted: Iterable[str] = ()
    """Folders that could not be read, with a slash at the end: their files are unknown now."""


Answer = FileRead | Refusal | Literal["gone", "unchanged"]
"""The content of a document; `gone` where it has just been deleted, `unchanged` where the origin says so."""


class Origin(Protocol[Document]):
    """The place that the documents of a collection come from."""

    def listing(self) -> OriginListing[Document] | None:
        """Return what is there; None where everything is as it was at the last sync."""
        ...

    def is_settled(self, document: Document, record: FileRecord) -> bool:
        """Return whether the record proves, without reading, that a document has not changed."""
        ...

    def is_current(self, document: Document, record: FileRecord) -> bool:
        """Return whether reading the bytes of the record again would make the same document."""
        ...

    def read(self, documents: Mapping[str, Document]) -> Iterator[tuple[str, Answer]]:
        """Yield each document's id with its content, in any order."""
        ...

    def convert(self, document: Document, read: FileRead) -> Converted:
        """Return the document that bytes make. Raise Refused where they make none."""
        ...

    def refusal(self, reason: str) -> Refusal:
        """Return the refusal that a record keeps as `skipped`."""
        ...

    def stamped(self, record: FileRecord) -> FileRecord:
        """Return a record with the stamp of how its file was read."""
        ...

    def record_of(self, id: str, refusal: Refusal, record: FileRecord | None) -> FileRecord | None:
        """Return the record to keep of a refusal, or None. `record` is that of the bytes, where they were read."""
        ...

    def write(self, change: FolderChange | None, outcome: SyncOutcome) -> None:
        """Write the differences in one transaction; None where there are none."""
        ...


@dataclass(frozen=True, slots=True)
class LastSync:
    """The documents of a collection as the last sync left them."""

    parent: str
    records: Mapping[str, FileRecord]
    versions: Mapping[str, int]
    """The versions of the stored documents, by id."""

    @classmethod
    def of(cls, store: Store, parent: str) -> LastSync:
        """Return the state of the collection whose documents have this parent."""
        return cls(
            parent, store.drawer(CollectionFiles).records(parent), store.drawer(CollectionFiles).versions(parent)
        )

    def is_whole(self, record: FileRecord) -> bool:
        """Return whether the stored document has the version its record was written with, or there should be none."""
        return bool(record.skipped) or self.versions.get(record.path) == record.version


def sync_collection(
    state: LastSync,
    origin: Origin[Document],
    outcome: SyncOutcome,
    *,
    folder: Path,
    dry: bool = False,
    progress: Progress | None = None,
) -> None:
    """Bring a collection level with its origin, and count in `outcome` what was done.

    `folder` is the library's: documents that wait to be written lie there when they are many. `dry` writes nothing.
    """
    _Sync(state, origin, outcome, dry, progress).run(folder)


def is_settled(record: FileRecord, file: FileStat) -> bool:
    """Return whether a file's time, size and inode prove that it is as it was when it was read."""
    same = (record.mtime_ns, record.size, record.inode) == file[1:]
    return same and record.read_at - record.mtime_ns >= YOUNG_NS


def file_moment(ns: int) -> datetime | None:
    """Return a file's time, or None where it is out of range: clocks of other machines write anything."""
    try:
        return _EPOCH + timedelta(microseconds=ns // 1000)
    except OverflowError:
        return None


class _Sync(Generic[Document]):
    """One pass over one collection."""

    def __init__(
        self,
        state: LastSync,
        origin: Origin[Document],
        outcome: SyncOutcome,
        dry: bool,
        progress: Progress | None,
    ) -> None:
        self._state, self._origin, self._outcome = state, origin, outcome
        self._dry, self._progress = dry, progress
        self._kept: set[str] = set()
        """Ids whose documents stay or are new."""
        self._seen: set[str] = set()
        """Ids whose records stay or are new."""
        self._fresh: list[FileRecord] = []
        """Records to write without a document: new times of unchanged files, and files that are refused."""

    def run(self, folder: Path) -> None:
        listing = self._origin.listing()
        with StagedWrites(folder) as stage:
            if listing is None:
                for record in self._state.records.values():
                    self._count(record)
            else:
                self._compare(listing, stage)
            self._finish(stage)

    def _compare(self, listing: OriginListing[Document], stage: StagedWrites) -> None:
        """Read what may have changed, and count everything else."""
        for id, refusal in listing.refused:
            self._refuse(id, refusal)
        for folder in listing.unlisted:
            self._kept.update(id for id in self._state.versions if id.startswith(folder))
            self._seen.update(id for id in self._state.records if id.startswith(folder))
        pending = {id: document for id, document in listing.documents.items() if not self._is_settled(id, document)}
        for done, (id, answer) in enumerate(self._origin.read(pending), start=1):
            self._take(id, pending[id], answer, stage)
            if self._progress:
                self._progress(done, len(pending))

    def _is_settled(self, id: str, document: Document) -> bool:
        """Count a document that needs no reading, and return True; return False for any other."""
        record = self._state.records.get(id)
        if record is None or not self._origin.is_settled(document, record) or not self._is_current(document, record):
            return False
        self._count(record)
        return True

    def _is_current(self, document: Document, record: FileRecord) -> bool:
        return self._origin.is_current(document, record) and self._state.is_whole(record)

    def _take(self, id: str, document: Document, answer: Answer, stage: StagedWrites) -> None:
        """Take the content of a document, or note why it has none."""
        if isinstance(answer, Refusal):
            self._refuse(id, answer)
        elif isinstance(answer, FileRead):
            self._look_into(document, answer, stage)
        elif answer == "unchanged" and (record := self._state.records.get(id)) is not None:
            self._count(record)

    def _look_into(self, document: Document, read: FileRead, stage: StagedWrites) -> None:
        """Convert a document, unless its bytes are the same as before."""
        record = read.record
        old = self._state.records.get(record.path)
        if old is not None and old.hash == record.hash:
            known = old._replace(skipped="") if old.skipped.startswith(FAILED) else old
            if self._is_current(document, known):
                self._count(known)
                new = record._replace(skipped=known.skipped, warnings=known.warnings, version=known.version)
                self._refresh(old, self._origin.stamped(new))
                return
        try:
            converted = self._origin.convert(document, read)
        except Refused as refused:
            self._refuse(record.path, refused.refusal, record)
            return
        record = self._origin.stamped(record._replace(warnings=converted.warnings))
        self._tally(record)
        self._keep(record)
        self._outcome.warnings += [(record.path, note) for note in converted.notes]
        if not self._dry:
            stage.add(converted.write, record)

    def _refresh(self, old: FileRecord, new: FileRecord) -> None:
        """Note a new time of an unchanged file, unless the next sync could trust it no more than this one."""
        same = (old.mtime_ns, old.size, old.inode, old.reader, old.skipped) == (
            new.mtime_ns, new.size, new.inode, new.reader, new.skipped
        )  # fmt: skip
        if not same or new.read_at - new.mtime_ns >= YOUNG_NS > old.read_at - old.mtime_ns:
            self._fresh.append(new)

    def _count(self, record: FileRecord) -> None:
        """Count a document that is unchanged, or a file that is none for the same reason as before."""
        if record.skipped:
            self._refuse(record.path, self._origin.refusal(record.skipped), record)
        else:
            self._outcome.unchanged += 1
            self._keep(record)

    def _keep(self, record: FileRecord) -> None:
        self._kept.add(record.path)
        self._seen.add(record.path)
        if record.warnings:
            self._outcome.warnings.append((record.path, no_text(record.warnings)))

    def _refuse(self, id: str, refusal: Refusal, record: FileRecord | None = None) -> None:
        """Note a file that is no document. What was made of it before goes, unless the refusal says that it stays."""
        (self._outcome.failed if refusal.failed else self._outcome.skipped).append((id, refusal.reason))
        record = self._origin.record_of(id, refusal, record)
        if refusal.stays or record is not None:
            self._seen.add(id)
        if refusal.stays and id in self._state.versions:
            self._kept.add(id)
        if record is not None and self._state.records.get(id) != record:
            self._fresh.append(record)

    def _tally(self, record: FileRecord) -> None:
        """Count a document that was converted."""
        old = self._state.records.get(record.path)
        if record.path not in self._state.versions:
            self._outcome.added += 1
        elif old is None or old.hash != record.hash:
            self._outcome.updated += 1
        else:
            self._outcome.reread += 1

    def _finish(self, stage: StagedWrites) -> None:
        """Complete the outcome, and have all differences written unless the sync is dry."""
        state = self._state
        removed = [id for id in state.versions if id not in self._kept]
        forgotten = [id for id in state.records if id not in self._seen]
        self._outcome.removed, self._outcome.total = len(removed), len(self._kept)
        if self._dry:
            return
        is_changed = bool(len(stage) or self._fresh or removed or forgotten)
        change = FolderChange(state.parent, stage, self._fresh, removed, forgotten) if is_changed else None
        self._origin.write(change, self._outcome)


class StagedWrites:
    """A queue of writes.

    What goes to disk is in a file without a name, which the system removes however this process ends.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._waiting: list[tuple[Write, FileRecord]] = []
        self._chars = 0
        self._file: IO[bytes] | None = None
        self._spilled = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()

    def __len__(self) -> int:
        return self._spilled + len(self._waiting)

    def add(self, write: Write, record: FileRecord) -> None:
        self._waiting.append((write, record))
        self._chars += len(write.draft.body)
        if self._chars >= MOST_CHARS:
            self._spill()

    def __iter__(self) -> Iterator[tuple[Write, FileRecord]]:
        if self._file is not None:
            self._file.seek(0)
            for _ in range(self._spilled):
                yield pickle.load(self._file)  # noqa: S301 - our own file, which no other process can name
        yield from self._waiting

    def _spill(self) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115 - closed on exit; not in /tmp, which may be memory
        for waiting in self._waiting:
            pickle.dump(waiting, self._file, protocol=pickle.HIGHEST_PROTOCOL)
        self._spilled += len(self._waiting)
        self._waiting, self._chars = [], 0
