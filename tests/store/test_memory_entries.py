"""What the store keeps of memory entries.

1. Numbers rise and are never reused; threads, images and supersessions count up whatever happens.
2. An indexed metadata field never changes an answer, and its filters read no more than they must.
3. A transaction is whole or not at all, and so is each part of one.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commonplace.errors import AlreadyExists, InvalidInput
from commonplace.ingest.prepare import prepare
from commonplace.kinds.memories.drawer import EntryRows
from commonplace.kinds.memories.entry import Image, Past
from commonplace.model import Condition, Draft, Entries, Filter, Operator
from commonplace.store import SqliteStore
from commonplace.store.attachments import Attachments
from commonplace.store.base import Store
from commonplace.store.items import Items
from commonplace.store.listing import Listing
from commonplace.store.metadata_index import MetadataIndex
from commonplace.store.outdated import Outdated
from opening import open_store, rows
from strategies import NAMES, allows, conditions, metadata

MEMORY = ("memory",)
STATUS = ("status",)
TOOLS = ("tools",)


def put(store: Store, text: str = "text", thread: str = "t", source: str = "user", **more: Any) -> int:
    """Store an entry; returns its item's id."""
    fields = {"source": source, **more.pop("fields", {})}
    with store.transaction():
        draft = Draft("memory", str(store.drawer(EntryRows).next_number()), thread, body=text, fields=fields, **more)
        return store.drawer(Items).put([prepare(draft)])[0].id


def put_then_fail(store: Store, text: str) -> None:
    with store.transaction():
        put(store, text)
        raise InvalidInput("changed one's mind")


def threads(store: Store) -> list[tuple[Any, ...]]:
    found, total = store.drawer(EntryRows).threads(limit=100, offset=0)
    assert len(found) == total
    return sorted((row.thread, row.entries, row.from_user, row.multimodal) for row in found)


def test_numbers_rise_and_are_never_reused(store: Store) -> None:
    first, second = put(store, "a"), put(store, "b")
    store.drawer(Items).delete([second])
    third = put(store, "c")
    assert [row.number for row in store.drawer(EntryRows).of([third, first])] == [3, 1]


def test_a_number_of_ones_own_raises_the_next_one(store: Store) -> None:
    store.drawer(Items).put([prepare(Draft("memory", "41", "t", body="a", fields={"source": "user"}))])
    assert store.drawer(EntryRows).get([41])[0].thread == "t"
    assert store.drawer(EntryRows).next_number() == 42


def test_an_item_without_a_source_is_no_entry_and_keeps_its_number(store: Store) -> None:
    (seven, _) = store.drawer(Items).put(
        [prepare(Draft("memory", "7", "t", body="a")), prepare(Draft("memory", "x", body="b"))]
    )
    assert store.drawer(EntryRows).get([7]) == []
    added = store.drawer(EntryRows).add([prepare(Draft("memory", "0", "t", body="c", fields={"source": "user"}))])
    assert [number for number, _ in added] == [8]
    assert [item.body for item in store.drawer(Items).get([seven.id], body=True)] == ["a"]
    store.drawer(Items).put([prepare(Draft("memory", "3", "t", body="d"))])
    assert store.drawer(EntryRows).next_number() == 9


def test_an_entry_with_the_number_of_another_is_refused_in_a_sentence(store: Store) -> None:
    one = put(store, "a")
    with pytest.raises(AlreadyExists, match="is another's"):
        store.drawer(Items).put([prepare(Draft("memory", "1", "elsewhere", body="b", fields={"source": "user"}))])
    assert [row.item_id for row in store.drawer(EntryRows).get([1])] == [one]
    assert store.drawer(Listing).counts() == {"memory": 1}


def test_threads_count_their_entries(store: Store) -> None:
    one, two = put(store, "a"), put(store, "b", source="agent")
    put(store, "c", thread="other")
    store.drawer(Attachments).attach(
        two, [Image(b"x", "image/png").attachment(), Image(b"y", "image/png").attachment()]
    )
    assert threads(store) == [("other", 1, 1, 0), ("t", 2, 1, 1)]
    store.drawer(Attachments).attach(two, [])
    store.drawer(Items).delete([one])
    assert threads(store) == [("other", 1, 1, 0), ("t", 1, 0, 0)]
    store.drawer(Items).delete([two])
    assert threads(store) == [("other", 1, 1, 0)]
    assert store.check() == []


def test_a_thread_is_listed_from_its_newest_entry(store: Store) -> None:
    for text in "abc":
        put(store, text)
    put(store, "d", thread="other")
    assert [(said.number, said.body) for said in store.drawer(EntryRows).latest(["t"], 2)["t"]] == [(3, "c"), (2, "b")]


def test_the_ends_of_many_threads_are_found_at_once(store: Store) -> None:
    for thread in ("a", "b", "a", "ü'\"\\"):
        put(store, f"in {thread}", thread=thread)
    latest = store.drawer(EntryRows).latest(["a", "nobody", "ü'\"\\", "b"], 1)
    assert {thread: [said.number for said in found] for thread, found in latest.items()} == {
        "a": [3],
        "b": [2],
        "ü'\"\\": [4],
    }
    assert store.drawer(EntryRows).latest([], 1) == {}


