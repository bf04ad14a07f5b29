"""What is inside a place and what is not, followed by the log, is what the store says when it is asked anew."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from table_calls import Calls

from commonplace.index.words.lexical_reader import LexicalReader
from commonplace.kinds.tables import states
from commonplace.kinds.tables.node_drawer import NodeDrawer
from commonplace.kinds.tables.searching import _scope
from commonplace.kinds.tables.states import NodeScopes
from commonplace.model import Draft, Filter
from commonplace.search.plan import plan_lexical
from commonplace.search.request import parse
from commonplace.store.items import Items
from commonplace.store.listing import Listing

LONG = "The kettle holds its heat for an hour, and the pot for half of one. " * 4


def row(number: int) -> dict[str, Any]:
    return {"id": number, "notes": f"{LONG} row {number}"}


def same(calls: Calls, kept: NodeScopes, place: str) -> None:
    table, store = calls.library.tables.table("t"), calls.library.store
    fresh = store.drawer(NodeDrawer).nodes_at(table.id, table.generation, place)
    nodes = kept.nodes(table, place)
    assert nodes.items.tolist() == fresh.items.tolist()
    assert nodes.chunks.tolist() == fresh.chunks.tolist()
    outside = np.setdiff1d(store.drawer(Listing).select(Filter()), fresh.items).tolist()
    found = kept.around(table, place)[1]
    assert found is None or found.tolist() == outside
    counts = kept.counts(table, place)
    assert (counts.nodes, counts.chunks) == (len(fresh.items), int(fresh.chunks.sum()))


@pytest.mark.parametrize("seed", range(3))
def test_nodes_and_what_is_outside_are_followed_through_any_changes(
    calls: Calls, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(states, "LARGE", 4)
    monkeypatch.setattr(states, "FEW", 6)
    chance = random.Random(seed)
    calls.table({"rows": [row(number) for number in range(6)], "about": LONG})
    for name, type_, at in (("find", "search", ""), ("add", "create", "/rows"), ("remove", "delete", "/rows")):
        calls.tool(type_, at, name=name)
    calls.tool("update", "/rows", name="change")
    calls.settle()
    kept = NodeScopes(calls.library.store, calls.library.embedding)
    for step in range(12):
        match chance.randrange(5):
            case 0:
                calls.run("add", elements=[{"content": row(100 + step)}])
            case 1:
                calls.run("remove", keys=[0])
            case 2:
                calls.run("change", updates=[{"key": 0, "content": row(200 + step)}])
            case 3:
                calls.library.put(Draft("note", f"n{step}", body="A kettle of another kind."))
            case 4:
                calls.library.store.drawer(Items).delete(
                    calls.library.store.drawer(Listing).select(Filter(kinds=("note",))).tolist()[:1]
                )
        calls.settle()
        for place in ("", "/rows", "/about"):
            same(calls, kept, place)


def test_more_than_a_few_outside_are_not_named(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(states, "LARGE", 4)
    monkeypatch.setattr(states, "FEW", 2)
    calls.table({"rows": [row(number) for number in range(6)]})
    calls.tool("search", "/rows")
    calls.settle()
    kept, table = NodeScopes(calls.library.store, calls.library.embedding), calls.library.tables.table("t")
    assert kept.around(table, "/rows")[1] is not None
    for number in range(3):
        calls.library.put(Draft("note", f"n{number}", body="A kettle."))
    assert kept.around(table, "/rows")[1] is None
    assert kept.around(table, "/rows/0")[1] is None  # too small to be worth while


@pytest.mark.parametrize("notes", [0, 3, 40])
def test_a_place_that_is_most_of_a_library_gives_the_same_passages_either_way(calls: Calls, notes: int) -> None:
    calls.table({"rows": [row(number) for number in range(12)], "else": LONG * 10})
    calls.tool("search", "/rows")
    calls.settle()
    for number in range(notes):
        calls.library.put(Draft("note", f"n{number}", body=f"{LONG} The kettle of note {number}."))
    table = calls.library.tables.table("t")
    items = calls.library.store.drawer(NodeDrawer).nodes_at(table.id, table.generation, "/rows").items
    known = _scope(table, "/rows", items)

    def compare(words: Any) -> None:
        if not isinstance(words, LexicalReader):
            pytest.skip("only the local index has a choice")
        for query in ("kettle", "row 7", '"heat for an hour"', "kettle -pot", "hour nothing"):
            plan = plan_lexical(parse(query), words)
            for depth in (1, 5, 50):
                by_fields = words.search(plan.query, depth, replace(known, known=None))
                found = words.search(plan.query, depth, known)
                assert found[0].tolist() == by_fields[0].tolist()
                assert found[1] == pytest.approx(by_fields[1], rel=1e-5)

    calls.library.lexical.ask(compare)
