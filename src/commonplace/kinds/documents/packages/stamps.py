"""The stamp of a document of a package: how it was read, and over HTTP also from which address and what was said of it.

It is `FileRecord.reader`, one part a line: the reader's stamp, ETag, Last-Modified, address, fingerprint of the place.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from commonplace.ingest.files.read import reader_of, stamp_of
from commonplace.kinds.documents.packages.fetch import Validators
from commonplace.kinds.documents.packages.manifest import PackageDocument
from commonplace.kinds.documents.packages.source import without_credentials
from commonplace.store.rows import FileRecord


def format_name(document: PackageDocument) -> str:
    """Return the name that tells a document's format: its file's, or a .md name where that tells none."""
    name = document.file.path if document.file is not None else urlsplit(document.url).path
    return name if reader_of(name) != reader_of("") else f"{name}.md"


def reader_stamp(document: PackageDocument) -> str:
    """Return the stamp of the reader that would read a document now."""
    return stamp_of(reader_of(format_name(document)))


def stamp_for(document: PackageDocument, validators: Validators) -> str:
    """Return the whole stamp of a document, to be stored in its record."""
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
