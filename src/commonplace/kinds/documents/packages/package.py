"""Open a source: read its manifest, list its documents and read them, or find that it is as at the last sync."""

from __future__ import annotations

import codecs
import io
import os
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import IO
from urllib.parse import urljoin, urlsplit

from commonplace.errors import CommonplaceError, InvalidInput, NotFound, TooLarge
from commonplace.ingest.files.read import EMPTY, FileText, Skipped, read_text
from commonplace.kinds.documents.folders.walk import FileStat, code_of
from commonplace.kinds.documents.packages.fetch import Fetched, Validators, Web
from commonplace.kinds.documents.packages.git import Repository
from commonplace.kinds.documents.packages.manifest import (
    LARGEST,
    ManifestLocation,
    PackageDocument,
    PackageListing,
    PackageManifest,
    implied,
    list_documents,
    read_manifest,
)
from commonplace.kinds.documents.packages.package_paths import MANIFEST, EntryRefused, LeftOut
from commonplace.kinds.documents.packages.source import ARCHIVE_ENDINGS, PackageSource
from commonplace.kinds.documents.packages.tree import MIB, Archive, FolderTree, Tree
from commonplace.network import require_allowed
from commonplace.settings import Settings
from commonplace.text.outline import outline_of

BLANK = "The file has nothing but white space."
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@dataclass(frozen=True, slots=True)
class PackageRequest:
    """A source to open, and its state at the last sync, where an unchanged one need not be read.

    `clones` is the folder of the clones of repositories. What is fetched for the moment lies beside it, since /tmp may
    be in memory or missing.
    """

    source: PackageSource
    glob: tuple[str, ...]
    exclude: tuple[str, ...]
    settings: Settings
    clones: Path
    commit: str = ""
    archive: str = ""
    """The SHA-256 of an archive."""
    validators: Validators = Validators()
    """The validators of an archive's address."""


@dataclass(frozen=True, slots=True)
class Content:
    """The bytes of a document; None where its server says that they have not changed."""

    data: bytes | None
    file: FileStat | None = None
    validators: Validators = Validators()


@dataclass(slots=True)
class Package:
    """The content of a source now. Without a manifest, the source is the same as at the last sync, byte for byte."""

    manifest: PackageManifest | None = None
    listing: PackageListing = field(default_factory=PackageListing)
    commit: str = ""
    archive: str = ""
    validators: Validators = Validators()
    tree: Tree | None = None
    web: Web = field(default_factory=Web)
    most: int = 16 * MIB
    """The most bytes of one document."""
    most_in_all: int = 512 * MIB
    """The most bytes of all documents together."""

    def read(
        self, documents: Sequence[PackageDocument], known: dict[str, Validators]
    ) -> Iterator[tuple[PackageDocument, Content | EntryRefused | LeftOut]]:
        """Yield each document with its content, in any order. `known` are the validators of the last sync, by id."""
        yield from self._read_files([document for document in documents if document.file is not None])
        left = self.most_in_all
        for document in documents:
            if document.url:
                content = self._fetch(document, known.get(document.id, Validators()), left)
                left -= len(content.data or b"") if isinstance(content, Content) else 0
                yield document, content

    def _read_files(
        self, documents: Sequence[PackageDocument]
    ) -> Iterator[tuple[PackageDocument, Content | EntryRefused | LeftOut]]:
        if self.tree is None:
            return
        by_path: dict[str, list[PackageDocument]] = {}
        for document in documents:
            if document.file is not None:
                by_path.setdefault(document.file.path, []).append(document)
        files = [same[0].file for same in by_path.values() if same[0].file is not None]
        for file, content in self.tree.contents(files):
            for document in by_path[file.path]:
                yield document, Content(content, file) if isinstance(content, bytes) else content

    def _fetch(self, document: PackageDocument, known: Validators, left: int) -> Content | EntryRefused:
        if left <= 0:
            return EntryRefused(f"The package has more than {self.most_in_all // MIB} MiB, which are the most.")
        into, most = io.BytesIO(), min(self.most, left)
        try:
            fetched = self.web.fetch(document.url, into, most=most, known=known)
        except TooLarge as error:
            setting = "package_file_mb" if most == self.most else "package_total_mb"
            return EntryRefused(f"{error} Split it, or raise {setting}.")
        except CommonplaceError as error:
            return EntryRefused(str(error))
        return Content(into.getvalue() if fetched.is_new else None, validators=fetched.validators)


@contextmanager
def open_package(request: PackageRequest) -> Iterator[Package]:
    """Open a source for the block. Raise a CommonplaceError where the source as a whole cannot be read."""
    source, settings = request.source, request.settings
    package = Package(most=settings.package_file_mb * MIB, most_in_all=settings.package_total_mb * MIB)
    package.web = Web(source.url if source.host else "", offline=settings.offline)
    if source.kind == "repository":
        _open_repository(package, request)
        yield package
    elif source.kind == "archive":
        beside = request.clones.parent
        with tempfile.TemporaryFile(dir=beside) if source.path is None else _opened(source.path) as file:
            _open_archive(package, request, file)
            yield package
    elif source.path is not None:
        _open_folder(package, request, source.path)
        yield package
    else:
        _open_address(package, request)
        yield package


