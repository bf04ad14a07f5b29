"""Keys and cursors that fit nothing any more: what is indexed goes on, from the start where it must."""

from __future__ import annotations

from typing import Any

import pytest
from table_calls import Calls, check_hit

from commonplace.kinds.tables.data_drawer import DataDrawer
from commonplace.kinds.tables.indexing import Walk
from commonplace.kinds.tables.node_drawer import JobDrawer, NodeDrawer
from commonplace.kinds.tables.nodes import ChunkSizes, Rules
from commonplace.kinds.tables.pointers import parse, render, tokens
from commonplace.store.items import Items

SHORT = [{"name": f"row {number}"} for number in range(5)]
LONG = [{"name": f"row {number}", "text": "words " * 300} for number in range(30)]
HUGE = "9" * 5000


@pytest.mark.parametrize("rows", [SHORT, LONG], ids=["short", "long"])
@pytest.mark.parametrize("key", ["x", "-", "01", HUGE])
def test_a_cursor_of_an_object_begins_a_list_anew(calls: Calls, rows: list[Any], key: str) -> None:
    calls.table({"a": rows}, searchable=False)
    calls.tool("search", "/a")
    store = calls.library.store
    table = calls.library.tables.table("t")
    (dirty,) = store.drawer(NodeDrawer).dirty_of(table.number)
    store.drawer(NodeDrawer).change_dirty(dirty._replace(cursor=render(("a", key, "y"))))
    calls.settle()
    assert (store.drawer(JobDrawer).jobs(), store.drawer(NodeDrawer).dirty_of(table.number)) == ([], [])
    walk = Walk(store.drawer(DataDrawer), table.number, Rules(ChunkSizes()))
    expected = {render(node.tokens) for node in walk.nodes(("a",))}
    held = store.drawer(Items).get(store.drawer(NodeDrawer).nodes_at(table.id, 1, "/a").items.tolist())
    assert {item.fields["pointer"] for item in held} == expected
    again = walk.nodes(("a",), after=("a", key, "y"))
    assert [node.tokens for node in again if len(node.tokens) > 1] == [
        node.tokens for node in walk.nodes(("a",)) if len(node.tokens) > 1
    ]


def test_a_key_that_looks_like_an_index_without_end_hinders_no_deletion(
    calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    from commonplace.kinds.tables import indexing

    calls.table({"a": {HUGE: {"name": "old words"}}})
    monkeypatch.setattr(indexing, "AT_ONCE_BYTES", -1)
    calls("table_update", table_id="t", data=SHORT, json_path="/a")
    monkeypatch.undo()
    calls.tool("delete", "/a")
    assert calls.run("delete", keys=[0])["version"] == 3
    calls.tool("search")
    calls.settle()
    assert calls.hits("old words row 3")[0]["json_path"] == "/a/2"


def test_a_key_that_is_a_dash_is_indexed_found_and_changed_like_any_other(calls: Calls) -> None:
    data: Any = {"-": {"-": "a short text", "list": [{"-": "deep words"}]}}
    calls.table(data)
    calls.tool("search")
    calls.tool("update")
    calls.settle()
    for query, place in (("short text", "/-"), ("deep words", "/-/list/0")):
        hit = calls.hits(query)[0]
        assert hit["json_path"] == place
        check_hit(data, hit, "")
    calls.run("update", updates=[{"key": "-", "content": {"-": "another text"}}])
    assert [hit["chunk"]["chunk_text"] for hit in calls.hits("text")] == ["-: another text"]
    assert "error" in calls("tool_create", table_id="t", type="search", name="dash", json_path="/-")


def test_work_left_at_a_dash_is_done_by_a_job(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    from commonplace.kinds.tables import indexing

    calls.table({"a": 1}, searchable=True)
    calls.tool("create")
    calls.tool("search")
    calls.settle()
    monkeypatch.setattr(indexing, "AT_ONCE_BYTES", -1)
    calls.run("create", elements=[{"key": "-", "content": {"x": "words of a dash"}}])
    assert calls.hits("dash")[0]["json_path"] == "/-"
    assert calls("search_status", tool_id="search")["tools"][0]["search_index"]["status"] in ("indexing", "ready")
    calls.settle()
    assert calls.library.store.drawer(JobDrawer).jobs() == []


def test_every_stored_pointer_is_read_without_asking_whether_one_may_say_it() -> None:
    assert tokens("/-/a~1b/~01") == ("-", "a/b", "~1")
    assert tokens("") == ()
    assert tokens("/") == parse("/") == ("",)


@pytest.mark.parametrize("key", ["~n", "a~nb", "~0n", "~", "a/b", "\0", "~n\0~0", "plain"])
@pytest.mark.parametrize("value", ["words to find", "words \0 to find"], ids=["plain", "with U+0000"])
def test_members_are_named_by_their_own_keys(calls: Calls, key: str, value: str) -> None:
    data = {key: value, "other": 5}
    calls.table(data)
    calls.tool("search")
    (hit,) = calls.hits("words to find")
    check_hit(data, hit, "")
    assert [member["json_pointer"] for member in hit["chunk"]["members"]] == [render((key,)), "/other"]


def indexed(calls: Calls, table: str) -> set[tuple[str, str]]:
    """Every place of a table that is indexed, and what of it."""
    row, store = calls.library.tables.table(table), calls.library.store
    ids = store.drawer(NodeDrawer).nodes_at(row.id, row.generation, "").items.tolist()
    return {(str(item.fields["pointer"]), item.body or "") for item in store.drawer(Items).get(ids, body=True)}


def long_list(calls: Calls) -> list[Any]:
    rows: list[Any] = [{"name": f"row {n}", "in": {"words": f"more of row {n} " * 40}} for n in range(600)]
    calls.table({"rows": rows}, searchable=True)
    for kind in ("create", "delete", "search"):
        calls.tool(kind, "/rows")
    calls.settle()
    return rows


def test_the_end_of_a_long_list_is_indexed_at_once_however_long_it_is(calls: Calls) -> None:
    rows = long_list(calls)
    table = calls.library.tables.table("t")
    assert table.size > 256 * 1024
    calls.run("create", elements=[{"content": {"name": "the newest of all"}}])
    assert calls.library.store.drawer(NodeDrawer).dirty_of(table.number) == []
    assert calls.hits("newest of all")[0]["json_path"] == "/600"
    calls.run("delete", keys=[600, 590])
    assert calls.library.store.drawer(NodeDrawer).dirty_of(table.number) == []
    del rows[590]
    calls.table({"rows": rows}, "same", searchable=True)
    calls.settle()
    assert indexed(calls, "t") == indexed(calls, "same")


def test_what_stands_before_a_change_in_a_long_list_is_not_looked_at_again(
    calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    from commonplace.kinds.tables import indexing

    rows = long_list(calls)
    looked_at: list[tuple[str, ...]] = []
    node_at = indexing.Walk.node_at

    def noting(walk: indexing.Walk, place: tuple[str, ...]) -> Any:
        looked_at.append(place)
        return node_at(walk, place)

    monkeypatch.setattr(indexing, "AT_ONCE_BYTES", -1)
    monkeypatch.setattr(indexing.Walk, "node_at", noting)
    calls.run("delete", keys=[500])
    calls.settle()
    assert {int(place[1]) for place in looked_at if len(place) > 1} == set(range(500, 600))
    monkeypatch.undo()
    del rows[500]
    calls.table({"rows": rows}, "same", searchable=True)
    calls.settle()
    assert indexed(calls, "t") == indexed(calls, "same")
