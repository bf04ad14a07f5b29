"""Move a home from files to a PostgreSQL database, or back: its spaces one by one, its users and their keys."""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commonplace.errors import AlreadyExists, InvalidInput, NotFound, StorageBroken
from commonplace.store.accounts import FILE
from commonplace.store.opening import DATABASE
from commonplace.store.postgres.accounts import SPACE, PostgresAccounts
from commonplace.store.postgres.connection import SCHEMA, has_space
from commonplace.store.postgres.moving import Moved, Watch, abandon, move
from commonplace.store.postgres.problems import explained
from commonplace.store.postgres.schema import check, connect, migrate
from commonplace.store.postgres.server_side import ServerSide
from commonplace.store.postgres.store import PostgresStore
from commonplace.store.postgres.urls import shown
from commonplace.store.sqlite.accounts import Accounts
from commonplace.store.sqlite.connection import explained as explained_file
from commonplace.store.sqlite.file_side import FileSide, open_current, table_shapes
from commonplace.store.sqlite.store import SqliteStore

_CONNECTIONS = 3
_USER = "name, {space}, created_at"
_KEY = 'id, "user", digest, scopes, label, created_at, expires_at, revoked_at, collections'
Rows = list[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Homes:
    """The two places a home may be: files in a folder, and a database, whose schema's owner may be known."""

    folder: Path
    url: str
    owner: str = ""

    def open(self) -> None:
        """Make the schema where the owner is known, and raise an error for a database that cannot be used."""
        if self.owner:
            migrate(self.owner, self.url)
        check(self.url)

    # spaces

    def spaces_in_files(self) -> list[str]:
        return sorted(path.parent.name for path in self.folder.glob(f"spaces/*/{DATABASE}"))

    def spaces_in_database(self) -> list[str]:
        """Return the spaces. Only the owner sees them all: row-level security shows everyone else their own."""
        if not self.owner:
            raise InvalidInput(
                "Which spaces there are only the schema's owner can see. Set COMMONPLACE_STORE_OWNER, or name one "
                "before the command: commonplace --space NAME migrate …"
            )
        query = f"select space from {SCHEMA}.spaces where space <> %s order by space"
        with closing(connect(self.owner, "COMMONPLACE_STORE_OWNER")) as connection, explained(shown(self.owner)):
            return [str(space) for (space,) in connection.execute(query.encode(), (SPACE,))]

    def to_database(self, space: str, watch: Watch) -> Moved:
        with closing(open_current(self._file(space))) as store, closing(self._served(space)) as served:
            return move(FileSide(store), ServerSide(served, table_shapes(store._database.reading())), watch)

    def to_file(self, space: str, watch: Watch) -> Moved:
        """Copy a space to a file, which takes its name only once it is complete and compared."""
        if not has_space(self.url, space, _CONNECTIONS):  # to open one would make it
            raise NotFound(f"{shown(self.url)} has no space {space}.")
        path = self._file(space)
        if path.exists():
            with closing(SqliteStore(path)) as store:
                side = FileSide(store)
                if side.mark() is not None or not side.is_empty():
                    return self._fill(space, store, watch)
        partial = _partial(path)
        with closing(SqliteStore(partial)) as store:
            moved = self._fill(space, store, watch)
        _put_in_place(partial, path)
        return moved

    def _fill(self, space: str, store: SqliteStore, watch: Watch) -> Moved:
        with closing(self._served(space)) as served:
            return move(ServerSide(served, table_shapes(store._database.reading())), FileSide(store), watch)

    def abandon_database(self, space: str) -> bool:
        with closing(open_current(self._file(space))) as store, closing(self._served(space)) as served:
            return abandon(ServerSide(served, table_shapes(store._database.reading())))

    def abandon_file(self, space: str) -> bool:
        partial = _partial(self._file(space))
        was_there = partial.exists()
        _remove(partial)
        return was_there

    def _file(self, space: str) -> Path:
        return self.folder / "spaces" / space / DATABASE

    def _served(self, space: str) -> PostgresStore:
        return PostgresStore(self.url, space, _CONNECTIONS)

    # users and keys, which are few: all at once

    def accounts_to_database(self) -> int:
        """Returns how many users there are now."""
        path = self.folder / FILE
        if not path.exists():
            return 0
        with closing(Accounts(path)) as source, closing(PostgresAccounts(self.url, connections=_CONNECTIONS)) as target:
            users, keys = _in_file(source)
            if _is_filled(_in_database(target), (users, keys), shown(self.url)):
                return len(users)
            with explained(target.name), target._database.writing():
                target._run_all(_insert("users", _USER.format(space="works_in"), "%s"), users)
                target._run_all(_insert("keys", _KEY, "%s"), keys)
            _check_same(_in_database(target), (users, keys))
            return len(users)

    def accounts_to_file(self) -> int:
        with closing(PostgresAccounts(self.url, connections=_CONNECTIONS)) as source:
            users, keys = _in_database(source)
        if not users and not keys:
            return 0
        path = self.folder / FILE
        with closing(Accounts(path)) as target:
            if _is_filled(_in_file(target), (users, keys), str(path)):
                return len(users)
            with explained_file(path), target._database.writing() as db:
                db.executemany(_insert("users", _USER.format(space="space"), "?"), users)
                db.executemany(_insert("keys", _KEY, "?"), keys)
            _check_same(_in_file(target), (users, keys))
            return len(users)


def _partial(path: Path) -> Path:
    return path.with_name(path.name + ".migrating")


def _put_in_place(partial: Path, path: Path) -> None:
    with explained_file(path):
        if path.exists():  # an empty one, which others may have open
            with closing(SqliteStore(path)) as store:
                store.restore(partial)
            _remove(partial)
            return
        with partial.open("rb") as file:
            os.fsync(file.fileno())
        partial.replace(path)


def _remove(partial: Path) -> None:
    for path in partial.parent.glob(partial.name + "*"):
        path.unlink(missing_ok=True)


def _insert(table: str, columns: str, mark: str) -> str:
    return f"insert into {table} ({columns}) values ({', '.join([mark] * (columns.count(',') + 1))})"


def _in_file(accounts: Accounts) -> tuple[Rows, Rows]:
    with explained_file(accounts.path), accounts._database.snapshot():
        db = accounts._database.reading()
        users = db.execute(f"select {_USER.format(space='space')} from users order by name").fetchall()
        return users, db.execute(f"select {_KEY} from keys order by id").fetchall()


def _in_database(accounts: PostgresAccounts) -> tuple[Rows, Rows]:
    def read() -> tuple[Rows, Rows]:
        users = accounts._all(f"select {_USER.format(space='works_in')} from users order by name")
        return users, accounts._all(f"select {_KEY} from keys order by id")

    with explained(accounts.name):
        return accounts._database.read(read)


def _is_filled(there: tuple[Rows, Rows], wanted: tuple[Rows, Rows], name: str) -> bool:
    if there != wanted and any(there):
        raise AlreadyExists(f"{name} has users or keys already, and not the same. Nobody was added there.")
    return there == wanted


def _check_same(there: tuple[Rows, Rows], wanted: tuple[Rows, Rows]) -> None:
    if there != wanted:
        raise StorageBroken(
            "Users and keys at the destination are not those that were copied. Remove them there and run this again."
        )
