"""Writes: all or nothing, one version step, one after the other, whoever calls and from wherever.

1. create, update and delete do what their type says, on objects and lists.
2. What is refused has changed nothing.
3. Versions count every change of the data; of many with one expectation, one succeeds.
4. No append loses another, in threads and in processes.
"""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from table_calls import Calls, code, refused

from commonplace.kinds.tables import edits


def test_an_object_gains_changes_and_loses_members(calls: Calls) -> None:
    calls.table({"a": {"x": 1}})
    for kind in ("create", "update", "delete"):
        calls.tool(kind, "/a")
    answer = calls.run("create", elements=[{"key": "y/~", "content": None}, {"key": "", "content": [1]}])
    assert answer == {"created": [{"key": "y/~", "json_path": "/y~1~0"}, {"key": "", "json_path": "/"}], "version": 2}
    answer = calls.run("update", updates=[{"key": "x", "content": {"deep": True}}])
    assert answer == {"updated": [{"key": "x", "json_path": "/x"}], "version": 3}
    answer = calls.run("delete", keys=["y/~"], expected_version=3)
    assert answer == {"deleted": [{"key": "y/~", "json_path": "/y~1~0"}], "version": 4}
    assert calls.data() == {"a": {"x": {"deep": True}, "": [1]}}


def test_a_list_appends_and_its_indices_are_those_before_the_call(calls: Calls) -> None:
    calls.table(list("abcdef"))
    for kind in ("create", "update", "delete"):
        calls.tool(kind)
    created = calls.run("create", elements=[{"content": "g"}, {"key": "ignored", "content": "h"}])
    assert [each["key"] for each in created["created"]] == [6, 7]
    assert calls.run("create", elements=[{"key": None, "content": "i"}])["created"] == [{"key": 8, "json_path": "/8"}]
    calls.run("update", updates=[{"key": 0, "content": "A"}, {"key": "1", "content": "B"}])
    answer = calls.run("delete", keys=[5, "0", 2])
    assert [each["key"] for each in answer["deleted"]] == [5, 0, 2]
    assert calls.data() == ["B", "d", "e", "g", "h", "i"]


@pytest.mark.parametrize(
    ("tool", "arguments", "sentence"),
    [
        ("create", {"elements": [{"key": "z", "content": 1}, {"key": "a", "content": 2}]}, '"a" exists already'),
        ("create", {"elements": [{"key": "z", "content": 1}, {"key": "z", "content": 2}]}, '"z" exists already'),
        ("create", {"elements": [{"content": 1}]}, "elements[0].key must be a string"),
        ("create", {"elements": [{"key": None, "content": 1}]}, "elements[0].key must be a string"),
        ("create", {"elements": []}, "elements must have at least 1 entry"),
        ("create", {"elements": [{"key": "n", "content": float("nan")}]}, "number that JSON cannot hold"),
        ("create", {"elements": [{"key": "n", "content": "\ud800"}]}, "lone surrogate"),
        ("update", {"updates": [{"key": "a", "content": 2}, {"key": "no", "content": 2}]}, '"no" does not exist'),
        ("delete", {"keys": ["a", "no"]}, '"no" does not exist'),
        ("delete", {"keys": ["a", "a"]}, "is given twice"),
        ("delete", {"keys": ["a"], "expected_version": 7}, "is at version 1"),
        ("delete", {"keys": ["a"], "more": 1}, 'has no argument "more"'),
    ],
)
def test_what_is_refused_has_changed_nothing(calls: Calls, tool: str, arguments: Any, sentence: str) -> None:
    calls.table({"a": 1, "b": "x" * 300})
    calls.tool(tool)
    calls.settle()
    before = calls.library.store.last_change()
    assert sentence in refused(calls.run(tool, **arguments))
    assert calls("table_get", table_id="t")["version"] == 1
    assert calls.data() == {"a": 1, "b": "x" * 300}
    assert calls.library.store.last_change() == before


def test_a_scalar_and_a_place_that_is_gone_are_refused_with_advice(calls: Calls) -> None:
    calls.table({"a": {"b": "c"}})
    calls.tool("create", "/a/b")
    calls.tool("get_all_data", "/a/b")
    assert 'Bind the tool to its parent "/a"' in refused(calls.run("create", elements=[{"content": 1}]))
    calls("table_update", table_id="t", data=5, json_path="/a")
    into = calls("table_import", table_id="t", content="[1]", mode="append", json_path="/a")
    assert refused(into) == 'mode append needs a list at "/a", not a single value.'
    answer = calls.run("get_all_data")
    assert code(answer) == "path_missing"
    assert 'The longest part of it that does is "/a"' in refused(answer)


def test_a_table_that_is_one_value_has_no_parent_to_bind_to(calls: Calls) -> None:
    calls.table(5)
    calls.tool("create")
    said = refused(calls.run("create", elements=[{"content": 1}]))
    assert said.endswith("which has no members. Make it an object or a list first.")


def test_a_value_too_deep_for_its_place_is_refused(calls: Calls) -> None:
    deep: Any = []
    for _ in range(98):
        deep = [deep]
    calls.table({"a": {}})
    calls.tool("create", "/a")
    assert "version" in calls.run("create", elements=[{"key": "fits", "content": deep[0]}])
    assert "nested more than 100 deep" in refused(calls.run("create", elements=[{"key": "k", "content": deep}]))


