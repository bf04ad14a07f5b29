"""List the documents of a package from its manifest's globs and files. Each file is looked at before it is listed."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, urljoin, urlsplit

from commonplace.kinds.documents.folders.walk import FileStat
from commonplace.kinds.documents.packages.manifest import ManifestEntry, PackageManifest
from commonplace.kinds.documents.packages.places import EntryRefused, LeftOut, check_id, inner_path, printable
from commonplace.kinds.documents.packages.source import unquote_bytes, without_credentials
from commonplace.kinds.documents.packages.sources.tree import Tree


@dataclass(frozen=True, slots=True)
class PackageDocument:
    """One document of a package: a file of its tree, or an address."""

    id: str
    file: FileStat | None = None
    url: str = ""
    hash: str = ""

    @property
    def place(self) -> str:
        """Return the path or address it is read from, without credentials."""
        return self.file.path if self.file is not None else without_credentials(self.url)


@dataclass(slots=True)
class PackageListing:
    """The documents that a manifest names, and the entries that are none."""

    documents: dict[str, PackageDocument] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    """The sentence that says why an entry cannot be taken, by its id."""
    skipped: dict[str, str] = field(default_factory=dict)
    """The reason why an entry is no document, which is no failure, by its id."""


@dataclass(frozen=True, slots=True)
class ManifestLocation:
    """The place of a manifest, which decides what it may name."""

    tree: Tree | None = None
    """The files beside it; None over HTTP, where nothing can be listed."""
    manifest: str = ""
    """The path from the package root; the manifest is no document of its own globs."""
    root: str = ""
    """The package's folder, where that is on this machine: a `file:` address may name files below it. Else ""."""
    base: str = ""
    """The address that entries are relative to, over HTTP, with a slash at its end."""


def list_documents(manifest: PackageManifest, place: ManifestLocation) -> PackageListing:
    """Return all documents that the manifest names. An entry that cannot be taken fails alone."""
    listing = PackageListing()
    if manifest.globs is not None and place.tree is not None:
        for path in place.tree.names(manifest.globs):
            if path != place.manifest:
                _take(listing, path, _file_finder(place.tree, path, path, ""))
        for folder in place.tree.unlisted:
            listing.failed[printable(folder)] = "The folder cannot be read."
    for entry in manifest.files:
        _take(listing, _id_of(entry, place), _entry_finder(entry, place))
    return listing


def _take(listing: PackageListing, id: str, find: Callable[[], PackageDocument]) -> None:
    """Add an entry to the listing, or the reason why it is no document.

    No entry with the id of a failed one is a document: nobody knows which of them is meant.
    """
    try:
        document = find()
        known = listing.documents.get(check_id(document.id))
        if known is not None:
            _check_same(known, document)
    except EntryRefused as refused:
        listing.failed.setdefault(printable(id), str(refused))
        listing.documents.pop(id, None)
    except LeftOut as left:
        listing.skipped[printable(id)] = str(left)
    else:
        if document.id not in listing.failed:
            listing.documents[document.id] = document if document.hash or known is None else known


def _check_same(one: PackageDocument, other: PackageDocument) -> None:
    """Raise EntryRefused where two entries with one id are not the same file."""
    if one.place != other.place:
        first, second = sorted((one.place, other.place))
        raise EntryRefused(f"The id is listed twice, for different files: {first} and {second}. Keep one.")
    if one.hash and other.hash and one.hash != other.hash:
        raise EntryRefused("The file is listed twice, with different hashes. Keep one.")


def _id_of(entry: ManifestEntry, place: ManifestLocation) -> str:
    """Return the id of an entry's document, also where the entry fails; where it gives no id, the text of the entry."""
    if entry.id:
        return entry.id
    try:
        if entry.url:
            return without_credentials(urljoin(place.base, entry.url) if place.base else entry.url)
        return inner_path(entry.path)
    except (EntryRefused, ValueError):
        return entry.path or without_credentials(entry.url)


def _file_finder(tree: Tree, path: str, id: str, hash: str) -> Callable[[], PackageDocument]:
    return lambda: PackageDocument(check_id(id), tree.look(path), hash=hash)


def _entry_finder(entry: ManifestEntry, place: ManifestLocation) -> Callable[[], PackageDocument]:
    return lambda: _by_address(entry, place) if entry.url else _by_path(entry, place)


def _by_path(entry: ManifestEntry, place: ManifestLocation) -> PackageDocument:
    path = inner_path(entry.path)
    if place.tree is not None:
        return _file_finder(place.tree, path, entry.id or path, entry.hash)()
    return PackageDocument(entry.id or path, url=place.base + quote(path), hash=entry.hash)


def _by_address(entry: ManifestEntry, place: ManifestLocation) -> PackageDocument:
    try:
        url = urljoin(place.base, entry.url) if place.base else entry.url
        scheme, host = urlsplit(url).scheme, urlsplit(url).hostname
    except ValueError:
        raise EntryRefused("This is no address.") from None
    id = entry.id or without_credentials(url)
    if scheme in ("http", "https") and host:
        return PackageDocument(id, url=url, hash=entry.hash)
    if scheme == "file" and place.root and place.tree is not None:
        return _file_finder(place.tree, _below(url, place.root), id, entry.hash)()
    raise EntryRefused(
        "A package names files of its own and http(s) addresses, nothing else"
        + (f": not {scheme}:." if scheme else ". Write the whole address.")
    )


def _below(url: str, root: str) -> str:
    """Return the path of a `file:` address from the package root. Raise EntryRefused where it leads outside."""
    real = Path(os.path.realpath(os.fsdecode(unquote_bytes(urlsplit(url).path).replace(b"\0", b""))))
    try:
        return real.relative_to(root).as_posix()
    except ValueError:
        raise EntryRefused("The address leaves the package.") from None
