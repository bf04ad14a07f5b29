"""Bring a collection level with its folder: find the differences first, then write them in one transaction.

A crash before that transaction leaves the old state and after it the new one; readers see one or the other. Prepared
documents wait in memory up to a bound and on disk beyond it, so a folder of any size takes the same memory; while a
large one is being written, which takes about a second for 40 MB of text, other writers wait.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from commonplace.errors import InvalidInput, NotFound
from commonplace.ingest.files.properties import Properties, properties_of
from commonplace.ingest.files.read import (
    BINARY,
    DAMAGED,
    EMPTY,
    FileText,
    Skipped,
    folder_stamp_of,
    no_text,
    read_text,
    reader_of,
)
from commonplace.ingest.files.stage import StagedWrites
from commonplace.ingest.prepare import prepare
from commonplace.kinds.documents.folders.folder_collections import Collection, change, find_collection
from commonplace.kinds.documents.folders.locks import collection_lock
from commonplace.kinds.documents.folders.looks import note_look
from commonplace.kinds.documents.folders.walk import (
    BAD_NAME,
    LARGEST,
    OUTSIDE,
    TOO_LARGE,
    FileStat,
    Survey,
    code_of,
    file_of,
    is_inside,
    open_inside,
    walk,
)
from commonplace.model import Draft
from commonplace.store.base import Store
from commonplace.store.facets import PROPERTIES
from commonplace.store.rows import FileRecord, FolderChange

Progress = Callable[[int, int], None]
"""A callback that is called with (done, total)."""

CHANGED = "CHANGED_WHILE_READ"
YOUNG_NS = 2_000_000_000
"""A file that was read so soon after it was written may have been written again in the same tick of its clock."""

_ATTEMPTS = 3
TAKES_IT_AWAY = frozenset({OUTSIDE, TOO_LARGE, BAD_NAME, BINARY, EMPTY, "ENOENT"})
"""The codes for which a document is removed. For any other the file is only unreadable now, and its document stays."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class Report:
    """The counts of an update, and the files that it could not take."""

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    removed: int = 0
    skipped: list[tuple[str, str]] = field(default_factory=list)
    """(path, code), sorted by path."""
    warnings: list[tuple[str, str]] = field(default_factory=list)
    """(path, the part of it that could not be read)."""
    unread: Counter[str] = field(default_factory=Counter)
    """The number of files that the pattern does not name, by their endings."""
    after: int = 0
    """The number of the last change before those of this update."""

    @property
    def changed(self) -> bool:
        """Return whether any document was added, updated or removed."""
        return bool(self.added or self.updated or self.removed)

    def line(self) -> str:
        """Return the counts as a line for people."""
        line = f"{self.added} new, {self.updated} updated, {self.unchanged} unchanged, {self.removed} removed"
        return f"{line}, {len(self.skipped)} skipped" if self.skipped else line

    def reasons(self) -> dict[str, int]:
        """Return the number of skipped files by code, sorted."""
        return dict(sorted(Counter(code for _, code in self.skipped).items()))


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
        collection = find_collection(store, name)
        work = _Update(store, collection, folder, force, dry, progress)
        report = work.run()
        if not dry:
            note_look(folder, collection, work.walked_s)
        return report


