"""The lock of whoever makes a library's vectors in bulk."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from commonplace.errors import Busy
from commonplace.index.files import writable

PATIENCE_S = 10.0
"""Seconds that a patient caller waits for who makes vectors in the background, which stops in between for them."""


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
