"""Bring a collection of files level with its folder, or tell whether it is."""

from __future__ import annotations

import errno
import hashlib
import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from commonplace.errors import InvalidInput, NotFound
from commonplace.ingest.files.properties import Properties, properties_of
from commonplace.ingest.files.read import (
    BINARY,
    DAMAGED,
    EMPTY,
    Skipped,
    folder_stamp_of,
    read_text,
    reader_of,
)
from commonplace.ingest.prepare import prepare
from commonplace.kinds.documents.collection_files import CollectionFiles
from commonplace.kinds.documents.folders.folder_collections import Collection, change, find_collection
from commonplace.kinds.documents.folders.locks import collection_lock, last_look, note_look
from commonplace.kinds.documents.folders.walk import (
    BAD_NAME,
    CHANGED,
    OUTSIDE,
    TOO_LARGE,
    FileStat,
    Survey,
    code_of,
    read_file,
    walk,
)
from commonplace.kinds.documents.sync import (
    Answer,
    Converted,
    FileRead,
    LastSync,
    OriginListing,
    Progress,
    Refusal,
    Refused,
    SyncOutcome,
    file_moment,
    is_settled,
    sync_collection,
)
from commonplace.model import Draft
from commonplace.store.base import Store
from commonplace.store.facets import PROPERTIES
from commonplace.store.rows import FileRecord, FolderChange

TAKES_IT_AWAY = frozenset({OUTSIDE, TOO_LARGE, BAD_NAME, BINARY, EMPTY, "ENOENT"})
"""The codes for which a document is removed. For any other the file is only unreadable now, and its document stays."""
LONG_S = 1.0
"""A folder whose last walk took longer is not walked only to report its state."""


@dataclass(slots=True, kw_only=True)
class Report(SyncOutcome):
    """The counts of an update, and the files that it could not take: (path, code), sorted by path."""

    unread: Counter[str] = field(default_factory=Counter)
    """The number of files that the pattern does not name, by their endings."""
    after: int = 0
    """The number of the last change before those of this update."""

    def line(self) -> str:
        """Return the counts as a line for people."""
        line = f"{self.added} new, {self.updated} updated, {self.unchanged} unchanged, {self.removed} removed"
        return f"{line}, {len(self.skipped)} skipped" if self.skipped else line

    def reasons(self) -> dict[str, int]:
        """Return the number of skipped files by code, sorted."""
        return dict(sorted(Counter(code for _, code in self.skipped).items()))


@dataclass(frozen=True, slots=True)
class FolderState:
    """A collection compared with its folder: whether the two are level, and why that is not known."""

    collection: str
    root: Path
    looked_at: datetime | None
    """When it was last updated from this home; None: never."""
    level: bool | None
    """True: an update would change nothing. None: not examined, because walking takes long."""
    trouble: str = ""
    """Why the folder cannot be read, in a sentence."""


def update(
    store: Store,
    name: str,
    folder: Path,
    *,
    force: bool = False,
    dry: bool = False,
    progress: Progress | None = None,
) -> Report:
    """Bring one collection level with its folder, after any other process that is doing so, and return what was done.

    `folder` is the library's. `force` reads every file, whatever its time says; `dry` writes nothing. Raise NotFound
    where there is no such collection, or its root cannot be read.
    """
    with nullcontext() if dry else collection_lock(folder, name):
        collection, report = find_collection(store, name), Report()
        origin = _Folder(store, collection, report, force=force)
        sync_collection(LastSync.of(store, name), origin, report, folder=folder, dry=dry, progress=progress)
        report.unchanged += report.reread
        report.skipped.sort()
        if not dry:
            origin.note_mount()
            note_look(folder, collection, origin.walked_s)
        return report


