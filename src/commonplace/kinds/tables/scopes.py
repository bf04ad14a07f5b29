"""The indexed nodes inside a place, cached in memory and updated from the log rather than read anew."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass

import numpy as np

from commonplace.index.scope import Ids, among
from commonplace.ingest.embedding import Embedding
from commonplace.model import Filter
from commonplace.store.table_base import TableStore
from commonplace.store.table_rows import Nodes, TableRow

MOST_KEPT = 64
MOST_FOLLOWED = 2_000
"""Changes after which a place is read anew: following each would take longer."""

MOST_PENDING = 2_000
LARGE, FEW = 5_000, 5_000
"""Nodes inside a place from which on the items outside are named instead, and the most of those."""

_NONE = np.empty(0, dtype=np.int64)
_Key = tuple[str, int, str]
"""A table, a generation of it and a pointer."""


@dataclass(frozen=True, slots=True)
class _CachedNodes:
    """The nodes inside a place as of a change, or of a later one: following the log again is harmless."""

    change: int
    nodes: Nodes
    chunks: int
    skipped: int

    @classmethod
    def of(cls, change: int, nodes: Nodes) -> _CachedNodes:
        return cls(change, nodes, int(nodes.chunks.sum()), int(np.count_nonzero(nodes.chunks == 0)))


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of one place: nodes with chunks, their chunks, those of them with vectors, and skipped nodes."""

    nodes: int
    chunks: int
    indexed: int
    skipped: int


class NodeScopes:
    """A cache of the nodes inside places of one library; threads may share it."""

    def __init__(self, store: TableStore, embedding: Embedding) -> None:
        self._store, self._embedding = store, embedding
        self._kept: OrderedDict[_Key, _CachedNodes] = OrderedDict()
        self._counted: dict[_Key, tuple[tuple[int, str | None], int]] = {}
        self._others: dict[_Key, tuple[int, Ids | None]] = {}
        self._lock = threading.Lock()

    def nodes(self, table: TableRow, pointer: str) -> Nodes:
        """Return the nodes of the current generation inside a place, as of now."""
        return self._now((table.id, table.generation, pointer)).nodes

    def _now(self, key: _Key) -> _CachedNodes:
        """Return what is inside a place as of the last change, and cache it."""
        last = self._store.last_change()
        cached = self._kept.get(key)
        if cached is not None and cached.change == last:
            return cached
        is_followable = cached is not None and 0 <= last - cached.change <= MOST_FOLLOWED
        nodes = self._followed(key, cached) if cached is not None and is_followable else self._store.nodes_at(*key)
        now = _CachedNodes.of(last, nodes)
        with self._lock:
            self._kept[key] = now
            self._kept.move_to_end(key)
            while len(self._kept) > MOST_KEPT:
                evicted_key = self._kept.popitem(last=False)[0]
                self._counted.pop(evicted_key, None)
                self._others.pop(evicted_key, None)
        return now

    def around(self, table: TableRow, pointer: str) -> tuple[Ids, Ids | None]:
        """Return the items inside a place and, where they are most of a large library, those outside, if few."""
        key = (table.id, table.generation, pointer)
        now = self._now(key)
        return now.nodes.items, self._others_of(key, now) if len(now.nodes.items) >= LARGE else None

    def _others_of(self, key: _Key, now: _CachedNodes) -> Ids | None:
        """Return the items outside a place, None where they are too many."""
        cached = self._others.get(key)
        if cached is None or not 0 <= now.change - cached[0] <= MOST_FOLLOWED:
            cached = self._others[key] = (now.change, self._outside(now.nodes))
        elif cached[0] != now.change and cached[1] is not None:
            cached = self._others[key] = (now.change, self._still_outside(cached[0], cached[1], now.nodes))
        return cached[1]

    def _outside(self, nodes: Nodes) -> Ids | None:
        count = sum(self._store.counts().values()) - len(nodes.items)
        if count > FEW:
            return None
        return np.setdiff1d(self._store.select(Filter()), nodes.items, assume_unique=True) if count else _NONE

    def _still_outside(self, seen: int, outside: Ids, nodes: Nodes) -> Ids | None:
        """Return the items outside after some changes, without reading all items."""
        touched = self._touched(seen)
        existing = [item.id for item in self._store.items(touched[~among(touched, nodes.items)].tolist())]
        updated = np.union1d(outside[~among(outside, touched)], np.array(existing, dtype=np.int64))
        return updated if len(updated) <= FEW else None

    def _touched(self, seen: int) -> Ids:
        """Return the items that were written or removed since a change, ascending."""
        changes = self._store.changes(seen, 2 * MOST_FOLLOWED)  # some may have come since they were counted
        return np.unique(np.array([change.item_id for change in changes if change.op != "embed"], dtype=np.int64))

    def _followed(self, key: _Key, kept: _CachedNodes) -> Nodes:
        """Return the nodes with the changes since then applied."""
        nodes, touched = kept.nodes, self._touched(kept.change)
        if not len(touched):
            return nodes
        current = self._store.nodes_at(*key, among=touched.tolist())
        stale_rows = np.searchsorted(nodes.items, touched[among(touched, nodes.items)])
        items, chunks = np.delete(nodes.items, stale_rows), np.delete(nodes.chunks, stale_rows)
        insert_at = np.searchsorted(items, current.items)
        return Nodes(np.insert(items, insert_at, current.items), np.insert(chunks, insert_at, current.chunks))

    def counts(self, table: TableRow, pointer: str) -> Counts:
        """Return how much there is inside a place, and how much of it both legs have."""
        key = (table.id, table.generation, pointer)
        now = self._now(key)
        return Counts(len(now.nodes.items) - now.skipped, now.chunks, self._indexed(key, now), now.skipped)

    def _indexed(self, key: _Key, now: _CachedNodes) -> int:
        if not now.chunks:
            return 0
        moment = (now.change, self._embedding.chosen)
        cached = self._counted.get(key)
        if cached is not None and cached[0] == moment:
            return cached[1]
        pending = self._embedding.pending(MOST_PENDING)
        if pending is None:
            indexed = 0
        elif len(pending) < MOST_PENDING:
            owners = np.array([chunk.item_id for chunk in pending], dtype=np.int64)
            indexed = now.chunks - int(np.count_nonzero(among(owners, now.nodes.items)))
        else:
            model = self._embedding.model_id
            indexed = self._store.embedded_among(model, *key) if model is not None else 0
        self._counted[key] = (moment, indexed)
        return indexed
