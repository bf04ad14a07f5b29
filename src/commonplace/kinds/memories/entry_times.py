"""Which items are memory entries, and when each was created: a wide search asks this of a thousand items at a time."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np

from commonplace.index.scope import Ids, distinct
from commonplace.store.base import Store
from commonplace.store.rows import Moment

MOST_CHANGES = 20_000
"""Changes that are applied one by one. After more of them, reading all entries again is quicker."""


@dataclass(frozen=True, slots=True)
class CreationTimes:
    """A snapshot of all entries: item ids, ascending, and when each was created, in microseconds."""

    items: Ids
    created: Ids

    def of(self, items: Ids) -> Ids:
        """Return when each of the items was created, in microseconds; -1 for an item that is no entry."""
        if not len(self.items):
            return np.full(len(items), -1, np.int64)
        places = np.minimum(np.searchsorted(self.items, items), len(self.items) - 1)
        return np.where(self.items[places] == items, self.created[places], -1)


class EntryTimes:
    """A follower of the log, in memory: it reads all entries once, then only those that changed."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._known: tuple[int, CreationTimes] | None = None

    def now(self) -> CreationTimes:
        """Return the times of all entries as of the last change in the log."""
        last = self._store.last_change()
        known = self._known
        if known is not None and known[0] == last:
            return known[1]
        with self._lock:
            known = self._known
            if known is None or not 0 <= last - known[0] <= MOST_CHANGES:
                self._known = last, _times(self._store.entry_times())
            elif known[0] < last:
                self._known = last, self._followed(known[1], known[0], last)
            return self._known[1] if self._known else _times([])

    def _followed(self, times: CreationTimes, position: int, last: int) -> CreationTimes:
        """Return `times` with the changes from `position` to `last` applied."""
        changes = self._store.changes(position, last - position)
        changed = distinct(np.array([change.item_id for change in changes if change.op != "embed"], np.int64))
        if not len(changed):
            return times
        fresh = _times(self._store.entry_times(changed.tolist()))
        unchanged = np.isin(times.items, changed, invert=True)
        items = np.concatenate([times.items[unchanged], fresh.items])
        created = np.concatenate([times.created[unchanged], fresh.created])
        order = np.argsort(items, kind="stable")
        return CreationTimes(items[order], created[order])


def _times(moments: list[Moment]) -> CreationTimes:
    items = np.array([moment.item_id for moment in moments], np.int64)
    return CreationTimes(items, np.array([moment.created_at for moment in moments], np.int64))
