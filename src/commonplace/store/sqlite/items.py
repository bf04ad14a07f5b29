"""The store on SQLite: what its parts that are no drawers yet share. One file per space."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from commonplace.model import Filter, Item
from commonplace.store.change_log import ChangeLog
from commonplace.store.filters import Compiled
from commonplace.store.items import Items
from commonplace.store.metadata_index import MetadataIndex
from commonplace.store.rows import Write
from commonplace.store.session import D
from commonplace.store.sqlite.connection import SqliteDatabase, explained
from commonplace.store.sqlite.file_session import SqliteSession
from commonplace.store.sqlite.filters import compile_filter

if TYPE_CHECKING:
    pass

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

    def put(self, writes: Sequence[Write]) -> list[Item]:
        return self.drawer(Items).put(writes)

    def delete(self, item_ids: Sequence[int], expected_version: int | None = None) -> int:
        return self.drawer(Items).delete(item_ids, expected_version)

    def item(self, kind: str, parent: str | None, key: str, *, body: bool = True) -> Item | None:
        return self.drawer(Items).find(kind, parent, key, body=body)

    def items(self, item_ids: Sequence[int], *, body: bool = False) -> list[Item]:
        return self.drawer(Items).get(item_ids, body=body)

    def heads(self, item_ids: Sequence[int], length: int) -> list[Item]:
        return self.drawer(Items).heads(item_ids, length)

    def last_item(self) -> int:
        return self.drawer(Items).last()

    def _compiled(self, filter: Filter) -> Compiled:
        """Return a filter as SQL that uses the index of metadata where only entries are searched."""
        indexed = filter.where and filter.kinds == ("memory",)
        return compile_filter(filter, self.drawer(MetadataIndex).fields() if indexed else {})
