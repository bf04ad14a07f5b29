"""Connections to a SQLite file: one per thread to read, one at a time to write; and SQLite's errors as ours."""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from json import JSONDecodeError
from pathlib import Path
from typing import Any
from weakref import WeakSet

import apsw

from commonplace.errors import (
    LONE_SURROGATE,
    NUMBER_TAKEN,
    AlreadyExists,
    Busy,
    Command,
    CommonplaceError,
    InvalidInput,
    StorageBroken,
    StorageFull,
)
from commonplace.model import JSON
from commonplace.store.filters import fold_value, in_place
from commonplace.store.spelling import folded, name_backwards, name_hash

BUSY_S = 30.0
_DATABASE_FILES = 3  # itself, its log and the memory that processes share
_READING = (apsw.SQLITE_IOERR_READ, apsw.SQLITE_IOERR_SHORT_READ, apsw.SQLITE_IOERR_CORRUPTFS, apsw.SQLITE_IOERR_FSTAT)
_ROOM_TO_WRITE = "pragma cache_size = -8192"  # KiB: a batch of entries changes 800 pages, and the rest is written twice
_PRAGMAS = """
pragma synchronous = full;
pragma temp_store = memory;
pragma cache_size = -1024;  -- of a thread that only reads: the system has the rest of the file
pragma wal_autocheckpoint = 4000;  -- pages: most of them change again and again, and go to the database once"""


_forks = 0
"""How often this process and those it comes from were forked: what was opened before the last time is not its own.

Counted, because every statement looks and the system is slow to say which process this is: 2 % of a search.
"""


def _count_fork() -> None:
    global _forks
    _forks += 1


if hasattr(os, "register_at_fork"):  # where there is no fork, nothing has to be counted
    os.register_at_fork(after_in_child=_count_fork)


