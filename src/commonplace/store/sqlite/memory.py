"""The store on SQLite: what memory entries have beside their items."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import apsw

from commonplace.model import JSON, Filter
from commonplace.store.filters import path_from, shapes
from commonplace.store.items import Items
from commonplace.store.listing import Listing
from commonplace.store.rows import ENTRY_BATCH, MOST_NUMBER, EntryRow, NumberedWrite, Past, Said, Write
from commonplace.store.shaping import is_number, json_text, now_micros
from commonplace.store.sqlite.connection import explained
from commonplace.store.sqlite.items import SqliteItems, guarded
from commonplace.store.sqlite.rows import hold_values

_ENTRY = """id, item_id, thread, source, created_at, images, expires_at,
  (select max(newer) from supersessions where older = id),
  (select group_concat(older) from supersessions where newer = id)"""


class SqliteEntryRows(SqliteItems):
    """Numbers, threads, expiry, supersession, history, and the metadata fields that are indexed."""

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with explained(self.path), self._database.writing():
            yield

    @guarded
    def next_entry(self) -> int:
        query = "select coalesce(max(seq), 0) + 1 from sqlite_sequence where name = 'memories'"
        return int(next(self._database.reading().execute(query))[0])

    @guarded
    def entries(self, numbers: Sequence[int]) -> list[EntryRow]:
        wanted = [number for number in numbers if abs(number) <= MOST_NUMBER]
        entries_by_number = {entry.number: entry for entry in self._entries("id", wanted)}
        return [entries_by_number[number] for number in wanted if number in entries_by_number]

    @guarded
    def entries_of(self, item_ids: Sequence[int]) -> list[EntryRow]:
        entries_by_item = {entry.item_id: entry for entry in self._entries("item_id", item_ids)}
        return [entries_by_item[item_id] for item_id in item_ids if item_id in entries_by_item]

    def _entries(self, column: str, wanted: Sequence[int]) -> list[EntryRow]:
        query = f"select {_ENTRY} from memories where {column} in (select value from json_each(?))"
        return [_entry(row) for row in self._database.reading().execute(query, (json.dumps(list(wanted)),))]

    @guarded
    def latest_entries(self, threads: Sequence[str], limit: int) -> dict[str, list[Said]]:
        rows: Any = self._database.reading().execute(
            """select thread, memories.id, item_id, source,
                 exists (select 1 from supersessions where older = memories.id), body, created_at
               from json_each(?) as wanted cross join memories on memories.id in
                 (select id from memories where thread = wanted.value order by created_at desc, id desc limit ?)
               join bodies using (item_id) order by wanted.id, created_at desc, memories.id desc""",
            (json.dumps(list(threads)), limit),
        )
        latest: dict[str, list[Said]] = defaultdict(list)
        for thread, number, item_id, source, superseded, body, created in rows:
            latest[thread].append(Said(number, item_id, source, bool(superseded), body, created))
        return latest

    @guarded
    def add_entries(self, writes: Sequence[Write]) -> list[tuple[int, int]]:
        with self._database.writing(alone=False):
            number = self.next_entry()
            keyed = [(str(number + place), write) for place, write in enumerate(writes)]
            ids = self.drawer(Items).add(keyed, now_micros())
            return [(number + place, item_id) for place, item_id in enumerate(ids)]

    @guarded
    def entry_numbers(
        self,
        *,
        numbers: Sequence[int] | None = None,
        threads: Sequence[str] | None = None,
        source: str | None = None,
        before: int | None = None,
    ) -> list[int]:
        query = """select id from memories
            where (:numbers is null or id in (select value from json_each(:numbers)))
              and (:threads is null or thread in (select value from json_each(:threads)))
              and (:source is null or source = :source) and (:before is null or created_at < :before)
            order by id"""
        if numbers is not None:
            numbers = [number for number in numbers if abs(number) <= MOST_NUMBER]
        values = {
            "numbers": None if numbers is None else json.dumps(numbers),
            "threads": None if threads is None else json.dumps(list(threads), ensure_ascii=False),
            "source": source,
            "before": before,
        }
        return [number for (number,) in self._database.reading().execute(query, values)]

    @guarded
    def expired(self, now: int) -> list[int]:
        query = "select item_id from memories where expires_at is not null and expires_at <= ? order by expires_at"
        return [item_id for (item_id,) in self._database.reading().execute(query, (now,))]

    @guarded
    def restore_entry(self, write: Write, version: int) -> int:
        with self._database.writing() as db:
            item_id = self.drawer(Items).store([write], now_micros())[0]
            db.execute("update items set version = ? where id = ?", (version, item_id))
            db.execute("update changes set version = ? where seq = (select max(seq) from changes)", (version,))
            return item_id

    @guarded
    def supersede(self, newer: int, older: Sequence[int]) -> None:
        with self._database.writing() as db:
            _supersede(db, [(newer, number) for number in older])

    @guarded
    def set_summary(self, item_id: int, body: str, summary: str) -> bool:
        digest = hashlib.sha256(body.encode("utf-8")).hexdigest()
        with self._database.writing() as db:
            row = db.execute(
                "select fields from items where id = ? and kind = 'memory' and content_hash = ?", (item_id, digest)
            ).fetchone()
            if row is None or not summary.strip():
                return False
            fields = {**json.loads(row[0]), "summary": summary}
            db.execute("update items set fields = ? where id = ?", (json_text(fields), item_id))
            return True

    @guarded
    def superseded_items(self) -> list[int]:
        query = "select item_id from memories where id in (select older from supersessions) order by item_id"
        return [item_id for (item_id,) in self._database.reading().execute(query)]

    # history

    @guarded
    def keep_past(self, item_id: int, past: Past, most: int) -> None:
        with self._database.writing() as db:
            db.execute(
                "insert into memory_history values (?, ?, ?, ?, ?, ?, ?)",
                (
                    item_id,
                    past.version,
                    past.updated_at,
                    past.body,
                    *map(json_text, (past.metadata, past.tags, past.images)),
                ),
            )
            db.execute(
                """delete from memory_history where item_id = :item and version not in
                     (select version from memory_history where item_id = :item order by version desc limit :most)""",
                {"item": item_id, "most": most},
            )

    @guarded
    def past(self, item_ids: Sequence[int]) -> dict[int, list[Past]]:
        rows = self._database.reading().execute(
            """select item_id, version, updated_at, body, metadata, tags, images from memory_history
               where item_id in (select value from json_each(?)) order by item_id, version desc""",
            (json.dumps(list(item_ids)),),
        )
        states: dict[int, list[Past]] = defaultdict(list)
        for item_id, version, updated_at, body, metadata, tags, images in rows:
            shown = tuple((hash, media_type) for hash, media_type in json.loads(images))
            states[item_id].append(
                Past(version, updated_at, body, json.loads(metadata), tuple(json.loads(tags)), shown)
            )
        return states

    # what is kept beside the item, in the transaction that writes it

    def _put_entries(self, db: apsw.Connection, kept: Sequence[NumberedWrite]) -> None:
        self._index_metadata(db, [(one.item_id, one.write.draft.metadata) for one in kept])
        entries = [one for one in kept if _is_entry(one)]
        db.executemany(
            """insert into memories (id, item_id, thread, source, created_at, expires_at)
               values (?1, ?2, ?3, ?4, (select created_at from items where id = ?2), ?5)""",
            [(int(key), item_id, write.draft.parent, *_said_by(write)) for item_id, key, write in entries],
        )
        self._put_successors(db, entries)
        if numbers := [int(one.key) for one in kept if is_number(one.key) and not _is_entry(one)]:
            _give_out_no_more(db, max(numbers))

    def _put_entry_again(self, db: apsw.Connection, kept: NumberedWrite) -> None:
        item_id, _, write = kept
        self._forget_metadata(db, [item_id])
        if not db.execute("select 1 from memories where item_id = ?", (item_id,)).fetchone():
            self._put_entries(db, [kept])
            return
        self._index_metadata(db, [(item_id, write.draft.metadata)])
        db.execute(
            """update memories set expires_at = ?1, created_at = (select created_at from items where id = ?2)
               where item_id = ?2""",
            (write.draft.fields.get("expires_at"), item_id),
        )
        self._put_successors(db, [kept] if _is_entry(kept) else [])

    @staticmethod
    def _put_successors(db: apsw.Connection, entries: Sequence[NumberedWrite]) -> None:
        pairs = [(int(one.key), older) for one in entries for older in one.write.draft.fields.get("supersedes") or ()]
        _supersede(db, pairs)

    def _delete_entries(self, db: apsw.Connection, item_ids: Sequence[int]) -> None:
        if item_ids:
            self._forget_metadata(db, item_ids)
            wanted = (json.dumps(list(item_ids)),)
            db.execute("delete from memories where item_id in (select value from json_each(?))", wanted)

    # indexed metadata

    @guarded
    def indexed_fields(self) -> list[tuple[str, ...]]:
        return list(self._fields(self._database.reading()))

    @guarded
    def index_field(self, path: tuple[str, ...]) -> None:
        with self._database.writing() as db:
            db.execute("insert or ignore into metadata_fields (path) values (?)", (json_text(path),))
            if not db.changes():
                return
            field, after = db.last_insert_rowid(), 0
            while items := self.drawer(Listing).scan(Filter(kinds=("memory",)), after=after, limit=ENTRY_BATCH):
                after = items[-1].id
                values = [((field, *kept), item.id) for item in items for kept in shapes(item.metadata, path)]
                hold_values(db, values)

    @guarded
    def drop_field(self, path: tuple[str, ...]) -> None:
        with self._database.writing() as db:
            values = "select id from metadata_values where field = (select id from metadata_fields where path = :path)"
            db.execute(f"delete from metadata_holders where value in ({values})", {"path": json_text(path)})
            db.execute(f"delete from metadata_values where id in ({values})", {"path": json_text(path)})
            db.execute("delete from metadata_fields where path = :path", {"path": json_text(path)})

    @guarded
    def refresh_statistics(self) -> None:
        if _is_known(self._database.reading()):
            return  # every statement would be planned again, for the same plans
        with self._database.writing() as db:
            db.execute("pragma analysis_limit = 1000").fetchall()  # a statement is done when its rows are read
            db.execute("analyze").fetchall()

    @staticmethod
    def _fields(db: apsw.Connection) -> dict[tuple[str, ...], int]:
        rows: Any = db.execute("select path, id from metadata_fields order by id")
        return {path_from(path): field for path, field in rows}

    def _index_metadata(self, db: apsw.Connection, metadata: Sequence[tuple[int, Mapping[str, JSON]]]) -> None:
        fields = self._fields(db) if any(values for _, values in metadata) else {}
        hold_values(
            db,
            [
                ((field, *kept), item_id)
                for item_id, values in metadata
                for path, field in fields.items()
                if path[0] in values  # few entries have all of the fields
                for kept in shapes(values, path)
            ],
        )

    def _forget_metadata(self, db: apsw.Connection, item_ids: Sequence[int]) -> None:
        rows: Any = db.execute(
            "delete from metadata_holders where item_id in (select value from json_each(?)) returning value",
            (json.dumps(list(item_ids)),),
        )
        held = {value for (value,) in rows}
        if held:
            db.execute(
                """delete from metadata_values where id in (select value from json_each(?))
                   and not exists (select 1 from metadata_holders where value = metadata_values.id)""",
                (json.dumps(list(held)),),
            )


def _is_entry(kept: NumberedWrite) -> bool:
    """Return whether an item of this kind is an entry of a thread."""
    return bool(kept.write.draft.fields.get("source")) and kept.key.isdecimal()


def _said_by(write: Write) -> tuple[str, int | None]:
    fields = write.draft.fields
    return fields["source"], fields.get("expires_at")


def _give_out_no_more(db: apsw.Connection, number: int) -> None:
    """Give no entry a number up to this one: an item that is called by one would be in the way."""
    db.execute(
        """insert into sqlite_sequence (name, seq) select 'memories', 0
           where not exists (select 1 from sqlite_sequence where name = 'memories')"""
    )
    db.execute("update sqlite_sequence set seq = max(seq, ?) where name = 'memories'", (number,))


def _is_known(db: apsw.Connection) -> bool:
    """Return whether the planner's number of entries is off by less than half."""
    if not db.table_exists("main", "sqlite_stat1"):
        return False
    known = db.execute("select cast(stat as integer) from sqlite_stat1 where idx = 'memories_by_time'").fetchone()
    total = next(db.execute("select coalesce(sum(entries), 0) from memory_threads"))[0]
    return known is not None and known[0] <= 2 * total <= 4 * known[0]


def _supersede(db: apsw.Connection, pairs: Sequence[tuple[int, int]]) -> None:
    """Store pairs of a newer entry and an older one; those whose older one is not here are left out."""
    pairs = [(newer, older) for newer, older in pairs if abs(older) <= MOST_NUMBER]
    if pairs:
        db.executemany("insert or ignore into supersessions select id, ? from memories where id = ?", pairs)


def _entry(row: Any) -> EntryRow:
    *columns, supersedes = row
    numbers = sorted(map(int, supersedes.split(","))) if supersedes else []
    number, item_id, thread, source, created, images, expires, superseded_by = columns
    return EntryRow(number, item_id, thread, source, created, images, expires, superseded_by, tuple(numbers))
