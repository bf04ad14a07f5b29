"""A package as the origin of a collection's documents: what a sync compares, reads and writes."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from urllib.parse import urlsplit

from commonplace.errors import InvalidInput
from commonplace.ingest.files.read import reader_of, stamp_of
from commonplace.ingest.prepare import prepare
from commonplace.kinds.documents.collection_files import CollectionFiles
from commonplace.kinds.documents.packages.declarations import Declaration
from commonplace.kinds.documents.packages.fetch import Validators
from commonplace.kinds.documents.packages.manifest import PackageDocument
from commonplace.kinds.documents.packages.package import (
    Content,
    Package,
    document_text,
)
from commonplace.kinds.documents.packages.package_paths import EntryRefused, LeftOut
from commonplace.kinds.documents.packages.source import PackageSource, without_credentials
from commonplace.kinds.documents.packages.tree import FolderTree
from commonplace.kinds.documents.sync import (
    FAILED,
    Answer,
    Converted,
    FileRead,
    LastSync,
    OriginListing,
    Refusal,
    Refused,
    SyncOutcome,
    file_moment,
    is_settled,
)
from commonplace.model import JSON, Draft
from commonplace.store.base import Store
from commonplace.store.items import Items
from commonplace.store.rows import FileRecord, FolderChange


class PackageOrigin:
    """An open package, as the origin of a collection's documents."""

    def __init__(
        self,
        store: Store,
        declaration: Declaration,
        source: PackageSource,
        package: Package,
        state: LastSync,
        before: Mapping[str, JSON],
        *,
        force: bool,
    ) -> None:
        """Read `package`. `before` are the collection's fields as the last sync left them."""
        self._store, self._declaration, self._source, self._package = store, declaration, source, package
        self._state, self._before, self._force = state, before, force
        self._began = time.time_ns()

    @property
    def is_redescribed(self) -> bool:
        """Return whether the manifest has another name, version or description than before."""
        manifest = self._package.manifest
        return manifest is not None and any(
            self._before.get(key) != getattr(manifest, key) for key in ("name", "version", "description")
        )

    def listing(self) -> OriginListing[PackageDocument] | None:
        """Return the documents of the manifest; None where the source is the same as at the last sync."""
        package = self._package
        if package.manifest is None:
            return None
        refused = [(id, _failure(sentence)) for id, sentence in package.listing.failed.items()]
        refused += [(id, self.refusal(reason)) for id, reason in package.listing.skipped.items()]
        return OriginListing(package.listing.documents, refused, package.tree.unlisted if package.tree else ())

    def is_settled(self, document: PackageDocument, record: FileRecord) -> bool:
        """Return whether a local file's time, size and inode prove that it has not changed."""
        is_local = isinstance(self._package.tree, FolderTree)
        return is_local and document.file is not None and is_settled(record, document.file)

    def is_current(self, document: PackageDocument, record: FileRecord) -> bool:
        """Return whether the document would be read now as it was when the record was made."""
        return (
            not self._force
            and not record.skipped.startswith(FAILED)
            and stored_reader_stamp(record) == reader_stamp(document)
            and document.hash in ("", record.hash.hex())
        )

    def read(self, documents: Mapping[str, PackageDocument]) -> Iterator[tuple[str, Answer]]:
        """Yield the content of each document. A server that was asked before is asked whether it has changed."""
        records = {id: self._state.records[id] for id, document in documents.items() if self._may_ask_if_new(document)}
        known = {id: stored_validators(record) for id, record in records.items()}
        for document, content in self._package.read(list(documents.values()), known):
            yield document.id, self._answer(document, content)

    def _may_ask_if_new(self, document: PackageDocument) -> bool:
        """Return whether the server can be asked for changes: its last answer for this address is what is stored."""
        record = self._state.records.get(document.id)
        if not document.url or record is None or stored_address(record) != without_credentials(document.url):
            return False
        return self.is_current(document, record) and self._state.is_whole(record)

    def _answer(self, document: PackageDocument, content: Content | EntryRefused | LeftOut) -> Answer:
        """Return the content of a document as a sync takes it. One whose hash is not the manifest's fails."""
        if isinstance(content, EntryRefused):
            return _failure(str(content))
        if isinstance(content, LeftOut):
            return self.refusal(str(content))
        if content.data is None:
            return "unchanged"
        digest = hashlib.sha256(content.data).digest()
        if document.hash and document.hash != digest.hex():
            return _failure(f"The file does not match its hash: its SHA-256 is {digest.hex()}.")
        _, mtime_ns, size, inode = content.file or (document.id, 0, len(content.data), 0)
        stamp = stamp_for(document, content.validators)
        return FileRead(FileRecord(document.id, mtime_ns, size, inode, digest, self._began, stamp, "", 0), content.data)

    def convert(self, document: PackageDocument, read: FileRead) -> Converted:
        """Return the document of a file."""
        try:
            text = document_text(read.data, format_name(document))
            draft = Draft(
                "document",
                document.id,
                parent=self._source.key,
                title=text.title,
                body=text.body,
                format=text.format,
                updated_at=file_moment(read.record.mtime_ns) if read.record.mtime_ns else None,
            )
            write = prepare(draft)
        except LeftOut as left:
            raise Refused(self.refusal(str(left))) from left
        except (EntryRefused, InvalidInput) as error:
            raise Refused(_failure(str(error))) from error
        return Converted(write, text.warnings, [text.left_out] if text.left_out else [])

    def refusal(self, reason: str) -> Refusal:
        """Return the refusal of a file that is no document, which is no failure."""
        return Refusal(reason)

    def stamped(self, record: FileRecord) -> FileRecord:
        """Return a record as it is: its stamp, with what a server said, was made as it was read."""
        return record

    def record_of(self, id: str, refusal: Refusal, record: FileRecord | None) -> FileRecord | None:
        """Return the record of what is there instead of a document; of a failure, so that it is read again."""
        old = self._state.records.get(id) or FileRecord(id, 0, 0, 0, b"", 0, "", "", 0)
        if refusal.failed:
            return old._replace(mtime_ns=0, skipped=FAILED + refusal.reason)
        return (record or old)._replace(skipped=refusal.reason, version=0)

    def write(self, change: FolderChange | None, outcome: SyncOutcome) -> None:
        """Write the differences, and the collection itself, in one transaction."""
        with self._store.transaction():
            if change is not None:
                self._store.drawer(CollectionFiles).change(change)
            self._store.drawer(Items).put([prepare(self._described(outcome))])

    def _described(self, outcome: SyncOutcome) -> Draft:
        """Return the collection itself, with the manifest's description and the state of the source at this sync."""
        package, manifest, before = self._package, self._package.manifest, self._before
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
            "failed": len(outcome.failed),
        }
        fields["metadata"] = dict(manifest.metadata if manifest else before.get("metadata", {}))
        return Draft("collection", self._source.key, title=str(fields["name"]), fields=fields)


