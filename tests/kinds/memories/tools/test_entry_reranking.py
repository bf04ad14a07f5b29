"""Searches that a reranker over HTTP takes a second look at.

1. The first 50 entries are in the order of its scores, whatever the page; the rest follow as they were found.
2. It reads the matched chunk, or the text around the matches.
3. When it fails or is late, results keep their order, and the reply and the statistics say so.
4. A walk has one order, in this process and in others, whatever becomes of the reranker meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from memory_calls import Tools, stored

from commonplace.kinds.memories.tools.environment import aliases
from commonplace.library import Library
from commonplace.text.token_estimates import estimate
from opening import open_library
from wire_server import Handler, Site, cut_off, reset, says, serving, silent, status, truncated

Open = Callable[..., Tools]

SEARCHES: list[dict[str, Any]] = [
    {"tool": "fts_search_context", "query": "warm tea"},
    {"tool": "semantic_search_context", "query": "warm tea"},
    {"tool": "hybrid_search_context", "query": "warm tea"},
]
IDS = ["fts", "semantic", "hybrid"]
TROUBLE = {
    "reset": reset,
    "cut off": cut_off,
    "truncated": truncated,
    "500": status(500),
    "not found": status(404, {"error": "model not found"}),
    "nonsense": says([]),
    "not numbers": says([{"index": 0, "score": "high"}]),
}
FORMS = ("warm tea", "warm teas", "warms teas")
"""The same words for an index; for the judge, which compares what is written, all, half and none of the query."""


@pytest.fixture
def site() -> Iterator[Site]:
    with serving() as found:
        yield found


@pytest.fixture
def opened(backend: str, tmp_path: Path, site: Site) -> Iterator[Open]:
    """Tools over one library, opened as often as one likes, each time as another process would."""
    libraries: list[Library] = []

    def make(**settings: object) -> Tools:
        given = {"reranker": "tei:judge", "reranker_url": site.url, **settings}
        libraries.append(open_library(backend, tmp_path, **given))
        return Tools(libraries[-1])

    yield make
    for library in libraries:
        library.close()


def fill(tools: Tools, amount: int) -> None:
    entries = [
        {"thread_id": "t", "source": "user", "text": f"{FORMS[number % 3]} {number}"} for number in range(amount)
    ]
    for start in range(0, amount, 100):
        assert tools("store_context_batch", entries=entries[start : start + 100])["success"]
    tools.library.embed()


def page(tools: Tools, search: dict[str, Any], **more: Any) -> dict[str, Any]:
    answer = tools(search["tool"], **{key: value for key, value in search.items() if key != "tool"}, **more)
    assert "results" in answer, answer
    return answer


def ids(answer: dict[str, Any]) -> list[int]:
    return [entry["id"] for entry in answer["results"]]


def scores(answer: dict[str, Any]) -> list[float | None]:
    return [entry["scores"]["rerank_score"] for entry in answer["results"]]


def reordered(entries: list[dict[str, Any]]) -> list[int]:
    """What the judge makes of entries in the order of retrieval: equals newest first."""

    def key(entry: dict[str, Any]) -> tuple[float, int]:
        return -len({"warm", "tea"} & set(entry["text_content"].split())) / 2, -entry["id"]

    return [entry["id"] for entry in sorted(entries[:50], key=key)] + [entry["id"] for entry in entries[50:]]


def passages(site: Site) -> list[str]:
    return [passage for asked in site.asked for passage in asked.body["texts"]]


@pytest.mark.parametrize("search", SEARCHES, ids=IDS)
def test_the_first_fifty_are_in_the_order_of_their_scores(opened: Open, search: dict[str, Any]) -> None:
    tools, plain = opened(), opened(memory_reranking=False)
    fill(tools, 70)
    retrieved = page(plain, search, limit=100)["results"]
    answer = page(tools, search, limit=100)
    assert ids(answer) == reordered(retrieved) != [entry["id"] for entry in retrieved]
    found = scores(answer)
    assert found[50:] == [None] * 20
    assert found[:50] == sorted((score for score in found[:50] if score is not None), reverse=True)
    assert set(found[:50]) == {0.0, 0.5, 1.0}
    assert "warnings" not in answer
    other = {entry["id"]: {**entry["scores"], "rerank_score": None} for entry in answer["results"]}
    assert other == {entry["id"]: entry["scores"] for entry in retrieved}


@pytest.mark.parametrize("search", SEARCHES, ids=IDS)
def test_pages_of_any_size_are_one_list_for_which_the_reranker_is_asked_once(
    opened: Open, site: Site, search: dict[str, Any]
) -> None:
    tools = opened()
    fill(tools, 64)
    whole = page(tools, search, limit=100)
    asked = len(site.asked)
    for first in (1, 7, 49, 50, 51, 60):
        parts = [page(tools, search, limit=first), page(tools, search, limit=100, offset=first)]
        assert [*ids(parts[0]), *ids(parts[1])] == ids(whole)
        assert [*scores(parts[0]), *scores(parts[1])] == scores(whole)
    assert len(site.asked) == asked == 2, "a TEI server takes 32 texts at a time"


@pytest.mark.parametrize("limit", [3, 50])
@pytest.mark.parametrize("search", SEARCHES, ids=IDS)
def test_a_walk_meets_everything_once_in_one_order(
    opened: Open, site: Site, search: dict[str, Any], limit: int
) -> None:
    tools = opened()
    fill(tools, 130)
    expected = [*ids(page(tools, search, limit=100)), *ids(page(tools, search, limit=100, offset=100))]
    answer = page(tools, search, limit=limit)
    met, number = ids(answer), 0
    site.always = status(500)  # nobody has to be asked again
    while "next_cursor" in answer:
        number += 1
        stored(tools, text=f"warm tea, later {number}")
        answer = page(tools, search, limit=limit, cursor=answer["next_cursor"])
        met += ids(answer)
        assert "warnings" not in answer or "Reranking" not in " ".join(answer["warnings"])
    assert met == expected


@pytest.mark.parametrize("trouble", [None, status(500)], ids=["well", "failing"])
@pytest.mark.parametrize("search", SEARCHES, ids=IDS)
def test_a_walk_goes_on_in_other_processes_in_the_order_it_began(
    opened: Open, site: Site, search: dict[str, Any], trouble: Callable[[Handler], None] | None
) -> None:
    tools = opened()
    fill(tools, 64)
    whole = page(tools, search, limit=100)
    expected, answer = ids(whole), page(tools, search, limit=6)
    met, found = ids(answer), scores(answer)
    # Without one of their entries two lists are fused into another order, behind the head that the cursor brings along.
    gone = None if search["tool"] == "hybrid_search_context" else expected[40]
    site.always = trouble
    for number in range(100):
        if "next_cursor" not in answer:
            break
        stored(tools, text=f"warm tea, later {number}")
        if number == 2 and gone is not None:
            tools("delete_context", context_ids=[gone])
        answer = page(opened(), search, limit=6, cursor=answer["next_cursor"])
        met += ids(answer)
        found += scores(answer)
    assert met == [entry for entry in expected if entry != gone]
    if trouble is None:
        kept = zip(expected, scores(whole), strict=True)
        assert found == [score for entry, score in kept if entry != gone]
    else:
        assert found[6:] == [None] * (len(found) - 6)


def test_a_list_that_began_as_it_was_found_is_walked_so(opened: Open, site: Site) -> None:
    tools, plain, search = opened(), opened(memory_reranking=False), SEARCHES[0]
    fill(tools, 30)
    site.plan.extend([status(404)])
    answer = page(tools, search, limit=4)
    assert answer["warnings"]
    met = ids(answer)
    while "next_cursor" in answer:
        answer = page(opened(), search, limit=4, cursor=answer["next_cursor"])
        met += ids(answer)
    assert met == ids(page(plain, search, limit=100))


@pytest.mark.parametrize("trouble", TROUBLE)
def test_a_reranker_that_fails_leaves_the_order_as_it_was(opened: Open, site: Site, trouble: str) -> None:
    tools, plain = opened(), opened(memory_reranking=False)
    fill(tools, 12)
    site.always = TROUBLE[trouble]
    search = SEARCHES[2]
    answer = page(tools, search, limit=10, explain_query=True)
    assert ids(answer) == ids(page(plain, search, limit=10))
    assert scores(answer) == [None] * 10
    (warning,) = answer["warnings"]
    assert warning.startswith("Reranking failed; results keep the order they had: it failed: tei at 127.0.0.1")
    assert (answer["stats"]["rerank_stats"]["reranked"], answer["stats"]["rerank_stats"]["candidates"]) == (0, 12)
    record = tools("get_statistics")["reranking"]
    assert (record["enabled"], record["available"]) == (True, False)
    assert record["message"].startswith("The last time, it failed: tei at 127.0.0.1")
    site.always = None
    assert scores(page(tools, search, limit=1)) == [1.0]
    assert tools("get_statistics")["reranking"] == {
        "enabled": True, "available": True, "provider": "tei", "model": "judge",
    }  # fmt: skip


def test_a_reranker_that_is_silent_is_waited_for_two_seconds(opened: Open, site: Site) -> None:
    tools, plain = opened(), opened(memory_reranking=False)
    fill(tools, 12)
    site.always = silent
    start = time.monotonic()
    answer = page(tools, SEARCHES[0], limit=10)
    assert 1.8 < time.monotonic() - start < 6
    assert ids(answer) == ids(page(plain, SEARCHES[0], limit=10))
    assert scores(answer) == [None] * 10
    assert answer["warnings"][0].startswith("Reranking failed; results keep the order they had: it ")
    assert not tools("get_statistics")["reranking"]["available"]


def test_it_reads_around_all_the_words_of_a_long_entry(opened: Open, site: Site) -> None:
    tools = opened()
    filler = "nothing of any interest stands here. " * 400
    stored(tools, text=f"The oolong. {filler} A kettle! {filler} Porcelain.")
    stored(tools, text="oolong, kettle and porcelain")
    page(tools, {"tool": "fts_search_context", "query": "oolong kettle porcelain"})
    short, long = sorted(passages(site), key=len)
    assert short == "oolong, kettle and porcelain"
    assert all(word in long for word in ("oolong", "kettle", "Porcelain"))
    assert 400 < estimate(long) <= 512


def test_it_reads_the_chunk_that_is_nearest_in_meaning(opened: Open, site: Site) -> None:
    tools = opened()
    filler = "The committee met again and talked about the budget of the coming year. " * 60
    stored(tools, text=f"{filler}\n\nBoil fresh water for the oolong and warm the tea pot first.\n\n{filler}")
    tools.library.embed()
    answer = page(tools, {"tool": "semantic_search_context", "query": "how to brew tea"})
    assert len(answer["results"]) == 1
    (passage,) = passages(site)
    assert "oolong" in passage
    assert estimate(passage) <= 512
    assert len(passage) < 2000 < len(filler)


def test_a_hybrid_search_has_an_entry_read_where_it_stands_highest(opened: Open, site: Site) -> None:
    tools = opened()
    filler = "The committee met again and talked about the budget of the coming year. " * 60
    by_words = stored(tools, text=f"An oolong. {filler} One kettle.")
    by_meaning = stored(tools, text=f"{filler}\n\nBrewing black tea in a tea pot with boiling water.\n\n{filler}")
    tools.library.embed()
    answer = page(tools, {"tool": "hybrid_search_context", "query": "oolong kettle"})
    assert set(ids(answer)) == {by_words, by_meaning}
    around, chunk = sorted(passages(site), key=lambda passage: "oolong" not in passage)
    assert "oolong" in around
    assert "kettle" in around
    assert "tea pot" in chunk
    assert " … " not in chunk


def test_of_a_boolean_query_only_what_it_looks_for_is_judged(opened: Open, site: Site) -> None:
    tools = opened()
    fill(tools, 9)
    search = {"tool": "fts_search_context", "mode": "boolean"}
    page(tools, {**search, "query": "(warm OR hot) AND tea NOT coffee"})
    assert site.asked[-1].body["query"] == "warm hot tea"
    asked = len(site.asked)
    answer = page(tools, {**search, "query": "NOT coffee"}, limit=100)
    assert ids(answer) == sorted(ids(answer), reverse=True)
    assert scores(answer) == [None] * 9
    assert len(site.asked) == asked


def test_what_is_highlighted_stays_with_its_entry(opened: Open) -> None:
    tools = opened()
    fill(tools, 9)
    for entry in page(tools, SEARCHES[0], limit=9, highlight=True)["results"]:
        assert entry["highlighted"].replace("<mark>", "").replace("</mark>", "") == entry["text_content"]


def test_a_search_by_filters_and_one_that_finds_nothing_ask_nobody(opened: Open, site: Site) -> None:
    tools = opened()
    fill(tools, 3)
    assert "scores" not in tools("search_context")["results"][0]
    assert page(tools, {"tool": "fts_search_context", "query": "unheard"})["results"] == []
    assert page(tools, {"tool": "fts_search_context", "query": "?!"})["results"] == []
    assert site.asked == []


def test_the_stats_of_a_hybrid_search_say_what_was_reranked(opened: Open) -> None:
    tools = opened()
    fill(tools, 60)
    stats = page(tools, SEARCHES[2], explain_query=True)["stats"]["rerank_stats"]
    assert stats.pop("execution_time_ms") > 0
    assert stats == {"provider": "tei", "model": "judge", "candidates": 50, "reranked": 50}
    assert "rerank_stats" not in page(opened(reranker=""), SEARCHES[2], explain_query=True)["stats"]


def test_statistics_say_who_reranks_and_why_nobody_does(opened: Open) -> None:
    assert opened()("get_statistics")["reranking"] == {
        "enabled": True, "available": True, "provider": "tei", "model": "judge",
    }  # fmt: skip
    assert opened(memory_reranking=False)("get_statistics")["reranking"] == {
        "enabled": False, "available": False, "provider": "tei", "model": "judge",
    }  # fmt: skip
    nobody = opened(reranker="")("get_statistics")["reranking"]
    assert nobody.pop("message").startswith("No reranker is configured")
    assert nobody == {"enabled": True, "available": False, "provider": None, "model": None}
    wrong = opened(reranker="nobody:judge")("get_statistics")["reranking"]
    assert not wrong["available"]
    assert "nobody" in wrong["message"]


def test_the_other_server_s_variables_choose_the_reranker(opened: Open, site: Site) -> None:
    chosen = aliases({"RERANKING_PROVIDER": "tei", "RERANKING_MODEL": "theirs"})
    tools = opened(**chosen)
    fill(tools, 6)
    assert scores(page(tools, SEARCHES[0], limit=1)) == [1.0]
    assert tools("get_statistics")["reranking"]["model"] == "theirs"
    off = aliases({"RERANKING_PROVIDER": "tei", "RERANKING_MODEL": "theirs", "ENABLE_RERANKING": "false"})
    asked = len(site.asked)
    assert scores(page(opened(**off), SEARCHES[0], limit=1)) == [None]
    assert len(site.asked) == asked