def test_new_entries_are_numbered_by_the_store_whatever_their_drafts_say(store: Store) -> None:
    put(store, "first")
    writes = [prepare(Draft("memory", "0", "t", body=text, fields={"source": "user"})) for text in ("a", "b")]
    added = store.drawer(EntryRows).add(writes)
    assert [number for number, _ in added] == [2, 3]
    assert [item.key for item in store.drawer(Items).get([item_id for _, item_id in added])] == ["2", "3"]
    assert [row.number for row in store.drawer(EntryRows).of([item_id for _, item_id in added])] == [2, 3]
    assert store.drawer(EntryRows).next_number() == 4


def test_numbers_that_no_entry_can_have_are_of_none(store: Store) -> None:
    one = put(store, "a", fields={"supersedes": [2**80, -(2**80)]})
    assert store.drawer(EntryRows).get([2**80, -(2**80), 1])[0].supersedes == ()
    assert store.drawer(EntryRows).numbers(numbers=[2**80, -(2**80), 1]) == [1]
    store.drawer(EntryRows).supersede(1, [2**80, -(2**80)])
    assert [row.item_id for row in store.drawer(EntryRows).get([1])] == [one]


def test_supersessions_end_with_either_side(store: Store) -> None:
    old = put(store, "a")
    new = put(store, "b", fields={"supersedes": [1]})
    put(store, "c", fields={"supersedes": [1, 99]})
    assert store.drawer(EntryRows).get([1])[0].superseded_by == 3
    assert store.drawer(EntryRows).get([3])[0].supersedes == (1,)
    assert store.drawer(Outdated).superseded() == [old]
    assert store.drawer(Listing).select(Filter(kinds=MEMORY, entries=Entries())).tolist() == [new, new + 1]
    assert len(store.drawer(Listing).select(Filter(kinds=MEMORY, entries=Entries(superseded=True)))) == 3
    store.drawer(Items).delete([new + 1])
    assert store.drawer(EntryRows).get([1])[0].superseded_by == 2
    store.drawer(Items).delete([new])
    assert store.drawer(Outdated).superseded() == []


def test_source_and_images_are_filters(store: Store) -> None:
    user, agent = put(store, "a"), put(store, "b", source="agent")
    store.drawer(Items).put([prepare(Draft("note", "n", body="c"))])
    store.drawer(Attachments).attach(agent, [Image(b"x", "image/png").attachment()])
    for asked, expected in (
        (Entries(source="user"), [user]),
        (Entries(source="agent", multimodal=True), [agent]),
        (Entries(multimodal=False), [user]),
        (Entries(source="user", multimodal=True), []),
        (Entries(), [user, agent]),
    ):
        assert store.drawer(Listing).select(Filter(entries=asked)).tolist() == expected


def test_the_past_is_kept_newest_first_and_no_longer_than_asked(store: Store) -> None:
    item = put(store)
    for version in range(1, 6):
        was = Past(version, version * 10, f"text {version}", {"v": version}, ("a",), (("00", "image/png"),))
        store.drawer(EntryRows).keep_past(item, was, most=3)
    kept = store.drawer(EntryRows).past([item])[item]
    assert [past.version for past in kept] == [5, 4, 3]
    assert kept[0] == Past(5, 50, "text 5", {"v": 5}, ("a",), (("00", "image/png"),))
    store.drawer(Items).delete([item])
    assert store.drawer(EntryRows).past([item]) == {}


def test_expired_entries_are_named_from_their_moment_on(store: Store) -> None:
    soon, _ = put(store, "a", fields={"expires_at": 100}), put(store, "b")
    assert (store.drawer(Outdated).expired(99), store.drawer(Outdated).expired(100)) == ([], [soon])


def test_entries_are_found_by_everything_that_is_given(store: Store) -> None:
    for text, thread, source in (("a", "t", "user"), ("b", "t", "agent"), ("c", "u", "user")):
        put(store, text, thread, source)
    moment = store.drawer(EntryRows).get([3])[0].created_at
    assert store.drawer(EntryRows).numbers() == [1, 2, 3]
    assert store.drawer(EntryRows).numbers(numbers=[3, 2, 1 << 80], source="agent") == [2]
    assert store.drawer(EntryRows).numbers(threads=["t", "v"], before=moment) == [1, 2]
    assert store.drawer(EntryRows).numbers(threads=[]) == []


# transactions


def test_a_transaction_that_raises_leaves_nothing(store: Store) -> None:
    with pytest.raises(InvalidInput):
        put_then_fail(store, "a")
    assert store.last_change() == 0
    assert store.drawer(EntryRows).next_number() == 1


def test_a_part_that_raises_is_undone_alone(store: Store) -> None:
    with store.transaction():
        put(store, "a")
        with pytest.raises(InvalidInput):
            put_then_fail(store, "b")
        put(store, "c")
    assert [item.body for item in store.drawer(Listing).scan(Filter(), body=True)] == ["a", "c"]
    assert store.check() == []


# indexed fields


