"""Bring a collection level with its source, a package or a folder, and report that as the command line does."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path

from commonplace.errors import CommonplaceError
from commonplace.index.sealed_files import writable
from commonplace.ingest.files.read import EMPTY, READERS, stamp_of
from commonplace.ingest.prepare import prepare
from commonplace.kinds.documents.collection_files import CollectionFiles
from commonplace.kinds.documents.folders.library_folders import Folders
from commonplace.kinds.documents.folders.locks import collection_lock
from commonplace.kinds.documents.packages.declarations import Declaration, Holding
from commonplace.kinds.documents.packages.fetch import Validators
from commonplace.kinds.documents.packages.package import (
    BLANK,
    PackageRequest,
    open_package,
)
from commonplace.kinds.documents.packages.package_origin import PackageOrigin, stored_reader_stamp
from commonplace.kinds.documents.packages.source import PackageSource
from commonplace.kinds.documents.sync import (
    FAILED,
    LastSync,
    Progress,
    SyncOutcome,
    sync_collection,
)
from commonplace.model import JSON, Draft, number_of
from commonplace.settings import Settings
from commonplace.store.base import Store
from commonplace.store.items import Items
from commonplace.store.listing import Listing


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


@dataclass(slots=True)
class SyncReport(SyncOutcome):
    """The result of one sync, in the words and the JSON of the command line."""

    collection: str
    collection_id: str
    _: KW_ONLY
    reindexed: int | None = None
    """The number of documents read and chunked again though they had not changed; None where that was not asked for."""
    error: str | None = None
    commit: str = ""
    redescribed: bool = False
    """True: the manifest has another name, version or description than before."""

    @property
    def changed(self) -> bool:
        """Return whether any document, or the collection's description, was changed."""
        return bool(self.added or self.updated or self.removed or self.redescribed)

    def warn(self, warnings: Iterable[tuple[str, str]]) -> None:
        """Set the warnings, each made into a sentence."""
        self.warnings = [(document, f"{what[:1].upper()}{what[1:]}.") for document, what in warnings]

    def line(self) -> str:
        """Return the counts, or the error, as a line for people."""
        if self.error is not None:
            return f"{self.collection}: {self.error}"
        parts = [f"{self.added} added", f"{self.updated} updated", f"{self.removed} removed"]
        parts.append(f"{self.unchanged} unchanged")
        if self.reindexed is not None:
            parts.append(f"{self.reindexed} reindexed")
        for what, count in (("skipped", len(self.skipped)), ("failed", len(self.failed))):
            if count:
                parts.append(f"{count} {what}")
        return f"{self.collection}: {', '.join(parts)}; {number_of('document', self.total)}"

    def record(self) -> dict[str, JSON]:
        """Return everything as JSON."""
        record: dict[str, JSON] = {
            "collection": self.collection,
            "collectionId": self.collection_id,
            "added": self.added,
            "updated": self.updated,
            "removed": self.removed,
            "unchanged": self.unchanged,
            "total": self.total,
            "skipped": [{"document": name, "reason": reason} for name, reason in self.skipped],
            "warnings": [{"document": name, "reason": reason} for name, reason in self.warnings],
            "failed": [{"document": name, "error": reason} for name, reason in self.failed],
            "error": self.error,
        }
        if self.reindexed is not None:
            record["reindexed"] = self.reindexed
        if self.commit:
            record["commit"] = self.commit
        return record


def sync_holding(
    target: SyncTarget, folders: Folders, holding: Holding, options: SyncOptions, progress: Progress | None = None
) -> SyncReport:
    """Bring one collection level, package or folder, and return what was done, or the error that prevented it.

    A folder registered with `commonplace add` is updated as it always is.
    """
    if holding.declaration is not None and not holding.folder:
        return sync(target, holding.declaration, options, progress)
    known = holding.declared
    report = SyncReport(known.alias, known.collection_id, reindexed=0 if options.force else None)
    try:
        update = folders.update(holding.folder, force=options.force, dry=options.dry, progress=progress)
    except CommonplaceError as error:
        report.error = str(error)
        report.total = target.store.drawer(Listing).parents("document").get(known.key, 0)
        return report
    report.added, report.updated, report.removed = update.added, update.updated, update.removed
    report.unchanged = 0 if options.force else update.unchanged
    report.reindexed = update.unchanged if options.force else None
    report.total = update.total
    report.skipped = [(path, BLANK) for path, code in update.skipped if code == EMPTY]
    report.failed = [(path, f"The file is not taken ({code}).") for path, code in update.skipped if code != EMPTY]
    report.warn(update.warnings)
    return report


