"""The store on SQLite: what is wrong with it, and what is left over."""

from __future__ import annotations

import hashlib
from typing import Any

import apsw

from commonplace.model import CHUNK_BITS, SCHEMES, chunk_id
from commonplace.store.shaping import ITEM_COLUMNS
from commonplace.store.sqlite.items import SqliteItems, guarded


class SqliteCare(SqliteItems):
    """Checks of everything that is stored, and room on disk."""

    @guarded
    def refresh_statistics(self) -> None:
        if _is_known(self._database.reading()):
            return  # every statement would be planned again, for the same plans
        with self._database.writing() as db:
            db.execute("pragma analysis_limit = 1000").fetchall()  # a statement is done when its rows are read
            db.execute("analyze").fetchall()

    @guarded
    def check(self) -> list[str]:
        db = self._database.reading()
        problems = [f"SQLite: {line}" for (line,) in db.execute("pragma integrity_check") if line != "ok"]
        for sentence, query in INVARIANTS.items():
            count = next(db.execute(query))[0]
            if count:
                problems.append(f"{sentence}: {count}")
        # Names are read along, for what is no text any more cannot be.
        bodies = db.execute(f"select content_hash, body, {ITEM_COLUMNS} from items join bodies on item_id = items.id")
        wrong = misquoted = 0
        for hash, body, item_id, *_ in bodies:
            wrong += hashlib.sha256(body.encode()).hexdigest() != hash
            misquoted += _misquoted(db, item_id, body)
        if wrong:
            problems.append(f"bodies that are not what was written: {wrong}")
        if misquoted:
            problems.append(f"chunks that do not quote their body: {misquoted}")
        if wrong := sum(
            hashlib.sha256(data).digest() != hash for hash, data in db.execute("select hash, data from attachments")
        ):
            problems.append(f"attachments that are not what was written: {wrong}")
        return problems

    @guarded
    def leftovers(self, *, drop: bool = False) -> dict[str, int]:
        if not drop:
            db = self._database.reading()
            return {name: int(next(db.execute(f"select count(*) from {rows}"))[0]) for name, rows in _LEFTOVERS.items()}
        with self._database.writing() as db:
            dropped = {}
            for name, rows in _LEFTOVERS.items():
                db.execute(f"delete from {rows}")
                dropped[name] = db.changes()
            return dropped

    @guarded
    def vacuum(self) -> None:
        db = self._database.reading()
        db.execute("vacuum")
        db.execute("pragma wal_checkpoint(truncate)")


_LEFTOVERS = {
    "vectors": """embeddings where model not in (select id from models)
        or key not in (select vector_key from chunks)""",
    "tombstones": "files where collection not in (select key from items where kind = 'collection')",
    "answers": "kept_answers where answered_at < (strftime('%s', 'now') - 7 * 86400) * 1000000",
}
"""What no search and no reader comes across any more: vectors of no passage, records of files of no collection, and
answers kept for calls that nobody repeats after a week."""

