"""Passages: the chunks that bodies are cut into, and items as an index reads them."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from commonplace.model import CHUNK_BITS, MOST_CHUNKS, Chunk, IndexedItem, chunk_id
from commonplace.store.dialect import Tuned
from commonplace.store.facets import facets_of, with_properties, words_of
from commonplace.store.session import Drawer, reads, reads_together
from commonplace.store.shaping import CHUNK, IN_PARTS, chunk_from, json_value

_GET = Tuned(
    sqlite=f"select {CHUNK.sqlite} from chunks where id in each(:ids int)",
    postgres=f"""select {CHUNK.postgres} from chunks where (item_id, ordinal) in
                   (select item, cast(ordinal as integer) from rows(:places item int, ordinal int) as place)""",
)
_OF = Tuned(
    sqlite=f"select {CHUNK.sqlite} from chunks where id >= :first and id < :end order by id",
    postgres=f"select {CHUNK.postgres} from chunks where item_id = :item order by ordinal",
)
_TEXTS = Tuned(
    sqlite=f"""select chunks.id, headings, text, anchor from json_each(:list) cross join chunks
                 on chunks.id >= value << {CHUNK_BITS} and chunks.id < (value + 1) << {CHUNK_BITS}""",
    postgres=f"""select item_id << {CHUNK_BITS} | ordinal, headings, text, anchor from chunks
                 where item_id in each(:ids int)""",
)
_LABELS = Tuned(
    sqlite="(select json_group_array(folded) from tags where item_id = items.id)",
    postgres="array(select folded from tags where item_id = items.id)",
)


class Chunks(Drawer):
    """A row per chunk, which quotes its body exactly."""

    @reads
    def get(self, chunk_ids: Sequence[int]) -> list[Chunk]:
        """Return the chunks of these ids that exist, in the order of the ids."""
        places = [(one >> CHUNK_BITS, one & (MOST_CHUNKS - 1)) for one in chunk_ids]
        rows = self._db.all(_GET, {"ids": chunk_ids, "places": places})
        chunks_by_id = {row[0]: chunk_from(row) for row in rows}
        return [chunks_by_id[chunk] for chunk in chunk_ids if chunk in chunks_by_id]

    @reads
    def of(self, item_id: int) -> list[Chunk]:
        """Return the chunks of an item in their order."""
        values = {"item": item_id, "first": chunk_id(item_id, 0), "end": chunk_id(item_id + 1, 0)}
        return [chunk_from(row) for row in self._db.all(_OF, values)]

    @reads
    def total(self) -> int:
        """Return the number of chunks."""
        row = self._db.row("select coalesce(sum(chunk_count), 0) from items")
        return int(row[0]) if row else 0

    @reads_together
    def indexed(self, item_ids: Sequence[int]) -> list[IndexedItem]:
        """Return the items of these ids that exist as an index reads them, by id."""
        ids = list(item_ids)
        texts: dict[int, list[tuple[int, str, str, str | None]]] = defaultdict(list)
        for row in sorted(self._db.all(_TEXTS, {"ids": ids, "list": json.dumps(ids)}), key=_id_of):
            texts[row[0] >> CHUNK_BITS].append((row[0], row[1], row[2], row[3]))
        rows = self._db.all(
            f"""select id, kind, parent, key, title, language, created_at, updated_at, fields, content_hash,
                  {self._db.tuned(_LABELS)}
                from items where id in each(:ids int) order by id""",
            {"ids": ids},
        )
        return [_indexed(row, texts[row[0]]) for row in rows]


def _id_of(row: tuple[Any, ...]) -> int:
    return int(row[0])


def _indexed(row: tuple[Any, ...], texts: Sequence[tuple[int, str, str, str | None]]) -> IndexedItem:
    identity, kind, parent, key, title, language, created, updated, fields, content_hash, tags = row
    properties, labels = json_value(fields), tuple(json.loads(tags) if isinstance(tags, str) else tags)
    chunks: Sequence[tuple[int, str, str]] = [(chunk, headings, text) for chunk, headings, text, _ in texts]
    if kind == "document":
        chunks = with_properties(chunks, properties)
    if kind == "table":
        content_hash = properties.get("hash", content_hash)
    parts: dict[int, str] = {}
    if kind in IN_PARTS:
        anchors = ((chunk, json.loads(anchor).get("field")) for chunk, _, _, anchor in texts if anchor)
        parts = {chunk: part for chunk, part in anchors if part}
    whole = (identity, kind, parent, key, title, language, labels, created, updated, chunks)
    return IndexedItem(*whole, words_of(kind, properties, labels), facets_of(kind, properties), parts, content_hash)
