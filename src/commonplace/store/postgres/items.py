"""The store on PostgreSQL: what it is opened with, and what its parts that are no drawers yet share.

No statement names the space: the policies of row-level security add it to every one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from commonplace.model import JSON, Change, IndexedItem
from commonplace.store.change_log import ChangeLog
from commonplace.store.chunks import Chunks
from commonplace.store.postgres.connection import PostgresDatabase
from commonplace.store.postgres.pooling import Connection
from commonplace.store.postgres.problems import explained
from commonplace.store.postgres.server_session import PostgresSession
from commonplace.store.postgres.urls import shown
from commonplace.store.session import D

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound="PostgresItems")


def reads(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Return a method that only reads, all of it of one state, whatever others write meanwhile."""

    @wraps(method)
    def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with explained(self.name):
            return self._database.read(lambda: method(self, *args, **kwargs))

    return call


def writes(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Return a method that is one transaction, or a part of the one under way. Only what it reads is waited for."""

    @wraps(method)
    def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with explained(self.name), self._database.writing() as transaction, transaction.connection.pipeline():
            return method(self, *args, **kwargs)

    return call


class PostgresItems:
    """Items, chunks and changes."""

    def __init__(self, url: str, space: str, connections: int = 20) -> None:
        with explained(shown(url)):
            self._database = PostgresDatabase(url, space, connections)
        self.session = PostgresSession(self._database)
        self.name = self._database.name

    def drawer(self, kind: type[D]) -> D:
        return self.session.drawer(kind)

    def close(self) -> None:
        self._database.close()

    @property
    def replaced(self) -> bool:
        return self.drawer(ChangeLog).replaced

    @property
    def log(self) -> str | None:
        return self.drawer(ChangeLog).identity

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with self.session.transaction():
            yield

    def last_change(self) -> int:
        return self.drawer(ChangeLog).last()

    def changes(self, after: int, limit: int) -> list[Change]:
        return self.drawer(ChangeLog).changes(after, limit)

    def indexed(self, item_ids: Sequence[int]) -> list[IndexedItem]:
        return self.drawer(Chunks).indexed(item_ids)

    def metrics(self) -> dict[str, JSON]:
        return self._database.metrics()

    @property
    def _db(self) -> Connection:
        return self._database.db

    def _one(self, query: str, values: Any = None) -> Any:
        """Return the first column of the only row."""
        row = self._db.execute(query.encode(), values).fetchone()
        return row[0] if row else None

    def _all(self, query: str, values: Any = None) -> list[tuple[Any, ...]]:
        return self._db.execute(query.encode(), values).fetchall()

    def _run(self, query: str, values: Any = None) -> None:
        self._db.execute(query.encode(), values)

    def _run_all(self, query: str, rows: Sequence[Any]) -> None:
        if rows:
            with self._db.cursor() as cursor:
                cursor.executemany(query.encode(), rows)
