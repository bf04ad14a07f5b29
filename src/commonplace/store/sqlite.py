"""The store on SQLite: items, their chunks and the log. One file per space."""

from __future__ import annotations

import hashlib
import json
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

import apsw
import numpy as np
from numpy.typing import NDArray

from commonplace.errors import InvalidInput, NotFound, VersionConflict
from commonplace.model import (
    MOST_CHUNKS,
    Change,
    Chunk,
    Draft,
    Filter,
    IndexedItem,
    Item,
    Op,
    chunk_id,
    uri_of,
)
from commonplace.store.connection import Database, explained
from commonplace.store.facets import facets_of, words_of
from commonplace.store.filters import Compiled, compile_filter, fold_tag, micros
from commonplace.store.rows import Write
from commonplace.store.shaping import (
    CHUNK_COLUMNS,
    IN_PARTS,
    ITEM_COLUMNS,
    PASSAGE_COLUMNS,
    check_version,
    chunk_from,
    item_from,
    json_text,
    json_value,
    passage_row,
    says_the_same,
)
from commonplace.text.outline import Outline

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound="Items")
WHOLE_BODY = 0  # where the number of its characters that are read can be given


def guarded(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """A store method whose SQLite errors reach the caller in our words."""

    @wraps(method)
    def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with explained(self.path):
            return method(self, *args, **kwargs)

    return call


def consistent(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """A guarded method whose reads are all of one state, whatever others write between them."""

    @wraps(method)
    def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with explained(self.path), self._database.snapshot():
            return method(self, *args, **kwargs)

    return call


class Items:
    """Items, chunks and changes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._database = Database(path)

    def close(self) -> None:
        self._database.close()

    @guarded
    def put(self, writes: Sequence[Write]) -> list[Item]:
        now = time.time_ns() // 1000
        with self._database.writing() as db:
            ids = [self._put(db, write, now) for write in writes]
            return self._items(db, ids, body=False)

    def _put(self, db: apsw.Connection, write: Write, now: int) -> int:
        draft = write.draft
        content_hash = hashlib.sha256(draft.body.encode("utf-8")).hexdigest()
        old = self._find(db, draft.kind, draft.parent, draft.key)
        check_version(draft, write.expected_version, old.version if old else 0)
        rows = [passage_row(passage) for passage in write.passages]
        if old is not None and says_the_same(old, draft, content_hash) and rows == self._passage_rows(db, old.id):
            return old.id
        row = {
            "kind": draft.kind,
            "parent": draft.parent,
            "key": draft.key,
            "title": draft.title,
            "format": draft.format,
            "language": write.language,
            "fields": json_text(draft.fields),
            "metadata": json_text(draft.metadata),
            "updated_at": micros(draft.updated_at) if draft.updated_at else now,
            "content_hash": content_hash,
            "chunk_count": len(write.passages),
        }
        if old is None:
            item_id, version = self._insert(db, row, micros(draft.created_at) if draft.created_at else now), 1
        else:
            item_id, version = old.id, old.version + 1
            created = micros(draft.created_at) if draft.created_at else None
            self._update(db, row, item_id, created)
        self._put_text(db, item_id, write, replace=old is not None)
        if draft.kind == "memory":
            self._put_entry(db, item_id, draft, fresh=old is None)
        self._log(db, "put", item_id, version)
        return item_id

    @staticmethod
    def _insert(db: apsw.Connection, row: dict[str, Any], created_at: int) -> int:
        db.execute(
            """insert into items (kind, parent, key, title, format, language, fields, metadata,
                                  created_at, updated_at, version, content_hash, chunk_count)
               values (:kind, :parent, :key, :title, :format, :language, :fields, :metadata,
                       :created_at, :updated_at, 1, :content_hash, :chunk_count)""",
            {**row, "created_at": created_at},
        )
        return db.last_insert_rowid()

    @staticmethod
    def _update(db: apsw.Connection, row: dict[str, Any], item_id: int, created_at: int | None) -> None:
        db.execute(
            """update items set title = :title, format = :format, language = :language, fields = :fields,
                 metadata = :metadata, created_at = coalesce(:created_at, created_at), updated_at = :updated_at,
                 version = version + 1, content_hash = :content_hash, chunk_count = :chunk_count
               where id = :id""",
            {
                **{name: value for name, value in row.items() if name not in ("kind", "parent", "key")},
                "created_at": created_at,
                "id": item_id,
            },
        )

    def _put_text(self, db: apsw.Connection, item_id: int, write: Write, *, replace: bool) -> None:
        draft = write.draft
        if len(write.passages) > MOST_CHUNKS:
            raise InvalidInput(
                f"{uri_of(draft.kind, draft.parent, draft.key)} is too long: split it into several items."
            )
        orphans = self._clear_text(db, item_id) if replace else set()
        db.execute("insert into bodies (item_id, body) values (?, ?)", (item_id, draft.body))
        db.executemany(
            "insert or ignore into tags (folded, item_id, position, tag) values (?, ?, ?, ?)",
            [(fold_tag(tag), item_id, position, tag) for position, tag in enumerate(draft.tags)],
        )
        db.executemany(
            f"insert into chunks ({CHUNK_COLUMNS}) values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [(chunk_id(item_id, ordinal), *passage_row(passage)) for ordinal, passage in enumerate(write.passages)],
        )
        self._drop_orphans(db, orphans)
        if write.outline is not None:
            self._put_outline(db, item_id, write.outline)

    @staticmethod
    def _passage_rows(db: apsw.Connection, item_id: int) -> list[tuple[Any, ...]]:
        span = (chunk_id(item_id, 0), chunk_id(item_id + 1, 0))
        return list(db.execute(f"select {PASSAGE_COLUMNS} from chunks where id >= ? and id < ? order by id", span))

    def _clear_text(self, db: apsw.Connection, item_id: int) -> set[bytes]:
        """Remove an item's text and return the vector keys that may now belong to no chunk."""
        span = (chunk_id(item_id, 0), chunk_id(item_id + 1, 0))
        keys = {key for (key,) in db.execute("select vector_key from chunks where id >= ? and id < ?", span)}
        db.execute("delete from chunks where id >= ? and id < ?", span)
        db.execute("delete from tags where item_id = ?", (item_id,))
        db.execute("delete from bodies where item_id = ?", (item_id,))
        self._clear_outline(db, item_id)
        return keys

    @staticmethod
    def _drop_orphans(db: apsw.Connection, keys: set[bytes]) -> None:
        """Vectors go with the last passage that has them: what is forgotten leaves nothing behind."""
        db.executemany(
            """delete from embeddings where key = :key and model in (select id from models)
               and not exists (select 1 from chunks where vector_key = :key)""",
            [{"key": key} for key in keys],
        )

    @staticmethod
    def _log(db: apsw.Connection, op: Op, item_id: int, version: int) -> None:
        db.execute(
            """insert into changes (seq, op, item_id, version)
               values ((select coalesce(max(seq), 0) + 1 from changes), ?, ?, ?)""",
            (op, item_id, version),
        )

    @guarded
    def delete(self, item_ids: Sequence[int], expected_version: int | None = None) -> int:
        with self._database.writing() as db:
            items = self._items(db, item_ids, body=False)
            orphans: set[bytes] = set()
            attached: set[bytes] = set()
            for item in items:
                if expected_version is not None and item.version != expected_version:
                    raise VersionConflict(item.uri, expected_version, item.version)
                orphans |= self._clear_text(db, item.id)
                attached |= self._detach(db, item.id)
                if item.kind == "memory":
                    self._delete_entry(db, item.id)
                db.execute("delete from items where id = ?", (item.id,))
                self._log(db, "delete", item.id, item.version + 1)
            self._drop_orphans(db, orphans)
            self._drop_unattached(db, attached)
            return len(items)

    def _put_entry(self, db: apsw.Connection, item_id: int, draft: Draft, *, fresh: bool) -> None:
        """What else is kept of a memory entry; see `memory.EntryRows`."""

    def _delete_entry(self, db: apsw.Connection, item_id: int) -> None:
        pass

    @staticmethod
    def _put_outline(db: apsw.Connection, item_id: int, outline: Outline) -> None:
        """What else is kept of a document; see `outlines.Outlines`."""

    @staticmethod
    def _clear_outline(db: apsw.Connection, item_id: int) -> None:
        pass

    def _compiled(self, filter: Filter) -> Compiled:
        return compile_filter(filter)

    @staticmethod
    def _detach(db: apsw.Connection, item_id: int) -> set[bytes]:
        hashes = {hash for (hash,) in db.execute("select hash from item_attachments where item_id = ?", (item_id,))}
        if hashes:
            db.execute("delete from item_attachments where item_id = ?", (item_id,))
        return hashes

    @staticmethod
    def _drop_unattached(db: apsw.Connection, hashes: set[bytes]) -> None:
        db.executemany(
            """delete from attachments where hash = :hash
               and not exists (select 1 from item_attachments where hash = :hash)""",
            [{"hash": hash} for hash in hashes],
        )

    @consistent
    def item(self, kind: str, parent: str | None, key: str, *, body: bool = True) -> Item | None:
        db = self._database.reading()
        found = self._find(db, kind, parent, key)
        if found is None or not body:
            return found
        items = self._items(db, [found.id], body=True)
        return items[0] if items else None

    def _find(self, db: apsw.Connection, kind: str, parent: str | None, key: str) -> Item | None:
        if parent is None:
            # The plus keeps SQLite from walking all items of a kind: a key tells more.
            query = "select id from items where +kind = :kind and key = :key limit 2"
        else:
            query = "select id from items where kind = :kind and parent = :parent and key = :key"
        ids = [item_id for (item_id,) in db.execute(query, {"kind": kind, "parent": parent, "key": key})]
        if len(ids) > 1:
            raise NotFound(f'More than one {kind} is called "{key}". Name its parent too.')
        return self._items(db, ids, body=False)[0] if ids else None

    @consistent
    def items(self, item_ids: Sequence[int], *, body: bool = False) -> list[Item]:
        return self._items(self._database.reading(), item_ids, body=body)

    @staticmethod
    def _items(db: apsw.Connection, item_ids: Sequence[int], *, body: bool, most: int = WHOLE_BODY) -> list[Item]:
        """In three statements at most, however many items."""
        wanted = (json.dumps(list(item_ids)),)
        among = "in (select value from json_each(?))"
        tags: dict[int, list[str]] = defaultdict(list)
        for item_id, tag in db.execute(
            f"select item_id, tag from tags where item_id {among} order by position", wanted
        ):
            tags[item_id].append(tag)
        texts: list[Any] = []
        if body:
            start = "body" if most == WHOLE_BODY else f"substr(body, 1, {int(most)})"
            texts = db.execute(f"select item_id, {start} from bodies where item_id {among}", wanted).fetchall()
        bodies: dict[int, str] = dict(texts)
        found = {}
        for row in db.execute(f"select {ITEM_COLUMNS} from items where id {among}", wanted):
            item_id = cast(int, row[0])
            found[item_id] = item_from(row, tuple(tags.get(item_id, ())), bodies.get(item_id, "") if body else None)
        return [found[item_id] for item_id in item_ids if item_id in found]

    @consistent
    def scan(self, filter: Filter, *, after: int = 0, limit: int = 1000, body: bool = False) -> list[Item]:
        where, values = self._compiled(filter)
        db = self._database.reading()
        ids = [
            item_id
            for (item_id,) in db.execute(
                f"select id from items where id > :after and {where} order by id limit :limit",
                {**values, "after": after, "limit": limit},
            )
        ]
        return self._items(db, ids, body=body)

    @consistent
    def chunks(self, chunk_ids: Sequence[int]) -> list[Chunk]:
        query = f"select {CHUNK_COLUMNS} from chunks where id in (select value from json_each(?))"
        rows = self._database.reading().execute(query, (json.dumps(list(chunk_ids)),))
        found = {row[0]: chunk_from(row) for row in rows}
        return [found[chunk] for chunk in chunk_ids if chunk in found]

    @guarded
    def chunks_of(self, item_id: int) -> list[Chunk]:
        rows = self._database.reading().execute(
            f"select {CHUNK_COLUMNS} from chunks where id >= ? and id < ? order by id",
            (chunk_id(item_id, 0), chunk_id(item_id + 1, 0)),
        )
        return [chunk_from(row) for row in rows]

    @guarded
    def select(self, filter: Filter) -> NDArray[np.int64]:
        where, values = self._compiled(filter)
        # One string of numbers instead of a row each: ten times fewer steps between SQLite and Python.
        joined = self._database.reading().execute(
            f"select group_concat(id) from (select id from items where {where} order by id)", values
        )
        text = next(joined)[0]
        return np.fromstring(text, dtype=np.int64, sep=",") if text else np.empty(0, dtype=np.int64)

    @guarded
    def ids_of(self, addresses: Sequence[tuple[str, str | None, str]]) -> list[int]:
        # Two arms, because each is answered by an index of its own and an `or` by neither.
        rows = self._database.reading().execute(
            """with wanted as (select value ->> 0 as kind, value ->> 1 as parent, value ->> 2 as key from json_each(?))
               select id from wanted cross join items using (kind, parent, key)
               union select id from wanted cross join items using (key)
               where wanted.parent is null and +items.kind = wanted.kind""",  # the plus: see `_find`
            (json.dumps(list(addresses)),),
        )
        return [item_id for (item_id,) in rows]

    @guarded
    def counts(self) -> dict[str, int]:
        return dict(self._database.reading().execute("select kind, count(*) from items group by kind order by kind"))

    @guarded
    def parents(self, kind: str) -> dict[str, int]:
        query = "select parent, count(*) from items where kind = ? group by parent order by parent"
        return dict(self._database.reading().execute(query, (kind,)))

    @guarded
    def chunk_total(self) -> int:
        return int(next(self._database.reading().execute("select coalesce(sum(chunk_count), 0) from items"))[0])

    @guarded
    def last_change(self) -> int:
        return int(next(self._database.reading().execute("select coalesce(max(seq), 0) from changes"))[0])

    @guarded
    def changes(self, after: int, limit: int) -> list[Change]:
        rows = self._database.reading().execute(
            "select seq, op, item_id, version from changes where seq > :after order by seq limit :limit",
            {"after": after, "limit": limit},
        )
        return [Change(*row) for row in rows]

    @consistent
    def indexed(self, item_ids: Sequence[int]) -> list[IndexedItem]:
        db, wanted = self._database.reading(), (json.dumps(list(item_ids)),)
        tags: dict[int, list[str]] = defaultdict(list)
        for item_id, tag in db.execute(
            "select item_id, folded from tags where item_id in (select value from json_each(?))", wanted
        ):
            tags[item_id].append(tag)
        rows: list[Any] = db.execute(
            """select id, kind, parent, key, title, language, created_at, updated_at, fields, content_hash
               from items where id in (select value from json_each(?)) order by id""",
            wanted,
        ).fetchall()
        found = []
        for identity, kind, parent, key, title, language, created, updated, fields, content_hash in rows:
            span = (chunk_id(identity, 0), chunk_id(identity + 1, 0))
            chunks: Any = db.execute(
                "select id, headings, text from chunks where id >= ? and id < ? order by id", span
            ).fetchall()
            known, labels = json_value(fields), tuple(tags[identity])
            parts = self._parts(db, span) if kind in IN_PARTS else {}
            if kind == "table":
                content_hash = known.get("hash", content_hash)
            more = (words_of(kind, known, labels), facets_of(kind, known), parts, content_hash)
            whole = (identity, kind, parent, key, title, language, labels, created, updated, chunks)
            found.append(IndexedItem(*whole, *more))
        return found

    @staticmethod
    def _parts(db: apsw.Connection, span: tuple[int, int]) -> dict[int, str]:
        query = "select id, anchor ->> '$.field' from chunks where id >= ? and id < ? and anchor is not null"
        return {chunk: part for chunk, part in db.execute(query, span) if part}
