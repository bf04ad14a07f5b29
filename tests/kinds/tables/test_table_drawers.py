"""The store's tables: data in fragments is the value it stands for, whatever was done to it, and by whichever pieces.

1. A value comes back exactly, whole and at every place.
2. Any sequence of changes leaves what the same changes leave in plain Python.
3. Sizes are those of the JSON; nothing is left behind.
4. A place is read, and changed, without the rest.
5. A job is one holder's at a time, and not done while there is something to do.
6. Every statement finds what it needs by an index, and a server is waited for no more often than it has to be.
"""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Event, Thread
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from json_data import keys, pointers_of, values

from commonplace.ingest.prepare import prepare
from commonplace.kinds.tables import shredding
from commonplace.kinds.tables.data_drawer import DataDrawer
from commonplace.kinds.tables.drawer import TableDrawer
from commonplace.kinds.tables.node_drawer import JobDrawer, NodeDrawer, hidden_nodes
from commonplace.kinds.tables.pointers import tokens
from commonplace.kinds.tables.rows import Missing
from commonplace.kinds.tables.shredding import dumps
from commonplace.model import Draft
from commonplace.store.items import Items
from commonplace.store.session import NOTHING
from opening import rows
from table_parts import fill_tables


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fragments so small that every shape of them occurs."""
    monkeypatch.setattr(shredding, "FRAGMENT", 24)


def at(data: Any, tokens: tuple[str, ...]) -> Any:
    for token in tokens:
        data = data[int(token)] if isinstance(data, list) else data[token]
    return data


@pytest.mark.usefixtures("small")
@settings(max_examples=60, deadline=None)
@given(value=values(40))
def test_a_value_comes_back_at_every_place(store: Any, value: Any) -> None:
    with store.transaction():
        store.drawer(TableDrawer).drop_table(1)
        store.drawer(DataDrawer).put(1, (), value)
        for pointer in pointers_of(value):
            place = tokens(pointer)
            assert store.drawer(DataDrawer).text(1, place) == dumps(at(value, place))
            assert dumps(store.drawer(DataDrawer).value(1, place)) == dumps(at(value, place))
            assert store.drawer(DataDrawer).size(1, place) == len(dumps(at(value, place)).encode())
            assert isinstance(store.drawer(DataDrawer).text(1, (*place, "no such key", "x")), Missing)


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
        store.drawer(TableDrawer).drop_table(1)
        store.drawer(DataDrawer).put(1, (), data)
        for what, where, numbers, new in steps:
            data = change(store, data, what, where, numbers, new)
            text = dumps(data)
            assert store.drawer(DataDrawer).text(1) == text
            assert store.drawer(DataDrawer).size(1) == len(text.encode())
        left = rows(
            store,
            """with recursive held (id) as (select id from fragments where parent = -1
                 union all select fragments.id from fragments join held on parent = held.id)
               select (select count(*) from held) - (select count(*) from fragments)""",
        )
        assert left == [(0,)]
        store.drawer(DataDrawer).put(1, (), None)
        assert store.drawer(DataDrawer).text(1) == "null"


def change(store: Any, data: Any, what: str, where: int, numbers: list[int], new: Any) -> Any:
    """Do the same to a store and to a value."""
    if what == "put":
        places = pointers_of(data)
        place = tokens(places[where % len(places)])
        store.drawer(DataDrawer).put(1, place, new[0][1])
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
        assert store.drawer(DataDrawer).append(1, place, [value for _, value in new]) == len(holder)
        holder.extend(copy.deepcopy([value for _, value in new]))
    elif what == "add":
        fresh = {key: value for key, value in new if key not in holder}
        if fresh:
            store.drawer(DataDrawer).add_members(1, place, fresh)
            holder.update(copy.deepcopy(fresh))
    elif holder:
        names = sorted({number % len(holder) for number in numbers})
        if what == "cut":
            store.drawer(DataDrawer).remove_elements(1, place, names)
            for number in reversed(names):
                del holder[number]
        else:
            gone = [list(holder)[number] for number in names]
            store.drawer(DataDrawer).remove_members(1, place, gone)
            for key in gone:
                del holder[key]
    return data


def test_one_place_of_a_large_value_touches_few_rows(store: Any) -> None:
    data = [{"n": number, "text": f"text {number} " * 20} for number in range(5000)]
    store.drawer(DataDrawer).put(1, (), {"rows": data})
    before = dict(rows(store, "select id, text from fragments"))
    assert max(len(text or "") for text in before.values()) < 3 * shredding.FRAGMENT
    store.drawer(DataDrawer).put(1, ("rows", "4321", "text"), "another")
    after = dict(rows(store, "select id, text from fragments"))
    assert len(set(before.items()) ^ set(after.items())) <= 4
    assert store.drawer(DataDrawer).value(1, ("rows", "4321")) == {"n": 4321, "text": "another"}
    assert json.loads(str(store.drawer(DataDrawer).text(1)))["rows"][4320] == data[4320]


def test_other_tables_are_left_alone(store: Any) -> None:
    store.drawer(DataDrawer).put(1, (), [1])
    store.drawer(DataDrawer).put(2, (), [2])
    store.drawer(TableDrawer).drop_table(1)
    assert store.drawer(DataDrawer).text(2) == "[2]"


def test_keys_of_any_length_are_kept_and_found(store: Any) -> None:
    noise = random.Random(1)
    long = "x" * 100 + "".join(chr(noise.randrange(0x4E00, 0x9FFF)) for _ in range(4000))
    data = {long + end: {"text": end * 9000} for end in ("a", "b", "\0", "")}
    store.drawer(DataDrawer).put(1, (), data)
    for key, value in data.items():
        assert store.drawer(DataDrawer).value(1, (key, "text")) == value["text"]
    store.drawer(DataDrawer).remove_members(1, (), [f"{long}a", f"{long}\0"])
    store.drawer(DataDrawer).add_members(1, (), {f"{long}c": 1, f"{long}\0": 2})
    left = {f"{long}b": data[f"{long}b"], long: data[long], f"{long}c": 1, f"{long}\0": 2}
    assert store.drawer(DataDrawer).text(1) == dumps(left)
    assert store.drawer(DataDrawer).size(1) == len(dumps(left).encode())


def test_what_is_not_searchable_of_no_current_generation_or_to_be_made_anew_is_hidden(store: Any) -> None:
    table = fill_tables(store, 1)  # the first item is inside of a dirty place of the first generation
    fields = ({"generation": 1, "pointer": "/a~nb/rows"}, {"generation": 2, "pointer": "/a~nb/rows"})
    nodes = [prepare(Draft("table", f"/{one['generation']}", parent="t", body="x", fields=one)) for one in fields]
    first, second = (item.id for item in store.drawer(Items).put(nodes))
    assert hidden_nodes(store, store.drawer(TableDrawer).state()).tolist() == [first, second]
    for building, leaving, generation, hidden in (
        (None, None, 1, [first]), (2, None, 1, [first, second]), (None, 1, 2, [first]), (None, None, 2, []),
    ):  # fmt: skip
        now = replace(table, searchable=True, building=building, leaving=leaving, generation=generation)
        store.drawer(TableDrawer).change_table(now)
        assert hidden_nodes(store, store.drawer(TableDrawer).state()).tolist() == hidden
        assert store.drawer(TableDrawer).table("t") == store.drawer(TableDrawer).numbered_table(table.number) == now


# 5


def test_of_many_that_claim_a_job_one_has_it(store: Any) -> None:
    table = fill_tables(store, 1)
    (job,) = store.drawer(JobDrawer).jobs(table.number)
    with ThreadPoolExecutor(8) as pool:
        claims = list(pool.map(lambda number: store.drawer(JobDrawer).claim(job, f"holder {number}", 10.0), range(8)))
    (held,) = [claim for claim in claims if claim is not None]
    assert store.drawer(JobDrawer).jobs() == [held]
    assert store.drawer(JobDrawer).beat(held, {"steps": 2}, 10.0)
    assert store.drawer(JobDrawer).jobs()[0].progress == {"steps": 2}
    taken = store.drawer(JobDrawer).claim(store.drawer(JobDrawer).jobs()[0], "another holder", 10.0)
    assert not store.drawer(JobDrawer).beat(held, {}, 10.0), "it is another's by now"
    assert store.drawer(JobDrawer).jobs() == [taken]


def test_a_job_is_not_done_while_others_add_to_it(store: Any) -> None:
    table = fill_tables(store, 1)
    store.drawer(NodeDrawer).drop_dirty([dirty.id for dirty in store.drawer(NodeDrawer).dirty_of(table.number)])
    held = store.drawer(JobDrawer).claim(store.drawer(JobDrawer).jobs()[0], "holder", 10.0)
    begun = Event()

    def finish() -> None:
        begun.set()
        store.drawer(JobDrawer).finish(held)

    finishing = Thread(target=finish)
    with store.transaction():
        store.drawer(NodeDrawer).add_dirty(table, 1, "/c")
        finishing.start()
        assert begun.wait(10)
        finishing.join(0.2)
        store.drawer(JobDrawer).want(table.number, "index")
    finishing.join(40)
    assert not finishing.is_alive()
    assert [job.id for job in store.drawer(JobDrawer).jobs()] == [held.id]
    store.drawer(NodeDrawer).drop_dirty([dirty.id for dirty in store.drawer(NodeDrawer).dirty_of(table.number)])
    store.drawer(JobDrawer).finish(held)
    assert store.drawer(JobDrawer).jobs() == []


# 6

_WALKED = re.compile(r"(?:SCAN|Seq Scan on) (fragments|node_places|items|chunks|embeddings)\b")


def exercise(store: Any, item_id: int) -> None:
    """Use every method that reads or changes what there is much of."""
    data, nodes = store.drawer(DataDrawer), store.drawer(NodeDrawer)
    table = fill_tables(store, item_id)
    number = table.number
    with store.transaction():
        data.add_members(number, (), {"list": [{"text": f"row {n} " * 900} for n in range(4)] + [{"n": 1}] * 2000})
        data.append(number, ("list",), [{"n": 2}, {"text": "long " * 3000}])
        data.put(number, ("list", "2", "text"), "another")
        data.remove_elements(number, ("list",), [0, 7])
        data.remove_members(number, (), ["c"])
        data.put(number, ("list", "1"), None)
    fragment, _ = data.fragment_at(number, ())
    assert data.fragment_with(fragment.id, "list")
    assert data.fragments_in(fragment.id)
    assert data.text(number)
    assert data.shape(number, ("list",)) == ("list", 2004)
    assert nodes.nodes_at("t", 1, "").items.tolist() == [item_id]
    assert nodes.nodes_at("t", 1, "", [item_id, 99]).items.tolist() == [item_id]
    assert nodes.node_ids("t", 1, "", after=0, upto=99, limit=9) == [item_id]
    assert nodes.passages("t", [item_id << 20]) == []
    assert nodes.embedded(1, "t", 1, "") == 0
    assert hidden_nodes(store, store.drawer(TableDrawer).state()).tolist() == []


def test_no_statement_about_a_table_walks_all_there_is(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    item = store.drawer(Items).put([prepare(Draft("note", "n", body="x"))])[0]
    session = type(store.session)
    told: dict[str, dict[str, Any]] = {}
    with monkeypatch.context() as patch:
        for name in ("all", "row", "run"):
            patch.setattr(session, name, _recorded(getattr(session, name), told))
        exercise(store, item.id)
    assert len(told) > 25
    walked = {query: plan for query, values in told.items() if _WALKED.search(plan := explained(store, query, values))}
    assert not walked, "\n\n".join(f"{query}\n{plan}" for query, plan in walked.items())


def _recorded(method: Callable[..., Any], told: dict[str, Any]) -> Callable[..., Any]:
    def call(session: Any, query: Any, values: Any = NOTHING) -> Any:
        told[query if isinstance(query, str) else session.tuned(query)] = values
        return method(session, query, values)

    return call


def explained(store: Any, query: str, values: Any) -> str:
    """The plan of a statement, on PostgreSQL by an index wherever one serves."""
    session = store.session
    if session.dialect == "sqlite":
        return "\n".join(str(row[3]) for row in session.all(f"explain query plan {query}", values))
    with store.transaction():
        session.run("set local enable_seqscan = off")
        return "\n".join(str(row[0]) for row in session.all(f"explain {query}", values))


@pytest.mark.parametrize("backend", ["postgres"], indirect=True)
def test_a_call_waits_for_the_server_no_more_often_than_it_has_to(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    data, nodes, number = store.drawer(DataDrawer), store.drawer(NodeDrawer), fill_tables(store, 1).number
    table = store.drawer(TableDrawer).numbered_table(number)
    data.put(number, ("c",), [{"text": f"row {n} " * 900} for n in range(4)] + [{"n": 1}] * 2000)
    session, waited = type(store.session), [0]
    with monkeypatch.context() as patch:
        for name in ("all", "row"):
            patch.setattr(session, name, _counted(getattr(session, name), waited))
        calls: dict[str, Callable[[], Any]] = {
            "text of a place": lambda: data.text(number, ("c", "2", "text")),
            "whole text, three levels deep": lambda: data.text(number),
            "shape": lambda: data.shape(number, ("c",)),
            "put": lambda: data.put(number, ("c", "3"), {"n": ["x" * 9000] * 3}),
            "append": lambda: data.append(number, ("c",), [1, 2]),
            "remove_elements": lambda: data.remove_elements(number, ("c",), [0, 5]),
            "add_members": lambda: data.add_members(number, (), {"new": 1}),
            "remove_members": lambda: data.remove_members(number, (), ["new"]),
            "place_nodes": lambda: nodes.place_nodes(table, 1, [(1, "/a/b/c")]),
            "nodes_at": lambda: nodes.nodes_at("t", 1, ""),
            "add_dirty": lambda: nodes.add_dirty(table, 1, "/c"),
            "want": lambda: store.drawer(JobDrawer).want(number, "index"),
            "hidden": lambda: hidden_nodes(store, 1),
            "hidden again": lambda: hidden_nodes(store, 1),
        }
        waits = {}
        for name, call in calls.items():
            waited[0] = 0
            call()
            waits[name] = waited[0]
    assert waits == {
        "text of a place": 1, "whole text, three levels deep": 4, "shape": 2, "put": 1, "append": 2,
        "remove_elements": 2, "add_members": 2, "remove_members": 3, "place_nodes": 0, "nodes_at": 1, "add_dirty": 0,
        "want": 1, "hidden": 3, "hidden again": 2,
    }  # fmt: skip


def _counted(method: Callable[..., Any], waited: list[int]) -> Callable[..., Any]:
    def call(session: Any, query: Any, values: Any = NOTHING) -> Any:
        waited[0] += 1
        return method(session, query, values)

    return call
