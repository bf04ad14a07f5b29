"""Titles, sizes and headings of documents, kept when documents are stored, so that no text is read for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from commonplace.model import Item
from commonplace.store.dialect import NO_LIMIT, Tuned, marks
from commonplace.store.hanging import Hanging
from commonplace.store.rows import HEADING_COLUMNS, DocumentRow, NumberedWrite
from commonplace.store.session import reads, reads_together, writes
from commonplace.store.shaping import heading_from, heading_row

if TYPE_CHECKING:  # a search asks for headings, and parses none
    from commonplace.text.outline import Outline

_OF_PARENT = Tuned(
    sqlite="kind = 'document' and parent = :parent",
    postgres="kind = 'document' and parent_head = left(:parent, 100) and parent = :parent",
)
_OF_PARENTS = Tuned(
    sqlite="kind = 'document' and parent in each(:parents text)",
    postgres="kind = 'document' and parent_head in each(:heads text) and parent in each(:parents text)",
)
_HEAD = 100
"""The characters of a text without a bound that PostgreSQL keeps in an index."""


class Outlines(Hanging):
    """A row per document with its title and size, a row per heading."""

    @reads_together
    def page(self, parent: str, *, limit: int, offset: int) -> tuple[list[DocumentRow], int]:
        """Return documents of a collection in the order of their keys, and the number of all. A limit of -1 is none."""
        of_parent = self._db.tuned(_OF_PARENT)
        rows = self._db.all(
            f"""select id, key, outlines.title, size from
                  (select id, key from items where {of_parent} order by key limit :limit offset :offset) as page
                left join outlines on item_id = id order by key""",
            {"parent": parent, "limit": limit if limit >= 0 else NO_LIMIT, "offset": offset},
        )
        total = self._db.row(f"select count(*) from items where {of_parent}", {"parent": parent})
        return [DocumentRow(*row) for row in rows], int(total[0]) if total else 0

    @reads
    def counts(self, parents: Sequence[str]) -> dict[str, int]:
        """Return the number of documents of each of these collections that has any."""
        query = f"select parent, count(*) from items where {self._db.tuned(_OF_PARENTS)} group by parent"
        return dict(self._db.all(query, {"parents": parents, "heads": [parent[:_HEAD] for parent in parents]}))

    @reads
    def rows(self, item_ids: Sequence[int]) -> dict[int, DocumentRow]:
        """Return the documents of these ids that exist, as they are listed."""
        query = """select id, key, outlines.title, size from items left join outlines on item_id = id
                   where id in each(:ids int)"""
        return {row[0]: DocumentRow(*row) for row in self._db.all(query, {"ids": item_ids})}

    @reads_together
    def find(self, item_id: int) -> Outline | None:
        """Return the outline of a document; None where it was stored before outlines were."""
        return self._find(item_id)

    @reads
    def headings_at(self, places: Sequence[tuple[int, int]]) -> list[tuple[str, ...]]:
        """Return the path of the heading at or above each (item id, line); an empty one before the first heading."""
        rows = self._db.all(
            """select (select path from headings where headings.item_id = place.item and headings.line <= place.line
                       order by headings.line desc limit 1)
               from rows(:places item int, line int) as place order by place.nr""",
            {"places": places},
        )
        return [() if path is None else tuple(str(path).split("\n")) for (path,) in rows]

    @reads
    def text(self, item_id: int, start: int, end: int) -> str:
        """Return the characters of a body from `start` to `end`; fewer where it ends before, none where it is gone."""
        query = "select substr(body, :first, :size) from bodies where item_id = :id"
        row = self._db.row(query, {"first": start + 1, "size": max(end - start, 0), "id": item_id})
        return str(row[0]) if row else ""

    @writes
    def keep(self, outlines: Sequence[tuple[int, int, Outline]]) -> None:
        """Store the outline of each (item id, version, outline), unless the document has another version by now."""
        query = """select id from rows(:known item int, version int) as known
                   join items on items.id = known.item and items.version = known.version"""
        rows = self._db.all(query, {"known": [(item_id, version) for item_id, version, _ in outlines]})
        current = {item_id for (item_id,) in rows}
        last = {item_id: outline for item_id, _, outline in outlines if item_id in current}
        self._put(list(last.items()), anew=True)

    # hanging on documents

    def added(self, writes: Sequence[NumberedWrite]) -> None:
        """Store the outlines of new documents."""
        self._put([(one.item_id, one.write.outline) for one in writes if one.write.outline is not None])

    def unchanged(self, old: Item, write: NumberedWrite) -> None:
        """Replace an outline where newer rules read another one from the same text."""
        outline = write.write.outline
        if outline is not None and outline != self._find(old.id):
            self._put([(old.id, outline)], anew=True)

    def removed(self, item_ids: Sequence[int]) -> None:
        """Remove the outlines of documents that go."""
        for table in ("outlines", "headings"):
            self._db.run(f"delete from {table} where item_id in each(:ids int)", {"ids": item_ids})

    def _find(self, item_id: int) -> Outline | None:
        row = self._db.row("select title, size from outlines where item_id = :id", {"id": item_id})
        if row is None:
            return None
        from commonplace.text.outline import Outline

        query = f"select {HEADING_COLUMNS} from headings where item_id = :id order by line"
        return Outline(row[0], row[1], tuple(heading_from(row) for row in self._db.all(query, {"id": item_id})))

    def _put(self, outlines: Sequence[tuple[int, Outline]], *, anew: bool = False) -> None:
        if anew:
            self.removed([item_id for item_id, _ in outlines])
        self._db.run_all(
            "insert into outlines (item_id, title, size) values (:item_id, :title, :size)",
            [(item_id, outline.title, outline.size) for item_id, outline in outlines],
        )
        self._db.run_all(
            f"""insert into headings (item_id, ordinal, {HEADING_COLUMNS})
                values (:item_id, :ordinal, {marks(HEADING_COLUMNS)})""",
            [
                (item_id, ordinal, *heading_row(heading))
                for item_id, outline in outlines
                for ordinal, heading in enumerate(outline.headings)
            ],
        )
