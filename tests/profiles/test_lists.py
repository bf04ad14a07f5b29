"""What every agent reads before its first question: (1) it is small; (2) it allows whatever the tools take and give."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from commonplace.profiles.registry import PROFILES, profile
from commonplace.server.mcp import declared
from commonplace.tools.profile import Registry
from commonplace.tools.schema import STRING, many, obj, outline, parts_of, text
from fresh_user import FreshUser


def listed(name: str, *, writable: bool) -> list[dict[str, Any]]:
    served = profile(name)
    return [declared(tool, brief=served.brief) for tool in Registry(served, writable=writable).tools]


HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


@pytest.mark.parametrize(
    ("options", "most"),
    [(["--allow-writes"], 8_000), ([], 8_000), (["--profile", "knowledge"], 24_000)],
    ids=["default, with writes", "default", "knowledge"],
)
def test_the_list_of_tools_that_a_client_gets_is_small_and_complete(
    options: list[str], most: int, tmp_path: Path
) -> None:
    messages: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": HELLO},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
    ]
    spoken = "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages)
    answers = FreshUser(tmp_path).run("mcp", *options, input=spoken).stdout.splitlines()
    (answer,) = [result for result in map(json.loads, answers) if result.get("id") == 2]
    assert len(json.dumps(answer["result"], separators=(",", ":"), ensure_ascii=False).encode()) <= most
    name = options[1] if "--profile" in options else "commonplace"
    declared_tools = Registry(profile(name), writable="--allow-writes" in options).tools
    assert {tool["name"]: set(tool["inputSchema"]["properties"]) for tool in answer["result"]["tools"]} == {
        tool.name: set(tool.input["properties"]) for tool in declared_tools
    }


@pytest.mark.parametrize("name", PROFILES)
def test_every_tool_lists_the_arguments_it_takes_and_the_parts_it_gives(name: str) -> None:
    for tool in Registry(profile(name), writable=True).tools:
        shown = declared(tool)
        assert list(shown["inputSchema"]["properties"]) == list(tool.input["properties"])
        assert shown["inputSchema"].get("required") == tool.input.get("required")
        if tool.output is not None:
            assert list(shown["outputSchema"]["properties"]) == list(tool.output.get("properties", {}))


def test_every_argument_of_the_default_profile_says_what_it_is() -> None:
    for tool in listed("commonplace", writable=True):
        assert all(argument.get("description") for argument in tool["inputSchema"]["properties"].values())


def test_an_outline_leaves_out_what_lies_deep_and_keeps_its_name_and_description() -> None:
    deep = obj(required=("a",), a=STRING)
    schema = obj(top=obj(inner={**deep, "description": "Deep."}), rows=many(obj(cell=deep, key=text("Its name."))))
    assert outline(schema, levels=2) == obj(
        top=obj(inner={"type": "object", "description": "Deep."}),
        rows=many(obj(cell={"type": "object"}, key=text("Its name."))),
    )


def test_an_outline_of_an_answer_is_true_of_failures() -> None:
    schema = {"type": "object", "properties": {"found": {"type": "array"}}, "required": ["found"]}
    assert parts_of(schema) == {"type": "object", "properties": {"found": {}}}