def _failure(sentence: str) -> Refusal:
    """Return the refusal of a document that fails now: its last good version stays."""
    return Refusal(sentence, stays=True, failed=True)


def format_name(document: PackageDocument) -> str:
    """Return the name that tells a document's format: its file's, or a .md name where that tells none."""
    name = document.file.path if document.file is not None else urlsplit(document.url).path
    return name if reader_of(name) != reader_of("") else f"{name}.md"


def reader_stamp(document: PackageDocument) -> str:
    """Return the stamp of the reader that would read a document now."""
    return stamp_of(reader_of(format_name(document)))


def stamp_for(document: PackageDocument, validators: Validators) -> str:
    """Return the whole stamp of a document, to be stored as `FileRecord.reader`.

    It has one part a line: the reader's stamp and, over HTTP, ETag, Last-Modified, address, fingerprint of the place.
    """
    stamp = reader_stamp(document)
    if not document.url:
        return stamp
    address = without_credentials(document.url)
    return "\n".join((stamp, validators.etag, validators.modified, address, validators.place))


def stored_reader_stamp(record: FileRecord) -> str:
    """Return the stamp of the reader that a document was read with."""
    return record.reader.partition("\n")[0]


def stored_validators(record: FileRecord) -> Validators:
    """Return what the server said of a document when it was read."""
    _, etag, modified, _, place = (*record.reader.split("\n"), "", "", "", "")[:5]
    return Validators(etag, modified, place)


def stored_address(record: FileRecord) -> str:
    """Return the address that a document was read from, without credentials, or ""."""
    _, _, _, address = (*record.reader.split("\n"), "", "", "")[:4]
    return address
