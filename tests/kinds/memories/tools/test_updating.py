"""`update_context` and `update_context_batch`, sentence by sentence of contracts/memory.md, sections 4 and 8."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest
from memory_calls import Tools, entry, refused, stored, there

IMAGE = {"data": base64.b64encode(b"picture").decode()}


def test_an_update_says_what_it_touched(tools: Tools) -> None:
    number = stored(tools, text="old", metadata={"a": 1}, tags=["x"])
    answer = tools("update_context", context_id=number, text="new", tags=["Y"], images=[IMAGE], ttl_seconds=60)
    fields = ["text_content", "tags", "images", "content_type", "expires_at", "embedding"]
    assert answer == {
        "success": True,
        "context_id": number,
        "updated_fields": fields,
        "message": "Successfully updated 6 field(s)",
        "version": 2,
    }
    after = entry(tools, number)
    assert (after.item.body, after.item.metadata, after.item.tags, after.row.images) == ("new", {"a": 1}, ("y",), 1)
    assert after.row.expires_at is not None


def test_thread_source_and_creation_never_change(tools: Tools) -> None:
    number = stored(tools, thread_id="first", source="agent")
    before = entry(tools, number)
    tools("update_context", context_id=number, text="new", metadata={"b": 2})
    after = entry(tools, number)
    assert (after.row.thread, after.row.source, after.row.created_at) == ("first", "agent", before.row.created_at)
    assert after.item.created_at == before.item.created_at
    assert after.item.updated_at > before.item.updated_at


def test_empty_lists_and_objects_clear(tools: Tools) -> None:
    number = stored(tools, metadata={"a": 1}, tags=["x"], images=[IMAGE])
    answer = tools("update_context", context_id=number, metadata={}, tags=[], images=[])
    assert answer["updated_fields"] == ["metadata", "tags", "images", "content_type"]
    after = entry(tools, number)
    assert (after.item.metadata, after.item.tags, after.row.images) == ({}, (), 0)
    assert tools.library.store.check() == []


def test_a_patch_changes_members_and_null_removes_one(tools: Tools) -> None:
    number = stored(tools, metadata={"a": {"b": 1, "c": 2}, "n": None, "z": [1]})
    tools("update_context", context_id=number, metadata_patch={"a": {"b": None, "d": 3}, "z": [None]})
    assert entry(tools, number).item.metadata == {"a": {"c": 2, "d": 3}, "n": None, "z": [None]}


def test_an_empty_patch_is_a_successful_update(tools: Tools) -> None:
    number = stored(tools, metadata={"a": 1})
    answer = tools("update_context", context_id=number, metadata_patch={})
    assert (answer["success"], answer["updated_fields"], answer["version"]) == (True, ["metadata"], 2)


def test_an_expiry_is_removed_by_a_ttl_of_zero(tools: Tools) -> None:
    number = stored(tools, ttl_seconds=60)
    assert tools("update_context", context_id=number, ttl_seconds=0)["updated_fields"] == ["expires_at"]
    assert entry(tools, number).row.expires_at is None


def test_the_same_text_needs_no_new_vectors(tools: Tools) -> None:
    number = stored(tools, text="same")
    assert tools("update_context", context_id=number, text="same")["updated_fields"] == ["text_content"]
    assert tools("update_context", context_id=number, tags=["x"])["updated_fields"] == ["tags"]
    assert tools.library.embedding.coverage().pending == 0


@pytest.mark.parametrize(
    ("given", "sentence", "code"),
    [
        ({}, "At least one field must be provided for update", "invalid_argument"),
        ({"expected_version": 1}, "At least one field must be provided for update", "invalid_argument"),
        (
            {"metadata": {}, "metadata_patch": {}},
            "Cannot use both metadata and metadata_patch parameters together. Use metadata for full replacement or "
            "metadata_patch for partial updates.",
            "invalid_argument",
        ),
        ({"text": " \n"}, "text cannot be empty or contain only whitespace", "invalid_argument"),
        (
            {"text": "a", "expected_version": 7},
            "Context entry 1 is at version 1, not 7; read it again and retry",
            "conflict",
        ),
        ({"tags": ["a"], "context_id": 12}, "Context entry with ID 12 not found", "not_found"),
        ({"tags": ["a"], "context_id": 10**30}, f"Context entry with ID {10**30} not found", "not_found"),
        ({"tags": ["a"], "context_id": 0}, "context_id must be a positive integer", "invalid_argument"),
        ({"tags": ["a"], "context_id": "memory://x"}, "context_id must be a positive integer", "invalid_argument"),
        ({"tags": ["a"], "context_id": 1.5}, "context_id must be a positive integer", "invalid_argument"),
        ({"tags": ["a"], "context_id": True}, "context_id must be a positive integer", "invalid_argument"),
        ({"images": [{"data": ""}]}, 'Image 0 has empty "data" field', "invalid_argument"),
    ],
)
def test_what_cannot_be_updated_is_refused_and_nothing_changes(
    tools: Tools, given: dict[str, Any], sentence: str, code: str
) -> None:
    number = stored(tools)
    answer = tools("update_context", **{"context_id": number, **given})
    assert (refused(answer), answer["error"]["code"]) == (sentence, code)
    assert entry(tools, number).item.version == 1


@pytest.mark.parametrize("spelled", [1, "1", "memory://1", 1.0])
def test_an_id_may_be_spelled_in_three_ways(tools: Tools, spelled: Any) -> None:
    stored(tools)
    assert tools("update_context", context_id=spelled, tags=["x"])["context_id"] == 1


def test_patched_metadata_stays_within_its_bounds(tools: Tools) -> None:
    number = stored(tools, metadata={"a": "x" * 700_000})
    answer = tools("update_context", context_id=number, metadata_patch={"b": "y" * 700_000})
    assert "metadata must be at most 1 MiB as JSON" in refused(answer)


def test_vectors_that_are_cleared_are_named_and_ones_that_never_were_are_not(
    tools: Tools,
) -> None:
    number = stored(tools, text="with vectors")
    tools.library.memories.generation.enabled = False
    assert tools("update_context", context_id=number, text="other")["updated_fields"] == ["text_content", "embedding"]
    assert tools("update_context", context_id=number, text="again")["updated_fields"] == ["text_content"]


# history


def test_the_past_is_kept_newest_first(tools: Tools) -> None:
    number = stored(tools, text="one", metadata={"v": 1}, tags=["a"], images=[IMAGE])
    tools("update_context", context_id=number, text="two", images=[])
    tools("store_context", thread_id="t", source="user", text="two", metadata={"v": 3})
    past = entry(tools, number, history=True).past
    assert [(was.version, was.body, was.metadata) for was in past] == [(2, "two", {"v": 1}), (1, "one", {"v": 1})]
    assert [len(was.images) for was in past] == [0, 1]
    assert past[1].tags == ("a",)


def test_only_so_much_of_the_past_is_kept(open_tools: Callable[..., Tools]) -> None:
    for most, expected in ((2, [4, 3]), (0, [])):
        tools = open_tools(memory_history=most)
        number = stored(tools)
        for n in range(4):
            tools("update_context", context_id=number, metadata={"n": n})
        assert [was.version for was in entry(tools, number, history=True).past] == expected


# batches


def test_updates_of_one_entry_apply_in_order(tools: Tools) -> None:
    number = stored(tools, metadata={"a": 1})
    updates = [{"context_id": number, "metadata_patch": {"b": n}} for n in (1, 2)]
    answer = tools("update_context_batch", updates=updates)
    assert answer["message"] == "Updated 2/2 entries successfully"
    assert answer["results"][1] == {
        "index": 1, "context_id": number, "success": True, "updated_fields": ["metadata"], "error": None, "version": 3,
    }  # fmt: skip
    assert entry(tools, number).item.metadata == {"a": 1, "b": 2}


BAD = [
    ({"context_id": 99, "text": "x"}, "Context entry 99 not found"),
    ({"text": "x"}, "Missing required field: context_id"),
    ({"context_id": 1}, "At least one field must be provided for update"),
    ({"context_id": 1, "text": " "}, "text cannot be empty or contain only whitespace"),
    ({"context_id": 1, "text": "x", "colour": 1}, "Unknown field: colour"),
    ({"context_id": "x", "text": "x"}, "context_id must be a positive integer"),
    (
        {"context_id": 1, "tags": ["x"], "expected_version": 9},
        "Context entry 1 is at version 1, not 9; read it again and retry",
    ),
    (7, "Update must be an object"),
]


@pytest.mark.parametrize(("bad", "sentence"), BAD)
def test_one_bad_update_fails_an_atomic_batch(tools: Tools, bad: Any, sentence: str) -> None:
    first, second = stored(tools, text="a"), stored(tools, text="b")
    good = {"context_id": second, "text": "changed"}
    assert refused(tools("update_context_batch", updates=[good, bad])) == f"{sentence} at index 1"
    assert [entry(tools, number).item.body for number in (first, second)] == ["a", "b"]


@pytest.mark.parametrize(("bad", "sentence"), BAD)
def test_one_bad_update_fails_alone_where_each_stands_alone(tools: Tools, bad: Any, sentence: str) -> None:
    _, second = stored(tools, text="a"), stored(tools, text="b")
    answer = tools("update_context_batch", updates=[bad, {"context_id": second, "text": "changed"}], atomic=False)
    assert (answer["success"], answer["failed"], answer["results"][0]["error"]) == (False, 1, sentence)
    assert entry(tools, second).item.body == "changed"
    assert tools.library.store.check() == []
    assert there(tools) == [1, 2]
