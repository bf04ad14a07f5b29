"""Store entries inside a transaction: new ones together, those that update or replace others one by one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from functools import partial

from commonplace.errors import CommonplaceError
from commonplace.kinds.memories.entry import BatchFailed, New, NoEntry, Stored
from commonplace.kinds.memories.writing import EntryRules, store_again
from commonplace.store.base import Store
from commonplace.store.rows import Said, Write

Pair = tuple[New, Write]


class Storing:
    """A batch of entries that is stored in order, each as if it came alone. Plainly new ones are written together.

    Atomic: the first that fails is raised, in a batch as a `BatchFailed`; otherwise the error stands where its result
    would.
    """

    def __init__(
        self, store: Store, rules: EntryRules, pairs: Sequence[Pair], *, atomic: bool = True, batch: bool = False
    ) -> None:
        self._store, self._rules, self._pairs = store, rules, pairs
        self._atomic, self._batch = atomic, batch
        self._ends: dict[str, Said] = {}
        """The last entry of each thread, as of `_now`."""
        self._now = 0
        self._waiting: list[int] = []
        self._made: dict[int, Stored | CommonplaceError] = {}

    def results(self) -> list[Stored | CommonplaceError]:
        """Store all entries and return a result or an error for each, in order."""
        self._look([new.thread for new, _ in self._pairs])
        for place, (new, _) in enumerate(self._pairs):
            if self._is_new(new):
                self._waiting.append(place)
                self._ends[new.thread] = Said(0, 0, new.source, False, new.text, self._now)
            else:
                self._write_waiting()
                self._attempt([place], partial(self._one, place))
                self._look([other.thread for other, _ in self._pairs] if new.supersedes else [new.thread])
        self._write_waiting()
        return [self._made[place] for place in range(len(self._pairs))]

    def _look(self, threads: Iterable[str]) -> None:
        """Read the last entry of each of these threads."""
        self._now = time.time_ns() // 1000
        latest = self._store.latest_entries(list(dict.fromkeys(threads)), 1)
        self._ends.update((thread, said[0]) for thread, said in latest.items())

    def _is_new(self, new: New) -> bool:
        """Return whether the entry supersedes nothing and the end of its thread shows that it has no twin."""
        if new.supersedes:
            return False
        end = self._ends.get(new.thread)
        if end is None:
            return True
        if end.created_at > self._now:  # imported, or the clock was put back: what is stored now is not the end
            return False
        return end.source != new.source or not (end.superseded or end.body.strip() == new.text.strip())

    def _write_waiting(self) -> None:
        places, self._waiting = self._waiting, []
        if places:
            self._attempt(places, partial(self._add, places))

    def _attempt(self, places: Sequence[int], write: Callable[[], list[Stored]]) -> None:
        results: Sequence[Stored | CommonplaceError]
        try:
            with nullcontext() if self._atomic else self._store.transaction():
                results = write()
        except CommonplaceError as error:
            if self._atomic and self._batch:
                raise BatchFailed(places[0], error) from error
            if self._atomic:
                raise
            if len(places) > 1:  # one of them failed, and the error does not say which
                for place in places:
                    self._attempt([place], partial(self._add, [place]))
                return
            results = [error]
        self._made.update(zip(places, results, strict=True))

    def _one(self, place: int) -> list[Stored]:
        new = self._pairs[place][0]
        existing = {row.number for row in self._store.entries(new.supersedes)} if new.supersedes else set()
        for number in new.supersedes:
            if number not in existing:
                raise NoEntry(number)
        twin = self._twin(new)
        return self._add([place]) if twin is None else [store_again(self._store, new, twin, self._rules)]

    def _twin(self, new: New) -> Said | None:
        """Return the newest entry of the thread that is not superseded, where it has the same source and text."""
        depth = 1
        while True:
            latest = self._store.latest_entries([new.thread], depth).get(new.thread, [])
            for said in latest:
                if said.source != new.source:
                    return None
                if not said.superseded and said.number not in new.supersedes:
                    return said if said.body.strip() == new.text.strip() else None
            if len(latest) < depth:
                return None
            depth *= 8

    def _add(self, places: Sequence[int]) -> list[Stored]:
        results = []
        added = self._store.add_entries([self._pairs[place][1] for place in places])
        for place, (number, item_id) in zip(places, added, strict=True):
            new, write = self._pairs[place]
            if new.images:
                self._store.attach(item_id, [image.attachment() for image in new.images])
            images, summarized = len(new.images or ()), bool(write.draft.fields.get("summary"))
            results.append(Stored(number, item_id, new.thread, 1, False, images, False, summarized))
        return results
