"""Measures of a ranking, and how sure one can be of them. A hundred lines: ir-measures and pytrec_eval bring more.

A ranking is document ids, best first, each once; grades say how relevant a document is, and one without counts as 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log2
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

ROUNDS = 1000
_CONFIDENCE = (2.5, 97.5)  # percentiles
_ROUNDING = 1e-12  # sums of the same numbers in another order differ by less

Grades = Mapping[str, int]
Values = NDArray[np.float64]


class Interval(NamedTuple):
    """A mean and the bounds that hold it in 95 of 100 repetitions with other queries."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Paired:
    """A change from one system to another on the same queries; `p` is how often chance alone changes as much."""

    difference: float
    low: float
    high: float
    p: float


def ndcg(ranking: Sequence[str], grades: Grades, k: int) -> float:
    """Return the sum of grade / log2(rank + 1) over the first `k`, ranks from 1, as a share of the best possible one.

    The gain is the grade itself, and the ideal ranks every judged positive: trec_eval's `ndcg_cut`.
    """
    ideal = _discounted(sorted(_positive(grades).values(), reverse=True)[:k])
    gain = _discounted(max(grades.get(document, 0), 0) for document in ranking[:k])
    return gain / ideal if ideal else 0.0


def recall(ranking: Sequence[str], grades: Grades, k: int) -> float:
    """Return the share of all positives that is among the first `k`."""
    relevant = _positive(grades)
    return sum(document in relevant for document in ranking[:k]) / len(relevant) if relevant else 0.0


def reciprocal_rank(ranking: Sequence[str], grades: Grades, k: int) -> float:
    """Return 1 / the rank of the first positive, 0 when the first `k` have none. Its mean is MRR@k."""
    relevant = _positive(grades)
    return next((1 / rank for rank, document in enumerate(ranking[:k], start=1) if document in relevant), 0.0)


def bootstrap(values: ArrayLike, rounds: int = ROUNDS, seed: int = 0) -> Interval:
    """Return the mean and its 95 % percentile interval over resamples of the queries."""
    sample = np.asarray(values, dtype=np.float64)
    if not len(sample):
        return Interval(0.0, 0.0, 0.0)
    low, high = np.percentile(_resampled_means(sample, rounds, seed), _CONFIDENCE)
    return Interval(float(sample.mean()), float(low), float(high))


def paired(a: ArrayLike, b: ArrayLike, rounds: int = ROUNDS, seed: int = 0) -> Paired:
    """Return the mean of `b` minus `a` per query, its bootstrap interval, and a two-sided randomization test.

    Were both systems alike, each query's difference could as well have the other sign. So signs are drawn at random,
    and `p` is the share of draws, the observed one among them, whose mean is at least as far from 0.
    """
    change = np.asarray(b, dtype=np.float64) - np.asarray(a, dtype=np.float64)
    mean, low, high = bootstrap(change, rounds, seed)
    generator = np.random.default_rng(seed)
    flips = (abs(float((change * generator.choice((-1.0, 1.0), len(change))).mean())) for _ in range(rounds))
    extreme = sum(flip >= abs(mean) - _ROUNDING for flip in flips) if len(change) else rounds
    return Paired(mean, low, high, (extreme + 1) / (rounds + 1))


def _resampled_means(sample: Values, rounds: int, seed: int) -> list[float]:
    """Return the mean of each resample. All of them at once would be a matrix of gigabytes on a large set."""
    generator, size = np.random.default_rng(seed), len(sample)
    return [float(sample[generator.integers(0, size, size)].mean()) for _ in range(rounds)]


def _discounted(gains: Iterable[int]) -> float:
    return sum(gain / log2(rank + 1) for rank, gain in enumerate(gains, start=1))


def _positive(grades: Grades) -> dict[str, int]:
    return {document: grade for document, grade in grades.items() if grade > 0}
