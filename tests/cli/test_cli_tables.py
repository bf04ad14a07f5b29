"""The commands for tables: what they print, and how they refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from commonplace.cli import table_tools as table_group
from commonplace.cli.main import cli
from commonplace.library import Library
from opening import library_settings


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COMMONPLACE_MODEL", "static")
    monkeypatch.setenv("COMMONPLACE_MODELS", str(tmp_path / "models"))
    return tmp_path / "home"


def run(home: Path, *arguments: str, input: str | None = None) -> Result:
    return CliRunner().invoke(cli, ["tables", *arguments], env={"COMMONPLACE_HOME": str(home)}, input=input)


def told(home: Path, *arguments: str) -> Any:
    result = run(home, *arguments, "--json")
    assert result.exception is None, result.exception
    return json.loads(result.stdout)


def test_a_table_goes_from_a_file_to_a_search_and_back(home: Path, tmp_path: Path) -> None:
    source, target = tmp_path / "in.json", tmp_path / "out.json"
    text = '{"stock":[{"name":"oolong","n":123456789012345678901234567890}],"a~b":{"/":"é"}}'
    source.write_text(text, encoding="utf-8")
    assert told(home, "project", "create", "shop")["project"]["name"] == "shop"
    assert told(home, "create", "shop", "items", str(source))["table"]["size_bytes"] == len(text.encode())
    assert "items" in run(home, "list", "shop").stdout
    assert json.loads(run(home, "get", "items", "--at", "/a~0b").stdout) == {"/": "é"}
    assert json.loads(run(home, "get", "items", "--query", "stock[0].name").stdout) == "oolong"
    assert told(home, "tool", "create", "items", "search", "find", "--at", "/stock")["tool"]["json_path"] == "/stock"
    assert told(home, "search", "find", "oolong", "--top-k", "1")["results"][0]["json_path"] == "/0"
    assert "/0" in run(home, "search", "find", "oolong").stdout
    assert run(home, "export", "items", str(target)).exit_code == 0
    assert target.read_text(encoding="utf-8") == text + "\n"
    answer = told(home, "reindex", "find", "--force", "--wait")
    assert answer["tools"][0]["search_index"]["generation"] == 2
    with Library.open(home, settings=library_settings(home)) as library:
        status = library.status()
        assert status.indexed == status.changes
    assert "ready" in run(home, "status").stdout
    assert told(home, "cleanup", "--dry-run")["removed"] == 0
    assert told(home, "delete", "items")["tools_deleted"] == 1
    assert told(home, "project", "delete", "shop")["tables_deleted"] == 0


def test_status_does_not_take_the_places_of_a_table_for_tables(home: Path) -> None:
    run(home, "project", "create", "shop")
    run(home, "create", "shop", "items", "-", input='[{"name": "oolong"}, {"name": "sencha"}]')
    status = CliRunner().invoke(cli, ["status"], env={"COMMONPLACE_HOME": str(home)}).stdout
    assert "  2 places in tables\n" in status


def test_one_that_goes_along_is_one(home: Path) -> None:
    run(home, "project", "create", "shop")
    for name in ("items", "orders"):
        run(home, "create", "shop", name)
    run(home, "tool", "create", "items", "get_all_data", "read_items")
    assert run(home, "delete", "items").stdout == "Deleted: items and 1 tool\n"
    assert run(home, "project", "delete", "shop").exit_code == 1
    assert run(home, "project", "delete", "shop", "--force").stdout == "Deleted: shop and 1 table\n"


def test_lists_have_no_pages(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_group, "_PAGE", 2)
    run(home, "project", "create", "shop")
    for name in ("a", "b", "c"):
        run(home, "project", "create", name)
        run(home, "create", "shop", name)
        run(home, "tool", "create", "a", "get_all_data", name)
        run(home, "instance", "create", name)
    for command, what, most in ((["project", "list"], "projects", 4), (["list", "shop"], "tables", 3),
                                (["tool", "list"], "tools", 3), (["instance", "list"], "instances", 3)):  # fmt: skip
        answer = told(home, *command)
        assert (len(answer[what]), answer["total"], answer["has_more"]) == (most, most, False)
        assert len(run(home, *command).stdout.splitlines()) == most


def test_files_are_imported_by_their_names(home: Path, tmp_path: Path) -> None:
    rows, lines = tmp_path / "rows.csv", tmp_path / "more.jsonl"
    rows.write_text("name,price\ntea,3\n", encoding="utf-8")
    lines.write_text('{"name":"bread"}\n', encoding="utf-8")
    run(home, "project", "create", "shop")
    run(home, "create", "shop", "items")
    assert told(home, "import", "items", str(rows))["imported"] == 1
    assert told(home, "import", "items", str(lines), "--mode", "append")["table"]["version"] == 3
    assert json.loads(run(home, "get", "items").stdout) == [{"name": "tea", "price": "3"}, {"name": "bread"}]
    refusal = run(home, "import", "items", str(lines), "--mode", "append", "--expected-version", "1")
    assert "is at version 3" in str(refusal.exception)


def test_tools_and_instances_are_kept(home: Path) -> None:
    run(home, "project", "create", "shop")
    run(home, "create", "shop", "items")
    run(home, "tool", "create", "items", "create", "add")
    assert json.loads(run(home, "run", "add", '{"elements":[{"key":"k","content":1}]}').stdout)["version"] == 2
    key = run(home, "instance", "create", "front", "--tool", "add").stdout.strip().splitlines()[0]
    assert key.startswith("cpi_default_")
    assert told(home, "tool", "list", "--instance", "front")["total"] == 1
    assert told(home, "instance", "bind", "front", "add", "--status", "disabled")["bindings"][0]["status"] == "disabled"
    assert told(home, "instance", "unbind", "front", "add")["bindings"] == []
    assert told(home, "instance", "update", "front", "--rotate-key")["api_key"] != key
    assert "enabled" in run(home, "instance", "list").stdout
    assert told(home, "tool", "update", "add", "--name", "append")["tool"]["name"] == "append"
    assert told(home, "tool", "delete", "append")["bindings_deleted"] == 0
    assert "deleted" in told(home, "instance", "delete", "front")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["get", "none"], 'There is no table "none"'),
        (["get", "items", "--at", "x"], "begin with a slash"),
        (["get", "items", "--query", "a["], "query is not JMESPath"),
        (["create", "shop", "more", "/no/such/file"], "cannot be read"),
        (["export", "items", "/no/such/file"], "/no/such/file cannot be written: there is no folder /no/such."),
        (["export", "items", "/"], "/ cannot be written: "),
        (["run", "none"], 'There is no tool "none"'),
        (["run", "none", '{"query": "\udcff"}'], "has a lone surrogate, which is no character."),
        (["run", "ask", "x"], "ARGUMENTS is not JSON"),
        (["search", "ask", "a"], 'TOOL "ask" is a query_data tool, and only search tools have an index.'),
        (["tool", "create", "items", "search", "find", "--at", "/no"], "does not exist"),
    ],
)
def test_a_refusal_is_a_sentence_and_ends_with_1(home: Path, arguments: list[str], sentence: str) -> None:
    run(home, "project", "create", "shop")
    run(home, "create", "shop", "items")
    run(home, "tool", "create", "items", "query_data", "ask")
    error: Any = run(home, *arguments).exception
    assert sentence in str(error)
    assert error.exit_code == 1


def test_everything_takes_tables_along_and_says_whose_keys_are_to_be_made(home: Path, tmp_path: Path) -> None:
    run(home, "project", "create", "shop")
    run(home, "create", "shop", "items", "-", input='{"tea": 1.50}')
    run(home, "tool", "create", "items", "get_all_data", "all_items")
    key = run(home, "instance", "create", "front", "--tool", "all_items").stdout.splitlines()[0]
    exported, other = tmp_path / "everything.jsonl", tmp_path / "other"
    CliRunner().invoke(cli, ["export", "everything", str(exported)], env={"COMMONPLACE_HOME": str(home)})
    assert key not in exported.read_text(encoding="utf-8")
    done = CliRunner().invoke(cli, ["import", "everything", str(exported)], env={"COMMONPLACE_HOME": str(other)})
    assert done.stdout == "Imported: 3 items\n"
    assert "`commonplace tables instance update front --rotate-key`" in done.stderr
    assert told(other, "get", "items")["data"] == {"tea": 1.5}
    assert "front  enabled, no key yet: all_items" in run(other, "instance", "list").stdout
    assert run(other, "instance", "update", "front", "--rotate-key").stdout.startswith("cpi_default_")
    done = CliRunner().invoke(cli, ["import", "everything", str(exported)], env={"COMMONPLACE_HOME": str(other)})
    assert done.stderr == ""


def test_a_refusal_names_commands_and_options_and_not_tools_and_arguments(home: Path) -> None:
    run(home, "project", "create", "shop")
    run(home, "create", "shop", "json_path. table_list")
    run(home, "tool", "create", "json_path. table_list", "get_all_data", "all")
    run(home, "instance", "create", "front")
    for arguments, said in (
        (("list", "x"), "`commonplace tables project list` shows them"),
        (("get", "x"), "`commonplace tables list` shows them"),
        (("run", "x"), "`commonplace tables tool list` shows them"),
        (("instance", "delete", "x"), "`commonplace tables instance list` shows them"),
        (("project", "delete", "shop"), "Add --force to delete its tables"),
        (("get", "json_path. table_list", "--at", "x"), "--at must be a JSON Pointer"),
        (("import", "json_path. table_list", "-", "--expected-version", "9"), "--expected-version is 9"),
        (("import", "json_path. table_list", "-", "--mode", "merge"), "--mode merge needs an object at --at"),
        (("import", "json_path. table_list", "/dev/null"), "FILE is not JSON"),
        (("get", "json_path. table_list", "--query", "["), "--query is not JMESPath"),
        (("search", "json_path", " "), 'There is no tool "json_path".'),
        (("tool", "list", "--type", "x"), "--type must be one of"),
        (("project", "create", " "), "NAME must be 1 to 200"),
        (("run", "all", '{"json_path": 1}'), 'all has no argument "json_path".'),
        (("tool", "update", "all", "--name", "a b"), "--name must be"),
        (("instance", "unbind", "front", "all"), 'TOOL_IDS has "all", which is not bound there.'),
    ):
        refused = run(home, *arguments, input="1")
        assert refused.exit_code == 1
        assert said in str(refused.exception)


def test_an_instance_that_is_not_there_is_looked_for_with_a_command_of_this_program(home: Path) -> None:
    result = CliRunner().invoke(cli, ["mcp", "--instance", "nope"], env={"COMMONPLACE_HOME": str(home)})
    assert str(result.exception) == 'There is no instance "nope". `commonplace tables instance list` shows them.'