INVARIANTS = {
    "gaps in the change log": "select coalesce(max(seq), 0) - count(*) from changes",
    "items without a body": "select count(*) from items where id not in (select item_id from bodies)",
    "bodies without an item": "select count(*) from bodies where item_id not in (select id from items)",
    "tags without an item": "select count(*) from tags where item_id not in (select id from items)",
    "chunks without an item": f"select count(*) from chunks where id >> {CHUNK_BITS} not in (select id from items)",
    "items whose chunks do not count up": f"""select count(*) from items where chunk_count <>
        (select count(*) from chunks
         where chunks.id >= items.id << {CHUNK_BITS} and chunks.id < (items.id + 1) << {CHUNK_BITS})""",
    "items whose version is not their last logged one": """select count(*) from items
        left join (select item_id, version, max(seq) from changes group by item_id) last on last.item_id = items.id
        where items.version is not last.version""",
    "vectors without a chunk": """select count(*) from embeddings
        where key not in (select vector_key from chunks)""",
    "documents that are not found by name": """select count(*) from items where kind = 'document'
        and not exists (select 1 from document_names where item_id = items.id
                        and docid = name_hash(parent, key) and backwards = name_backwards(parent, key)
                        and ending = folded_ending(backwards) and stem = folded_stem(backwards))""",
    "outlines or headings of no item": """select
        (select count(*) from outlines where item_id not in (select id from items))
        + (select count(*) from headings where item_id not in (select item_id from outlines))""",
    "names without a document": "select count(*) from document_names where item_id not in (select id from items)",
    "items that no record names": """select count(*) from items
        where kind in ('note', 'media', 'conversation', 'character', 'prompt')
        and not exists (select 1 from records where item_id = items.id and records.kind = items.kind)""",
    "records, cues or import sources of no item": """select
        (select count(*) from records where item_id not in (select id from items))
        + (select count(*) from cues where item_id not in (select id from items))
        + (select count(*) from import_sources where item_id not in (select id from items))""",
    "data, tools or work of no table": """select
        (select count(*) from fragments where tbl not in (select number from tables))
        + (select count(*) from tools where tbl not in (select number from tables))
        + (select count(*) from dirty_places where tbl not in (select number from tables))""",
    "tables whose size is not that of their data": """select count(*) from tables where size is not
        (select size from fragments where parent = -number)""",
    "indexed places of no item": "select count(*) from node_places where item_id not in (select id from items)",
    "vectors of no model": "select count(*) from embeddings where model not in (select id from models)",
    "vectors of another length": """select count(*) from embeddings join models on models.id = model
        where length(vector) <> 2 * dims""",
    "items whose fields or metadata are no objects": """select count(*) from items
        where iif(json_valid(fields), json_type(fields), '') <> 'object'
        or iif(json_valid(metadata), json_type(metadata), '') <> 'object'""",
    "items of no kind": f"select count(*) from items where kind not in ({str(list(SCHEMES))[1:-1]})",
    "settings that are no JSON": "select count(*) from settings where not json_valid(value)",
    "passages, attachments, cues or histories with what is no JSON": """select
        (select count(*) from chunks where anchor is not null and not json_valid(anchor))
        + (select count(*) from item_attachments where not json_valid(fields))
        + (select count(*) from cues where not json_valid(cues))
        + (select count(*) from memory_history
           where not (json_valid(metadata) and json_valid(tags) and json_valid(images)))""",
    "data of tables that is no JSON": """select count(*) from fragments
        where text is not null and not json_valid('[' || text || ']')""",
    "items whose attachment is gone": """select count(*) from item_attachments
        where hash not in (select hash from attachments)""",
    "memory entries without an item": "select count(*) from memories where item_id not in (select id from items)",
    "threads whose entries do not count up": """select count(*) from
        (select thread, count(*), sum(source = 'user'), sum(images > 0) from memories group by thread
         except select thread, entries, from_user, multimodal from memory_threads)""",
    "memory entries whose images do not count up": """select count(*) from memories where images <>
        (select count(*) from item_attachments where item_attachments.item_id = memories.item_id)""",
    "indexed metadata without an item": """select count(*) from metadata_holders
        where item_id not in (select id from items)""",
    "attachments without an item": """select count(*) from attachments
        where hash not in (select hash from item_attachments)""",
    "memories of a session that is gone": """select count(*) from
        (select session from session_uris union all select session from session_lists)
        where session not in (select id from sessions)""",
}


def _misquoted(db: apsw.Connection, item_id: int, body: str) -> int:
    """Return how many chunks differ from their body. Not in SQL, which walks a long body anew for each chunk."""
    span = (chunk_id(item_id, 0), chunk_id(item_id + 1, 0))
    chunks: Any = db.execute("select text, char_start, char_end from chunks where id >= ? and id < ?", span)
    return sum(body[start:end] != text for text, start, end in chunks)


def _is_known(db: apsw.Connection) -> bool:
    """Return whether the planner's number of entries is off by less than half."""
    if not db.table_exists("main", "sqlite_stat1"):
        return False
    known = db.execute("select cast(stat as integer) from sqlite_stat1 where idx = 'memories_by_time'").fetchone()
    total = next(db.execute("select coalesce(sum(entries), 0) from memory_threads"))[0]
    return known is not None and known[0] <= 2 * total <= 4 * known[0]
