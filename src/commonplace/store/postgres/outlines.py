"""The store on PostgreSQL: titles, sizes and headings of documents, kept when they are stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from commonplace.store.postgres.filters import HEAD
from commonplace.store.postgres.items import PostgresItems, reads, writes
from commonplace.store.rows import HEADING_COLUMNS, DocumentRow
from commonplace.store.shaping import heading_from, heading_row
from commonplace.text.outline import Outline

_OF_PARENT = "kind = 'document' and parent_head = %(head)s and parent = %(parent)s"


class PostgresOutlines(PostgresItems):
    """Titles, sizes and headings of documents."""

    @reads
    def document_page(self, parent: str, *, limit: int, offset: int) -> tuple[list[DocumentRow], int]:
        values = {"head": parent[:HEAD], "parent": parent, "limit": limit if limit >= 0 else None, "offset": offset}
        rows = self._all(
            f"""select id, key, outlines.title, size from
                  (select id, key from items where {_OF_PARENT} order by key limit %(limit)s offset %(offset)s) as page
                left join outlines on item_id = id order by key""",
            values,
        )
        return [DocumentRow(*row) for row in rows], int(
            self._one(f"select count(*) from items where {_OF_PARENT}", values)
        )

    @reads
    def document_counts(self, parents: Sequence[str]) -> dict[str, int]:
        rows = self._all(
            """select parent, count(*) from items where kind = 'document'
               and parent_head = any(%s::text[]) and parent = any(%s::text[]) group by parent""",
            ([parent[:HEAD] for parent in parents], list(parents)),
        )
        return dict(rows)

    @reads
    def document_rows(self, item_ids: Sequence[int]) -> dict[int, DocumentRow]:
        rows = self._all(
            """select id, key, outlines.title, size from items left join outlines on item_id = id
               where id = any(%s::bigint[])""",
            (list(item_ids),),
        )
        return {row[0]: DocumentRow(*row) for row in rows}

    @reads
    def outline(self, item_id: int) -> Outline | None:
        return self._outline(item_id)

    def _outline(self, item_id: int) -> Outline | None:
        found: Any = self._all("select title, size from outlines where item_id = %s", (item_id,))
        if not found:
            return None
        rows = self._all(f"select {HEADING_COLUMNS} from headings where item_id = %s order by line", (item_id,))
        return Outline(found[0][0], found[0][1], tuple(heading_from(row) for row in rows))

    @reads
    def headings_at(self, places: Sequence[tuple[int, int]]) -> list[tuple[str, ...]]:
        rows = self._all(
            """select (select path from headings where item_id = place.item and headings.line <= place.line
                       order by headings.line desc limit 1)
               from unnest(%s::bigint[], %s::bigint[]) with ordinality as place (item, line, position)
               order by place.position""",
            ([item_id for item_id, _ in places], [line for _, line in places]),
        )
        return [() if path is None else tuple(path.split("\n")) for (path,) in rows]

    @reads
    def body_part(self, item_id: int, start: int, end: int) -> str:
        query = "select substr(body, %s, %s) from bodies where item_id = %s"
        return str(self._one(query, (start + 1, max(end - start, 0), item_id)) or "")

    @writes
    def keep_outlines(self, outlines: Sequence[tuple[int, int, Outline]]) -> None:
        for item_id, version, outline in outlines:
            if self._one("select 1 from items where id = %s and version = %s", (item_id, version)):
                self._clear_outlines([item_id])
                self._put_outline(item_id, outline)

    def _put_outline(self, item_id: int, outline: Outline) -> None:
        self._run(
            "insert into outlines (item_id, title, size) values (%s, %s, %s)", (item_id, outline.title, outline.size)
        )
        self._run_all(
            f"insert into headings (item_id, ordinal, {HEADING_COLUMNS}) values ({', '.join(['%s'] * 13)})",
            [(item_id, ordinal, *heading_row(heading)) for ordinal, heading in enumerate(outline.headings)],
        )

    def _refresh_outline(self, item_id: int, outline: Outline | None) -> None:
        """Replace a document's outline where newer rules read another one from the same text."""
        if outline is not None and outline != self._outline(item_id):
            self._clear_outlines([item_id])
            self._put_outline(item_id, outline)

    def _clear_outlines(self, item_ids: Sequence[int]) -> None:
        for table in ("outlines", "headings"):
            self._run(f"delete from {table} where item_id = any(%s::bigint[])", (list(item_ids),))
