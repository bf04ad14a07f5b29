"""The store on PostgreSQL: items, their chunks and the log. One space of a database.

No statement names the space: the policies of row-level security add it to every one of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar
from uuid import uuid4

from commonplace.errors import InvalidInput, NotFound, VersionConflict
from commonplace.model import (
    CHUNK_BITS,
    JSON,
    MOST_CHUNKS,
    Draft,
    Filter,
    Item,
    Op,
    fingerprint,
    uri_of,
)
from commonplace.store.filters import Compiled, fold_tag, fold_value, micros
from commonplace.store.postgres.connection import PostgresDatabase
from commonplace.store.postgres.filters import HEAD, compared, compile_filter
from commonplace.store.postgres.pooling import Connection
from commonplace.store.postgres.problems import explained
from commonplace.store.postgres.server_session import PostgresSession
from commonplace.store.postgres.urls import shown
from commonplace.store.rows import Write
from commonplace.store.session import D
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
from commonplace.store.spelling import folded, name_backwards, name_hash
from commonplace.text.outline import Outline

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound="PostgresItems")
CHUNK = f"item_id << {CHUNK_BITS} | ordinal, {PASSAGE_COLUMNS}"
NAMED = ("note", "media", "conversation", "character", "prompt")
"""Kinds whose items have a record: a UUID, and a title that they are found by."""
_LABELS = {"conversation": "character", "media": "media_type"}


def reads(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Return a method that only reads, all of it of one state, whatever others write meanwhile."""

    @wraps(method)
    def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with explained(self.name):
            return self._database.read(lambda: method(self, *args, **kwargs))

    return call


