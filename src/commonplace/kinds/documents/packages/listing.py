"""Which documents a package has: its manifest's globs and files, each looked at before it is believed."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import field
from pathlib import Path
from urllib.parse import quote, urljoin, urlsplit

from commonplace.kinds.documents.folders.walk import FileStat
from commonplace.kinds.documents.packages.manifest import ManifestEntry, PackageManifest
from commonplace.kinds.documents.packages.places import EntryRefused, LeftOut, check_id, inner_path, printable
from commonplace.kinds.documents.packages.source import unquote_bytes, without_credentials
from commonplace.kinds.documents.packages.sources.tree import Tree
from commonplace.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class PackageDocument:
    """One document of a package: a file of its tree, or an address."""

    id: str
    file: FileStat | None = None
    url: str = ""
    hash: str = ""

    @property
    def place(self) -> str:
        """Where it is read from, as it may be shown."""
        return self.file.path if self.file is not None else without_credentials(self.url)


@dataclass(slots=True)
class PackageListing:
    documents: dict[str, PackageDocument] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    """Why an entry is none, by its id"""
    skipped: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ManifestLocation:
    """Where a manifest was found, and what it may therefore name."""

    tree: Tree | None = None
    """None: over HTTP, where nothing can be listed."""
    manifest: str = ""
    """Its path from the package root: it is no document of its own globs."""
    root: str = ""
    """Set where the package is a folder of the user's: a `file:` address may name what is below it."""
    base: str = ""
    """What entries resolve against, over HTTP; a slash at its end."""


def list_documents(manifest: PackageManifest, place: ManifestLocation) -> PackageListing:
    """Everything the manifest names. An entry that cannot be taken fails alone."""
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
    """One entry more. What fails is no document, whichever other entry has the same id: nobody knows which is meant."""
    try:
        found = find()
        known = listing.documents.get(check_id(found.id))
        if known is not None:
            _check_same(known, found)
    except EntryRefused as refused:
        listing.failed.setdefault(printable(id), str(refused))
        listing.documents.pop(id, None)
    except LeftOut as left:
        listing.skipped[printable(id)] = str(left)
    else:
        if found.id not in listing.failed:
            listing.documents[found.id] = found if found.hash or known is None else known


def _check_same(one: PackageDocument, other: PackageDocument) -> None:
    if one.place != other.place:
        first, second = sorted((one.place, other.place))
        raise EntryRefused(f"The id is listed twice, for different files: {first} and {second}. Keep one.")
    if one.hash and other.hash and one.hash != other.hash:
        raise EntryRefused("The file is listed twice, with different hashes. Keep one.")


def _id_of(entry: ManifestEntry, place: ManifestLocation) -> str:
    """The id that an entry gives its document, also where there turns out to be none; as typed where it gives none."""
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
    real = Path(os.path.realpath(os.fsdecode(unquote_bytes(urlsplit(url).path).replace(b"\0", b""))))
    try:
        return real.relative_to(root).as_posix()
    except ValueError:
        raise EntryRefused("The address leaves the package.") from None
