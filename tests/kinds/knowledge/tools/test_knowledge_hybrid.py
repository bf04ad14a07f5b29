"""Searching by meaning too: what is near is found, exclusions and filters hold, scores depend on nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from knowledge_calls import Tools, uris

from commonplace.library import Library
from opening import library_settings


@pytest.fixture
def hybrid(tmp_path: Path) -> Iterator[Tools]:
    with Library.open(tmp_path, settings=library_settings(tmp_path, knowledge_search="hybrid")) as library:
        tools = Tools(library)
        tools.note("Pets", "The dog and the puppy slept on the rug.", tags=["home"])
        tools.note("Engines", "A car needs petrol and oil.")
        tools.put("prompt", name="Vet", user_prompt="Advise on a sick hound or puppy.")
        for number in range(20):
            tools.note(f"Filler {number}", f"Quarterly figure {number} of the ledger.")
        yield tools


def test_without_vectors_words_are_searched_and_the_reply_says_so(hybrid: Tools) -> None:
    found = hybrid("knowledge.search", query="petrol")
    assert (uris(found), found["results"][0]["score_type"]) == (["notes://engines"], "fts")
    assert [warning["code"] for warning in found["warnings"]] == ["words_only"]


def test_what_is_near_is_found_and_the_score_type_says_so(hybrid: Tools) -> None:
    hybrid.library.embed()
    found = hybrid("knowledge.search", query="canine")
    assert {"notes://pets", "prompts://1"} & set(uris(found))
    assert {hit["score_type"] for hit in found["results"]} == {"hybrid"}
    assert found["warnings"] == []
    assert "notes://engines" not in uris(found)
    assert uris(hybrid("knowledge.search", query="canine -puppy")) == []
    assert uris(hybrid("knowledge.search", query='canine "petrol and oil"')) == ["notes://engines"]


def test_the_nearer_comes_first_and_a_whole_tag_before_both(hybrid: Tools) -> None:
    said = "A puppy barked at the mailman."
    hybrid.note("Talk", said, updated_at="2023-01-01T00:00:00Z")
    hybrid.note("Parts", "Barking, said the postman of a young dog.", updated_at="2024-01-01T00:00:00Z")
    hybrid.put("character", name="A", description=said)
    hybrid.put("character", name="B", tags=[said])
    hybrid.library.embed()
    found = hybrid("notes.search", query=said)["results"]
    assert [hit["uri"] for hit in found[:2]] == ["notes://talk", "notes://parts"]
    assert 1 > found[0]["score"] > found[1]["score"] > 0.5
    assert uris(hybrid("characters.search", query=said)) == ["characters://2", "characters://1"]


def test_scores_and_pages_are_the_same_whatever_is_asked_beside(hybrid: Tools) -> None:
    hybrid.library.embed()
    whole = hybrid("knowledge.search", query="canine puppy ledger", limit=100)
    scores = {hit["uri"]: hit["score"] for hit in whole["results"]}
    assert whole["total_estimated"] == len(scores)
    paged = [
        hit
        for offset in range(0, len(scores), 3)
        for hit in hybrid("knowledge.search", query="canine puppy ledger", limit=3, offset=offset)["results"]
    ]
    assert paged == whole["results"]
    for hit in hybrid("notes.search", query="canine puppy ledger", keywords=["home"])["results"]:
        assert hit["score"] == scores[hit["uri"]]
    assert uris(hybrid("prompts.search", query="canine puppy", fields=["author"])) == []