def writes(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Return a method that is one transaction, or a part of the one under way. Only what it reads is waited for."""

    @wraps(method)
    def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with explained(self.name), self._database.writing() as transaction, transaction.connection.pipeline():
            return method(self, *args, **kwargs)

    return call


class PostgresItems:
    """Items, chunks and changes."""

    def __init__(self, url: str, space: str, connections: int = 20) -> None:
        with explained(shown(url)):
            self._database = PostgresDatabase(url, space, connections)
        self.session = PostgresSession(self._database)
        self.name = self._database.name
        self.replaced = False
        self.log: str | None = None

    def drawer(self, kind: type[D]) -> D:
        return self.session.drawer(kind)

    def close(self) -> None:
        self._database.close()

    @property
    def _db(self) -> Connection:
        return self._database.db

    def _one(self, query: str, values: Any = None) -> Any:
        """Return the first column of the only row."""
        row = self._db.execute(query.encode(), values).fetchone()
        return row[0] if row else None

    def _all(self, query: str, values: Any = None) -> list[tuple[Any, ...]]:
        return self._db.execute(query.encode(), values).fetchall()

    def _run(self, query: str, values: Any = None) -> None:
        self._db.execute(query.encode(), values)

    def _run_all(self, query: str, rows: Sequence[Any]) -> None:
        if rows:
            with self._db.cursor() as cursor:
                cursor.executemany(query.encode(), rows)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with explained(self.name), self._database.writing():
            yield

    @writes
    def put(self, writes: Sequence[Write]) -> list[Item]:
        now, known = now_micros(), self._known(writes)
        ids = [self._put(write, now, known) for write in writes]
        return self._items(ids, body=False)

    def _known(self, writes: Sequence[Write]) -> dict[bytes, Item | None]:
        """Return the items at the addresses of many writes, in one look."""
        places = {fingerprint(write.draft.kind, write.draft.parent, write.draft.key) for write in writes}
        rows = self._all("select address, id from items where address = any(%s::bytea[])", (list(places),))
        items = {item.id: item for item in self._items([item_id for _, item_id in rows], body=False)}
        return dict.fromkeys(places) | {address: items[item_id] for address, item_id in rows}

    def _put(
        self,
        write: Write,
        now: int,
        known: dict[bytes, Item | None] | None = None,
        orphans: set[bytes] | None = None,
    ) -> int:
        """`known`: what is stored at some addresses. An entry is used once, since it changes then.

        `orphans` takes the keys of vectors that may belong to nothing any more, where a later write may want them.
        """
        draft = write.draft
        content_hash = hashlib.sha256(draft.body.encode("utf-8")).hexdigest()
        address = fingerprint(draft.kind, draft.parent, draft.key)
        old = known.pop(address) if known and address in known else self._find(draft.kind, draft.parent, draft.key)
        check_version(draft, write.expected_version, old.version if old else 0)
        rows = [passage_row(passage) for passage in write.passages]
        if old is not None and says_the_same(old, draft, content_hash) and rows == self._passage_rows(old.id):
            self._refresh_outline(old.id, write.outline)
            self._refresh_language(old, write.language)
            return old.id
        if len(rows) > MOST_CHUNKS:
            raise InvalidInput(
                f"{uri_of(draft.kind, draft.parent, draft.key)} is too long: split it into several items."
            )
        row = _row(write, content_hash, now)
        if old is None:
            item_id, version = self._insert(row, micros(draft.created_at) if draft.created_at else now), 1
        else:
            item_id, version = old.id, old.version + 1
            self._update(row, item_id, micros(draft.created_at) if draft.created_at else None)
        cleared = self._clear_text([item_id]) if old is not None else set()
        self._put_text(item_id, write, rows)
        if orphans is None:
            self._drop_orphans(cleared)
        else:
            orphans |= cleared
        self._put_name(item_id, draft, old)
        if draft.kind == "memory":
            self._put_entry(item_id, draft, fresh=old is None)
        self._log("put", [(item_id, version)])
        return item_id

    def _refresh_language(self, old: Item, language: str) -> None:
        """Store the language that newer rules read off the same text, and log another one: other stems are due."""
        changed = "update items set language = %s where id = %s and language <> %s returning id"
        if self._all(changed, (language, old.id, language)):
            self._log("put", [(old.id, old.version)])

    def _insert(self, row: dict[str, Any], created_at: int) -> int:
        transaction = self._database.current
        item_id = transaction.next("item") if transaction else 0
        self._run(
            """insert into items (id, address, kind, parent, key, title, format, language, fields, metadata, exact,
                 folded, seat, label, created_at, updated_at, version, content_hash, chunk_count)
               values (%(id)s, %(address)s, %(kind)s, %(parent)s, %(key)s, %(title)s, %(format)s, %(language)s,
                 %(fields)s, %(metadata)s, %(exact)s, %(folded)s, %(seat)s, %(label)s, %(created_at)s, %(updated_at)s,
                 1, %(content_hash)s, %(chunk_count)s)""",
            {**row, "id": item_id, "created_at": created_at},
        )
        return item_id

    def _update(self, row: dict[str, Any], item_id: int, created_at: int | None) -> None:
        self._run(
            """update items set title = %(title)s, format = %(format)s, language = %(language)s, fields = %(fields)s,
                 metadata = %(metadata)s, exact = %(exact)s, folded = %(folded)s, seat = %(seat)s, label = %(label)s,
                 created_at = coalesce(%(created_at)s, created_at), updated_at = %(updated_at)s,
                 version = version + 1, content_hash = %(content_hash)s, chunk_count = %(chunk_count)s
               where id = %(id)s""",
            {**row, "id": item_id, "created_at": created_at},
        )

    def _put_text(self, item_id: int, write: Write, rows: Sequence[tuple[Any, ...]]) -> None:
        draft = write.draft
        self._run("insert into bodies (item_id, body) values (%s, %s)", (item_id, draft.body))
        tags = {fold_tag(tag): (position, tag) for position, tag in reversed(list(enumerate(draft.tags)))}
        self._run_all(
            "insert into tags (folded, item_id, position, tag) values (%s, %s, %s, %s)",
            [(folded, item_id, position, tag) for folded, (position, tag) in tags.items()],
        )
        self._run_all(
            f"insert into chunks (item_id, ordinal, {PASSAGE_COLUMNS}) values (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
            [(item_id, ordinal, *row) for ordinal, row in enumerate(rows)],
        )
        if write.outline is not None:
            self._put_outline(item_id, write.outline)

    def _put_name(self, item_id: int, draft: Draft, old: Item | None) -> None:
        """Store the further names of an item: a document's path, a record's title."""
        if draft.kind == "document" and old is None:
            self._name_document(item_id, draft.parent, draft.key)
        elif draft.kind in NAMED and old is None:
            self._run(
                "insert into records (item_id, kind, uid, folded) values (%s, %s, %s, %s)",
                (item_id, draft.kind, str(uuid4()), fold_value(draft.title)),
            )
        elif draft.kind in NAMED and old is not None and old.title != draft.title:
            self._run("update records set folded = %s where item_id = %s", (fold_value(draft.title), item_id))

    def _name_document(self, item_id: int, parent: str, key: str) -> None:
        end = name_backwards(parent, key)
        self._run(
            """insert into document_names (item_id, docid, backwards, ending, stem) values (%s, %s, %s, %s, %s)
               on conflict (space, item_id) do update set docid = excluded.docid, backwards = excluded.backwards,
                 ending = excluded.ending, stem = excluded.stem""",
            (item_id, name_hash(parent, key), end, *folded(end)),
        )

    def _passage_rows(self, item_id: int) -> list[tuple[Any, ...]]:
        return self._all(f"select {PASSAGE_COLUMNS} from chunks where item_id = %s order by ordinal", (item_id,))

    def _clear_text(self, item_ids: Sequence[int]) -> set[bytes]:
        """Remove the text of items and return the vector keys that may now belong to no chunk."""
        wanted = (list(item_ids),)
        keys = self._all("delete from chunks where item_id = any(%s::bigint[]) returning vector_key", wanted)
        self._run("delete from tags where item_id = any(%s::bigint[])", wanted)
        self._run("delete from bodies where item_id = any(%s::bigint[])", wanted)
        self._clear_outlines(item_ids)
        return {key for (key,) in keys}

    def _drop_orphans(self, keys: set[bytes]) -> None:
        """Remove the vectors of keys that no passage has any more: what is forgotten leaves nothing behind."""
        if keys:
            self._run(
                """delete from embeddings where key = any(%s::bytea[])
                   and not exists (select 1 from chunks where vector_key = embeddings.key)""",
                (list(keys),),
            )

    def _log(self, op: Op, items: Sequence[tuple[int, int]]) -> None:
        """Log a change of each (item, version), with the next numbers."""
        transaction = self._database.current
        if transaction is not None:
            self._run_all(
                "insert into changes (seq, op, item_id, version) values (%s, %s, %s, %s)",
                [(transaction.next("change"), op, item_id, version) for item_id, version in items],
            )

    @writes
    def delete(self, item_ids: Sequence[int], expected_version: int | None = None) -> int:
        items = self._items(list(dict.fromkeys(item_ids)), body=False)
        for item in items:
            if expected_version is not None and item.version != expected_version:
                raise VersionConflict(item.uri, expected_version, item.version)
        self._delete_entries([item.id for item in items if item.kind == "memory"])
        self._remove([(item.id, item.version) for item in items])
        return len(items)

    def _remove(self, items: Sequence[tuple[int, int]]) -> None:
        """Remove items, given with their versions, and everything that hangs on them."""
        ids = [item_id for item_id, _ in items]
        if not ids:
            return
        orphans, attached = self._clear_text(ids), self._detach(ids)
        for table in ("document_names", "records", "cues", "import_sources", "node_places"):
            self._run(f"delete from {table} where item_id = any(%s::bigint[])", (ids,))
        self._run("delete from items where id = any(%s::bigint[])", (ids,))
        self._log("delete", [(item_id, version + 1) for item_id, version in items])
        self._drop_orphans(orphans)
        self._drop_unattached(attached)

    def _put_entry(self, item_id: int, draft: Draft, *, fresh: bool) -> None:
        """Store the rest of a memory entry; see `memory.PostgresEntryRows`."""

    def _delete_entries(self, item_ids: Sequence[int]) -> None:
        pass

    def _put_outline(self, item_id: int, outline: Outline) -> None:
        """Store the rest of a document; see `outlines.PostgresOutlines`."""

    def _refresh_outline(self, item_id: int, outline: Outline | None) -> None:
        pass

    def _clear_outlines(self, item_ids: Sequence[int]) -> None:
        pass

    def _compiled(self, filter: Filter) -> Compiled:
        return compile_filter(filter)

    def _detach(self, item_ids: Sequence[int]) -> set[bytes]:
        rows = self._all(
            "delete from item_attachments where item_id = any(%s::bigint[]) returning hash", (list(item_ids),)
        )
        return {hash for (hash,) in rows}

    def _drop_unattached(self, hashes: set[bytes]) -> None:
        if hashes:
            self._run(
                """delete from attachments where hash = any(%s::bytea[])
                   and not exists (select 1 from item_attachments where hash = attachments.hash)""",
                (list(hashes),),
            )

    @reads
    def item(self, kind: str, parent: str | None, key: str, *, body: bool = True) -> Item | None:
        return self._find(kind, parent, key, body=body)

    def _find(self, kind: str, parent: str | None, key: str, *, body: bool = False) -> Item | None:
        if parent is not None:
            rows = self._all("select id from items where address = %s", (fingerprint(kind, parent, key),))
        else:
            query = "select id from items where key_head = %s and key = %s and kind = %s limit 2"
            rows = self._all(query, (key[:HEAD], key, kind))
        if len(rows) > 1:
            raise NotFound(f'More than one {kind} is called "{key}". Name its parent too.')
        return self._items([rows[0][0]], body=body)[0] if rows else None

    @reads
    def items(self, item_ids: Sequence[int], *, body: bool = False) -> list[Item]:
        return self._items(item_ids, body=body)

    def _items(self, item_ids: Sequence[int], *, body: bool, most: int = WHOLE_BODY) -> list[Item]:
        if not item_ids:
            return []
        text = "null"
        if body:
            text = "body" if most == WHOLE_BODY else f"left(body, {int(most)})"
            text = f"coalesce((select {text} from bodies where item_id = items.id), '')"
        rows = self._all(
            f"""select array(select tag from tags where item_id = items.id order by position), {text}, {ITEM_COLUMNS}
                from items where id = any(%s::bigint[])""",
            (list(item_ids),),
        )
        items_by_id = {row[2]: item_from(row[2:], tuple(row[0]), row[1]) for row in rows}
        return [items_by_id[item_id] for item_id in item_ids if item_id in items_by_id]


def _row(write: Write, content_hash: str, now: int) -> dict[str, Any]:
    """Return the columns of an item but those that differ between a new one and a changed one."""
    draft = write.draft
    seat, label = seat_and_label(draft.kind, draft.fields)
    return {
        "address": fingerprint(draft.kind, draft.parent, draft.key),
        "kind": draft.kind,
        "parent": draft.parent,
        "key": draft.key,
        "title": draft.title,
        "format": draft.format,
        "language": write.language,
        "fields": json_text(draft.fields),
        "metadata": json_text(draft.metadata),
        "exact": compared(draft.metadata, case_sensitive=True),
        "folded": compared(draft.metadata, case_sensitive=False),
        "seat": seat,
        "label": label,
        "updated_at": micros(draft.updated_at) if draft.updated_at else now,
        "content_hash": content_hash,
        "chunk_count": len(write.passages),
    }


def seat_and_label(kind: str, fields: Mapping[str, JSON]) -> tuple[int | None, str | None]:
    """Return the fields that items are found by as columns, since no index reaches into text."""
    seat = fields.get("index") if kind == "message" else None
    label = fields.get(_LABELS.get(kind, ""))
    return (seat if isinstance(seat, int) else None), (label if isinstance(label, str) else None)
