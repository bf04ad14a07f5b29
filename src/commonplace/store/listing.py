"""Which items match: by filters, by addresses, by time, and how many there are of each sort."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commonplace.model import Filter, Item, fingerprint
from commonplace.store.dialect import Tuned, Values
from commonplace.store.filters import Compiled, CompileFilter
from commonplace.store.items import Items
from commonplace.store.metadata_index import MetadataIndex
from commonplace.store.rows import ALL_TAGS, Moment
from commonplace.store.session import Drawer, reads, reads_together
from commonplace.store.shaping import ids_from

_PLACES = "rows(:places kind text, parent text, key text) as wanted"
_AT_PLACES = Tuned(
    # Two arms, because each is answered by an index of its own and an `or` by neither.
    sqlite=f"""select items.id from {_PLACES} cross join items using (kind, parent, key)
               union select items.id from {_PLACES} cross join items using (key)
               where wanted.parent is null and +items.kind = wanted.kind""",  # the plus: see `items._CALLED`
    postgres=f"""select id from items where address in each(:addresses bytes)
                 union select items.id from {_PLACES} join items
                   on key_head = left(wanted.key, 100) and items.key = wanted.key and items.kind = wanted.kind
                 where wanted.parent is null""",
)
_IS_ENTRY = "exists (select 1 from memories where memories.item_id = items.id)"


class Listing(Drawer):
    """A view of all items."""

    @reads
    def scan(self, filter: Filter, *, after: int = 0, limit: int = 1000, body: bool = False) -> list[Item]:
        """Return matching items in id order, from just after an id: the way to walk all of them in bounded steps."""
        where, values = self.compiled(filter)
        bounds = {"after": after, "limit": limit}
        where = f"items.id > :after and {where} order by items.id limit :limit"
        return self._db.drawer(Items).matching(where, {**values, **bounds}, body=body)

    @reads
    def select(self, filter: Filter) -> NDArray[np.int64]:
        """Return the ids of all matching items, ascending."""
        where, values = self.compiled(filter)
        # One string of numbers instead of a row each: ten times fewer steps between the database and Python.
        joined = Tuned(
            sqlite=f"select group_concat(id) from (select id from items where {where} order by id)",
            postgres=f"select string_agg(id::text, ',' order by id) from items where {where}",
        )
        row = self._db.row(self._db.tuned(joined), values)
        return ids_from(row[0] if row else None)

    @reads
    def ids_of(self, addresses: Sequence[tuple[str, str | None, str]]) -> list[int]:
        """Return the ids of the items at these (kind, parent, key) that exist; a parent of None stands for any."""
        values: dict[str, Any] = {"places": list(addresses)}
        if self._db.dialect == "postgres":
            whole = (fingerprint(kind, parent, key) for kind, parent, key in addresses if parent is not None)
            values["addresses"] = list(whole)
        return sorted(item_id for (item_id,) in self._db.all(_AT_PLACES, values))

    @reads
    def counts(self) -> dict[str, int]:
        """Return the number of items of each kind."""
        return dict(self._db.all("select kind, count(*) from items group by kind order by kind"))

    @reads
    def parents(self, kind: str) -> dict[str, int]:
        """Return the number of items that each parent holds of a kind."""
        query = "select parent, count(*) from items where kind = :kind group by parent order by parent"
        return dict(self._db.all(query, {"kind": kind}))

    @reads
    def tags(self) -> dict[str, int]:
        """Return how many items have each tag, the commonest first. One spelling stands for those of any case."""
        return dict(self._db.all(ALL_TAGS))

    @reads
    def matching(self, filter: Filter, item_ids: Sequence[int]) -> dict[int, int]:
        """Return when each of the items that match was created, in microseconds, by id."""
        if self._db.dialect == "sqlite":
            from commonplace.store.sqlite.newest import among

            return among(self._db, filter, item_ids)
        where, values = self._of_entries(filter)
        query = f"select id, created_at from items where id in each(:among int) and {where}"
        return dict(self._db.all(query, {**values, "among": item_ids}))

    @reads_together
    def newest(
        self, filter: Filter, *, limit: int, after: Moment | None = None, upto: int | None = None
    ) -> list[Moment]:
        """Return matching items, newest first, then by id, descending; from just after one, up to the id `upto`."""
        if self._db.dialect == "sqlite":
            from commonplace.store.sqlite.newest import newest

            return newest(self._db, filter, self.compiled, limit=limit, after=after, upto=upto)
        where, compiled = self._of_entries(filter)
        values = {**compiled, "limit": limit}
        if after is not None:
            where += " and (items.created_at, items.id) < (:time, :item)"
            values |= {"time": after.created_at, "item": after.item_id}
        if upto is not None:
            where += " and items.id <= :upto"
            values["upto"] = upto
        query = f"select id, created_at from items where {where} order by created_at desc, id desc limit :limit"
        return [Moment(*row) for row in self._db.all(query, values)]

    @reads
    def plan(self, filter: Filter) -> str:
        """Return the database's own description of how it would find the items that match, newest first."""
        where, values = self.compiled(filter)
        explain = self._db.tuned(Tuned(sqlite="explain query plan", postgres="explain"))
        query = f"{explain} select id from items where {where} order by created_at desc, id desc"
        return "\n".join(str(row[-1]) for row in self._db.all(query, values))

    def compiled(self, filter: Filter) -> Compiled:
        """Return a filter as SQL, which uses the index of metadata where only entries are searched."""
        indexed = filter.where and filter.kinds == ("memory",)
        return self._compile(filter, self._db.drawer(MetadataIndex).fields() if indexed else {})

    def _of_entries(self, filter: Filter) -> tuple[str, Values]:
        where, values = self.compiled(filter)
        return (f"{where} and {_IS_ENTRY}" if filter.entries is not None else where), values

    @cached_property
    def _compile(self) -> CompileFilter:
        if self._db.dialect == "sqlite":
            from commonplace.store.sqlite import filters as of_files

            return of_files.compile_filter
        from commonplace.store.postgres import filters as of_servers

        return of_servers.compile_filter
