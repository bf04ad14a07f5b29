"""The searches of the memory surface, called as a door calls them.

1. Replies have the fields of the contract, and nothing else.
2. The four lexical modes, relaxation, highlights, truncation and repairs are as the contract says.
3. Hybrid is plain reciprocal rank fusion over whole lists; a failing list is named.
4. Filters hold in all four searches, and malformed ones never run.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from memory_calls import TOOLS, Tools, refused, stored

from commonplace.tools.tool import Call, Reply
from opening import alter

SEARCHES = ["search_context", "semantic_search_context", "fts_search_context", "hybrid_search_context"]
ENTRY = {
    "id", "uri", "thread_id", "source", "content_type", "text_content", "is_text_content_truncated", "summary",
    "metadata", "tags", "created_at", "updated_at", "version",
}  # fmt: skip
PIXEL = base64.b64encode(b"not really a picture").decode()


def ids(answer: dict[str, Any]) -> list[int]:
    assert "results" in answer, answer
    return [entry["id"] for entry in answer["results"]]


def fts(tools: Tools, query: str, mode: str = "match", **more: Any) -> list[int]:
    return ids(tools("fts_search_context", query=query, mode=mode, limit=100, **more))


def asked(tool: str) -> dict[str, Any]:
    return {} if tool == "search_context" else {"query": "tea"}


@pytest.fixture
def tea(tools: Tools) -> Tools:
    stored(tools, text="Oolong tea wants hot water", thread_id="a", tags=["Drink"], metadata={"status": "open"})
    stored(tools, text="Green tea does not", thread_id="a", source="agent", metadata={"status": "done"})
    stored(tools, text="Sourdough needs a cold proof", thread_id="b", tags=["food"], metadata={"status": "open"})
    return tools


@pytest.mark.parametrize("tool", SEARCHES)
def test_an_entry_of_a_search_has_the_contracts_fields_and_no_others(tea: Tools, tool: str) -> None:
    for entry in tea(tool, **asked(tool))["results"]:
        assert set(entry) == ENTRY | (set() if tool == "search_context" else {"scores"})
        assert entry["uri"] == f"memory://{entry['id']}"


def test_the_newest_come_first_without_a_query(tea: Tools) -> None:
    answer = tea("search_context")
    assert (ids(answer), answer["count"], set(answer)) == ([3, 2, 1], 3, {"results", "count"})


def test_each_search_says_what_the_contract_adds(tea: Tools) -> None:
    semantic = tea("semantic_search_context", query="tea")
    assert set(semantic) == {"results", "count", "query", "model"}
    assert set(semantic["results"][0]["scores"]) == {"semantic_distance", "semantic_rank", "rerank_score"}
    lexical = tea("fts_search_context", query="tea")
    assert set(lexical) == {"results", "count", "query", "mode", "language", "fts_available"}
    assert (lexical["mode"], lexical["language"], lexical["fts_available"]) == ("match", "english", True)
    scores = lexical["results"][0]["scores"]
    assert set(scores) == {"fts_score", "fts_rank", "rerank_score"}
    assert scores["fts_score"] > 0
    assert scores["fts_rank"] is scores["rerank_score"] is None
    hybrid = tea("hybrid_search_context", query="tea")
    assert set(hybrid) == {
        "results", "count", "query", "fusion_method", "search_modes_used", "fts_count", "semantic_count",
    }  # fmt: skip
    assert hybrid["search_modes_used"] == ["fts", "semantic"]


@pytest.mark.parametrize(
    ("query", "mode", "expected"),
    [
        ("tea", "match", {1, 2}),
        ("tea water", "match", {1}),
        ("waters", "match", {1}),
        ('"hot water"', "match", {1}),
        ('"water hot" tea', "match", {1, 2}),
        ("wat", "prefix", {1}),
        ("gre* te", "prefix", {2}),
        ("hot water", "phrase", {1}),
        ('"green tea"', "phrase", {2}),
        ("water hot", "phrase", set()),
        ("tea NOT hot", "boolean", {2}),
        ("tea AND NOT (hot OR green)", "boolean", set()),
        ("sour* OR oolong", "boolean", {1, 3}),
        ("NOT tea", "boolean", {3}),
    ],
)
def test_a_lexical_mode_matches_what_it_says(tea: Tools, query: str, mode: str, expected: set[int]) -> None:
    assert set(fts(tea, query, mode)) == expected


def test_a_phrase_is_found_wherever_a_long_line_is_cut(tools: Tools) -> None:
    words = [f"word{number}" for number in range(600)]
    tools("store_context", thread_id="t", source="user", text=" ".join(words))
    for first in range(590):
        assert fts(tools, " ".join(words[first : first + 10]), "phrase") == [1]


def test_entries_with_some_of_the_words_come_with_a_warning(tea: Tools) -> None:
    answer = tea("fts_search_context", query="hot tea unheard")
    assert ids(answer) == [1, 2]
    assert answer["relaxed"] is True
    assert "some of them" in answer["warnings"][0]
    assert ids(tea("fts_search_context", query="hot tea unheard", offset=1)) == [2]
    assert "relaxed" not in tea("fts_search_context", query="hot tea")
    within = tea("fts_search_context", query="hot tea", metadata={"status": "done"})
    assert (ids(within), within["relaxed"]) == ([2], True)


def test_the_rest_of_an_exclusion_is_newest_first_and_scores_nothing(tea: Tools) -> None:
    answer = tea("fts_search_context", query="NOT unheard", mode="boolean", highlight=True)
    assert ids(answer) == [3, 2, 1]
    assert {entry["scores"]["fts_score"] for entry in answer["results"]} == {0.0}


def test_a_repaired_query_says_how_it_was_read(tea: Tools) -> None:
    answer = tea("fts_search_context", query='tea AND NOT "hot', mode="boolean")
    assert ids(answer) == [2]
    assert answer["warnings"] == ['A missing closing quote was added. The query was read as: tea AND NOT "hot"']


@pytest.mark.parametrize("mode", ["match", "prefix", "phrase", "boolean"])
def test_a_query_of_signs_finds_nothing_and_says_so(tea: Tools, mode: str) -> None:
    answer = tea("fts_search_context", query="?!", mode=mode)
    assert (answer["results"], answer["count"]) == ([], 0)
    assert answer["warnings"] == ["The query has no word that can be looked for."]


def test_a_blank_query_is_refused(tea: Tools) -> None:
    for tool in SEARCHES[1:]:
        assert refused(tea(tool, query=" \n")) == "query cannot be empty or whitespace"


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    query=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=80),
    mode=st.sampled_from(["match", "prefix", "phrase", "boolean"]),
)
def test_random_text_never_fails(tea: Tools, query: str, mode: str) -> None:
    answer = tea("fts_search_context", query=query, mode=mode, highlight=True)
    if query.strip():
        assert answer["count"] == len(answer["results"])


def test_a_highlight_shows_every_match_and_always_has_a_mark(tea: Tools) -> None:
    shown = tea("fts_search_context", query='teas "hot water"', highlight=True)["results"][0]["highlighted"]
    assert shown == "Oolong <mark>tea</mark> wants <mark>hot water</mark>"
    far = "alpha " + "filler word " * 200 + "omega"
    stored(tea, text=far)
    shown = tea("fts_search_context", query="alpha omega", highlight=True)["results"][0]["highlighted"]
    assert "<mark>alpha</mark>" in shown
    assert "<mark>omega</mark>" in shown
    assert " … " in shown
    assert len(re.sub("</?mark>", "", shown)) <= 300
    assert "highlighted" not in tea("fts_search_context", query="alpha omega")["results"][0]


def test_a_long_text_is_truncated_in_searches_and_whole_by_id(tea: Tools) -> None:
    text = "word " * 100
    number = stored(tea, text=text)
    (entry,) = tea("search_context", limit=1)["results"]
    assert entry["text_content"] == "word " * 59 + "word..."
    assert entry["is_text_content_truncated"] is True
    (whole,) = tea("get_context_by_ids", context_ids=[number])["result"]
    assert whole["text_content"] == text


def test_entries_come_by_id_in_the_order_asked_for(tea: Tools) -> None:
    answer = tea("get_context_by_ids", context_ids=[3, "memory://1", 3, 99, "2"])
    assert [entry["id"] for entry in answer["result"]] == [3, 1, 2]
    assert answer["missing_ids"] == [99]
    assert set(answer["result"][0]) == (ENTRY - {"is_text_content_truncated"}) | {"images"}
    assert answer["result"][0]["summary"] is None


@pytest.mark.parametrize("tool", SEARCHES)
@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"thread_id": " a "}, {1, 2}),
        ({"source": "agent"}, {2}),
        ({"tags": ["DRINK", "nothing"]}, {1}),
        ({"content_type": "multimodal"}, set()),
        ({"metadata": {"status": "OPEN"}}, {1, 3}),
        ({"metadata_filters": [{"key": "status", "operator": "ne", "value": "open"}]}, {2}),
        ({"start_date": "2000-01-01", "end_date": "2001-01-01"}, set()),
        ({"start_date": "2000-01-01"}, {1, 2, 3}),
    ],
)
def test_a_filter_holds_in_every_search(tea: Tools, tool: str, filters: dict[str, Any], expected: set[int]) -> None:
    query = {} if tool == "search_context" else {"query": "tea OR sourdough"}
    if tool == "fts_search_context":
        query["mode"] = "boolean"
    assert set(ids(tea(tool, **query, **filters))) == expected


@pytest.mark.parametrize("tool", SEARCHES)
def test_a_malformed_filter_never_runs(tea: Tools, tool: str) -> None:
    answer = tea(tool, **asked(tool), metadata_filters=[{"key": "a", "operator": "like"}, 7], metadata={"b": None})
    assert (answer["results"], answer["count"]) == ([], 0)
    assert answer["error"] == "Metadata filter validation failed"
    assert len(answer["validation_errors"]) == 3


@pytest.mark.parametrize("tool", SEARCHES)
def test_superseded_entries_leave_the_searches_unless_asked_for(tea: Tools, tool: str) -> None:
    newer = stored(tea, text="Oolong tea wants boiling water", thread_id="a", supersedes=[1])
    assert 1 not in ids(tea(tool, **asked(tool)))
    assert {1, newer} <= set(ids(tea(tool, **asked(tool), include_superseded=True)))
    tea("delete_context", context_ids=[newer])
    assert 1 in ids(tea(tool, **asked(tool)))


def test_a_limit_over_a_hundred_is_clamped(tea: Tools) -> None:
    assert tea("search_context", limit=500)["clamped_limit"] == {"requested": 500, "applied": 100}
    assert "clamped_limit" not in tea("search_context", limit=100)


def test_hybrid_is_plain_reciprocal_rank_fusion(tea: Tools) -> None:
    answer = tea("hybrid_search_context", query="hot tea", rrf_k=7, explain_query=True)
    for entry in answer["results"]:
        scores = entry["scores"]
        ranks = [rank for rank in (scores["fts_rank"], scores["semantic_rank"]) if rank]
        assert scores["rrf"] == pytest.approx(sum(1 / (7 + rank) for rank in ranks))
        assert (scores["fts_rank"] is None) == (scores["fts_score"] is None)
    assert answer["results"][0]["id"] == 1
    assert (answer["fts_count"], answer["semantic_count"]) == (1, 3)
    fusion = answer["stats"]["fusion_stats"]
    assert fusion["total_unique_documents"] == (
        fusion["documents_in_both"] + fusion["documents_fts_only"] + fusion["documents_semantic_only"]
    )
    assert answer["fts_count"] == fusion["documents_in_both"] + fusion["documents_fts_only"]
    assert answer["semantic_count"] == fusion["documents_in_both"] + fusion["documents_semantic_only"]
    assert answer["stats"]["adaptive_fts_mode"] == "match"
    long = tea("hybrid_search_context", query="hot tea cold proof", explain_query=True)
    assert long["stats"]["adaptive_fts_mode"] == "boolean"
    assert long["fts_count"] == 3


def test_explaining_adds_stats_and_nothing_else_does(tea: Tools) -> None:
    keys = {"execution_time_ms", "filters_applied", "rows_returned", "backend", "query_plan"}
    for tool in SEARCHES[:3]:
        stats = tea(tool, **asked(tool), explain_query=True, metadata={"status": "open"})["stats"]
        extra = {"embedding_generation_ms"} if tool == "semantic_search_context" else set()
        assert set(stats) == keys | extra
        assert stats["filters_applied"] == 1
        assert "stats" not in tea(tool, **asked(tool))


def test_without_vectors_the_semantic_search_is_refused_and_the_hybrid_goes_on(
    open_tools: Callable[..., Tools],
) -> None:
    tools = open_tools(model="no-such-model")
    stored(tools, text="Oolong tea wants hot water")
    sentence = refused(tools("semantic_search_context", query="tea"))
    assert sentence.startswith("Semantic search is not available: ")
    assert sentence.endswith(". Use fts_search_context or hybrid_search_context.")
    answer = tools("hybrid_search_context", query="tea")
    assert (ids(answer), answer["search_modes_used"], answer["semantic_count"]) == ([1], ["fts"], 0)
    assert answer["warnings"][0].startswith("Semantic sub-search failed; results may be based on FTS only: ")
    only = open_tools(model="no-such-model", memory_lexical=False)
    stored(only, text="tea")
    assert refused(only("hybrid_search_context", query="tea")).startswith("Hybrid search failed: ")


def test_a_search_by_meaning_says_how_much_it_could_not_see(open_tools: Callable[..., Tools]) -> None:
    tools = open_tools(embed_on_search=0)
    entries = [{"thread_id": "t", "source": "user", "text": f"a cup of tea, number {n}"} for n in range(80)]
    assert tools("store_context_batch", entries=entries)["success"]
    answer = tools("semantic_search_context", query="tea", limit=100)
    assert answer["count"] == 64
    assert answer["warnings"] == ["Only 80.0% of the entries have vectors yet; the others were not searched"]
    tools.library.embed()
    answer = tools("semantic_search_context", query="tea", limit=100)
    assert (answer["count"], "warnings" in answer) == (80, False)


def test_images_come_when_asked_for_and_never_as_text(tools: Tools) -> None:
    number = stored(tools, text="a picture", images=[{"data": PIXEL}])
    assert "images" not in tools("search_context")["results"][0]
    assert tools("search_context")["results"][0]["image_count"] == 1
    (entry,) = tools("search_context", include_images=True)["results"]
    assert entry["images"] == [{"data": PIXEL, "mime_type": "image/png"}]
    reply = TOOLS["get_context_by_ids"].call(Call(tools.library), {"context_ids": [number]})
    assert isinstance(reply, Reply)
    assert [block["type"] for block in reply.content] == ["text", "image"]
    assert PIXEL not in str(reply.content[0]["text"])
    assert "(base64, 20 bytes)" in str(reply.content[0]["text"])
    assert reply.content[1]["data"] == PIXEL


def test_an_image_is_shown_however_its_type_is_spelled(tools: Tools) -> None:
    number = stored(tools, text="a picture", images=[{"data": PIXEL, "mime_type": "IMAGE/PNG"}])
    reply = TOOLS["get_context_by_ids"].call(Call(tools.library), {"context_ids": [number]})
    assert isinstance(reply, Reply)
    assert [block.get("mimeType") for block in reply.content] == [None, "IMAGE/PNG"]


def test_what_has_expired_is_seen_by_nothing(tools: Tools) -> None:
    number = stored(tools, text="short-lived tea", ttl_seconds=3600)
    alter(tools.library.store, f"update memories set expires_at = 1 where id = {int(number)}")
    for tool in SEARCHES:
        assert ids(tools(tool, **asked(tool))) == []
    assert tools("get_context_by_ids", context_ids=[number])["missing_ids"] == [number]
    assert tools("get_statistics")["total_entries"] == 0


def test_a_long_entry_is_one_row_in_every_list(tools: Tools) -> None:
    stored(tools, text="\n\n".join(f"Part {part}. " + "Some tea is poured. " * 80 for part in range(8)))
    stored(tools, text="a cup of tea")
    for tool in SEARCHES[1:]:
        assert sorted(ids(tools(tool, query="tea"))) == [1, 2]


@pytest.mark.parametrize(
    ("language", "query", "found"),
    [
        ("german", "katze", [1]),
        ("german", "hund", [2]),
        ("english", "katze", []),
        ("simple", "katzen", [1]),
        ("simple", "katze", []),
        ("simple", "hunde", [2]),
        ("simple", "hund", []),
    ],
)
@pytest.mark.parametrize("mode", ["match", "boolean"])
def test_short_texts_are_stemmed_as_the_setting_says(
    open_tools: Callable[..., Tools], language: str, mode: str, query: str, found: list[int]
) -> None:
    tools = open_tools(memory_language=language)
    stored(tools, text="Katzen laufen schnell")
    tools("update_context", context_id=stored(tools, text="nothing yet"), text="Hunde laufen langsam")
    assert [hit["id"] for hit in tools("fts_search_context", query=query, mode=mode)["results"]] == found
