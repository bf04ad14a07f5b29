"""The store on SQLite: names and sizes of documents, and those that lack vectors."""

from __future__ import annotations

import json
from collections.abc import Sequence

from commonplace.model import CHUNK_BITS
from commonplace.store.sqlite.items import SqliteItems, guarded


class SqliteNames(SqliteItems):
    """The names and sizes of documents, and how many lack vectors."""

    @guarded
    def files_of(self, item_ids: Sequence[int]) -> dict[int, str]:
        rows = self._database.reading().execute(
            "select id, parent || '/' || key from items where id in (select value from json_each(?))",
            (json.dumps(list(item_ids)),),
        )
        return dict(rows)

    @guarded
    def body_sizes(self, item_ids: Sequence[int]) -> dict[int, int]:
        rows = self._database.reading().execute(
            "select item_id, octet_length(body) from bodies where item_id in (select value from json_each(?))",
            (json.dumps(list(item_ids)),),
        )
        return dict(rows)

    @guarded
    def unembedded_documents(self, model_id: int | None, parents: Sequence[str] = ()) -> int:
        among = "and parent in (select value from json_each(:parents))" if parents else ""
        # The passages are looked at only where there are vectors to look for: without any, reading them was 20 MB.
        query = f"""select count(*) from items where kind = 'document' {among} and chunk_count > 0 and
                      (not exists (select 1 from embeddings where model = :model) or exists
                        (select 1 from chunks where chunks.id >= items.id << {CHUNK_BITS}
                           and chunks.id < (items.id + 1) << {CHUNK_BITS}
                           and not exists (select 1 from embeddings where model = :model and key = vector_key)))"""
        values = {"model": model_id, "parents": json.dumps(list(parents))}
        return int(next(self._database.reading().execute(query, values))[0])
