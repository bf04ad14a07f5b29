"""The store on PostgreSQL: which nodes of tables are indexed where, what is left to index, and who is at it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commonplace.model import CHUNK_BITS, JSON, MOST_CHUNKS
from commonplace.store.places import around, is_stale, place_number, plain
from commonplace.store.postgres.connection import CLOCK
from commonplace.store.postgres.items import reads, writes
from commonplace.store.postgres.problems import explained
from commonplace.store.postgres.tables import PostgresTableRows
from commonplace.store.shaping import CHUNK, chunk_from, ids_from, json_text, json_value
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

_Hidden = tuple[tuple[Any, ...], NDArray[np.int64]]


class PostgresTableNodes(PostgresTableRows):
    """Nodes by the places they are inside of, dirty places, and jobs."""

    # nodes

    @writes
    def place_nodes(self, table: TableRow, generation: int, nodes: Sequence[tuple[int, str]]) -> None:
        rows = [
            (place_number(table.id, generation, place), item) for item, pointer in nodes for place in around(pointer)
        ]
        self._run(
            """insert into node_places (place, item_id) select * from unnest(%s::bigint[], %s::bigint[])
               on conflict do nothing""",
            ([place for place, _ in rows], [item for _, item in rows]),
        )

    @reads
    def nodes_at(self, table: str, generation: int, pointer: str, among: Sequence[int] | None = None) -> Nodes:
        only = "" if among is None else "and item_id = any(%(among)s::bigint[])"
        joined: Any = self._all(
            f"""select string_agg(item_id::text, ',' order by item_id),
                  string_agg(chunk_count::text, ',' order by item_id)
                from node_places join items on items.id = item_id where place = %(place)s {only}""",
            {"place": place_number(table, generation, pointer), "among": None if among is None else list(among)},
        )[0]
        return Nodes(ids_from(joined[0]), ids_from(joined[1]))

    @reads
    def node_ids(self, table: str, generation: int, pointer: str, *, after: int, upto: int, limit: int) -> list[int]:
        query = """select item_id from node_places where place = %s and item_id > %s and item_id <= %s
                   order by item_id limit %s"""
        place = place_number(table, generation, pointer)
        return [item for (item,) in self._all(query, (place, after, upto, limit if limit >= 0 else None))]

    @reads
    def table_passages(self, table: str, chunk_ids: Sequence[int]) -> list[NodePassage]:
        items, ordinals = [one >> CHUNK_BITS for one in chunk_ids], [one & (MOST_CHUNKS - 1) for one in chunk_ids]
        rows = self._all(
            f"""select {CHUNK.postgres}, fields, content_hash, chunk_count
                from chunks join items on items.id = item_id
                where (item_id, ordinal) in (select * from unnest(%s::bigint[], %s::integer[]))
                and kind = 'table' and parent = %s""",
            (items, ordinals, table),
        )
        passages_by_chunk: dict[int, NodePassage] = {}
        for *chunk, fields, content_hash, count in rows:
            passages_by_chunk[chunk[0]] = NodePassage(chunk_from(tuple(chunk)), json_value(fields), content_hash, count)
        return [passages_by_chunk[chunk] for chunk in chunk_ids if chunk in passages_by_chunk]

    @reads
    def embedded_among(self, model_id: int, table: str, generation: int, pointer: str) -> int:
        query = """select count(*) from node_places join chunks using (space, item_id)
                   where place = %s and exists (select 1 from embeddings where model = %s and key = vector_key)"""
        return int(self._one(query, (place_number(table, generation, pointer), model_id)))

    @reads
    def hidden_nodes(self) -> NDArray[np.int64]:
        state = self.tables_state()
        if not state:
            return ids_from(None)
        stale = self._stale_places()
        last = self._one("select coalesce(max(seq), 0) from changes")
        key = (state, last, self.log, *(dirty.id for _, dirty in stale))
        cached: _Hidden | None = getattr(self, "_hidden", None)
        if cached is not None and cached[0] == key:
            return cached[1]
        joined = self._one(
            """select string_agg(items.id::text, ',' order by items.id) from tables
               join items on items.kind = 'table' and items.parent_head = tables.id and items.parent = tables.id
               where (not searchable or building is not null or leaving is not null)
               and (not searchable or (items.fields::jsonb ->> 'generation')::bigint <> generation)"""
        )
        found = ids_from(joined)
        if nodes := [node for table, dirty in stale for node in self._stale_nodes(table, dirty)]:
            found = np.union1d(found, nodes)
        self._hidden = (key, found)
        return found

    def _stale_places(self) -> list[tuple[str, DirtyRow]]:
        columns = ", ".join(f"dirty_places.{name}" for name in DIRTY_COLUMNS.split(", "))
        rows = self._all(
            f"""select tables.id, {columns} from dirty_places
                join tables on number = tbl and tables.generation = dirty_places.generation where searchable"""
        )
        return [(table, _dirty(tuple(row))) for table, *row in rows]

    def _stale_nodes(self, table: str, dirty: DirtyRow) -> list[int]:
        rows = self._all(
            """select item_id, items.fields::jsonb ->> 'pointer' from node_places join items on items.id = item_id
               where place = %s""",
            (place_number(table, dirty.generation, plain(dirty.pointer)),),
        )
        return [node for node, pointer in rows if is_stale(pointer, dirty)]

    # what is left to index

    @writes
    def add_dirty(
        self, table: TableRow, generation: int, pointer: str, *, first: int | None = None, alone: bool = False
    ) -> None:
        transaction = self._database.current
        last = transaction.numbers["item"] if transaction and transaction.numbers else 0
        self._run(
            """insert into dirty_places (id, tbl, generation, pointer, first, alone, swept, upto)
               values (%s, %s, %s, %s, %s, %s, 0, %s)""",
            (self._next_part(), table.number, generation, pointer.encode(), first, alone, last),
        )

    @reads
    def dirty_of(self, table: int, generation: int | None = None, limit: int = 1000) -> list[DirtyRow]:
        rows = self._all(
            f"""select {DIRTY_COLUMNS} from dirty_places where tbl = %(tbl)s
                and (%(generation)s::bigint is null or generation = %(generation)s) order by id limit %(limit)s""",
            {"tbl": table, "generation": generation, "limit": limit},
        )
        return [_dirty(row) for row in rows]

    @writes
    def change_dirty(self, dirty: DirtyRow) -> None:
        cursor = None if dirty.cursor is None else dirty.cursor.encode()
        self._run(
            "update dirty_places set cursor = %s, swept = %s, upto = %s where id = %s",
            (cursor, dirty.swept, dirty.upto, dirty.id),
        )

    @writes
    def drop_dirty(self, dirty_ids: Sequence[int]) -> None:
        self._run("delete from dirty_places where id = any(%s::bigint[])", (list(dirty_ids),))

    @writes
    def drop_dirty_of(self, table: int, generation: int) -> None:
        self._run("delete from dirty_places where tbl = %s and generation = %s", (table, generation))

    # jobs: who holds one waits for no writer, but only a writer ends one, or it could miss what others are adding

    @writes
    def want_job(self, table: int, kind: str, progress: Mapping[str, JSON] | None = None) -> int:
        return int(
            self._one(
                f"""insert into table_jobs (id, tbl, kind, progress, run_after) values (%s, %s, %s, %s, {CLOCK})
                    on conflict (space, tbl) do update set attempts = 0, error = null, run_after = excluded.run_after,
                      progress = case when excluded.progress = '{{}}' then '{{}}' else table_jobs.progress end,
                      kind = case when excluded.kind = 'rebuild' then 'rebuild' else table_jobs.kind end
                    returning id""",
                (self._next_part(), table, kind, json_text(progress or {})),
            )
        )

    @reads
    def table_jobs(self, table: int | None = None) -> list[TableJob]:
        query = f"""select {JOB_COLUMNS} from table_jobs where %(tbl)s::bigint is null or tbl = %(tbl)s
                    order by run_after, id"""
        return [job_from(row) for row in self._all(query, {"tbl": table})]

    def claim_table_job(self, job: TableJob, holder: str, lease_s: float) -> TableJob | None:
        with explained(self.name), self._database.changing():
            rows = self._all(
                f"""update table_jobs
                    set holder = %(holder)s, lease_until = {CLOCK} + %(lease)s, heartbeat_at = {CLOCK}
                    where id = (select id from table_jobs where id = %(id)s and holder = %(seen)s
                      and lease_until = %(seen_until)s and attempts = %(attempts)s for update skip locked)
                    returning {JOB_COLUMNS}""",
                {
                    "holder": holder, "lease": int(lease_s * 1e6), "id": job.id, "seen": job.holder,
                    "seen_until": job.lease_until, "attempts": job.attempts,
                },
            )  # fmt: skip
            return job_from(rows[0]) if rows else None

    def beat_table_job(self, job: TableJob, progress: Mapping[str, JSON], lease_s: float) -> bool:
        with explained(self.name), self._database.changing():
            rows = self._all(
                f"""update table_jobs set lease_until = {CLOCK} + %s, heartbeat_at = {CLOCK}, progress = %s
                    where id = %s and holder = %s returning 1""",
                (int(lease_s * 1e6), json_text(progress), job.id, job.holder),
            )
            return bool(rows)

    @writes
    def finish_table_job(self, job: TableJob) -> None:
        self._run(
            """delete from table_jobs where id = %s and holder = %s
               and not exists (select 1 from dirty_places where dirty_places.tbl = table_jobs.tbl)""",
            (job.id, job.holder),
        )

    def fail_table_job(self, job: TableJob, error: str, retry_s: float) -> None:
        with explained(self.name), self._database.changing():
            self._run(
                f"""update table_jobs set holder = '', lease_until = 0, attempts = attempts + 1, error = %s,
                      run_after = {CLOCK} + %s where id = %s and holder = %s""",
                (error.replace("\0", "\ufffd"), int(retry_s * 1e6), job.id, job.holder),
            )

    @reads
    def clock(self) -> int:
        return int(self._one(f"select {CLOCK}"))


def _dirty(row: tuple[Any, ...]) -> DirtyRow:
    identity, table, generation, pointer, first, alone, cursor, swept, upto = row
    reached = None if cursor is None else cursor.decode()
    return DirtyRow(identity, table, generation, pointer.decode(), first, alone, reached, swept, upto)
