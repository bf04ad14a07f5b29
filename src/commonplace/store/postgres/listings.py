"""The store on PostgreSQL: entries in the order of their times, threads, and counts of everything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from commonplace.store.postgres.items import PostgresItems, reads
from commonplace.store.rows import MOST_ACTIVE, MOST_TAGS, Moment, Tally, ThreadRow

_ONE = {
    "images": "select coalesce(sum(images), 0) from memories where images > 0",
    "superseded": "select count(distinct older) from supersessions",
    "expiring": "select count(*) from memories where expires_at is not null",
    "summaries": """select count(*) from items where id in (select item_id from memories)
                    and coalesce(trim(fields::jsonb ->> 'summary'), '') <> ''""",
    # Of this space alone: how much others keep is not for its users to know.
    "bytes": """select (select coalesce(sum(pg_column_size(body)), 0) from bodies)
        + (select coalesce(sum(pg_column_size(text)), 0) from chunks)
        + (select coalesce(sum(pg_column_size(vector)), 0) from embeddings)
        + (select coalesce(sum(pg_column_size(data)), 0) from attachments)""",
}


class PostgresListings(PostgresItems):
    """Lists and counts of what is stored."""

    @reads
    def entry_times(self, item_ids: Sequence[int] | None = None) -> list[Moment]:
        if item_ids is None:
            rows = self._all("select item_id, created_at from memories order by item_id")
        else:
            query = "select item_id, created_at from memories where item_id = any(%s::bigint[]) order by item_id"
            rows = self._all(query, (list(item_ids),))
        return [Moment(*row) for row in rows]

    @reads
    def threads(self, *, limit: int, offset: int) -> tuple[list[ThreadRow], int]:
        # The newest and the oldest entry of each thread are the ends of its part of one index.
        rows = self._all(
            """select counted.thread, entries, from_user, multimodal, oldest.created_at, newest.created_at, newest.id
               from memory_threads as counted
               cross join lateral (select created_at from memories
                 where thread_head = counted.thread_head and thread = counted.thread order by created_at, id limit 1)
                 as oldest
               cross join lateral (select created_at, id from memories
                 where thread_head = counted.thread_head and thread = counted.thread
                 order by created_at desc, id desc limit 1) as newest
               order by newest.created_at desc, newest.id desc limit %s offset %s""",
            (limit if limit >= 0 else None, offset),
        )
        return [ThreadRow(*row) for row in rows], int(self._one("select count(*) from memory_threads"))

    @reads
    def tally(self) -> Tally:
        ((entries, threads, user, multimodal),) = self._all(
            """select coalesce(sum(entries), 0)::bigint, count(*), coalesce(sum(from_user), 0)::bigint,
                 coalesce(sum(multimodal), 0)::bigint from memory_threads"""
        )
        active: Any = self._all(
            "select thread, entries from memory_threads order by entries desc, thread limit %s", (MOST_ACTIVE,)
        )
        tags = self._all(
            """select min(tag), count(*) as held, count(*) over () from tags
               where exists (select 1 from memories where memories.item_id = tags.item_id)
               group by folded order by held desc, folded limit %s""",
            (MOST_TAGS,),
        )
        counts: dict[str, int] = {name: int(self._one(query)) for name, query in _ONE.items()}
        common = tuple((tag, held) for tag, held, _ in tags)
        distinct = tags[0][2] if tags else 0
        return Tally(entries, threads, user, multimodal, tuple(active), common, tags=distinct, **counts)

    @reads
    def embedded_entries(self, model_id: int) -> tuple[int, int, int]:
        ((held, vectors, lacking),) = self._all(
            """select count(distinct item_id) filter (where held), count(*) filter (where held),
                 count(distinct item_id) filter (where not held)
               from (select chunks.item_id,
                       exists (select 1 from embeddings where model = %s and key = vector_key) as held
                     from memories join chunks on chunks.item_id = memories.item_id) as passages""",
            (model_id,),
        )
        return held, vectors, lacking
