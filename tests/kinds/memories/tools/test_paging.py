"""Pages of the four searches.

1. The page of a+b is the page of a followed by the page of b.
2. A walk yields every entry that matched at its first page once and in one order, whatever is written meanwhile.
3. A cursor goes on in another process too, and belongs to one search alone.
4. A budget keeps the first results and says what it left out.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from memory_calls import Tools, refused, stored

from opening import open_library

SEARCHES: list[dict[str, Any]] = [
    {"tool": "search_context"},
    {"tool": "search_context", "metadata": {"even": True}},
    {"tool": "fts_search_context", "query": "tea"},
    {"tool": "fts_search_context", "query": "tea unheard pot"},
    {"tool": "fts_search_context", "query": "NOT unheard", "mode": "boolean"},
    {"tool": "fts_search_context", "query": "tea", "metadata": {"even": True}},
    {"tool": "semantic_search_context", "query": "a warm drink"},
    {"tool": "hybrid_search_context", "query": "hot tea"},
]
WORDS = ["tea", "hot", "pot", "cup", "water", "leaf"]


def page(tools: Tools, search: dict[str, Any], **more: Any) -> dict[str, Any]:
    answer = tools(search["tool"], **{key: value for key, value in search.items() if key != "tool"}, **more)
    assert "results" in answer, answer
    return answer


def ids(answer: dict[str, Any]) -> list[int]:
    return [entry["id"] for entry in answer["results"]]


def fill(tools: Tools, amount: int) -> None:
    entries = [
        {
            "thread_id": f"t{number % 3}",
            "source": "user",
            "text": f"tea {WORDS[number % 6]} {WORDS[number % 5]} {number}",
            "metadata": {"even": number % 2 == 0},
        }
        for number in range(amount)
    ]
    for start in range(0, amount, 100):
        assert tools("store_context_batch", entries=entries[start : start + 100])["success"]


def walk(tools: Tools, search: dict[str, Any], limit: int) -> Iterator[dict[str, Any]]:
    answer = page(tools, search, limit=limit)
    yield answer
    while "next_cursor" in answer:
        answer = page(tools, search, limit=limit, cursor=answer["next_cursor"])
        yield answer


@pytest.fixture
def filled(tools: Tools) -> Tools:
    fill(tools, 40)
    return tools


@pytest.mark.parametrize("search", SEARCHES, ids=str)
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(first=st.integers(1, 30), second=st.integers(1, 30))
def test_two_pages_are_one_longer_page(filled: Tools, search: dict[str, Any], first: int, second: int) -> None:
    together = ids(page(filled, search, limit=first + second))
    parts = ids(page(filled, search, limit=first)) + ids(page(filled, search, limit=second, offset=first))
    assert together == parts


@pytest.mark.parametrize("search", SEARCHES, ids=str)
def test_a_walk_meets_everything_once_while_others_write(filled: Tools, search: dict[str, Any]) -> None:
    expected = ids(page(filled, search, limit=100))
    assert len(expected) >= 20
    met: list[int] = []
    gone: set[int] = set()
    for number, answer in enumerate(walk(filled, search, 4)):
        met += ids(answer)
        stored(filled, text=f"tea hot pot cup, later {number}", thread_id=f"later {number}", metadata={"even": True})
        left = [one for one in expected if one not in met and one not in gone]
        if len(left) > 6 and number % 2:
            filled("delete_context", context_ids=[left[5]])
            gone.add(left[5])
        if left and not number % 3:
            filled("update_context", context_id=left[0], text=f"nothing of the kind {number}", metadata={"even": None})
    assert met == [one for one in expected if one not in gone]


def test_a_long_walk_meets_everything_once_while_a_thread_writes(tools: Tools) -> None:
    fill(tools, 600)
    done = threading.Event()

    def write() -> None:
        for number in range(2000):
            if done.is_set():
                return
            stored(tools, text=f"tea pot {number}", thread_id=f"w{number}", metadata={"even": True})

    for search in SEARCHES[:6]:
        expected: list[int] = []
        for offset in range(0, 1000, 100):
            expected += ids(page(tools, search, limit=100, offset=offset))
        done.clear()
        writer = threading.Thread(target=write)
        writer.start()
        try:
            met = [number for answer in walk(tools, search, 60) for number in ids(answer)]
        finally:
            done.set()
            writer.join(timeout=60)
        assert set(expected) <= set(met)
        assert len(met) == len(set(met))


@pytest.mark.parametrize("search", [SEARCHES[0], SEARCHES[2], SEARCHES[4]], ids=str)
def test_what_is_replaced_or_comes_back_during_a_walk_changes_nothing_in_it(
    tools: Tools, search: dict[str, Any]
) -> None:
    fill(tools, 300)
    successor = stored(tools, text="tea anew", supersedes=[4])
    expected = [*ids(page(tools, search, limit=100)), *ids(page(tools, search, limit=100, offset=100))]
    expected += [*ids(page(tools, search, limit=100, offset=200)), *ids(page(tools, search, limit=100, offset=300))]
    pages = walk(tools, search, 50)
    met = ids(next(pages))
    stored(tools, text="another tea", supersedes=[expected[-2], expected[160]])
    tools("delete_context", context_ids=[successor])
    met += [number for answer in pages for number in ids(answer)]
    assert met == [number for number in expected if number != successor or number in met[:50]]
    assert 4 not in met


@pytest.mark.parametrize("search", SEARCHES, ids=str)
def test_a_page_may_change_its_size_on_the_way(filled: Tools, search: dict[str, Any]) -> None:
    expected = ids(page(filled, search, limit=100))
    answer = page(filled, search, limit=3)
    met, limit = ids(answer), 1
    while "next_cursor" in answer:
        limit = limit * 2 % 11 + 1
        answer = page(filled, search, limit=limit, cursor=answer["next_cursor"], explain_query=True)
        met += ids(answer)
    assert met == expected


@pytest.mark.parametrize("search", SEARCHES, ids=str)
def test_a_cursor_goes_on_in_another_process(
    filled: Tools, search: dict[str, Any], backend: str, tmp_path: Path
) -> None:
    expected = ids(page(filled, search, limit=100))
    answer = page(filled, search, limit=7)
    met = ids(answer)
    stored(filled, text="a later cup of tea", metadata={"even": True})
    while "next_cursor" in answer:
        with open_library(backend, tmp_path) as library:
            answer = page(Tools(library), search, limit=7, cursor=answer["next_cursor"])
        met += ids(answer)
    assert met == expected


@pytest.mark.parametrize("search", SEARCHES[:6], ids=str)
def test_a_walk_that_goes_on_elsewhere_meets_nothing_that_was_stored_since(
    tools: Tools, search: dict[str, Any], backend: str, tmp_path: Path
) -> None:
    fill(tools, 300)
    answer = page(tools, search, limit=7)
    met = ids(answer)
    for number in range(30):
        stored(tools, text="a later cup of hot tea", thread_id=f"later {number}", metadata={"even": True})
    with open_library(backend, tmp_path) as library:
        while "next_cursor" in answer:
            answer = page(Tools(library), search, limit=7, cursor=answer["next_cursor"])
            met += ids(answer)
    assert sorted(met) == [number for number in range(1, 301) if "metadata" not in search or number % 2]


def test_the_decision_to_relax_is_made_once(filled: Tools) -> None:
    search = {"tool": "fts_search_context", "query": "tea leaf oolong"}
    answer = page(filled, search, limit=3)
    assert answer["relaxed"]
    stored(filled, text="oolong tea leaf")
    again = page(filled, search, limit=3, cursor=answer["next_cursor"])
    assert again["relaxed"]
    assert not set(ids(again)) & set(ids(answer))
    assert "relaxed" not in page(filled, search, limit=3)


def test_a_cursor_belongs_to_one_search(filled: Tools) -> None:
    cursor = page(filled, SEARCHES[2], limit=2)["next_cursor"]
    strange = "cursor does not belong to this search; run it again without cursor"
    assert refused(filled("fts_search_context", query="pot", cursor=cursor)) == strange
    assert refused(filled("fts_search_context", query="tea", mode="prefix", cursor=cursor)) == strange
    assert refused(filled("fts_search_context", query="tea", thread_id="t1", cursor=cursor)) == strange
    assert refused(filled("search_context", cursor=cursor)) == strange
    for wrong in ("", "x", "ä", cursor[:-4] + "AAAA", cursor + "A", "=" * 9):
        assert refused(filled("fts_search_context", query="tea", cursor=wrong)) == strange
    assert (
        refused(filled("fts_search_context", query="tea", cursor=cursor, offset=1)) == "Use cursor or offset, not both"
    )
    assert len(cursor) < 100


def test_a_budget_keeps_the_first_and_the_cursor_goes_on_behind_it(filled: Tools) -> None:
    search = SEARCHES[2]
    expected = ids(page(filled, search, limit=20))
    answer = page(filled, search, limit=20, max_tokens=300)
    sizes = [-(-len(json.dumps(entry, ensure_ascii=False, separators=(",", ":"))) // 4) for entry in answer["results"]]
    assert answer["tokens"] == {"budget": 300, "used": sum(sizes), "omitted": 20 - len(sizes)}
    assert sum(sizes) <= 300
    assert len(sizes) >= 2
    rest = page(filled, search, limit=20 - len(sizes), cursor=answer["next_cursor"])
    assert ids(answer) + ids(rest) == expected
    tiny = page(filled, search, limit=20, max_tokens=1)
    assert (len(tiny["results"]), tiny["tokens"]["omitted"]) == (1, 19)
    assert "tokens" not in page(filled, search)


def test_the_last_page_has_no_cursor(filled: Tools) -> None:
    assert "next_cursor" not in page(filled, SEARCHES[0], limit=40)
    assert "next_cursor" in page(filled, SEARCHES[0], limit=39)
    assert "next_cursor" not in page(filled, SEARCHES[0], offset=100)


def test_lists_by_rank_reach_a_thousand_deep_and_say_so(tools: Tools) -> None:
    fill(tools, 1100)
    tools.library.embed()
    semantic = page(tools, SEARCHES[6], limit=100, offset=950)
    assert (semantic["count"], semantic["rank_depth_limit"]) == (50, 1000)
    hybrid = page(tools, SEARCHES[7], limit=5)
    assert (hybrid["semantic_count"], hybrid["rank_depth_limit"]) == (1000, 1000)
    assert page(tools, SEARCHES[2], limit=100, offset=1050)["count"] == 50
