"""The session of a store in a SQLite file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeVar

from commonplace.store.dialect import CLOCK_NAME, Tuned, Values, for_sqlite
from commonplace.store.session import NOTHING, D, Drawers, Numbered
from commonplace.store.shaping import now_micros
from commonplace.store.sqlite.connection import SqliteDatabase, explained

P = ParamSpec("P")
R = TypeVar("R")

_LAST: dict[Numbered, str] = {
    "item": "select coalesce(max(seq), 0) from sqlite_sequence where name = 'items'",
    "entry": "select coalesce(max(seq), 0) from sqlite_sequence where name = 'memories'",
    "change": "select coalesce(max(seq), 0) from changes",
    "part": """select max((select coalesce(max(id), 0) from fragments),
                 (select coalesce(max(seq), 0) from sqlite_sequence
                  where name in ('tables', 'dirty_places', 'table_jobs')))""",
}
_COUNTED: dict[Numbered, str] = {"item": "items", "entry": "memories", "part": "tables"}
"""Where SQLite counts what nobody may have again."""


class SqliteSession:
    """What drawers speak to. A thread has one connection, and reads its own writes while they are under way."""

    dialect: Literal["sqlite"] = "sqlite"

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database
        self._drawers = Drawers()

    @property
    def path(self) -> Path:
        return self._database.path

    def drawer(self, kind: type[D]) -> D:
        return self._drawers.drawer_of(self, kind)

    def tuned(self, part: Tuned) -> str:
        return part.sqlite

    def read(self, work: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return work(*args, **kwargs)
        except Exception:
            with explained(self.path):  # only now: to enter it takes a fifth of a small read
                raise

    def read_together(self, work: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        with explained(self.path), self._database.snapshot():
            return work(*args, **kwargs)

    def write(self, work: Callable[[], R], *, alone: bool = True, ordered: bool = True) -> R:
        try:
            with self._database.writing(alone=alone):
                return work()
        except Exception:
            with explained(self.path):
                raise

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with explained(self.path), self._database.writing():
            yield

    def all(self, query: str | Tuned, values: Values = NOTHING) -> list[tuple[Any, ...]]:
        text, values = _bound(query, values)
        return self._database.reading().execute(text, values).fetchall()

    def row(self, query: str | Tuned, values: Values = NOTHING) -> tuple[Any, ...] | None:
        text, values = _bound(query, values)
        return self._database.reading().execute(text, values).fetchone()

    def run(self, query: str | Tuned, values: Values = NOTHING) -> None:
        text, values = _bound(query, values)
        self._database.reading().execute(text, values).fetchall()  # a statement is done when its rows are read

    def run_all(self, query: str | Tuned, rows: Iterable[tuple[Any, ...]]) -> None:
        self._database.reading().executemany(for_sqlite(query).text, rows)

    def next(self, of: Numbered, count: int = 1) -> int:
        return self.last(of) + 1

    def last(self, of: Numbered) -> int:
        return int(next(self._database.reading().execute(_LAST[of]))[0])

    def skip(self, of: Numbered, upto: int) -> None:
        values = {"table": _COUNTED[of], "upto": upto}
        self.run(
            """insert into sqlite_sequence (name, seq) select :table, 0
               where not exists (select 1 from sqlite_sequence where name = :table)""",
            values,
        )
        self.run("update sqlite_sequence set seq = max(seq, :upto) where name = :table", values)


def _bound(query: str | Tuned, values: Values) -> tuple[str, Any]:
    rendered = for_sqlite(query)
    if rendered.lists:
        values = rendered.bound(values)
    if rendered.has_clock:
        values = {**values, CLOCK_NAME: now_micros()}
    return rendered.text, values
