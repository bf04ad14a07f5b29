"""A query made wider by the best that it finds.

1. What has only words of the best is found, and those of the question still lead.
2. It says what was added where that is asked for, and why nothing was.
3. Phrases, exclusions, pages and snippets are those of the question.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.library import Library
from commonplace.model import Draft, Page, Stage
from commonplace.models.catalog import DEFAULT, MULTILINGUAL, entry
from commonplace.models.roles import Carded
from commonplace.search.legs import VectorLeg
from commonplace.search.plan import plan_lexical
from commonplace.search.request import parse
from commonplace.search.rerank import allowed
from commonplace.search.widen import MOST_ADDED, WORDS_SHARE, _with_words, telling_words, why_not

BODIES = {
    "scurvy": "Sailors with scurvy were given lemons, and the lemons and limes healed their gums.",
    "ascorbic": "Scurvy comes of a diet without lemons, limes or cabbage on a long voyage.",
    "fruit": "Lemons and limes keep for months in sand, and cabbage in brine.",
    "anchor": "Let out chain five times as long as the water is deep.",
    "roses": "Prune roses in late winter above an outward bud.",
    "bread": "A sourdough loaf rises overnight and bakes under a lid.",
    "loom": "The weft goes over and under the warp, and a shuttle carries it.",
    "clock": "A pendulum of one metre swings in a second, and a weight drives the clock.",
}
QUERY = "scurvy of sailors"


@pytest.fixture
def stocked(library: Library) -> Library:
    for key, body in BODIES.items():
        library.put(Draft("document", key, parent="n", title=key.title(), body=body))
    library.embed()
    return library


def keys(page: Page) -> list[str]:
    return [hit.item.key for hit in page.hits]


def expanded(page: Page) -> Stage | None:
    return next((stage for stage in page.stages if stage.name == "expand"), None)


def score(page: Page, key: str) -> float:
    return next(hit.score for hit in page.hits if hit.item.key == key)


def test_what_has_only_words_of_the_best_comes_before_what_has_none(stocked: Library) -> None:
    plain, wide = stocked.search(QUERY, mode="hybrid"), stocked.search(QUERY, mode="hybrid", expand=True)
    assert keys(wide)[:2] == keys(plain)[:2] == ["scurvy", "ascorbic"]
    assert keys(wide)[2] == "fruit"
    assert score(wide, "fruit") - score(wide, "anchor") > score(plain, "fruit") - score(plain, "anchor")


def test_scores_never_rise_and_stay_between_0_and_1(stocked: Library) -> None:
    scores = [hit.score for hit in stocked.search(QUERY, expand=True).hits]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= value <= 1 for value in scores)


def test_it_says_what_was_added_where_that_is_asked_for(stocked: Library) -> None:
    (note,) = stocked.search(QUERY, expand=True, explain=True).notes
    assert note.startswith("Added to the query, from the best hits: ")
    assert "lemon" in note
    assert "scurvi" not in note
    assert stocked.search(QUERY, expand=True).notes == ()


def test_it_says_that_it_ran_and_is_silent_where_nobody_asked(stocked: Library) -> None:
    stage = expanded(stocked.search(QUERY, expand=True))
    assert stage is not None
    assert (stage.status, stage.reason) == ("ran", "")
    assert expanded(stocked.search(QUERY)) is None


@pytest.mark.parametrize(
    ("query", "mode", "reason"),
    [
        (QUERY, "lexical", "there is no meaning to tell what else belongs to it"),
        (QUERY, "semantic", "only meaning was asked for"),
        ("レモンと壊血病", "hybrid", "the model static does not read this language"),
        ("Wer gab den Matrosen die Zitronen und warum", "hybrid", "the model static does not read this language"),
    ],
)
def test_where_nothing_is_added_it_says_why_and_answers_as_ever(
    stocked: Library, query: str, mode: str, reason: str
) -> None:
    page = stocked.search(query, mode=mode, expand=True)  # type: ignore[arg-type]
    assert expanded(page) == Stage("expand", "skipped", reason=reason)
    assert page.hits == stocked.search(query, mode=mode).hits  # type: ignore[arg-type]


def test_a_model_that_questions_lose_by_it_with_adds_nothing(stocked: Library) -> None:
    embedder = Carded(entry(MULTILINGUAL).card, "any")
    legs = [VectorLeg(stocked.embedding.index(), embedder, np.zeros(1), None, trust) for trust in (1.0, 0.1)]  # type: ignore[arg-type]
    assert why_not(legs[0]) == "questions lose by it with the model use-multilingual-v3"
    assert why_not(legs[1]) == "the model use-multilingual-v3 does not read this language"
    known = replace(legs[0], embedder=Carded(entry(DEFAULT).card, "any"))  # type: ignore[arg-type]
    assert why_not(known) == ""


def test_without_vectors_a_query_stays_as_it_is(library: Library) -> None:
    library.put(Draft("note", "tea", body="Oolong wants water just off the boil."))
    page = library.search("oolong", expand=True)
    assert keys(page) == ["tea"]
    assert expanded(page) == Stage("expand", "skipped", reason="there is no meaning to tell what else belongs to it")


def test_nothing_found_stays_nothing(library: Library) -> None:
    page = library.search(QUERY, expand=True, explain=True)
    assert page.hits == ()
    library.put(Draft("note", "empty", body="Oolong."))
    library.embed()
    assert library.search("???", expand=True, explain=True).found <= 1


@pytest.mark.parametrize("rerank", [False, True])
def test_pages_are_parts_of_one_list(stocked: Library, rerank: bool) -> None:
    with allowed(60):  # however busy this machine is
        whole = stocked.search(QUERY, expand=True, rerank=rerank)
        pages = [stocked.search(QUERY, expand=True, rerank=rerank, limit=2, offset=start) for start in range(0, 8, 2)]
    assert [(hit.uri, hit.score) for page in pages for hit in page.hits] == [(hit.uri, hit.score) for hit in whole.hits]


def test_an_exclusion_holds_for_what_was_added(stocked: Library) -> None:
    found = keys(stocked.search(f"{QUERY} -cabbage", expand=True))
    assert found[0] == "scurvy"
    assert {"ascorbic", "fruit"}.isdisjoint(found)


def test_a_phrase_holds_for_what_was_added(stocked: Library) -> None:
    assert keys(stocked.search('"lemons and limes" sailors', expand=True)) == ["scurvy", "fruit"]


def test_snippets_show_the_words_of_the_question(stocked: Library) -> None:
    body = "Lemons, limes and cabbage. " * 40 + "Nobody had scurvy any more. " + "Lemons, limes and cabbage. " * 40
    stocked.put(Draft("document", "long", parent="n", body=body))
    stocked.embed()
    page = stocked.search(QUERY, expand=True, snippet_length=60)
    assert "scurvy" in next(hit.snippet for hit in page.hits if hit.item.key == "long")


def test_added_words_weigh_together_what_those_of_the_query_do(stocked: Library) -> None:
    def widened(words: object) -> tuple[float, float, float]:
        plan = plan_lexical(parse(QUERY), words)  # type: ignore[arg-type]
        wide = _with_words(plan, {"lemon": 2.0, "lime": 1.0}, words.idf)  # type: ignore[attr-defined]
        assert wide.query.terms[: len(plan.query.terms)] == plan.query.terms
        assert len(wide.shares) == len(wide.query.terms)
        return plan.mass, wide.mass, sum(wide.shares[len(plan.shares) :])

    before, after, added = stocked.lexical.ask(widened)
    assert after == pytest.approx((1 + WORDS_SHARE) * before)
    assert added == pytest.approx(WORDS_SHARE * before)


WORDS = st.text("abcdef", min_size=1, max_size=2)


@given(
    st.lists(st.dictionaries(WORDS, st.integers(1, 5)), max_size=5),
    st.sets(WORDS, max_size=5),
    st.dictionaries(WORDS, st.floats(0, 9)),
)
def test_telling_words_are_few_known_and_not_those_of_the_question(
    passages: list[dict[str, int]], asked: set[str], idfs: dict[str, float]
) -> None:
    counts = [Counter(passage) for passage in passages]
    scores = np.linspace(1, 0, len(counts), dtype=np.float32)
    found = telling_words(counts, scores, asked, lambda stem: idfs.get(stem, 0.0))
    assert len(found) <= MOST_ADDED
    assert asked.isdisjoint(found)
    assert all(worth > 0 and idfs[stem] > 0 for stem, worth in found.items())
    assert list(found.values()) == sorted(found.values(), reverse=True)
