"""Tables in `export` and `import_`: projects, data, tools, instances and what is bound to them, but no keys."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from table_calls import Calls

from commonplace.errors import InvalidInput
from commonplace.kinds.tables.drawer import InstanceDrawer, TableDrawer
from commonplace.library import Library
from commonplace.model import Draft, Filter
from opening import open_library

_DATA = {
    "items": [{"name": "oolong", "price": 7.5, "note": "roasted twice " * 40}, {"name": "sencha", "price": 10**400}],
    "b": {"\0é": "\u2028", "": None, "a/b~c": -0.0},
    "a": [True, [], {}],
}


@pytest.fixture
def elsewhere(backend: str, tmp_path: Path) -> Iterator[Library]:
    with open_library(backend, tmp_path / "elsewhere") as other:
        yield other


@pytest.fixture
def shop(calls: Calls) -> str:
    """A table with tools at two instances; returns the key of one."""
    calls("project_create", name="p", description="what we sell")
    calls.table(_DATA, name="stock", description="of tea", searchable=False)
    calls.table(None, name="empty")
    calls.tool("search", at="/items", name="find", table="stock")
    calls.tool("create", at="/items", name="add", table="stock")
    calls("table_update", table_id="stock", json_path="/items/0/price", data=8)
    calls("instance_create", name="closed", description="not yet", tool_ids=["find"])
    calls("instance_update", instance_id="closed", status="disabled")
    key = calls("instance_create", name="front", tool_ids=["find"])["api_key"]
    calls("instance_bind", instance_id="front", tool_ids=["add"], status="disabled")
    calls.library.put(Draft("note", "tea", body="Oolong."))
    return str(key)


def _told(calls: Calls) -> Any:
    """All that can be listed, but hints of keys and the states of indexes."""
    tools = calls("tool_list")["tools"]
    for tool in tools:
        tool["metadata"].pop("search_index", None)
    instances = calls("instance_list")["instances"]
    for instance in instances:
        del instance["key_hint"]
    return calls("project_list"), calls("table_list"), tools, instances


def test_tables_come_along_whole_and_are_exported_again_the_same(shop: str, calls: Calls, elsewhere: Library) -> None:
    lines = list(calls.library.export())
    assert elsewhere.import_(lines) == len(lines) == 6  # a note, a project, two tables, two instances
    there = Calls(elsewhere)
    assert _told(there) == _told(calls)
    assert json.dumps(there.data("stock")) == json.dumps(calls.data("stock"))
    assert list(elsewhere.export()) == lines
    assert elsewhere.import_(lines) == len(lines)  # a second time changes nothing
    assert list(elsewhere.export()) == lines
    assert elsewhere.doctor() == []


def test_what_came_along_is_indexed_and_its_tools_work(shop: str, calls: Calls, elsewhere: Library) -> None:
    elsewhere.import_(calls.library.export())
    there = Calls(elsewhere)
    there.settle()
    assert there.hits("roasted", "find")[0]["json_path"] == "/0/note"
    assert there("search_status")["tools"][0]["search_index"]["status"] == "ready"
    assert "error" not in there.run("add", elements=[{"content": {"name": "gyokuro"}}])
    assert len(there.data("stock", "/items")) == 3


def test_keys_stay_at_home(shop: str, calls: Calls, elsewhere: Library) -> None:
    text = "\n".join(calls.library.export())
    secret, digest = shop.rpartition("_")[2], calls.library.tables.instances.find("front").digest
    assert secret not in text
    assert digest.hex() not in text
    assert "digest" not in text
    elsewhere.import_(text.split("\n"))
    there = elsewhere.tables.instances
    assert there.admitted("front", shop) is None
    assert [one.hint for one in elsewhere.store.drawer(InstanceDrawer).instances()] == ["", ""]
    _, key = there.update(there.find("front"), {"rotate_key": True})
    assert key is not None
    assert there.admitted("front", key)
    elsewhere.import_(text.split("\n"))
    assert there.admitted("front", key), "a key that is here goes on working"


def test_a_table_that_is_here_is_brought_up_to_the_exported_one(shop: str, calls: Calls) -> None:
    before, data, lines = _told(calls), json.dumps(calls.data("stock")), list(calls.library.export())
    calls("table_update", table_id="stock", name="wares", data={"items": [1]}, searchable=True)
    calls("tool_update", tool_id="find", name="seek", json_path="")
    calls("tool_delete", tool_id="add")
    calls("instance_update", instance_id="closed", status="enabled")
    calls.library.import_(lines)
    after = _told(calls)
    assert json.dumps(calls.data("stock")) == data
    assert after[0] == before[0]
    assert after[3] == before[3]
    assert [(tool["tool_id"], tool["json_path"], tool["name"]) for tool in after[2]] == [
        (tool["tool_id"], tool["json_path"], tool["name"]) for tool in before[2]
    ]
    assert calls.library.tables.table("stock").version == 4


def test_a_name_that_is_something_elses_here_stops_the_import_and_that_stays(
    shop: str, calls: Calls, elsewhere: Library
) -> None:
    there = Calls(elsewhere)
    there.table({"ours": 1})
    with pytest.raises(InvalidInput, match=r'already a project "p".* 1 items before it were imported'):
        elsewhere.import_(calls.library.export())
    assert there.data("t") == {"ours": 1}
    assert there("instance_list")["instances"] == []


def test_a_search_of_some_kinds_exports_no_tables(shop: str, calls: Calls) -> None:
    assert [json.loads(line)["kind"] for line in calls.library.export(Filter(kinds=("note",)))] == ["note"]


_TABLE = {"kind": "table", "id": "t1", "project": "p1", "name": "t", "data": {"a": 1}}
_TOOL = {"id": "x1", "json_path": "/a", "type": "get_all_data", "name": "all"}


@pytest.mark.parametrize(
    "bad",
    [
        {"kind": "project"},
        {"kind": "project", "id": "p\0", "name": "q"},
        {"kind": "project", "id": ["p2"], "name": "q"},
        {"kind": "project", "id": "p2", "name": "\n"},
        {"kind": "project", "id": "p2", "name": 5},
        {"kind": "project", "id": "p2", "name": "q", "created_at": "x"},
        {"kind": "project", "id": "p2", "name": "q", "created_at": 10**30},
        _TABLE | {"project": "nowhere"},
        _TABLE | {"data": {"a": float("nan")}},
        _TABLE | {"data": "\ud800"},
        _TABLE | {"searchable": "yes"},
        _TABLE | {"version": -1},
        _TABLE | {"tools": [5]},
        _TABLE | {"tools": [_TOOL | {"type": "drop"}]},
        _TABLE | {"tools": [_TOOL | {"json_path": "a"}]},
        _TABLE | {"tools": [_TOOL | {"name": "a b"}]},
        _TABLE | {"tools": [_TOOL | {"metadata": {"search_index": {}}}]},
        _TABLE | {"tools": [_TOOL | {"id": "taken"}]},
        {"kind": "instance", "id": "i1", "name": "Front"},
        {"kind": "instance", "id": "i1", "name": "front", "tools": [["nothing", True]]},
        {"kind": "instance", "id": "i1", "name": "front", "tools": ["taken"]},
        {"kind": "instance", "id": "i1", "name": "front", "enabled": 1},
    ],
)
def test_a_line_that_is_no_part_of_a_table_is_named_and_leaves_nothing(bad: dict[str, Any], library: Library) -> None:
    taken = _TOOL | {"id": "taken", "json_path": ""}
    good = [{"kind": "project", "id": "p1", "name": "p"}, _TABLE | {"id": "t0", "name": "other", "tools": [taken]}]
    library.import_(map(json.dumps, good))
    before = list(library.export())
    with pytest.raises(InvalidInput, match=r"^Line 1 is no exported item: .*[^.]\. 0 items before it were imported\.$"):
        library.import_([json.dumps(bad)])
    assert list(library.export()) == before


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"created_at": 10**18}, "created_at is no number that can be kept"),
        ({"id": "A" * 20}, "its id is none"),
        ({"tools": None}, "its tools are no list"),
        ({"tools": [7]}, "a tool of it is no object"),
        ({"tools": [{"id": "x", "type": "search", "json_path": "", "name": "x", "metadata": []}]}, "is no object"),
    ],
    ids=str,
)
def test_a_line_that_cannot_be_kept_says_why_in_our_words(
    change: dict[str, Any], reason: str, calls: Calls, elsewhere: Library
) -> None:
    calls.table({"a": 1})
    project, table = map(json.loads, calls.library.export())
    with pytest.raises(InvalidInput, match=rf"^Line 2 .*{reason}.* 1 items before it were imported"):
        elsewhere.import_([json.dumps(project), json.dumps(table | change)])
    assert elsewhere.store.drawer(TableDrawer).tables(project["id"]) == []


def test_a_key_that_is_there_twice_is_refused(calls: Calls, elsewhere: Library) -> None:
    calls.table({"a": 1})
    project, table = calls.library.export()
    with pytest.raises(InvalidInput, match=r"Line 2 .*twice"):
        elsewhere.import_([project, table.replace('{"a":', '{"a": 0, "a":')])


def test_a_tool_goes_back_to_where_it_was_though_the_place_is_gone(calls: Calls) -> None:
    calls.table({"items": [1], "b": 2})
    calls.tool("get_all_data", at="/items", name="all", table="t")
    calls("table_update", table_id="t", data={"b": 2})
    lines = list(calls.library.export())
    calls("tool_update", tool_id="all", json_path="/b")
    calls.library.import_(lines)
    assert calls("tool_list")["tools"][0]["json_path"] == "/items"
