"""What there is: threads and statistics, exact at the time of the call."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from memory_calls import Tools, stored

PIXEL = {"data": base64.b64encode(b"pixel").decode()}


def test_threads_are_listed_with_what_is_in_them_the_latest_first(tools: Tools) -> None:
    first = stored(tools, thread_id="a", text="one", images=[PIXEL])
    stored(tools, thread_id="b", text="two")
    last = stored(tools, thread_id="a", text="three", source="agent")
    answer = tools("list_threads")
    assert answer["total_threads"] == 2
    assert [thread["thread_id"] for thread in answer["threads"]] == ["a", "b"]
    moments = {entry["id"]: entry["created_at"] for entry in tools("search_context")["results"]}
    assert answer["threads"][0] == {
        "thread_id": "a",
        "entry_count": 2,
        "source_types": 2,
        "sources": {"user": 1, "agent": 1},
        "multimodal_count": 1,
        "first_entry": moments[first],
        "last_entry": moments[last],
        "last_id": last,
    }
    assert tools("list_threads", limit=1, offset=1)["threads"][0]["thread_id"] == "b"
    tools("delete_context", thread_id="b")
    assert tools("list_threads")["total_threads"] == 1


def test_statistics_of_nothing(tools: Tools) -> None:
    answer = tools("get_statistics")
    assert answer["total_entries"] == answer["total_threads"] == answer["unique_tags"] == 0
    assert answer["by_source"] == {"user": 0, "agent": 0}
    assert answer["by_content_type"] == {"text": 0, "multimodal": 0}
    assert answer["avg_entries_per_thread"] == 0
    for part in ("semantic_search", "fts", "summary"):
        assert answer[part]["coverage_percentage"] == 100


def test_statistics_and_plans_name_the_store_that_entries_are_kept_in(tools: Tools, backend: str) -> None:
    name = {"sqlite": "sqlite", "postgres": "postgresql"}[backend]
    answer = tools("get_statistics")
    assert [answer["backend"], answer["semantic_search"]["backend"], answer["fts"]["backend"]] == [name] * 3
    assert tools("search_context", explain_query=True)["stats"]["backend"] == name


def test_statistics_count_what_is_there(tools: Tools) -> None:
    stored(tools, thread_id="a", text="one", tags=["x", "y"], images=[PIXEL, PIXEL])
    stored(tools, thread_id="a", text="two", source="agent", tags=["x"], ttl_seconds=3600)
    stored(tools, thread_id="b", text="three", supersedes=[2])
    answer = tools("get_statistics")
    assert (answer["total_entries"], answer["total_threads"], answer["avg_entries_per_thread"]) == (3, 2, 1.5)
    assert answer["by_source"] == {"user": 2, "agent": 1}
    assert answer["by_content_type"] == {"text": 2, "multimodal": 1}
    assert (answer["total_images"], answer["unique_tags"]) == (2, 2)
    assert answer["top_tags"] == [{"tag": "x", "count": 2}, {"tag": "y", "count": 1}]
    assert answer["most_active_threads"] == [{"thread_id": "a", "count": 2}, {"thread_id": "b", "count": 1}]
    assert (answer["superseded_entries"], answer["expiring_entries"]) == (1, 1)
    assert answer["database_size_mb"] > 0
    semantic = answer["semantic_search"]
    assert (semantic["context_count"], semantic["embedding_count"], semantic["pending"]) == (3, 3, 0)
    assert (semantic["available"], semantic["coverage_percentage"]) == (True, 100)
    assert answer["fts"]["indexed_entries"] == 3
    assert answer["reranking"]["available"] is False
    assert answer["reranking"]["message"]
    assert set(answer["connection_metrics"]) == {
        "active_connections", "total_queries", "failed_queries", "circuit_state",
    }  # fmt: skip


def test_vectors_that_are_not_there_yet_are_pending(open_tools: Callable[..., Tools]) -> None:
    tools = open_tools(memory_embedding=False)
    stored(tools, text="one")
    semantic = tools("get_statistics")["semantic_search"]
    assert (semantic["enabled"], semantic["available"], semantic["context_count"]) == (False, False, 0)
    assert (semantic["coverage_percentage"], semantic["pending"]) == (0, 1)


ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("store"), st.sampled_from("abc"), st.sampled_from(["user", "agent"]), st.booleans()),
        st.tuples(st.just("delete"), st.integers(1, 12)),
        st.tuples(st.just("image"), st.integers(1, 12), st.booleans()),
    ),
    max_size=12,
)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(actions=ACTIONS)
def test_counts_are_exact_after_any_writes(open_tools: Callable[..., Tools], actions: list[tuple[Any, ...]]) -> None:
    tools = open_tools(memory_embedding=False)
    for place, action in enumerate(actions):
        if action[0] == "store":
            images = [PIXEL] if action[3] else []
            stored(tools, thread_id=action[1], source=action[2], text=f"text {place}", images=images)
        elif action[0] == "delete":
            tools("delete_context", context_ids=[action[1]])
        else:
            tools("update_context", context_id=action[1], images=[PIXEL] if action[2] else [])
    entries = tools("search_context", limit=100)["results"]
    threads = {thread["thread_id"]: thread for thread in tools("list_threads")["threads"]}
    assert set(threads) == {entry["thread_id"] for entry in entries}
    for name, thread in threads.items():
        own = [entry for entry in entries if entry["thread_id"] == name]
        assert thread["entry_count"] == len(own)
        assert thread["sources"]["user"] == sum(entry["source"] == "user" for entry in own)
        assert thread["multimodal_count"] == sum(entry["content_type"] == "multimodal" for entry in own)
        assert (thread["last_id"], thread["first_entry"]) == (own[0]["id"], own[-1]["created_at"])
    answer = tools("get_statistics")
    assert answer["total_entries"] == len(entries)
    assert answer["total_images"] == sum(entry.get("image_count", 0) for entry in entries)
    assert tools.library.store.check() == []


@pytest.mark.parametrize("arguments", [{"limit": 0}, {"limit": 10_001}, {"offset": -1}, {"colour": "red"}])
def test_wrong_arguments_are_refused(tools: Tools, arguments: dict[str, Any]) -> None:
    assert tools("list_threads", **arguments)["error"]["code"] == "invalid_argument"
