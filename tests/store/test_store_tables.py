"""The store's tables: data in fragments is the value it stands for, whatever was done to it, and by whichever pieces.

1. A value comes back exactly, whole and at every place.
2. Any sequence of changes leaves what the same changes leave in plain Python.
3. Sizes are those of the JSON; nothing is left behind.
4. A place is read, and changed, without the rest.
"""

from __future__ import annotations

import copy
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent.parent / "tables"))
from json_data import keys, pointers_of, values

from commonplace.store import SqliteStore, shredding
from commonplace.store.shredding import dumps
from commonplace.store.table_rows import Missing
from commonplace.tables.pointers import parse


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fragments so small that every shape of them occurs."""
    from commonplace.store import table_data

    monkeypatch.setattr(shredding, "FRAGMENT", 24)
    monkeypatch.setattr(table_data, "FRAGMENT", 24)


def at(data: Any, tokens: tuple[str, ...]) -> Any:
    for token in tokens:
        data = data[int(token)] if isinstance(data, list) else data[token]
    return data


@pytest.mark.usefixtures("small")
@settings(max_examples=60, deadline=None)
@given(value=values(40))
def test_a_value_comes_back_at_every_place(sqlite: SqliteStore, value: Any) -> None:
    with sqlite.transaction():
        sqlite.drop_table_data(1)
        sqlite.put_table_value(1, (), value)
        for pointer in pointers_of(value):
            place = parse(pointer)
            assert sqlite.table_text(1, place) == dumps(at(value, place))
            assert dumps(sqlite.table_value(1, place)) == dumps(at(value, place))
            assert sqlite.table_size(1, place) == len(dumps(at(value, place)).encode())
            assert isinstance(sqlite.table_text(1, (*place, "no such key", "x")), Missing)


@st.composite
def changes(draw: st.DrawFn) -> tuple[Any, list[Any]]:
    """A container and changes of it: (what, where, with what), the where by numbers that fit any value."""
    start = draw(st.one_of(st.lists(values(8), max_size=8), st.dictionaries(keys(), values(8), max_size=8)))
    steps = st.tuples(
        st.sampled_from(["put", "add", "append", "remove", "cut"]),
        st.integers(0, 1000),
        st.lists(st.integers(0, 1000), min_size=1, max_size=4),
        st.lists(st.tuples(keys(), values(6)), min_size=1, max_size=3),
    )
    return start, draw(st.lists(steps, max_size=12))


@pytest.mark.usefixtures("small")
@settings(max_examples=100, deadline=None)
@given(made=changes())
def test_changes_leave_what_they_leave_in_plain_python(sqlite: SqliteStore, made: Any) -> None:
    data, steps = copy.deepcopy(made)
    with sqlite.transaction():
        sqlite.drop_table_data(1)
        sqlite.put_table_value(1, (), data)
        for what, where, numbers, new in steps:
            data = change(sqlite, data, what, where, numbers, new)
            text = dumps(data)
            assert sqlite.table_text(1) == text
            assert sqlite.table_size(1) == len(text.encode())
        reached = sqlite._database.reading().execute(
            """with recursive held (id) as (select id from fragments where parent = -1
                 union all select fragments.id from fragments join held on parent = held.id)
               select (select count(*) from held) - (select count(*) from fragments)"""
        )
        assert reached.fetchone() == (0,)
        sqlite.put_table_value(1, (), None)
        assert sqlite.table_text(1) == "null"


def change(store: SqliteStore, data: Any, what: str, where: int, numbers: list[int], new: Any) -> Any:
    """Do the same to a store and to a value."""
    if what == "put":
        places = pointers_of(data)
        place = parse(places[where % len(places)])
        store.put_table_value(1, place, new[0][1])
        if not place:
            return copy.deepcopy(new[0][1])
        holder = at(data, place[:-1])
        holder[int(place[-1]) if isinstance(holder, list) else place[-1]] = copy.deepcopy(new[0][1])
        return data
    wanted = list if what in ("append", "cut") else dict
    places = [place for place in pointers_of(data) if isinstance(at(data, parse(place)), wanted)]
    if not places:
        return data
    place = parse(places[where % len(places)])
    holder = at(data, place)
    if what == "append":
        assert store.append_table_elements(1, place, [value for _, value in new]) == len(holder)
        holder.extend(copy.deepcopy([value for _, value in new]))
    elif what == "add":
        fresh = {key: value for key, value in new if key not in holder}
        if fresh:
            store.add_table_members(1, place, fresh)
            holder.update(copy.deepcopy(fresh))
    elif holder:
        names = sorted({number % len(holder) for number in numbers})
        if what == "cut":
            store.remove_table_elements(1, place, names)
            for number in reversed(names):
                del holder[number]
        else:
            gone = [list(holder)[number] for number in names]
            store.remove_table_members(1, place, gone)
            for key in gone:
                del holder[key]
    return data


def test_one_place_of_a_large_value_touches_few_rows(sqlite: SqliteStore) -> None:
    rows = [{"n": number, "text": f"text {number} " * 20} for number in range(5000)]
    sqlite.put_table_value(1, (), {"rows": rows})
    db = sqlite._database.reading()
    before = dict(db.execute("select id, text from fragments"))
    assert max(len(text or "") for text in before.values()) < 3 * shredding.FRAGMENT
    sqlite.put_table_value(1, ("rows", "4321", "text"), "another")
    after = dict(db.execute("select id, text from fragments"))
    assert len(set(before.items()) ^ set(after.items())) <= 4
    assert sqlite.table_value(1, ("rows", "4321")) == {"n": 4321, "text": "another"}
    assert json.loads(str(sqlite.table_text(1)))["rows"][4320] == rows[4320]


def test_other_tables_are_left_alone(sqlite: SqliteStore) -> None:
    sqlite.put_table_value(1, (), [1])
    sqlite.put_table_value(2, (), [2])
    sqlite.drop_table_data(1)
    assert sqlite.table_text(2) == "[2]"
