"""A SQLite file as the source or the target of a copy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any, TypeVar

import apsw

from commonplace.errors import Command, InvalidInput, NotFound
from commonplace.model import JSON
from commonplace.store.metadata_index import MetadataIndex
from commonplace.store.sqlite.connection import explained, load_migrations
from commonplace.store.sqlite.store import SqliteStore
from commonplace.store.stored_settings import StoredSettings
from commonplace.store.transfer import MIGRATION, Key, Row, TableShape, check_alone, complete, migration_mark

R = TypeVar("R")
DERIVED = ("metadata_fields", "metadata_values", "metadata_holders")
"""Tables that are made anew from the rest."""


class FileSide:
    """A space in a SQLite file."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self.name = str(store.path)

    @property
    def _db(self) -> apsw.Connection:
        return self._store._database.reading()

    def read(self, work: Callable[[], R]) -> R:
        with explained(self._store.path), self._store._database.snapshot():
            return work()

    def shapes(self) -> list[TableShape]:
        return table_shapes(self._db)

    def is_empty(self) -> bool:
        tables = (shape.table for shape in self.shapes() if shape.table != "settings")
        return not any(next(self._db.execute(f"select exists (select 1 from {table})"))[0] for table in tables)

    def rows(self, shape: TableShape, after: Key = ()) -> Iterator[Row]:
        key, marks = ", ".join(shape.key), ", ".join("?" * len(after))
        where = f"where ({key}) > ({marks})" if after else ""
        yield from self._db.execute(
            f"select {', '.join(shape.columns)} from {shape.table} {where} order by {key}", tuple(after)
        )

    def numbers(self) -> dict[str, int]:
        return dict(self._db.execute("select name, seq from sqlite_sequence"))

    def fields(self) -> list[tuple[str, ...]]:
        return list(self._store.drawer(MetadataIndex).fields())

    def mark(self) -> dict[str, Any] | None:
        return migration_mark(self._store)

    def take(self, shape: TableShape, rows: Sequence[Row], mark: dict[str, Any]) -> None:
        with explained(self._store.path), self._store.transaction(), without_triggers(self._db) as db:
            check_alone(self, len(rows), mark)
            insert_rows(db, shape, rows)
            self._store.drawer(StoredSettings).set(MIGRATION, mark)

    def clear(self, mark: JSON) -> None:
        for path in self.fields():
            self._store.drawer(MetadataIndex).drop(path)
        with explained(self._store.path), self._store.transaction(), without_triggers(self._db) as db:
            for shape in reversed(self.shapes()):
                db.execute(f"delete from {shape.table}")
            if mark is not None:
                self._store.drawer(StoredSettings).set(MIGRATION, mark)

    def finish(self, numbers: Mapping[str, int], fields: Iterable[tuple[str, ...]]) -> None:
        with explained(self._store.path), self._store.transaction():
            set_numbers(self._db, numbers)
        for path in fields:
            self._store.drawer(MetadataIndex).add(path)

    def complete(self, mark: JSON) -> None:
        complete(self._store, mark)

    def check(self) -> list[str]:
        return self._store.check()


@contextmanager
def without_triggers(db: apsw.Connection) -> Iterator[apsw.Connection]:
    """Yield the connection with its triggers off: every row is copied, those that they made too."""
    db.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
    try:
        yield db
    finally:
        db.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 1)


def table_shapes(db: apsw.Connection) -> list[TableShape]:
    """Return the tables but those made anew from the rest, each after those it refers to."""
    query = "select name from sqlite_schema where type = 'table' and name not like 'sqlite%' order by name"
    names = [str(table) for (table,) in db.execute(query) if table not in DERIVED]
    before = {table: sorted(_referred(db, table) & set(names)) for table in names}
    before["item_attachments"].append("memories")  # entries count them when they come
    return [_shape(db, table) for table in TopologicalSorter(before).static_order()]


def _referred(db: apsw.Connection, table: str) -> set[str]:
    return {str(other) for (other,) in db.execute('select "table" from pragma_foreign_key_list(?)', (table,))}


def _shape(db: apsw.Connection, table: str) -> TableShape:
    columns: list[Any] = db.execute("select name, pk from pragma_table_info(?)", (table,)).fetchall()
    key = [name for pk, name in sorted((pk, name) for name, pk in columns if pk)]
    if not key:
        query = """select column.name from pragma_index_list(?) as list, pragma_index_info(list.name) as column
                   where list."unique" order by list.seq, column.seqno"""
        key = [str(name) for (name,) in db.execute(query, (table,))]
    return TableShape(table, tuple(name for name, _ in columns), tuple(key))


def insert_rows(db: apsw.Connection, shape: TableShape, rows: Iterable[tuple[Any, ...]]) -> None:
    """Insert rows of a table. The caller has triggers switched off: rows that they made are among these."""
    marks = ", ".join("?" * len(shape.columns))
    db.executemany(f"insert into {shape.table} ({', '.join(shape.columns)}) values ({marks})", rows)


def set_numbers(db: apsw.Connection, last: Mapping[str, int]) -> None:
    """Go on after the numbers that were given out last, by table."""
    for table, number in last.items():
        db.execute("delete from sqlite_sequence where name = ?", (table,))
        db.execute("insert into sqlite_sequence (name, seq) values (?, ?)", (table, number))


def open_current(path: Path) -> SqliteStore:
    """Return the store in a file whose schema needs no change: opening an older one would change it.

    Raise NotFound where there is no file, and InvalidInput where the schema is older.
    """
    if not path.is_file():
        raise NotFound(f"There is no library at {path}.")
    with explained(path), closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as db:
        if int(db.pragma("user_version")) < len(load_migrations()):
            raise InvalidInput(
                f"{path} was written by an older Commonplace. Run `", Command("status"), "` on it first."
            )
    return SqliteStore(path)
