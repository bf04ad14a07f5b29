"""Databases as an mcp-context-server of version 3 keeps them: a private row number, and UUIDs for everybody else."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import apsw

_SCHEMA = """
create table context_entries (
  rowid_int integer primary key autoincrement, id text not null unique, thread_id text not null, source text not null,
  content_type text not null, text_content text, metadata json, summary text, content_hash text,
  version integer not null default 0, created_at timestamp default current_timestamp,
  updated_at timestamp default current_timestamp);
create table tags (id integer primary key autoincrement, context_entry_id text not null, tag text not null);
create table image_attachments (id integer primary key autoincrement, context_entry_id text not null,
  image_data blob not null, mime_type text not null, image_metadata json, position integer default 0);
create table compression_metadata (id integer primary key, variant text);
"""

FIRST, SECOND, THIRD = (
    "0197f0a3c1d27e4f8a5b6c7d8e9f0a1b",
    "0197f0a3c1d37aaa8bbbccccddddeeee",
    "0198ab3412ef7123a456b789c0de1234",
)
DIGITS = "01970000111172228333444455556666"
"""An id without any letter."""


class Theirs(NamedTuple):
    """One of its entries."""

    id: str
    text: str
    thread: str = "tea"
    source: str = "user"
    metadata: str | None = None
    summary: str | None = None
    created: str = "2026-05-01 09:30:00.123456"
    tags: Sequence[str] = ()
    image: bytes | None = None


ENTRIES = (
    Theirs(FIRST, "Oolong wants water just off the boil.", metadata='{"status": "done"}', tags=("brewing", "tea")),
    Theirs(SECOND, "Noted.", source="agent", summary="A note.", image=b"\x89PNG"),
    Theirs(THIRD, "Another day.", thread="bread", metadata="[1]", created="2026-05-02T10:00:00+02:00"),
    Theirs(DIGITS, "Of digits alone.", created="2026-05-03 00:00:00"),
)


def write_database(path: Path, entries: Sequence[Theirs] = ENTRIES) -> Path:
    """Write such a database, in the order of the entries."""
    with closing(apsw.Connection(str(path))) as db:
        db.execute(_SCHEMA)
        for one in entries:
            db.execute(
                """insert into context_entries (id, thread_id, source, content_type, text_content, metadata, summary,
                     content_hash, version, created_at, updated_at) values (?, ?, ?, 'text', ?, ?, ?, 'x', 3, ?, ?)""",
                (one.id, one.thread, one.source, one.text, one.metadata, one.summary, one.created, one.created),
            )
            db.executemany(
                "insert into tags (context_entry_id, tag) values (?, ?)", [(one.id, tag) for tag in one.tags]
            )
            if one.image:
                db.execute(
                    "insert into image_attachments (context_entry_id, image_data, mime_type) values (?, ?, ?)",
                    (one.id, one.image, "image/png"),
                )
    return path
