"""Ranked lists into one: scores from 0 to 1 for words and for meaning, reciprocal ranks, and a reranker's say.

Every function is the formula its docstring states; its page in the documentation tells what the numbers mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commonplace.search.engine import reciprocal
from commonplace.search.legs import Weights
from commonplace.search.scale import ALL_WORDS, ALONE, lifted

Floats = NDArray[np.float64]

OWN, OTHER = 2.0, 1.0
"""The weight of a list of the caller's own query, and of a variant's."""

FULL_BELIEF, LEAST_BELIEF = 0.4, 0.3
"""The weight of meaning beside words from which its scores are taken as they are, and the least share of them."""

FIRST_BONUS, NEXT_BONUS = 0.05, 0.02
STRONG, LEAD = ALONE, 0.15
_SHARES = ((3, 0.75), (10, 0.6))
_LAST_SHARE = 0.4


def by_words(
    sure: Floats, covered: Floats, complete: NDArray[np.bool_], together: NDArray[np.bool_], least: float = ALONE
) -> Floats:
    """Return the scores by words of documents, from 0 to 1.

    `sure` is s, how sure its BM25 makes a document; `covered` is c, the share of the query's mass it covers; `complete`
    is whether that is all; `together` is whether it has all of it in one passage, as one of few documents, which then
    score at least `least`.

    A score is s from 0.8 on, and below that goes from `least` to 0.8 where it has, from 0.6 to 0.8 where it has every
    term that says something, but from 0.6 to `least` where others have them together; else it is `0.6 · s`, and then at
    most 0.5 where c is no more than a half. So a document with all terms is at least at 0.6 and above every other.
    """
    some = np.where(covered <= 0.5, np.minimum(0.5, ALL_WORDS * sure), ALL_WORDS * sure)
    spread = ALL_WORDS + (least - ALL_WORDS) * sure if together.any() else lifted(sure, ALL_WORDS)
    return np.where(together, lifted(sure, least), np.where(complete, spread, some))


def retrieved(words: float, meaning: float) -> float:
    """Return `max + 0.1 · min`, at most 1: either is enough, both are a little better."""
    return min(1.0, max(words, meaning) + 0.1 * min(words, meaning))


def belief(weights: Weights) -> float:
    """Return the share of its scores that meaning is believed beside words: 1 where it weighs enough.

    A model that is often wrong where words are right is as sure of itself as any other.
    """
    if not weights.lexical:
        return 1.0
    return min(1.0, max(LEAST_BELIEF, weights.vector / weights.lexical / FULL_BELIEF))


def falling(scores: Sequence[float]) -> list[float]:
    """Return the nearest scores that never rise along the order: neighbors that do are averaged."""
    pools: list[tuple[float, int]] = []
    for score in scores:
        total, count = score, 1
        while pools and pools[-1][0] * count < total * pools[-1][1]:
            before, many = pools.pop()
            total, count = total + before, count + many
        pools.append((total, count))
    return [total / count for total, count in pools for _ in range(count)]


@dataclass(frozen=True, slots=True)
class ListPlace:
    """The place of an item in one list: the list's number, the rank in it from 1, and what it adds to a fused score."""

    list: int
    rank: int
    worth: float


@dataclass(frozen=True, slots=True)
class Fused:
    """An item in all the lists that have it."""

    places: tuple[ListPlace, ...]
    bonus: float

    @property
    def base(self) -> float:
        return sum(place.worth for place in self.places)

    @property
    def total(self) -> float:
        return self.base + self.bonus


class Fusion:
    """A fusion of lists: `Σ weight / (60 + rank)`, and one bonus for the best rank in a list of the caller's own.

    The bonus is 0.05 for the first rank, 0.02 for the second and third.
    """

    def __init__(self, lists: Sequence[tuple[Sequence[int], float]]) -> None:
        self.items = list(dict.fromkeys(item for items, _ in lists for item in items))
        self._weights = [weight for _, weight in lists]
        fused = reciprocal([np.array(items, np.int64) for items, _ in lists], self._weights)
        columns = (column.tolist() for pair in zip(fused.ranks, fused.worths, strict=True) for column in pair)
        self._rows = dict(zip(fused.ids.tolist(), zip(*columns, strict=True), strict=True))

    def of(self, item: int) -> Fused:
        places, bonus, row = list[ListPlace](), 0.0, self._rows[item]
        for number, weight in enumerate(self._weights):
            rank, worth = row[2 * number : 2 * number + 2]
            if rank:
                places.append(ListPlace(number, rank, worth))
                if weight >= OWN and rank <= 3:
                    bonus = max(bonus, FIRST_BONUS if rank == 1 else NEXT_BONUS)
        return Fused(tuple(places), bonus)


def share_of(rank: int) -> float:
    """Return the share of retrieval in a blended score, by the rank among the fused, from 1.

    The first need less of a second look.
    """
    return next((share for last, share in _SHARES if rank <= last), _LAST_SHARE)


def blended(rank: int, retrieval: float, reranked: float | None) -> float:
    """Return `w · r + (1 − w) · x`. What was not reranked keeps its score: leaving the stage out changes no scale."""
    if reranked is None:
        return retrieval
    return retrieval + (1.0 - share_of(rank)) * (reranked - retrieval)  # so that equals stay equal to the last bit


def on_scale_of(retrieval: Sequence[float], looked: Sequence[float | None]) -> list[float | None]:
    """Return the scores of a second look, spread from the lowest to the highest of what retrieval gave the same hits.

    The two mean different things by a number. On one scale, the last that was looked at is not below the first that
    was not, which keeps its score of retrieval.
    """
    known = [score for score in looked if score is not None]
    least, spread = (min(known), max(known) - min(known)) if known else (0.0, 0.0)
    if not spread:
        return [None if score is None else before for before, score in zip(retrieval, looked, strict=True)]
    lowest, highest = min(retrieval), max(retrieval)
    return [
        None if score is None else min(highest, lowest + (highest - lowest) * ((score - least) / spread))
        for score in looked
    ]


def stands_out(scores: Sequence[float]) -> bool:
    """Return whether the best keyword score is so good, and so far ahead, that variants would find nothing better."""
    return bool(scores) and scores[0] >= STRONG and scores[0] - (scores[1] if len(scores) > 1 else 0.0) >= LEAD
