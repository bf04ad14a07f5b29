"""Put a backup in the place of a library's file, also of one that nothing can open any more."""

from __future__ import annotations

import os
from contextlib import closing, suppress
from pathlib import Path

import apsw

from commonplace.errors import StorageBroken
from commonplace.store.sqlite.connection import explained
from commonplace.store.sqlite.store import SqliteStore, copied


def restore_file(path: Path, source: Path) -> None:
    """Put a backup in the place of a library. One that is too damaged for that stays beside it, as `….damaged`.

    Whoever has the damaged one open goes on with that, and has to be started anew.
    """
    try:
        with closing(SqliteStore(path)) as store:
            store.restore(source)
    except StorageBroken as error:
        if not isinstance(error.__cause__, apsw.CorruptError | apsw.NotADBError):
            raise
        with copied(source, path.parent) as copy, explained(path):
            copy.close()
            _take_place(copy.path, path)


def _take_place(new: Path, path: Path) -> None:
    """Rename a file to a path that always has one, and never with a log that belongs to another."""
    with new.open("rb") as file:
        os.fsync(file.fileno())
    aside = path.with_name(f"{path.name}.damaged")
    for end in ("", "-wal"):
        aside.with_name(aside.name + end).unlink(missing_ok=True)
    with suppress(OSError):  # not every file system has links
        os.link(path, aside)
    with suppress(FileNotFoundError):
        path.with_name(f"{path.name}-wal").replace(f"{aside}-wal")
    path.with_name(f"{path.name}-shm").unlink(missing_ok=True)
    new.replace(path)
