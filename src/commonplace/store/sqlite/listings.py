"""The store on SQLite: entries in the order of their times, threads, and counts of everything."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from commonplace.model import CHUNK_BITS
from commonplace.store.rows import MOST_ACTIVE, MOST_TAGS, Moment, Tally, ThreadRow
from commonplace.store.sqlite.items import SqliteItems, consistent, guarded


class SqliteListings(SqliteItems):
    """Lists and counts of what is stored."""

    @guarded
    def entry_times(self, item_ids: Sequence[int] | None = None) -> list[Moment]:
        db = self._database.reading()
        if item_ids is None:
            rows: Any = db.execute("select item_id, created_at from memories order by item_id")
        else:
            rows = db.execute(
                """select item_id, created_at from json_each(?) as wanted
                   cross join memories on item_id = wanted.value order by item_id""",
                (json.dumps(sorted(set(item_ids))),),
            )
        return [Moment(*row) for row in rows]

    @consistent
    def threads(self, *, limit: int, offset: int) -> tuple[list[ThreadRow], int]:
        db = self._database.reading()
        # The newest and the oldest entry of each thread are the ends of its part of one index.
        rows: Any = db.execute(
            """select thread, entries, from_user, multimodal,
                 (select created_at from memories where thread = counted.thread order by created_at, id limit 1),
                 (select created_at from memories where thread = counted.thread
                  order by created_at desc, id desc limit 1) as last_at,
                 (select id from memories where thread = counted.thread
                  order by created_at desc, id desc limit 1) as last_id
               from memory_threads as counted order by last_at desc, last_id desc limit ? offset ?""",
            (limit, offset),
        )
        thread_rows = [ThreadRow(*row) for row in rows]
        return thread_rows, int(next(db.execute("select count(*) from memory_threads"))[0])

    @consistent
    def tally(self) -> Tally:
        db = self._database.reading()
        entries, threads, user, multimodal = next(
            db.execute(
                """select coalesce(sum(entries), 0), count(*), coalesce(sum(from_user), 0),
                     coalesce(sum(multimodal), 0) from memory_threads"""
            )
        )
        active: Any = db.execute(
            "select thread, entries from memory_threads order by entries desc, thread limit ?", (MOST_ACTIVE,)
        )
        tags: Any = db.execute(
            """select min(tag), count(*) as held, count(*) over () from tags
               where exists (select 1 from memories where memories.item_id = tags.item_id)
               group by folded order by held desc, folded limit ?""",
            (MOST_TAGS,),
        ).fetchall()
        one = {
            "images": "select count(*) from item_attachments cross join memories using (item_id)",
            "superseded": "select count(distinct older) from supersessions",
            "expiring": "select count(*) from memories where expires_at is not null",
            "summaries": """select count(*) from memories cross join items on items.id = item_id
                            where instr(fields, '"summary"') > 0 and coalesce(trim(fields ->> 'summary'), '') <> ''""",
            "bytes": "select page_count * page_size from pragma_page_count, pragma_page_size",
        }
        counts: dict[str, int] = {name: int(next(db.execute(query))[0]) for name, query in one.items()}
        common = tuple((tag, held) for tag, held, _ in tags)
        distinct = tags[0][2] if tags else 0
        return Tally(entries, threads, user, multimodal, tuple(active), common, tags=distinct, **counts)

    @guarded
    def embedded_entries(self, model_id: int) -> tuple[int, int, int]:
        row: Any = next(
            self._database.reading().execute(
                f"""select count(*) filter (where held), coalesce(sum(held), 0), count(*) filter (where held < passages)
                    from (select count(*) as passages,
                            sum(exists (select 1 from embeddings where model = ? and key = vector_key)) as held
                          from memories cross join chunks
                            on chunks.id >= item_id << {CHUNK_BITS} and chunks.id < (item_id + 1) << {CHUNK_BITS}
                          group by memories.id)""",
                (model_id,),
            )
        )
        return row[0], row[1], row[2]