class SqliteDatabase:
    """A SQLite file in WAL mode. Readers never wait; writers queue, inside the process, then between them."""

    def __init__(self, path: Path, migrations: str = "migrations") -> None:
        """Open the file, made where there is none. `migrations` is the folder beside this module with its schema."""
        self.path = path
        self._migrations = migrations
        self._local = threading.local()
        self._opened: WeakSet[apsw.Connection] = WeakSet()  # a thread that ends takes its connection with it
        self._opened_lock = threading.Lock()
        self._writer = threading.Lock()
        self._closed = False
        self._forks = _forks
        self._file: tuple[int, int] | None = None
        self.uses = self.failures = 0
        with explained(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._migrate()
            self._file = identity_of(path)

    def reading(self) -> apsw.Connection:
        """Return this thread's connection."""
        self._check_process()
        connection: apsw.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            if self._closed:
                raise StorageBroken(f"{self.path} is closed. Open the library again.")
            connection = self._connect()
            self._local.connection = connection
        self.uses += 1
        return connection

    def metrics(self) -> dict[str, JSON]:
        """Return this process's use of the database: connections, queries, transactions that failed."""
        return {
            "active_connections": self.connections,
            "total_queries": self.uses,
            "failed_queries": self.failures,
            "circuit_state": "healthy",
        }

    @property
    def connections(self) -> int:
        """Return how many connections are open."""
        with self._opened_lock:
            return len(self._opened)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Make this thread's reads all of one state until the block ends."""
        with self.reading():  # apsw: a savepoint, in which nothing is written
            yield

    @contextmanager
    def writing(self, *, alone: bool = True) -> Iterator[apsw.Connection]:
        """Yield a connection in a transaction: all of it is durable when the block ends, none where the block raises.

        Inside another such block of the same thread it is a part of that one. `alone`: what it has done is undone when
        it raises. Otherwise the whole is to be, which spares a copy of every page it changes.
        """
        self._check_process()
        outer: apsw.Connection | None = getattr(self._local, "writing", None)
        if outer is not None:
            with outer if alone else nullcontext():  # apsw: a savepoint
                yield outer
            return
        if not self._writer.acquire(timeout=BUSY_S):
            raise Busy(f"{self.path} has been busy for {BUSY_S:.0f} s. Try again when the running import is done.")
        try:
            self._check_file()
            connection = self.reading()
            if connection.readonly("main"):  # the file was when this thread came first; it may not be any more
                self._local.connection = None
                connection = self.reading()
            connection.execute(_ROOM_TO_WRITE)
            try:
                connection.execute("begin immediate")  # inside: an interrupt meanwhile comes when it has begun
                self._local.writing = connection
                yield connection
                connection.execute("commit")
            except BaseException as error:
                self.failures += isinstance(error, apsw.Error)
                if not connection.get_autocommit():
                    connection.execute("rollback")
                raise
            finally:
                self._local.writing = None
        finally:
            self._writer.release()

    def close(self) -> None:
        self._closed = True
        if _forks != self._forks:
            return  # the connections are those of the process this one was forked from
        with self._opened_lock:
            for connection in list(self._opened):
                connection.close()
            self._opened.clear()
        self._local = threading.local()

    def _check_process(self) -> None:
        """Raise StorageBroken in a forked process.

        It has the connections and none of the locks: what it wrote could be lost without a word.
        """
        if _forks != self._forks:
            raise StorageBroken(
                f"{self.path} was opened before this process was forked. Open the library again in this one."
            )

    def _check_file(self) -> None:
        """Raise StorageBroken where the file was removed or replaced since it was opened.

        SQLite goes on writing to a file that has no name any more, and would make an empty one in its place.
        """
        if self._file is not None and identity_of(self.path) != self._file:
            raise StorageBroken(
                f"{self.path} was removed or replaced while it was open. Nothing was stored: put it back, or start "
                "Commonplace again."
            )

    def _connect(self) -> apsw.Connection:
        self._check_file()
        connection = apsw.Connection(str(self.path))
        connection.set_busy_timeout(int(BUSY_S * 1000))
        _use_wal(connection)
        connection.execute(_PRAGMAS)
        for name, arguments, function in _FUNCTIONS:
            connection.create_scalar_function(name, function, arguments, deterministic=True)
        with self._opened_lock:
            self._opened.add(connection)
        return connection

    def _migrate(self) -> None:
        """Bring the schema up to date. A migration and the record of it commit together."""
        migrations = load_migrations(self._migrations)
        connection = self.reading()
        version = _version(connection)
        if version > len(migrations):
            raise StorageBroken(
                f"{self.path} was written by a newer Commonplace (schema {version}, this one knows {len(migrations)}). "
                "Upgrade Commonplace to open it; or move it away, and restore a backup from before."
            )
        if version == len(migrations):
            return
        with self.writing() as connection:
            for number in range(_version(connection) + 1, len(migrations) + 1):
                connection.execute(migrations[number - 1])
                connection.execute(f"pragma user_version = {number}")


def _use_wal(connection: apsw.Connection) -> None:
    """Wait for others who do the same to a new file: here SQLite itself does not, whatever its busy timeout."""
    deadline = time.monotonic() + BUSY_S
    while True:
        try:
            connection.execute("pragma journal_mode = wal")
            return
        except apsw.BusyError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.005)


def identity_of(path: Path) -> tuple[int, int] | None:
    """Return the device and the number of the file at a path, or None where there is none."""
    try:
        stat = os.stat(path)
    except OSError:
        return None
    return stat.st_dev, stat.st_ino


def _fold(*values: Any) -> str | None:
    return fold_value(values[0]) if isinstance(values[0], str) else None


def _fold_exact(*values: Any) -> str | None:
    return fold_value(values[0], case_sensitive=True) if isinstance(values[0], str) else None


def _in_place(*values: Any) -> bool:
    return in_place(*values)


def _folded_ending(*name: Any) -> str:
    return folded(name[0])[0]


def _folded_stem(*name: Any) -> str:
    return folded(name[0])[1]


_FUNCTIONS = (
    ("fold", 1, _fold),
    ("fold_exact", 1, _fold_exact),
    ("in_place", 2, _in_place),
    ("name_hash", 2, name_hash),
    ("name_backwards", 2, name_backwards),
    ("folded_stem", 1, _folded_stem),
    ("folded_ending", 1, _folded_ending),
)
"""Functions that filters and the triggers of `document_names` call: the name, the number of arguments, the function."""


def _version(connection: apsw.Connection) -> int:
    return int(connection.pragma("user_version"))


