"""What every agent reads before its first question: (1) it is small; (2) it allows whatever the tools take and give."""

from __future__ import annotations

import json
from typing import Any

import pytest

from commonplace.server.mcp import declared
from commonplace.surfaces.profile import PROFILES, Registry, profile
from commonplace.surfaces.schema import STRING, many, obj, outline, parts_of, text


def listed(name: str, *, writable: bool) -> list[dict[str, Any]]:
    served = profile(name)
    return [declared(tool, brief=served.brief) for tool in Registry(served, writable=writable).tools]


@pytest.mark.parametrize(("name", "writable", "most"), [("commonplace", True, 8_000), ("knowledge", False, 24_000)])
def test_a_list_of_tools_is_small(name: str, writable: bool, most: int) -> None:
    tools = {"tools": listed(name, writable=writable)}
    assert len(json.dumps(tools, separators=(",", ":"), ensure_ascii=False).encode()) <= most


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
