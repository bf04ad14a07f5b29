"""The store on SQLite, whole, with its backups."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from uuid import uuid4

import apsw

from commonplace.errors import Command, InvalidInput, NotFound, StorageBroken
from commonplace.store.backups import COPY, check_target, clear_copies, make_private, partial_of
from commonplace.store.sqlite.care import SqliteCare
from commonplace.store.sqlite.connection import explained, load_migrations
from commonplace.store.sqlite.items import guarded
from commonplace.store.stored_settings import StoredSettings


class SqliteStore(
    SqliteCare,
):
    """A store on one SQLite file, with everything that `Store` promises."""

    @guarded
    def backup(self, target: Path) -> None:
        """Write a consistent copy while others write. It takes its name only when it is complete and on disk."""
        check_target(target)
        with explained(target):
            partial = partial_of(target)
            try:
                make_private(partial)
                with _told_of(self.path):
                    self._database.reading().execute("vacuum into ?", (str(partial),))
                with partial.open("rb") as file:
                    os.fsync(file.fileno())
                partial.replace(target)
            except BaseException:
                partial.unlink(missing_ok=True)
                raise

    @guarded
    def restore(self, source: Path) -> None:
        """Replace everything with a backup's content, in one transaction: other processes see the old or the new."""
        with copied(source, self.path.parent) as copy, explained(self.path):
            work = self._database.reading().backup("main", copy._database.reading(), "main")
            try:
                work.step()
            finally:
                work.finish()  # where a step fails, this is what says why


_DAMAGE = (apsw.NotADBError, apsw.CorruptError, apsw.SQLError, UnicodeDecodeError)
"""What reading a file raises in which something is not as it was written."""


@contextmanager
def _told_of(path: Path) -> Iterator[None]:
    """Raise damage as damage of this file, whichever other the work is about."""
    try:
        yield
    except (apsw.CorruptError, apsw.NotADBError):
        with explained(path):
            raise


@contextmanager
def _told_unsound(backup: Path) -> Iterator[None]:
    """Raise damage that shows in the copy of a backup as damage of the backup, which is then not restored."""
    try:
        yield
    except (*_DAMAGE, StorageBroken) as error:
        damage = error.__cause__ if isinstance(error, StorageBroken) else error
        if not isinstance(damage, _DAMAGE):
            raise
        raise StorageBroken(f"{backup} is no sound backup: {damage}. Nothing was changed.") from error


def check_backup(backup: Path) -> None:
    """Raise an error for a file that a first look says is no backup, or none for this version.

    Whether it is sound shows when it is copied.
    """
    if not backup.is_file():
        raise NotFound(f"There is no backup at {backup}.")
    flags = apsw.SQLITE_OPEN_READONLY
    with explained(backup), _told_unsound(backup), closing(apsw.Connection(str(backup), flags=flags)) as original:
        tables = {name for (name,) in original.execute("select name from sqlite_schema where type = 'table'")}
        if not {"items", "chunks", "changes", "settings"} <= tables:
            raise InvalidInput(f"{backup} is no backup of a library. `", Command("backup"), "` makes them.")
        if int(original.pragma("user_version")) > len(load_migrations()):
            raise StorageBroken(f"{backup} was made by a newer Commonplace. Upgrade Commonplace to restore it.")


@contextmanager
def copied(backup: Path, beside: Path | None = None) -> Iterator[SqliteStore]:
    """Yield a sound copy of a backup, its schema brought up to date.

    Its identity is its own: no index that followed the log of the backup, or another, ever takes it for that.
    """
    check_backup(backup)
    import tempfile  # with what it loads, 3 ms that a search does without

    if beside is not None:
        clear_copies(beside)
    with tempfile.TemporaryDirectory(dir=beside, prefix=COPY) as folder, explained(backup), ExitStack() as stores:
        path = Path(folder) / "copy.db"
        with _told_unsound(backup):
            original = closing(apsw.Connection(str(backup), flags=apsw.SQLITE_OPEN_READONLY))
            with original as connection, explained(path):  # it is the copy that finds no room
                connection.execute("vacuum into ?", (str(path),))
            copy = stores.enter_context(closing(SqliteStore(path)))
            ours = stores.enter_context(closing(SqliteStore(path.with_name("ours.db"))))
            if part := schema_difference(copy._database.reading(), ours._database.reading()):
                raise StorageBroken(f"{backup} is no sound backup: {part} is not ours or missing. Nothing was changed.")
            if problems := copy.check():
                raise StorageBroken(f"{backup} is no sound backup: {problems[0]}. Nothing was changed.")
        copy.drawer(StoredSettings).set("identity", uuid4().hex[:12])
        yield copy


def schema_difference(copy: apsw.Connection, ours: apsw.Connection) -> str:
    """Return the first table, index or trigger that differs from our schema, or '' where none does.

    A file that is restored brings its triggers, and the names of its columns become part of statements.
    """
    query = "select type, name, sql from sqlite_schema where name not like 'sqlite%' and name <> 'chunks_by_vector'"
    different = set(copy.execute(query)) ^ set(ours.execute(query))
    return min((f"the {kind} {name}" for kind, name, _ in different), default="")
