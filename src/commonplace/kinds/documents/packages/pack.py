"""A folder with a manifest as one archive: the same bytes for the same content, wherever and whenever it is made."""

from __future__ import annotations

import gzip
import hashlib
import io
import re
import tarfile
from dataclasses import replace
from pathlib import Path

from commonplace.errors import AlreadyExists, Denied, InvalidInput, NotFound, TooLarge
from commonplace.index.files import room_on_disk, write_atomically
from commonplace.kinds.documents.packages.listing import PackageDocument
from commonplace.kinds.documents.packages.manifest import ManifestEntry, PackageManifest, implied, written
from commonplace.kinds.documents.packages.opening import Content, Package, PackageRequest, open_package
from commonplace.kinds.documents.packages.places import MANIFEST, EntryRefused, LeftOut, inner_path
from commonplace.kinds.documents.packages.reading import document_text
from commonplace.kinds.documents.packages.source import PackageSource, read_source
from commonplace.lazy_dataclass import dataclass
from commonplace.settings import Settings

_UNFIT = re.compile(r"[^A-Za-z0-9._+-]+")


@dataclass(frozen=True, slots=True)
class Packed:
    file: Path
    data: bytes
    names: tuple[str, ...]
    """The files in it, the manifest aside."""
    skipped: tuple[tuple[str, str], ...]

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()


def pack(folder: Path, output: Path | None, settings: Settings) -> Packed:
    """Make the archive of a folder's package, in memory. Any file that cannot be taken refuses all of it."""
    source = read_source(str(folder), Path.cwd())
    if source.kind != "folder" or source.path is None or not source.path.is_dir():
        raise NotFound(f"There is no folder {folder}.")
    if not (source.path / MANIFEST).exists():
        raise NotFound(f"{source.path} has no {MANIFEST}. Make one with `commonplace collections init --manifest`.")
    with open_package(PackageRequest(source, (), (), settings, Path())) as package:
        manifest = package.manifest or implied(source.path.name)
        files, skipped = _files(package, source)
        entries = _entries(package, files)
    names = {entry.path: files[entry.id or entry.path] for entry in entries if entry.path}
    data = _archive(manifest, entries, names)
    return Packed(output or Path(_file_name(manifest)), data, tuple(sorted(names)), tuple(sorted(skipped.items())))


def save(packed: Packed, *, force: bool) -> None:
    """Write it, all or nothing."""
    if packed.file.exists() and not force:
        raise AlreadyExists(f"{packed.file} is there already. Use --force to replace it.")
    try:
        with room_on_disk(packed.file.parent):
            write_atomically(packed.file, packed.data)
    except OSError as error:
        raise Denied(f"{packed.file} cannot be written: {error.strerror}.") from None


def _files(package: Package, source: PackageSource) -> tuple[dict[str, bytes], dict[str, str]]:
    """The bytes of every document that is a file, by id, and what is no document."""
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
        told = "; ".join(f"{name}: {sentence}" for name, sentence in sorted(failed.items())[:5])
        raise InvalidInput(f"{source.shown} cannot be packed, {len(failed)} of its files fail: {told}")
    return files, skipped


def _checked(listed: PackageDocument, content: Content | EntryRefused | LeftOut) -> bytes:
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
    found = []
    for listed in package.listing.documents.values():
        if listed.file is not None and listed.id in files:
            digest = hashlib.sha256(files[listed.id]).hexdigest()
            entry = ManifestEntry(path=listed.file.path, id=listed.id, hash=digest)
            found.append(entry if listed.id != listed.file.path else replace(entry, id=""))
        elif listed.url:
            found.append(
                ManifestEntry(url=listed.url, id=listed.id if listed.id != listed.url else "", hash=listed.hash)
            )
    return sorted(found, key=lambda entry: (entry.path, entry.url, entry.id))


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
