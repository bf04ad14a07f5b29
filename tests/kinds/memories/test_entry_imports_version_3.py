"""Importing what an mcp-context-server of version 3 has kept, whose entries have UUIDs instead of numbers."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import apsw
import pytest

from commonplace.errors import InvalidInput
from commonplace.kinds.memories.entry import New
from commonplace.kinds.memories.entry_imports import id_of
from commonplace.library import Library
from commonplace.store.attachments import Attachments
from context_server import ENTRIES, FIRST, SECOND, THIRD, Theirs, write_database


def test_everything_is_kept_under_numbers_of_ours(library: Library, tmp_path: Path) -> None:
    library.memories.store([New("mine", "user", "there before")])
    file = write_database(tmp_path / "context.db")
    done = library.memories.import_context_server(file)
    assert (done.found, done.stored, done.already, done.images, done.numbers) == (4, 4, 0, 1, {})
    assert done.raw_metadata == [THIRD]
    first, second, third, _ = library.memories.entries([2, 3, 4, 5])
    assert (first.row.thread, first.row.source, first.item.body) == ("tea", "user", ENTRIES[0].text)
    assert (first.item.metadata, first.item.tags) == ({"status": "done"}, ("brewing", "tea"))
    assert first.item.created_at == datetime(2026, 5, 1, 9, 30, 0, 123456, UTC)
    assert second.item.fields["summary"] == "A note."
    assert [image.data for image, _ in library.store.drawer(Attachments).of(second.row.item_id)] == [b"\x89PNG"]
    assert third.item.metadata == {"import_raw_metadata": "[1]"}
    assert third.item.created_at == datetime(2026, 5, 2, 8, tzinfo=UTC)
    assert library.search("oolong").hits[0].uri == "memory://2"
    assert library.doctor() == []


def test_doing_it_again_adds_only_what_is_new(library: Library, tmp_path: Path) -> None:
    memories = library.memories
    memories.import_context_server(write_database(tmp_path / "context.db"))
    memories.delete([3])
    more = write_database(tmp_path / "more.db", [*ENTRIES, Theirs("0198" * 8, "Later.")])
    assert memories.import_context_server(more, dry_run=True).stored == 2
    assert memories.find() == [1, 2, 4]
    again = memories.import_context_server(more)
    assert (again.stored, again.already) == (2, 3)
    assert memories.import_context_server(more, renumber=True).stored == 0


def test_what_its_version_2_brought_is_not_taken_twice(library: Library, tmp_path: Path) -> None:
    """Its own migration keeps thread, source, text and time, and gives out new ids."""
    path = tmp_path / "two.db"
    alike = [Theirs(FIRST, "Said once."), Theirs(SECOND, "Said twice."), Theirs(THIRD, "Said twice.")]
    with closing(apsw.Connection(str(path))) as db:
        db.execute(
            """create table context_entries (id integer primary key, thread_id text, source text, text_content text,
                 created_at timestamp)"""
        )
        db.executemany(
            "insert into context_entries values (?, 'tea', 'user', ?, ?)",
            [(number, one.text, one.created) for number, one in enumerate(alike, start=1)],
        )
    library.memories.import_context_server(path)
    for name in ("first.db", "second.db"):
        done = library.memories.import_context_server(write_database(tmp_path / name, alike))
        assert (done.stored, done.already, done.here) == (0, 3, {FIRST: 1, SECOND: 2, THIRD: 3})


def test_numbers_are_told_where_they_were_asked_for(library: Library, tmp_path: Path) -> None:
    done = library.memories.import_context_server(write_database(tmp_path / "context.db"), renumber=True)
    assert done.numbers[FIRST] == 1
    assert len(done.numbers) == 4


@pytest.mark.parametrize(
    "statements",
    [
        "create table context_entries (id integer)",
        "create table notes (id integer)",
        "create table context_entries (id text primary key, thread_id, source, text_content, created_at) "
        "without rowid; "
        "insert into context_entries values ('0197f0a3c1d27e4f8a5b6c7d8e9f0a1b', 't', 'user', 'x', '2026-05-01')",
        "create table context_entries (id text, thread_id, source, text_content, created_at); "
        "insert into context_entries values ('no id', 't', 'user', 'x', '2026-05-01')",
        "create table context_entries (id, thread_id, source, text_content, created_at); "
        "insert into context_entries values (null, 't', 'user', 'x', '2026-05-01')",
        "create table context_entries (id integer, thread_id, source, text_content, created_at); "
        "create table tags (x); insert into context_entries values (1, 't', 'user', 'x', '2026-05-01')",
        "create table context_entries (id integer, thread_id, source, text_content, created_at); "
        "insert into context_entries values (1, 't', 'user', 'x', 'yesterday')",
    ],
)
def test_an_unknown_database_is_one_sentence_and_nothing_is_imported(
    library: Library, tmp_path: Path, statements: str
) -> None:
    path = tmp_path / "other.db"
    with closing(apsw.Connection(str(path))) as db:
        db.execute(statements)
    with pytest.raises(InvalidInput) as said:
        library.memories.import_context_server(path)
    assert "of mcp-context-server" in str(said.value)
    assert "\n" not in str(said.value)
    assert library.memories.find() == []


@pytest.mark.parametrize(
    ("text", "id"),
    [
        (FIRST, FIRST),
        ("0197F0A3-C1D2-7E4F-8A5B-6C7D8E9F0A1B", FIRST),
        (" 0197f0a3 ", "0197f0a3"),
        ("0197f0a", None),
        ("01970000", None),
        ("01970000-1111", "019700001111"),
        ("01970000111172228333444455556666", None),
        (FIRST + "0", None),
        ("0197f0ag", None),
        ("", None),
    ],
)
def test_an_id_is_told_from_a_number(text: str, id: str | None) -> None:
    assert id_of(text) == id
