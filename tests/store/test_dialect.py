"""The dialect that drawers are written in: each form, for each database, and what is left as it stands."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.store.dialect import CLOCK, MOST_TEXTS, NO_LIMIT, Tuned, for_postgres, for_sqlite, marks
from commonplace.store.session import StoreSession
from opening import open_store

FORMS = [
    ("id in each(:ids int)", "id in (select value from json_each(:ids))", "id = any(%(ids)s::bigint[])"),
    ("uri not in each(:uris text)", "uri not in (select value from json_each(:uris))",
     "uri <> all(%(uris)s::text[])"),
    ("key in each(:keys bytes)", "key in (select unhex(value) from json_each(:keys))",
     "key = any(%(keys)s::bytea[])"),
    ("from rows(:at item int, text text) as p order by nr",
     "from (select value ->> 0 as item, value ->> 1 as text, key + 1 as nr from json_each(:at)) as p order by nr",
     "from unnest(%(at__0)s::bigint[], %(at__1)s::text[]) with ordinality as p (item, text, nr) order by nr"),
    ("on conflict key(a, b) do nothing", "on conflict (a, b) do nothing", "on conflict (space, a, b) do nothing"),
    ("greatest(a, :b), least(a, 1)", "max(a, :b), min(a, 1)", "greatest(a, %(b)s), least(a, 1)"),
    ("run_after <= clock()", "run_after <= :clock__", f"run_after <= {CLOCK}"),
    ("a::bigint = :a and b % 2 = 0", "a::bigint = :a and b % 2 = 0", "a::bigint = %(a)s and b %% 2 = 0"),
    ("x like '%:a in each(:b int) clock()' and y = 'it''s :c'",
     "x like '%:a in each(:b int) clock()' and y = 'it''s :c'",
     "x like '%%:a in each(:b int) clock()' and y = 'it''s :c'"),
    ("select 1 -- :a is 50 % of it", "select 1 -- :a is 50 % of it", "select 1 -- :a is 50 %% of it"),
]  # fmt: skip


@pytest.mark.parametrize(("written", "sqlite", "postgres"), FORMS)
def test_each_form_is_rendered_for_each_database(written: str, sqlite: str, postgres: str) -> None:
    assert for_sqlite(written).text == sqlite
    assert for_postgres(written).text == postgres


def test_lists_are_bound_as_each_database_takes_them() -> None:
    query = "select 1 from rows(:at key bytes, of int) as p where id in each(:ids int) and uri = :uri"
    values = {"at": [(b"\x01", 2)], "ids": (3, 4), "uri": "u"}
    assert for_sqlite(query).bound(values) == {"at": '[["01", 2]]', "ids": "[3, 4]", "uri": "u"}
    assert for_postgres(query).bound(values) == {**values, "at__0": [b"\x01"], "at__1": [2], "ids": [3, 4]}
    empty = {"at": [], "ids": [], "uri": ""}
    assert for_postgres(query).bound(empty) == {**empty, "at__0": [], "at__1": []}
    assert values["ids"] == (3, 4)


def test_values_are_named_in_the_order_in_which_they_first_appear() -> None:
    query = f"insert into t (a, b) values ({marks('a, b')}) on conflict key(a) do update set b = :b, c = :c where ':d'"
    assert for_sqlite(query).names == for_postgres(query).names == ("a", "b", "c")


def test_no_more_texts_are_kept_than_there_is_room_for() -> None:
    for number in range(MOST_TEXTS + 100):
        for_sqlite(f"select {number}")
        for_postgres(f"select {number}")
    assert for_sqlite.cache_info().currsize == for_postgres.cache_info().currsize == MOST_TEXTS


@given(st.lists(st.sampled_from(["'", ":", "a", "%", " ", "in", "each(", "int)", "::", "\n", "--", "b(", "-"])))
def test_what_is_no_form_is_left_as_it_stands_whatever_is_around_it(parts: list[str]) -> None:
    text = "".join(parts)
    assert re.sub(r" in \(select value from json_each\(:(\w+)\)\)", r" in each(:\1 int)", for_sqlite(text).text) == text
    assert for_postgres(text).text.count("%") >= text.count("%")


# both databases say the same


@pytest.fixture
def session(backend: str, tmp_path: Any) -> Any:
    store = open_store(backend, tmp_path)
    yield store.session
    store.close()


TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
INT = st.integers(-(1 << 63), (1 << 63) - 1)


@given(wanted=st.lists(INT | st.just(0)), value=INT | st.just(0))
def test_integers_are_found_in_a_list(session: StoreSession, wanted: list[int], value: int) -> None:
    values = {"wanted": wanted, "value": value}
    query = "select 1 where cast(:value as bigint) in each(:wanted int)"
    assert (session.read(session.row, query, values) is not None) is (value in wanted)
    query = "select 1 where cast(:value as bigint) not in each(:wanted int)"
    assert (session.read(session.row, query, values) is not None) is (value not in wanted)


@given(wanted=st.lists(TEXT), value=TEXT)
def test_texts_are_found_in_a_list(session: StoreSession, wanted: list[str], value: str) -> None:
    query = "select 1 where cast(:value as text) in each(:wanted text)"
    assert (session.read(session.row, query, {"wanted": wanted, "value": value}) is not None) is (value in wanted)


@given(st.lists(st.tuples(INT | st.none(), TEXT | st.none(), st.binary())))
def test_rows_come_back_in_their_order_with_their_number(session: StoreSession, rows: list[tuple[Any, ...]]) -> None:
    query = "select a, b, c, nr from rows(:rows a int, b text, c bytes) as r order by nr"
    expected = [(*row, number) for number, row in enumerate(rows, start=1)]
    assert session.read(session.all, query, {"rows": rows}) == expected


def test_the_clock_is_one_moment_of_a_statement(session: StoreSession) -> None:
    first, second, third = session.read(session.row, "select clock(), clock(), clock() + 1") or ()
    assert first == second == third - 1
    assert first > 1_700_000_000_000_000


def test_a_tuned_statement_is_the_one_of_its_database(session: StoreSession) -> None:
    texts = Tuned(sqlite="select 'sqlite', :a || ''", postgres="select 'postgres', cast(:a as text)")
    assert session.read(session.row, texts, {"a": "x"}) == (session.dialect, "x")
    assert session.tuned(texts) == getattr(texts, session.dialect)


def test_no_limit_is_more_than_any_table_has(session: StoreSession) -> None:
    query = "select nr from rows(:rows a int) as r order by nr limit :most offset 1"
    assert session.read(session.all, query, {"rows": [(1,), (2,), (3,)], "most": NO_LIMIT}) == [(2,), (3,)]


def test_the_largest_and_the_smallest_of_values(session: StoreSession) -> None:
    query = "select greatest(cast(:a as bigint), 3), least(cast(:a as bigint), 3)"
    assert session.read(session.row, query, {"a": 5}) == (5, 3)
    assert json.dumps(session.read(session.row, query, {"a": 1})) == "[3, 1]"
