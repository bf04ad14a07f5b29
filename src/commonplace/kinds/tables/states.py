"""The nodes inside a place, cached, and the state of a search tool's index, computed from what is left to do."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import numpy as np

from commonplace.index.scope import Ids, among
from commonplace.ingest.embedding import Embedding
from commonplace.kinds.tables.jobs import LONGEST_ERROR, MOST_ATTEMPTS, NOTHING, SENDING, Remote
from commonplace.kinds.tables.node_drawer import JobDrawer, NodeDrawer
from commonplace.kinds.tables.pointers import is_inside, plain, tokens
from commonplace.kinds.tables.rows import DirtyRow, Nodes, TableRow, ToolRow
from commonplace.model import JSON, Filter
from commonplace.store.base import Store
from commonplace.store.items import Items
from commonplace.store.listing import Listing

MOST_KEPT = 64
MOST_FOLLOWED = 2_000
"""Changes after which a place is read anew: following each would take longer."""

MOST_PENDING = 2_000
LARGE, FEW = 5_000, 5_000
"""Nodes inside a place from which on the items outside are named instead, and the most of those."""

_NONE = np.empty(0, dtype=np.int64)
_Key = tuple[str, int, str]
"""A table, a generation of it and a pointer."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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

    def __init__(self, store: Store, embedding: Embedding) -> None:
        self._store, self._embedding = store, embedding
        self._node_rows = store.drawer(NodeDrawer)
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
        nodes = self._followed(key, cached) if cached is not None and is_followable else self._node_rows.nodes_at(*key)
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
        count = sum(self._store.drawer(Listing).counts().values()) - len(nodes.items)
        if count > FEW:
            return None
        return (
            np.setdiff1d(self._store.drawer(Listing).select(Filter()), nodes.items, assume_unique=True)
            if count
            else _NONE
        )

    def _still_outside(self, seen: int, outside: Ids, nodes: Nodes) -> Ids | None:
        """Return the items outside after some changes, without reading all items."""
        touched = self._touched(seen)
        existing = [item.id for item in self._store.drawer(Items).get(touched[~among(touched, nodes.items)].tolist())]
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
        current = self._node_rows.nodes_at(*key, among=touched.tolist())
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
            indexed = self._node_rows.embedded(model, *key) if model is not None else 0
        self._counted[key] = (moment, indexed)
        return indexed


def moment(micros: int) -> str:
    """Return a time in microseconds as answers show it."""
    return (_EPOCH + timedelta(microseconds=micros)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class States:
    """The states of one library's search tools."""

    def __init__(self, store: Store, scopes: NodeScopes, remote: Remote | None) -> None:
        self._store, self._scopes, self._remote = store, scopes, remote
        self._node_rows, self._job_rows = store.drawer(NodeDrawer), store.drawer(JobDrawer)

    def index(self, table: TableRow, tool: ToolRow, dirty: Sequence[DirtyRow] | None = None) -> dict[str, JSON]:
        """Return the index's state for a search's answer. `dirty`: places the search found still to be indexed."""
        status, counts, _ = self._state(table, tool, dirty)
        return {
            "status": status,
            "generation": table.generation,
            "chunks_count": counts.chunks,
            "indexed_chunks_count": counts.indexed,
        }

    def search_index(self, table: TableRow, tool: ToolRow) -> dict[str, JSON]:
        """Return the index's state for a search tool's metadata."""
        status, counts, error = self._state(table, tool)
        moments = (tool.indexed_at, table.updated_at, tool.configured_at, tool.started_at)
        indexed_at = max(at or 0 for at in moments) if status == "ready" else None
        return {
            "status": status,
            "configured_at": moment(tool.configured_at or tool.created_at),
            "started_at": moment(tool.started_at) if tool.started_at else None,
            "indexed_at": moment(indexed_at) if indexed_at else moment(tool.indexed_at) if tool.indexed_at else None,
            "generation": table.generation,
            "nodes_count": counts.nodes,
            "chunks_count": counts.chunks,
            "indexed_chunks_count": counts.indexed,
            "skipped_count": counts.skipped,
            "last_error": error,
        }

    def _state(
        self, table: TableRow, tool: ToolRow, known_dirty: Sequence[DirtyRow] | None = None
    ) -> tuple[str, Counts, str | None]:
        """Return the status, the counts and the error of a search tool's index."""
        place, pointer = tokens(tool.json_path), plain(tool.json_path)
        counts = self._scopes.counts(table, pointer)
        lack = self._remote.lack(self._scopes.nodes(table, pointer)) if self._remote else NOTHING
        counts = replace(counts, indexed=max(0, min(counts.indexed, counts.chunks - lack.pending) - lack.rejected))
        job = next(iter(self._job_rows.jobs(table.number)), None)
        if job is not None and job.attempts >= MOST_ATTEMPTS and (lack.pending or SENDING not in job.progress):
            return "error", counts, job.error
        if lack.rejected or (lack.reason and job is None):
            return "error", counts, lack.reason[:LONGEST_ERROR]
        error = lack.reason[:LONGEST_ERROR] or (self._left_out(table, tool) if counts.skipped else None)
        dirty = any(
            is_inside(dirty_place := tokens(row.pointer), place) or is_inside(place, dirty_place)
            for row in (
                self._node_rows.dirty_of(table.number, table.generation) if known_dirty is None else known_dirty
            )
        )
        if not dirty and not counts.chunks:
            return "ready", counts, error
        if tool.started_at is None:  # in the row that was read; a worker may have finished since
            return "pending", counts, error
        return "indexing" if dirty or counts.indexed < counts.chunks else "ready", counts, error

    def _left_out(self, table: TableRow, tool: ToolRow) -> str | None:
        """Return why the first node that was too long was skipped, or None."""
        nodes = self._scopes.nodes(table, plain(tool.json_path))
        skipped = nodes.items[nodes.chunks == 0][:1000].tolist()
        reasons = (str(item.fields.get("reason", "")) for item in self._store.drawer(Items).get(skipped))
        return next((reason[:LONGEST_ERROR] for reason in reasons if "characters" in reason), None)
