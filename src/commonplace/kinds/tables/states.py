"""The state of a search tool's index, computed from what is still to be done, never from a note of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from commonplace.kinds.tables.jobs import LONGEST_ERROR, MOST_ATTEMPTS, SENDING
from commonplace.kinds.tables.pointers import is_inside, tokens
from commonplace.kinds.tables.remote import NOTHING, Remote
from commonplace.kinds.tables.scopes import Counts, NodeScopes
from commonplace.model import JSON
from commonplace.store.places import plain
from commonplace.store.table_base import TableStore
from commonplace.store.table_rows import DirtyRow, TableRow, ToolRow

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def moment(micros: int) -> str:
    """Return a time in microseconds as answers show it."""
    return (_EPOCH + timedelta(microseconds=micros)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class States:
    """The states of one library's search tools."""

    def __init__(self, store: TableStore, scopes: NodeScopes, remote: Remote | None) -> None:
        self._store, self._scopes, self._remote = store, scopes, remote

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
        job = next(iter(self._store.table_jobs(table.number)), None)
        if job is not None and job.attempts >= MOST_ATTEMPTS and (lack.pending or SENDING not in job.progress):
            return "error", counts, job.error
        if lack.rejected or (lack.reason and job is None):
            return "error", counts, lack.reason[:LONGEST_ERROR]
        error = lack.reason[:LONGEST_ERROR] or (self._left_out(table, tool) if counts.skipped else None)
        dirty = any(
            is_inside(dirty_place := tokens(row.pointer), place) or is_inside(place, dirty_place)
            for row in (self._store.dirty_of(table.number, table.generation) if known_dirty is None else known_dirty)
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
        reasons = (str(item.fields.get("reason", "")) for item in self._store.items(skipped))
        return next((reason[:LONGEST_ERROR] for reason in reasons if "characters" in reason), None)
