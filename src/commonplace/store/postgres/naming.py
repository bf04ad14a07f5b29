"""The store on PostgreSQL: names and sizes of documents, and those that lack vectors."""

from __future__ import annotations

from collections.abc import Sequence

from commonplace.store.postgres.filters import HEAD
from commonplace.store.postgres.items import PostgresItems, reads


class PostgresNames(PostgresItems):
    """The names and sizes of documents, and how many lack vectors."""

    @reads
    def files_of(self, item_ids: Sequence[int]) -> dict[int, str]:
        return dict(
            self._all("select id, parent || '/' || key from items where id = any(%s::bigint[])", (list(item_ids),))
        )

    @reads
    def body_sizes(self, item_ids: Sequence[int]) -> dict[int, int]:
        query = "select item_id, octet_length(body) from bodies where item_id = any(%s::bigint[])"
        return dict(self._all(query, (list(item_ids),)))

    @reads
    def unembedded_documents(self, model_id: int | None, parents: Sequence[str] = ()) -> int:
        among = "and parent_head = any(%(heads)s::text[]) and parent = any(%(parents)s::text[])" if parents else ""
        query = f"""select count(*) from items where kind = 'document' {among} and exists
                      (select 1 from chunks where chunks.item_id = items.id and not exists
                         (select 1 from embeddings where model = %(model)s::bigint and key = vector_key))"""
        heads = [parent[:HEAD] for parent in parents]
        return int(self._one(query, {"model": model_id, "heads": heads, "parents": list(parents)}))
