"""Bringing a collection level with its source: what differs is found first, then written in one transaction.

A crash before that transaction leaves the old state and after it the new one; readers see one or the other. A document
that fails keeps its last good version, and a source that cannot be read changes nothing.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

from commonplace.errors import CommonplaceError, InvalidInput
from commonplace.index.files import writable
from commonplace.ingest.files.read import READERS, no_text, reader_of, stamp_of
from commonplace.ingest.files.stage import Stage
from commonplace.ingest.prepare import prepare
from commonplace.kinds.documents.folders.locks import collection_lock
from commonplace.kinds.documents.folders.update import YOUNG_NS, Progress, file_moment
from commonplace.kinds.documents.packages.context import Declaration
from commonplace.kinds.documents.packages.listing import PackageDocument
from commonplace.kinds.documents.packages.opening import Content, Package, PackageRequest, open_package
from commonplace.kinds.documents.packages.outcome import SyncOutcome
from commonplace.kinds.documents.packages.places import EntryRefused, LeftOut
from commonplace.kinds.documents.packages.reading import document_text
from commonplace.kinds.documents.packages.source import PackageSource, without_credentials
from commonplace.kinds.documents.packages.sources.folder import FolderTree
from commonplace.kinds.documents.packages.sources.http import Validators
from commonplace.lazy_dataclass import dataclass
from commonplace.model import JSON, Draft
from commonplace.settings import Settings
from commonplace.store.base import Store
from commonplace.store.rows import FileRecord, FolderChange

_FAILED = "!"
"""Begins what a record says of a document that failed; without it, it says why a file is no document."""


@dataclass(frozen=True, slots=True)
class SyncOptions:
    force: bool = False
    """Read and chunk everything again."""
    dry: bool = False
    """Say what would happen, and leave no row, file or clone behind."""
    note_error: bool = True
    """Remember that the source could not be read, for `list` to say so."""


@dataclass(frozen=True, slots=True)
class SyncTarget:
    """Where packages are kept: the store, and the folder of the library it belongs to."""

    store: Store
    folder: Path
    settings: Settings


def sync(
    keeping: SyncTarget,
    declaration: Declaration,
    options: SyncOptions = SyncOptions(),
    progress: Progress | None = None,
) -> SyncOutcome:
    """Bring one collection level. Whatever is wrong with its source is in the outcome's `error`."""
    source = declaration.source()
    try:
        with nullcontext() if options.dry else collection_lock(keeping.folder, source.key), writable(keeping.folder):
            return _Sync(keeping, declaration, source, options, progress).run()
    except CommonplaceError as error:
        versions = keeping.store.document_versions(source.key)
        if options.note_error and not options.dry:
            _note_error(keeping.store, source, str(error))
        return SyncOutcome(declaration.alias, source.canonical_id, total=len(versions), error=str(error))


def drop(keeping: SyncTarget, key: str) -> int:
    """Delete a collection's documents and its clone; returns how many documents there were."""
    with collection_lock(keeping.folder, key):
        count = keeping.store.drop_collection(key)
        shutil.rmtree(keeping.folder / "clones" / key, ignore_errors=True)
    return count


def _note_error(store: Store, source: PackageSource, sentence: str) -> None:
    item = store.item("collection", "", source.key, body=False)
    known: dict[str, JSON] = dict(item.fields) if item else {"package": source.canonical_id, "source": source.shown}
    title, metadata = (item.title, item.metadata) if item else ("", {})
    fields = {**known, "error": sentence}
    store.put([prepare(Draft("collection", source.key, title=title, fields=fields, metadata=metadata))])


