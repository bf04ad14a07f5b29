"""A library's file that is removed, replaced or made read-only under who has it open.

1. What is written to a file that nobody finds again is not acknowledged; the file put back is written to again.
2. Nobody who is refused makes an empty file in its place.
3. A file that was read-only for a while can be written to when it is not any more.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from commonplace.errors import StorageBroken
from commonplace.ingest.prepare import prepare
from commonplace.model import Draft
from commonplace.store import SqliteStore
from commonplace.store.items import Items
from commonplace.store.listing import Listing
from unprivileged import unprivileged


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(tmp_path / "home" / "library.db")) as opened:
        opened.drawer(Items).put([prepare(note("first"))])
        yield opened


def note(name: str) -> Draft:
    return Draft("note", name, body=f"about {name}")


def test_a_write_to_a_removed_file_is_refused_until_it_is_back(store: SqliteStore, tmp_path: Path) -> None:
    home, away = tmp_path / "home", tmp_path / "away"
    home.rename(away)
    with pytest.raises(StorageBroken, match=r"library\.db was removed or replaced.*Nothing was stored"):
        store.drawer(Items).put([prepare(note("lost"))])
    away.rename(home)
    store.drawer(Items).put([prepare(note("second"))])
    with closing(SqliteStore(home / "library.db")) as other:
        assert (other.drawer(Listing).counts(), other.check()) == ({"note": 2}, [])


def test_a_write_to_a_file_that_another_has_replaced_is_refused(store: SqliteStore, tmp_path: Path) -> None:
    path = tmp_path / "home" / "library.db"
    store.backup(tmp_path / "copy.db")
    shutil.move(tmp_path / "copy.db", path)
    with pytest.raises(StorageBroken, match="was removed or replaced"):
        store.drawer(Items).put([prepare(note("lost"))])


def test_a_thread_that_comes_later_makes_no_empty_file_in_its_place(store: SqliteStore, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "home")
    (tmp_path / "home").mkdir()
    with ThreadPoolExecutor(1) as thread, pytest.raises(StorageBroken, match="was removed or replaced"):
        thread.submit(store.drawer(Listing).counts).result()
    assert list((tmp_path / "home").iterdir()) == []


def test_a_file_that_was_read_only_for_a_while_is_written_to_again(store: SqliteStore, tmp_path: Path) -> None:
    files = list((tmp_path / "home").iterdir())
    with unprivileged(tmp_path), ThreadPoolExecutor(1) as thread:
        for file in files:
            file.chmod(0o444)
        assert thread.submit(store.drawer(Listing).counts).result() == {"note": 1}
        with pytest.raises(StorageBroken, match="read-only"):
            thread.submit(store.drawer(Items).put, [prepare(note("refused"))]).result()
        for file in files:
            file.chmod(0o644)
        thread.submit(store.drawer(Items).put, [prepare(note("second"))]).result()
    assert store.drawer(Listing).counts() == {"note": 2}
