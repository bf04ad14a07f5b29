"""`delete_context` and `delete_context_batch`, sentence by sentence of contracts/memory.md, section 4."""

from __future__ import annotations

import base64
import time
from typing import Any

import pytest
from memory_calls import Tools, entry, refused, stored, there

from opening import rows

IMAGE = {"data": base64.b64encode(b"picture").decode()}


def tables(tools: Tools) -> dict[str, int]:
    """How many rows each table has that an entry leaves something in."""
    names = (
        "items", "bodies", "tags", "chunks", "embeddings", "attachments", "item_attachments", "memories",
        "memory_threads", "memory_history", "supersessions", "metadata_values", "metadata_holders",
    )  # fmt: skip
    return {name: rows(tools.library.store, f"select count(*) from {name}")[0][0] for name in names}


def test_a_delete_leaves_nothing_behind(tools: Tools) -> None:
    first = stored(tools, text="a", tags=["x"], images=[IMAGE], metadata={"status": "open"})
    tools("update_context", context_id=first, text="b")
    second = stored(tools, text="c", supersedes=first)
    answer = tools("delete_context", context_ids=[first, f"memory://{second}", 99])
    assert answer == {"success": True, "deleted_count": 2, "message": "Successfully deleted 2 context entries"}
    assert set(tables(tools).values()) == {0}
    assert tools.library.search("a b c").hits == ()


def test_a_thread_is_deleted_whole(tools: Tools) -> None:
    for text in "abc":
        stored(tools, text=text, thread_id="gone")
    stays = stored(tools, text="d")
    assert tools("delete_context", thread_id="  gone ")["deleted_count"] == 3
    assert there(tools) == [stays]


def test_deleting_what_is_not_there_succeeds(tools: Tools) -> None:
    assert tools("delete_context", context_ids=[5])["deleted_count"] == 0
    assert tools("delete_context", thread_id="nowhere")["message"] == "Successfully deleted 0 context entries"


def test_a_dry_run_deletes_nothing(tools: Tools) -> None:
    numbers = [stored(tools, text=text) for text in "abc"]
    for name, given in (("delete_context", {"thread_id": "t"}), ("delete_context_batch", {"thread_ids": ["t"]})):
        answer = tools(name, **given, dry_run=True)
        assert (answer["deleted_count"], answer["would_delete"], answer["dry_run"]) == (0, 3, True)
        assert answer["context_ids"] == numbers
    assert there(tools) == numbers


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, "Must provide either context_ids or thread_id"),
        ({"context_ids": None}, "Must provide either context_ids or thread_id"),
        ({"context_ids": [1], "thread_id": "t"}, "Provide either context_ids or thread_id, not both"),
        ({"context_ids": []}, "context_ids must contain at least one item"),
        ({"context_ids": [0]}, "context_id must be a positive integer"),
        ({"context_ids": ["x"]}, "context_id must be a positive integer"),
        ({"context_ids": list(range(1, 1002))}, "context_ids must have at most 1000 items, not 1001"),
        ({"thread_id": " "}, "thread_id cannot be empty or whitespace"),
    ],
)
def test_a_delete_needs_one_thing_to_go_by(tools: Tools, given: dict[str, Any], sentence: str) -> None:
    stored(tools)
    assert sentence in refused(tools("delete_context", **given))
    assert there(tools) == [1]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            {},
            "At least one deletion criterion must be provided: context_ids, thread_ids, source, or older_than_days",
        ),
        (
            {"source": "user"},
            "source filter must be combined with another criterion (context_ids, thread_ids, or older_than_days)",
        ),
        ({"thread_ids": []}, "thread_ids must contain at least one item"),
        ({"thread_ids": [], "context_ids": [1]}, "thread_ids must contain at least one item"),
        ({"older_than_days": 0}, "Invalid arguments for delete_context_batch: older_than_days must be at least 1"),
    ],
)
def test_a_batch_delete_needs_a_criterion(tools: Tools, given: dict[str, Any], sentence: str) -> None:
    stored(tools)
    assert refused(tools("delete_context_batch", **given)) == sentence
    assert there(tools) == [1]


def test_criteria_are_all_required_and_said_back(tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    old = stored(tools, text="a")
    agent = stored(tools, text="b", source="agent")
    other = stored(tools, text="c", thread_id="other")
    later = time.time_ns() + 31 * 86_400 * 10**9
    monkeypatch.setattr(time, "time_ns", lambda: later)
    young = stored(tools, text="d")
    answer = tools(
        "delete_context_batch",
        context_ids=[old, agent, young],
        thread_ids=["t"],
        source="user",
        older_than_days=30,
    )
    assert answer["criteria_used"] == [
        "context_ids: 3 IDs",
        "thread_ids: 1 threads",
        "source: user",
        "older_than_days: 30",
    ]
    assert (answer["deleted_count"], there(tools)) == (1, [agent, other, young])
    assert tools("delete_context_batch", older_than_days=10**15)["deleted_count"] == 0


def test_what_was_superseded_comes_back(tools: Tools) -> None:
    older = stored(tools, text="a")
    newer = stored(tools, text="b", supersedes=older)
    tools("delete_context_batch", context_ids=[newer])
    assert entry(tools, older).row.superseded_by is None
