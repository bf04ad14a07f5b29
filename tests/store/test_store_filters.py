"""Filters.

1. The truth table of contracts/memory.md, section 6, row by row.
2. In SQL a filter means what it means in plain Python, for any metadata, tags, dates, kinds and parents.
3. A filter of the largest size a surface lets through is no error.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commonplace.errors import InvalidInput
from commonplace.ingest.prepare import prepare
from commonplace.model import Condition, Draft, Filter
from commonplace.store.base import Store
from commonplace.store.items import Items
from commonplace.store.listing import Listing
from opening import BACKENDS, open_store
from strategies import allows, conditions, corpora, filters

OPEN, LOWER, SEVEN, TEXT7, FLOAT7, TRUE, FALSE = '"Open"', '"open"', "7", '"7"', "7.0", "true", "false"
NULL, MISSING, LIST, OBJECT, PERCENT, ASE = "null", "∅", "[…]", "{…}", '"50%"', '"Åse"'
STORED: dict[str, Any] = {
    OPEN: "Open", LOWER: "open", SEVEN: 7, TEXT7: "7", FLOAT7: 7.0, TRUE: True, FALSE: False, NULL: None,
    LIST: ["Open", 7, True], OBJECT: {"x": "Y"}, PERCENT: "50%", ASE: "Åse",
}  # fmt: skip
ALL = {*STORED, MISSING}
K = ("k",)

TABLE = [
    (Condition(K, "eq", "OPEN"), {OPEN, LOWER}),
    (Condition(K, "eq", "OPEN", case_sensitive=True), set()),
    (Condition(K, "eq", "Open", case_sensitive=True), {OPEN}),
    (Condition(K, "eq", 7), {SEVEN, FLOAT7}),
    (Condition(K, "eq", 7.0), {SEVEN, FLOAT7}),
    (Condition(K, "eq", 1), set()),
    (Condition(K, "eq", "7"), {TEXT7}),
    (Condition(K, "eq", True), {TRUE}),
    (Condition(K, "eq", False), {FALSE}),
    (Condition(K, "eq", "a\u030aSE"), {ASE}),
    (Condition(K, "ne", "open"), ALL - {OPEN, LOWER, NULL, MISSING}),
    (Condition(K, "ne", "open", include_missing=True), ALL - {OPEN, LOWER}),
    (Condition(K, "ne", True), ALL - {TRUE, NULL, MISSING}),
    (Condition(K, "gt", 6), {SEVEN, FLOAT7}),
    (Condition(K, "gt", 7), set()),
    (Condition(K, "lte", 7), {SEVEN, FLOAT7}),
    (Condition(K, "lt", 7.5), {SEVEN, FLOAT7}),
    (Condition(K, "gte", "7"), {OPEN, LOWER, TEXT7, ASE}),
    (Condition(K, "lt", "7"), {PERCENT}),
    (Condition(K, "gt", "a", case_sensitive=True), {LOWER, ASE}),
    (Condition(K, "in", ["OPEN", True]), {OPEN, LOWER, TRUE}),
    (Condition(K, "not_in", ["OPEN", True]), ALL - {OPEN, LOWER, TRUE, NULL, MISSING}),
    (Condition(K, "not_in", ["OPEN", True], include_missing=True), ALL - {OPEN, LOWER, TRUE}),
    (Condition(K, "exists"), ALL - {NULL, MISSING}),
    (Condition(K, "is_not_null"), ALL - {NULL, MISSING}),
    (Condition(K, "not_exists"), {NULL, MISSING}),
    (Condition(K, "is_null"), {NULL}),
    (Condition(K, "contains", "0%"), {PERCENT}),
    (Condition(K, "contains", "_"), set()),
    (Condition(K, "starts_with", "å"), {ASE}),
    (Condition(K, "ends_with", "EN"), {OPEN, LOWER}),
    (Condition(K, "ends_with", "longer than any"), set()),
    (Condition(K, "array_contains", "open"), {LIST}),
    (Condition(K, "array_contains", "open", case_sensitive=True), set()),
    (Condition(K, "array_contains", 7.0), {LIST}),
    (Condition(K, "array_contains", 1), set()),
    (Condition(K, "array_contains", True), {LIST}),
    (Condition(("k", "x"), "eq", "y"), {OBJECT}),
    (Condition(("k", "0"), "exists"), set()),
    (Condition(K, "eq", float("nan")), set()),
    (Condition(K, "ne", float("nan")), ALL - {NULL, MISSING}),
    (Condition(K, "lt", float("nan")), set()),
    (Condition(K, "gte", float("nan"), case_sensitive=True), set()),
    (Condition(K, "in", [7, float("nan")]), {SEVEN, FLOAT7}),
    (Condition(K, "not_in", [float("nan")], include_missing=True), ALL),
    (Condition(K, "array_contains", float("nan")), set()),
]


@pytest.fixture(scope="module", params=BACKENDS)
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    store = open_store(request.param, tmp_path_factory.mktemp("table"))
    store.drawer(Items).put([prepare(Draft("memory", name, metadata={"k": value})) for name, value in STORED.items()])
    store.drawer(Items).put([prepare(Draft("memory", MISSING))])
    yield store
    store.close()


@pytest.mark.parametrize(("condition", "matching"), TABLE)
def test_the_truth_table_of_the_contract_holds(table: Store, condition: Condition, matching: set[str]) -> None:
    found = {item.key for item in table.drawer(Listing).scan(Filter(where=(condition,)))}
    assert found == matching
    assert found == {
        item.key for item in table.drawer(Listing).scan(Filter()) if allows(Filter(where=(condition,)), item)
    }


@given(
    corpus=corpora(most=15),
    keeps=st.lists(filters | conditions().map(lambda c: Filter(where=(c,))), min_size=8, max_size=8),
)
@settings(max_examples=60)
def test_a_filter_in_sql_means_what_it_means_in_python(
    backend: str, tmp_path_factory: pytest.TempPathFactory, corpus: list[Draft], keeps: list[Filter]
) -> None:
    store = open_store(backend, tmp_path_factory.mktemp("filters"))
    try:
        items = store.drawer(Items).put([prepare(draft) for draft in corpus])
        for keep in keeps:
            expected = [item.id for item in items if allows(keep, item)]
            assert store.drawer(Listing).select(keep).tolist() == expected
            assert [item.id for item in store.drawer(Listing).scan(keep)] == expected
    finally:
        store.close()


@pytest.mark.parametrize("name", ["a.b", 'quo"te', "back\\slash", "ключ", "$", "x[0]", "#-1", "a b", "'", "\t", "é"])
def test_any_name_is_just_a_name(store: Store, name: str) -> None:
    there, _ = store.drawer(Items).put(
        [prepare(Draft("note", "1", metadata={name: {name: 5}})), prepare(Draft("note", "2"))]
    )
    assert store.drawer(Listing).select(Filter(where=(Condition((name, name), "eq", 5),))).tolist() == [there.id]


@pytest.mark.parametrize("names", [(), ("",), ("a", ""), ("\0",), ("a", "b\0c")])
def test_a_path_that_names_nothing_is_refused(store: Store, names: tuple[str, ...]) -> None:
    with pytest.raises(InvalidInput, match="path"):
        store.drawer(Listing).select(Filter(where=(Condition(names, "exists"),)))


@pytest.mark.parametrize("value", [None, [1], {"a": 1}])
def test_a_value_that_cannot_be_compared_is_refused(store: Store, value: Any) -> None:
    with pytest.raises(InvalidInput, match="compares with"):
        store.drawer(Listing).select(Filter(where=(Condition(K, "eq", value),)))


def test_the_largest_filter_a_surface_lets_through_is_answered(store: Store) -> None:
    item = store.drawer(Items).put([prepare(Draft("note", "1", metadata={"k": "999", "n": 999}))])[0]
    members = [str(number) for number in range(1000)]
    many = [
        Condition(K, "in", members),
        Condition(K, "not_in", members[:999]),
        Condition(("n",), "in", list(range(1000))),
    ]
    assert store.drawer(Listing).select(Filter(where=tuple(many))).tolist() == [item.id]
    hundred = tuple(Condition(K, "in", members) for _ in range(20)) + tuple(Condition(K, "ne", n) for n in range(80))
    assert store.drawer(Listing).select(Filter(where=hundred)).tolist() == [item.id]


@pytest.mark.parametrize(
    "keep",
    [
        Filter(where=(Condition(K, "eq", "\ud800"),)),
        Filter(where=(Condition(("\ud800",), "exists"),)),
        Filter(parents=("\ud800",)),
        Filter(tags=("\ud800",)),
    ],
)
def test_a_filter_of_what_is_no_character_is_refused_in_words(store: Store, keep: Filter) -> None:
    with pytest.raises(InvalidInput, match="surrogate"):
        store.drawer(Listing).select(keep)


def test_the_ids_of_a_filter_are_ascending_and_whole(store: Store, tmp_path: Path) -> None:
    ids = [item.id for item in store.drawer(Items).put([prepare(Draft("note", str(n))) for n in range(300)])]
    assert store.drawer(Listing).select(Filter(kinds=("note",))).tolist() == ids == sorted(ids)
    assert store.drawer(Listing).select(Filter(kinds=("media",))).tolist() == []


PATHS = (
    "ops/a.md",
    "ops/archive/b.md",
    "Ops/Archive/deep/c.md",
    "opsworks/d.md",
    "vault/ops/e.md",
    "x, [y]/f.md",
    "Über/g.md",
)


@pytest.mark.parametrize(
    ("path", "matching"),
    [
        ("ops", {0, 1, 2}),
        ("/ops/", {0, 1, 2}),
        ("./ops/archive", {1, 2}),
        ("ops/archive/**", {1, 2}),
        ("ops/archive/*", {1}),
        ("ops/*.md", {0}),
        ("ops/a.md", {0}),
        ("ops/a", set()),
        ("vault/ops", {0, 1, 2, 4}),
        ("vault/ops/e.md", {4}),
        ("vault", set(range(7))),
        ("vau", set()),
        ("**/deep", set()),
        ("**/deep/*", {2}),
        ("{ops,opsworks}/[ad].md", {0, 3}),
        ("ops/archive, opsworks", {1, 2, 3}),
        ("x, [y]", {5}),
        ("x, [y]/f.md", {5}),
        ("U\u0308ber", {6}),
        ("%", set()),
        ("a.b", set()),
    ],
)
def test_a_path_is_a_folder_a_file_or_a_glob_inside_the_collection_or_with_it_in_front(
    store: Store, path: str, matching: set[int]
) -> None:
    drafts = [Draft("document", key, parent="vault", body="x") for key in PATHS]
    store.drawer(Items).put([prepare(draft) for draft in [*drafts, Draft("note", "ops", body="x")]])
    found = {PATHS.index(item.key) for item in store.drawer(Listing).scan(Filter(paths=(path,)))}
    assert found == matching
    assert len(store.drawer(Listing).select(Filter(paths=(path,)))) == len(matching)


@pytest.mark.parametrize("path", ["", " ", "/", "./", ",", "{a,b}" * 20])
def test_a_place_that_names_nothing_is_refused(store: Store, path: str) -> None:
    with pytest.raises(InvalidInput):
        store.drawer(Listing).scan(Filter(paths=(path,)))
