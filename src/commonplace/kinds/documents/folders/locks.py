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
    """Be the only one to write these collections. `folder` is where the library lives. Raises Busy after `timeout`."""
    from filelock import FileLock, Timeout  # slow to load, and no search needs it

    held = []
    try:
        for name in sorted(set(names)):
            digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]
            lock = FileLock(folder / LOCKS / f"{digest}.lock", timeout=timeout, poll_interval=0.05)
            with writable(folder):
                _make_room(folder)
                lock.acquire()
            held.append(lock)
        yield
    except Timeout:
        raise Busy(f"Another process has been updating {', '.join(names)} for {timeout:.0f} s. Try again.") from None
    finally:
        for lock in held:
            lock.release()


@contextmanager
def watch_lock(folder: Path, stop: threading.Event, pause: float) -> Iterator[None]:
    """Be the only server that watches the folders of a library, after waiting for another as long as that takes.

    Asks again after every `pause`, in seconds. Once `stop` is set it is waited for no more: look whether it is.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(folder / WATCH_LOCK, timeout=0)
    while not stop.is_set():
        try:
            with writable(folder):
                _make_room(folder)
                lock.acquire()
        except Timeout:
            stop.wait(pause)
        else:
            break
    try:
        yield
    finally:
        lock.release()


def _make_room(folder: Path) -> None:
    """Make the folder of the locks, and not that of the library where somebody has removed it."""
    try:
        (folder / LOCKS).mkdir(exist_ok=True)
    except FileNotFoundError as error:
        raise StorageBroken(
            f"{folder} is not there any more. Nothing was stored: put it back, or start Commonplace again."
        ) from error
