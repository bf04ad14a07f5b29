"""Ranked lists of whole entries, for tools whose contract names their lists: by words, by meaning, newest first.

`search/pipeline.py` fuses both legs into one score. Here each leg is a list of its own: every item once, at its best
passage, with the score of that leg, in an order that is total and the same for any depth. A wide search asks of a
thousand items at a time whether they are entries, and when each was created: `EntryTimes` knows it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from commonplace.index.followers import EntryFinder, IndexDamaged, WordReader
from commonplace.index.scope import Ids, Scope, distinct, firsts
from commonplace.index.words.entry_search import EntryHits, no_entry_hits
from commonplace.index.words.wanted import Wanted
from commonplace.kinds.memories.drawer import EntryRows
from commonplace.model import CHUNK_BITS, Filter
from commonplace.search.engine import Floats, deepen
from commonplace.search.look import scope_of
from commonplace.space import Space
from commonplace.store.base import Store
from commonplace.store.listing import Listing
from commonplace.store.outdated import Outdated
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
                self._known = last, _times(self._store.drawer(EntryRows).times())
            elif known[0] < last:
                self._known = last, self._followed(known[1], known[0], last)
            return self._known[1] if self._known else _times([])

    def _followed(self, times: CreationTimes, position: int, last: int) -> CreationTimes:
        """Return `times` with the changes from `position` to `last` applied."""
        changes = self._store.changes(position, last - position)
        changed = distinct(np.array([change.item_id for change in changes if change.op != "embed"], np.int64))
        if not len(changed):
            return times
        fresh = _times(self._store.drawer(EntryRows).times(changed.tolist()))
        unchanged = np.isin(times.items, changed, invert=True)
        items = np.concatenate([times.items[unchanged], fresh.items])
        created = np.concatenate([times.created[unchanged], fresh.created])
        order = np.argsort(items, kind="stable")
        return CreationTimes(items[order], created[order])


def _times(moments: list[Moment]) -> CreationTimes:
    items = np.array([moment.item_id for moment in moments], np.int64)
    return CreationTimes(items, np.array([moment.created_at for moment in moments], np.int64))


# lists


FEWEST_CHECKED, MOST_CHECKED = 60, 400
"""Candidates the store is asked about before it is asked for everything that matches."""

SPARE = 10
"""Further candidates where nearly all can be expected to match."""

FEW = 100
"""Items up to which it is quicker to ask the store than to know of all entries."""


@dataclass(frozen=True, slots=True)
class ByWords:
    """A lexical list, whether it was relaxed to some of the words, and the commit it was read from."""

    found: EntryHits
    relaxed: bool
    reader: WordReader


@dataclass(frozen=True, slots=True)
class ByMeaning:
    """A semantic list: `found.scores` are distances, lower is better; how long embedding the query took, in ms."""

    found: EntryHits
    model: str
    embedding_ms: float


class RankedLists:
    """Ranked lists over one space. It caches no list: indexes and store are asked each time."""

    def __init__(self, space: Space) -> None:
        self._store, self._lexical, self._semantic = space.store, space.lexical, space.semantic
        self._times = EntryTimes(space.store)

    def by_words(
        self,
        wanted: Wanted,
        filter: Filter,
        count: int,
        *,
        language: str,
        loosely: bool | None = False,
        reader: WordReader | None = None,
    ) -> ByWords:
        """Return at least the first `count` entries by words, or all.

        `loosely`: entries with some of the words match too; None: only where no entry has all of them. `reader`: the
        commit of an earlier list, which is then continued as it was, whatever was written since.
        """

        def work(reader: WordReader) -> ByWords:
            search = reader.entries(wanted, language)
            entries = self._entries(search, filter, count, loosely=bool(loosely))
            if loosely is None and not len(entries):
                entries = self._entries(search, filter, count, loosely=True)
                return ByWords(entries, len(entries) > 0, reader)
            return ByWords(entries, bool(loosely), reader)

        if reader is not None:
            try:
                return work(reader)
            except IndexDamaged:
                pass  # an old commit that cannot be read any more; the current one can be mended
        return self._lexical.ask(work)

    def _entries(self, search: EntryFinder, filter: Filter, count: int, *, loosely: bool) -> EntryHits:
        """Return at least `count` entries that match the filter, or all, deeper where the index cannot tell."""
        scope = scope_of(filter)
        if not filter.where and not filter.paths and filter.entries is None:  # the index can decide it alone
            return search.best(count, scope, loosely=loosely)
        spare = SPARE if _is_wide(filter) else FEWEST_CHECKED
        entries = search.best(count + max(spare, count // 4), scope, loosely=loosely)
        matching = self._kept(entries, filter)
        if not entries.complete and 0 < len(matching) < count <= MOST_CHECKED:
            entries = search.best(MOST_CHECKED, scope, loosely=loosely)
            matching = self._kept(entries, filter)
        if not entries.complete and len(matching) < count:
            scope = Scope(kinds=filter.kinds, items=self._selected(filter))
            return search.best(count, scope, loosely=loosely)
        return matching

    def _selected(self, filter: Filter) -> Ids:
        """Return all items that the filter lets pass."""
        items = self._store.drawer(Listing).select(filter)
        return items if filter.entries is None else items[self._times.now().of(items) >= 0]

    def _kept(self, found: EntryHits, filter: Filter) -> EntryHits:
        """Return the list without items that the filter rejects."""
        if not len(found):
            return found
        allowed = self._created(found.items, filter) >= 0
        return found if allowed.all() else found.take(allowed, complete=found.complete)

    def _created(self, items: Ids, filter: Filter) -> Ids:
        """Return when each item was created, in microseconds; -1 for one that does not match."""
        if filter.entries is not None and len(items) > FEW and _is_wide(filter):
            created = self._times.now().of(items)
            hidden = [] if filter.entries.superseded else self._store.drawer(Outdated).superseded()
            return np.where(np.isin(items, hidden), -1, created) if hidden else created
        matching = self._store.drawer(Listing).matching(filter, items.tolist())
        return np.array([matching.get(item, -1) for item in items.tolist()], np.int64)

    def by_meaning(self, text: str, filter: Filter, count: int) -> ByMeaning:
        """Return the `count` entries nearest to a text. Raise Unavailable where nothing has vectors."""
        semantic = self._semantic()
        start = time.perf_counter()
        query = semantic.embedder.embed_queries([text])[0]
        elapsed_ms = (time.perf_counter() - start) * 1000

        def nearest(k: int, items: Ids | None) -> tuple[Ids, Floats]:
            return semantic.index.search(query, k, items)

        if _is_wide(filter):
            entries = self._near(nearest, filter, count, None)
            if entries is not None:
                return ByMeaning(entries, semantic.embedder.name, elapsed_ms)
        entries = self._near(nearest, filter, count, self._selected(filter))
        return ByMeaning(entries or no_entry_hits(), semantic.embedder.name, elapsed_ms)

    def _near(
        self, nearest: Callable[[int, Ids | None], tuple[Ids, Floats]], filter: Filter, count: int, items: Ids | None
    ) -> EntryHits | None:
        """Return the entries of the nearest chunks; None where most of those chunks do not match the filter."""

        def step(k: int) -> tuple[EntryHits, int]:
            chunks, cosines = nearest(k, items)
            _, first = firsts(chunks >> CHUNK_BITS)
            first.sort()
            entries = chunks[first] >> CHUNK_BITS
            created = self._created(entries, filter) if items is None else self._times.now().of(entries)
            allowed = created >= 0
            best = first[allowed]
            distances = np.sqrt(np.maximum(0, 2 - 2 * cosines[best])).astype(np.float32)
            return EntryHits(entries[allowed], chunks[best], distances, created[allowed], len(chunks) < k), len(first)

        def rejects_most(hits: EntryHits, seen: int) -> bool:
            return items is None and len(hits) * 2 < seen

        def enough(result: tuple[EntryHits, int]) -> bool:
            return result[0].complete or len(result[0]) >= count or rejects_most(*result)

        hits, _ = deepen(count + FEWEST_CHECKED, step, enough)
        complete = hits.complete
        if not complete and len(hits) < count:
            return None
        order = np.lexsort((-hits.items, -hits.created, hits.scores))
        ranked = hits.take(order, complete=complete)
        return ranked if complete and len(ranked) <= count else ranked.take(slice(count), complete=False)


def _is_wide(filter: Filter) -> bool:
    """Return whether most items can be expected to match: the filter asks for nothing but a kind."""
    entries = filter.entries
    narrow = entries is not None and (entries.source is not None or entries.multimodal is not None)
    return replace(filter, kinds=(), entries=None) == Filter() and not narrow