class _Folder:
    """The folder of a collection, as the origin of its documents."""

    def __init__(self, store: Store, collection: Collection, report: Report, *, force: bool) -> None:
        self._store, self._collection, self._report, self._force = store, collection, report, force
        self._root = collection.place
        self._is_mounted = os.path.ismount(self._root)
        self._survey = Survey()
        self.walked_s = 0.0
        """The duration of the walk, in seconds."""

    def listing(self) -> OriginListing[FileStat]:
        """Walk the folder. Raise NotFound where its root cannot be read."""
        started = time.monotonic()
        survey = self._survey = walked(self._collection)
        self.walked_s = time.monotonic() - started
        self._report.unread = survey.unread
        refused = [(path, self.refusal(code)) for path, code in survey.skipped]
        return OriginListing({file.path: file for file in survey.files}, refused, survey.unlisted)

    def is_settled(self, document: FileStat, record: FileRecord) -> bool:
        """Return whether a file's time, size and inode prove that it has not changed."""
        return not self._force and is_settled(record, document)

    def is_current(self, document: FileStat, record: FileRecord) -> bool:
        """Return whether the file would be read now as it was when the record was made."""
        return is_current(record)

    def read(self, documents: Mapping[str, FileStat]) -> Iterator[tuple[str, Answer]]:
        """Yield the bytes of each file. Raise NotFound, after the last, where the root has gone meanwhile."""
        for path, file in documents.items():
            yield path, self._read(file)
        self._check_root()

    def _read(self, file: FileStat) -> Answer:
        read_at = time.time_ns()
        try:
            stats, data = read_file(self._root, file)
        except Skipped as skipped:
            return self.refusal(str(skipped))
        except OSError as error:  # one that has just gone is no file any more
            return "gone" if error.errno == errno.ENOENT else self.refusal(code_of(error))
        digest = hashlib.sha256(data).digest()
        return FileRead(FileRecord(*stats, hash=digest, read_at=read_at, reader="", skipped="", warnings=0), data)

    def _check_root(self) -> None:
        """Raise NotFound where the root, or the disk mounted there, has gone: its files are not deleted ones."""
        try:
            os.stat(self._root)
        except OSError as error:
            raise _unreadable(self._collection, error) from error
        was_on_a_disk = self._is_mounted or (self._collection.mounted and not self._survey.files)
        if was_on_a_disk and not os.path.ismount(self._root):
            raise NotFound(
                f"The disk with collection {self._collection.name} is not mounted at {self._collection.root} any more. "
                "Its documents stay as they were."
            )

    def convert(self, document: FileStat, read: FileRead) -> Converted:
        """Return the document of a file, with the properties that it gives itself."""
        path = document.path
        try:
            text = read_text(read.data, path)
            properties = properties_of(text.body) if reader_of(path).properties else Properties()
            draft = Draft(
                "document",
                path,
                parent=self._collection.name,
                title=text.title,
                body=text.body,
                format=text.format,
                fields={PROPERTIES: properties.words} if properties.words else {},
                metadata=properties.metadata,
                tags=properties.tags,
                created_at=properties.created,
                updated_at=properties.updated or file_moment(read.record.mtime_ns),
                spans=properties.spans,
            )
            write = prepare(draft)
        except (Skipped, InvalidInput) as error:
            raise Refused(self.refusal(str(error) if isinstance(error, Skipped) else DAMAGED)) from error
        return Converted(write, text.warnings, [*filter(None, [text.left_out]), *properties.notes])

    def refusal(self, reason: str) -> Refusal:
        """Return the refusal of a code."""
        return Refusal(reason, stays=reason not in TAKES_IT_AWAY)

    def stamped(self, record: FileRecord) -> FileRecord:
        """Return a record with the stamp of the reader that its file has now."""
        return record._replace(reader=_stamp(record.path, record.skipped, record.warnings))

    def record_of(self, id: str, refusal: Refusal, record: FileRecord | None) -> FileRecord | None:
        """Return the record of a file that was read and is no document, so that it is not read again."""
        return None if record is None else self.stamped(record._replace(skipped=refusal.reason))

    def write(self, change: FolderChange | None, outcome: SyncOutcome) -> None:
        """Write the differences, and count what the store has changed."""
        if change is None:
            return
        self._report.after = self._store.last_change()
        result = self._store.drawer(CollectionFiles).change(change)
        outcome.added, outcome.updated, outcome.removed = result.added, result.updated, result.removed
        outcome.reread = result.unchanged

    def note_mount(self) -> None:
        """Store whether a disk is mounted at the root, where files were found there."""
        mounted = self._is_mounted
        if self._survey.files and mounted != self._collection.mounted:
            change(self._store, self._collection.name, lambda stored: replace(stored, mounted=mounted))


def walked(collection: Collection) -> Survey:
    """Return the files of a collection's folder. Raise NotFound where its root cannot be read."""
    try:
        return walk(collection.selection())
    except OSError as error:
        raise _unreadable(collection, error) from error


def _unreadable(collection: Collection, error: OSError) -> NotFound:
    """Return the error for a root that the system does not let anybody list."""
    return NotFound(
        f"The folder of collection {collection.name} cannot be read: {collection.root} ({code_of(error)}). Its "
        "documents stay as they were."
    )


def is_current(record: FileRecord) -> bool:
    """Return whether the reader of a file would read its bytes as it did when the record was made."""
    return record.reader == _stamp(record.path, record.skipped, record.warnings)


def _stamp(path: str, skipped: str, warnings: int) -> str:
    """Return the stamp of how a file is read, as its record keeps it."""
    return folder_stamp_of(reader_of(path), bool(warnings) or skipped == BINARY)


def state_of(store: Store, folder: Path, collection: Collection) -> FolderState:
    """Return the state of a collection. Its folder is walked unless that took longer than `LONG_S` the last time."""
    look, level, trouble = last_look(folder, collection), None, ""
    if look is None or look.seconds <= LONG_S:
        try:
            level = is_level(store, collection)
        except NotFound as error:
            level, trouble = False, str(error)
    return FolderState(collection.name, collection.root, look.at if look else None, level, trouble)


def is_level(store: Store, collection: Collection) -> bool:
    """Return whether an update would change nothing. Open only files whose times and sizes prove nothing.

    Raise NotFound where the root cannot be read.
    """
    survey = walked(collection)
    state = LastSync.of(store, collection.name)
    paths = {file.path for file in survey.files}
    paths.update(path for path, code in survey.skipped if code not in TAKES_IT_AWAY)
    unlisted = tuple(survey.unlisted)
    if any(path not in paths and not path.startswith(unlisted) for path in state.versions):
        return False
    root = collection.place
    return not any(_differs(root, file, state) for file in survey.files)


def _differs(root: str, file: FileStat, state: LastSync) -> bool:
    """Return whether an update would do anything with a file that is there."""
    record = state.records.get(file.path)
    is_known = record is not None and is_current(record) and state.is_whole(record)
    if record is not None and is_known and is_settled(record, file):
        return False
    try:
        _, data = read_file(root, file)
    except Skipped as skipped:
        code = str(skipped)
    except OSError as error:
        code = errno.errorcode.get(error.errno or 0, "")
    else:
        return record is None or not is_known or record.hash != hashlib.sha256(data).digest()
    return code == CHANGED or (code in TAKES_IT_AWAY and file.path in state.versions)
