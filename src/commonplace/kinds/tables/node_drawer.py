"""Drawers of what is indexed of tables: nodes by the places they are inside of, places still to index, and jobs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commonplace.kinds.tables import postgres, sqlite
from commonplace.kinds.tables.drawer import read_back, spelled
from commonplace.kinds.tables.pointers import is_stale, place_number, plain
from commonplace.kinds.tables.rows import DIRTY_COLUMNS, JOB_COLUMNS, DirtyRow, NodePassage, Nodes, TableJob, TableRow
from commonplace.model import CHUNK_BITS, JSON, MOST_CHUNKS
from commonplace.store.base import Store
from commonplace.store.dialect import NO_LIMIT, Tuned, marks
from commonplace.store.facets import around
from commonplace.store.session import Drawer, StoreSession, reads, reads_together, writes, writes_unordered
from commonplace.store.shaping import chunk_from, ids_from, json_text, json_value

_NODES_AT = Tuned(sqlite.NODES_AT, postgres.NODES_AT)
_NODES_AMONG = Tuned(sqlite.NODES_AMONG, postgres.NODES_AMONG)
_PASSAGES = Tuned(sqlite.PASSAGES, postgres.PASSAGES)
_EMBEDDED = Tuned(sqlite.EMBEDDED, postgres.EMBEDDED)
_HIDDEN = Tuned(sqlite.HIDDEN, postgres.HIDDEN)
_AT_PLACE = " from node_places join items on items.id = item_id where place = :place"
_POINTERS = Tuned(f"select item_id, {sqlite.POINTER}{_AT_PLACE}", f"select item_id, {postgres.POINTER}{_AT_PLACE}")
_PLACE = "insert into node_places (place, item_id) values (:place, :item) on conflict do nothing"
_PLACE_ALL = """insert into node_places (place, item_id)
    select place, item from rows(:places place int, item int) as new on conflict do nothing"""
_STALE = f"""select tables.id, {", ".join(f"dirty_places.{name}" for name in DIRTY_COLUMNS.split(", "))}
    from dirty_places join tables on number = tbl and tables.generation = dirty_places.generation where searchable"""
_ADD_DIRTY = f"insert into dirty_places ({DIRTY_COLUMNS}) values ({marks(DIRTY_COLUMNS)})"
_WANT = """insert into table_jobs (id, tbl, kind, progress, run_after) values (:id, :table, :kind, :progress, clock())
    on conflict key(tbl) do update set attempts = 0, error = null, run_after = excluded.run_after,
      progress = case when excluded.progress = '{}' then '{}' else table_jobs.progress end,
      kind = case when excluded.kind = 'rebuild' then 'rebuild' else table_jobs.kind end
    returning id"""
_CLAIM = Tuned(
    *(
        f"""update table_jobs set holder = :holder, lease_until = clock() + :lease, heartbeat_at = clock()
            where {free} returning {JOB_COLUMNS}"""
        for free in (sqlite.FREE_JOB, postgres.FREE_JOB)
    )
)
_BEAT = """update table_jobs set lease_until = clock() + :lease, heartbeat_at = clock(), progress = :progress
    where id = :id and holder = :holder returning id"""
_FINISH = """delete from table_jobs where id = :id and holder = :holder
    and not exists (select 1 from dirty_places where dirty_places.tbl = table_jobs.tbl)"""
_FAIL = """update table_jobs set holder = '', lease_until = 0, attempts = attempts + 1, error = :error,
      run_after = clock() + :retry
    where id = :id and holder = :holder"""


class NodeDrawer(Drawer):
    """Nodes by the places they are inside of, and places that have changed and are not indexed yet."""

    def __init__(self, session: StoreSession) -> None:
        super().__init__(session)
        self._hidden: tuple[tuple[Any, ...], NDArray[np.int64]] | None = None

    @writes
    def place_nodes(self, table: TableRow, generation: int, nodes: Sequence[tuple[int, str]]) -> None:
        """Note which places items of a table are inside of: (item, pointer)."""
        places = [
            (place_number(table.id, generation, place), item) for item, pointer in nodes for place in around(pointer)
        ]
        if self._db.dialect == "sqlite":
            self._db.run_all(_PLACE, places)
        else:
            self._db.run(_PLACE_ALL, {"places": places})

    @reads_together
    def nodes_at(self, table: str, generation: int, pointer: str, among: Sequence[int] | None = None) -> Nodes:
        """Return the indexed nodes inside a place; only those among some items where these are given."""
        values: dict[str, Any] = {"place": place_number(table, generation, pointer)}
        if among is None:
            joined: Any = self._db.row(_NODES_AT, values)
        else:
            joined = self._db.row(_NODES_AMONG, {**values, "among": among, "few": json.dumps(list(among))})
        return Nodes(ids_from(joined[0]), ids_from(joined[1]))

    @reads
    def node_ids(self, table: str, generation: int, pointer: str, *, after: int, upto: int, limit: int) -> list[int]:
        """Return items inside a place in the order of their ids, from just after one. A limit below 0 is none."""
        place = place_number(table, generation, pointer)
        rows = self._db.all(
            """select item_id from node_places where place = :place and item_id > :after and item_id <= :upto
               order by item_id limit :limit""",
            {"place": place, "after": after, "upto": upto, "limit": limit if limit >= 0 else NO_LIMIT},
        )
        return [item for (item,) in rows]

    @reads
    def passages(self, table: str, chunk_ids: Sequence[int]) -> list[NodePassage]:
        """Return those of some chunks that are of a table's nodes, with the nodes' places, in the order of the ids."""
        if self._db.dialect == "sqlite":
            wanted: dict[str, Any] = {"chunks": json.dumps(list(chunk_ids))}
        else:
            ordinals = [chunk & (MOST_CHUNKS - 1) for chunk in chunk_ids]
            wanted = {"items": [chunk >> CHUNK_BITS for chunk in chunk_ids], "ordinals": ordinals}
        passages_by_chunk: dict[int, NodePassage] = {}
        for *chunk, fields, content_hash, count in self._db.all(_PASSAGES, {**wanted, "table": table}):
            passages_by_chunk[chunk[0]] = NodePassage(chunk_from(tuple(chunk)), json_value(fields), content_hash, count)
        return [passages_by_chunk[chunk] for chunk in chunk_ids if chunk in passages_by_chunk]

    @reads
    def embedded(self, model_id: int, table: str, generation: int, pointer: str) -> int:
        """Return how many chunks inside a place have a vector of a model."""
        values = {"place": place_number(table, generation, pointer), "model": model_id}
        row: Any = self._db.row(_EMBEDDED, values)
        return int(row[0])

    @reads_together
    def hidden(self, state: JSON, log: str | None) -> NDArray[np.int64]:
        """Return the items of tables that no general search shows.

        They are of tables that only their own search tools search, of no current generation, or still to be made anew.
        `state`: as `TableDrawer.state` told it. `log`: the name of the log. With the last change, they tell whether the
        items are still those of the last call.
        """
        stale = [(table, _dirty(tuple(row))) for table, *row in self._db.all(_STALE)]
        key = (state, self._db.last("change"), log, *(dirty.id for _, dirty in stale))
        if self._hidden is not None and self._hidden[0] == key:
            return self._hidden[1]
        joined: Any = self._db.row(_HIDDEN)
        items = ids_from(joined[0])
        if nodes := [node for table, dirty in stale for node in self._stale_nodes(table, dirty)]:
            items = np.union1d(items, nodes)
        self._hidden = (key, items)
        return items

    def _stale_nodes(self, table: str, dirty: DirtyRow) -> list[int]:
        rows = self._db.all(_POINTERS, {"place": place_number(table, dirty.generation, plain(dirty.pointer))})
        return [node for node, pointer in rows if is_stale(pointer, dirty)]

    # what is left to index

    @writes
    def add_dirty(
        self, table: TableRow, generation: int, pointer: str, *, first: int | None = None, alone: bool = False
    ) -> None:
        """Note that a place has changed and is to be indexed."""
        number, last = self._db.next("part"), self._db.last("item")
        dirty = DirtyRow(number, table.number, generation, pointer, first, alone, None, 0, last)
        values = {**dirty._asdict(), "tbl": dirty.table, "pointer": spelled(self._db, pointer)}
        self._db.run(_ADD_DIRTY, values)

    @reads
    def dirty_of(self, table: int, generation: int | None = None, limit: int = 1000) -> list[DirtyRow]:
        """Return the places of a table, or of a generation of it, that are still to be indexed, oldest first."""
        only = "" if generation is None else "and generation = :generation"
        rows = self._db.all(
            f"select {DIRTY_COLUMNS} from dirty_places where tbl = :table {only} order by id limit :limit",
            {"table": table, "generation": generation, "limit": limit},
        )
        return [_dirty(row) for row in rows]

    @writes
    def change_dirty(self, dirty: DirtyRow) -> None:
        """Store how far the work on a place is."""
        cursor = None if dirty.cursor is None else spelled(self._db, dirty.cursor)
        self._db.run(
            "update dirty_places set cursor = :cursor, swept = :swept, upto = :upto where id = :id",
            {"cursor": cursor, "swept": dirty.swept, "upto": dirty.upto, "id": dirty.id},
        )

    @writes
    def drop_dirty(self, dirty_ids: Sequence[int]) -> None:
        """Remove places that are indexed."""
        self._db.run("delete from dirty_places where id in each(:ids int)", {"ids": dirty_ids})

    @writes
    def drop_dirty_of(self, table: int, generation: int) -> None:
        """Remove the places of a generation that is given up."""
        values = {"table": table, "generation": generation}
        self._db.run("delete from dirty_places where tbl = :table and generation = :generation", values)


class JobDrawer(Drawer):
    """Work that is left for tables, and who is at it.

    Who holds a job waits for no writer, but only a writer ends one, or it could miss what others are adding.
    """

    @writes
    def want(self, table: int, kind: str, progress: Mapping[str, JSON] | None = None) -> int:
        """Have a table worked on, and return the job's id: a new one, or the one there is with its failures forgotten.

        With `progress` only the end of the work is left to do, and a job that is there goes on where it is.
        """
        values = {"id": self._db.next("part"), "table": table, "kind": kind, "progress": json_text(progress or {})}
        row: Any = self._db.row(_WANT, values)
        return int(row[0])

    @reads
    def jobs(self, table: int | None = None) -> list[TableJob]:
        """Return the jobs, or that of a table, in the order in which they are due."""
        where = "" if table is None else "where tbl = :table"
        rows = self._db.all(f"select {JOB_COLUMNS} from table_jobs {where} order by run_after, id", {"table": table})
        return [_job(row) for row in rows]

    @writes_unordered
    def claim(self, job: TableJob, holder: str, lease_s: float) -> TableJob | None:
        """Return a job, claimed as it was seen; None where somebody has claimed, changed or finished it since."""
        row = self._db.row(
            _CLAIM,
            {
                "holder": holder, "lease": int(lease_s * 1e6), "id": job.id, "seen": job.holder,
                "seen_until": job.lease_until, "attempts": job.attempts,
            },
        )  # fmt: skip
        return _job(row) if row else None

    @writes_unordered
    def beat(self, job: TableJob, progress: Mapping[str, JSON], lease_s: float) -> bool:
        """Extend the lease of a job and store its progress; return False where it is another's by now."""
        values = {"lease": int(lease_s * 1e6), "progress": json_text(progress), "id": job.id, "holder": job.holder}
        return self._db.row(_BEAT, values) is not None

    @writes
    def finish(self, job: TableJob) -> None:
        """Remove a job that is done, unless there is something to do again."""
        self._db.run(_FINISH, {"id": job.id, "holder": job.holder})

    @writes_unordered
    def fail(self, job: TableJob, error: str, retry_s: float) -> None:
        """Note that a job failed, and have it done again after so many seconds."""
        sentence = error.replace("\0", "\ufffd")
        values = {"error": sentence, "retry": int(retry_s * 1e6), "id": job.id, "holder": job.holder}
        self._db.run(_FAIL, values)

    @reads
    def clock(self) -> int:
        """Return the moment, in microseconds, by the clock that leases go by: one for all who share the store."""
        row: Any = self._db.row("select clock()")
        return int(row[0])


def hidden_nodes(store: Store, state: JSON) -> NDArray[np.int64]:
    """Return the items of tables that no general search shows. See `NodeDrawer.hidden`."""
    return store.drawer(NodeDrawer).hidden(state, store.log)


def _dirty(row: tuple[Any, ...]) -> DirtyRow:
    identity, table, generation, pointer, first, alone, cursor, swept, upto = row
    reached = None if cursor is None else read_back(cursor)
    return DirtyRow(identity, table, generation, read_back(pointer), first, bool(alone), reached, swept, upto)


def _job(row: tuple[Any, ...]) -> TableJob:
    identity, table, kind, progress, *rest = row
    return TableJob(identity, table, kind, json.loads(progress), *rest)
