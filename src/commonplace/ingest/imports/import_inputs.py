"""The files that a path names: a file, those of a folder, or those inside a ZIP."""

from __future__ import annotations

import io
import os
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path, PurePath, PurePosixPath
from typing import BinaryIO

from commonplace.ingest.files.zipped import BadZip, opened
from commonplace.ingest.imports.import_file import ImportFile, Record, Relay, Unreadable
from commonplace.store.base import Store
from commonplace.store.import_sources import ImportSource, ImportSources
from commonplace.store.items import Items
from commonplace.store.lasting_names import LastingNames

EXPANSION = 4
"""An archive may unpack to so many times what one file may have."""


@dataclass(frozen=True, slots=True)
class ArchiveLimits:
    """The bounds of what may be read: of one file, and of all that an archive unpacks to."""

    file_bytes: int

    @property
    def archive_bytes(self) -> int:
        return EXPANSION * self.file_bytes

    def check(self, size: int) -> None:
        if size > self.file_bytes:
            raise Unreadable(
                f"it has {size:,} bytes, more than the {self.file_bytes:,} of import_max_bytes; raise that setting"
            )


def file_source(path: Path, beside: frozenset[str] | None = None) -> ImportFile:
    """Return a file on disk. Raise Unreadable when it is not there, may not be read, or can be read only once."""
    try:
        status = path.stat()
        names = beside if beside is not None else frozenset(_files_in(path.parent))
    except OSError as error:
        raise Unreadable(said_of(error)) from None
    if not stat.S_ISREG(status.st_mode):
        raise Unreadable("it is a pipe or a device; save what comes from it in a file, and import that")

    def read() -> BinaryIO:
        try:
            return path.open("rb")
        except OSError as error:
            raise Unreadable(said_of(error)) from None

    return ImportFile(named(path), _identity(path), status.st_size, read, names)


def folder_sources(root: Path, closed: Callable[[OSError], None]) -> Iterator[ImportFile]:
    """Yield every file under a folder by name, links and hidden ones left out.

    `closed` is called for folders that are shut.
    """
    for folder, folders, names in os.walk(root, onerror=closed, followlinks=False):
        folders[:] = sorted(name for name in folders if not _is_hidden(name) and not (Path(folder) / name).is_symlink())
        beside = frozenset(names)
        for name in sorted(names):
            path = Path(folder) / name
            if not _is_hidden(name) and not path.is_symlink() and path.is_file():
                with suppress(Unreadable):  # it was there a moment ago
                    yield file_source(path, beside)


def archive_sources(path: Path, limits: ArchiveLimits, closing: ExitStack) -> list[ImportFile]:
    """Return the files of a ZIP by name, hidden ones left out.

    Raise Unreadable for all of it where one entry is not safe.
    """
    try:
        archive = closing.enter_context(opened(closing.enter_context(path.open("rb"))))
    except BadZip as error:
        raise Unreadable(str(error)) from None
    except OSError as error:
        raise Unreadable(said_of(error)) from None
    entries = [entry for entry in archive.infolist() if not entry.is_dir()]
    if sum(entry.file_size for entry in entries) > limits.archive_bytes:
        raise Unreadable(f"it unpacks to more than {limits.archive_bytes:,} bytes; unpack it and import the folder")
    visible = [entry for entry in entries if not any(map(_is_hidden, _parts(entry)))]
    beside: dict[tuple[str, ...], set[str]] = {}
    for entry in visible:
        beside.setdefault(_parts(entry)[:-1], set()).add(_parts(entry)[-1])
    return [
        _entry_source(archive, entry, path, frozenset(beside[_parts(entry)[:-1]]))
        for entry in sorted(visible, key=lambda entry: entry.filename)
    ]


def named(path: Path) -> str:
    """Return a path as text that can be printed and stored. Bytes of a name that are no UTF-8 become escapes."""
    return str(path).encode("utf-8", "backslashreplace").decode("utf-8")


def _identity(path: Path) -> str:
    return PurePath(named(path.resolve() if ".." in path.parts else path.absolute())).as_posix()


def is_archive(path: Path) -> bool:
    return path.suffix.lower() == ".zip"


def _entry_source(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, path: Path, beside: frozenset[str]) -> ImportFile:
    name = "/".join(_parts(entry))

    def read() -> BinaryIO:
        try:
            return io.BufferedReader(_Checked(archive.open(entry)))
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError) as error:
            raise Unreadable("it is damaged inside its archive") from error

    return ImportFile(f"{named(path)}/{name}", f"{_identity(path)}/{name}", entry.file_size, read, beside)


class _Checked(Relay):
    """A stream of an entry's bytes. What is wrong with its packing is said as Unreadable."""

    def _next(self, size: int) -> bytes:
        try:
            return super()._next(size)
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError) as error:
            raise Unreadable("it is damaged inside its archive") from error


def _parts(entry: zipfile.ZipInfo) -> tuple[str, ...]:
    return PurePosixPath(entry.filename.replace("\\", "/")).parts


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or name == "__MACOSX"


def _files_in(folder: Path) -> list[str]:
    with os.scandir(folder) as entries:
        return [entry.name for entry in entries if entry.is_file()]


def said_of(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "there is no such file or folder"
    if isinstance(error, PermissionError):
        return "it may not be read"
    return f"it cannot be read ({error.strerror or error})"


def remembered(store: Store, record: Record, path: str, position: str, mark: bytes) -> ImportSource | None:
    """Return what came from a place before; else the very same record from another, which has moved."""
    source = store.drawer(ImportSources).find(record["kind"], path, position)
    if source is None and (same := _same_elsewhere(store, record, mark)):
        source = same._replace(path=path, position=position)
        store.drawer(ImportSources).keep(source)
    return source


def _same_elsewhere(store: Store, record: Record, mark: bytes) -> ImportSource | None:
    """Return where a record came from last, whatever has been made of its item in the library since."""
    kind = record["kind"]
    if "id" in record:
        item = store.drawer(Items).find(kind, None, str(record["id"]), body=False)
        candidates = [item.id] if item else []
    else:
        candidates = store.drawer(LastingNames).named(kind, str(record.get("title") or record.get("name") or ""))
    for candidate in candidates:
        latest = max(store.drawer(ImportSources).of(candidate), key=lambda one: one.version, default=None)
        if latest and latest.hash == mark:
            return latest
    return None


def is_shared(store: Store, source: ImportSource) -> bool:
    """Return whether another file that is still there was alike and became the same item: from now on they are two."""
    others = [one for one in store.drawer(ImportSources).of(source.item_id) if one[:3] != source[:3]]
    return any(one.path == source.path or Path(one.path).exists() for one in others)


def was_imported(store: Store, item_id: int, version: int) -> bool:
    """Return whether a version of an item came from a file. Otherwise somebody made or edited it in the library."""
    return any(one.version == version for one in store.drawer(ImportSources).of(item_id))
