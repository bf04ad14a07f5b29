"""The indexed nodes inside a place, kept in memory and brought up to date by the log rather than read anew."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commonplace.ingest.embedding import Embedding
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
        self._kept: OrderedDict[tuple[str, int, str], tuple[int, Nodes]] = OrderedDict()
        self._counted: dict[tuple[str, int, str], tuple[tuple[int, str | None], int]] = {}
        self._others: dict[tuple[str, int, str], tuple[int, NDArray[np.int64] | None]] = {}
        self._lock = threading.Lock()

    def nodes(self, table: TableRow, pointer: str) -> Nodes:
        """The nodes of the current generation inside a place, as of now."""
        key = (table.id, table.generation, pointer)
        last = self._store.last_change()
        kept = self._kept.get(key)
        if kept is not None and kept[0] == last:
            return kept[1]
        near = kept is not None and last - kept[0] <= MOST_FOLLOWED
        nodes = self._followed(key, *kept) if kept is not None and near else self._store.nodes_at(*key)
        with self._lock:
            self._kept[key] = (last, nodes)
            self._kept.move_to_end(key)
            while len(self._kept) > MOST_KEPT:
                gone = self._kept.popitem(last=False)[0]
                self._counted.pop(gone, None)
                self._others.pop(gone, None)
        return nodes

    def others(self, table: TableRow, pointer: str) -> NDArray[np.int64] | None:
        """The items that are not inside a place which is most of a large library, if they are few."""
        nodes, last = self.nodes(table, pointer), self._store.last_change()
        if len(nodes.items) < LARGE:
            return None
        key = (table.id, table.generation, pointer)
        kept = self._others.get(key)
        if kept is None or kept[0] != last:
            count = sum(self._store.counts().values()) - len(nodes.items)
            found = np.setdiff1d(self._store.select(Filter()), nodes.items) if 0 < count <= FEW else _NONE
            kept = self._others[key] = (last, found if count <= FEW else None)
        return kept[1]

    def _followed(self, key: tuple[str, int, str], seen: int, nodes: Nodes) -> Nodes:
        changes = self._store.changes(seen, MOST_FOLLOWED + 1)
        touched = np.unique(np.array([change.item_id for change in changes if change.op != "embed"], dtype=np.int64))
        if not len(touched):
            return nodes
        now = self._store.nodes_at(*key, among=touched.tolist())
        stays = ~np.isin(nodes.items, touched, assume_unique=True)
        items = np.concatenate([nodes.items[stays], now.items])
        order = np.argsort(items, kind="stable")
        return Nodes(items[order], np.concatenate([nodes.chunks[stays], now.chunks])[order])

    def counts(self, table: TableRow, pointer: str) -> Counts:
        """How much there is inside a place, and how much of it both legs know."""
        nodes = self.nodes(table, pointer)
        chunks, skipped = int(nodes.chunks.sum()), int(np.count_nonzero(nodes.chunks == 0))
        return Counts(len(nodes.items) - skipped, chunks, self._indexed(table, pointer, nodes, chunks), skipped)

    def _indexed(self, table: TableRow, pointer: str, nodes: Nodes, chunks: int) -> int:
        if not chunks:
            return 0
        key = (table.id, table.generation, pointer)
        moment = (self._store.last_change(), self._embedding.chosen)
        kept = self._counted.get(key)
        if kept is not None and kept[0] == moment:
            return kept[1]
        pending = self._embedding.pending(MOST_PENDING)
        if pending is None:
            indexed = 0
        elif len(pending) < MOST_PENDING:
            owners = np.array([chunk.item_id for chunk in pending], dtype=np.int64)
            indexed = chunks - int(np.count_nonzero(np.isin(owners, nodes.items)))
        else:
            model = self._embedding.model_id
            indexed = self._store.embedded_among(model, *key) if model is not None else 0
        self._counted[key] = (moment, indexed)
        return indexed