class _Update:
    """One pass over one collection."""

    def __init__(
        self, store: Store, collection: Collection, folder: Path, force: bool, dry: bool, progress: Progress | None
    ) -> None:
        self._store, self._collection, self._folder = store, collection, folder
        self._force, self._dry, self._progress = force, dry, progress
        self._root = collection.place
        self._records = store.file_records(collection.name)
        self._versions = store.document_versions(collection.name)
        self._report = Report()
        self._kept: set[str] = set()
        """Paths whose documents stay or are new."""
        self._seen: set[str] = set()
        """Paths whose records stay or are new."""
        self._fresh: list[FileRecord] = []
        """Records to write without a document: new times of unchanged files, and files that are skipped."""
        self.walked_s = 0.0
        """The duration of the walk, in seconds."""

    def run(self) -> Report:
        """Find the differences, write them unless the update is dry, and return the report."""
        mounted, was_mounted = os.path.ismount(self._root), self._collection.mounted
        survey = self._survey()
        self._report.unread = survey.unread
        pending = [file for file in survey.files if not self._settled(file)]
        self._keep_unreadable(survey)
        with StagedWrites(self._folder) as stage:
            for done, file in enumerate(pending, start=1):
                self._look_into(file, stage)
                if self._progress:
                    self._progress(done, len(pending))
            self._check_root(mounted or (was_mounted and not survey.files))
            self._write(stage)
        if survey.files and mounted != was_mounted and not self._dry:
            change(self._store, self._collection.name, lambda stored: replace(stored, mounted=mounted))
        self._report.skipped.sort()
        return self._report

    def _survey(self) -> Survey:
        started = time.monotonic()
        try:
            return walk(self._collection.selection())
        except OSError as error:
            raise unreadable(self._collection, error) from error
        finally:
            self.walked_s = time.monotonic() - started

    def _check_root(self, on_a_disk: bool) -> None:
        """Raise NotFound where the root, or the disk mounted there, has gone: its files are not deleted ones."""
        try:
            os.stat(self._root)
        except OSError as error:
            raise unreadable(self._collection, error) from error
        if on_a_disk and not os.path.ismount(self._root):
            raise NotFound(
                f"The disk with collection {self._collection.name} is not mounted at {self._collection.root} any more. "
                "Its documents stay as they were."
            )

    def _settled(self, file: FileStat) -> bool:
        """Count a file that has not changed, nor its document, and return True; return False for any other."""
        record = self._records.get(file.path)
        if record is None or self._force or not is_settled(record, file, self._versions):
            return False
        self._count(record)
        return True

    def _count(self, record: FileRecord) -> None:
        """Count a file that is unchanged, or skipped for the same reason as before."""
        self._seen.add(record.path)
        if record.warnings:
            self._report.warnings.append((record.path, no_text(record.warnings)))
        if record.skipped:
            self._skip(record.path, record.skipped)
        else:
            self._report.unchanged += 1
            self._kept.add(record.path)

    def _skip(self, path: str, code: str) -> None:
        """Note a file that is not taken; its document stays, unless the code takes it away."""
        self._report.skipped.append((path, code))
        if code not in TAKES_IT_AWAY:
            self._kept.add(path)
            self._seen.add(path)

    def _keep_unreadable(self, survey: Survey) -> None:
        for path, code in survey.skipped:
            self._skip(path, code)
        for folder in survey.unlisted:
            self._kept.update(path for path in self._versions if path.startswith(folder))
            self._seen.update(path for path in self._records if path.startswith(folder))

    def _look_into(self, file: FileStat, stage: StagedWrites) -> None:
        """Read a file, and convert it unless its bytes are the same as before."""
        read_at = time.time_ns()
        try:
            stats, data = read_file(self._root, file)
        except Skipped as skipped:
            self._skip(file.path, str(skipped))
            return
        except OSError as error:
            if error.errno != errno.ENOENT:  # one that has just gone is no file any more
                self._skip(file.path, code_of(error))
            return
        digest = hashlib.sha256(data).digest()
        old = self._records.get(file.path)
        if old is not None and old.hash == digest and is_current(old, self._versions):
            self._count(old)
            new = old._replace(mtime_ns=stats.mtime_ns, size=stats.size, inode=stats.inode, read_at=read_at)
            self._refresh(old, new)
            return
        record = FileRecord(*stats, hash=digest, read_at=read_at, reader=_stamp(file.path), skipped="", warnings=0)
        self._convert(record, data, stage)

    def _refresh(self, old: FileRecord, new: FileRecord) -> None:
        """Note a new time of an unchanged file, unless the next update could trust it no more than this one."""
        same = (old.mtime_ns, old.size, old.inode) == (new.mtime_ns, new.size, new.inode)
        if not same or new.read_at - new.mtime_ns >= YOUNG_NS > old.read_at - old.mtime_ns:
            self._fresh.append(new)

    def _convert(self, record: FileRecord, data: bytes, stage: StagedWrites) -> None:
        """StagedWrites the document of a file, or note why it is none."""
        try:
            text = read_text(data, record.path)
            properties = properties_of(text.body) if reader_of(record.path).properties else Properties()
            write = prepare(self._draft(record, text, properties))
        except (Skipped, InvalidInput) as error:
            code = str(error) if isinstance(error, Skipped) else DAMAGED
            self._skip(record.path, code)
            self._seen.add(record.path)
            self._fresh.append(record._replace(skipped=code, reader=_stamp(record.path, code)))
            return
        if text.warnings:
            self._report.warnings.append((record.path, no_text(text.warnings)))
        if text.left_out:
            self._report.warnings.append((record.path, text.left_out))
        self._report.warnings += [(record.path, note) for note in properties.notes]
        self._seen.add(record.path)
        self._kept.add(record.path)
        if not self._dry:
            reader = _stamp(record.path, warnings=text.warnings)
            stage.add(write, record._replace(warnings=text.warnings, reader=reader))
        elif record.path in self._versions:
            self._report.updated += 1
        else:
            self._report.added += 1

    def _draft(self, record: FileRecord, text: FileText, properties: Properties) -> Draft:
        return Draft(
            "document",
            record.path,
            parent=self._collection.name,
            title=text.title,
            body=text.body,
            format=text.format,
            fields={PROPERTIES: properties.words} if properties.words else {},
            metadata=properties.metadata,
            tags=properties.tags,
            created_at=properties.created,
            updated_at=properties.updated or file_moment(record.mtime_ns),
            spans=properties.spans,
        )

    def _write(self, stage: StagedWrites) -> None:
        removed = [path for path in self._versions if path not in self._kept]
        forgotten = [path for path in self._records if path not in self._seen]
        if self._dry:
            self._report.removed = len(removed)
            return
        if not (len(stage) or self._fresh or removed or forgotten):
            return
        self._report.after = self._store.last_change()
        result = self._store.change_folder(FolderChange(self._collection.name, stage, self._fresh, removed, forgotten))
        self._report.added = result.added
        self._report.updated = result.updated
        self._report.unchanged += result.unchanged
        self._report.removed = result.removed


