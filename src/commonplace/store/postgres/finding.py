"""The store on PostgreSQL: what is there, by filters and addresses, and the log that indexes follow."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from commonplace.model import CHUNK_BITS, MOST_CHUNKS, Change, Chunk, Filter, IndexedItem, Item, chunk_id, fingerprint
from commonplace.store.change_log import ChangeLog
from commonplace.store.facets import facets_of, with_properties, words_of
from commonplace.store.postgres.filters import HEAD
from commonplace.store.postgres.items import PostgresItems, reads
from commonplace.store.shaping import CHUNK, IN_PARTS, chunk_from, ids_from, json_value


class PostgresFinding(PostgresItems):
    """Reads of many items at once, and the log."""

    @reads
    def scan(self, filter: Filter, *, after: int = 0, limit: int = 1000, body: bool = False) -> list[Item]:
        where, values = self._compiled(filter)
        rows = self._all(
            f"select id from items where id > %(after)s and {where} order by id limit %(limit)s",
            {**values, "after": after, "limit": limit},
        )
        return self.items([item_id for (item_id,) in rows], body=body)

    @reads
    def chunks(self, chunk_ids: Sequence[int]) -> list[Chunk]:
        items, ordinals = [one >> CHUNK_BITS for one in chunk_ids], [one & (MOST_CHUNKS - 1) for one in chunk_ids]
        rows = self._all(
            f"""select {CHUNK.postgres} from chunks
                where (item_id, ordinal) in (select * from unnest(%s::bigint[], %s::integer[]))""",
            (items, ordinals),
        )
        chunks_by_id = {row[0]: chunk_from(row) for row in rows}
        return [chunks_by_id[chunk] for chunk in chunk_ids if chunk in chunks_by_id]

    @reads
    def chunks_of(self, item_id: int) -> list[Chunk]:
        rows = self._all(f"select {CHUNK.postgres} from chunks where item_id = %s order by ordinal", (item_id,))
        return [chunk_from(row) for row in rows]

    @reads
    def select(self, filter: Filter) -> NDArray[np.int64]:
        where, values = self._compiled(filter)
        # One string of numbers instead of a row each: far fewer steps between the server and Python.
        text = self._one(f"select string_agg(id::text, ',' order by id) from items where {where}", values)
        return ids_from(text)

    @reads
    def ids_of(self, addresses: Sequence[tuple[str, str | None, str]]) -> list[int]:
        whole = [fingerprint(kind, parent, key) for kind, parent, key in addresses if parent is not None]
        loose = [(kind, key) for kind, parent, key in addresses if parent is None]
        rows = self._all("select id from items where address = any(%s::bytea[])", (whole,)) if whole else []
        if loose:
            kinds, keys = zip(*loose, strict=True)
            rows += self._all(
                """select id from items where key_head = any(%s::text[])
                   and (kind, key) in (select * from unnest(%s::text[], %s::text[]))""",
                ([key[:HEAD] for key in keys], list(kinds), list(keys)),
            )
        return sorted({item_id for (item_id,) in rows})

    @reads
    def counts(self) -> dict[str, int]:
        return dict(self._all("select kind, count(*) from items group by kind order by kind"))

    @reads
    def parents(self, kind: str) -> dict[str, int]:
        query = "select parent, count(*) from items where kind = %s group by parent order by parent"
        return dict(self._all(query, (kind,)))

    @reads
    def chunk_total(self) -> int:
        return int(self._one("select coalesce(sum(chunk_count), 0) from items"))

    def last_change(self) -> int:
        return self.drawer(ChangeLog).last()

    def changes(self, after: int, limit: int) -> list[Change]:
        return self.drawer(ChangeLog).changes(after, limit)

    @reads
    def indexed(self, item_ids: Sequence[int]) -> list[IndexedItem]:
        chunks: dict[int, list[tuple[int, str, str]]] = defaultdict(list)
        parts: dict[int, dict[int, str]] = defaultdict(dict)
        for item_id, ordinal, headings, text, anchor in self._all(
            """select item_id, ordinal, headings, text, anchor from chunks
               where item_id = any(%s::bigint[]) order by item_id, ordinal""",
            (list(item_ids),),
        ):
            chunks[item_id].append((chunk_id(item_id, ordinal), headings, text))
            if anchor and (part := json.loads(anchor).get("field")):
                parts[item_id][chunk_id(item_id, ordinal)] = part
        items = []
        for identity, kind, parent, key, title, language, created, updated, fields, content_hash, tags in self._all(
            """select id, kind, parent, key, title, language, created_at, updated_at, fields, content_hash,
                 array(select folded from tags where item_id = items.id)
               from items where id = any(%s::bigint[]) order by id""",
            (list(item_ids),),
        ):
            properties, labels = json_value(fields), tuple(tags)
            if kind == "table":
                content_hash = properties.get("hash", content_hash)
            said = with_properties(chunks[identity], properties) if kind == "document" else chunks[identity]
            whole = (identity, kind, parent, key, title, language, labels, created, updated, said)
            more = (words_of(kind, properties, labels), facets_of(kind, properties))
            fields_by_chunk = parts[identity] if kind in IN_PARTS else {}
            items.append(IndexedItem(*whole, *more, fields_by_chunk, content_hash))
        return items
