"""The indexed nodes inside a place, kept in memory and brought up to date by the log rather than read anew."""

from __future__ import annotations

import threading
from collections import OrderedDict

import numpy as np

from commonplace.index.scope import Ids, among
from commonplace.ingest.embedding import Embedding
from commonplace.lazy_dataclass import dataclass
from commonplace.model import Filter
from commonplace.store.table_base import TableStore
from commonplace.store.table_rows import Nodes, TableRow

MOST_KEPT = 64
MOST_FOLLOWED = 2_000
"""Changes after which a place is read anew: following each would take longer."""

MOST_PENDING = 2_000
LARGE, FEW = 5_000, 5_000
"""From how many nodes on it is worth while to name what is outside instead, and how much that may be."""

_NONE = np.empty(0, dtype=np.int64)
_Key = tuple[str, int, str]
"""A table, a generation of it and a pointer."""


@dataclass(frozen=True, slots=True)
class _Kept:
    """What is inside a place as of a change, or of a later one: following the log again is harmless."""

    change: int
    nodes: Nodes
    chunks: int
    skipped: int

    @classmethod
    def of(cls, change: int, nodes: Nodes) -> _Kept:
        return cls(change, nodes, int(nodes.chunks.sum()), int(np.count_nonzero(nodes.chunks == 0)))


@dataclass(frozen=True, slots=True)
class Counts:
    """Of one place: nodes with chunks, their chunks, those of them with vectors, and nodes left out."""

    nodes: int
    chunks: int
    indexed: int
    skipped: int


class Scopes:
    """Made once per library; threads may share it."""

    def __init__(self, store: TableStore, embedding: Embedding) -> None:
        self._store, self._embedding = store, embedding
        self._kept: OrderedDict[_Key, _Kept] = OrderedDict()
        self._counted: dict[_Key, tuple[tuple[int, str | None], int]] = {}
        self._others: dict[_Key, tuple[int, Ids | None]] = {}
        self._lock = threading.Lock()

    def nodes(self, table: TableRow, pointer: str) -> Nodes:
        """The nodes of the current generation inside a place, as of now."""
        return self._now((table.id, table.generation, pointer)).nodes

    def _now(self, key: _Key) -> _Kept:
        last = self._store.last_change()
        kept = self._kept.get(key)
        if kept is not None and kept.change == last:
            return kept
        near = kept is not None and 0 <= last - kept.change <= MOST_FOLLOWED
        nodes = self._followed(key, kept) if kept is not None and near else self._store.nodes_at(*key)
        now = _Kept.of(last, nodes)
        with self._lock:
            self._kept[key] = now
            self._kept.move_to_end(key)
            while len(self._kept) > MOST_KEPT:
                gone = self._kept.popitem(last=False)[0]
                self._counted.pop(gone, None)
                self._others.pop(gone, None)
        return now

    def around(self, table: TableRow, pointer: str) -> tuple[Ids, Ids | None]:
        """The items inside a place and, where that is most of a large library, those outside of it, if they are few."""
        key = (table.id, table.generation, pointer)
        now = self._now(key)
        return now.nodes.items, self._others_of(key, now) if len(now.nodes.items) >= LARGE else None

    def _others_of(self, key: _Key, now: _Kept) -> Ids | None:
        kept = self._others.get(key)
        if kept is None or not 0 <= now.change - kept[0] <= MOST_FOLLOWED:
            kept = self._others[key] = (now.change, self._outside(now.nodes))
        elif kept[0] != now.change and kept[1] is not None:
            kept = self._others[key] = (now.change, self._still_outside(kept[0], kept[1], now.nodes))
        return kept[1]

    def _outside(self, nodes: Nodes) -> Ids | None:
        count = sum(self._store.counts().values()) - len(nodes.items)
        if count > FEW:
            return None
        return np.setdiff1d(self._store.select(Filter()), nodes.items, assume_unique=True) if count else _NONE

    def _still_outside(self, seen: int, outside: Ids, nodes: Nodes) -> Ids | None:
        """The same after some changes, without a look at everything there is."""
        touched = self._touched(seen)
        there = [item.id for item in self._store.items(touched[~among(touched, nodes.items)].tolist())]
        found = np.union1d(outside[~among(outside, touched)], np.array(there, dtype=np.int64))
        return found if len(found) <= FEW else None

    def _touched(self, seen: int) -> Ids:
        """The items that were written or removed since a change, ascending."""
        changes = self._store.changes(seen, 2 * MOST_FOLLOWED)  # some may have come since they were counted
        return np.unique(np.array([change.item_id for change in changes if change.op != "embed"], dtype=np.int64))

    def _followed(self, key: _Key, kept: _Kept) -> Nodes:
        nodes, touched = kept.nodes, self._touched(kept.change)
        if not len(touched):
            return nodes
        now = self._store.nodes_at(*key, among=touched.tolist())
        gone = np.searchsorted(nodes.items, touched[among(touched, nodes.items)])
        items, chunks = np.delete(nodes.items, gone), np.delete(nodes.chunks, gone)
        places = np.searchsorted(items, now.items)
        return Nodes(np.insert(items, places, now.items), np.insert(chunks, places, now.chunks))

    def counts(self, table: TableRow, pointer: str) -> Counts:
        """How much there is inside a place, and how much of it both legs know."""
        key = (table.id, table.generation, pointer)
        now = self._now(key)
        return Counts(len(now.nodes.items) - now.skipped, now.chunks, self._indexed(key, now), now.skipped)

    def _indexed(self, key: _Key, now: _Kept) -> int:
        if not now.chunks:
            return 0
        moment = (now.change, self._embedding.chosen)
        kept = self._counted.get(key)
        if kept is not None and kept[0] == moment:
            return kept[1]
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
