"""The formulas of fusion and blending, held to what they promise."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.search.blend import (
    LEAST_BELIEF,
    Fusion,
    belief,
    blended,
    by_words,
    falling,
    on_scale_of,
    retrieved,
    share_of,
    stands_out,
)
from commonplace.search.legs import weigh

shares = st.floats(0, 1)
strengths = st.floats(0, 50)


def words(sure: float, covered: float, complete: bool, together: bool = False) -> float:
    marks = (np.array([complete]), np.array([together]))
    return float(by_words(np.array([sure]), np.array([covered]), *marks)[0])


@given(shares, shares, shares)
def test_a_document_with_all_terms_is_above_every_other(one: float, other: float, covered: float) -> None:
    assert 0.6 <= words(one, 1.0, True) <= 1.0
    assert 0.75 <= words(one, 1.0, True, True) <= 1.0
    assert 0.0 <= words(other, covered, False) <= words(one, 1.0, True)
    if covered <= 0.5:
        assert words(other, covered, False) <= 0.5


@given(st.lists(shares, min_size=2, max_size=2), shares.filter(lambda share: share > 0.5), st.booleans())
def test_more_of_the_same_never_lowers_a_score(pair: list[float], covered: float, complete: bool) -> None:
    low, high = sorted(pair)
    assert words(low, covered, complete) <= words(high, covered, complete)


@given(shares, shares)
def test_either_leg_is_enough_and_both_are_a_little_better(words: float, meaning: float) -> None:
    score = retrieved(words, meaning)
    assert max(words, meaning) <= score <= min(1.0, max(words, meaning) + 0.1)


@given(strengths, shares)
def test_meaning_is_believed_by_its_weight_beside_words(mass: float, weight: float) -> None:
    share = belief(weigh(mass, weight))
    assert LEAST_BELIEF <= share <= 1.0
    assert share <= belief(weigh(mass, weight + 0.1))
    assert belief(weigh(0.0, weight)) == 1.0  # there are no words beside it


@given(st.lists(shares, max_size=30))
def test_scores_never_rise_and_keep_their_sum(scores: list[float]) -> None:
    fallen = falling(scores)
    assert all(before >= after - 1e-12 for before, after in pairwise(fallen))
    assert sum(fallen) == pytest.approx(sum(scores))
    if scores == sorted(scores, reverse=True):
        assert fallen == scores


def test_reciprocal_ranks_add_up_and_the_best_place_counts_once() -> None:
    fusion = Fusion([([1, 2, 3, 4], 2.0), ([2, 5], 2.0), ([4, 1], 1.0)])
    assert fusion.items == [1, 2, 3, 4, 5]
    assert fusion.of(2).total == pytest.approx(2 / 62 + 2 / 61 + 0.05)
    assert fusion.of(1).total == pytest.approx(2 / 61 + 1 / 62 + 0.05)
    assert fusion.of(3).bonus == 0.02
    assert fusion.of(4).bonus == 0.0
    assert fusion.of(5).bonus == 0.02


@pytest.mark.parametrize(("rank", "share"), [(1, 0.75), (3, 0.75), (4, 0.6), (10, 0.6), (11, 0.4), (99, 0.4)])
def test_the_first_need_less_of_a_second_look(rank: int, share: float) -> None:
    assert share_of(rank) == share


@given(st.integers(1, 50), shares, shares)
def test_a_second_look_moves_a_score_by_its_share_and_none_moves_nothing(
    rank: int, retrieval: float, reranked: float
) -> None:
    assert blended(rank, retrieval, None) == retrieval
    moved = abs(blended(rank, retrieval, reranked) - retrieval)
    assert moved <= (1 - share_of(rank)) * abs(reranked - retrieval) + 1e-9
    if rank <= 3:
        assert moved <= 0.25 + 1e-9


@given(st.lists(st.tuples(shares, st.none() | shares), max_size=30))
def test_a_look_keeps_its_order_on_the_scale_of_retrieval(hits: list[tuple[float, float | None]]) -> None:
    retrieval, looked = [before for before, _ in hits], [score for _, score in hits]
    scores = on_scale_of(retrieval, looked)
    assert [score is None for score in scores] == [score is None for score in looked]
    assert all(min(retrieval) <= score <= max(retrieval) for score in scores if score is not None)
    known = sorted(
        (score, new) for score, new in zip(looked, scores, strict=True) if score is not None and new is not None
    )
    assert len({score for score, _ in known}) == 1 or all(one[1] <= other[1] for one, other in pairwise(known))


@pytest.mark.parametrize(
    ("scores", "strong"), [([], False), ([0.75], True), ([0.74], False), ([0.9, 0.75], True), ([0.9, 0.76], False)]
)
def test_a_match_stands_out_by_height_and_lead(scores: list[float], strong: bool) -> None:
    assert stands_out(scores) is strong
