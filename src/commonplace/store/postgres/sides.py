"""A store of either kind as rows: what goes over between a file and a PostgreSQL database."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar
from uuid import uuid4

import apsw

from commonplace.errors import Busy
from commonplace.model import JSON
from commonplace.store.postgres.copying import Shape, insert_there, number_there, shapes
from commonplace.store.postgres.problems import explained
from commonplace.store.postgres.store import MIGRATION, PostgresStore
from commonplace.store.sqlite.connection import explained as explained_file
from commonplace.store.sqlite.store import SqliteStore

R = TypeVar("R")
Row = tuple[Any, ...]
Key = Sequence[Any]


class Side(Protocol):
    """A store as rows, which are SQLite's on either side."""

    name: str

    def read(self, work: Callable[[], R]) -> R:
        """Do something during which all that is read is of one state."""
        ...

    def shapes(self) -> list[Shape]:
        """Its tables, what refers to another after it."""
        ...

    def is_empty(self) -> bool:
        """Whether nothing is stored, settings apart."""
        ...

    def rows(self, shape: Shape, after: Key = ()) -> Iterator[Row]: ...
    def numbers(self) -> dict[str, int]: ...
    def fields(self) -> list[tuple[str, ...]]: ...
    def mark(self) -> dict[str, Any] | None: ...
    def take(self, shape: Shape, rows: Sequence[Row], mark: dict[str, Any]) -> None:
        """Keep rows, and how far that is, together."""
        ...

    def clear(self, mark: JSON) -> None:
        """Remove everything, and note what comes now; nothing where it is None."""
        ...

    def finish(self, numbers: Mapping[str, int], fields: Iterable[tuple[str, ...]]) -> None: ...
    def complete(self, mark: JSON) -> None: ...
    def check(self) -> list[str]: ...


class File:
    """A space in a SQLite file."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self.name = str(store.path)

    @property
    def _db(self) -> apsw.Connection:
        return self._store._database.reading()

    def read(self, work: Callable[[], R]) -> R:
        with explained_file(self._store.path), self._store._database.snapshot():
            return work()

    def shapes(self) -> list[Shape]:
        return shapes(self._db)

    def is_empty(self) -> bool:
        tables = (shape.table for shape in self.shapes() if shape.table != "settings")
        return not any(next(self._db.execute(f"select exists (select 1 from {table})"))[0] for table in tables)

    def rows(self, shape: Shape, after: Key = ()) -> Iterator[Row]:
        key, marks = ", ".join(shape.key), ", ".join("?" * len(after))
        where = f"where ({key}) > ({marks})" if after else ""
        yield from self._db.execute(
            f"select {', '.join(shape.columns)} from {shape.table} {where} order by {key}", tuple(after)
        )

    def numbers(self) -> dict[str, int]:
        return dict(self._db.execute("select name, seq from sqlite_sequence"))

    def fields(self) -> list[tuple[str, ...]]:
        return self._store.indexed_fields()

    def mark(self) -> dict[str, Any] | None:
        return _noted(self._store.setting(MIGRATION))

    def take(self, shape: Shape, rows: Sequence[Row], mark: dict[str, Any]) -> None:
        with explained_file(self._store.path), self._store.transaction(), _without_triggers(self._db) as db:
            _check_alone(self, len(rows), mark)
            insert_there(db, shape, rows)
            self._store.set_setting(MIGRATION, mark)

    def clear(self, mark: JSON) -> None:
        for path in self.fields():
            self._store.drop_field(path)
        with explained_file(self._store.path), self._store.transaction(), _without_triggers(self._db) as db:
            for shape in reversed(self.shapes()):
                db.execute(f"delete from {shape.table}")
            if mark is not None:
                self._store.set_setting(MIGRATION, mark)

    def finish(self, numbers: Mapping[str, int], fields: Iterable[tuple[str, ...]]) -> None:
        with explained_file(self._store.path), self._store.transaction():
            number_there(self._db, numbers)
        for path in fields:
            self._store.index_field(path)

    def complete(self, mark: JSON) -> None:
        _complete(self._store, mark)

    def check(self) -> list[str]:
        return self._store.check()


class Served:
    """A space in a PostgreSQL database. `known` are the tables of a file, which SQLite alone can tell."""

    def __init__(self, store: PostgresStore, known: Sequence[Shape]) -> None:
        self._store, self._known = store, known
        self.name = f"{store._database.space} in {store.name}"

    def read(self, work: Callable[[], R]) -> R:
        def unhurried() -> R:
            self._store._run("set local statement_timeout = 0")  # a table may have to be sorted
            return work()

        with explained(self._store.name):
            return self._store._database.read(unhurried)

    def shapes(self) -> list[Shape]:
        with explained(self._store.name):
            here = self._store._database.read(self._store._tables)
        return [shape for shape in self._known if shape.table in here]

    def is_empty(self) -> bool:
        tables = [shape.table for shape in self.shapes() if shape.table != "settings"]
        query = " or ".join(f"exists (select 1 from {table})" for table in tables)
        with explained(self._store.name):
            return not self._store._database.read(lambda: self._store._one(f"select {query}"))

    def rows(self, shape: Shape, after: Key = ()) -> Iterator[Row]:
        return self._store._rows_of(shape, after)

    def numbers(self) -> dict[str, int]:
        return self._store._numbers()

    def fields(self) -> list[tuple[str, ...]]:
        return self._store.indexed_fields()

    def mark(self) -> dict[str, Any] | None:
        return _noted(self._store.setting(MIGRATION))

    def take(self, shape: Shape, rows: Sequence[Row], mark: dict[str, Any]) -> None:
        with explained(self._store.name), self._store.transaction():
            _check_alone(self, len(rows), mark)
            self._store._take(shape, rows)
            self._store.set_setting(MIGRATION, mark)

    def clear(self, mark: JSON) -> None:
        with explained(self._store.name), self._store.transaction():
            self._store._run("set local statement_timeout = 0")
            self._store._clear(self._known)
            self._store._number({})
            if mark is not None:
                self._store.set_setting(MIGRATION, mark)

    def finish(self, numbers: Mapping[str, int], fields: Iterable[tuple[str, ...]]) -> None:
        with explained(self._store.name), self._store.transaction():
            self._store._number(numbers)
            for path in fields:
                self._store.index_field(path)

    def complete(self, mark: JSON) -> None:
        _complete(self._store, mark)

    def check(self) -> list[str]:
        return self._store.check()


@contextmanager
def _without_triggers(db: apsw.Connection) -> Iterator[apsw.Connection]:
    """Every row is copied, those that triggers made too."""
    db.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
    try:
        yield db
    finally:
        db.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 1)


def _noted(value: JSON) -> dict[str, Any] | None:
    return value if isinstance(value, dict) else None


def _check_alone(side: Side, rows: int, mark: dict[str, Any]) -> None:
    """Refuse to go on where another run has gone on meanwhile."""
    there = side.mark()
    if there is None or there["rows"] != mark["rows"] or there["done"] + rows != mark["done"]:
        raise Busy(f"{side.name} is being filled by another run of `commonplace migrate`. Wait for that one.")


def _complete(store: SqliteStore | PostgresStore, mark: JSON) -> None:
    """An identity of its own: an index that followed the other store is never taken for one of this."""
    with store.transaction():
        store.set_setting("identity", uuid4().hex[:12])
        store.set_setting(MIGRATION, mark)
