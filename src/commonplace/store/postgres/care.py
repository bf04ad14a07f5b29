"""The store on PostgreSQL: what is wrong with it, and what is left over. Room on disk is the server's business."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from commonplace.store.postgres.items import PostgresItems, reads, writes
from commonplace.store.spelling import folded, name_backwards, name_hash

_PIECE = 200


class PostgresCare(PostgresItems):
    """Checks of everything that is stored."""

    def refresh_statistics(self) -> None:
        """Do nothing: the server's autovacuum looks after its statistics, and only their owner may."""

    @reads
    def check(self) -> list[str]:
        self._run("set local statement_timeout = 0")
        problems = []
        for sentence, query in _INVARIANTS.items():
            if count := self._one(query):
                problems.append(f"{sentence}: {count}")
        wrong, misquoted = self._wrong_texts()
        for sentence, count in (
            ("bodies that are not what was written", wrong),
            ("chunks that do not quote their body", misquoted),
            ("attachments that are not what was written", self._wrong_attachments()),
            ("documents that are not found by name", self._wrong_names()),
        ):
            if count:
                problems.append(f"{sentence}: {count}")
        return problems

    def _wrong_texts(self) -> tuple[int, int]:
        """Return how many bodies differ from what was written, and how many chunks from their body.

        Not in SQL, which unpacks a long body anew for each of its chunks.
        """
        wrong = misquoted = 0
        for rows in self._pieces(
            "select item_id, content_hash, body from items join bodies on item_id = id", "item_id", 0
        ):
            wrong += sum(hashlib.sha256(body.encode()).hexdigest() != hash for _, hash, body in rows)
            bodies = {item_id: body for item_id, _, body in rows}
            chunks = self._all(
                "select item_id, text, char_start, char_end from chunks where item_id = any(%s::bigint[])",
                (list(bodies),),
            )
            misquoted += sum(bodies[item_id][start:end] != text for item_id, text, start, end in chunks)
        return wrong, misquoted

    def _wrong_attachments(self) -> int:
        pieces = self._pieces("select hash, data from attachments", "hash", b"")
        return sum(hashlib.sha256(data).digest() != hash for rows in pieces for hash, data in rows)

    def _wrong_names(self) -> int:
        rows = self._all(
            """select parent, key, docid, backwards, ending, stem from items left join document_names on item_id = id
               where kind = 'document'"""
        )
        return sum((name_hash(*row[:2]), end := name_backwards(*row[:2]), *folded(end)) != row[2:] for row in rows)

    def _pieces(self, query: str, by: str, after: Any) -> Iterator[list[Any]]:
        """Yield rows in the order of their first column, a few at a time: they are large."""
        while rows := self._all(f"{query} where {by} > %s order by {by} limit {_PIECE}", (after,)):
            after = rows[-1][0]
            yield rows

    def leftovers(self, *, drop: bool = False) -> dict[str, int]:
        return self._drop_leftovers() if drop else self._count_leftovers()

    @reads
    def _count_leftovers(self) -> dict[str, int]:
        return {name: int(self._one(f"select count(*) from {rows}")) for name, rows in _LEFTOVERS.items()}

    @writes
    def _drop_leftovers(self) -> dict[str, int]:
        return {name: len(self._all(f"delete from {rows} returning 1")) for name, rows in _LEFTOVERS.items()}

    def vacuum(self) -> None:
        """Do nothing: the server's autovacuum does it, and only the tables' owner may."""


_LEFTOVERS = {
    "vectors": """embeddings where model not in (select id from models)
        or not exists (select 1 from chunks where vector_key = key)""",
    "tombstones": "files where collection not in (select key from items where kind = 'collection')",
    "answers": "kept_answers where answered_at < (extract(epoch from now())::bigint - 7 * 86400) * 1000000",
}
"""What no search and no reader comes across any more: vectors of no passage, records of files of no collection, and
answers kept for calls that nobody repeats after a week."""

_NO_ITEM = "not exists (select 1 from items where items.id = item_id)"
_INVARIANTS = {
    "gaps in the change log": "select coalesce(max(seq), 0) - count(*) from changes",
    "numbers that would be given out twice": """select count(*) from spaces
        where change <> (select coalesce(max(seq), 0) from changes)
        or item < (select coalesce(max(id), 0) from items) or entry < (select coalesce(max(id), 0) from memories)
        or part < (select coalesce(max(number), 0) from tables)
        or part < (select coalesce(max(id), 0) from fragments)""",
    "items without a body": """select count(*) from items
        where not exists (select 1 from bodies where item_id = items.id)""",
    "bodies without an item": f"select count(*) from bodies where {_NO_ITEM}",
    "tags without an item": f"select count(*) from tags where {_NO_ITEM}",
    "chunks without an item": f"select count(*) from chunks where {_NO_ITEM}",
    "items whose chunks do not count up": """select count(*) from items where chunk_count <>
        (select count(*) from chunks where chunks.item_id = items.id)""",
    "items whose version is not their last logged one": """select count(*) from items left join
        (select distinct on (item_id) item_id, version from changes order by item_id, seq desc) as logged
        on logged.item_id = items.id where items.version is distinct from logged.version""",
    "vectors without a chunk": """select count(*) from embeddings
        where not exists (select 1 from chunks where vector_key = key)""",
    "outlines or headings of no item": f"""select (select count(*) from outlines where {_NO_ITEM})
        + (select count(*) from headings
           where not exists (select 1 from outlines where outlines.item_id = headings.item_id))""",
    "names without a document": f"select count(*) from document_names where {_NO_ITEM}",
    "items that no record names": """select count(*) from items
        where kind in ('note', 'media', 'conversation', 'character', 'prompt')
        and not exists (select 1 from records where item_id = items.id and records.kind = items.kind)""",
    "records, cues or import sources of no item": f"""select
        (select count(*) from records where {_NO_ITEM}) + (select count(*) from cues where {_NO_ITEM})
        + (select count(*) from import_sources where {_NO_ITEM})""",
    "data, tools or work of no table": """select
        (select count(*) from fragments where tbl not in (select number from tables))
        + (select count(*) from tools where tbl not in (select number from tables))
        + (select count(*) from dirty_places where tbl not in (select number from tables))""",
    "tables whose size is not that of their data": """select count(*) from tables where size is distinct from
        (select size from fragments where parent = -number)""",
    "indexed places of no item": f"select count(*) from node_places where {_NO_ITEM}",
    "vectors of no model": "select count(*) from embeddings where model not in (select id from models)",
    "items whose attachment is gone": """select count(*) from item_attachments
        where not exists (select 1 from attachments where attachments.hash = item_attachments.hash)""",
    "memory entries without an item": f"select count(*) from memories where {_NO_ITEM}",
    "threads whose entries do not count up": """select count(*) from
        ((select thread, count(*), count(*) filter (where source = 'user'), count(*) filter (where images > 0)
          from memories group by thread)
         except select thread, entries, from_user, multimodal from memory_threads) as wrong""",
    "memory entries whose images do not count up": """select count(*) from memories where images <>
        (select count(*) from item_attachments where item_attachments.item_id = memories.item_id)""",
    "indexed metadata without an item": f"select count(*) from metadata_holders where {_NO_ITEM}",
    "attachments without an item": """select count(*) from attachments
        where not exists (select 1 from item_attachments where item_attachments.hash = attachments.hash)""",
    "memories of a session that is gone": """select count(*) from
        (select session from session_uris union all select session from session_lists) as kept
        where session not in (select id from sessions)""",
}
