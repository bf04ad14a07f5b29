"""Bring a collection level with its source: find the differences first, then write them in one transaction.

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
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from commonplace.errors import CommonplaceError, InvalidInput
from commonplace.index.files import writable
from commonplace.ingest.files.read import READERS, no_text, stamp_of
from commonplace.ingest.files.stage import StagedWrites
from commonplace.ingest.prepare import prepare
from commonplace.kinds.documents.folders.locks import collection_lock
from commonplace.kinds.documents.folders.update import YOUNG_NS, Progress, file_moment
from commonplace.kinds.documents.packages.declarations import Declaration
from commonplace.kinds.documents.packages.fetch import Validators
from commonplace.kinds.documents.packages.manifest import PackageDocument
from commonplace.kinds.documents.packages.outcome import SyncOutcome
from commonplace.kinds.documents.packages.package import Content, Package, PackageRequest, open_package
from commonplace.kinds.documents.packages.package_paths import EntryRefused, LeftOut
from commonplace.kinds.documents.packages.reading import document_text
from commonplace.kinds.documents.packages.source import PackageSource, without_credentials
from commonplace.kinds.documents.packages.stamps import (
    format_name,
    reader_stamp,
    stamp_for,
    stored_address,
    stored_reader_stamp,
    stored_validators,
)
from commonplace.kinds.documents.packages.tree import FolderTree
from commonplace.model import JSON, Draft
from commonplace.settings import Settings
from commonplace.store.base import Store
from commonplace.store.rows import FileRecord, FolderChange

_FAILED = "!"
"""The mark of a failure in `FileRecord.skipped`. A reason without it says why a file is no document."""


@dataclass(frozen=True, slots=True)
class SyncOptions:
    """The options of one sync."""

    force: bool = False
    """Read and chunk every document again."""
    dry: bool = False
    """Report what would be done, and leave no row, file or clone behind."""
    note_error: bool = True
    """Store the error of a source that cannot be read, for `list` to show."""


@dataclass(frozen=True, slots=True)
class SyncTarget:
    """The library that a sync writes to: its store, its folder and its settings."""

    store: Store
    folder: Path
    settings: Settings


def sync(
    target: SyncTarget,
    declaration: Declaration,
    options: SyncOptions = SyncOptions(),
    progress: Progress | None = None,
) -> SyncOutcome:
    """Bring one collection level with its source, and return the outcome. An error of the source is in it."""
    source = declaration.source()
    try:
        with nullcontext() if options.dry else collection_lock(target.folder, source.key), writable(target.folder):
            return _Sync(target, declaration, source, options, progress).run()
    except CommonplaceError as error:
        versions = target.store.document_versions(source.key)
        if options.note_error and not options.dry:
            _note_error(target.store, source, str(error))
        return SyncOutcome(declaration.alias, source.canonical_id, total=len(versions), error=str(error))


def drop(target: SyncTarget, key: str) -> int:
    """Delete a collection's documents and its clone, and return the number of documents."""
    with collection_lock(target.folder, key):
        count = target.store.drop_collection(key)
        shutil.rmtree(target.folder / "clones" / key, ignore_errors=True)
    return count


def _note_error(store: Store, source: PackageSource, sentence: str) -> None:
    item = store.item("collection", "", source.key, body=False)
    before: dict[str, JSON] = dict(item.fields) if item else {"package": source.canonical_id, "source": source.shown}
    title, metadata = (item.title, item.metadata) if item else ("", {})
    fields = {**before, "error": sentence}
    store.put([prepare(Draft("collection", source.key, title=title, fields=fields, metadata=metadata))])


