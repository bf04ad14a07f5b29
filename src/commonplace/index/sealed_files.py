"""Files of an index: one writer at a time, commits that are whole or absent, and seals that show damage."""

from __future__ import annotations

import errno
import os
import threading
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from commonplace.errors import Busy, StorageBroken, StorageFull
from commonplace.index.followers import IndexDamaged

if TYPE_CHECKING:
    from filelock import FileLock

LOCK_NAME = "writer.lock"
PART_SUFFIX = ".part"
REBUILDS = 3
"""Rebuilds tried in a row: more than one, because whoever removes a folder does it file by file."""
_READ_BYTES = 1 << 20
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT}
_LEAST_ROOM, _LEAST_FILES = 65_536, 16  # bytes, and files: a commit makes about a dozen
_NOT_ALLOWED = {errno.EACCES, errno.EPERM, errno.EROFS}
_RUN_OUT = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN}  # the last: of threads
REFUSALS = _NO_ROOM | _NOT_ALLOWED | _RUN_OUT
"""Error numbers that say nothing about a file: a sound index must not be thrown away because of them."""


class Sealed(NamedTuple):
    """The state of a file when it was last known to be right. JSON carries it as a list of three."""

    size: int
    mtime_ns: int
    crc32: int


@contextmanager
def writer_lock(folder: Path, timeout: float) -> Iterator[None]:
    """Hold the writer lock of an index folder, among all threads and processes. Raise `Busy` after `timeout` seconds.

    The lock is the operating system's on an open file, so a killed process releases it. It is not reentrant. Raise
    `IndexDamaged` if somebody removes the folder meanwhile.
    """
    from filelock import FileLock, Timeout  # slow to load, and a search of a level index locks nothing

    lock = FileLock(folder / LOCK_NAME, timeout=timeout, poll_interval=0.01)
    try:
        with writable(folder):
            _acquire(lock, folder)
    except Timeout:
        raise Busy(f"Another process is writing the index in {folder}. Try again in a moment.") from None
    try:
        yield
    except FileNotFoundError as error:
        raise IndexDamaged(str(error)) from error
    finally:
        lock.release()


def _acquire(lock: FileLock, folder: Path) -> None:
    """Take the lock; retry for 0.1 s while somebody removes the folder, who may do so between any two steps."""
    for retries_left in reversed(range(100)):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lock.acquire()
        except FileNotFoundError:
            if not retries_left:
                raise
            time.sleep(0.001)
        else:
            return


@contextmanager
def room_on_disk(folder: Path) -> Iterator[None]:
    """Raise `StorageFull` for any error in the block that says the disk is full."""
    try:
        yield
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        raise no_room(folder) from error


def no_room(folder: Path) -> StorageFull:
    """Return the error for a folder on a full disk."""
    return StorageFull(
        f"There is no room left on the disk that holds {folder}. Free some and repeat: nothing stored is lost, "
        "and the index goes on from where it stopped."
    )


def is_full(folder: Path) -> bool:
    """Return True if the disk is almost full: a writer that fails for that reason does not always say so."""
    try:
        disk = os.statvfs(folder)
    except OSError:
        return False
    free_blocks = disk.f_bavail if os.geteuid() else disk.f_bfree
    few_files = disk.f_files > 0 and disk.f_favail < _LEAST_FILES  # where files are not counted, both are 0
    return few_files or free_blocks * disk.f_frsize < _LEAST_ROOM


@contextmanager
def writable(folder: Path) -> Iterator[None]:
    """Raise `StorageFull`, `Busy` or `StorageBroken` for any error in the block that says the folder cannot be used."""
    try:
        with room_on_disk(folder):
            yield
    except OSError as error:
        if error.errno in _RUN_OUT:
            raise Busy(
                f"{folder} cannot be used now: {error.strerror}. Allow this process more, or ask less of it at once, "
                "and repeat: nothing stored is lost, and the index goes on from where it stopped."
            ) from error
        if error.errno not in _NOT_ALLOWED | {errno.EIO}:
            raise
        wrong = "that disk" if error.errno == errno.EIO else "its permissions"
        raise StorageBroken(
            f"{folder} cannot be written to: {error.strerror}. Check {wrong} and repeat: nothing stored is "
            "lost, and the index goes on from where it stopped."
        ) from error


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Raise `IndexDamaged` if the block finds the file missing or unreadable. `REFUSALS` pass as they are."""
    try:
        yield
    except FileNotFoundError:
        raise IndexDamaged(f"{path} is missing") from None
    except OSError as error:
        if error.errno in REFUSALS:
            raise
        raise IndexDamaged(f"{path} cannot be read: {error.strerror or error}") from error


def write_atomically(path: Path, data: bytes) -> None:
    """Replace a file so that a crash at any moment leaves either the old content or the new, on the disk itself."""
    part = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}{PART_SUFFIX}")
    try:
        with part.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder as durable as the contents of its files."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sweep(folder: Path) -> None:
    """Remove the partial files of killed writers. Only for the holder of the writer lock."""
    for part in folder.glob(f"*{PART_SUFFIX}"):
        part.unlink(missing_ok=True)


def seal(folder: Path, names: Iterable[str], known: Mapping[str, Sequence[int]] | None = None) -> dict[str, Sealed]:
    """Return the seals of these files, for `check_seal`. A file that is still as `known` says is not read again."""
    known = known or {}
    return {name: _sealed(folder / name, known.get(name)) for name in names}


def _sealed(path: Path, known: Sequence[int] | None) -> Sealed:
    size, mtime_ns = stamp(path)
    if known is not None and (size, mtime_ns) == tuple(known[:2]):
        return Sealed(*known)
    return Sealed(size, mtime_ns, crc32_of(path, size))


def check_seal(folder: Path, seal: Mapping[str, Sequence[int]], *, thorough: bool = False) -> None:
    """Raise `IndexDamaged` unless every file is as it was sealed.

    A file whose size and time of change are the sealed ones is trusted unread, which makes this cheap enough to do
    at every opening; `thorough` reads them all the same.
    """
    for name, entry in seal.items():
        expected = Sealed(*entry)
        size, mtime_ns = stamp(folder / name)
        if size != expected.size:
            raise IndexDamaged(f"{folder / name} has {size} bytes, not {expected.size}")
        if thorough or mtime_ns != expected.mtime_ns:
            check_content(folder / name, expected)


def check_content(path: Path, expected: Sealed) -> None:
    """Read the sealed part of a file, which may have grown since, and raise `IndexDamaged` if it differs."""
    if crc32_of(path, expected.size) != expected.crc32:
        raise IndexDamaged(f"{path} is not what was written: its checksum differs")


def stamp(path: Path) -> tuple[int, int]:
    """Return the size and modification time (ns) of a file. Raise `IndexDamaged` if it is missing."""
    with readable(path):
        status = os.stat(path)
    return status.st_size, status.st_mtime_ns


def crc32_of(path: Path, size: int) -> int:
    """Return the CRC-32 of the first `size` bytes of a file. Raise `IndexDamaged` if it has fewer."""
    crc, remaining = 0, size
    with readable(path), path.open("rb") as file:
        while remaining and (data := file.read(min(remaining, _READ_BYTES))):
            crc, remaining = zlib.crc32(data, crc), remaining - len(data)
    if remaining:
        raise IndexDamaged(f"{path} ends {remaining} bytes early")
    return crc
