"""Locks between all threads and processes that read folders into one library; a process that ends gives its own back.

They are the operating system's on open files, in a folder beside the library.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from commonplace.errors import Busy, StorageBroken
from commonplace.index.files import writable

WAIT_S = 3600.0
LOCKS = "locks"
WATCH_LOCK = Path(LOCKS, "watch.lock")


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
