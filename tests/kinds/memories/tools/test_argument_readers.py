"""The rules all tools of the memory profile share: contracts/memory.md, sections 1 and 2.

Bad input gets one clear sentence and stores nothing.
"""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory_calls import TOOLS, Tools, entry, refused, stored, there

from commonplace.kinds.memories.tools import PROFILE, hidden, instructions
from commonplace.settings import Settings


@pytest.mark.parametrize("times", [0, 1, 2])
def test_lists_and_objects_may_come_as_json_strings(tools: Tools, times: int) -> None:
    tags: Any = ["x", "y"]
    metadata: Any = {"a": [1]}
    for _ in range(times):
        tags, metadata = json.dumps(tags), json.dumps(metadata)
    number = stored(tools, tags=tags, metadata=metadata)
    assert (entry(tools, number).item.tags, entry(tools, number).item.metadata) == (("x", "y"), {"a": [1]})


def test_entries_and_ids_may_come_as_json_strings_too(tools: Tools) -> None:
    entries = json.dumps([{"thread_id": "t", "source": "user", "text": "a", "tags": '["x"]'}])
    assert tools("store_context_batch", entries=entries)["succeeded"] == 1
    assert entry(tools, 1).item.tags == ("x",)
    assert tools("delete_context", context_ids='["memory://1"]')["deleted_count"] == 1


def test_a_string_parameter_is_never_decoded(tools: Tools) -> None:
    for text in ('{"a": 1}', '"quoted"', "[1]", "null", "12"):
        assert entry(tools, stored(tools, text=text, thread_id=text)).item.body == text
        assert entry(tools, there(tools)[-1]).row.thread == text


def test_null_means_not_given(tools: Tools) -> None:
    given = {"images": None, "metadata": None, "tags": None, "expires_at": None, "ttl_seconds": None}
    assert stored(tools, **given, supersedes=None) == 1


def test_a_list_of_nothing_replaces_nothing(tools: Tools) -> None:
    assert entry(tools, stored(tools, supersedes=[])).row.supersedes == ()


def test_everything_wrong_is_said_at_once(tools: Tools) -> None:
    answer = tools("store_context", source="bot", tags=5, metadata=[1], colour=1, **{"a" * 100: 2})
    assert refused(answer) == (
        "Invalid arguments for store_context: thread_id is required; text is required; "
        'source must be "user" or "agent"; '
        f"metadata must be an object; tags must be a list; colour is not a parameter of this tool; "
        f"{'a' * 60}… is not a parameter of this tool"
    )


def test_a_blank_text_is_said_together_with_the_rest(tools: Tools) -> None:
    answer = tools("store_context", thread_id=" ", source="bot", text="")
    assert refused(answer) == (
        "Invalid arguments for store_context: thread_id cannot be empty or whitespace; "
        'source must be "user" or "agent"; text cannot be empty or whitespace'
    )
    answer = tools("update_context", context_id=1, text=" ", colour=1)
    assert refused(answer) == (
        "Invalid arguments for update_context: text cannot be empty or contain only whitespace; "
        "colour is not a parameter of this tool"
    )


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    ("given", "part"),
    [
        ({"thread_id": "x" * 1001}, "thread_id must have at most 1000 characters, not 1001"),
        ({"thread_id": 5}, "thread_id must be a string"),
        ({"text": ["a"]}, "text must be a string"),
        ({"text": "x" * ((10 << 20) + 1)}, "text must be at most 10 MiB as UTF-8"),
        ({"text": "é" * (6 << 20)}, "text must be at most 10 MiB as UTF-8"),
        ({"tags": ["x"] * 101}, "tags must have at most 100 items, not 101"),
        ({"tags": ["x"] * 10_000}, "tags must have at most 100 items, not 10000"),
        ({"tags": ["x" * 201]}, "a tag must have at most 200 characters, not 201"),
        ({"tags": [1]}, "tags must be a list of strings"),
        ({"tags": "x"}, "tags must be a list"),
        ({"metadata": "[]"}, "metadata must be an object"),
        ({"metadata": nested(33)}, "metadata must be nested at most 32 deep"),
        ({"metadata": nested(500)}, "metadata must be nested at most 32 deep"),
        ({"metadata": '{"a":' * 100_000 + "1" + "}" * 100_000}, "metadata must be nested at most 32 deep"),
        ({"metadata": {"a": float("nan")}}, "metadata must hold finite numbers only"),
        ({"metadata": {"a": [float("-inf")]}}, "metadata must hold finite numbers only"),
        ({"metadata": '{"a": NaN}'}, "metadata must hold finite numbers only"),
        ({"metadata": {"a": "x" * (1 << 20)}}, "metadata must be at most 1 MiB as JSON"),
        ({"metadata": {"a": 10**400}}, "metadata must not hold numbers of more than 300 digits"),
        ({"metadata": {"a\ud800": 1}}, "metadata contains a lone surrogate"),
        ({"images": "x"}, "images must be a list"),
        ({"ttl_seconds": 10**12}, "ttl_seconds reaches beyond the year 9999"),
        ({"ttl_seconds": "five"}, "ttl_seconds must be a whole number"),
        ({"ttl_seconds": True}, "ttl_seconds must be a whole number"),
        ({"expires_at": "tomorrow"}, 'Invalid expires_at format: "tomorrow". Use ISO 8601 format'),
        ({"supersedes": list(range(1, 102))}, "supersedes must have at most 100 items, not 101"),
    ],
)
def test_what_is_out_of_bounds_is_refused(tools: Tools, given: dict[str, Any], part: str) -> None:
    answer = tools("store_context", **{"thread_id": "t", "source": "user", "text": "text", **given})
    assert part in refused(answer)
    assert answer["error"]["code"] == "invalid_argument"
    batch = tools("store_context_batch", entries=[{"thread_id": "t", "source": "user", "text": "text", **given}])
    assert part in refused(batch)
    assert there(tools) == []


