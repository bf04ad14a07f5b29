"""Items: what everything is, with its text, its tags and its passages, each change of which is in the log."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from commonplace.errors import InvalidInput, NotFound, VersionConflict
from commonplace.model import CHUNK_BITS, MOST_CHUNKS, Draft, Item, chunk_id, fingerprint, uri_of
from commonplace.store.attachments import Attachments
from commonplace.store.change_log import ChangeLog
from commonplace.store.dialect import Tuned, Values, marks
from commonplace.store.embeddings import Embeddings
from commonplace.store.filters import fold_tag, micros
from commonplace.store.hanging import hanging_on
from commonplace.store.rows import NumberedWrite, Write
from commonplace.store.session import Drawer, StoreSession, reads, writes
from commonplace.store.shaping import (
    ITEM_COLUMNS,
    PASSAGE_COLUMNS,
    WHOLE_BODY,
    check_version,
    item_from,
    json_text,
    now_micros,
    passage_row,
    says_the_same,
)

_COLUMNS = (
    "id, kind, parent, key, title, format, language, fields, metadata, created_at, updated_at, content_hash,"
    " chunk_count"
)
_FOUND_BY = "address, exact, folded, seat, label"
"""Columns that a server finds items by, since no index of it reaches into text; see `postgres/found_by.py`."""
_INSERT = Tuned(
    sqlite=f"insert into items (version, {_COLUMNS}) values (1, {marks(_COLUMNS)})",
    postgres=f"insert into items (version, {_COLUMNS}, {_FOUND_BY}) values (1, {marks(_COLUMNS)}, {marks(_FOUND_BY)})",
)
_CHANGED = """title = :title, format = :format, language = :language, fields = :fields, metadata = :metadata,
  created_at = coalesce(cast(:created_at as bigint), created_at), updated_at = :updated_at, version = version + 1,
  content_hash = :content_hash, chunk_count = :chunk_count"""
_UPDATE = Tuned(
    sqlite=f"update items set {_CHANGED} where id = :id",
    postgres=f"""update items set {_CHANGED}, exact = :exact, folded = :folded, seat = :seat, label = :label
                 where id = :id""",
)
_TAGS = Tuned(
    sqlite="(select json_group_array(tag order by position) from tags where item_id = items.id)",
    postgres="array(select tag from tags where item_id = items.id order by position)",
)
_AT_ADDRESSES = Tuned(
    sqlite="""id in (select items.id from rows(:places kind text, parent text, key text) as wanted
                     cross join items using (kind, parent, key))""",
    postgres="address in each(:addresses bytes)",
)
_AT_ADDRESS = Tuned(sqlite="kind = :kind and parent = :parent and key = :key", postgres="address = :address")
# The plus keeps SQLite from walking all items of a kind: a key tells more.
_CALLED = Tuned(
    sqlite="+kind = :kind and key = :key limit 2",
    postgres="key_head = left(:key, 100) and key = :key and kind = :kind limit 2",
)
_PASSAGES = Tuned(
    sqlite=f"select {PASSAGE_COLUMNS} from chunks where id >= :first and id < :end order by id",
    postgres=f"select {PASSAGE_COLUMNS} from chunks where item_id = :item order by ordinal",
)
_ADD_PASSAGES = Tuned(
    sqlite=f"insert into chunks (id, {PASSAGE_COLUMNS}) values (:id, {marks(PASSAGE_COLUMNS)})",
    postgres=f"""insert into chunks (item_id, ordinal, {PASSAGE_COLUMNS})
                 values (:item_id, :ordinal, {marks(PASSAGE_COLUMNS)})""",
)
_DROP_PASSAGES = Tuned(
    sqlite=f"""delete from chunks where id in (select chunks.id from json_each(:list) cross join chunks
                 on chunks.id >= value << {CHUNK_BITS} and chunks.id < (value + 1) << {CHUNK_BITS})
               returning vector_key""",
    postgres="delete from chunks where item_id in each(:ids int) returning vector_key",
)
_HELD_BY_NAME = ("cues", "import_sources", "node_places")
"""Tables whose rows go with an item by triggers on SQLite."""

Address = tuple[str, str, str]


class Items(Drawer):
    """A row per item, apart from it its body, a row per tag and per passage."""

    @writes
    def put(self, writes: Sequence[Write]) -> list[Item]:
        """Store all in one transaction, or none, and return their items. An unchanged one gets no change number."""
        return self._items(self.store(writes, now_micros()))

    @writes
    def delete(self, item_ids: Sequence[int], expected_version: int | None = None) -> int:
        """Remove items with everything that hangs on them, vectors included, and return how many there were."""
        if expected_version is not None:
            for item in self._items(list(dict.fromkeys(item_ids))):
                if item.version != expected_version:
                    raise VersionConflict(item.uri, expected_version, item.version)
        return self.remove(item_ids)

    @reads
    def find(self, kind: str, parent: str | None, key: str, *, body: bool = True) -> Item | None:
        """Return the item at an address, or None. A parent of None is any: raise NotFound where several match."""
        return self._find(kind, parent, key, body=body)

    @reads
    def get(self, item_ids: Sequence[int], *, body: bool = False) -> list[Item]:
        """Return the items of these ids that exist, in the order of the ids."""
        return self._items(item_ids, body=body)

    @reads
    def heads(self, item_ids: Sequence[int], length: int) -> list[Item]:
        """Return the items of these ids that exist, in their order, each with the first characters of its body."""
        return self._items(item_ids, body=True, most=length)

    @reads
    def collections(self) -> list[Item]:
        """Return the items that are collections of documents, sorted by key."""
        return self.matching("kind = 'collection' order by key", {})

    @reads
    def files(self, item_ids: Sequence[int]) -> dict[int, str]:
        """Return `parent/key` of each of these items that exists: a document's collection and path."""
        query = "select id, parent || '/' || key from items where id in each(:ids int)"
        return dict(self._db.all(query, {"ids": item_ids}))

    @reads
    def body_sizes(self, item_ids: Sequence[int]) -> dict[int, int]:
        """Return the size of each of these items' bodies in bytes of UTF-8."""
        query = "select item_id, octet_length(body) from bodies where item_id in each(:ids int)"
        return dict(self._db.all(query, {"ids": item_ids}))

    @reads
    def last(self) -> int:
        """Return the largest item id ever given out."""
        return self._db.last("item")

    # for other drawers that write

    def store(self, writes: Sequence[Write], now: int, orphans: set[bytes] | None = None) -> list[int]:
        """Store writes and return their item ids. Belongs into a write.

        The log has the order of the writes: new items wait until a write comes of one that was there before. `orphans`
        takes the keys of vectors that may belong to nothing any more, where a later write may want them.
        """
        known = self._known(writes)
        fresh = sum(old is None for old in known.values())
        following = self._db.next("item", fresh) if fresh else 0
        ids: list[int] = []
        waiting: list[NumberedWrite] = []
        for write in writes:
            draft = write.draft
            address = (draft.kind, draft.parent, draft.key)
            if address not in known:  # a second time: it has to see the first
                self._add(waiting, now)
                known[address] = self._find(*address)
            old = known.pop(address)
            check_version(draft, write.expected_version, old.version if old else 0)
            if old is None:
                waiting.append(NumberedWrite(following, draft.key, write))
                following += 1
            else:
                self._add(waiting, now)
                self._replace(old, write, now, orphans)
            ids.append(waiting[-1].item_id if old is None else old.id)
        self._add(waiting, now)
        return ids

    def add(self, writes: Sequence[tuple[str, Write]], now: int) -> list[int]:
        """Store writes under keys that no item has, whatever their drafts say, and return their item ids.

        Belongs into a write, which has to fail where this raises.
        """
        first = self._db.next("item", len(writes)) if writes else 0
        numbered = [NumberedWrite(first + place, key, write) for place, (key, write) in enumerate(writes)]
        ids = [write.item_id for write in numbered]
        self._add(numbered, now)
        return ids

    def remove(self, item_ids: Sequence[int]) -> int:
        """Remove items and everything that hangs on them, and return how many there were. Belongs into a write."""
        rows = self._db.all("select id, kind, version from items where id in each(:ids int)", {"ids": item_ids})
        if not rows:
            return 0
        known = {item_id: (item_id, kind, version) for item_id, kind, version in rows}
        items = [known[item_id] for item_id in dict.fromkeys(item_ids) if item_id in known]
        ids_by_kind: dict[str, list[int]] = defaultdict(list)
        for item_id, kind, _ in items:
            ids_by_kind[kind].append(item_id)
        for kind, ids in ids_by_kind.items():
            for hanging in hanging_on(self._db, kind):
                hanging.removed(ids)
        gone = [item_id for item_id, _, _ in items]
        orphans, attached = self._clear_text(gone), self._attachments.detach(gone)
        if self._db.dialect == "postgres":
            for table in _HELD_BY_NAME:
                self._db.run(f"delete from {table} where item_id in each(:ids int)", {"ids": gone})
        self._db.run("delete from items where id in each(:ids int)", {"ids": gone})
        self._log.append("delete", [(item_id, version + 1) for item_id, _, version in items])
        self._embeddings.forget(orphans)
        self._attachments.drop_unattached(attached)
        return len(items)

    def versions(self, item_ids: Sequence[int]) -> list[tuple[int, int]]:
        """Return the id and version of each of these items, in their order. All of them are stored."""
        rows = self._db.all("select id, version from items where id in each(:ids int)", {"ids": item_ids})
        versions = dict(rows)
        return [(item_id, versions[item_id]) for item_id in item_ids]

    @cached_property
    def _log(self) -> ChangeLog:
        return self._db.drawer(ChangeLog)

    @cached_property
    def _attachments(self) -> Attachments:
        return self._db.drawer(Attachments)

    @cached_property
    def _embeddings(self) -> Embeddings:
        return self._db.drawer(Embeddings)

    @cached_property
    def _found_by(self) -> Callable[[Draft, str], tuple[Any, ...]]:
        return _found_by(self._db)

    def _known(self, writes: Sequence[Write]) -> dict[Address, Item | None]:
        """Return the items at the addresses of writes, None where there is none, in one look."""
        places = [(write.draft.kind, write.draft.parent, write.draft.key) for write in writes]
        items = self.matching(self._db.tuned(_AT_ADDRESSES), self._addressed(places)) if places else []
        return dict.fromkeys(places) | {(item.kind, item.parent, item.key): item for item in items}

    def _addressed(self, places: Sequence[Address]) -> Values:
        if self._db.dialect == "sqlite":
            return {"places": places}
        return {"addresses": list({fingerprint(*place) for place in places})}

    def _add(self, waiting: list[NumberedWrite], now: int) -> None:
        """Store the waiting writes, all of them new, with what hangs on them, and empty the list."""
        if not waiting:
            return
        self._db.run_all(_INSERT, [self._row(write, now) for write in waiting])
        self._put_texts(waiting)
        writes_by_kind: dict[str, list[NumberedWrite]] = defaultdict(list)
        for write in waiting:
            writes_by_kind[write.write.draft.kind].append(write)
        for kind, new in writes_by_kind.items():
            for hanging in hanging_on(self._db, kind):
                hanging.added(new)
        self._log.append("put", [(write.item_id, 1) for write in waiting])
        waiting.clear()

    def _row(self, numbered: NumberedWrite, now: int) -> tuple[Any, ...]:
        """Return the columns of a new item."""
        item_id, key, write = numbered
        draft = write.draft
        created = micros(draft.created_at) if draft.created_at else now
        updated = micros(draft.updated_at) if draft.updated_at else now
        return (
            item_id, draft.kind, draft.parent, key, draft.title, draft.format, write.language,
            json_text(draft.fields), json_text(draft.metadata), created, updated, hash_of(draft.body),
            len(write.passages), *self._found_by(draft, key),
        )  # fmt: skip

    def _replace(self, old: Item, write: Write, now: int, orphans: set[bytes] | None) -> None:
        """Store the next version of an item, unless nothing of it changed."""
        draft, content_hash = write.draft, hash_of(write.draft.body)
        numbered = NumberedWrite(old.id, draft.key, write)
        rows = [passage_row(passage) for passage in write.passages]
        if says_the_same(old, draft, content_hash) and rows == self._passage_rows(old.id):
            for hanging in hanging_on(self._db, draft.kind):
                hanging.unchanged(old, numbered)
            self._refresh_language(old, write.language)
            return
        self._update(old.id, write, content_hash, now)
        cleared = self._clear_text([old.id])
        self._put_texts([numbered])
        if orphans is None:
            self._embeddings.forget(cleared)
        else:
            orphans |= cleared
        for hanging in hanging_on(self._db, draft.kind):
            hanging.changed(old, numbered)
        self._log.append("put", [(old.id, old.version + 1)])

    def _update(self, item_id: int, write: Write, content_hash: str, now: int) -> None:
        """Store the next version of an item. When it was created stays, unless the draft says otherwise."""
        draft = write.draft
        values = {
            "id": item_id,
            "title": draft.title,
            "format": draft.format,
            "language": write.language,
            "fields": json_text(draft.fields),
            "metadata": json_text(draft.metadata),
            "created_at": micros(draft.created_at) if draft.created_at else None,
            "updated_at": micros(draft.updated_at) if draft.updated_at else now,
            "content_hash": content_hash,
            "chunk_count": len(write.passages),
        }
        found_by = dict(zip(_FOUND_BY.split(", "), self._found_by(draft, draft.key), strict=False))
        self._db.run(_UPDATE, values | found_by)

    def _refresh_language(self, old: Item, language: str) -> None:
        """Store the language that newer rules tell of the same text, and log another one: other stems are due."""
        query = "update items set language = :language where id = :id and language <> :language returning id"
        if self._db.row(query, {"language": language, "id": old.id}):
            self._log.append("put", [(old.id, old.version)])

    def _put_texts(self, writes: Sequence[NumberedWrite]) -> None:
        """Store bodies, tags and passages of items that have none."""
        bodies, tags, passages = [], dict[tuple[str, int], tuple[int, str]](), list[tuple[Any, ...]]()
        is_file = self._db.dialect == "sqlite"
        for item_id, key, write in writes:
            draft = write.draft
            if len(write.passages) > MOST_CHUNKS:
                raise InvalidInput(f"{uri_of(draft.kind, draft.parent, key)} is too long: split it into several items.")
            bodies.append((item_id, draft.body))
            for position, tag in enumerate(draft.tags):
                tags.setdefault((fold_tag(tag), item_id), (position, tag))
            for ordinal, passage in enumerate(write.passages):
                place = (chunk_id(item_id, ordinal),) if is_file else (item_id, ordinal)
                passages.append((*place, *passage_row(passage)))
        self._db.run_all("insert into bodies (item_id, body) values (:item, :body)", bodies)
        self._db.run_all(
            "insert into tags (folded, item_id, position, tag) values (:folded, :item, :position, :tag)",
            sorted((*place, *tag) for place, tag in tags.items()),  # neighbours in the table go in together
        )
        self._db.run_all(_ADD_PASSAGES, passages)

    def _passage_rows(self, item_id: int) -> list[tuple[Any, ...]]:
        values = {"item": item_id, "first": chunk_id(item_id, 0), "end": chunk_id(item_id + 1, 0)}
        return self._db.all(_PASSAGES, values)

    def _clear_text(self, item_ids: Sequence[int]) -> set[bytes]:
        """Remove the text of items and return the vector keys that may now belong to no passage."""
        ids = list(item_ids)
        keys = self._db.all(_DROP_PASSAGES, {"ids": ids, "list": json.dumps(ids)})
        self._db.run("delete from tags where item_id in each(:ids int)", {"ids": ids})
        self._db.run("delete from bodies where item_id in each(:ids int)", {"ids": ids})
        return {key for (key,) in keys}

    def _find(self, kind: str, parent: str | None, key: str, *, body: bool = False) -> Item | None:
        values: dict[str, Any] = {"kind": kind, "key": key}
        if parent is None:
            items = self.matching(self._db.tuned(_CALLED), values, body=body)
        else:
            values |= {"parent": parent, "address": fingerprint(kind, parent, key)}
            items = self.matching(self._db.tuned(_AT_ADDRESS), values, body=body)
        if len(items) > 1:
            raise NotFound(f'More than one {kind} is called "{key}". Name its parent too.')
        return items[0] if items else None

    def _items(self, item_ids: Sequence[int], *, body: bool = False, most: int = WHOLE_BODY) -> list[Item]:
        """Return the items of ids in their order, in one statement; with at most `most` characters of their bodies."""
        if not item_ids:
            return []
        items = self.matching("id in each(:ids int)", {"ids": item_ids}, body=body, most=most)
        items_by_id = {item.id: item for item in items}
        return [items_by_id[item_id] for item_id in item_ids if item_id in items_by_id]

    def matching(self, where: str, values: Values, *, body: bool = False, most: int = WHOLE_BODY) -> list[Item]:
        """Return the items that a condition in SQL selects. Belongs into a read or a write."""
        start = "body" if most == WHOLE_BODY else f"substr(body, 1, {int(most)})"
        text = f"coalesce((select {start} from bodies where item_id = items.id), '')" if body else "null"
        rows = self._db.all(f"select {self._db.tuned(_TAGS)}, {text}, {ITEM_COLUMNS} from items where {where}", values)
        return [item_from(columns, _tags(tags), text) for tags, text, *columns in rows]


def hash_of(body: str) -> str:
    """Return the SHA-256 of a body, in hexadecimal."""
    return hashlib.sha256(body.encode("utf-8")).hexdigest()


def _tags(tags: str | list[str]) -> tuple[str, ...]:
    if isinstance(tags, str):
        return () if tags == "[]" else tuple(json.loads(tags))
    return tuple(tags)


def _found_by(session: StoreSession) -> Callable[[Draft, str], tuple[Any, ...]]:
    """Return the function of the columns `_FOUND_BY`; on SQLite, which has none of them, one of nothing."""
    if session.dialect == "sqlite":
        return lambda draft, key: ()
    from commonplace.store.postgres.found_by import found_by

    return found_by
