"""A space in a PostgreSQL database as the source or the target of a copy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from commonplace.model import JSON
from commonplace.store.metadata_index import MetadataIndex
from commonplace.store.postgres.problems import explained
from commonplace.store.postgres.store import PostgresStore
from commonplace.store.stored_settings import StoredSettings
from commonplace.store.transfer import MIGRATION, Key, Row, TableShape, check_alone, complete, migration_mark

R = TypeVar("R")


class ServerSide:
    """A space in a PostgreSQL database. `known` are the tables of a file, which SQLite alone can tell."""

    def __init__(self, store: PostgresStore, known: Sequence[TableShape]) -> None:
        self._store, self._known = store, known
        self.name = f"{store._database.space} in {store.name}"

    def read(self, work: Callable[[], R]) -> R:
        def unhurried() -> R:
            self._store._run("set local statement_timeout = 0")  # a table may have to be sorted
            return work()

        with explained(self._store.name):
            return self._store._database.read(unhurried)

    def shapes(self) -> list[TableShape]:
        with explained(self._store.name):
            here = self._store._database.read(self._store._tables)
        return [shape for shape in self._known if shape.table in here]

    def is_empty(self) -> bool:
        tables = [shape.table for shape in self.shapes() if shape.table != "settings"]
        query = " or ".join(f"exists (select 1 from {table})" for table in tables)
        with explained(self._store.name):
            return not self._store._database.read(lambda: self._store._one(f"select {query}"))

    def rows(self, shape: TableShape, after: Key = ()) -> Iterator[Row]:
        return self._store._rows_of(shape, after)

    def numbers(self) -> dict[str, int]:
        return self._store._numbers()

    def fields(self) -> list[tuple[str, ...]]:
        return list(self._store.drawer(MetadataIndex).fields())

    def mark(self) -> dict[str, Any] | None:
        return migration_mark(self._store)

    def take(self, shape: TableShape, rows: Sequence[Row], mark: dict[str, Any]) -> None:
        with explained(self._store.name), self._store.transaction():
            check_alone(self, len(rows), mark)
            self._store._take(shape, rows)
            self._store.drawer(StoredSettings).set(MIGRATION, mark)

    def clear(self, mark: JSON) -> None:
        with explained(self._store.name), self._store.transaction():
            self._store._run("set local statement_timeout = 0")
            self._store._clear(self._known)
            self._store._number({})
            if mark is not None:
                self._store.drawer(StoredSettings).set(MIGRATION, mark)

    def finish(self, numbers: Mapping[str, int], fields: Iterable[tuple[str, ...]]) -> None:
        with explained(self._store.name), self._store.transaction():
            self._store._number(numbers)
            for path in fields:
                self._store.drawer(MetadataIndex).add(path)

    def complete(self, mark: JSON) -> None:
        complete(self._store, mark)

    def check(self) -> list[str]:
        return self._store.check()
