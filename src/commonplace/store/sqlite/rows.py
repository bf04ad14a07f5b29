"""The store on SQLite: many rows at once. One statement for all of a kind costs a third of one statement for each."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import apsw

from commonplace.errors import InvalidInput
from commonplace.model import MOST_CHUNKS, Item, Op, chunk_id, uri_of
from commonplace.store.filters import fold_tag, micros
from commonplace.store.rows import Write
from commonplace.store.shaping import CHUNK_COLUMNS, json_text, passage_row


class NumberedWrite(NamedTuple):
    """A write that has its place: the item it is, and the key it is known by."""

    item_id: int
    key: str
    write: Write


def hash_of(body: str) -> str:
    return hashlib.sha256(body.encode("utf-8")).hexdigest()


def insert_items(db: apsw.Connection, kept: Sequence[NumberedWrite], now: int) -> None:
    """Items that are new, at their first version."""
    rows = []
    for item_id, key, write in kept:
        draft = write.draft
        created = micros(draft.created_at) if draft.created_at else now
        updated = micros(draft.updated_at) if draft.updated_at else now
        rows.append(
            (item_id, draft.kind, draft.parent, key, draft.title, draft.format, write.language,
             json_text(draft.fields), json_text(draft.metadata), created, updated, hash_of(draft.body),
             len(write.passages))
        )  # fmt: skip
    db.executemany(
        """insert into items (id, kind, parent, key, title, format, language, fields, metadata,
                              created_at, updated_at, content_hash, chunk_count, version)
           values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1)""",
        rows,
    )


def update_item(db: apsw.Connection, item_id: int, write: Write, content_hash: str, now: int) -> None:
    """The next version of an item. When it was created stays, unless the draft says otherwise."""
    draft = write.draft
    db.execute(
        """update items set title = :title, format = :format, language = :language, fields = :fields,
             metadata = :metadata, created_at = coalesce(:created_at, created_at), updated_at = :updated_at,
             version = version + 1, content_hash = :content_hash, chunk_count = :chunk_count
           where id = :id""",
        {
            "title": draft.title,
            "format": draft.format,
            "language": write.language,
            "fields": json_text(draft.fields),
            "metadata": json_text(draft.metadata),
            "created_at": micros(draft.created_at) if draft.created_at else None,
            "updated_at": micros(draft.updated_at) if draft.updated_at else now,
            "content_hash": content_hash,
            "chunk_count": len(write.passages),
            "id": item_id,
        },
    )


def refresh_language(db: apsw.Connection, old: Item, language: str) -> None:
    """Keep the language that newer rules tell of the same text, and log another one: other stems are due."""
    db.execute("update items set language = ? where id = ? and language <> ?", (language, old.id, language))
    if db.changes():
        log_changes(db, "put", [(old.id, old.version)])


def insert_texts(db: apsw.Connection, kept: Sequence[NumberedWrite]) -> None:
    """Bodies, tags and chunks of items that have none."""
    bodies, tags, chunks = [], [], []
    for item_id, key, write in kept:
        draft = write.draft
        if len(write.passages) > MOST_CHUNKS:
            raise InvalidInput(f"{uri_of(draft.kind, draft.parent, key)} is too long: split it into several items.")
        bodies.append((item_id, draft.body))
        tags += [(fold_tag(tag), item_id, position, tag) for position, tag in enumerate(draft.tags)]
        chunks += [
            (chunk_id(item_id, ordinal), *passage_row(passage)) for ordinal, passage in enumerate(write.passages)
        ]
    db.executemany("insert into bodies (item_id, body) values (?, ?)", bodies)
    tags.sort()  # neighbours in the table go in together
    db.executemany("insert or ignore into tags (folded, item_id, position, tag) values (?, ?, ?, ?)", tags)
    db.executemany(f"insert into chunks ({CHUNK_COLUMNS}) values (?, ?, ?, ?, ?, ?, ?, ?, ?)", chunks)


def find_by_vector(db: apsw.Connection) -> None:
    """Make the chunks that have a vector be found by its key: from the first vector on, and not where there is none.

    Keys are hashes. Every chunk that is stored changes another page of this index, which costs more than the chunk.
    """
    db.execute("create index if not exists chunks_by_vector on chunks (vector_key)")


def forget_vectors(db: apsw.Connection, keys: Iterable[bytes]) -> None:
    """Remove the vectors of these keys that no chunk has any more."""
    held = "select key from embeddings where key = ? and model in (select id from models) limit 1"
    embedded: Any = db.executemany(held, [(key,) for key in keys]).fetchall()
    if not embedded:
        return
    find_by_vector(db)
    db.executemany(
        """delete from embeddings where key = ?1 and model in (select id from models)
           and not exists (select 1 from chunks where vector_key = ?1)""",
        embedded,
    )


def log_changes(db: apsw.Connection, op: Op, changed: Sequence[tuple[int, int]]) -> None:
    """Items and the versions they have now, in this order."""
    last = next(db.execute("select coalesce(max(seq), 0) from changes"))[0]
    db.executemany(
        "insert into changes (seq, op, item_id, version) values (?, ?, ?, ?)",
        [(seq, op, item_id, version) for seq, (item_id, version) in enumerate(changed, start=last + 1)],
    )


def hold_values(db: apsw.Connection, held: Sequence[tuple[tuple[int, str, Any], int]]) -> None:
    """Note which items hold which values of indexed fields. A value (field, shape, value) is kept once."""
    values = list(dict.fromkeys(value for value, _ in held))
    find = "select (select id from metadata_values where (field, shape, value) = (?, ?, ?))"
    rows: Any = db.executemany(find, values)
    known = {value: identity for value, (identity,) in zip(values, rows, strict=True)}
    unknown = [value for value in values if known[value] is None]
    rows = db.executemany("insert into metadata_values (field, shape, value) values (?, ?, ?) returning id", unknown)
    known |= {value: identity for value, (identity,) in zip(unknown, rows, strict=True)}
    pairs = sorted({(known[value], item_id) for value, item_id in held})  # neighbours in the table go in together
    db.executemany("insert or ignore into metadata_holders (value, item_id) values (?, ?)", pairs)
