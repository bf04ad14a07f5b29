"""The session of a space in a PostgreSQL database.

No statement names the space: the policies of row-level security add it to every one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Literal, ParamSpec, TypeVar

from commonplace.store.dialect import Tuned, Values, for_postgres
from commonplace.store.postgres.connection import PostgresDatabase
from commonplace.store.postgres.problems import explained
from commonplace.store.session import NOTHING, D, Drawers, Numbered

P = ParamSpec("P")
R = TypeVar("R")


class PostgresSession:
    """What drawers speak to. Within a read or a write, only what has rows to return is waited for."""

    dialect: Literal["postgres"] = "postgres"

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database
        self._drawers = Drawers()

    @property
    def name(self) -> str:
        return self._database.name

    def drawer(self, kind: type[D]) -> D:
        return self._drawers.drawer_of(self, kind)

    def tuned(self, part: Tuned) -> str:
        return part.postgres

    def read(self, work: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        with explained(self.name):
            return self._database.read(lambda: work(*args, **kwargs))

    read_together = read  # every transaction that reads is of one state

    def write(self, work: Callable[[], R], *, alone: bool = True, ordered: bool = True) -> R:
        database = self._database
        with explained(self.name):
            if not alone and database.current is not None:
                return work()
            if not ordered:
                with database.changing():
                    return work()
            with database.writing() as transaction, transaction.connection.pipeline():
                return work()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with explained(self.name), self._database.writing():
            yield

    def all(self, query: str | Tuned, values: Values = NOTHING) -> list[tuple[Any, ...]]:
        text, values = _bound(query, values)
        return self._database.db.execute(text, values).fetchall()

    def row(self, query: str | Tuned, values: Values = NOTHING) -> tuple[Any, ...] | None:
        text, values = _bound(query, values)
        return self._database.db.execute(text, values).fetchone()

    def run(self, query: str | Tuned, values: Values = NOTHING) -> None:
        text, values = _bound(query, values)
        self._database.db.execute(text, values)

    def run_all(self, query: str | Tuned, rows: Iterable[tuple[Any, ...]]) -> None:
        rendered = for_postgres(query)
        if named := [dict(zip(rendered.names, row, strict=True)) for row in rows]:
            with self._database.db.cursor() as cursor:
                cursor.executemany(rendered.text.encode(), named)

    def next(self, of: Numbered, count: int = 1) -> int:
        return self._database.under_way.next(of, count)

    def last(self, of: Numbered) -> int:
        current = self._database.current
        if current is not None and current.numbers is not None:
            return current.numbers[of]
        row = self.row(f"select {of} from spaces")
        return int(row[0]) if row else 0

    def skip(self, of: Numbered, upto: int) -> None:
        self._database.under_way.skip(of, upto)


def _bound(query: str | Tuned, values: Values) -> tuple[bytes, Any]:
    rendered = for_postgres(query)
    return rendered.text.encode(), rendered.bound(values) if rendered.lists else values
