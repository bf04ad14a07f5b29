"""Read and write `manifest.json`: the name of a package, and the files and addresses that are its documents.

Each file is looked at before it is listed.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urljoin, urlsplit

from commonplace.errors import InvalidInput
from commonplace.kinds.documents.folders.walk import FileStat
from commonplace.kinds.documents.packages.package_paths import (
    IMPLIED,
    EntryRefused,
    Globs,
    LeftOut,
    check_globs,
    check_id,
    inner_path,
    printable,
)
from commonplace.kinds.documents.packages.source import unquote_bytes, without_credentials
from commonplace.kinds.documents.packages.tree import Tree
from commonplace.model import JSON

LARGEST = 8 << 20
_HASH = re.compile(r"[0-9a-fA-F]{64}")
_LISTS = ("glob", "exclude", "files")


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    """One element of `sources.files`: it has exactly one of `path` and `url`."""

    path: str = ""
    url: str = ""
    id: str = ""
    hash: str = ""


@dataclass(frozen=True, slots=True)
class PackageManifest:
    """The name and version of a package, and its documents: globs, single files, or both."""

    name: str
    version: str = ""
    description: str = ""
    base_url: str = ""
    metadata: Mapping[str, JSON] = field(default_factory=dict)
    globs: Globs | None = None
    files: tuple[ManifestEntry, ...] = ()


def implied(name: str, take: tuple[str, ...] = (), leave: tuple[str, ...] = ()) -> PackageManifest:
    """Return a manifest for a source without one: all files that `take` matches, by default Markdown and text."""
    return PackageManifest(name, globs=Globs(take or IMPLIED, leave))


def read_manifest(data: bytes, place: str, *, most: int) -> PackageManifest:
    """Return a manifest. Raise InvalidInput, with `place` and the key, where it is none or has over `most` files."""
    given = _table(read_json(data, place), place)
    sources = _table(given.get("sources"), f"{place}: sources")
    for key in sources:
        if key not in _LISTS:
            raise InvalidInput(f"{place}: sources.{key} is not known. sources has {', '.join(_LISTS)}.")
    if "glob" not in sources and "files" not in sources:
        raise InvalidInput(f"{place}: sources has neither glob nor files, so the package has no documents. Add one.")
    files = sources.get("files", [])
    if not isinstance(files, list) or len(files) > most:
        raise InvalidInput(f"{place}: sources.files is a list of at most {most} files.")
    return PackageManifest(
        name=_text(given, "name", place, required=True),
        version=_text(given, "version", place, required=True),
        description=_text(given, "description", place),
        base_url=_text(given, "baseUrl", place),
        metadata=_table(given.get("metadata", {}), f"{place}: metadata"),
        globs=_globs(sources, place),
        files=tuple(_entry(value, f"{place}: sources.files[{at}]") for at, value in enumerate(files)),
    )


def read_json(data: bytes, place: str) -> Any:
    """Return parsed JSON: UTF-8, perhaps with a BOM. Raise InvalidInput, also for a name that an object has twice."""
    try:
        value = json.loads(data.decode("utf-8-sig"), object_pairs_hook=lambda pairs: _once(pairs, place))
        json.dumps(value, ensure_ascii=False).encode()  # an escape such as \ud800 is no character: it cannot be stored
        return value
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{place} is no JSON ({error}). Mend it.") from None


def texts(value: Any, place: str) -> tuple[str, ...]:
    """Return a list of texts as a tuple. Raise InvalidInput where the value is none."""
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise InvalidInput(f"{place} is a list of texts.")
    return tuple(value)


def _once(pairs: list[tuple[str, Any]], place: str) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        names = [name for name, _ in pairs]
        raise InvalidInput(f"{place} has {max(names, key=names.count)!r} twice in one object. Keep one.")
    return record


def _table(value: Any, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidInput(f"{place} is an object in braces.")
    return value


def _text(given: Mapping[str, Any], key: str, place: str, *, required: bool = False) -> str:
    value = given.get(key, "")
    if not isinstance(value, str) or "\0" in value or (required and not value.strip()):
        raise InvalidInput(f"{place}: {key} is a text{' and has to be there' if required else ''}.")
    return value.strip()


def _globs(sources: Mapping[str, Any], place: str) -> Globs | None:
    leave = check_globs(texts(sources.get("exclude", []), f"{place}: sources.exclude"), f"{place}: sources.exclude")
    if "glob" not in sources:
        return None
    take = check_globs(texts(sources["glob"], f"{place}: sources.glob"), f"{place}: sources.glob")
    return Globs(take, leave)


def _entry(value: Any, place: str) -> ManifestEntry:
    if isinstance(value, str):
        return ManifestEntry(path=value)
    given = _table(value, place)
    for key, inner in given.items():
        if key not in ("path", "url", "id", "hash"):
            raise InvalidInput(f"{place}.{key} is not known. An entry has path or url, id and hash.")
        if not isinstance(inner, str) or not inner:
            raise InvalidInput(f"{place}.{key} is a text.")
    if ("path" in given) == ("url" in given):
        raise InvalidInput(f"{place} has exactly one of path and url.")
    if "hash" in given and not _HASH.fullmatch(given["hash"]):
        raise InvalidInput(f"{place}.hash is a SHA-256 in 64 hexadecimal digits.")
    return ManifestEntry(**{**given, "hash": given.get("hash", "").lower()})


def written(manifest: PackageManifest, entries: Iterator[ManifestEntry]) -> bytes:
    """Return the bytes of a manifest that lists these files one by one: the same bytes for the same package."""
    optional = {"description": manifest.description, "baseUrl": manifest.base_url, "metadata": dict(manifest.metadata)}
    record: dict[str, JSON] = {"name": manifest.name, "version": manifest.version}
    record |= {key: value for key, value in optional.items() if value}
    files = [{key: value for key, value in _fields(entry) if value} for entry in entries]
    record["sources"] = {"files": files}
    return (json.dumps(record, ensure_ascii=False, indent=2) + "\n").encode()


def _fields(entry: ManifestEntry) -> tuple[tuple[str, str], ...]:
    return ("path", entry.path), ("url", entry.url), ("id", entry.id), ("hash", entry.hash)


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
