"""A source, opened: its manifest read and its documents listed, or the word that it is as it was."""

from __future__ import annotations

import io
import os
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path
from typing import IO
from urllib.parse import urljoin, urlsplit

from commonplace.errors import CommonplaceError, InvalidInput, NotFound, TooLarge
from commonplace.kinds.documents.folders.walk import FileStat, code_of
from commonplace.kinds.documents.packages.listing import (
    ManifestLocation,
    PackageDocument,
    PackageListing,
    list_documents,
)
from commonplace.kinds.documents.packages.manifest import LARGEST, PackageManifest, implied, read_manifest
from commonplace.kinds.documents.packages.places import MANIFEST, EntryRefused, LeftOut
from commonplace.kinds.documents.packages.source import ARCHIVE_ENDINGS, PackageSource
from commonplace.kinds.documents.packages.sources.archive import Archive
from commonplace.kinds.documents.packages.sources.folder import FolderTree
from commonplace.kinds.documents.packages.sources.git import Repository
from commonplace.kinds.documents.packages.sources.http import Fetched, Validators, Web
from commonplace.kinds.documents.packages.sources.tree import MIB, Tree
from commonplace.lazy_dataclass import dataclass
from commonplace.network import require_allowed
from commonplace.settings import Settings


@dataclass(frozen=True, slots=True)
class PackageRequest:
    """What to open, and what is known of the last time.

    `clones` is where repositories are kept; what is fetched for the moment lies beside it: /tmp may be memory, or none.
    """

    source: PackageSource
    glob: tuple[str, ...]
    exclude: tuple[str, ...]
    settings: Settings
    clones: Path
    commit: str = ""
    archive: str = ""
    validators: Validators = Validators()
    """Of an archive's address"""


@dataclass(frozen=True, slots=True)
class Content:
    """The bytes of a document; None where its server says they are the ones it gave last time."""

    data: bytes | None
    file: FileStat | None = None
    validators: Validators = Validators()


@dataclass(slots=True)
class Package:
    """What a source holds now. Without a manifest: it is, to the byte, what it was at the last sync."""

    manifest: PackageManifest | None = None
    listing: PackageListing = field(default_factory=PackageListing)
    commit: str = ""
    archive: str = ""
    validators: Validators = Validators()
    tree: Tree | None = None
    web: Web = field(default_factory=Web)
    most: int = 16 * MIB
    most_in_all: int = 512 * MIB

    def read(
        self, listed: Sequence[PackageDocument], known: dict[str, Validators]
    ) -> Iterator[tuple[PackageDocument, Content | EntryRefused | LeftOut]]:
        """The content of documents, in any order. `known` is what servers said of addresses last time, by id."""
        yield from self._read_files([each for each in listed if each.file is not None])
        left = self.most_in_all
        for each in listed:
            if each.url:
                content = self._fetch(each, known.get(each.id, Validators()), left)
                left -= len(content.data or b"") if isinstance(content, Content) else 0
                yield each, content

    def _read_files(
        self, listed: Sequence[PackageDocument]
    ) -> Iterator[tuple[PackageDocument, Content | EntryRefused | LeftOut]]:
        if self.tree is None:
            return
        by_path: dict[str, list[PackageDocument]] = {}
        for each in listed:
            if each.file is not None:
                by_path.setdefault(each.file.path, []).append(each)
        files = [same[0].file for same in by_path.values() if same[0].file is not None]
        for file, content in self.tree.contents(files):
            for each in by_path[file.path]:
                yield each, Content(content, file) if isinstance(content, bytes) else content

    def _fetch(self, listed: PackageDocument, known: Validators, left: int) -> Content | EntryRefused:
        if left <= 0:
            return EntryRefused(f"The package has more than {self.most_in_all // MIB} MiB, which are the most.")
        into, most = io.BytesIO(), min(self.most, left)
        try:
            fetched = self.web.fetch(listed.url, into, most=most, known=known)
        except TooLarge as error:
            setting = "package_file_mb" if most == self.most else "package_total_mb"
            return EntryRefused(f"{error} Split it, or raise {setting}.")
        except CommonplaceError as error:
            return EntryRefused(str(error))
        return Content(into.getvalue() if fetched.is_new else None, validators=fetched.validators)


@contextmanager
def open_package(wanted: PackageRequest) -> Iterator[Package]:
    """Raises a CommonplaceError when the source as a whole cannot be read."""
    source, settings = wanted.source, wanted.settings
    package = Package(most=settings.package_file_mb * MIB, most_in_all=settings.package_total_mb * MIB)
    package.web = Web(source.url if source.host else "", offline=settings.offline)
    if source.kind == "repository":
        _open_repository(package, wanted)
        yield package
    elif source.kind == "archive":
        beside = wanted.clones.parent
        with tempfile.TemporaryFile(dir=beside) if source.path is None else _opened(source.path) as file:
            _open_archive(package, wanted, file)
            yield package
    elif source.path is not None:
        _open_folder(package, wanted, source.path)
        yield package
    else:
        _open_address(package, wanted)
        yield package


