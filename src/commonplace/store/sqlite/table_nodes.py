"""The store on SQLite: which nodes of tables are indexed where, what is left to index, and who is at it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commonplace.model import JSON
from commonplace.store.places import around, is_stale, place_number, plain
from commonplace.store.shaping import PASSAGE_COLUMNS, chunk_from, ids_from, json_text, json_value, now_micros
from commonplace.store.sqlite.items import consistent, guarded
from commonplace.store.sqlite.tables import SqliteTableRows
from commonplace.store.table_rows import (
    DIRTY_COLUMNS,
    JOB_COLUMNS,
    DirtyRow,
    NodePassage,
    Nodes,
    TableJob,
    TableRow,
    job_from,
)

_LAST = "select seq from sqlite_sequence where name = 'items'"  # the largest id ever given out


class SqliteTableNodes(SqliteTableRows):
    """Nodes by the places they are inside of, dirty places, and jobs."""

    # nodes

    @guarded
    def place_nodes(self, table: TableRow, generation: int, nodes: Sequence[tuple[int, str]]) -> None:
        """Note which places items of a table are inside of: (item, pointer)."""
        rows = [
            (place_number(table.id, generation, place), item) for item, pointer in nodes for place in around(pointer)
        ]
        with self._database.writing() as db:
            db.executemany("insert or ignore into node_places values (?, ?)", rows)

    @consistent
    def nodes_at(self, table: str, generation: int, pointer: str, among: Sequence[int] | None = None) -> Nodes:
        """Return the indexed nodes inside a place; only those among some items where these are given."""
        place, db = place_number(table, generation, pointer), self._database.reading()
        if among is None:
            query = "select item_id, chunk_count from node_places join items on items.id = item_id where place = :place"
        else:
            # Crossed, because SQLite would rather walk all of the place than look up the few it does not know of.
            query = """select item_id, chunk_count from json_each(:among) cross join node_places
                       on place = :place and item_id = value cross join items on items.id = item_id"""
        joined: Any = db.execute(
            f"select group_concat(item_id), group_concat(chunk_count) from ({query} order by item_id)",
            {"place": place, "among": None if among is None else json.dumps(list(among))},
        ).fetchone()
        return Nodes(ids_from(joined[0]), ids_from(joined[1]))

    @guarded
    def node_ids(self, table: str, generation: int, pointer: str, *, after: int, upto: int, limit: int) -> list[int]:
        """Return items inside a place in the order of their ids, from just after one."""
        query = """select item_id from node_places where place = ? and item_id > ? and item_id <= ?
                   order by item_id limit ?"""
        place = place_number(table, generation, pointer)
        return [item for (item,) in self._database.reading().execute(query, (place, after, upto, limit))]

    @guarded
    def table_passages(self, table: str, chunk_ids: Sequence[int]) -> list[NodePassage]:
        """Return those of some chunks that are of a table's nodes, with the nodes' places, in the order of the ids."""
        rows = self._database.reading().execute(
            f"""select chunks.id, {PASSAGE_COLUMNS}, fields, content_hash, chunk_count from json_each(?)
                cross join chunks on chunks.id = value cross join items on items.id = chunks.id >> 20
                where items.kind = 'table' and items.parent = ?""",
            (json.dumps(list(chunk_ids)), table),
        )
        passages_by_chunk: dict[int, NodePassage] = {}
        for *chunk, fields, content_hash, count in rows:
            passages_by_chunk[chunk[0]] = NodePassage(chunk_from(tuple(chunk)), json_value(fields), content_hash, count)
        return [passages_by_chunk[chunk] for chunk in chunk_ids if chunk in passages_by_chunk]

    @guarded
    def embedded_among(self, model_id: int, table: str, generation: int, pointer: str) -> int:
        """Return how many chunks inside a place have a vector of a model."""
        query = """select count(*) from node_places cross join chunks
                   on chunks.id >= item_id << 20 and chunks.id < (item_id + 1) << 20
                   where place = ? and exists (select 1 from embeddings where model = ? and key = vector_key)"""
        place = place_number(table, generation, pointer)
        return int(next(self._database.reading().execute(query, (place, model_id)))[0])

    @guarded
    def hidden_nodes(self) -> NDArray[np.int64]:
        """Return the items of tables that no general search shows.

        They are of tables that only their own search tools search, of no current generation, or still to be made anew.
        """
        state = self.tables_state()
        if not state:
            return ids_from(None)
        stale = self._stale_places()
        key = (state, self.last_change(), self.log, *(dirty.id for _, dirty in stale))
        cached: tuple[tuple[Any, ...], NDArray[np.int64]] | None = getattr(self, "_hidden", None)
        if cached is not None and cached[0] == key:
            return cached[1]
        joined: Any = (
            self._database.reading()
            .execute(
                """select group_concat(id) from (select items.id from tables join items
                 on kind = 'table' and parent = tables.id
               where not searchable
                 or (coalesce(building, leaving) is not null and fields ->> '$.generation' <> generation)
               order by items.id)"""
            )
            .fetchone()
        )
        found = ids_from(joined[0])
        if nodes := [node for table, dirty in stale for node in self._stale_nodes(table, dirty)]:
            found = np.union1d(found, nodes)
        self._hidden = (key, found)
        return found

    def _stale_places(self) -> list[tuple[str, DirtyRow]]:
        """Return the places left to index of what general searches show, each with its table's id."""
        columns = ", ".join(f"dirty_places.{name}" for name in DIRTY_COLUMNS.split(", "))
        rows: Any = self._database.reading().execute(
            f"""select tables.id, {columns} from dirty_places
                join tables on number = tbl and tables.generation = dirty_places.generation where searchable"""
        )
        return [(table, DirtyRow._make(row)) for table, *row in rows]

    def _stale_nodes(self, table: str, dirty: DirtyRow) -> list[int]:
        rows: Any = self._database.reading().execute(
            """select item_id, fields ->> '$.pointer' from node_places join items on items.id = item_id
               where place = ?""",
            (place_number(table, dirty.generation, plain(dirty.pointer)),),
        )
        return [node for node, pointer in rows if is_stale(pointer, dirty)]

    # what is left to index

    @guarded
    def add_dirty(
        self, table: TableRow, generation: int, pointer: str, *, first: int | None = None, alone: bool = False
    ) -> None:
        with self._database.writing() as db:
            db.execute(
                f"""insert into dirty_places ({DIRTY_COLUMNS})
                    values (null, ?, ?, ?, ?, ?, null, 0, coalesce(({_LAST}), 0))""",
                (table.number, generation, pointer, first, int(alone)),
            )

    @guarded
    def dirty_of(self, table: int, generation: int | None = None, limit: int = 1000) -> list[DirtyRow]:
        query = f"""select {DIRTY_COLUMNS} from dirty_places where tbl = :tbl
                    and (:generation is null or generation = :generation) order by id limit :limit"""
        values = {"tbl": table, "generation": generation, "limit": limit}
        rows: list[Any] = self._database.reading().execute(query, values).fetchall()
        return [DirtyRow._make((*row[:5], bool(row[5]), *row[6:])) for row in rows]

    @guarded
    def change_dirty(self, dirty: DirtyRow) -> None:
        """Store how far the work on a place is."""
        with self._database.writing() as db:
            db.execute(
                "update dirty_places set cursor = ?, swept = ?, upto = ? where id = ?",
                (dirty.cursor, dirty.swept, dirty.upto, dirty.id),
            )

    @guarded
    def drop_dirty(self, dirty_ids: Sequence[int]) -> None:
        with self._database.writing() as db:
            db.executemany("delete from dirty_places where id = ?", [(identity,) for identity in dirty_ids])

    @guarded
    def drop_dirty_of(self, table: int, generation: int) -> None:
        with self._database.writing() as db:
            db.execute("delete from dirty_places where tbl = ? and generation = ?", (table, generation))

    # jobs

    @guarded
    def want_job(self, table: int, kind: str, progress: Mapping[str, JSON] | None = None) -> int:
        """Have a table worked on, and return the job's id: a new one, or the one there is with its failures forgotten.

        With `progress` only the end of the work is left to do, and a job that is there goes on where it is.
        """
        with self._database.writing() as db:
            row: Any = db.execute(
                """insert into table_jobs (tbl, kind, progress, run_after) values (?, ?, ?, ?)
                   on conflict (tbl) do update set attempts = 0, error = null, run_after = excluded.run_after,
                     progress = case when excluded.progress = '{}' then '{}' else progress end,
                     kind = case when excluded.kind = 'rebuild' then 'rebuild' else kind end returning id""",
                (table, kind, json_text(progress or {}), now_micros()),
            ).fetchone()
            return int(row[0])

    @guarded
    def table_jobs(self, table: int | None = None) -> list[TableJob]:
        query = f"select {JOB_COLUMNS} from table_jobs where :tbl is null or tbl = :tbl order by run_after, id"
        return [job_from(row) for row in self._database.reading().execute(query, {"tbl": table})]

    @guarded
    def claim_table_job(self, job: TableJob, holder: str, lease_s: float) -> TableJob | None:
        """Return a job, claimed as it was seen; None where somebody has claimed, changed or finished it since."""
        now = now_micros()
        with self._database.writing() as db:
            row: Any = db.execute(
                f"""update table_jobs set holder = :holder, lease_until = :until, heartbeat_at = :now
                    where id = :id and holder = :seen and lease_until = :seen_until and attempts = :attempts
                    returning {JOB_COLUMNS}""",
                {
                    "holder": holder, "until": now + int(lease_s * 1e6), "now": now, "id": job.id, "seen": job.holder,
                    "seen_until": job.lease_until, "attempts": job.attempts,
                },
            ).fetchone()  # fmt: skip
            return job_from(row) if row else None

    @guarded
    def beat_table_job(self, job: TableJob, progress: Mapping[str, JSON], lease_s: float) -> bool:
        """Extend the lease of a job and store its progress; return False where it is another's by now."""
        now = now_micros()
        with self._database.writing() as db:
            db.execute(
                """update table_jobs set lease_until = ?, heartbeat_at = ?, progress = ? where id = ? and holder = ?""",
                (now + int(lease_s * 1e6), now, json_text(progress), job.id, job.holder),
            )
            return bool(db.changes())

    @guarded
    def finish_table_job(self, job: TableJob) -> None:
        """Remove a job that is done, unless there is something to do again."""
        with self._database.writing() as db:
            db.execute(
                """delete from table_jobs where id = ? and holder = ?
                   and not exists (select 1 from dirty_places where dirty_places.tbl = table_jobs.tbl)""",
                (job.id, job.holder),
            )

    @guarded
    def fail_table_job(self, job: TableJob, error: str, retry_s: float) -> None:
        with self._database.writing() as db:
            db.execute(
                """update table_jobs set holder = '', lease_until = 0, attempts = attempts + 1, error = ?, run_after = ?
                   where id = ? and holder = ?""",
                (error, now_micros() + int(retry_s * 1e6), job.id, job.holder),
            )

    def clock(self) -> int:
        return now_micros()