@given(
    contents=st.lists(metadata, min_size=1, max_size=10),
    later=st.lists(metadata, min_size=1, max_size=4),
    asked=st.lists(conditions(), min_size=6, max_size=6),
)
@settings(max_examples=60)
def test_an_indexed_field_never_changes_an_answer(
    backend: str,
    tmp_path_factory: pytest.TempPathFactory,
    contents: list[Any],
    later: list[Any],
    asked: list[Condition],
) -> None:
    store = open_store(backend, tmp_path_factory.mktemp("fields"))
    try:
        drafts = [Draft("memory", str(n), metadata=given) for n, given in enumerate(contents)]
        store.drawer(Items).put([prepare(draft) for draft in drafts])
        for path in [(name,) for name in NAMES] + [condition.path for condition in asked]:
            store.drawer(MetadataIndex).add(path)
        for number, changed in enumerate(later):
            store.drawer(Items).put([prepare(Draft("memory", str(number % len(contents)), metadata=changed))])
        items = store.drawer(Listing).scan(Filter())
        for condition in asked:
            keep = Filter(kinds=MEMORY, where=(condition,))
            assert store.drawer(Listing).select(keep).tolist() == [item.id for item in items if allows(keep, item)]
        store.drawer(Items).delete([item.id for item in items])
        assert rows(store, "select count(*) from metadata_values") == [(0,)]
    finally:
        store.close()


def plan(store: SqliteStore, filter: Filter) -> list[str]:
    where, values = store.drawer(Listing).compiled(filter)
    rows = store._database.reading().execute(f"explain query plan select id from items where {where}", values)
    return [str(row[3]) for row in rows]


def fill(store: Store) -> None:
    for path in (STATUS, TOOLS):
        store.drawer(MetadataIndex).add(path)
    with store.transaction():
        for n in range(300):
            put(store, f"{n}", thread=f"t{n % 5}", metadata={"status": f"s{n % 7}", "tools": [f"x{n % 11}"], "n": n})


@pytest.fixture
def filled(sqlite: SqliteStore) -> SqliteStore:
    fill(sqlite)
    return sqlite


@pytest.mark.parametrize(
    ("path", "op", "value"),
    [
        (STATUS, "eq", "S3"), (STATUS, "in", ["s1", "s2"]), (STATUS, "gt", "s5"), (STATUS, "contains", "3"),
        (STATUS, "starts_with", "s"), (STATUS, "ends_with", "nothing"), (STATUS, "exists", None),
        (STATUS, "is_null", None), (TOOLS, "array_contains", "X4"), (STATUS, "eq", 7), (STATUS, "eq", True),
    ],
)  # fmt: skip
@pytest.mark.parametrize("analysed", [False, True])
def test_no_filter_on_an_indexed_field_reads_every_entry(
    filled: SqliteStore, path: tuple[str, ...], op: Operator, value: Any, analysed: bool
) -> None:
    if analysed:
        filled.refresh_statistics()
    for case_sensitive in (False, True) if op in ("eq", "in", "array_contains") else (False,):
        condition = Condition(path, op, value, case_sensitive=case_sensitive)
        steps = plan(filled, Filter(kinds=MEMORY, where=(condition,)))
        assert any("SEARCH items USING INTEGER PRIMARY KEY" in step for step in steps), steps
        assert not any(step.startswith(("SCAN items", "SCAN metadata")) for step in steps), steps


def known_entries(store: SqliteStore) -> list[tuple[Any, ...]]:
    return rows(store, "select cast(stat as integer) from sqlite_stat1 where idx = 'memories_by_time'")


def test_statistics_are_made_anew_once_there_is_twice_as_much(filled: SqliteStore) -> None:
    filled.refresh_statistics()
    assert known_entries(filled) == [(300,)]
    with filled.transaction():
        for n in range(299):
            put(filled, f"more {n}")
    filled.refresh_statistics()
    assert known_entries(filled) == [(300,)]
    put(filled, "the last")
    put(filled, "and one more")
    filled.refresh_statistics()
    assert known_entries(filled) == [(601,)]


def test_a_dropped_field_leaves_nothing_and_answers_the_same(store: Store) -> None:
    fill(store)
    keep = Filter(kinds=MEMORY, where=(Condition(STATUS, "eq", "s3"),))
    before = store.drawer(Listing).select(keep).tolist()
    store.drawer(MetadataIndex).drop(STATUS)
    assert list(store.drawer(MetadataIndex).fields()) == [TOOLS]
    assert store.drawer(Listing).select(keep).tolist() == before
    left = rows(store, "select path from metadata_fields")
    assert [json.loads(path) for (path,) in left] == [list(TOOLS)]
    assert store.check() == []


def test_a_backup_is_restored_with_everything_of_its_entries(store: Store, tmp_path: Any) -> None:
    fill(store)
    store.backup(tmp_path / "copy")
    store.drawer(Items).delete(store.drawer(Listing).select(Filter(kinds=MEMORY)).tolist())
    store.restore(tmp_path / "copy")
    assert len(store.drawer(EntryRows).numbers()) == 300
    assert list(store.drawer(MetadataIndex).fields()) == [STATUS, TOOLS]
    assert store.check() == []
