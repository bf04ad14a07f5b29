"""The interface of a store. `sqlite/` and `postgres/` implement it; no SQL is known above this room."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from commonplace.model import JSON, Change, IndexedItem
from commonplace.store.session import D, StoreSession


class Store(Protocol):
    """A store of one space. Every method is safe from any thread; a write that has returned is durable."""

    @property
    def replaced(self) -> bool:
        """Return whether another process has put a backup in its place since it was opened.

        Indexes of the old log are not fit for the new one. Known as of the last call of `last_change`.
        """
        ...

    @property
    def log(self) -> str | None:
        """Return which log that call has seen. The numbers of changes mean something in their own log alone."""
        ...

    @property
    def session(self) -> StoreSession:
        """Return what its drawers speak to."""
        ...

    def close(self) -> None: ...

    def drawer(self, kind: type[D]) -> D:
        """Return the rows of one noun, by their class. It is opened when it is first asked for."""
        ...

    def transaction(self) -> AbstractContextManager[None]:
        """Make everything this thread writes inside the block durable together when it ends, or undo it when it raises.

        Blocks may be nested: an inner one that raises is undone alone.
        """
        ...

    # the log

    def last_change(self) -> int:
        """Return the number of the last change, 0 where there is none, and refresh `replaced` and `log`."""
        ...

    def changes(self, after: int, limit: int) -> list[Change]:
        """Return at most `limit` changes in order, from just after a number."""
        ...

    def indexed(self, item_ids: Sequence[int]) -> list[IndexedItem]:
        """Return the items of these ids that exist as an index reads them, by id."""
        ...

    # care

    def backup(self, target: Path) -> None:
        """Write a consistent copy to a file, which takes its name only when it is complete and on disk."""
        ...

    def restore(self, source: Path) -> None:
        """Replace everything with the content of a backup, of a store of any kind, in one transaction."""
        ...

    def check(self) -> list[str]:
        """Return what is wrong with the store, one sentence each; nothing where it is sound."""
        ...

    def leftovers(self, *, drop: bool = False) -> dict[str, int]:
        """Return how many rows of each sort belong to nothing that is there, and with `drop` remove them."""
        ...

    def refresh_statistics(self) -> None:
        """Tell the query planner how much there is, at the end of a bulk write."""
        ...

    def vacuum(self) -> None:
        """Give room on disk back to the system."""
        ...

    def metrics(self) -> dict[str, JSON]:
        """Return this process's use of the database: connections, queries, transactions that failed."""
        ...
