"""A space of either database as rows, so that one can be filled from another."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar
from uuid import uuid4

from commonplace.errors import Busy, Command
from commonplace.model import JSON
from commonplace.store.base import Store
from commonplace.store.stored_settings import StoredSettings

MIGRATION = "migration"
"""Name of the setting in which a space that is being filled, or was, notes with what and how far."""

R = TypeVar("R")
Row = tuple[Any, ...]
Key = Sequence[Any]


@dataclass(frozen=True, slots=True)
class TableShape:
    """The columns of a table in SQLite. `key` is unique, and the order in which its rows are walked."""

    table: str
    columns: tuple[str, ...]
    key: tuple[str, ...]


class Side(Protocol):
    """A space that can be copied: its rows are as SQLite has them, whichever database it is in."""

    name: str

    def read(self, work: Callable[[], R]) -> R:
        """Return what `work` returns. All that it reads is of one state."""
        ...

    def shapes(self) -> list[TableShape]:
        """Return the tables, each after those it refers to."""
        ...

    def is_empty(self) -> bool:
        """Return whether nothing is stored, settings apart."""
        ...

    def rows(self, shape: TableShape, after: Key = ()) -> Iterator[Row]:
        """Yield the rows of a table in the order of its key, from just after one."""
        ...

    def numbers(self) -> dict[str, int]:
        """Return the numbers that were given out last, by table."""
        ...

    def fields(self) -> list[tuple[str, ...]]:
        """Return the metadata paths that are indexed."""
        ...

    def mark(self) -> dict[str, Any] | None:
        """Return what is noted under `MIGRATION`."""
        ...

    def take(self, shape: TableShape, rows: Sequence[Row], mark: dict[str, Any]) -> None:
        """Store rows and the mark that says how far they reach, in one transaction."""
        ...

    def clear(self, mark: JSON) -> None:
        """Remove everything, and store the mark unless it is None."""
        ...

    def finish(self, numbers: Mapping[str, int], fields: Iterable[tuple[str, ...]]) -> None:
        """Go on after these numbers, and index these metadata paths."""
        ...

    def complete(self, mark: JSON) -> None:
        """Store the mark of a space that is whole, with an identity of its own."""
        ...

    def check(self) -> list[str]:
        """Return what is wrong with the space, one sentence each."""
        ...


def migration_mark(store: Store) -> dict[str, Any] | None:
    """Return what a store has noted of being filled; None where it never was."""
    value = store.drawer(StoredSettings).get(MIGRATION)
    return value if isinstance(value, dict) else None


def check_alone(side: Side, rows: int, mark: dict[str, Any]) -> None:
    """Raise Busy where another run has gone on filling this side meanwhile."""
    current = side.mark()
    if current is None or current["rows"] != mark["rows"] or current["done"] + rows != mark["done"]:
        raise Busy(f"{side.name} is being filled by another run of `", Command("migrate"), "`. Wait for that one.")


def complete(store: Store, mark: JSON) -> None:
    """Store a mark and a new identity: an index that followed the other store is never taken for one of this."""
    with store.transaction():
        store.drawer(StoredSettings).set("identity", uuid4().hex[:12])
        store.drawer(StoredSettings).set(MIGRATION, mark)
