"""A second look at the best: what it may change, and what it never does.

1. It reorders: the same hits, scores from 0 to 1 that never rise, and as many pages as one likes of the same list.
2. What says it in one sentence comes before what has the same words here and there; so do relatives of a word.
3. What was not looked at stays behind, in its order.
4. It says whether it ran, and why not.
5. Through `hybrid` it is blended by position, looks at no more than it is told to, and puts nothing below what it never
   saw.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from commonplace.library import Library
from commonplace.model import Draft, Filter, Page
from commonplace.search.blend import share_of
from commonplace.search.question import HybridAnswer, Question, Search
from commonplace.search.request import Request
from commonplace.search.rerank import BUDGET_S, LEAST_S, WEIGHTS, SecondLook, allowed, reordered, time_for
from commonplace.search.rerank_features import FEATURES
from commonplace.store.items import Items

BODIES = {
    "together": "The harbour was quiet. The lighthouse keeper rows to the island every spring. Nothing else moved.",
    "apart": "The keeper of bees was quiet. A lighthouse stood there. She rows well. In spring the island is green.",
    "island": "An island in spring. The ferry stops there twice a week and takes the post along.",
    "rowing": "Rowing clubs meet in spring. The boats are kept in a shed beside the canal.",
    "lighthouse": "A lighthouse of brick, forty metres high, white with two red bands around it.",
    "other": "Bread is baked before dawn and sold before noon, on weekdays and on Sundays.",
}
QUERY = "lighthouse keeper rows to the island in spring"


@pytest.fixture
def stocked(library: Library) -> Library:
    for key, body in BODIES.items():
        library.put(Draft("document", key, parent="n", title=key.title(), body=body))
    return library


def keys(page: Page) -> list[str]:
    return [hit.item.key for hit in page.hits]


def why(page: Page | HybridAnswer) -> tuple[str, str]:
    return next((stage.status, stage.reason) for stage in page.stages if stage.name == "rerank")


def test_it_finds_the_same_hits_with_scores_that_never_rise(stocked: Library) -> None:
    stocked.embed()
    before, after = stocked.search(QUERY), stocked.search(QUERY, rerank=True)
    assert sorted(keys(before)) == sorted(keys(after))
    scores = [hit.score for hit in after.hits]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)


def test_relatives_of_a_word_lift_a_passage_that_has_no_more_of_its_stems(library: Library) -> None:
    library.put(Draft("note", "bank", body="Der Fluss und die Bank am Ufer, eine Seite lang."))
    library.put(Draft("note", "datenbanken", body="Der Fluss der Seiten in Datenbanken und ihre Sicherung."))
    library.put(Draft("note", "fluss", body="Der Fluss und die Seite am Ufer der Stadt im Norden."))
    page = library.search("Fluss Datenbanksicherung Seite", rerank=True)
    assert keys(page)[0] == "datenbanken"


def test_words_in_one_sentence_come_before_the_same_words_here_and_there(stocked: Library) -> None:
    assert keys(stocked.search(QUERY, rerank=True))[:2] == ["together", "apart"]


@pytest.mark.parametrize("mode", ["lexical", "auto"])
def test_pages_are_parts_of_one_list(stocked: Library, mode: str) -> None:
    stocked.embed()
    with allowed(60):  # however busy this machine is
        whole = stocked.search(QUERY, mode=mode, rerank=True)  # type: ignore[arg-type]
        pages = [stocked.search(QUERY, mode=mode, rerank=True, limit=2, offset=offset) for offset in (0, 2, 4)]  # type: ignore[arg-type]
    assert [(hit.uri, hit.score) for page in pages for hit in page.hits] == [(hit.uri, hit.score) for hit in whole.hits]


def test_a_least_score_is_held_against_the_new_scores(stocked: Library) -> None:
    page = stocked.search(QUERY, rerank=True)
    least = page.hits[1].score
    again = stocked.search(QUERY, rerank=True, min_score=least)
    assert keys(again) == [hit.item.key for hit in page.hits if hit.score >= least]


def test_it_says_whether_it_ran(stocked: Library) -> None:
    assert why(stocked.search(QUERY)) == ("skipped", "it was not asked for")
    assert why(stocked.search(QUERY, rerank=True)) == ("ran", "")
    stocked.embed()
    assert why(stocked.search(QUERY, mode="semantic", rerank=True)) == ("skipped", "only meaning was asked for")


def test_nothing_found_stays_nothing(library: Library) -> None:
    assert keys(library.search(QUERY, rerank=True)) == []
    library.put(Draft("note", "tea", body="Oolong."))
    assert keys(library.search("???", rerank=True)) == []


def test_without_time_only_the_first_is_read(stocked: Library) -> None:
    asked, found = stocked.engine.candidates(Request(QUERY, "lexical"))
    look = SecondLook(stocked.store)
    assert len(look.scores(asked, found, seconds=0)) == 1
    assert len(look.scores(asked, found, seconds=60)) == len(found.chunks) >= 5


def test_retrieval_that_took_long_leaves_less_time_but_never_none() -> None:
    assert time_for(0.0) == BUDGET_S
    assert time_for(0.04) == pytest.approx(BUDGET_S - 0.04)
    assert time_for(5.0) == LEAST_S
    with allowed(60):
        assert time_for(5.0) == 55.0
    assert time_for(0.0) == BUDGET_S


def test_another_budget_holds_for_looks_taken_inside_it(stocked: Library) -> None:
    asked, found = stocked.engine.candidates(Request(QUERY, "lexical"))
    look = SecondLook(stocked.store)
    with allowed(0):
        assert len(look.scores(asked, found)) == 1
    with allowed(60):
        assert len(look.scores(asked, found)) == len(found.chunks)


def test_what_all_candidates_have_in_common_changes_no_score(library: Library) -> None:
    library.put(Draft("note", "tea", title="Tea", body="Oolong wants water just off the boil."))
    before, after = library.search("oolong"), library.search("oolong", rerank=True)
    assert [hit.score for hit in before.hits] == [hit.score for hit in after.hits]


def test_what_is_gone_before_it_is_read_ends_the_look(stocked: Library) -> None:
    asked, found = stocked.engine.candidates(Request(QUERY, "lexical"))
    gone = int(found.chunks[2]) >> 20
    stocked.store.drawer(Items).delete([gone])
    assert len(SecondLook(stocked.store).scores(asked, found, seconds=60)) == 2


@given(
    arrays(np.float32, st.integers(0, 12), elements=st.floats(0, 1, width=32)),
    st.integers(0, 12),
)
def test_a_new_order_is_one_of_the_same_rows(scores: np.ndarray, others: int) -> None:
    before = np.linspace(1, 0, len(scores) + others, dtype=np.float32)
    rows, fresh = reordered(scores, before)
    assert sorted(rows.tolist()) == list(range(len(before)))
    assert rows[len(scores) :].tolist() == list(range(len(scores), len(before)))
    assert np.all(np.diff(fresh) <= 0)
    assert np.all((fresh >= 0) & (fresh <= 1))


# through hybrid


def asked(text: str, **more: object) -> Question:
    searches = (Search("lex", text), Search("vec", text))
    return Question(searches, Filter(kinds=("document",)), plain=True, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("embedded", [False, True])
def test_hybrid_blends_it_by_position(stocked: Library, embedded: bool) -> None:
    if embedded:
        stocked.embed()
    plain = stocked.hybrid.find(asked(QUERY))
    with allowed(60):
        looked = stocked.hybrid.find(asked(QUERY, rerank=True))
    assert why(looked) == ("ran", "")
    assert {hit.item_id for hit in plain.hits} == {hit.item_id for hit in looked.hits}
    for hit in looked.hits:
        share = share_of(hit.rank)
        assert hit.reranked is not None
        assert 0 <= hit.reranked <= 1
        assert hit.score == pytest.approx(share * hit.retrieval + (1 - share) * hit.reranked)
    assert [hit.score for hit in looked.hits] == sorted((hit.score for hit in looked.hits), reverse=True)


def test_hybrid_looks_at_no_more_than_it_is_told_to(stocked: Library) -> None:
    with allowed(60):  # however busy this machine is
        looked = stocked.hybrid.find(asked(QUERY, rerank=True, candidates=2))
    assert [hit.rank for hit in looked.hits if hit.reranked is not None] == sorted([1, 2])
    assert why(stocked.hybrid.find(replace(asked(QUERY), rerank=False))) == ("skipped", "it was not asked for")


@pytest.mark.parametrize("candidates", [1, 30])
def test_hybrid_puts_nothing_below_what_was_not_looked_at(library: Library, candidates: int) -> None:
    """Scores of the look are lower than retrieval's: once the thirty-first of hundreds came first."""
    library.put_many(
        Draft("document", f"{n}", parent="n", body=f"Tea {n % 7} in a pot. " * (n % 5 + 1) + "A cup of it. " * (n % 3))
        for n in range(60)
    )
    library.embed()
    with allowed(5):
        hits = library.hybrid.find(asked("a pot of tea", rerank=True, candidates=candidates, limit=60)).hits
    looked_at = [hit.score for hit in hits if hit.reranked is not None]
    assert len(looked_at) == candidates
    assert all(hit.score == hit.retrieval <= min(looked_at) for hit in hits if hit.reranked is None)


def test_the_table_of_weights_names_every_feature() -> None:
    assert list(WEIGHTS) == list(FEATURES)