def test_what_an_import_appends_is_as_deep_as_the_list_makes_it(calls: Calls) -> None:
    calls.table([])
    deep = '{"a":' * 99 + "1" + "}" * 99
    assert "imported" in calls("table_import", table_id="t", content=deep, mode="append")
    deeper = f'{{"a":{deep}}}'
    assert "nested more than 100 deep" in refused(calls("table_import", table_id="t", content=deeper, mode="append"))
    assert "imported" in calls("table_import", table_id="t", content=f"[{deep}]", mode="append")
    assert len(calls.data()) == 2


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ('{"a":1,"a":2}', r'content has the key "a" twice in one object at line 3\.'),
        ('{"b":[NaN]}', r"content has NaN, which JSON cannot hold at /b/0, line 3\."),
        ('{"b":"\\ud800"}', r"content has a lone surrogate, which is no character at /b, line 3\."),
        ('{"a":1,', r"content is not JSON: .+ at line 3, column \d\."),
    ],
)
def test_a_bad_line_among_lines_is_told_by_its_number(calls: Calls, line: str, sentence: str) -> None:
    calls.table([])
    answer = calls("table_import", table_id="t", content=f"1\n\n{line}\n2", format="jsonl", mode="append")
    assert re.fullmatch(sentence, refused(answer))
    assert answer["error"]["argument"] == "content"
    assert calls.data() == []


def test_a_table_grows_no_larger_than_it_may(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    calls.table(["x" * 50])
    calls.tool("create")
    monkeypatch.setattr(edits, "LARGEST", 100)
    assert "holds at most" in refused(calls.run("create", elements=[{"content": "y" * 60}]))
    assert calls.data() == ["x" * 50]


def test_every_door_counts_the_same_versions(calls: Calls) -> None:
    calls.table({"a": []})
    calls.tool("create", "/a")
    assert calls.run("create", elements=[{"content": 1}])["version"] == 2
    assert calls("table_import", table_id="t", content="[2]", mode="append", json_path="/a")["table"]["version"] == 3
    assert calls("table_update", table_id="t", data=None, json_path="/a/0")["table"]["version"] == 4
    assert calls("table_update", table_id="t", name="other")["table"]["version"] == 4
    assert calls.data("other") == {"a": [None, 2]}
    for expected in (0, -1, 3, 5):
        early = calls.run("create", elements=[{"content": 1}], expected_version=expected)
        assert (code(early), early["error"]["current_version"]) == ("version_conflict", 4)
    assert code(calls("table_update", table_id="other", data=1, expected_version=0)) == "version_conflict"
    conflict = calls("table_update", table_id="other", data=1, expected_version=3)
    assert code(conflict) == "version_conflict"
    assert conflict["error"]["current_version"] == 4


def test_of_many_with_one_expectation_exactly_one_succeeds(calls: Calls) -> None:
    calls.table([])
    calls.tool("create")
    answers: list[dict[str, Any]] = []

    def append(number: int) -> None:
        answers.append(calls.run("create", elements=[{"content": number}], expected_version=1))

    together([lambda number=number: append(number) for number in range(8)])
    assert sum("version" in answer for answer in answers) == 1
    assert {code(answer) for answer in answers if "error" in answer} == {"version_conflict"}
    assert len(calls.data()) == 1


def test_a_hundred_appends_in_threads_leave_a_hundred_elements(calls: Calls) -> None:
    calls.table({"log": []})
    calls.tool("create", "/log")

    def append(first: int) -> None:
        for number in range(first, first + 10):
            assert "version" in calls.run("create", elements=[{"content": f"entry {number}"}])

    together([lambda first=first: append(first) for first in range(0, 100, 10)])
    assert sorted(calls.data(at="/log")) == sorted(f"entry {number}" for number in range(100))
    assert calls("table_get", table_id="t")["version"] == 101
    assert calls.library.store.check() == []


APPEND = """
import sys
from pathlib import Path
from commonplace.library import Library
from commonplace.settings import Settings
from commonplace.kinds.tables.tools.types import run_tool
home, first = Path(sys.argv[1]), int(sys.argv[2])
with Library.open(home, settings=Settings(home=home, models=home, model="static")) as library:
    tool = library.tables.tool("create")
    for number in range(first, first + 25):
        run_tool(library, tool, {"elements": [{"content": {"n": number}}]})
"""


@pytest.mark.parametrize("backend", ["sqlite"])
def test_a_hundred_appends_in_processes_leave_a_hundred_elements(calls: Calls, tmp_path: Path) -> None:
    calls.table([])
    calls.tool("create")
    running = [
        subprocess.Popen([sys.executable, "-c", APPEND, str(tmp_path), str(first)]) for first in range(0, 100, 25)
    ]
    assert [process.wait(timeout=110) for process in running] == [0, 0, 0, 0]
    assert sorted(row["n"] for row in calls.data()) == list(range(100))


def together(tasks: list[Any]) -> None:
    threads = [threading.Thread(target=task) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(110)
        assert not thread.is_alive()
