"""ZIP files from anywhere: nothing is unpacked to disk, and no entry can cost more memory than was allowed."""

from __future__ import annotations

import stat
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import IO, BinaryIO

MOST_ENTRIES = 100_000
LARGEST_ENTRY = 64 * 1024 * 1024
"""Of a document: a chapter, or the text of a Word file."""
_LINKS = stat.S_IFLNK


class BadZip(ValueError):
    """An archive that is refused. The message says why."""


@contextmanager
def opened(stream: BinaryIO) -> Iterator[zipfile.ZipFile]:
    """Yield a ZIP file whose entries are all safe to name: none points outside, none is a link, none is encrypted.

    Raise BadZip for any other.
    """
    try:
        archive = zipfile.ZipFile(stream)
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError) as error:
        raise BadZip("it is a damaged archive") from error
    with archive:
        entries = archive.infolist()
        if len(entries) > MOST_ENTRIES:
            raise BadZip(f"it holds more than {MOST_ENTRIES:,} files")
        for entry in entries:
            _check(entry)
        yield archive


def entry_bytes(archive: zipfile.ZipFile, name: str, most: int = LARGEST_ENTRY) -> bytes:
    """Return an entry. Raise BadZip for one that is refused, KeyError when there is none of that name."""
    info = archive.getinfo(name)
    if info.file_size > most:
        raise BadZip(f'its entry "{name}" unpacks to more than {most:,} bytes')
    try:
        with archive.open(info) as stream:
            return bounded(stream, most, name)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError, ValueError) as error:
        if isinstance(error, BadZip):
            raise
        raise BadZip(f'its entry "{name}" is damaged') from error


def bounded(stream: IO[bytes], most: int, name: str) -> bytes:
    """Return the bytes of a stream.

    Raise BadZip for more than `most`: what an archive says about sizes need not be true.
    """
    data = stream.read(most + 1)
    if len(data) > most:
        raise BadZip(f'its entry "{name}" unpacks to more than {most:,} bytes')
    return data


def is_link(entry: zipfile.ZipInfo) -> bool:
    return stat.S_IFMT(entry.external_attr >> 16) == _LINKS


def _check(entry: zipfile.ZipInfo) -> None:
    name = entry.filename.replace("\\", "/")
    path = PurePosixPath(name)
    if ".." in path.parts or path.is_absolute() or name[1:2] == ":":
        raise BadZip(f'its entry "{entry.filename}" points outside the archive')
    if is_link(entry):
        raise BadZip(f'its entry "{entry.filename}" is a link')
    if entry.flag_bits & 0x1:
        raise BadZip("it is encrypted")
