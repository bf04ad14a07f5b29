"""The files of backups: where one may be written, and where it is made meanwhile."""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from glob import escape
from pathlib import Path

from commonplace.errors import InvalidInput

ABANDONED_S = 3600
"""A backup that nobody has written to for so long is not going to be finished."""
COPY = "commonplace-restore-"
"""What folders are called in which a backup is looked at before it is restored."""


def check_target(target: Path) -> None:
    """Raise InvalidInput where a file may not be put: in the place of a library in use, a device, a pipe or a folder.

    What others write to such a library would be lost.
    """
    if target.exists() and not target.is_file():
        raise InvalidInput(f"{target} is no file, and one would take its place. Name another.")
    if not target.parent.is_dir():
        raise InvalidInput(f"{target} cannot be written: there is no folder {target.parent}. Make it, or name another.")
    log = target if target.name.endswith(("-wal", "-shm")) else target.with_name(f"{target.name}-wal")
    if log.exists():
        raise InvalidInput(f"{target} is a library in use, and this would take its place. Name another file.")


def partial_of(target: Path) -> Path:
    """Return a name that no other backup is being written to, for several may be at once, and remove abandoned ones."""
    for left in target.parent.glob(f"{escape(target.name)}*.partial"):
        with suppress(FileNotFoundError):
            if time.time() - left.stat().st_mtime > ABANDONED_S:
                left.unlink()
    partial = target.with_name(f"{target.name}.{os.getpid()}-{threading.get_ident()}.partial")
    partial.unlink(missing_ok=True)
    return partial


def make_private(partial: Path) -> None:
    """Make an empty file for SQLite to fill that its owner alone may read, as the library itself."""
    os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def clear_copies(beside: Path) -> None:
    """Remove the copies that restores which were killed long ago have left: each is a whole library."""
    import shutil  # with what it loads, 2 ms that a search does without

    for left in beside.glob(f"{COPY}*"):
        with suppress(FileNotFoundError):
            if time.time() - left.stat().st_mtime > ABANDONED_S:
                shutil.rmtree(left, ignore_errors=True)