def load_migrations(folder: str = "migrations") -> list[str]:
    """Return the numbered SQL files of a folder, in order. Their numbers run from 1 without gaps."""
    files = sorted(Path(__file__).with_name(folder).glob("*.sql"))
    numbers = [int(file.name.split("_")[0]) for file in files]
    if not numbers or numbers != list(range(1, len(files) + 1)):
        raise StorageBroken(f"Migrations are numbered {numbers}: reinstall Commonplace.")
    return [file.read_text(encoding="utf-8") for file in files]


def _takes_no_files(folder: Path) -> bool:
    """Return whether the disk takes no more files: what could not be opened may have left its own place free."""
    with suppress(OSError):
        disk = os.statvfs(folder)
        return disk.f_files > 0 and disk.f_favail < _DATABASE_FILES  # where files are not counted, both are 0
    return False


def _may_open_no_more() -> bool:
    """Return whether this process has as many files open as it may: a failed opening has let go of others, too."""
    with ExitStack() as opened:
        try:
            for _ in range(_DATABASE_FILES):
                opened.enter_context(open(os.devnull, "rb"))
        except OSError as error:
            return error.errno in (errno.EMFILE, errno.ENFILE)
    return False


def _is_read_only(folder: Path) -> bool:
    with suppress(OSError):
        return bool(os.statvfs(folder).f_flag & os.ST_RDONLY)
    return False


def _at_the_disk(path: Path, error: apsw.IOError) -> CommonplaceError:
    """Return the error for a disk that failed.

    SQLite says the same of a disk that fails and, where it is not a file that finds no room, of a full one.
    """
    if vars(error).get("extendedresult") in _READING:
        return StorageBroken(f"{path} cannot be read: {error}. Check that disk, and repeat.")
    if _is_read_only(path.parent):  # what a system makes of a disk that fails
        return StorageBroken(f"{path} could not be written: its disk is read-only. Check that disk, and repeat.")
    return StorageFull(
        f"{path} could not be written: {error}. Free some disk space, or check that disk, and repeat; nothing was lost."
    )


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Raise SQLite's errors as ours, with what to do."""
    try:
        yield
    except CommonplaceError:
        raise
    except UnicodeEncodeError as error:
        raise InvalidInput(LONE_SURROGATE) from error
    except apsw.ConstraintError as error:
        if "memories.id" not in str(error):
            raise
        raise AlreadyExists(NUMBER_TAKEN) from error
    except (apsw.BusyError, apsw.LockedError) as error:
        raise Busy(f"{path} has been busy for {BUSY_S:.0f} s. Try again when the running import is done.") from error
    except apsw.IOError as error:
        raise _at_the_disk(path, error) from error
    except (apsw.FullError, OSError) as error:
        if isinstance(error, OSError) and error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise StorageBroken(f"{path} cannot be used: {error}. Check that path and its permissions.") from error
        raise StorageFull(
            f"{path} could not be written: {error}. Free some disk space and repeat; nothing was lost."
        ) from error
    except (apsw.CorruptError, apsw.NotADBError) as error:
        raise StorageBroken(f"{path} is damaged: {error}. Restore it with `", Command("restore"), "`.") from error
    except (apsw.SQLError, UnicodeDecodeError, JSONDecodeError) as error:
        if isinstance(error, apsw.SQLError) and "malformed JSON" not in str(error):  # what is left is a mistake of ours
            raise
        raise StorageBroken(
            f"{path} holds a damaged row: {error}. Restore it with `", Command("restore"), "`."
        ) from error
    except apsw.CantOpenError as error:
        if _takes_no_files(path.parent):  # SQLite does not say why
            raise StorageFull(f"{path} could not be written: the disk takes no more files. Remove some.") from error
        if _may_open_no_more():
            raise Busy(
                f"{path} cannot be opened now: this process has as many files open as it may. Allow it more, or ask "
                "less of it at once, and repeat."
            ) from error
        if _is_read_only(path.parent):  # who only reads has to write beside it, too
            raise StorageBroken(
                f"{path} cannot be opened: its disk is read-only. Copy the home to one that may be written to."
            ) from error
        raise StorageBroken(f"{path} cannot be opened: {error}. Check the folder's permissions.") from error
    except apsw.ReadOnlyError as error:
        raise StorageBroken(f"{path} is read-only: {error}. Check the file's permissions.") from error
