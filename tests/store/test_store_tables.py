"""The store's tables: data in fragments is the value it stands for, whatever was done to it, and by whichever pieces.

1. A value comes back exactly, whole and at every place.
2. Any sequence of changes leaves what the same changes leave in plain Python.
3. Sizes are those of the JSON; nothing is left behind.
4. A place is read, and changed, without the rest.
5. A job is one holder's at a time, and not done while there is something to do.
"""

from __future__ import annotations

import copy
import json
import random
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent.parent / "kinds" / "tables"))
from json_data import keys, pointers_of, values

from commonplace.ingest.prepare import prepare
from commonplace.kinds.tables.pointers import tokens
from commonplace.model import Draft
from commonplace.store import shredding
from commonplace.store.items import Items
from commonplace.store.shredding import dumps
from commonplace.store.table_rows import Missing
from opening import rows
from table_parts import fill_tables


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fragments so small that every shape of them occurs."""
    from commonplace.store.sqlite import table_data

    monkeypatch.setattr(shredding, "FRAGMENT", 24)
    monkeypatch.setattr(table_data, "FRAGMENT", 24)


def at(data: Any, tokens: tuple[str, ...]) -> Any:
    for token in tokens:
        data = data[int(token)] if isinstance(data, list) else data[token]
    return data


@pytest.mark.usefixtures("small")
@settings(max_examples=60, deadline=None)
@given(value=values(40))
def test_a_value_comes_back_at_every_place(store: Any, value: Any) -> None:
    with store.transaction():
        store.drop_table(1)
        store.put_table_value(1, (), value)
        for pointer in pointers_of(value):
            place = tokens(pointer)
            assert store.table_text(1, place) == dumps(at(value, place))
            assert dumps(store.table_value(1, place)) == dumps(at(value, place))
            assert store.table_size(1, place) == len(dumps(at(value, place)).encode())
            assert isinstance(store.table_text(1, (*place, "no such key", "x")), Missing)


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
def test_changes_leave_what_they_leave_in_plain_python(store: Any, made: Any) -> None:
    data, steps = copy.deepcopy(made)
    with store.transaction():
        store.drop_table(1)
        store.put_table_value(1, (), data)
        for what, where, numbers, new in steps:
            data = change(store, data, what, where, numbers, new)
            text = dumps(data)
            assert store.table_text(1) == text
            assert store.table_size(1) == len(text.encode())
        left = rows(
            store,
            """with recursive held (id) as (select id from fragments where parent = -1
                 union all select fragments.id from fragments join held on parent = held.id)
               select (select count(*) from held) - (select count(*) from fragments)""",
        )
        assert left == [(0,)]
        store.put_table_value(1, (), None)
        assert store.table_text(1) == "null"


def change(store: Any, data: Any, what: str, where: int, numbers: list[int], new: Any) -> Any:
    """Do the same to a store and to a value."""
    if what == "put":
        places = pointers_of(data)
        place = tokens(places[where % len(places)])
        store.put_table_value(1, place, new[0][1])
        if not place:
            return copy.deepcopy(new[0][1])
        holder = at(data, place[:-1])
        holder[int(place[-1]) if isinstance(holder, list) else place[-1]] = copy.deepcopy(new[0][1])
        return data
    wanted = list if what in ("append", "cut") else dict
    places = [place for place in pointers_of(data) if isinstance(at(data, tokens(place)), wanted)]
    if not places:
        return data
    place = tokens(places[where % len(places)])
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


def test_one_place_of_a_large_value_touches_few_rows(store: Any) -> None:
    data = [{"n": number, "text": f"text {number} " * 20} for number in range(5000)]
    store.put_table_value(1, (), {"rows": data})
    before = dict(rows(store, "select id, text from fragments"))
    assert max(len(text or "") for text in before.values()) < 3 * shredding.FRAGMENT
    store.put_table_value(1, ("rows", "4321", "text"), "another")
    after = dict(rows(store, "select id, text from fragments"))
    assert len(set(before.items()) ^ set(after.items())) <= 4
    assert store.table_value(1, ("rows", "4321")) == {"n": 4321, "text": "another"}
    assert json.loads(str(store.table_text(1)))["rows"][4320] == data[4320]


def test_other_tables_are_left_alone(store: Any) -> None:
    store.put_table_value(1, (), [1])
    store.put_table_value(2, (), [2])
    store.drop_table(1)
    assert store.table_text(2) == "[2]"


def test_keys_of_any_length_are_kept_and_found(store: Any) -> None:
    noise = random.Random(1)
    long = "x" * 100 + "".join(chr(noise.randrange(0x4E00, 0x9FFF)) for _ in range(4000))
    data = {long + end: {"text": end * 9000} for end in ("a", "b", "\0", "")}
    store.put_table_value(1, (), data)
    for key, value in data.items():
        assert store.table_value(1, (key, "text")) == value["text"]
    store.remove_table_members(1, (), [f"{long}a", f"{long}\0"])
    store.add_table_members(1, (), {f"{long}c": 1, f"{long}\0": 2})
    left = {f"{long}b": data[f"{long}b"], long: data[long], f"{long}c": 1, f"{long}\0": 2}
    assert store.table_text(1) == dumps(left)
    assert store.table_size(1) == len(dumps(left).encode())


def test_what_is_not_searchable_of_no_current_generation_or_to_be_made_anew_is_hidden(store: Any) -> None:
    table = fill_tables(store, 1)  # the first item is inside of a dirty place of the first generation
    fields = ({"generation": 1, "pointer": "/a~nb/rows"}, {"generation": 2, "pointer": "/a~nb/rows"})
    nodes = [prepare(Draft("table", f"/{one['generation']}", parent="t", body="x", fields=one)) for one in fields]
    first, second = (item.id for item in store.drawer(Items).put(nodes))
    assert store.hidden_nodes().tolist() == [first, second]
    for building, leaving, generation, hidden in (
        (None, None, 1, [first]), (2, None, 1, [first, second]), (None, 1, 2, [first]), (None, None, 2, []),
    ):  # fmt: skip
        now = replace(table, searchable=True, building=building, leaving=leaving, generation=generation)
        store.change_table(now)
        assert store.hidden_nodes().tolist() == hidden
        assert store.table("t") == store.numbered_table(table.number) == now


# 5


def test_of_many_that_claim_a_job_one_has_it(store: Any) -> None:
    table = fill_tables(store, 1)
    (job,) = store.table_jobs(table.number)
    with ThreadPoolExecutor(8) as pool:
        claims = list(pool.map(lambda number: store.claim_table_job(job, f"holder {number}", 10.0), range(8)))
    (held,) = [claim for claim in claims if claim is not None]
    assert store.table_jobs() == [held]
    assert store.beat_table_job(held, {"steps": 2}, 10.0)
    assert store.table_jobs()[0].progress == {"steps": 2}
    taken = store.claim_table_job(store.table_jobs()[0], "another holder", 10.0)
    assert not store.beat_table_job(held, {}, 10.0), "it is another's by now"
    assert store.table_jobs() == [taken]


def test_a_job_is_not_done_while_others_add_to_it(store: Any) -> None:
    table = fill_tables(store, 1)
    store.drop_dirty([dirty.id for dirty in store.dirty_of(table.number)])
    held = store.claim_table_job(store.table_jobs()[0], "holder", 10.0)
    begun = Event()

    def finish() -> None:
        begun.set()
        store.finish_table_job(held)

    finishing = Thread(target=finish)
    with store.transaction():
        store.add_dirty(table, 1, "/c")
        finishing.start()
        assert begun.wait(10)
        finishing.join(0.2)
        store.want_job(table.number, "index")
    finishing.join(40)
    assert not finishing.is_alive()
    assert [job.id for job in store.table_jobs()] == [held.id]
    store.drop_dirty([dirty.id for dirty in store.dirty_of(table.number)])
    store.finish_table_job(held)
    assert store.table_jobs() == []
