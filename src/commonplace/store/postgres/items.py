"""The store on PostgreSQL: what its parts that are no drawers yet share. One space of a database.

No statement names the space: the policies of row-level security add it to every one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar
from uuid import uuid4

from commonplace.model import JSON, Change, Draft, IndexedItem, Item
from commonplace.store.change_log import ChangeLog
from commonplace.store.chunks import Chunks
from commonplace.store.filters import fold_value
from commonplace.store.postgres.connection import PostgresDatabase
from commonplace.store.postgres.pooling import Connection
from commonplace.store.postgres.problems import explained
from commonplace.store.postgres.server_session import PostgresSession
from commonplace.store.postgres.urls import shown
from commonplace.store.rows import NumberedWrite
from commonplace.store.session import D

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound="PostgresItems")
NAMED = ("note", "media", "conversation", "character", "prompt")
"""Kinds whose items have a record: a UUID, and a title that they are found by."""


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
        self.session.hooks = {
            "memory": [_EntryHooks(self)],
            **{kind: [_RecordHooks(self)] for kind in NAMED},
        }

    def drawer(self, kind: type[D]) -> D:
        return self.session.drawer(kind)

    def close(self) -> None:
        self._database.close()

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

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with explained(self.name), self._database.writing():
            yield

    @property
    def replaced(self) -> bool:
        return self.drawer(ChangeLog).replaced

    @property
    def log(self) -> str | None:
        return self.drawer(ChangeLog).identity

    def last_change(self) -> int:
        return self.drawer(ChangeLog).last()

    def changes(self, after: int, limit: int) -> list[Change]:
        return self.drawer(ChangeLog).changes(after, limit)

    def indexed(self, item_ids: Sequence[int]) -> list[IndexedItem]:
        return self.drawer(Chunks).indexed(item_ids)

    def metrics(self) -> dict[str, JSON]:
        return self._database.metrics()

    def _put_titled(self, item_id: int, draft: Draft, old: Item | None) -> None:
        """Store the name of an item that has a record."""
        if old is None:
            self._run(
                "insert into records (item_id, kind, uid, folded) values (%s, %s, %s, %s)",
                (item_id, draft.kind, str(uuid4()), fold_value(draft.title)),
            )
        elif old.title != draft.title:
            self._run("update records set folded = %s where item_id = %s", (fold_value(draft.title), item_id))

    def _put_entry(self, item_id: int, draft: Draft, *, fresh: bool) -> None:
        """Store the rest of a memory entry; see `memory.PostgresEntryRows`."""

    def _delete_entries(self, item_ids: Sequence[int]) -> None:
        pass


class _RecordHooks:
    """Names of notes, media, conversations, characters and prompts, until they are a drawer."""

    def __init__(self, store: PostgresItems) -> None:
        self._store = store

    def added(self, writes: Sequence[NumberedWrite]) -> None:
        for item_id, _, write in writes:
            self._store._put_titled(item_id, write.draft, None)

    def changed(self, old: Item, write: NumberedWrite) -> None:
        self._store._put_titled(old.id, write.write.draft, old)

    def unchanged(self, old: Item, write: NumberedWrite) -> None:
        pass

    def removed(self, item_ids: Sequence[int]) -> None:
        pass


class _EntryHooks(_RecordHooks):
    """Memory entries, until they are a drawer."""

    def added(self, writes: Sequence[NumberedWrite]) -> None:
        for item_id, key, write in writes:
            self._store._put_entry(item_id, replace(write.draft, key=key), fresh=True)

    def changed(self, old: Item, write: NumberedWrite) -> None:
        self._store._put_entry(old.id, write.write.draft, fresh=False)

    def removed(self, item_ids: Sequence[int]) -> None:
        self._store._delete_entries(item_ids)