def test_what_is_just_within_bounds_is_stored_as_it_is(tools: Tools) -> None:
    text = "x" * (1 << 20)
    given = {"thread_id": "x" * 1000, "tags": [f"{n:>200}" for n in range(100)], "metadata": nested(32), "text": text}
    kept = entry(tools, stored(tools, **given))
    assert (kept.item.body, kept.item.metadata, len(kept.item.tags)) == (text, nested(32), 100)


@pytest.mark.slow
def test_a_hundred_megabytes_of_text_are_refused_quickly(tools: Tools) -> None:
    text = "x" * 100_000_000
    start = time.perf_counter()
    assert "text must be at most 10 MiB" in refused(tools("store_context", thread_id="t", source="user", text=text))
    assert time.perf_counter() - start < 2


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1).filter(str.strip))
def test_text_comes_back_code_point_for_code_point(tools: Tools, text: str) -> None:
    assert entry(tools, stored(tools, text=text)).item.body.strip() == text.strip()  # type: ignore[union-attr]


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
NAMES = sorted({name for tool in PROFILE.tools for name in tool.input["properties"]} - {"cursor"})


@given(st.sampled_from(sorted(TOOLS)), st.dictionaries(st.sampled_from([*NAMES, "other"]), JUNK, max_size=6))
def test_no_arguments_at_all_make_a_tool_fail_unexpectedly(tools: Tools, name: str, arguments: dict[str, Any]) -> None:
    answer = tools(name, **arguments)  # fails where an answer is an internal error
    json.dumps(answer, ensure_ascii=False).encode()


# the profile


def test_the_thirteen_tools_have_the_contracts_hints() -> None:
    assert len(TOOLS) == 13
    hints = {
        name: tuple(
            tool.annotations[hint] for hint in ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
        )
        for name, tool in TOOLS.items()
    }
    for name, found in hints.items():
        if name.startswith("store"):
            assert found == (False, False, False, False), name
        elif name.startswith("update"):
            assert found == (False, True, False, False), name
        elif name.startswith("delete"):
            assert found == (False, True, True, False), name
        else:
            assert found == (True, False, True, False), name


def test_the_list_and_the_instructions_are_short(tools: Tools) -> None:
    listed = [
        {
            "name": tool.name, "title": tool.title, "description": tool.description, "inputSchema": tool.input,
            "outputSchema": tool.output, "annotations": tool.annotations,
        }
        for tool in PROFILE.tools
    ]  # fmt: skip
    assert len(json.dumps(listed, ensure_ascii=False, separators=(",", ":")).encode()) <= 28 << 10
    assert len(instructions(tools.library).encode()) <= 1536


@pytest.mark.parametrize(
    ("settings", "gone"),
    [
        ({}, set()),
        ({"memory_lexical": False}, {"fts_search_context"}),
        ({"memory_semantic": False}, {"semantic_search_context"}),
        ({"memory_embedding": False}, {"semantic_search_context"}),
        ({"memory_hybrid": False}, {"hybrid_search_context"}),
        ({"memory_disabled_tools": "delete_context, List_Threads"}, {"delete_context", "list_threads"}),
    ],
)
def test_settings_hide_tools(settings: dict[str, Any], gone: set[str]) -> None:
    assert {name for name in TOOLS if name in hidden(Settings(**settings))} == gone
