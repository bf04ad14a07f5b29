"""The store on SQLite: what it is opened with, and what its parts that are no drawers yet share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from commonplace.model import JSON, Change, IndexedItem
from commonplace.store.change_log import ChangeLog
from commonplace.store.chunks import Chunks
from commonplace.store.session import D
from commonplace.store.sqlite.connection import SqliteDatabase, explained
from commonplace.store.sqlite.file_session import SqliteSession

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound="SqliteItems")


def guarded(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Return a store method that raises SQLite's errors as ours."""

    @wraps(method)
    def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(self, *args, **kwargs)
        except Exception:
            with explained(self.path):  # only now: to enter it takes a fifth of a small read
                raise

    return call


def consistent(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Return a guarded method whose reads are all of one state, whatever others write between them."""

    @wraps(method)
    def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with explained(self.path), self._database.snapshot():
            return method(self, *args, **kwargs)

    return call


class SqliteItems:
    """Items, chunks and changes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._database = SqliteDatabase(path)
        self.session = SqliteSession(self._database)

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
