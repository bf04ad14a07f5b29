"""What drawers rely on, whichever database: transactions, parts of them, numbers, errors, and what is opened once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from commonplace.errors import InvalidInput, StorageBroken
from commonplace.store.base import Store
from commonplace.store.session import Drawer, reads, reads_together, writes, writes_unordered, writes_within
from commonplace.store.sqlite.connection import load_migrations

SET = "insert into settings (name, value) values (:name, :value) on conflict key(name) do update set value = :value"


class Kept(Drawer):
    """Settings, as a drawer of the tests."""

    @reads
    def value(self, name: str) -> str | None:
        row = self._db.row("select value from settings where name = :name", {"name": name})
        return row[0] if row else None

    @reads_together
    def twice(self, name: str, between: object) -> tuple[str | None, str | None]:
        first = self.value(name)
        if callable(between):
            between()
        return first, self.value(name)

    @writes
    def keep(self, name: str, value: str, *, fail: bool = False) -> None:
        self._db.run(SET, {"name": name, "value": value})
        if fail:
            raise InvalidInput("No.")

    @writes_within
    def keep_within(self, name: str, value: str) -> None:
        self._db.run(SET, {"name": name, "value": value})

    @writes_unordered
    def keep_unordered(self, name: str, value: str) -> None:
        self._db.run(SET, {"name": name, "value": value})

    @writes
    def keep_all(self, pairs: list[tuple[str, str]]) -> None:
        self._db.run_all(SET, pairs)

    @writes
    def numbers(self) -> list[int]:
        first = self._db.next("item", 3)
        self._db.skip("item", first + 10)
        return [first, self._db.last("item"), self._db.next("item")]

    @reads
    def last_entry(self) -> int:
        return self._db.last("entry")


@pytest.fixture
def kept(store: Store) -> Kept:
    return store.drawer(Kept)


def test_a_drawer_is_opened_once_by_any_number_of_threads(store: Store) -> None:
    start = threading.Barrier(8)

    def opened(_: int) -> Drawer:
        start.wait()
        return store.drawer(Kept)

    with ThreadPoolExecutor(8) as pool:
        assert len({id(drawer) for drawer in pool.map(opened, range(8))}) == 1
    assert store.session.drawer(Kept) is store.drawer(Kept)


def test_what_raises_leaves_nothing(kept: Kept) -> None:
    kept.keep("a", "1")
    with pytest.raises(InvalidInput):
        kept.keep("a", "2", fail=True)
    assert kept.value("a") == "1"


def test_a_part_that_raises_is_undone_alone(store: Store, kept: Kept) -> None:
    with store.transaction():
        kept.keep("a", "1")
        with pytest.raises(InvalidInput):
            kept.keep("b", "2", fail=True)
        kept.keep_within("c", "3")
        kept.keep_unordered("d", "4")
    assert [kept.value(name) for name in "abcd"] == ["1", None, "3", "4"]


def test_a_transaction_that_raises_takes_all_of_its_parts_along(store: Store, kept: Kept) -> None:
    def keep_three() -> None:
        with store.transaction():
            kept.keep("a", "1")
            kept.keep_within("b", "2")
            kept.keep_unordered("c", "3")
            raise InvalidInput("No.")

    with pytest.raises(InvalidInput):
        keep_three()
    assert [kept.value(name) for name in "abc"] == [None, None, None]


def test_every_way_to_write_is_a_transaction_where_none_is_under_way(kept: Kept) -> None:
    kept.keep_within("a", "1")
    kept.keep_unordered("b", "2")
    kept.keep_all([("c", "3"), ("d", "4"), ("c", "5")])
    kept.keep_all([])
    assert [kept.value(name) for name in "abcd"] == ["1", "2", "5", "4"]


def test_what_reads_together_sees_one_state(kept: Kept) -> None:
    kept.keep("a", "1")

    def write_elsewhere() -> None:
        thread = threading.Thread(target=kept.keep, args=("a", "2"))
        thread.start()
        thread.join()

    assert kept.twice("a", write_elsewhere) == ("1", "1")
    assert kept.value("a") == "2"


def test_a_thread_reads_what_it_has_written_and_others_do_not_yet(store: Store, kept: Kept) -> None:
    with store.transaction():
        kept.keep("a", "1")
        assert kept.value("a") == "1"
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(kept.value, "a").result() is None


def test_numbers_are_given_out_in_blocks_and_skipped(kept: Kept) -> None:
    first, last, following = kept.numbers()
    assert first == 1
    assert last == 11
    assert following == 12
    assert kept.last_entry() == 0


def test_what_no_database_can_store_is_said_as_one_of_our_errors(kept: Kept) -> None:
    for call in (
        lambda: kept.value("\ud800"),
        lambda: kept.keep("\ud800", "1"),
        lambda: kept.keep_within("a", "\ud800"),
    ):
        with pytest.raises(InvalidInput):
            call()


def test_drawers_of_two_stores_are_two(backend: str, tmp_path: Path) -> None:
    from opening import open_store

    stores = [open_store(backend, tmp_path / name) for name in "ab"]
    try:
        stores[0].drawer(Kept).keep("a", "1")
        assert stores[1].drawer(Kept).value("a") is None
    finally:
        for store in stores:
            store.close()


def test_a_folder_of_migrations_that_is_not_there_is_no_schema_without_tables() -> None:
    with pytest.raises(StorageBroken, match="reinstall"):
        load_migrations("no_such_folder")
