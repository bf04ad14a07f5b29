"""The lock of whoever makes a library's vectors in bulk, and the pace at which they are made.

Both are small files beside the indexes, so every process of a home knows them.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from commonplace.errors import Busy
from commonplace.index.sealed_files import writable

PATIENCE_S = 10.0
"""Seconds that a patient caller waits for who makes vectors in the background, which stops in between for them."""
WRITE_S = 0.5
"""Seconds between two notes of the pace: often enough to be believed, seldom enough to cost nothing."""
FRESH_S = 30.0
"""Seconds that a note is believed: after that nobody is at work, or something holds them up."""


class AlreadyEmbedding(Busy):
    """Another process makes this library's vectors."""


@contextmanager
def embed_lock(folder: Path, *, patient: bool) -> Iterator[None]:
    """Be the only one who makes the vectors of the library with this folder of indexes, in all threads and processes.

    Raise AlreadyEmbedding where another does or, for who is `patient`, still does after PATIENCE_S.
    """
    from filelock import FileLock, Timeout  # slow to load, and no search needs it

    lock = FileLock(folder.with_name("embed.lock"), timeout=PATIENCE_S if patient else 0)
    try:
        with writable(folder):
            lock.acquire()
    except Timeout:
        raise AlreadyEmbedding(
            "Another process is embedding this library already. Its vectors will be here when it is done."
        ) from None
    try:
        yield
    finally:
        lock.release()


class Pace:
    """A library's file with the pace of whoever makes vectors. Only what people and agents are told depends on it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._run = (0.0, 0.0, 0)
        """The times at which this process began and last made any, and how many it has made since it began."""
        self._written = 0.0

    def note(self, count: int) -> None:
        """Say that so many vectors have been made since the last time. Never raises: a full disk loses the file."""
        with self._lock:
            now = time.monotonic()
            began, last, total = self._run
            if now - last > FRESH_S:
                self._run = now, now, 0  # how long the first took is not known, so they do not count
                return
            self._run = began, now, total + count
            if now - self._written < WRITE_S:
                return
            self._written = now
            record = {"rate": (total + count) / max(now - began, 1e-3), "at": time.time()}
            partial = self._path.with_suffix(f".{os.getpid()}.part")
            with suppress(OSError):
                partial.write_text(json.dumps(record), "utf-8")
                partial.replace(self._path)

    def rate(self) -> float | None:
        """Return how many passages a second gain a vector, in whichever process; None where none did lately."""
        try:
            record = json.loads(self._path.read_text("utf-8"))
            rate, at = float(record["rate"]), float(record["at"])
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return rate if rate > 0 and abs(time.time() - at) <= FRESH_S else None
