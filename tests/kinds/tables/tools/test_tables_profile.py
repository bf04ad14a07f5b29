"""The tables profile: its tools, what they show, and what they refuse."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

sys.path.insert(0, str(Path(__file__).parents[1]))
from table_calls import TOOLS, Calls, code, refused

from commonplace.kinds.tables.drawer import TableDrawer
from commonplace.kinds.tables.tools.types import TYPES
from commonplace.library import Library
from commonplace.profiles.registry import profile
from commonplace.tools.profile import Registry
from opening import INDEXES, serving_index

NAMES = [
    "project_create",
    "project_list",
    "project_delete",
    "table_create",
    "table_get",
    "table_list",
    "table_update",
    "table_import",
    "table_delete",
    "tool_create",
    "tool_update",
    "tool_delete",
    "tool_list",
    "instance_create",
    "instance_update",
    "instance_delete",
    "instance_list",
    "instance_bind",
    "instance_unbind",
    "search_reindex",
    "search_status",
    "search_cleanup",
]
ID = re.compile(r"[a-z0-9]{1,26}")


@pytest.fixture(scope="module", autouse=True, params=INDEXES)
def index(request: pytest.FixtureRequest) -> Iterator[str]:
    with serving_index(request.param):
        yield str(request.param)


@pytest.fixture
def calls(library: Library) -> Calls:
    return Calls(library)


def test_there_are_the_tools_of_the_contract_and_those_that_write_are_hidden() -> None:
    assert list(TOOLS) == NAMES
    listed = {tool.name for tool in Registry(profile("tables"), writable=False).tools}
    assert listed == {"project_list", "table_get", "table_list", "tool_list", "instance_list", "search_status"}
    assert len(TYPES) == 9
    for type in TYPES.values():
        assert type.input["additionalProperties"] is False
        assert type.annotations["openWorldHint"] is False
    assert TYPES["delete"].annotations["destructiveHint"]
    assert not TYPES["create"].annotations["destructiveHint"]
    assert TYPES["search"].input["properties"]["top_k"] == {
        "type": "integer", "description": "How many passages.", "default": 5, "minimum": 1, "maximum": 20,
    }  # fmt: skip


def test_projects_and_tables_are_found_by_id_and_by_name(calls: Calls) -> None:
    project = calls("project_create", name="shop", description="what we sell")["project"]
    assert ID.fullmatch(project["project_id"])
    table = calls("table_create", project_id="shop", name="stock", data={"a": [1, 2]})["table"]
    assert table == {
        **table, "project_id": project["project_id"], "name": "stock", "description": "", "searchable": True,
        "version": 1, "size_bytes": 11,
    }  # fmt: skip
    assert calls("table_get", table_id="stock", json_path="/a/1") == {
        "table": table, "json_path": "/a/1", "data": 2, "version": 1,
    }  # fmt: skip
    assert calls("table_get", table_id=table["table_id"])["data"] == {"a": [1, 2]}
    assert calls("table_list", project_id="shop") == {"tables": [table], "total": 1, "has_more": False}
    assert calls("table_list", limit=1, offset=1) == {"tables": [], "total": 1, "has_more": False}
    calls("project_create", name="other")
    calls("table_create", project_id="other", name="stock")
    assert "More than one table" in refused(calls("table_get", table_id="stock"))
    assert code(calls("project_create", name="shop")) == "already_exists"
    assert code(calls("table_create", project_id="shop", name="stock")) == "already_exists"
    assert "Set force" in refused(calls("project_delete", project_id="shop"))
    answer = calls("project_delete", project_id="shop", force=True)
    assert answer == {"deleted": project["project_id"], "tables_deleted": 1}
    assert calls("table_get", table_id="stock")["data"] == {}


@pytest.mark.parametrize(
    ("tool", "arguments", "sentence"),
    [
        ("project_create", {"name": "  "}, "name must be"),
        ("table_get", {"table_id": "t", "json_path": "a"}, "begin with a slash"),
        ("table_get", {"table_id": "t", "json_path": "/a/b/c"}, 'The longest part of it that does is "/a"'),
        ("table_get", {"table_id": "none"}, 'There is no table "none"'),
        ("table_create", {"project_id": "p", "name": "t"}, 'There is already a table "t"'),
        ("table_update", {"table_id": "t", "data": 1, "json_path": "/zzz"}, "does not exist"),
        ("table_update", {"table_id": "t", "name": "u", "json_path": "/a"}, "there is no data"),
        ("table_import", {"table_id": "t", "content": '{"a":1,"a":2}'}, 'the key "a" twice'),
        ("table_import", {"table_id": "t", "content": "[" * 1000 + "]" * 1000}, "nested more than 100 deep"),
        ("table_import", {"table_id": "t", "content": "1" * 5000}, "more than 4300 digits"),
        ("table_import", {"table_id": "t", "content": "a,a\n1,2", "format": "csv"}, 'the column "a" twice'),
        ("table_import", {"table_id": "t", "content": "a\n1,2", "format": "csv"}, "2 fields in line 2"),
        ("table_import", {"table_id": "t", "content": "1\n{", "format": "jsonl"}, "line 2"),
        ("table_import", {"table_id": "t", "content": "[1]", "mode": "append"}, "mode append needs a list"),
        ("table_import", {"table_id": "t", "content": "[1]", "mode": "merge"}, "mode merge needs an object"),
        ("tool_create", {"table_id": "t", "type": "search", "name": "a b"}, "name must be 1 to 64"),
        ("tool_create", {"table_id": "t", "type": "seek", "name": "s"}, "type must be one of"),
        ("tool_create", {"table_id": "t", "type": "search", "name": "s", "json_path": "/no"}, "does not exist"),
        ("tool_create", {"table_id": "t", "type": "search", "name": "s", "metadata": {"search_index": 1}}, "kept by"),
        ("instance_create", {"name": "Front"}, "name must be 1 to 63"),
        ("instance_bind", {"instance_id": "no", "tool_ids": ["x"]}, 'There is no instance "no"'),
        ("search_reindex", {}, "either tool_id or table_id"),
    ],
)
def test_what_is_refused_names_what_is_wrong_and_changes_nothing(
    calls: Calls, tool: str, arguments: Any, sentence: str
) -> None:
    calls.table({"a": [1]})
    state = calls.library.store.drawer(TableDrawer).state()
    assert sentence in refused(calls(tool, **arguments))
    assert calls.library.store.drawer(TableDrawer).state() == state
    assert calls("table_get", table_id="t")["version"] == 1


def test_text_is_imported_in_three_formats_and_three_modes(calls: Calls) -> None:
    calls.table({})

    def bring(content: str, **more: Any) -> int:
        answer = calls("table_import", table_id="t", content=content, **more)
        assert "imported" in answer, answer
        return int(answer["imported"])

    assert bring('\ufeffname,note\ntea,"two\nlines"\nbread', format="csv") == 2
    assert calls.data() == [{"name": "tea", "note": "two\nlines"}, {"name": "bread"}]
    assert bring('\ufeff{"n":1}\n\n[2]\n', format="jsonl", mode="append") == 2
    assert calls.data()[2:] == [{"n": 1}, [2]]
    assert bring('\ufeff{"a":{"x":1,"y":2},"b":[1],"c":"d"}') == 3
    patch = '{"a":{"x":null,"z":{"n":null,"m":1}},"b":{"new":null},"c":null,"e":5}'
    assert bring(patch, mode="merge") == 4
    assert calls.data() == {"a": {"y": 2, "z": {"m": 1}}, "b": {}, "e": 5}
    assert bring("7", json_path="/a/z/m") == 1
    assert calls.data(at="/a") == {"y": 2, "z": {"m": 7}}


def test_the_reading_types_answer_as_the_contract_says(calls: Calls) -> None:
    rows = [{"id": 1, "name": "tea", "tags": []}, {"id": "1", "name": 2.5, "extra": None}, {"id": True}]
    calls.table({"rows": rows, "one": 12})
    for type in ("get_data_schema", "get_all_data", "query_data", "preview", "select"):
        calls.tool(type, "/rows")
    assert calls.run("get_all_data") == {"data": rows, "version": 1}
    assert calls.run("get_data_schema") == {
        "schema": [{"id": "<boolean|integer|string>", "name": "<number|string>", "tags": [], "extra": "<null>"}],
        "meta": {"root_type": "array", "count": 3, "keys_preview": ["id", "name", "tags"]},
    }
    assert calls.run("preview", keys=["name", "id"], limit=2) == {
        "rows": [{"id": 1, "name": "tea"}, {"id": "1", "name": 2.5}],
        "json_paths": ["/0", "/1"], "total": 3, "has_more": True,
    }  # fmt: skip
    assert calls.run("select", field="id", keys=[1]) == {
        "rows": rows[:2], "json_paths": ["/0", "/1"], "total": 2, "has_more": False,
    }  # fmt: skip
    assert calls.run("select", field="id", keys=["true"], offset=0)["rows"] == [rows[2]]
    assert calls.run("select", field="tags", keys=["[]"])["rows"] == []
    assert calls.run("query_data", query="[?name=='tea'].id | [0]") == {"data": 1, "version": 1}
    assert calls.run("query_data", query="nothing") == {"data": None, "version": 1}
    calls("table_update", table_id="t", data=[1], json_path="/rows")
    assert "element 0 is an integer" in refused(calls.run("preview", keys=["a"]))
    assert "needs a list of objects" in refused(calls.run("select", field="a", keys=["b"]))


def test_schemas_are_cut_where_they_are_too_much(calls: Calls) -> None:
    deep: Any = "end"
    for _ in range(14):
        deep = {"k": deep}
    calls.table({"deep": deep, "wide": {str(number): number for number in range(201)}})
    calls.tool("get_data_schema")
    answer = calls.run("get_data_schema")
    assert answer["meta"]["cut"] == "The schema is cut: it shows 12 levels and it shows 200 keys of an object."
    assert len(answer["schema"]["wide"]) == 200


def test_an_answer_of_more_than_a_mebibyte_is_refused_with_its_size(calls: Calls) -> None:
    calls.table({"big": ["x" * 1000] * 1100})
    for type, arguments in (("get_all_data", {}), ("query_data", {"query": "@"})):
        calls.tool(type)
        answer = calls.run(type, **arguments)
        assert (code(answer), answer["error"]["size"]) == ("too_large", 1_103_309)
        assert "The answer has 1103309 bytes, and at most 1048576 (1 MiB) are sent." in refused(answer)
    assert code(calls("table_get", table_id="t")) == "too_large"
    assert calls("table_get", table_id="t", json_path="/big/7")["data"] == "x" * 1000


def test_instances_keep_no_key_and_each_name_once(calls: Calls) -> None:
    calls.table({"a": 1})
    calls.table({"b": 2}, name="u")
    calls.tool("get_all_data", name="read")
    other = calls.tool("get_all_data", name="read", table="u")
    calls.tool("search", name="find")
    first = calls("tool_list", table_id="t", type="get_all_data")["tools"][0]["tool_id"]
    answer = calls("instance_create", name="front", tool_ids=[first])
    key = answer["api_key"]
    assert re.fullmatch(r"cpi_[a-z0-9._-]+_[0-9a-f]{64}", key)
    assert answer["instance"]["key_hint"] == key[-4:]
    assert key not in str(calls("instance_list"))
    assert "a second tool called" in refused(calls("instance_bind", instance_id="front", tool_ids=["find", other]))
    assert [one["name"] for one in calls("instance_list")["instances"][0]["bindings"]] == ["read"]
    bound = calls("instance_bind", instance_id="front", tool_ids=["find"], status="disabled")["bindings"]
    assert [(one["name"], one["status"]) for one in bound] == [("find", "disabled"), ("read", "enabled")]
    assert code(calls("tool_update", tool_id="find", name="read")) == "already_exists"
    assert calls("tool_delete", tool_id="find")["bindings_deleted"] == 1
    assert calls("instance_create", name="bare", tool_ids=[])["instance"]["bindings"] == []
    assert refused(calls("instance_create", name="bare")).startswith('There is already an instance "bare"')
    calls("instance_delete", instance_id="bare")
    rotated = calls("instance_update", instance_id="front", rotate_key=True, status="disabled")
    assert rotated["api_key"] != key
    assert rotated["instance"]["status"] == "disabled"
    assert calls("instance_unbind", instance_id="front", tool_ids=[first])["bindings"] == []
    assert "deleted" in calls("instance_delete", instance_id="front")
    assert calls("instance_list")["total"] == 0


def test_a_tool_without_a_description_says_what_it_does_and_nothing_of_the_data(calls: Calls) -> None:
    calls.table({"secret": {"password": "hunter2"}})
    tool = calls("tool_create", table_id="t", type="query_data", name="q", json_path="/secret")["tool"]
    assert tool["description"] == 'Evaluates a JMESPath expression over the table "t" at /secret.'


def test_what_a_tool_says_of_itself_follows_its_table_and_place_and_what_it_was_told_to_say_stays(calls: Calls) -> None:
    table = calls.table({"a": {"b": 1}})
    own = calls.tool("get_all_data", "", "own")
    calls("tool_create", table_id="t", type="get_all_data", name="told", description="Ask me.")

    def said() -> list[str]:
        return [tool["description"] for tool in calls("tool_list", table_id=table)["tools"]]

    assert said() == ['All of the table "t".', "Ask me."]
    moved = calls("tool_update", tool_id=own, json_path="/a")["tool"]
    assert moved["description"] == 'All of the table "t" at /a.'
    calls("tool_update", tool_id="told", json_path="/a/b")
    calls("table_update", table_id=table, name="stock")
    assert said() == ['All of the table "stock" at /a.', "Ask me."]
    assert calls("tool_update", tool_id="told", description="")["tool"]["description"] == (
        'All of the table "stock" at /a/b.'
    )


def test_answers_are_as_their_schemas_say(calls: Calls) -> None:
    calls.table({"a": ["some words"]})
    calls.tool("search", "/a")
    for name, arguments in (
        ("project_list", {}), ("table_list", {}), ("table_get", {"table_id": "t"}), ("tool_list", {}),
        ("instance_create", {"name": "i"}), ("instance_list", {}), ("search_status", {}), ("search_cleanup", {}),
    ):  # fmt: skip
        Draft202012Validator(TOOLS[name].output).validate(calls(name, **arguments))  # type: ignore[arg-type]
    Draft202012Validator(TYPES["search"].output).validate(calls.run("search", query="words"))


def test_the_state_of_search_tools_is_told_of_those_that_are_of_both_the_tool_and_the_table(calls: Calls) -> None:
    calls.table({"a": "x"})
    calls.table({"b": "y"}, name="u")
    calls.tool("search", name="in_t")
    calls.tool("search", name="in_u", table="u")

    def told(**asked: str) -> list[str]:
        return [tool["name"] for tool in calls("search_status", **asked)["tools"]]

    assert told() == ["in_t", "in_u"]
    assert told(table_id="u") == told(tool_id="in_u") == told(tool_id="in_u", table_id="u") == ["in_u"]
    assert told(tool_id="in_t", table_id="u") == []
