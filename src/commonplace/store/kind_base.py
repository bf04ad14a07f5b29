"""The parts of a store's interface that one kind of items needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from commonplace.store.rows import (
    EntryRow,
    Moment,
    Past,
    Said,
    Tally,
    ThreadRow,
    Write,
)

if TYPE_CHECKING:
    pass


class EntryStore(Protocol):
    """Memory entries: items of kind `memory` whose key is a number and whose fields name a source."""

    def next_entry(self) -> int:
        """Return the number of the entry that this transaction stores next. Numbers rise and are never reused."""
        ...

    def entries(self, numbers: Sequence[int]) -> list[EntryRow]:
        """Return the entries of these numbers that exist, in the order of the numbers."""
        ...

    def entries_of(self, item_ids: Sequence[int]) -> list[EntryRow]:
        """Return the entries that these items are, in the order of the ids."""
        ...

    def latest_entries(self, threads: Sequence[str], limit: int) -> Mapping[str, list[Said]]:
        """Return the newest entries of each of these threads, newest first. A thread without any is left out."""
        ...

    def add_entries(self, writes: Sequence[Write]) -> list[tuple[int, int]]:
        """Store new entries, each under the next number, which is its key whatever its draft says.

        Return (number, item id) of each. Where this raises, the transaction it is a part of has to fail too.
        """
        ...

    def entry_numbers(
        self,
        *,
        numbers: Sequence[int] | None = None,
        threads: Sequence[str] | None = None,
        source: str | None = None,
        before: int | None = None,
    ) -> list[int]:
        """Return the entries that satisfy every condition, ascending. `before` is a creation time in microseconds."""
        ...

    def expired(self, now: int) -> list[int]:
        """Return the item ids of entries that expire at or before `now`, in microseconds."""
        ...

    def restore_entry(self, write: Write, version: int) -> int:
        """Store an entry that is not here yet, at the version it had when exported, and return its item's id."""
        ...

    def supersede(self, newer: int, older: Sequence[int]) -> None:
        """Note that an entry replaces older ones; those that are not here are left out."""
        ...

    def superseded_items(self) -> list[int]:
        """Return the item ids of entries that newer ones have replaced, ascending."""
        ...

    def entry_times(self, item_ids: Sequence[int] | None = None) -> list[Moment]:
        """Return the memory entries among these items, or all there are, in the order of their item ids."""
        ...

    def threads(self, *, limit: int, offset: int) -> tuple[list[ThreadRow], int]:
        """Return threads of memory entries, the one with the latest entry first, and how many there are in all."""
        ...

    def tally(self) -> Tally:
        """Return the counts of memory entries, all of one moment."""
        ...

    def embedded_entries(self, model_id: int) -> tuple[int, int, int]:
        """Return of a model: entries with vectors, their vectors, and entries that still lack some."""
        ...

    def keep_past(self, item_id: int, past: Past, most: int) -> None:
        """Store a former state of an entry, and remove all but the newest `most`."""
        ...

    def past(self, item_ids: Sequence[int]) -> dict[int, list[Past]]:
        """Return the former states of entries by item id, newest first."""
        ...

    def set_summary(self, item_id: int, body: str, summary: str) -> bool:
        """Store the summary of an entry if this is still its text, and return whether it was stored.

        It makes no version and no change: nobody who follows the log has a use for it.
        """
        ...

    def indexed_fields(self) -> list[tuple[str, ...]]:
        """Return the metadata paths by which entries are found without reading them all."""
        ...

    def index_field(self, path: tuple[str, ...]) -> None:
        """Index a metadata path, so that filters on it are fast. What they answer stays the same."""
        ...

    def drop_field(self, path: tuple[str, ...]) -> None:
        """Remove the index of a metadata path."""
        ...

    def refresh_statistics(self) -> None:
        """Tell the query planner how much there is, at the end of a bulk write."""
        ...