def _open_folder(package: Package, request: PackageRequest, path: Path) -> None:
    root = path if request.source.kind == "folder" else path.parent
    file = root / MANIFEST if request.source.kind == "folder" else path
    if not root.is_dir():
        raise NotFound(f"There is no folder {root}.")
    tree = package.tree = FolderTree(str(root), package.most)
    if request.source.kind == "manifest" or os.path.lexists(file):
        with _opened(file) as stream:
            package.manifest = _manifest(stream.read(LARGEST + 1), request, str(file))
    else:
        package.manifest = implied(root.name or "root", request.glob, request.exclude)
    try:
        package.listing = list_documents(package.manifest, ManifestLocation(tree, file.name, root=str(root)))
    except OSError as error:
        raise NotFound(f"{root} cannot be read ({code_of(error)}).") from None


def _open_archive(package: Package, request: PackageRequest, file: IO[bytes]) -> None:
    source = request.source
    if source.path is None:
        fetched = package.web.fetch(source.url, file, most=package.most_in_all, known=request.validators)
        package.validators = fetched.validators
        if not fetched.is_new:
            package.archive = request.archive
            return
    archive = Archive(file, source.shown, request.settings)
    package.archive = archive.sha256
    if archive.sha256 == request.archive:
        return
    archive.survey()
    places = archive.manifests(MANIFEST)
    if len(places) > 1:
        raise InvalidInput(f"{source.shown} has a {MANIFEST} in each of {', '.join(places)}. Keep one, at its root.")
    package.tree = archive
    if places:
        archive.root = places[0]
        package.manifest = _manifest(_whole(archive, MANIFEST), request, f"{MANIFEST} of {source.shown}")
    else:
        package.manifest = implied(_stem(source), request.glob, request.exclude)
    package.listing = list_documents(package.manifest, ManifestLocation(archive, MANIFEST))


def _open_repository(package: Package, request: PackageRequest) -> None:
    source = request.source
    if source.host:
        require_allowed(source.host, source.shown, offline=request.settings.offline)
    repository = Repository(source, request.clones / source.key, request.settings)
    package.commit = repository.resolve()
    if package.commit and package.commit == request.commit:
        return
    package.commit = repository.fetch(package.commit)
    if package.commit == request.commit:
        return
    repository.survey(package.commit)
    package.tree = repository
    path = source.manifest or MANIFEST
    if repository.has(path):
        repository.root = path.rpartition("/")[0]
        name = path.rpartition("/")[2]
        package.manifest = _manifest(_whole(repository, name), request, f"{path} of {source.shown}")
    elif source.manifest:
        raise NotFound(f"{source.shown} has no file {path}.")
    else:
        package.manifest = implied(_stem(source), request.glob, request.exclude)
    package.listing = list_documents(package.manifest, ManifestLocation(repository, path.rpartition("/")[2]))


def _open_address(package: Package, request: PackageRequest) -> None:
    into = io.BytesIO()
    fetched: Fetched = package.web.fetch(request.source.url, into, most=LARGEST)
    manifest = package.manifest = _manifest(into.getvalue(), request, request.source.shown)
    if manifest.globs is not None:
        raise InvalidInput(
            f"{request.source.shown}: sources.glob needs a folder; a web server cannot be listed. Use files."
        )
    base = urljoin(fetched.address, manifest.base_url or ".")
    if urlsplit(base).scheme not in ("http", "https"):
        raise InvalidInput(f"{request.source.shown}: baseUrl is no http or https address.")
    package.listing = list_documents(manifest, ManifestLocation(base=base if base.endswith("/") else base + "/"))


def _manifest(data: bytes, request: PackageRequest, place: str) -> PackageManifest:
    if len(data) > LARGEST:
        raise InvalidInput(f"{place} is larger than {LARGEST // MIB} MiB, which no manifest is.")
    if request.glob or request.exclude:
        raise InvalidInput(f"{place} says what the documents are. Take glob and exclude out of the declaration.")
    return read_manifest(data, place, most=request.settings.package_members)


def _whole(tree: Tree, path: str) -> bytes:
    """Return the bytes of a file. Raise InvalidInput where it cannot be read."""
    try:
        ((_, data),) = tree.contents([tree.look(path)])
    except (EntryRefused, LeftOut) as error:
        raise InvalidInput(f"{path} cannot be read: {error}") from None
    if not isinstance(data, bytes):
        raise InvalidInput(f"{path} cannot be read: {data}")
    return data


def _stem(source: PackageSource) -> str:
    """Return the last part of a source's address without its ending."""
    name = urlsplit(source.url).path.rstrip("/").rpartition("/")[2] or "package"
    for ending in (*ARCHIVE_ENDINGS, ".git"):
        name = name.removesuffix(ending)
    return name or "package"


def _opened(path: Path) -> IO[bytes]:
    """Return a stream of a regular file. Raise NotFound where it cannot be read."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe would be waited for, and a device has no end
            raise NotFound(f"{path} cannot be read: it is no regular file.")
        return open(path, "rb")
    except OSError as error:
        raise NotFound(f"{path} cannot be read: {error.strerror}.") from None


def document_text(data: bytes, name: str) -> FileText:
    """Return the text of a file, whose name tells its format. A NUL byte makes it binary, except in UTF-16 with a BOM.

    The title is empty where it would only repeat the name: a document is not found by its name. Raise LeftOut for a
    file of white space, EntryRefused for one that cannot be read as text.
    """
    if b"\0" in data and not data.startswith(_UTF_16):
        raise EntryRefused("The file is binary: it has NUL bytes.")
    try:
        text = read_text(data, name)
    except Skipped as skipped:
        if str(skipped) == EMPTY:
            raise LeftOut(BLANK) from None
        raise EntryRefused(f"The file cannot be read as text ({skipped}).") from None
    if text.title == PurePosixPath(name).stem and not outline_of(text.body, text.format).title:
        return replace(text, title="")
    return text