def _open_folder(package: Package, wanted: PackageRequest, path: Path) -> None:
    root = path if wanted.source.kind == "folder" else path.parent
    file = root / MANIFEST if wanted.source.kind == "folder" else path
    if not root.is_dir():
        raise NotFound(f"There is no folder {root}.")
    tree = package.tree = FolderTree(str(root), package.most)
    if wanted.source.kind == "manifest" or os.path.lexists(file):
        with _opened(file) as opened:
            package.manifest = _manifest(opened.read(LARGEST + 1), wanted, str(file))
    else:
        package.manifest = implied(root.name or "root", wanted.glob, wanted.exclude)
    try:
        package.listing = list_documents(package.manifest, ManifestLocation(tree, file.name, root=str(root)))
    except OSError as error:
        raise NotFound(f"{root} cannot be read ({code_of(error)}).") from None


def _open_archive(package: Package, wanted: PackageRequest, file: IO[bytes]) -> None:
    source = wanted.source
    if source.path is None:
        fetched = package.web.fetch(source.url, file, most=package.most_in_all, known=wanted.validators)
        package.validators = fetched.validators
        if not fetched.is_new:
            package.archive = wanted.archive
            return
    archive = Archive(file, source.shown, wanted.settings)
    package.archive = archive.sha256
    if archive.sha256 == wanted.archive:
        return
    archive.survey()
    places = archive.manifests(MANIFEST)
    if len(places) > 1:
        raise InvalidInput(f"{source.shown} has a {MANIFEST} in each of {', '.join(places)}. Keep one, at its root.")
    package.tree = archive
    if places:
        archive.root = places[0]
        package.manifest = _manifest(_whole(archive, MANIFEST), wanted, f"{MANIFEST} of {source.shown}")
    else:
        package.manifest = implied(_stem(source), wanted.glob, wanted.exclude)
    package.listing = list_documents(package.manifest, ManifestLocation(archive, MANIFEST))


def _open_repository(package: Package, wanted: PackageRequest) -> None:
    source = wanted.source
    if source.host:
        require_allowed(source.host, source.shown, offline=wanted.settings.offline)
    repository = Repository(source, wanted.clones / source.key, wanted.settings)
    package.commit = repository.resolve()
    if package.commit and package.commit == wanted.commit:
        return
    package.commit = repository.fetch(package.commit)
    if package.commit == wanted.commit:
        return
    repository.survey(package.commit)
    package.tree = repository
    path = source.manifest or MANIFEST
    if repository.has(path):
        repository.root = path.rpartition("/")[0]
        name = path.rpartition("/")[2]
        package.manifest = _manifest(_whole(repository, name), wanted, f"{path} of {source.shown}")
    elif source.manifest:
        raise NotFound(f"{source.shown} has no file {path}.")
    else:
        package.manifest = implied(_stem(source), wanted.glob, wanted.exclude)
    package.listing = list_documents(package.manifest, ManifestLocation(repository, path.rpartition("/")[2]))


def _open_address(package: Package, wanted: PackageRequest) -> None:
    into = io.BytesIO()
    fetched: Fetched = package.web.fetch(wanted.source.url, into, most=LARGEST)
    manifest = package.manifest = _manifest(into.getvalue(), wanted, wanted.source.shown)
    if manifest.globs is not None:
        raise InvalidInput(
            f"{wanted.source.shown}: sources.glob needs a folder; a web server cannot be listed. Use files."
        )
    base = urljoin(fetched.address, manifest.base_url or ".")
    if urlsplit(base).scheme not in ("http", "https"):
        raise InvalidInput(f"{wanted.source.shown}: baseUrl is no http or https address.")
    package.listing = list_documents(manifest, ManifestLocation(base=base if base.endswith("/") else base + "/"))


def _manifest(data: bytes, wanted: PackageRequest, place: str) -> PackageManifest:
    if len(data) > LARGEST:
        raise InvalidInput(f"{place} is larger than {LARGEST // MIB} MiB, which no manifest is.")
    if wanted.glob or wanted.exclude:
        raise InvalidInput(f"{place} says what the documents are. Take glob and exclude out of the declaration.")
    return read_manifest(data, place, most=wanted.settings.package_members)


def _whole(tree: Tree, path: str) -> bytes:
    try:
        ((_, data),) = tree.contents([tree.look(path)])
    except (EntryRefused, LeftOut) as error:
        raise InvalidInput(f"{path} cannot be read: {error}") from None
    if not isinstance(data, bytes):
        raise InvalidInput(f"{path} cannot be read: {data}")
    return data


def _stem(source: PackageSource) -> str:
    name = urlsplit(source.url).path.rstrip("/").rpartition("/")[2] or "package"
    for ending in (*ARCHIVE_ENDINGS, ".git"):
        name = name.removesuffix(ending)
    return name or "package"


def _opened(path: Path) -> IO[bytes]:
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe would be waited for, and a device has no end
            raise NotFound(f"{path} cannot be read: it is no regular file.")
        return open(path, "rb")
    except OSError as error:
        raise NotFound(f"{path} cannot be read: {error.strerror}.") from None