class _Sync:
    """One pass over one collection."""

    def __init__(
        self,
        target: SyncTarget,
        declaration: Declaration,
        source: PackageSource,
        options: SyncOptions,
        progress: Progress | None,
    ) -> None:
        self._target, self._declaration, self._source = target, declaration, source
        self._store = target.store
        self._options, self._progress = options, progress
        item = self._store.item("collection", "", source.key, body=False)
        self._before: dict[str, JSON] = dict(item.fields) if item else {}
        """The collection's fields as the last sync left them."""
        self._records = self._store.file_records(source.key)
        self._versions = self._store.document_versions(source.key)
        self._outcome = SyncOutcome(declaration.alias, source.canonical_id, reindexed=0 if options.force else None)
        self._kept: set[str] = set()
        """Ids whose documents stay or are new."""
        self._seen: set[str] = set()
        """Ids whose records stay or are new."""
        self._fresh: list[FileRecord] = []
        """Records to write without a document."""
        self._began = time.time_ns()

    def run(self) -> SyncOutcome:
        """Find the differences, write them unless the sync is dry, and return the outcome."""
        with self._clones() as clones, open_package(self._request(clones)) as package:
            self._outcome.commit = package.commit
            with StagedWrites(self._target.folder) as stage:
                if package.manifest is None:
                    for record in self._records.values():
                        self._count(record)
                else:
                    self._compare(package, stage)
                self._finish(package, stage)
        return self._outcome

    @contextmanager
    def _clones(self) -> Iterator[Path]:
        """Yield the folder of the clones: a temporary one for a dry sync."""
        library_folder = self._target.folder
        if not self._options.dry:
            yield library_folder / "clones"
            return
        library_folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=library_folder, prefix="clones-") as folder:
            yield Path(folder)

    def _request(self, clones: Path) -> PackageRequest:
        """Return the request for the source, with its last state where an unchanged one need not be read."""
        declaration, before = self._declaration, self._before
        request = PackageRequest(self._source, declaration.glob, declaration.exclude, self._target.settings, clones)
        if not self._may_be_unchanged():
            return request
        return replace(
            request,
            commit=str(before.get("commit", "")),
            archive=str(before.get("archive", "")),
            validators=Validators(*(str(before.get(name, "")) for name in ("etag", "modified", "place"))),
        )

    def _may_be_unchanged(self) -> bool:
        """Return whether an unchanged commit or archive means unchanged documents.

        It does not where a document failed: under another limit it may not fail again.
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
            and all(record.skipped or stored_reader_stamp(record) in stamps for record in self._records.values())
            and all(record.skipped or self._is_whole(record) for record in self._records.values())
        )

    def _compare(self, package: Package, stage: StagedWrites) -> None:
        """Read what may have changed, and count everything else."""
        for id, sentence in package.listing.failed.items():
            self._fail(id, sentence)
        for id, reason in package.listing.skipped.items():
            self._leave_out(id, reason)
        if package.tree is not None:
            self._keep_unlisted(package.tree.unlisted)
        is_local = isinstance(package.tree, FolderTree)
        pending = [each for each in package.listing.documents.values() if not (is_local and self._settled(each))]
        known = {each.id: stored_validators(self._records[each.id]) for each in pending if self._may_ask_if_new(each)}
        for done, (document, content) in enumerate(package.read(pending, known), start=1):
            self._look_into(document, content, stage)
            if self._progress:
                self._progress(done, len(pending))

    def _keep_unlisted(self, folders: list[str]) -> None:
        """Keep all documents of folders that could not be read: they may still be there."""
        for folder in folders:
            self._kept.update(id for id in self._versions if id.startswith(folder))
            self._seen.update(id for id in self._records if id.startswith(folder))

    def _settled(self, document: PackageDocument) -> bool:
        """Count a local file that has not changed, nor its document, and return True; return False for any other."""
        record, file = self._records.get(document.id), document.file
        if (
            record is None
            or file is None
            or not self._is_current(record, document)
            or (record.mtime_ns, record.size, record.inode) != file[1:]
            or record.read_at - record.mtime_ns < YOUNG_NS
        ):
            return False
        self._count(record)
        return True

    def _may_ask_if_new(self, document: PackageDocument) -> bool:
        """Return whether the server can be asked for changes: its last answer for this address is what is stored."""
        record = self._records.get(document.id)
        if not document.url or record is None:
            return False
        return stored_address(record) == without_credentials(document.url) and self._is_current(record, document)

    def _is_current(self, record: FileRecord, document: PackageDocument) -> bool:
        """Return whether reading the same bytes again would change nothing."""
        return (
            not self._options.force
            and not record.skipped.startswith(_FAILED)
            and stored_reader_stamp(record) == reader_stamp(document)
            and document.hash in ("", record.hash.hex())
            and (bool(record.skipped) or self._is_whole(record))
        )

    def _is_whole(self, record: FileRecord) -> bool:
        """Return whether the stored document has the version that its record was written with."""
        return self._versions.get(record.path) == record.version

    def _count(self, record: FileRecord) -> None:
        """Count a document that is unchanged, or a file that is none for the same reason as before."""
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
        """Note a document that failed; its last good version stays."""
        self._outcome.failed.append((id, sentence))
        self._seen.add(id)
        if id in self._versions:
            self._kept.add(id)
        old = self._records.get(id) or FileRecord(id, 0, 0, 0, b"", 0, "", "", 0)
        self._note(old._replace(mtime_ns=0, skipped=_FAILED + sentence))

    def _leave_out(self, id: str, reason: str, record: FileRecord | None = None) -> None:
        """Note a file that is no document; one that it was before is removed."""
        self._outcome.skipped.append((id, reason))
        self._seen.add(id)
        record = record or self._records.get(id) or FileRecord(id, 0, 0, 0, b"", 0, "", "", 0)
        self._note(record._replace(skipped=reason, version=0))

    def _note(self, record: FileRecord) -> None:
        if self._records.get(record.path) != record:
            self._fresh.append(record)

    def _look_into(
        self, document: PackageDocument, content: Content | EntryRefused | LeftOut, stage: StagedWrites
    ) -> None:
        """Take the content of a document, or note why it has none."""
        old = self._records.get(document.id)
        if isinstance(content, EntryRefused):
            self._fail(document.id, str(content))
        elif isinstance(content, LeftOut):
            self._leave_out(document.id, str(content))
        elif content.data is not None:
            self._look_at_bytes(document, content, content.data, stage)
        elif old is not None:
            self._count(old)

    def _look_at_bytes(self, document: PackageDocument, content: Content, data: bytes, stage: StagedWrites) -> None:
        """Convert a document unless its bytes are the same as before. One whose hash is not the manifest's fails."""
        digest = hashlib.sha256(data).digest()
        if document.hash and document.hash != digest.hex():
            self._fail(document.id, f"The file does not match its hash: its SHA-256 is {digest.hex()}.")
            return
        _, mtime_ns, size, inode = content.file or (document.id, 0, len(data), 0)
        stamp = stamp_for(document, content.validators)
        record = FileRecord(document.id, mtime_ns, size, inode, digest, self._began, stamp, "", 0)
        old = self._records.get(document.id)
        if old is not None and old.hash == digest:
            whole = old._replace(skipped="") if old.skipped.startswith(_FAILED) else old
            if self._is_current(whole, document):
                self._count(whole)
                self._refresh(old, record._replace(skipped=whole.skipped, warnings=old.warnings, version=old.version))
                return
        self._convert(document, record, data, stage)

    def _refresh(self, old: FileRecord, new: FileRecord) -> None:
        """Note a new time of an unchanged file, unless the next sync could trust it no more than this one."""
        same = old._replace(read_at=0) == new._replace(read_at=0)
        if not same or new.read_at - new.mtime_ns >= YOUNG_NS > old.read_at - old.mtime_ns:
            self._fresh.append(new)

    def _convert(self, document: PackageDocument, record: FileRecord, data: bytes, stage: StagedWrites) -> None:
        """StagedWrites a document, or note why it is none."""
        try:
            text = document_text(data, format_name(document))
            draft = Draft(
                "document",
                document.id,
                parent=self._source.key,
                title=text.title,
                body=text.body,
                format=text.format,
                updated_at=file_moment(record.mtime_ns) if record.mtime_ns else None,
            )
            write = prepare(draft)
        except LeftOut as left:
            self._leave_out(document.id, str(left), record)
            return
        except (EntryRefused, InvalidInput) as error:
            self._fail(document.id, str(error))
            return
        record = record._replace(warnings=text.warnings)
        self._tally(record)
        self._keep(record)
        if text.left_out:
            self._outcome.warn(record.path, text.left_out)
        if not self._options.dry:
            stage.add(write, record)

    def _tally(self, record: FileRecord) -> None:
        """Count a document that was read."""
        old = self._records.get(record.path)
        if record.path not in self._versions:
            self._outcome.added += 1
        elif old is None or old.hash != record.hash:
            self._outcome.updated += 1
        elif self._outcome.reindexed is not None:
            self._outcome.reindexed += 1
        else:
            self._outcome.unchanged += 1

    def _finish(self, package: Package, stage: StagedWrites) -> None:
        """Complete the outcome, and write all differences in one transaction unless the sync is dry."""
        removed = [id for id in self._versions if id not in self._kept]
        forgotten = [id for id in self._records if id not in self._seen]
        outcome = self._outcome
        outcome.removed, outcome.total = len(removed), len(self._kept)
        if (manifest := package.manifest) is not None:
            described = {"name": manifest.name, "version": manifest.version, "description": manifest.description}
            outcome.redescribed = any(self._before.get(key) != value for key, value in described.items())
        for pairs in (outcome.skipped, outcome.warnings, outcome.failed):
            pairs.sort()
        if self._options.dry:
            return
        with self._store.transaction():
            if len(stage) or self._fresh or removed or forgotten:
                self._store.change_folder(FolderChange(self._source.key, stage, self._fresh, removed, forgotten))
            self._store.put([prepare(self._described(package))])

    def _described(self, package: Package) -> Draft:
        """Return the collection itself, with the manifest's description and the state of the source at this sync."""
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
