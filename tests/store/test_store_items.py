"""The store's contract: items, versions and the log. One body, every backend.

1. A put is durable, versioned and logged; an unchanged one is no change.
2. A delete takes everything with it and leaves a line in the log.
3. The log has no gaps, whoever writes and however it goes wrong.
4. A call is one transaction: all of it, or nothing.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.errors import NotFound, VersionConflict
from commonplace.ingest.prepare import prepare
from commonplace.model import Change, Draft, Filter, Span, chunk_id
from commonplace.store.base import Store
from commonplace.store.chunks import Chunks
from commonplace.store.embeddings import Embeddings
from commonplace.store.items import Items
from commonplace.store.listing import Listing
from opening import open_store
from strategies import drafts, metadata

TEA = Draft("note", "tea", title="Tea", body="Oolong wants water just off the boil.", tags=("Green", "hot"))


def put(store: Store, *drafts: Draft) -> list[Any]:
    return store.drawer(Items).put([prepare(draft) for draft in drafts])


def log(store: Store) -> list[tuple[str, int, int]]:
    return [(change.op, change.item_id, change.version) for change in store.changes(0, 1000)]


def test_what_was_put_is_there_as_it_was(store: Store) -> None:
    when = datetime(2020, 2, 29, 12, 0, 0, 123456, tzinfo=UTC)
    draft = Draft(
        "document", "a/b.md", parent="docs", title="T", body="# H\n\nünï\n", format="markdown", fields={"x": [1, None]},
        metadata={"deep": {"é": 1.5}, "t": True}, tags=("b", "A"), created_at=when, updated_at=when,
    )  # fmt: skip
    (item,) = put(store, draft)
    found = store.drawer(Items).find("document", "docs", "a/b.md")
    assert found is not None
    assert replace(found, body=None) == item
    assert (found.body, found.title, found.format, found.tags) == (draft.body, "T", "markdown", ("b", "A"))
    assert (found.fields, found.metadata) == (draft.fields, draft.metadata)
    assert (found.created_at, found.updated_at, found.version) == (when, when, 1)
    assert found.uri == "docs://docs/a/b.md"
    assert store.drawer(Items).get([item.id], body=False)[0].body is None


def test_tags_are_counted_with_one_spelling_for_those_of_any_case(store: Store) -> None:
    assert store.drawer(Listing).tags() == {}
    put(store, TEA, replace(TEA, key="b", tags=("green", "Ä")), replace(TEA, key="c", tags=("Green", "ä", "Ops/Locks")))
    assert next(iter(store.drawer(Listing).tags().items())) == ("Green", 3)
    assert {tag.casefold(): count for tag, count in store.drawer(Listing).tags().items()} == {
        "green": 3, "ä": 2, "hot": 1, "ops/locks": 1,
    }  # fmt: skip


@given(draft=drafts("k"))
def test_anything_storable_comes_back_and_its_chunks_quote_it(
    backend: str, tmp_path_factory: pytest.TempPathFactory, draft: Draft
) -> None:
    store = open_store(backend, tmp_path_factory.mktemp("items"))
    try:
        (item,) = put(store, draft)
        found = store.drawer(Items).get([item.id], body=True)[0]
        assert (found.body, found.title, found.metadata) == (draft.body, draft.title, draft.metadata)
        chunks = store.drawer(Chunks).of(item.id)
        assert len(chunks) == found.chunk_count
        assert all(draft.body[chunk.char_start : chunk.char_end] == chunk.text for chunk in chunks)
        assert store.drawer(Chunks).get([chunk.id for chunk in reversed(chunks)]) == list(reversed(chunks))
        assert put(store, draft)[0].version == 1
        assert store.check() == []
    finally:
        store.close()


def test_versions_rise_by_one_and_the_first_time_stays(store: Store) -> None:
    first = put(store, TEA)[0]
    second = put(store, replace(TEA, body="Green tea."))[0]
    assert (second.id, second.version, second.created_at) == (first.id, 2, first.created_at)
    assert second.updated_at >= first.updated_at
    assert log(store) == [("put", first.id, 1), ("put", first.id, 2)]


@pytest.mark.parametrize(
    ("expected", "stored", "error"),
    [(0, True, VersionConflict), (2, True, VersionConflict), (1, False, NotFound), (1, True, None), (0, False, None)],
)
def test_the_expected_version_guards_a_put(
    store: Store, expected: int, stored: bool, error: type[Exception] | None
) -> None:
    if stored:
        put(store, TEA)
    before = log(store)
    changed = prepare(replace(TEA, body="new"), expected)
    if error is None:
        assert store.drawer(Items).put([changed])[0].version == expected + 1
        return
    with pytest.raises(error, match="notes://tea"):
        store.drawer(Items).put([changed])
    assert log(store) == before


def test_a_delete_is_guarded_by_the_version_too(store: Store) -> None:
    item = put(store, TEA)[0]
    with pytest.raises(VersionConflict, match="at version 1, not 7"):
        store.drawer(Items).delete([item.id], 7)
    assert store.drawer(Items).get([item.id])
    assert store.drawer(Items).delete([item.id], 1) == 1


@pytest.mark.parametrize(
    "again", [TEA, replace(TEA, tags=("Green", " hot ", "", "GREEN")), replace(TEA, metadata=MappingProxyType({}))]
)
def test_an_unchanged_put_makes_no_change(store: Store, again: Draft) -> None:
    first = put(store, TEA)[0]
    assert put(store, again) == [first]
    assert store.last_change() == 1


def test_the_same_text_in_another_language_is_a_change_and_no_new_version(store: Store) -> None:
    first = put(store, TEA)[0]
    write = replace(prepare(TEA), language="no")
    assert store.drawer(Items).put([write]) == [first]
    assert log(store)[1:] == [("put", first.id, 1)]
    assert [item.language for item in store.indexed([first.id])] == ["no"]
    store.drawer(Items).put([write])
    assert store.last_change() == 2


@pytest.mark.parametrize("draft", [replace(TEA, metadata={"k": (1, 2)}), replace(TEA, tags=("a", "A", "b"))])
def test_putting_the_same_again_is_no_change_whatever_it_holds(store: Store, draft: Draft) -> None:
    put(store, draft)
    put(store, draft)
    assert store.last_change() == 1


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("body", "one", "other"),
        ("title", "One", "Other"),
        ("format", "text", "markdown"),
        ("tags", ("a", "b"), ("b", "a")),
        ("tags", ("a",), ("A",)),
        ("metadata", {"k": 1}, {"k": True}),
        ("metadata", {"k": 1}, {"k": 1.0}),
        ("metadata", {"k": [True]}, {"k": [1]}),
        ("metadata", {"k": None}, {}),
        ("fields", {"k": 0}, {"k": False}),
        ("created_at", None, datetime(2020, 1, 1, tzinfo=UTC)),
        ("updated_at", None, datetime(2020, 1, 1, tzinfo=UTC)),
    ],
)
def test_any_difference_is_a_change(store: Store, name: str, before: Any, after: Any) -> None:
    put(store, replace(TEA, **{name: before}))
    assert put(store, replace(TEA, **{name: after}))[0].version == 2
    assert repr(getattr(store.drawer(Items).find("note", "", "tea"), name)) == repr(after)


def test_passages_that_came_along_are_compared_as_well(store: Store) -> None:
    body = "one two"
    spans = (Span("one", 0, 3, 1, 1), Span("two", 4, 7, 1, 1, ("H",)))
    brought = Draft("media", "m", body=body, spans=spans)
    item = put(store, brought)[0]
    assert put(store, brought)[0].version == 1
    assert [chunk.text for chunk in store.drawer(Chunks).of(item.id)] == ["one", "two"]
    assert put(store, replace(brought, spans=spans[:1]))[0].version == 2
    assert put(store, replace(brought, spans=None))[0].version == 3
    assert [chunk.text for chunk in store.drawer(Chunks).of(item.id)] == [body]


@given(old=metadata, new=metadata)
def test_metadata_is_what_was_last_put(
    backend: str, tmp_path_factory: pytest.TempPathFactory, old: dict[str, Any], new: dict[str, Any]
) -> None:
    store = open_store(backend, tmp_path_factory.mktemp("metadata"))
    try:
        put(store, replace(TEA, metadata=old))
        put(store, replace(TEA, metadata=new))
        found = store.drawer(Items).find("note", "", "tea")
        assert found is not None
        assert (found.metadata, _typed(found.metadata)) == (new, _typed(new))
    finally:
        store.close()


def _typed(value: Any) -> Any:
    """A value with its types: 1, 1.0 and True are equal, but they are not the same."""
    if isinstance(value, dict):
        return {name: _typed(member) for name, member in sorted(value.items())}
    if isinstance(value, list):
        return [_typed(member) for member in value]
    return type(value), value


def test_a_delete_is_a_change_and_takes_the_body_with_it(store: Store) -> None:
    item, other = put(store, TEA, replace(TEA, key="other"))
    model = store.drawer(Embeddings).add_model("f", "m", 2)
    store.drawer(Embeddings).add(model, [(chunk.vector_key, b"\0\0\0\0") for chunk in store.drawer(Chunks).of(item.id)])
    assert store.drawer(Items).delete([item.id, 99]) == 1
    assert store.drawer(Items).find("note", "", "tea") is None
    assert store.drawer(Chunks).of(item.id) == []
    assert store.drawer(Chunks).get([chunk_id(item.id, 0)]) == []
    assert store.indexed([item.id]) == []
    assert store.drawer(Listing).select(Filter(tags=("green",))).tolist() == [other.id]
    assert log(store)[-1] == ("delete", item.id, 2)
    assert store.drawer(Embeddings).total(model.id) == 1
    assert store.drawer(Items).delete([other.id]) == 1
    assert store.drawer(Embeddings).total(model.id) == 0
    assert store.check() == []


def test_a_tombstone_stays_and_its_id_is_never_used_again(store: Store) -> None:
    item = put(store, TEA)[0]
    store.drawer(Items).delete([item.id])
    again = put(store, TEA)[0]
    assert (again.version, again.id > item.id) == (1, True)
    assert [change.op for change in store.changes(0, 10)] == ["put", "delete", "put"]
    assert store.drawer(Items).delete([item.id]) == 0
    assert store.last_change() == 3


def test_the_log_is_read_in_pieces_without_a_gap(store: Store) -> None:
    put(store, *(replace(TEA, key=str(number)) for number in range(7)))
    read: list[Change] = []
    while batch := store.changes(len(read), 3):
        read += batch
    assert [change.seq for change in read] == list(range(1, 8)) == list(range(1, store.last_change() + 1))


@pytest.mark.parametrize("broken", [replace(TEA, key="b"), replace(TEA, key="c", body="\ud800")])
def test_a_put_of_several_is_all_or_nothing(store: Store, broken: Draft) -> None:
    put(store, replace(TEA, key="b"))
    writes = [prepare(replace(TEA, key="a")), prepare(replace(TEA, key="b", body="new"), 1)]
    bad = replace(prepare(replace(broken, body="fine"), 0), draft=broken)
    with pytest.raises(Exception, match=r"surrogate|version"):
        store.drawer(Items).put([*writes, bad])
    assert store.drawer(Items).find("note", "", "a") is None
    assert log(store) == [("put", 1, 1)]
    assert store.check() == []
    assert put(store, replace(TEA, key="a"))[0].version == 1


def test_a_batch_may_write_one_item_twice(store: Store) -> None:
    first, second = put(store, TEA, replace(TEA, body="second"))
    assert first.id == second.id
    assert store.drawer(Items).get([first.id], body=True)[0].body == "second"
    assert [change.version for change in store.changes(0, 9)] == [1, 2]


def test_a_scan_walks_everything_in_bounded_steps(store: Store) -> None:
    put(store, *(replace(TEA, key=str(n), parent="even" if n % 2 == 0 else "odd") for n in range(9)))
    seen: list[str] = []
    after = 0
    while page := store.drawer(Listing).scan(Filter(parents=("even",)), after=after, limit=2, body=True):
        assert len(page) <= 2
        assert all(item.body == TEA.body for item in page)
        seen += [item.key for item in page]
        after = page[-1].id
    assert seen == ["0", "2", "4", "6", "8"]


def test_counts_and_parents_count_what_is_there(store: Store) -> None:
    a, *_ = put(store, *(Draft("document", str(n), parent=f"p{n % 2}", body="x") for n in range(5)), TEA)
    assert store.drawer(Listing).counts() == {"document": 5, "note": 1}
    assert store.drawer(Listing).parents("document") == {"p0": 3, "p1": 2}
    assert store.drawer(Chunks).total() == 6
    store.drawer(Items).delete([a.id])
    assert store.drawer(Listing).counts()["document"] == 4
    assert store.drawer(Listing).parents("nothing") == {}


def test_items_come_in_the_order_asked_for(store: Store) -> None:
    ids = [item.id for item in put(store, *(replace(TEA, key=str(n)) for n in range(3)))]
    assert [item.id for item in store.drawer(Items).get([ids[2], 99, ids[0], ids[2]])] == [ids[2], ids[0], ids[2]]


def test_a_name_shared_by_two_parents_needs_its_parent(store: Store) -> None:
    put(store, replace(TEA, parent="a"), replace(TEA, parent="b"))
    with pytest.raises(NotFound, match="More than one"):
        store.drawer(Items).find("note", None, "tea")
    found = store.drawer(Items).find("note", "a", "tea")
    assert found is not None
    assert found.parent == "a"


def test_what_an_index_is_told_is_everything_but_the_body(store: Store) -> None:
    item = put(store, replace(TEA, parent="p", created_at=datetime(1960, 1, 1, tzinfo=UTC)))[0]
    (told,) = store.indexed([item.id, 99])
    assert (told.id, told.kind, told.parent, told.key, told.title, told.language) == (
        item.id,
        "note",
        "p",
        "tea",
        "Tea",
        "en",
    )
    assert set(told.tags) == {"green", "hot"}
    assert told.created_at < 0
    assert list(told.chunks) == [(chunk_id(item.id, 0), "", TEA.body)]


def test_what_returned_is_there_after_reopening(store: Store, backend: str, tmp_path: Path) -> None:
    put(store, TEA)
    store.close()
    again = open_store(backend, tmp_path)
    assert [item.key for item in again.drawer(Listing).scan(Filter())] == ["tea"]
    again.close()


@given(ops=st.lists(st.tuples(st.sampled_from("pd"), st.integers(0, 3), st.integers(0, 2)), max_size=20))
def test_after_any_writes_the_store_is_sound_and_the_log_says_what_happened(
    backend: str, tmp_path_factory: pytest.TempPathFactory, ops: list[tuple[str, int, int]]
) -> None:
    store = open_store(backend, tmp_path_factory.mktemp("ops"))
    expected: dict[str, str] = {}
    logged = 0
    try:
        for op, key, text in ops:
            name, body = str(key), f"text {text}"
            if op == "p":
                put(store, Draft("note", name, body=body))
                logged += expected.get(name) != body
                expected[name] = body
            elif found := store.drawer(Items).find("note", "", name):
                store.drawer(Items).delete([found.id])
                logged += 1
                del expected[name]
        assert {item.key: item.body for item in store.drawer(Listing).scan(Filter(), body=True)} == expected
        assert [change.seq for change in store.changes(0, 100)] == list(range(1, logged + 1))
        assert store.check() == []
    finally:
        store.close()


@given(data=st.data())
def test_many_writes_at_once_leave_what_they_leave_one_by_one(
    backend: str, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    keys = data.draw(st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=8))
    writes = [prepare(data.draw(drafts(key))) for key in keys]
    together = open_store(backend, tmp_path_factory.mktemp("together"))
    apart = open_store(backend, tmp_path_factory.mktemp("apart"))
    try:
        made = [item.id for item in together.drawer(Items).put(writes)]
        assert made == [item.id for write in writes for item in apart.drawer(Items).put([write])]
        assert log(together) == log(apart)
        for found, expected in zip(
            together.drawer(Items).get(made, body=True), apart.drawer(Items).get(made, body=True), strict=True
        ):
            times = {"created_at": expected.created_at, "updated_at": expected.updated_at}
            assert replace(found, **times) == expected
            assert together.drawer(Chunks).of(found.id) == apart.drawer(Chunks).of(found.id)
        assert together.check() == []
    finally:
        together.close()
        apart.close()


def test_a_write_that_expects_another_version_takes_those_before_it_along(store: Store) -> None:
    put(store, TEA)
    writes = [prepare(replace(TEA, key="new")), prepare(replace(TEA, body="Cold."), expected_version=7)]
    with pytest.raises(VersionConflict):
        store.drawer(Items).put(writes)
    assert store.drawer(Items).find("note", "", "new") is None
    assert log(store) == [("put", 1, 1)]