class _Sync:
    """One pass over one collection."""

    def __init__(
        self,
        keeping: SyncTarget,
        declaration: Declaration,
        source: PackageSource,
        options: SyncOptions,
        progress: Progress | None,
    ) -> None:
        self._keeping, self._declaration, self._source = keeping, declaration, source
        self._store = keeping.store
        self._options, self._progress = options, progress
        item = self._store.item("collection", "", source.key, body=False)
        self._before: dict[str, JSON] = dict(item.fields) if item else {}
        self._records = self._store.file_records(source.key)
        self._versions = self._store.document_versions(source.key)
        self._outcome = SyncOutcome(declaration.alias, source.canonical_id, reindexed=0 if options.force else None)
        self._kept: set[str] = set()
        """Ids whose documents stay or come."""
        self._seen: set[str] = set()
        """Ids whose records stay or come."""
        self._fresh: list[FileRecord] = []
        self._began = time.time_ns()

    def run(self) -> SyncOutcome:
        with self._clones() as clones, open_package(self._wanted(clones)) as package:
            self._outcome.commit = package.commit
            with Stage(self._keeping.folder) as stage:
                if package.manifest is None:
                    for record in self._records.values():
                        self._count(record)
                else:
                    self._compare(package, stage)
                self._finish(package, stage)
        return self._outcome

    @contextmanager
    def _clones(self) -> Iterator[Path]:
        kept = self._keeping.folder
        if not self._options.dry:
            yield kept / "clones"
            return
        kept.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept, prefix="clones-") as folder:
            yield Path(folder)

    def _wanted(self, clones: Path) -> PackageRequest:
        declaration, before = self._declaration, self._before
        wanted = PackageRequest(self._source, declaration.glob, declaration.exclude, self._keeping.settings, clones)
        if not self._may_be_as_it_was():
            return wanted
        validators = Validators(*(str(before.get(name, "")) for name in ("etag", "modified", "place")))
        return PackageRequest(
            self._source,
            declaration.glob,
            declaration.exclude,
            self._keeping.settings,
            clones,
            str(before.get("commit", "")),
            str(before.get("archive", "")),
            validators,
        )

    def _may_be_as_it_was(self) -> bool:
        """Whether an unchanged commit or archive would mean unchanged documents.

        Not where one failed: with another limit it may not.
        """
        before = self._before
        stamps = {stamp_of(reader) for reader in READERS.values()}
        return (
            not self._options.force
            and "synced_at" in before
            and not before.get("urls")
            and before.get("glob") == list(self._declaration.glob)
            and before.get("exclude") == list(self._declaration.exclude)
            and not any(record.skipped.startswith(_FAILED) for record in self._records.values())
            and all(record.skipped or _stamp(record) in stamps for record in self._records.values())
            and all(record.skipped or self._is_whole(record) for record in self._records.values())
        )

    def _compare(self, package: Package, stage: Stage) -> None:
        for id, sentence in package.listing.failed.items():
            self._fail(id, sentence)
        for id, reason in package.listing.skipped.items():
            self._leave_out(id, reason)
        if package.tree is not None:
            self._keep_unlisted(package.tree.unlisted)
        is_local = isinstance(package.tree, FolderTree)
        pending = [each for each in package.listing.documents.values() if not (is_local and self._settled(each))]
        known = {each.id: _validators(self._records[each.id]) for each in pending if self._may_ask_if_new(each)}
        for done, (listed, content) in enumerate(package.read(pending, known), start=1):
            self._look_into(listed, content, stage)
            if self._progress:
                self._progress(done, len(pending))

    def _keep_unlisted(self, folders: list[str]) -> None:
        """Nobody knows what is in a folder that cannot be read, so what was in it stays."""
        for folder in folders:
            self._kept.update(id for id in self._versions if id.startswith(folder))
            self._seen.update(id for id in self._records if id.startswith(folder))

    def _settled(self, listed: PackageDocument) -> bool:
        """Whether a local file is as it was when it was read, and its document as it was made."""
        record, file = self._records.get(listed.id), listed.file
        if (
            record is None
            or file is None
            or not self._is_current(record, listed)
            or (record.mtime_ns, record.size, record.inode) != file[1:]
            or record.read_at - record.mtime_ns < YOUNG_NS
        ):
            return False
        self._count(record)
        return True

    def _may_ask_if_new(self, listed: PackageDocument) -> bool:
        """Whether a server can tell: it was asked for the same address, and what it gave is here."""
        record = self._records.get(listed.id)
        if not listed.url or record is None:
            return False
        return _address(record) == without_credentials(listed.url) and self._is_current(record, listed)

    def _is_current(self, record: FileRecord, listed: PackageDocument) -> bool:
        """Whether reading the same bytes again would change nothing."""
        return (
            not self._options.force
            and not record.skipped.startswith(_FAILED)
            and _stamp(record) == stamp_of(reader_of(_name(listed)))
            and listed.hash in ("", record.hash.hex())
            and (bool(record.skipped) or self._is_whole(record))
        )

    def _is_whole(self, record: FileRecord) -> bool:
        return self._versions.get(record.path) == record.version

    def _count(self, record: FileRecord) -> None:
        """A document, or a reason for there being none, is as it was."""
        if record.skipped:
            self._leave_out(record.path, record.skipped)
        else:
            self._outcome.unchanged += 1
            self._keep(record)

    def _keep(self, record: FileRecord) -> None:
        self._kept.add(record.path)
        self._seen.add(record.path)
        if record.warnings:
            self._outcome.warn(record.path, no_text(record.warnings))

    def _fail(self, id: str, sentence: str) -> None:
        self._outcome.failed.append((id, sentence))
        self._seen.add(id)
        if id in self._versions:
            self._kept.add(id)
        old = self._records.get(id) or FileRecord(id, 0, 0, 0, b"", 0, "", "", 0)
        self._note(old._replace(mtime_ns=0, skipped=_FAILED + sentence))

    def _leave_out(self, id: str, reason: str, record: FileRecord | None = None) -> None:
        self._outcome.skipped.append((id, reason))
        self._seen.add(id)
        record = record or self._records.get(id) or FileRecord(id, 0, 0, 0, b"", 0, "", "", 0)
        self._note(record._replace(skipped=reason, version=0))

    def _note(self, record: FileRecord) -> None:
        if self._records.get(record.path) != record:
            self._fresh.append(record)

    def _look_into(self, listed: PackageDocument, content: Content | EntryRefused | LeftOut, stage: Stage) -> None:
        old = self._records.get(listed.id)
        if isinstance(content, EntryRefused):
            self._fail(listed.id, str(content))
        elif isinstance(content, LeftOut):
            self._leave_out(listed.id, str(content))
        elif content.data is not None:
            self._look_at_bytes(listed, content, content.data, stage)
        elif old is not None:
            self._count(old)

    def _look_at_bytes(self, listed: PackageDocument, content: Content, data: bytes, stage: Stage) -> None:
        digest = hashlib.sha256(data).digest()
        if listed.hash and listed.hash != digest.hex():
            self._fail(listed.id, f"The file does not match its hash: its SHA-256 is {digest.hex()}.")
            return
        _, mtime_ns, size, inode = content.file or (listed.id, 0, len(data), 0)
        reader = _reader(listed, content.validators)
        record = FileRecord(listed.id, mtime_ns, size, inode, digest, self._began, reader, "", 0)
        old = self._records.get(listed.id)
        if old is not None and old.hash == digest:
            whole = old._replace(skipped="") if old.skipped.startswith(_FAILED) else old
            if self._is_current(whole, listed):
                self._count(whole)
                self._refresh(old, record._replace(skipped=whole.skipped, warnings=old.warnings, version=old.version))
                return
        self._convert(listed, record, data, stage)

    def _refresh(self, old: FileRecord, new: FileRecord) -> None:
        """Remember a new time of a file; not where the next sync could not trust it any more than this one."""
        same = old._replace(read_at=0) == new._replace(read_at=0)
        if not same or new.read_at - new.mtime_ns >= YOUNG_NS > old.read_at - old.mtime_ns:
            self._fresh.append(new)

    def _convert(self, listed: PackageDocument, record: FileRecord, data: bytes, stage: Stage) -> None:
        try:
            text = document_text(data, _name(listed))
            draft = Draft(
                "document",
                listed.id,
                parent=self._source.key,
                title=text.title,
                body=text.body,
                format=text.format,
                updated_at=file_moment(record.mtime_ns) if record.mtime_ns else None,
            )
            write = prepare(draft)
        except LeftOut as left:
            self._leave_out(listed.id, str(left), record)
            return
        except (EntryRefused, InvalidInput) as error:
            self._fail(listed.id, str(error))
            return
        record = record._replace(warnings=text.warnings)
        self._tally(record)
        self._keep(record)
        if text.left_out:
            self._outcome.warn(record.path, text.left_out)
        if not self._options.dry:
            stage.add(write, record)

    def _tally(self, record: FileRecord) -> None:
        old = self._records.get(record.path)
        if record.path not in self._versions:
            self._outcome.added += 1
        elif old is None or old.hash != record.hash:
            self._outcome.updated += 1
        elif self._outcome.reindexed is not None:
            self._outcome.reindexed += 1
        else:
            self._outcome.unchanged += 1

    def _finish(self, package: Package, stage: Stage) -> None:
        gone = [id for id in self._versions if id not in self._kept]
        forgotten = [id for id in self._records if id not in self._seen]
        outcome = self._outcome
        outcome.removed, outcome.total = len(gone), len(self._kept)
        if (manifest := package.manifest) is not None:
            said = {"name": manifest.name, "version": manifest.version, "description": manifest.description}
            outcome.redescribed = any(self._before.get(key) != value for key, value in said.items())
        for told in (outcome.skipped, outcome.warnings, outcome.failed):
            told.sort()
        if self._options.dry:
            return
        with self._store.transaction():
            if len(stage) or self._fresh or gone or forgotten:
                self._store.change_folder(FolderChange(self._source.key, stage, self._fresh, gone, forgotten))
            self._store.put([prepare(self._described(package))])

    def _described(self, package: Package) -> Draft:
        """The collection itself, as its manifest describes it and as this sync found it."""
        manifest, before = package.manifest, self._before
        fields: dict[str, JSON] = {
            "package": self._source.canonical_id,
            "source": self._source.shown,
            "name": manifest.name if manifest else before.get("name", ""),
            "version": manifest.version if manifest else before.get("version", ""),
            "description": manifest.description if manifest else before.get("description", ""),
            "synced_at": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "commit": package.commit,
            "archive": package.archive,
            "etag": package.validators.etag,
            "modified": package.validators.modified,
            "place": package.validators.place,
            "urls": sum(1 for each in package.listing.documents.values() if each.url),
            "glob": list(self._declaration.glob),
            "exclude": list(self._declaration.exclude),
            "failed": len(self._outcome.failed),
        }
        metadata = manifest.metadata if manifest else before.get("metadata", {})
        fields["metadata"] = dict(metadata)
        return Draft("collection", self._source.key, title=str(fields["name"]), fields=fields)


def _name(listed: PackageDocument) -> str:
    """What tells a document's format: the name of its file, whatever its id is. One that tells none is of Markdown."""
    name = listed.file.path if listed.file is not None else urlsplit(listed.url).path
    return name if reader_of(name) != reader_of("") else f"{name}.md"


def _reader(listed: PackageDocument, validators: Validators) -> str:
    """How a document was read, and for one over HTTP what its server said of it, and of which address."""
    stamp = stamp_of(reader_of(_name(listed)))
    if not listed.url:
        return stamp
    return "\n".join((stamp, validators.etag, validators.modified, without_credentials(listed.url), validators.place))


def _stamp(record: FileRecord) -> str:
    return record.reader.partition("\n")[0]


def _validators(record: FileRecord) -> Validators:
    _, etag, modified, _, place = (*record.reader.split("\n"), "", "", "", "")[:5]
    return Validators(etag, modified, place)


def _address(record: FileRecord) -> str:
    _, _, _, address = (*record.reader.split("\n"), "", "", "")[:4]
    return address
