"""The store on SQLite: items, their chunks and the log. One file per space."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import apsw

from commonplace.errors import NotFound, VersionConflict
from commonplace.model import CHUNK_BITS, Filter, Item, chunk_id
from commonplace.store.filters import Compiled
from commonplace.store.rows import Write
from commonplace.store.session import D
from commonplace.store.shaping import (
    ITEM_COLUMNS,
    PASSAGE_COLUMNS,
    WHOLE_BODY,
    check_version,
    item_from,
    now_micros,
    passage_row,
    says_the_same,
)
from commonplace.store.sqlite.connection import SqliteDatabase, explained
from commonplace.store.sqlite.file_session import SqliteSession
from commonplace.store.sqlite.filters import compile_filter
from commonplace.store.sqlite.rows import (
    NumberedWrite,
    forget_vectors,
    hash_of,
    insert_items,
    insert_texts,
    log_changes,
    refresh_language,
    update_item,
)

if TYPE_CHECKING:
    from commonplace.text.outline import Outline

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound="SqliteItems")


def guarded(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Return a store method that raises SQLite's errors as ours."""

    @wraps(method)
    def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(self, *args, **kwargs)
        except Exception:
            with explained(self.path):  # only now: to enter it takes a fifth of a small read
                raise

    return call


def consistent(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Return a guarded method whose reads are all of one state, whatever others write between them."""

    @wraps(method)
    def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with explained(self.path), self._database.snapshot():
            return method(self, *args, **kwargs)

    return call


class SqliteItems:
    """Items, chunks and changes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.replaced = False
        self.log: str | None = None
        self._database = SqliteDatabase(path)
        self.session = SqliteSession(self._database)

    def drawer(self, kind: type[D]) -> D:
        return self.session.drawer(kind)

    def close(self) -> None:
        self._database.close()

    @guarded
    def put(self, writes: Sequence[Write]) -> list[Item]:
        now = now_micros()
        with self._database.writing() as db:
            return self._items(db, self._put_all(db, writes, now), body=False)

    def _put(self, db: apsw.Connection, write: Write, now: int) -> int:
        return self._put_all(db, [write], now)[0]

    def _put_all(
        self, db: apsw.Connection, writes: Sequence[Write], now: int, orphans: set[bytes] | None = None
    ) -> list[int]:
        """Store writes and return their item ids.

        The log has the order of the writes: new items wait until a write comes of one that was there before. `orphans`
        takes the keys of vectors that may belong to nothing any more, where a later write may want them.
        """
        known, following = self._known(db, writes), self._next_item(db)
        ids: list[int] = []
        waiting: list[NumberedWrite] = []
        for write in writes:
            draft = write.draft
            address = (draft.kind, draft.parent, draft.key)
            if address not in known:  # a second time: it has to see the first
                self._add(db, waiting, now)
                known[address] = self._find(db, *address)
            old = known.pop(address)
            check_version(draft, write.expected_version, old.version if old else 0)
            if old is None:
                waiting.append(NumberedWrite(following, draft.key, write))
                following += 1
            else:
                self._add(db, waiting, now)
                self._replace(db, old, write, now, orphans)
            ids.append(waiting[-1].item_id if old is None else old.id)
        self._add(db, waiting, now)
        return ids

    def _known(self, db: apsw.Connection, writes: Sequence[Write]) -> dict[tuple[str, str, str], Item | None]:
        """Return the items at the addresses of writes, None where there is none, in one look."""
        addresses = [(write.draft.kind, write.draft.parent, write.draft.key) for write in writes]
        rows = db.execute(
            """with wanted as (select value ->> 0 as kind, value ->> 1 as parent, value ->> 2 as key from json_each(?))
               select id from wanted cross join items using (kind, parent, key)""",
            (json.dumps(addresses),),
        )
        ids = [item_id for (item_id,) in rows]
        items = self._items(db, ids, body=False) if ids else []
        return dict.fromkeys(addresses) | {(item.kind, item.parent, item.key): item for item in items}

    @staticmethod
    def _next_item(db: apsw.Connection) -> int:
        return int(next(db.execute("select coalesce(max(seq), 0) + 1 from sqlite_sequence where name = 'items'"))[0])

    def _add(self, db: apsw.Connection, waiting: list[NumberedWrite], now: int) -> None:
        """Store the waiting writes, all of them new, with what hangs on them, and empty the list."""
        if not waiting:
            return
        insert_items(db, waiting, now)
        self._put_texts(db, waiting)
        self._put_entries(db, [kept for kept in waiting if kept.write.draft.kind == "memory"])
        log_changes(db, "put", [(kept.item_id, 1) for kept in waiting])
        waiting.clear()

    def _replace(self, db: apsw.Connection, old: Item, write: Write, now: int, orphans: set[bytes] | None) -> None:
        """Store the next version of an item, unless nothing of it changed."""
        draft, content_hash = write.draft, hash_of(write.draft.body)
        rows = [passage_row(passage) for passage in write.passages]
        if says_the_same(old, draft, content_hash) and rows == self._passage_rows(db, old.id):
            self._refresh_outline(db, old.id, write.outline)
            refresh_language(db, old, write.language)
            return
        update_item(db, old.id, write, content_hash, now)
        kept = NumberedWrite(old.id, draft.key, write)
        cleared = self._clear_text(db, [old.id])
        self._put_texts(db, [kept])
        if orphans is None:
            self._drop_orphans(db, cleared)
        else:
            orphans |= cleared
        if draft.kind == "memory":
            self._put_entry_again(db, kept)
        log_changes(db, "put", [(old.id, old.version + 1)])

    def _put_texts(self, db: apsw.Connection, kept: Sequence[NumberedWrite]) -> None:
        insert_texts(db, kept)
        self._put_outlines(db, [(item_id, write.outline) for item_id, _, write in kept if write.outline is not None])

    @staticmethod
    def _passage_rows(db: apsw.Connection, item_id: int) -> list[tuple[Any, ...]]:
        span = (chunk_id(item_id, 0), chunk_id(item_id + 1, 0))
        return list(db.execute(f"select {PASSAGE_COLUMNS} from chunks where id >= ? and id < ? order by id", span))

    def _clear_text(self, db: apsw.Connection, item_ids: Sequence[int]) -> set[bytes]:
        """Remove the text of items and return the vector keys that may now belong to no chunk."""
        wanted = (json.dumps(list(item_ids)),)
        rows: Any = db.execute(
            f"""delete from chunks where id in (select chunks.id from json_each(?) cross join chunks
                  on chunks.id >= value << {CHUNK_BITS} and chunks.id < (value + 1) << {CHUNK_BITS})
                returning vector_key""",
            wanted,
        )
        keys = {key for (key,) in rows}
        db.execute("delete from tags where item_id in (select value from json_each(?))", wanted)
        db.execute("delete from bodies where item_id in (select value from json_each(?))", wanted)
        self._clear_outlines(db, item_ids)
        return keys

    @staticmethod
    def _drop_orphans(db: apsw.Connection, keys: set[bytes]) -> None:
        """Remove the vectors of keys that no passage has any more: what is forgotten leaves nothing behind."""
        forget_vectors(db, keys)

    @guarded
    def delete(self, item_ids: Sequence[int], expected_version: int | None = None) -> int:
        with self._database.writing() as db:
            rows: Any = db.execute(
                "select id, kind, version from items where id in (select value from json_each(?))",
                (json.dumps(list(item_ids)),),
            )
            rows_by_id = {item_id: (kind, version) for item_id, kind, version in rows}
            items = [(item_id, *rows_by_id[item_id]) for item_id in dict.fromkeys(item_ids) if item_id in rows_by_id]
            for item_id, _, version in items:
                if expected_version is not None and version != expected_version:
                    (item,) = self._items(db, [item_id], body=False)
                    raise VersionConflict(item.uri, expected_version, version)
            self._delete_entries(db, [item_id for item_id, kind, _ in items if kind == "memory"])
            self._remove(db, [(item_id, version) for item_id, _, version in items])
            return len(items)

    def _remove(self, db: apsw.Connection, items: Sequence[tuple[int, int]]) -> None:
        """Remove items, given with their versions, and everything that hangs on them: a statement for each table."""
        ids = [item_id for item_id, _ in items]
        orphans, attached = self._clear_text(db, ids), self._detach(db, ids)
        db.execute("delete from items where id in (select value from json_each(?))", (json.dumps(ids),))
        log_changes(db, "delete", [(item_id, version + 1) for item_id, version in items])
        self._drop_orphans(db, orphans)
        self._drop_unattached(db, attached)

    def _put_entries(self, db: apsw.Connection, kept: Sequence[NumberedWrite]) -> None:
        """Store the rest of memory entries; see `memory.SqliteEntryRows`."""

    def _put_entry_again(self, db: apsw.Connection, kept: NumberedWrite) -> None:
        pass

    def _delete_entries(self, db: apsw.Connection, item_ids: Sequence[int]) -> None:
        pass

    @staticmethod
    def _put_outlines(db: apsw.Connection, outlines: Sequence[tuple[int, Outline]]) -> None:
        """Store the rest of documents; see `outlines.SqliteOutlines`."""

    def _refresh_outline(self, db: apsw.Connection, item_id: int, outline: Outline | None) -> None:
        pass

    @staticmethod
    def _clear_outlines(db: apsw.Connection, item_ids: Sequence[int]) -> None:
        pass

    def _compiled(self, filter: Filter) -> Compiled:
        return compile_filter(filter)

    @staticmethod
    def _detach(db: apsw.Connection, item_ids: Sequence[int]) -> set[bytes]:
        rows: Any = db.execute(
            "delete from item_attachments where item_id in (select value from json_each(?)) returning hash",
            (json.dumps(list(item_ids)),),
        )
        return {hash for (hash,) in rows}

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
        item = self._find(db, kind, parent, key)
        if item is None or not body:
            return item
        items = self._items(db, [item.id], body=True)
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

    @guarded
    def items(self, item_ids: Sequence[int], *, body: bool = False) -> list[Item]:
        return self._items(self._database.reading(), item_ids, body=body)

    @staticmethod
    def _items(db: apsw.Connection, item_ids: Sequence[int], *, body: bool, most: int = WHOLE_BODY) -> list[Item]:
        """Return the items of ids in their order, in one statement; with at most `most` characters of their bodies."""
        start = "body" if most == WHOLE_BODY else f"substr(body, 1, {int(most)})"
        text = f"coalesce((select {start} from bodies where item_id = items.id), '')" if body else "null"
        rows = db.execute(
            f"""select (select json_group_array(tag order by position) from tags where item_id = items.id), {text},
                  {ITEM_COLUMNS} from items where id in (select value from json_each(?))""",
            (json.dumps(list(item_ids)),),
        )
        items_by_id = {}
        for tags, text, *columns in rows:
            items_by_id[columns[0]] = item_from(columns, () if tags == "[]" else tuple(json.loads(tags)), text)
        return [items_by_id[item_id] for item_id in item_ids if item_id in items_by_id]