def _stamp(path: str, skipped: str = "", warnings: int = 0) -> str:
    """Return the stamp of how a file was read, as its record keeps it."""
    return folder_stamp_of(reader_of(path), bool(warnings) or skipped == BINARY)


def unreadable(collection: Collection, error: OSError) -> NotFound:
    """Return the error for a root that the system does not let anybody list."""
    return NotFound(
        f"The folder of collection {collection.name} cannot be read: {collection.root} ({code_of(error)}). Its "
        "documents stay as they were."
    )


def is_settled(record: FileRecord, file: FileStat, versions: Mapping[str, int]) -> bool:
    """Return whether a file's time, size and inode prove that nothing is to be done for it."""
    same = (record.mtime_ns, record.size, record.inode) == file[1:]
    return same and record.read_at - record.mtime_ns >= YOUNG_NS and is_current(record, versions)


def is_current(record: FileRecord, versions: Mapping[str, int]) -> bool:
    """Return whether reading the same bytes again would change nothing. `versions` are those of the documents."""
    if record.reader != _stamp(record.path, record.skipped, record.warnings):
        return False
    return bool(record.skipped) or versions.get(record.path) == record.version


def read_file(root: str, file: FileStat, most: int = LARGEST) -> tuple[FileStat, bytes]:
    """Return the bytes of a file, with its time, size and inode while they were read.

    Raise Skipped where it is larger than `most`, leads out of the root or keeps changing; OSError where it cannot be
    read. Links lead nowhere outside the root.
    """
    for _ in range(_ATTEMPTS):
        descriptor = _opened(root, file.path)
        try:
            before = os.fstat(descriptor)
            stats = file_of(file.path, before)
            if stats.inode == file.inode and stat.S_ISREG(before.st_mode):
                if stats.size > most:
                    raise Skipped(TOO_LARGE)
                data = _bytes_of(descriptor, stats.size)
                if len(data) == stats.size and stats == file_of(file.path, os.fstat(descriptor)):
                    return stats, data
        finally:
            os.close(descriptor)
        file = _look_again(root, file.path)
    raise Skipped(CHANGED)


def _bytes_of(descriptor: int, size: int) -> bytes:
    """Return `size` bytes, or one more where the file has grown. Network file systems return them in pieces."""
    data = os.read(descriptor, size + 1)
    while len(data) < size and (more := os.read(descriptor, size + 1 - len(data))):
        data += more
    return data


def _opened(root: str, path: str) -> int:
    """Return a descriptor of a file below the root. A link on the way is followed only to a file inside the root."""
    try:
        return open_inside(root, path)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENOTDIR):
            raise
        return open_inside(root, os.path.relpath(_real(root, path), root))


def _look_again(root: str, path: str) -> FileStat:
    """Return a file that has been replaced since the walk. Raise Skipped where it is a link out of the root by now."""
    return file_of(path, os.stat(_real(root, path), follow_symlinks=False))


def _real(root: str, path: str) -> str:
    """Return the real path of a file below the root. Raise Skipped where that is outside."""
    real = os.path.realpath(os.path.join(root, path), strict=True)
    if not is_inside(real, root):
        raise Skipped(OUTSIDE)
    return real


def file_moment(ns: int) -> datetime | None:
    """Return a file's time, or None where it is out of range: clocks of other machines write anything."""
    try:
        return _EPOCH + timedelta(microseconds=ns // 1000)
    except OverflowError:
        return None
