"""The store on PostgreSQL: entries in the order of their times, threads, and counts of everything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from commonplace.model import JSON, Filter
from commonplace.store.postgres.items import PostgresItems, reads
from commonplace.store.rows import ALL_TAGS, Moment

_IS_ENTRY = "exists (select 1 from memories where memories.item_id = items.id)"
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
    def matching(self, filter: Filter, item_ids: Sequence[int]) -> dict[int, int]:
        where, values = self._of_entries(filter)
        query = f"select id, created_at from items where id = any(%(among)s::bigint[]) and {where}"
        return dict(self._all(query, {**values, "among": list(item_ids)}))

    @reads
    def newest(
        self, filter: Filter, *, limit: int, after: Moment | None = None, upto: int | None = None
    ) -> list[Moment]:
        where, values = self._of_entries(filter)
        if after is not None:
            where += " and (items.created_at, items.id) < (%(time)s, %(item)s)"
            values |= {"time": after.created_at, "item": after.item_id}
        if upto is not None:
            where += " and items.id <= %(upto)s"
            values["upto"] = upto
        rows = self._all(
            f"select id, created_at from items where {where} order by created_at desc, id desc limit %(limit)s",
            {**values, "limit": limit},
        )
        return [Moment(*row) for row in rows]

    def _of_entries(self, filter: Filter) -> tuple[str, dict[str, Any]]:
        where, values = self._compiled(filter)
        return (f"{where} and {_IS_ENTRY}" if filter.entries is not None else where), dict(values)

    @reads
    def plan(self, filter: Filter) -> str:
        where, values = self._compiled(filter)
        query = f"explain select id from items where {where} order by created_at desc, id desc"
        return "\n".join(line for (line,) in self._all(query, values))

    def metrics(self) -> dict[str, JSON]:
        return {
            "active_connections": self._database.connections,
            "total_queries": self._database.uses,
            "failed_queries": self._database.failures,
            "circuit_state": "healthy",
        }

    @reads
    def tags(self) -> dict[str, int]:
        return dict(self._all(ALL_TAGS))
