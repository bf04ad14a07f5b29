"""Pack a folder with a manifest into one archive: the same bytes for the same content, anywhere and at any time."""

from __future__ import annotations

import gzip
import hashlib
import io
import re
import tarfile
from dataclasses import dataclass, replace
from pathlib import Path

from commonplace.errors import AlreadyExists, Command, Denied, InvalidInput, NotFound, TooLarge
from commonplace.index.sealed_files import room_on_disk, write_atomically
from commonplace.kinds.documents.packages.manifest import (
    ManifestEntry,
    PackageDocument,
    PackageManifest,
    implied,
    written,
)
from commonplace.kinds.documents.packages.package import Content, Package, PackageRequest, document_text, open_package
from commonplace.kinds.documents.packages.package_paths import MANIFEST, EntryRefused, LeftOut, inner_path
from commonplace.kinds.documents.packages.source import PackageSource, read_source
from commonplace.settings import Settings

_UNFIT = re.compile(r"[^A-Za-z0-9._+-]+")


@dataclass(frozen=True, slots=True)
class Packed:
    """An archive in memory, and the file it is for."""

    file: Path
    data: bytes
    names: tuple[str, ...]
    """The paths in it, without the manifest."""
    skipped: tuple[tuple[str, str], ...]
    """(id, reason) of files that are no documents."""

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()


def pack(folder: Path, output: Path | None, settings: Settings) -> Packed:
    """Return the archive of a folder's package, made in memory.

    Raise NotFound where the folder or its manifest is missing, InvalidInput where any file cannot be taken, and
    TooLarge where the files together have more than `package_total_mb`.
    """
    source = read_source(str(folder), Path.cwd())
    if source.kind != "folder" or source.path is None or not source.path.is_dir():
        raise NotFound(f"There is no folder {folder}.")
    if not (source.path / MANIFEST).exists():
        raise NotFound(
            f"{source.path} has no {MANIFEST}. Make one with `", Command("collections init --manifest"), "`."
        )
    with open_package(PackageRequest(source, (), (), settings, Path())) as package:
        manifest = package.manifest or implied(source.path.name)
        files, skipped = _files(package, source)
        entries = _entries(package, files)
    names = {entry.path: files[entry.id or entry.path] for entry in entries if entry.path}
    data = _archive(manifest, entries, names)
    return Packed(output or Path(_file_name(manifest)), data, tuple(sorted(names)), tuple(sorted(skipped.items())))


def save(packed: Packed, *, force: bool) -> None:
    """Write an archive to its file, all or nothing. Raise AlreadyExists unless `force` is set, or Denied."""
    if packed.file.exists() and not force:
        raise AlreadyExists(f"{packed.file} is there already. Use --force to replace it.")
    try:
        with room_on_disk(packed.file.parent):
            write_atomically(packed.file, packed.data)
    except OSError as error:
        raise Denied(f"{packed.file} cannot be written: {error.strerror}.") from None


def _files(package: Package, source: PackageSource) -> tuple[dict[str, bytes], dict[str, str]]:
    """Return the bytes of every document that is a file, and the reasons why others are no documents, by id."""
    files: dict[str, bytes] = {}
    left = package.most_in_all
    skipped = dict(package.listing.skipped)
    failed = dict(package.listing.failed)
    for listed, content in package.read([each for each in package.listing.documents.values() if each.file], {}):
        try:
            files[listed.id] = _checked(listed, content)
            left -= len(files[listed.id])
        except EntryRefused as refused:
            failed[listed.id] = str(refused)
        except LeftOut as reason:
            skipped[listed.id] = str(reason)
        if left < 0:
            raise TooLarge(f"{source.shown} has more than {package.most_in_all >> 20} MiB. Raise package_total_mb.")
    if failed:
        reasons = "; ".join(f"{name}: {sentence}" for name, sentence in sorted(failed.items())[:5])
        raise InvalidInput(f"{source.shown} cannot be packed, {len(failed)} of its files fail: {reasons}")
    return files, skipped


def _checked(listed: PackageDocument, content: Content | EntryRefused | LeftOut) -> bytes:
    """Return the bytes of a document. Raise EntryRefused or LeftOut where it cannot be one."""
    if isinstance(content, EntryRefused | LeftOut):
        raise content
    data = content.data or b""
    if listed.hash and hashlib.sha256(data).hexdigest() != listed.hash:
        raise EntryRefused("The file does not match its hash.")
    if listed.file and inner_path(listed.file.path) == MANIFEST:
        raise EntryRefused("The manifest is written anew, so it cannot be a document too.")
    document_text(data, listed.file.path if listed.file else listed.id)
    return data


def _entries(package: Package, files: dict[str, bytes]) -> list[ManifestEntry]:
    entries = []
    for listed in package.listing.documents.values():
        if listed.file is not None and listed.id in files:
            digest = hashlib.sha256(files[listed.id]).hexdigest()
            entry = ManifestEntry(path=listed.file.path, id=listed.id, hash=digest)
            entries.append(entry if listed.id != listed.file.path else replace(entry, id=""))
        elif listed.url:
            entries.append(
                ManifestEntry(url=listed.url, id=listed.id if listed.id != listed.url else "", hash=listed.hash)
            )
    return sorted(entries, key=lambda entry: (entry.path, entry.url, entry.id))


def _archive(manifest: PackageManifest, entries: list[ManifestEntry], files: dict[str, bytes]) -> bytes:
    into = io.BytesIO()
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=into, compresslevel=9, mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for name, data in sorted({**files, MANIFEST: written(manifest, iter(entries))}.items()):
            member = tarfile.TarInfo(name)  # time, owner and group are zero, and stay so
            member.size, member.mode = len(data), 0o644
            archive.addfile(member, io.BytesIO(data))
    return into.getvalue()


def _file_name(manifest: PackageManifest) -> str:
    parts = (_UNFIT.sub("-", part).strip("-.") or "package" for part in (manifest.name, manifest.version))
    return f"{'-'.join(parts)}.tar.gz"
