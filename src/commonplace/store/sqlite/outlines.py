"""The store on SQLite: titles, sizes and headings of documents, so that none is read for them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import apsw

from commonplace.store.rows import HEADING_COLUMNS, DocumentRow
from commonplace.store.shaping import heading_from, heading_row
from commonplace.store.sqlite.items import SqliteItems, consistent, guarded

if TYPE_CHECKING:
    from commonplace.text.outline import Outline


class SqliteOutlines(SqliteItems):
    """Titles, sizes and headings of documents."""

    @consistent
    def document_page(self, parent: str, *, limit: int, offset: int) -> tuple[list[DocumentRow], int]:
        db = self._database.reading()
        rows: Any = db.execute(
            """select id, key, title, size from
                 (select id, key from items where kind = 'document' and parent = :parent
                  order by key limit :limit offset :offset)
               left join outlines on item_id = id order by key""",
            {"parent": parent, "limit": limit, "offset": offset},
        )
        found = [DocumentRow(*row) for row in rows]
        total = "select count(*) from items where kind = 'document' and parent = ?"
        return found, int(next(db.execute(total, (parent,)))[0])

    @guarded
    def document_counts(self, parents: Sequence[str]) -> dict[str, int]:
        rows = self._database.reading().execute(
            """select parent, count(*) from items where kind = 'document'
               and parent in (select value from json_each(?)) group by parent""",
            (json.dumps(list(parents)),),
        )
        return dict(rows)

    @guarded
    def document_rows(self, item_ids: Sequence[int]) -> dict[int, DocumentRow]:
        rows: Any = self._database.reading().execute(
            """select id, key, outlines.title, size from items left join outlines on item_id = id
               where id in (select value from json_each(?))""",
            (json.dumps(list(item_ids)),),
        )
        return {row[0]: DocumentRow(*row) for row in rows}

    @consistent
    def outline(self, item_id: int) -> Outline | None:
        return self._outline(self._database.reading(), item_id)

    @staticmethod
    def _outline(db: apsw.Connection, item_id: int) -> Outline | None:
        row: Any = db.execute("select title, size from outlines where item_id = ?", (item_id,)).fetchone()
        if row is None:
            return None
        rows: Any = db.execute(f"select {HEADING_COLUMNS} from headings where item_id = ? order by line", (item_id,))
        from commonplace.text.outline import Outline

        return Outline(row[0], row[1], tuple(heading_from(row) for row in rows))

    @guarded
    def headings_at(self, places: Sequence[tuple[int, int]]) -> list[tuple[str, ...]]:
        rows = self._database.reading().execute(
            """select (select path from headings where item_id = place.value ->> 0 and line <= place.value ->> 1
                       order by line desc limit 1)
               from json_each(?) as place order by place.key""",
            (json.dumps(list(places)),),
        )
        return [() if path is None else tuple(str(path).split("\n")) for (path,) in rows]

    @guarded
    def body_part(self, item_id: int, start: int, end: int) -> str:
        query = "select substr(body, ?, ?) from bodies where item_id = ?"
        row: Any = self._database.reading().execute(query, (start + 1, end - start, item_id)).fetchone()
        return str(row[0]) if row else ""

    @guarded
    def keep_outlines(self, outlines: Sequence[tuple[int, int, Outline]]) -> None:
        with self._database.writing() as db:
            for item_id, version, outline in outlines:
                if db.execute("select 1 from items where (id, version) = (?, ?)", (item_id, version)).fetchone():
                    self._clear_outlines(db, [item_id])
                    self._put_outlines(db, [(item_id, outline)])

    @staticmethod
    def _put_outlines(db: apsw.Connection, outlines: Sequence[tuple[int, Outline]]) -> None:
        db.executemany(
            "insert into outlines values (?, ?, ?)",
            [(item_id, outline.title, outline.size) for item_id, outline in outlines],
        )
        db.executemany(
            f"""insert into headings (item_id, ordinal, {HEADING_COLUMNS})
                values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
            [
                (item_id, ordinal, *heading_row(heading))
                for item_id, outline in outlines
                for ordinal, heading in enumerate(outline.headings)
            ],
        )

    def _refresh_outline(self, db: apsw.Connection, item_id: int, outline: Outline | None) -> None:
        """Replace a document's outline where newer rules read another one from the same text."""
        if outline is not None and outline != self._outline(db, item_id):
            self._clear_outlines(db, [item_id])
            self._put_outlines(db, [(item_id, outline)])

    @staticmethod
    def _clear_outlines(db: apsw.Connection, item_ids: Sequence[int]) -> None:
        wanted = (json.dumps(list(item_ids)),)
        db.execute("delete from outlines where item_id in (select value from json_each(?))", wanted)
        db.execute("delete from headings where item_id in (select value from json_each(?))", wanted)
