"""Metrics of rankings.

1. They agree with values computed by hand.
2. They lie in 0–1; a perfect ranking has 1 and one without a positive 0.
3. They look at the first k only, and at nothing but the order and the grades.
4. Intervals hold their mean and are the same every time; a paired test knows a difference from none.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log2

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.evaluation.ranking_metrics import bootstrap, ndcg, paired, recall, reciprocal_rank

Metric = Callable[[list[str], dict[str, int], int], float]
METRICS: tuple[Metric, ...] = (ndcg, recall, reciprocal_rank)

names = st.sampled_from("abcdefghij")
rankings = st.lists(names, unique=True)
judgements = st.dictionaries(names, st.integers(-1, 3), min_size=1).filter(lambda found: max(found.values()) > 0)
depths = st.integers(1, 12)
scores = st.lists(st.floats(0, 1, width=32), min_size=1, max_size=30)
metrics = pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.__name__)


@pytest.mark.parametrize(
    ("ranking", "grades", "k", "expected"),
    [
        ("abc", {"a": 1}, 10, 1.0),
        ("bac", {"a": 1}, 10, 1 / log2(3)),
        ("bca", {"a": 1}, 2, 0.0),
        ("xay", {"a": 2, "b": 1}, 10, (2 / log2(3)) / (2 + 1 / log2(3))),
        ("ba", {"a": 2, "b": 1}, 10, (1 + 2 / log2(3)) / (2 + 1 / log2(3))),
        ("a", {"a": 1, "b": 1, "c": 1}, 2, 1 / (1 + 1 / log2(3))),
        ("ba", {"a": 1, "b": -1}, 10, 1 / log2(3)),
        ("abc", {"a": 0}, 10, 0.0),
        ("", {"a": 1}, 10, 0.0),
    ],
)
def test_ndcg_by_hand(ranking: str, grades: dict[str, int], k: int, expected: float) -> None:
    assert ndcg(list(ranking), grades, k) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("ranking", "grades", "k", "found", "first"),
    [
        ("abc", {"a": 1, "c": 3, "z": 1, "b": 0}, 3, 2 / 3, 1.0),
        ("abc", {"a": 1, "c": 3, "z": 1, "b": 0}, 2, 1 / 3, 1.0),
        ("xyab", {"a": 1, "b": 1}, 10, 1.0, 1 / 3),
        ("xyab", {"a": 1, "b": 1}, 2, 0.0, 0.0),
        ("ab", {"a": 0, "b": -1}, 2, 0.0, 0.0),
    ],
)
def test_recall_and_reciprocal_rank_by_hand(
    ranking: str, grades: dict[str, int], k: int, found: float, first: float
) -> None:
    assert recall(list(ranking), grades, k) == pytest.approx(found)
    assert reciprocal_rank(list(ranking), grades, k) == pytest.approx(first)


@metrics
@given(ranking=rankings, grades=judgements, k=depths)
def test_a_metric_lies_between_0_and_1(metric: Metric, ranking: list[str], grades: dict[str, int], k: int) -> None:
    assert 0 <= metric(ranking, grades, k) <= 1 + 1e-12


@metrics
@given(grades=judgements)
def test_the_ranking_by_grade_is_perfect(metric: Metric, grades: dict[str, int]) -> None:
    ideal = sorted(grades, key=lambda name: -grades[name])
    assert metric(ideal, grades, len(ideal)) == pytest.approx(1)


@metrics
@given(ranking=rankings, grades=judgements, k=depths)
def test_what_stands_below_k_does_not_count(metric: Metric, ranking: list[str], grades: dict[str, int], k: int) -> None:
    assert metric(ranking, grades, k) == metric(ranking[:k], grades, k)


@metrics
@given(ranking=rankings, grades=judgements, k=depths)
def test_neither_the_order_of_judgements_nor_the_names_of_documents_count(
    metric: Metric, ranking: list[str], grades: dict[str, int], k: int
) -> None:
    renamed = {f"doc {name}": grade for name, grade in reversed(grades.items())}
    assert metric([f"doc {name}" for name in ranking], renamed, k) == metric(ranking, grades, k)


@given(ranking=rankings, grades=judgements, k=depths, factor=st.integers(1, 9))
def test_ndcg_does_not_depend_on_the_unit_of_the_grades(
    ranking: list[str], grades: dict[str, int], k: int, factor: int
) -> None:
    scaled = {name: grade * factor for name, grade in grades.items()}
    assert ndcg(ranking, scaled, k) == pytest.approx(ndcg(ranking, grades, k))


@given(ranking=rankings, grades=judgements, k=depths)
def test_recall_and_reciprocal_rank_never_fall_with_k(ranking: list[str], grades: dict[str, int], k: int) -> None:
    assert recall(ranking, grades, k) <= recall(ranking, grades, k + 1)
    assert reciprocal_rank(ranking, grades, k) <= reciprocal_rank(ranking, grades, k + 1)


@given(ranking=st.lists(names, unique=True, min_size=2), grades=judgements, data=st.data())
def test_moving_the_better_document_up_never_lowers_ndcg(
    ranking: list[str], grades: dict[str, int], data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(ranking) - 2))
    pair = sorted(ranking[place : place + 2], key=lambda name: -grades.get(name, 0))
    better = [*ranking[:place], *pair, *ranking[place + 2 :]]
    assert ndcg(better, grades, 10) >= ndcg(ranking, grades, 10) - 1e-12


@given(values=scores)
def test_an_interval_holds_its_mean_and_stays_within_the_values(values: list[float]) -> None:
    mean, low, high = bootstrap(values, rounds=200)
    assert mean == pytest.approx(np.mean(values))
    assert min(values) - 1e-9 <= low <= high <= max(values) + 1e-9


def test_an_interval_is_as_wide_as_the_normal_theory_says() -> None:
    values = np.random.default_rng(7).normal(0.5, 0.2, 400)
    mean, low, high = bootstrap(values)
    error = 1.96 * values.std() / 20
    assert low == pytest.approx(mean - error, abs=0.005)
    assert high == pytest.approx(mean + error, abs=0.005)


def test_an_interval_is_the_same_every_time_and_another_with_another_seed() -> None:
    values = [0.1, 0.5, 0.9, 0.3, 0.7]
    assert bootstrap(values) == bootstrap(values)
    assert bootstrap(values, seed=1) != bootstrap(values, seed=2)


def test_nothing_measured_is_zero_without_an_interval() -> None:
    assert bootstrap([]) == (0.0, 0.0, 0.0)
    assert paired([], []).p == 1.0


@given(values=scores)
def test_a_system_does_not_differ_from_itself(values: list[float]) -> None:
    same = paired(values, values, rounds=50)
    assert (same.difference, same.low, same.high, same.p) == (0.0, 0.0, 0.0, 1.0)


@given(values=st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=30))
def test_swapping_the_systems_swaps_the_sign_and_keeps_the_p_value(values: list[tuple[float, float]]) -> None:
    a, b = zip(*values, strict=True)
    one, other = paired(a, b, rounds=50), paired(b, a, rounds=50)
    assert one.difference == pytest.approx(-other.difference)
    assert one.p == other.p


def test_a_steady_gain_is_told_from_noise() -> None:
    generator = np.random.default_rng(3)
    before = generator.uniform(0, 1, 200)
    steady = paired(before, before + generator.normal(0.05, 0.05, 200))
    noise = paired(before, before + generator.normal(0, 0.05, 200))
    assert steady.p < 0.01
    assert 0 < steady.low < steady.difference < steady.high
    assert noise.p > 0.05
    assert noise.low < 0 < noise.high


def test_three_queries_can_not_prove_anything() -> None:
    assert paired([0, 0, 0], [1, 1, 1]).p == pytest.approx(0.25, abs=0.05)


def test_systems_asked_different_numbers_of_queries_can_not_be_paired() -> None:
    with pytest.raises(ValueError, match="broadcast"):
        paired([0.1, 0.2], [0.1, 0.2, 0.3])
