"""The store on PostgreSQL: documents by their short ids, by the ends of their paths, and by what they contain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from commonplace.store.postgres.filters import HEAD
from commonplace.store.postgres.items import PostgresItems, reads
from commonplace.store.rows import Ending, Name
from commonplace.store.spelling import backwards, digits_needed, hex_range, stem_and_ending

_NAMES = "document_names join items on items.id = item_id"
_ENDINGS: dict[Ending, str] = {
    "file": "backwards_head = %(head)s and backwards = %(end)s",
    # A collection's name has no slash, so what stands before a whole path has none either.
    "path": """backwards_head between %(from)s and %(to)s and starts_with(backwards, %(end)s || '/')
               and strpos(substr(backwards, length(%(end)s) + 2), '/') = 0""",
    "end": "backwards_head between %(from)s and %(to)s and starts_with(backwards, %(end)s || '/')",
}
_STEMS = """stem_head between left(%(stem)s, %(head)s) and left(%(stem)s || '0', %(head)s)
            and (stem = %(stem)s or starts_with(stem, %(stem)s || '/'))
            and (%(ending)s::text is null or ending = %(ending)s)"""


class PostgresNames(PostgresItems):
    """Documents by their names, and the names of documents."""

    @reads
    def documents_by_docid(self, prefix: str, limit: int) -> tuple[list[Name], int]:
        return self._named("docid >= %(low)s and docid < %(high)s", hex_range(prefix), limit)

    @reads
    def documents_by_hash(self, prefix: str, limit: int) -> tuple[list[Name], int]:
        return self._named("content_hash >= %(low)s and content_hash < %(high)s", hex_range(prefix), limit)

    @reads
    def documents_by_end(self, path: str, ending: Ending, limit: int) -> tuple[list[Name], int]:
        end = backwards(path)
        # '0' is the character after '/'.
        bounds = {"end": end, "head": end[:HEAD], "from": (end + "/")[:HEAD], "to": (end + "0")[:HEAD]}
        return self._named(_ENDINGS[ending], bounds, limit)

    @reads
    def documents_in_any_case(self, path: str, limit: int, *, with_ending: bool) -> tuple[list[Name], int]:
        values = {**stem_and_ending(path, with_ending=with_ending), "head": HEAD}
        return self._named(_STEMS, values, limit, "length(backwards), parent, key")

    def _named(
        self, where: str, values: dict[str, Any], limit: int, order: str = "parent, key"
    ) -> tuple[list[Name], int]:
        query = f"select items.id, parent, key from {_NAMES} where {where} order by {order} limit %(limit)s"
        names = [Name(*row) for row in self._all(query, {**values, "limit": limit})]
        if len(names) < limit:
            return names, len(names)
        return names, int(self._one(f"select count(*) from {_NAMES} where {where}", values))

    @reads
    def docids(self, item_ids: Sequence[int]) -> dict[int, str]:
        rows = self._all(
            """select item_id, docid,
                 (select max(docid) from document_names as other where other.docid < this.docid),
                 (select min(docid) from document_names as other where other.docid > this.docid)
               from document_names as this where item_id = any(%s::bigint[])""",
            (list(item_ids),),
        )
        return {item_id: docid[: digits_needed(docid, before, after)] for item_id, docid, before, after in rows}

    @reads
    def document_files(self) -> tuple[list[int], list[str]]:
        rows = self._all("select id, parent || '/' || key from items where kind = 'document' order by parent, key")
        return [item_id for item_id, _ in rows], [file for _, file in rows]

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
