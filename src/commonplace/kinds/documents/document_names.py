"""The names of documents, so that one is found by its short id, by the end of its path, or by what it contains.

On SQLite triggers write them with the items. PostgreSQL cannot compute them, so there the drawer does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from commonplace.model import Item
from commonplace.store.dialect import Tuned
from commonplace.store.hanging import Hanging
from commonplace.store.rows import Ending, Name, NumberedWrite
from commonplace.store.session import reads, reads_together
from commonplace.store.spelling import (
    backwards,
    digits_needed,
    folded,
    hex_range,
    name_backwards,
    name_hash,
    stem_and_ending,
)

_HEAD = 100
"""The characters of a text without a bound that PostgreSQL keeps in an index."""
_BY_HASH = Tuned(
    # By that index: SQLite would rather read all documents in the order that is asked for.
    sqlite="""items.id in (select id from items indexed by items_by_hash
              where kind = 'document' and content_hash >= :low and content_hash < :high)""",
    postgres="content_hash >= :low and content_hash < :high",
)
_UNDER = Tuned(  # '0' is the character after '/'
    sqlite="backwards > :end || '/' and backwards < :end || '0'",
    postgres="backwards_head between :first and :last and starts_with(backwards, :end || '/')",
)
_ENDINGS: Mapping[Ending, Tuned] = {
    "file": Tuned(sqlite="backwards = :end", postgres="backwards_head = :head and backwards = :end"),
    # A collection's name has no slash, so what stands before a whole path has none either.
    "path": Tuned(
        sqlite=f"{_UNDER.sqlite} and instr(substr(backwards, length(:end) + 2), '/') = 0",
        postgres=f"{_UNDER.postgres} and strpos(substr(backwards, length(:end) + 2), '/') = 0",
    ),
    "end": _UNDER,
}
_BY_STEM = Tuned(
    sqlite="""(stem = :stem or stem > :stem || '/' and stem < :stem || '0')
              and (:ending is null or ending = :ending)""",
    postgres="""stem_head between left(:stem, 100) and left(:stem || '0', 100)
                and (stem = :stem or starts_with(stem, :stem || '/'))
                and (cast(:ending as text) is null or ending = :ending)""",
)


class DocumentNames(Hanging):
    """A row per document: the hash of its name, and the name backwards, as it is and folded."""

    @reads_together
    def by_docid(self, prefix: str, limit: int) -> tuple[list[Name], int]:
        """Return documents whose docid begins with these hexadecimal digits, and the number of all."""
        return self._named("docid >= :low and docid < :high", hex_range(prefix), limit)

    @reads_together
    def by_hash(self, prefix: str, limit: int) -> tuple[list[Name], int]:
        """Return documents whose content has a hash that begins with these digits, and the number of all."""
        return self._named(self._db.tuned(_BY_HASH), hex_range(prefix), limit)

    @reads_together
    def by_end(self, path: str, ending: Ending, limit: int) -> tuple[list[Name], int]:
        """Return documents whose name, collection included, ends with a path, and the number of all."""
        end = backwards(path)
        bounds = {"head": end[:_HEAD], "first": f"{end}/"[:_HEAD], "last": f"{end}0"[:_HEAD]}
        return self._named(self._db.tuned(_ENDINGS[ending]), {"end": end, **bounds}, limit)

    @reads_together
    def in_any_case(self, path: str, limit: int, *, with_ending: bool) -> tuple[list[Name], int]:
        """Return documents whose name ends with a path in any case, shortest first, and the number of all.

        `with_ending`: the path has the ending of the file's name; else any ending may follow.
        """
        values = stem_and_ending(path, with_ending=with_ending)
        return self._named(self._db.tuned(_BY_STEM), values, limit, "length(backwards), parent, key")

    @reads
    def docids(self, item_ids: Sequence[int]) -> dict[int, str]:
        """Return the short ids of documents: as many digits as tell each from all others."""
        rows = self._db.all(
            """select item_id, docid,
                 (select max(docid) from document_names as other where other.docid < this.docid),
                 (select min(docid) from document_names as other where other.docid > this.docid)
               from document_names as this where item_id in each(:ids int)""",
            {"ids": item_ids},
        )
        return {item_id: docid[: digits_needed(docid, before, after)] for item_id, docid, before, after in rows}

    @reads
    def all(self) -> tuple[list[int], list[str]]:
        """Return the ids of all documents and their names, `collection/path`, in the order of collections and paths."""
        if self._db.dialect == "postgres":
            query = "select id, parent || '/' || key from items where kind = 'document' order by parent, key"
            rows = self._db.all(query)
            return [item_id for item_id, _ in rows], [name for _, name in rows]
        # Two strings instead of a row each: ten times fewer steps between SQLite and Python.
        row = self._db.row(
            """select group_concat(id), group_concat(parent || '/' || key, char(0))
               from (select id, parent, key from items where kind = 'document' order by parent, key)"""
        )
        return (list(map(int, row[0].split(","))), row[1].split("\0")) if row and row[0] else ([], [])

    # hanging on documents

    def added(self, writes: Sequence[NumberedWrite]) -> None:
        """Store the names of new documents."""
        self.rename([(one.item_id, one.write.draft.parent, one.key) for one in writes])

    def changed(self, old: Item, write: NumberedWrite) -> None:
        """Do nothing: the next version of a document has the same name."""

    def removed(self, item_ids: Sequence[int]) -> None:
        """Remove the names of documents that go."""
        if self._db.dialect == "postgres":
            self._db.run("delete from document_names where item_id in each(:ids int)", {"ids": item_ids})

    def rename(self, documents: Sequence[tuple[int, str, str]]) -> None:
        """Store the names of (item id, collection, path). Belongs into a write."""
        if self._db.dialect == "sqlite":
            return
        ends = [name_backwards(parent, key) for _, parent, key in documents]
        self._db.run_all(
            """insert into document_names (item_id, docid, backwards, ending, stem)
               values (:item_id, :docid, :backwards, :ending, :stem)
               on conflict key(item_id) do update set docid = excluded.docid, backwards = excluded.backwards,
                 ending = excluded.ending, stem = excluded.stem""",
            [
                (item_id, name_hash(parent, key), end, *folded(end))
                for (item_id, parent, key), end in zip(documents, ends, strict=True)
            ],
        )

    def _named(
        self, where: str, values: Mapping[str, Any], limit: int, order: str = "parent, key"
    ) -> tuple[list[Name], int]:
        source = f"from document_names join items on items.id = item_id where {where}"
        query = f"select items.id, parent, key {source} order by {order} limit :limit"
        names = [Name(*row) for row in self._db.all(query, {**values, "limit": limit})]
        if len(names) < limit:
            return names, len(names)
        total = self._db.row(f"select count(*) {source}", values)
        return names, int(total[0]) if total else 0
