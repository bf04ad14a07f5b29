"""The store on SQLite: vectors, attachments, jobs, settings and care."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import apsw
import numpy as np
from numpy.typing import NDArray

from commonplace.errors import InvalidInput, NotFound, StorageBroken
from commonplace.model import CHUNK_BITS, JSON, SCHEMES, Chunk, chunk_id
from commonplace.store.backups import COPY, check_target, clear_copies, foreign_part, make_private, partial_of
from commonplace.store.rows import LONGEST_WAIT, MODEL_COLUMNS, Attachment, Job, Model
from commonplace.store.shaping import CHUNK_COLUMNS, ITEM_COLUMNS, chunk_from, json_text, now_micros
from commonplace.store.sqlite.connection import explained, load_migrations
from commonplace.store.sqlite.files import Files
from commonplace.store.sqlite.items import consistent, guarded
from commonplace.store.sqlite.knowledge import Records
from commonplace.store.sqlite.listings import Listings
from commonplace.store.sqlite.memory import EntryRows
from commonplace.store.sqlite.naming import Names
from commonplace.store.sqlite.outlines import Outlines
from commonplace.store.sqlite.rows import find_by_vector, log_changes
from commonplace.store.sqlite.sessions import Sessions
from commonplace.store.sqlite.table_nodes import TableNodes


class SqliteStore(Sessions, EntryRows, Records, Listings, Names, Outlines, TableNodes, Files):
    """Everything the Store interface promises, on one SQLite file."""

    # vectors

    @guarded
    def model(self, fingerprint: str) -> Model | None:
        row = (
            self._database.reading()
            .execute(f"select {MODEL_COLUMNS} from models where fingerprint = ?", (fingerprint,))
            .fetchone()
        )
        return Model(*row) if row else None

    @guarded
    def models(self) -> list[Model]:
        return [
            Model(*row) for row in self._database.reading().execute(f"select {MODEL_COLUMNS} from models order by id")
        ]

    @guarded
    def add_model(self, fingerprint: str, name: str, dims: int) -> Model:
        with self._database.writing() as db:
            db.execute(
                "insert into models (fingerprint, name, dims, position) values (?, ?, ?, 0) on conflict do nothing",
                (fingerprint, name, dims),
            )
            return Model(*next(db.execute(f"select {MODEL_COLUMNS} from models where fingerprint = ?", (fingerprint,))))

    @guarded
    def drop_model(self, model_id: int) -> None:
        with self._database.writing() as db:
            db.execute("delete from embeddings where model = ?", (model_id,))
            db.execute("delete from models where id = ?", (model_id,))

    @guarded
    def unembedded(self, model: Model, after: int, limit: int) -> tuple[list[Chunk], int]:
        db, found, seen, reached = self._database.reading(), list[Chunk](), set[int](), after
        while len(found) < limit:
            lines: list[Any] = db.execute(
                "select seq, op, item_id from changes where seq > ? order by seq limit 500", (reached,)
            ).fetchall()
            for seq, op, item_id in lines:
                reached = seq
                if op == "put" and item_id not in seen:
                    seen.add(item_id)
                    found += self._unembedded_of(db, model, item_id)
                if len(found) >= limit:
                    break
            if not lines:
                break
        return found, reached

    @consistent
    def lacking(self, model: Model, item_ids: Sequence[int]) -> list[Chunk]:
        db = self._database.reading()
        return [chunk for item_id in item_ids for chunk in self._unembedded_of(db, model, item_id)]

    @staticmethod
    def _unembedded_of(db: apsw.Connection, model: Model, item_id: int) -> list[Chunk]:
        rows = db.execute(
            f"""select {CHUNK_COLUMNS} from chunks where id >= ? and id < ?
                and not exists (select 1 from embeddings where model = ? and key = vector_key) order by id""",
            (chunk_id(item_id, 0), chunk_id(item_id + 1, 0), model.id),
        )
        return [chunk_from(row) for row in rows]

    @guarded
    def add_vectors(self, model: Model, vectors: Sequence[tuple[bytes, bytes]]) -> None:
        with self._database.writing() as db:
            gained: set[int] = set()
            if not db.execute(
                "select 1 from models where (id, fingerprint) = (?, ?)", (model.id, model.fingerprint)
            ).fetchone():
                return  # the model was dropped while it was at work
            find_by_vector(db)
            for key, vector in vectors:
                items = {
                    chunk >> CHUNK_BITS for (chunk,) in db.execute("select id from chunks where vector_key = ?", (key,))
                }
                if not items:
                    continue  # the passage was forgotten while it was being embedded
                db.execute(
                    "insert or ignore into embeddings (model, key, vector) values (?, ?, ?)", (model.id, key, vector)
                )
                if db.changes():
                    gained |= items
            among = "select id, version from items where id in (select value from json_each(?)) order by id"
            log_changes(db, "embed", list(db.execute(among, (json.dumps(sorted(gained)),))))

    @guarded
    def drop_vectors(self, model_id: int, item_ids: Sequence[int]) -> None:
        with self._database.writing() as db:
            for item_id in item_ids:
                db.execute(
                    """delete from embeddings where model = ? and key in
                         (select vector_key from chunks where id >= ? and id < ?)""",
                    (model_id, chunk_id(item_id, 0), chunk_id(item_id + 1, 0)),
                )
            db.execute("update models set position = 0 where id = ?", (model_id,))

    @guarded
    def set_position(self, model: Model, seq: int) -> None:
        with self._database.writing() as db:
            db.execute("update models set position = max(position, ?) where id = ?", (seq, model.id))

    @guarded
    def vectors_of(self, model_id: int, item_ids: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.float16]]:
        db = self._database.reading()
        ids: list[int] = []
        rows: list[bytes] = []
        for item_id in item_ids:
            for chunk, vector in db.execute(
                """select chunks.id, vector from chunks cross join embeddings on model = ? and key = vector_key
                   where chunks.id >= ? and chunks.id < ? order by chunks.id""",
                (model_id, chunk_id(item_id, 0), chunk_id(item_id + 1, 0)),
            ):
                ids.append(chunk)
                rows.append(vector)
        matrix = np.frombuffer(b"".join(rows), dtype=np.float16)
        return np.array(ids, dtype=np.int64), matrix.reshape(len(ids), -1) if ids else matrix.reshape(0, 0)

    @guarded
    def embedded_total(self, model_id: int) -> int:
        query = (
            "select count(*) from chunks where exists (select 1 from embeddings where model = ? and key = vector_key)"
        )
        return int(next(self._database.reading().execute(query, (model_id,)))[0])

    # attachments

    @guarded
    def attach(self, item_id: int, attachments: Sequence[tuple[Attachment, dict[str, JSON]]]) -> None:
        with self._database.writing() as db:
            if not db.execute("select 1 from items where id = ?", (item_id,)).fetchone():
                raise InvalidInput("Attachments belong to a stored item. Store the item first.")
            replaced = self._detach(db, [item_id])
            for position, (attachment, fields) in enumerate(attachments):
                if hashlib.sha256(attachment.data).digest() != attachment.hash:
                    raise InvalidInput("An attachment's hash is the SHA-256 of its data.")
                db.execute("insert or ignore into attachments values (?, ?)", (attachment.hash, attachment.data))
                db.execute(
                    "insert into item_attachments values (?, ?, ?, ?, ?)",
                    (item_id, position, attachment.hash, attachment.media_type, json_text(fields)),
                )
            self._drop_unattached(db, replaced)

    @guarded
    def attachments_of(self, item_id: int) -> list[tuple[Attachment, dict[str, JSON]]]:
        rows = self._database.reading().execute(
            """select hash, media_type, data, fields from item_attachments join attachments using (hash)
               where item_id = ? order by position""",
            (item_id,),
        )
        return [(Attachment(hash, media_type, data), json.loads(fields)) for hash, media_type, data, fields in rows]

    # jobs: a claim is a lease, so that work of a process that died is taken up by another

    @guarded
    def enqueue(self, kind: str, payload: dict[str, JSON], delay_s: float = 0) -> int:
        with self._database.writing() as db:
            db.execute(
                "insert into jobs (kind, payload, run_after) values (?, ?, ?)",
                (kind, json_text(payload), now_micros() + int(delay_s * 1e6)),
            )
            return db.last_insert_rowid()

    @guarded
    def claim(self, kind: str, lease_s: float) -> Job | None:
        now = now_micros()
        with self._database.writing() as db:
            row = db.execute(
                """update jobs set claimed_until = :until, attempts = attempts + 1 where id =
                     (select id from jobs where kind = :kind and run_after not between :later and :latest
                      and claimed_until not between :later and :latest
                      order by run_after, id limit 1)
                   returning id, kind, payload, attempts""",
                {"kind": kind, "later": now + 1, "latest": now + LONGEST_WAIT, "until": now + int(lease_s * 1e6)},
            ).fetchone()
            return Job(row[0], row[1], json.loads(row[2]), row[3]) if row else None

    @guarded
    def finish(self, job: Job) -> None:
        with self._database.writing() as db:
            db.execute("delete from jobs where id = ? and attempts = ?", (job.id, job.attempts))

    @guarded
    def fail(self, job: Job, error: str, retry_s: float) -> None:
        with self._database.writing() as db:
            db.execute(
                "update jobs set claimed_until = 0, run_after = ?, error = ? where id = ? and attempts = ?",
                (now_micros() + int(retry_s * 1e6), error, job.id, job.attempts),
            )

    # settings

    @guarded
    def job_total(self) -> int:
        return int(next(self._database.reading().execute("select count(*) from jobs"))[0])

    @guarded
    def setting(self, name: str) -> JSON:
        row = self._database.reading().execute("select value from settings where name = ?", (name,)).fetchone()
        return json.loads(row[0]) if row else None

    @guarded
    def set_setting(self, name: str, value: JSON) -> None:
        with self._database.writing() as db:
            db.execute(
                "insert into settings values (?, ?) on conflict do update set value = excluded.value",
                (name, json_text(value)),
            )

    @guarded
    def settle(self, name: str, value: JSON) -> JSON:
        settled = self.setting(name)
        if settled is None:  # asked at every opening, which is not to wait for who writes just then
            with self._database.writing() as db:
                db.execute("insert or ignore into settings values (?, ?)", (name, json_text(value)))
            settled = self.setting(name)
        return settled

    # care

    @guarded
    def backup(self, target: Path) -> None:
        """A consistent copy while others go on writing. It takes its name only when it is complete and on disk."""
        check_target(target)
        with explained(target):
            partial = partial_of(target)
            try:
                make_private(partial)
                with _told_of(self.path):
                    self._database.reading().execute("vacuum into ?", (str(partial),))
                with partial.open("rb") as file:
                    os.fsync(file.fileno())
                partial.replace(target)
            except BaseException:
                partial.unlink(missing_ok=True)
                raise

    @guarded
    def restore(self, source: Path) -> None:
        """Take over everything from a backup, in one transaction: other processes see the old content or the new."""
        with copied(source, self.path.parent) as copy, explained(self.path):
            work = self._database.reading().backup("main", copy._database.reading(), "main")
            try:
                work.step()
            finally:
                work.finish()  # where a step fails, this is what says why

    @guarded
    def check(self) -> list[str]:
        db = self._database.reading()
        problems = [f"SQLite: {line}" for (line,) in db.execute("pragma integrity_check") if line != "ok"]
        for sentence, query in _INVARIANTS.items():
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

_INVARIANTS = {
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


_DAMAGE = (apsw.NotADBError, apsw.CorruptError, apsw.SQLError, UnicodeDecodeError)
"""What reading a file raises in which something is not as it was written."""


def _misquoted(db: apsw.Connection, item_id: int, body: str) -> int:
    """How many chunks say what their body does not. Not in SQL, which walks a long body anew for each of them."""
    span = (chunk_id(item_id, 0), chunk_id(item_id + 1, 0))
    chunks: Any = db.execute("select text, char_start, char_end from chunks where id >= ? and id < ?", span)
    return sum(body[start:end] != text for text, start, end in chunks)


@contextmanager
def _told_of(path: Path) -> Iterator[None]:
    """What is damaged is this file, whichever other the work is about."""
    try:
        yield
    except (apsw.CorruptError, apsw.NotADBError):
        with explained(path):
            raise


@contextmanager
def _told_unsound(backup: Path) -> Iterator[None]:
    """Damage that shows in the copy of a backup is told of the backup, and is nothing to restore."""
    try:
        yield
    except (*_DAMAGE, StorageBroken) as error:
        found = error.__cause__ if isinstance(error, StorageBroken) else error
        if not isinstance(found, _DAMAGE):
            raise
        raise StorageBroken(f"{backup} is no sound backup: {found}. Nothing was changed.") from error


def check_backup(backup: Path) -> None:
    """Refuse what a first look says is no backup, or none for us. Whether it is sound shows when it is copied."""
    if not backup.is_file():
        raise NotFound(f"There is no backup at {backup}.")
    flags = apsw.SQLITE_OPEN_READONLY
    with explained(backup), _told_unsound(backup), closing(apsw.Connection(str(backup), flags=flags)) as original:
        tables = {name for (name,) in original.execute("select name from sqlite_schema where type = 'table'")}
        if not {"items", "chunks", "changes", "settings"} <= tables:
            raise InvalidInput(f"{backup} is no backup of a library. `commonplace backup` makes them.")
        if int(original.pragma("user_version")) > len(load_migrations()):
            raise StorageBroken(f"{backup} was made by a newer Commonplace. Upgrade Commonplace to restore it.")


@contextmanager
def copied(backup: Path, beside: Path | None = None) -> Iterator[SqliteStore]:
    """A sound copy of a backup, its schema brought up to date, for as long as the work goes on.

    Its identity is its own: no index that followed the log of the backup, or another, ever takes it for that.
    """
    check_backup(backup)
    import tempfile  # with what it loads, 3 ms that a search does without

    if beside is not None:
        clear_copies(beside)
    with tempfile.TemporaryDirectory(dir=beside, prefix=COPY) as folder, explained(backup), ExitStack() as stores:
        path = Path(folder) / "copy.db"
        with _told_unsound(backup):
            original = closing(apsw.Connection(str(backup), flags=apsw.SQLITE_OPEN_READONLY))
            with original as connection, explained(path):  # it is the copy that finds no room
                connection.execute("vacuum into ?", (str(path),))
            copy = stores.enter_context(closing(SqliteStore(path)))
            ours = stores.enter_context(closing(SqliteStore(path.with_name("ours.db"))))
            if part := foreign_part(copy._database.reading(), ours._database.reading()):
                raise StorageBroken(f"{backup} is no sound backup: {part} is not ours or missing. Nothing was changed.")
            if problems := copy.check():
                raise StorageBroken(f"{backup} is no sound backup: {problems[0]}. Nothing was changed.")
        copy.set_setting("identity", uuid4().hex[:12])
        yield copy