def sync(
    target: SyncTarget,
    declaration: Declaration,
    options: SyncOptions = SyncOptions(),
    progress: Progress | None = None,
) -> SyncReport:
    """Bring one package level with its source, and return the report. An error of the source is in it.

    A document that fails keeps its last good version, and a source that cannot be read changes nothing.
    """
    source = declaration.source()
    try:
        with nullcontext() if options.dry else collection_lock(target.folder, source.key), writable(target.folder):
            return _synced(target, declaration, source, options, progress)
    except CommonplaceError as error:
        versions = target.store.drawer(CollectionFiles).versions(source.key)
        if options.note_error and not options.dry:
            _note_error(target.store, source, str(error))
        return SyncReport(declaration.alias, source.canonical_id, total=len(versions), error=str(error))


def drop(target: SyncTarget, key: str) -> int:
    """Delete a collection's documents and its clone, and return the number of documents."""
    with collection_lock(target.folder, key):
        count = target.store.drawer(CollectionFiles).drop(key)
        shutil.rmtree(target.folder / "clones" / key, ignore_errors=True)
    return count


def _note_error(store: Store, source: PackageSource, sentence: str) -> None:
    item = store.drawer(Items).find("collection", "", source.key, body=False)
    before: dict[str, JSON] = dict(item.fields) if item else {"package": source.canonical_id, "source": source.shown}
    title, metadata = (item.title, item.metadata) if item else ("", {})
    fields = {**before, "error": sentence}
    store.drawer(Items).put([prepare(Draft("collection", source.key, title=title, fields=fields, metadata=metadata))])


def _synced(
    target: SyncTarget,
    declaration: Declaration,
    source: PackageSource,
    options: SyncOptions,
    progress: Progress | None,
) -> SyncReport:
    state, report = LastSync.of(target.store, source.key), SyncReport(declaration.alias, source.canonical_id)
    item = target.store.drawer(Items).find("collection", "", source.key, body=False)
    before: dict[str, JSON] = dict(item.fields) if item else {}
    with _clones(target.folder, dry=options.dry) as clones:
        request = PackageRequest(source, declaration.glob, declaration.exclude, target.settings, clones)
        if not options.force and _may_be_unchanged(declaration, before, state):
            validators = Validators(*(str(before.get(name, "")) for name in ("etag", "modified", "place")))
            commit, archive = str(before.get("commit", "")), str(before.get("archive", ""))
            request = replace(request, commit=commit, archive=archive, validators=validators)
        with open_package(request) as package:
            origin = PackageOrigin(target.store, declaration, source, package, state, before, force=options.force)
            sync_collection(state, origin, report, folder=target.folder, dry=options.dry, progress=progress)
    report.commit, report.redescribed = package.commit, origin.is_redescribed
    if options.force:
        report.reindexed = report.reread
    else:
        report.unchanged += report.reread
    report.warn(report.warnings)
    for pairs in (report.skipped, report.warnings, report.failed):
        pairs.sort()
    return report


@contextmanager
def _clones(library_folder: Path, *, dry: bool) -> Iterator[Path]:
    """Yield the folder of the clones: a temporary one for a dry sync."""
    if not dry:
        yield library_folder / "clones"
        return
    library_folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=library_folder, prefix="clones-") as folder:
        yield Path(folder)


def _may_be_unchanged(declaration: Declaration, before: Mapping[str, JSON], state: LastSync) -> bool:
    """Return whether an unchanged commit or archive means unchanged documents.

    It does not where a document failed: under another limit it may not fail again.
    """
    stamps = {stamp_of(reader) for reader in READERS.values()}
    return (
        "synced_at" in before
        and not before.get("urls")
        and before.get("glob") == list(declaration.glob)
        and before.get("exclude") == list(declaration.exclude)
        and not any(record.skipped.startswith(FAILED) for record in state.records.values())
        and all(record.skipped or stored_reader_stamp(record) in stamps for record in state.records.values())
        and all(map(state.is_whole, state.records.values()))
    )
