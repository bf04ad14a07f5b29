"""The store on SQLite: documents by their short ids, by the ends of their paths, and by what they contain."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from commonplace.model import CHUNK_BITS
from commonplace.store.rows import Ending, Name
from commonplace.store.spelling import backwards, digits_needed, hex_range, stem_and_ending
from commonplace.store.sqlite.items import SqliteItems, guarded

_NAMES = "select items.id, parent, key from document_names join items on items.id = item_id"
_ENDINGS: dict[Ending, str] = {
    "file": "backwards = :end",
    # A collection's name has no slash, so what stands before a whole path has none either.
    "path": """backwards > :end || '/' and backwards < :end || '0'
               and instr(substr(backwards, length(:end) + 2), '/') = 0""",
    "end": "backwards > :end || '/' and backwards < :end || '0'",
}  # '0' is the character after '/'
_STEMS = """(stem = :stem or stem > :stem || '/' and stem < :stem || '0') and (:ending is null or ending = :ending)"""


class SqliteNames(SqliteItems):
    """Documents by their names, and the names of documents."""

    @guarded
    def documents_by_docid(self, prefix: str, limit: int) -> tuple[list[Name], int]:
        return self._named("docid >= :low and docid < :high", hex_range(prefix), limit)

    @guarded
    def documents_by_hash(self, prefix: str, limit: int) -> tuple[list[Name], int]:
        # By that index: the planner would rather read all documents in the order that is asked for.
        hashed = """items.id in (select id from items indexed by items_by_hash
                    where kind = 'document' and content_hash >= :low and content_hash < :high)"""
        return self._named(hashed, hex_range(prefix), limit)

    @guarded
    def documents_by_end(self, path: str, ending: Ending, limit: int) -> tuple[list[Name], int]:
        return self._named(_ENDINGS[ending], {"end": backwards(path)}, limit)

    @guarded
    def documents_in_any_case(self, path: str, limit: int, *, with_ending: bool) -> tuple[list[Name], int]:
        values = stem_and_ending(path, with_ending=with_ending)
        return self._named(_STEMS, values, limit, "length(backwards), parent, key")

    def _named(
        self, where: str, values: dict[str, Any], limit: int, order: str = "parent, key"
    ) -> tuple[list[Name], int]:
        db = self._database.reading()
        query = f"{_NAMES} where {where} order by {order} limit :limit"
        names = [Name(*row) for row in db.execute(query, {**values, "limit": limit})]
        if len(names) < limit:
            return names, len(names)
        counted = f"select count(*) from document_names join items on items.id = item_id where {where}"
        return names, int(next(db.execute(counted, values))[0])

    @guarded
    def docids(self, item_ids: Sequence[int]) -> dict[int, str]:
        rows = self._database.reading().execute(
            """select item_id, docid,
                 (select max(docid) from document_names as other where other.docid < this.docid),
                 (select min(docid) from document_names as other where other.docid > this.docid)
               from document_names as this where item_id in (select value from json_each(?))""",
            (json.dumps(list(item_ids)),),
        )
        return {item_id: docid[: digits_needed(docid, before, after)] for item_id, docid, before, after in rows}

    @guarded
    def document_files(self) -> tuple[list[int], list[str]]:
        # Two strings instead of a row each: ten times fewer steps between SQLite and Python.
        ids, files = next(
            self._database.reading().execute(
                """select group_concat(id), group_concat(parent || '/' || key, char(0))
                   from (select id, parent, key from items where kind = 'document' order by parent, key)"""
            )
        )
        return (list(map(int, ids.split(","))), files.split("\0")) if ids else ([], [])

    @guarded
    def files_of(self, item_ids: Sequence[int]) -> dict[int, str]:
        rows = self._database.reading().execute(
            "select id, parent || '/' || key from items where id in (select value from json_each(?))",
            (json.dumps(list(item_ids)),),
        )
        return dict(rows)

    @guarded
    def body_sizes(self, item_ids: Sequence[int]) -> dict[int, int]:
        rows = self._database.reading().execute(
            "select item_id, octet_length(body) from bodies where item_id in (select value from json_each(?))",
            (json.dumps(list(item_ids)),),
        )
        return dict(rows)

    @guarded
    def unembedded_documents(self, model_id: int | None, parents: Sequence[str] = ()) -> int:
        among = "and parent in (select value from json_each(:parents))" if parents else ""
        # The passages are looked at only where there are vectors to look for: without any, reading them was 20 MB.
        query = f"""select count(*) from items where kind = 'document' {among} and chunk_count > 0 and
                      (not exists (select 1 from embeddings where model = :model) or exists
                        (select 1 from chunks where chunks.id >= items.id << {CHUNK_BITS}
                           and chunks.id < (items.id + 1) << {CHUNK_BITS}
                           and not exists (select 1 from embeddings where model = :model and key = vector_key)))"""
        values = {"model": model_id, "parents": json.dumps(list(parents))}
        return int(next(self._database.reading().execute(query, values))[0])
