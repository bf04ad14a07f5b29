"""Importing what an mcp-context-server has kept.

`context-server-2.2.2.zip` is what that version left behind when it was ended: a database whose entries are all still
in its write-ahead log.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import apsw
import pytest

from commonplace.errors import InvalidInput, NotFound
from commonplace.kinds.memories.entry import New
from commonplace.library import Library
from commonplace.store.attachments import Attachments

ARCHIVE = Path(__file__).with_name("context-server-2.2.2.zip")


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "theirs"
    with zipfile.ZipFile(ARCHIVE) as archive:
        archive.extractall(folder)
    before = {path.name: sha256(path.read_bytes()).digest() for path in folder.iterdir()}
    yield folder / "context.db"
    if (folder / "context.db-wal").exists():
        assert {path.name: sha256(path.read_bytes()).digest() for path in folder.iterdir()} == before


def older_file(path: Path, entries: list[tuple[object, ...]]) -> Path:
    """A file from before summaries and hashes: (id, thread, source, text, metadata, created)."""
    with closing(apsw.Connection(str(path))) as db:
        db.execute(
            """create table context_entries (id integer primary key, thread_id text, source text, content_type text,
                 text_content text, metadata json, created_at timestamp, updated_at timestamp)"""
        )
        db.executemany(
            "insert into context_entries values (?, ?, ?, 'text', ?, ?, ?, ?)", [(*e, e[-1]) for e in entries]
        )
    return path


def test_everything_is_kept(library: Library, file: Path) -> None:
    done = library.memories.import_context_server(file)
    assert (done.found, done.stored, done.already, done.images, done.numbers) == (4, 4, 0, 2, {})
    first, second, third, fifth = library.memories.entries([1, 2, 3, 4, 5])
    assert (first.row.thread, first.row.source) == ("tea", "user")
    assert first.item.body == "Oolong wants water just off the boil."
    assert first.item.metadata == {"status": "done", "priority": 7, "nested": {"a": [1, None]}}
    assert first.item.tags == ("brewing", "tea")
    assert first.item.created_at < datetime.now(UTC)
    assert first.item.created_at.microsecond == 0
    assert second.item.body == "Noted: 90 °C for Tieguanyin 铁观音."
    images = library.store.drawer(Attachments).of(second.row.item_id)
    assert [(image.media_type, image.data[:4]) for image, _ in images] == [("image/png", b"\x89PNG")] * 2
    assert (third.item.body or "").startswith("A very long text.")
    assert fifth.number == 5
    assert library.memories.store([New("t", "user", "new")])[0].number == 6  # type: ignore[union-attr]
    assert library.search("tieguanyin").hits[0].uri == "memory://2"
    assert library.doctor() == []


def test_doing_it_again_adds_only_what_is_new(library: Library, file: Path) -> None:
    memories = library.memories
    memories.import_context_server(file)
    memories.delete([3])
    again = memories.import_context_server(file)
    assert (again.stored, again.already) == (1, 3)
    assert memories.find() == [1, 2, 3, 5]
    assert memories.import_context_server(file, renumber=True).stored == 0


def test_a_dry_run_stores_nothing(library: Library, file: Path) -> None:
    assert library.memories.import_context_server(file, dry_run=True).stored == 4
    assert library.memories.find() == []


def test_a_number_that_is_taken_stops_it_before_it_writes(library: Library, file: Path) -> None:
    for text in "ab":
        library.memories.store([New("mine", "user", text)])
    with pytest.raises(InvalidInput, match=r"Entry 1 is taken by another entry.*--renumber"):
        library.memories.import_context_server(file)
    assert library.memories.find() == [1, 2]
    done = library.memories.import_context_server(file, renumber=True)
    assert done.numbers == {1: 3, 2: 4, 3: 5, 5: 6}
    assert library.memories.entries([6])[0].item.body == "after the deletion"


def test_threads_are_trimmed_as_every_tool_trims_them(library: Library, tmp_path: Path) -> None:
    path = older_file(tmp_path / "older.db", [(1, " tea\n", "user", "a", None, "2024-02-29 12:30:00")])
    assert library.memories.import_context_server(path).stored == 1
    assert library.memories.find(threads=["tea"]) == [1]
    assert library.memories.import_context_server(path).already == 1
    assert library.memories.import_context_server(path, renumber=True).already == 1


def test_older_files_and_odd_metadata_are_read(library: Library, tmp_path: Path) -> None:
    path = older_file(
        tmp_path / "older.db",
        [
            (1, "t", "user", "a", None, "2024-02-29 12:30:00"),
            (2, "t", "user", "b", "[1, 2]", "2024-02-29 12:30:01"),
            (3, "t", "agent", "c", "not json", "2024-02-29 12:30:01"),
            (4, "t", "agent", None, '{"a": NaN}', "2024-02-29 12:30:02"),
            (9, "t", "agent", "e", '{"ok": true}', "2024-02-29 12:30:03"),
        ],
    )
    done = library.memories.import_context_server(path)
    assert (done.stored, done.raw_metadata) == (5, [2, 3, 4])
    entries = library.memories.entries([1, 2, 3, 4, 9])
    assert [entry.item.metadata for entry in entries] == [
        {}, {"import_raw_metadata": "[1, 2]"}, {"import_raw_metadata": "not json"},
        {"import_raw_metadata": '{"a": NaN}'}, {"ok": True},
    ]  # fmt: skip
    assert entries[0].item.created_at == datetime(2024, 2, 29, 12, 30, tzinfo=UTC)


def test_another_file_is_refused_in_words(library: Library, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="There is no file"):
        library.memories.import_context_server(tmp_path / "nothing.db")
    with closing(apsw.Connection(str(tmp_path / "other.db"))) as db:
        db.execute("create table context_entries (id integer)")
    with pytest.raises(InvalidInput, match="no database of mcp-context-server"):
        library.memories.import_context_server(tmp_path / "other.db")
    (tmp_path / "lines.jsonl").write_text('{"id": 1}\n' * 100, encoding="utf-8")
    with pytest.raises(InvalidInput, match="it is not an SQLite database"):
        library.memories.import_context_server(tmp_path / "lines.jsonl")
