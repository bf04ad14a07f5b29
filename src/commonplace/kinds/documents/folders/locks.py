"""Locks between all who read folders into one library, and the time at which each folder was last walked.

The locks are the operating system's on open files, in a folder beside the library; a process that ends gives its own
back. A folder lies on one machine, and so does a home: each home keeps its own record of walks, also where servers
share a database.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from commonplace.errors import Busy, StorageBroken
from commonplace.index.sealed_files import writable
from commonplace.kinds.documents.folders.folder_collections import Collection

WAIT_S = 3600.0
LOCKS = "locks"
WATCH_LOCK = Path(LOCKS, "watch.lock")
LOOKS = "looks"

log = logging.getLogger(__name__)


@contextmanager
def collection_lock(folder: Path, *names: str, timeout: float = WAIT_S) -> Iterator[None]:
    """Hold the locks on these collections. `folder` is the library's. Raise Busy after `timeout` seconds."""
    from filelock import FileLock, Timeout  # slow to load, and no search needs it

    locks = []
    try:
        for name in sorted(set(names)):
            digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]
            lock = FileLock(folder / LOCKS / f"{digest}.lock", timeout=timeout, poll_interval=0.05)
            with writable(folder):
                _make_locks_folder(folder)
                lock.acquire()
            locks.append(lock)
        yield
    except Timeout:
        raise Busy(f"Another process has been updating {', '.join(names)} for {timeout:.0f} s. Try again.") from None
    finally:
        for lock in locks:
            lock.release()


@contextmanager
def watch_lock(folder: Path, stop: threading.Event, pause: float) -> Iterator[None]:
    """Hold the lock on watching a library's folders, after waiting for another process as long as that takes.

    Tries again every `pause` seconds. Once `stop` is set the block runs without the lock: check `stop` first.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(folder / WATCH_LOCK, timeout=0)
    while not stop.is_set():
        try:
            with writable(folder):
                _make_locks_folder(folder)
                lock.acquire()
        except Timeout:
            stop.wait(pause)
        else:
            break
    try:
        yield
    finally:
        lock.release()


def _make_locks_folder(folder: Path) -> None:
    """Make the folder of the locks. Raise StorageBroken where the library's folder is gone: it is not made anew."""
    try:
        (folder / LOCKS).mkdir(exist_ok=True)
    except FileNotFoundError as error:
        raise StorageBroken(
            f"{folder} is not there any more. Nothing was stored: put it back, or start Commonplace again."
        ) from error


@dataclass(frozen=True, slots=True)
class FolderLook:
    """A complete walk of a folder: when it ended and how long it took."""

    at: datetime
    seconds: float
    """The duration of the walk, without reading files."""


def note_look(folder: Path, collection: Collection, seconds: float) -> None:
    """Store that a collection has just been updated, after a walk of `seconds`. `folder` is the library's."""
    path = _look_path(folder, collection)
    part = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}.part")
    record = {"at": datetime.now(UTC).isoformat(), "seconds": round(seconds, 4)}
    try:
        path.parent.mkdir(exist_ok=True)
        part.write_text(json.dumps(record), "utf-8")
        part.replace(path)
    except OSError as error:  # the collection is level all the same
        log.info("When a folder was looked at could not be noted: %s", error.strerror)


def last_look(folder: Path, collection: Collection) -> FolderLook | None:
    """Return the last walk from this home, or None."""
    try:
        record = json.loads(_look_path(folder, collection).read_text("utf-8"))
        return FolderLook(datetime.fromisoformat(record["at"]), float(record["seconds"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def move_look(folder: Path, old: Collection, new: Collection) -> None:
    """Carry the last walk of a renamed collection over to its new name."""
    try:
        _look_path(folder, old).replace(_look_path(folder, new))
    except OSError:
        log.debug("There is no look to move")


def _look_path(folder: Path, collection: Collection) -> Path:
    """Return the file of a collection's record. The same name with another root has another one."""
    key = f"{collection.name}\n{collection.root}".encode("utf-8", "surrogatepass")
    return folder / LOOKS / f"{hashlib.sha256(key).hexdigest()[:16]}.json"
