"""Passages in the order of their scores: what both legs propose, fused, cut down and kept together."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from commonplace.index.scope import Ids, firsts
from commonplace.lazy_dataclass import dataclass
from commonplace.model import CHUNK_BITS
from commonplace.search.engine import Floats, Legs, Proposed, with_lacking
from commonplace.search.legs import LexicalLeg, VectorLeg, Weights, combine
from commonplace.search.scale import CLOSE, NOT_CLOSE, TELLS, Scale


@dataclass(frozen=True, slots=True)
class Ranking:
    """Passages in their final order, with each leg's score of them on its own scale."""

    chunks: Ids
    scores: Floats
    lexical: Floats
    vector: Floats
    weights: Weights
    scale: Scale
    unplaced: int = 0
    """Passages left out because nobody knows how near they are."""


def ordered(legs: Legs, found: Proposed, wanted: int) -> Ranking:
    """Return what the legs propose in the order of its scores, as sure as the first `wanted` items need."""
    if legs.vector is None:
        chunks, by_words = found.words
        return in_order(found, chunks, by_words, by_words, np.full_like(by_words, np.nan))
    if not legs.by_words:
        chunks, by_vector = with_lacking(legs.vector, found.near, legs.lexical.inside(found.complete))
        return in_order(found, chunks, by_vector, np.zeros_like(by_vector), by_vector)
    return _fused(legs.lexical, legs.vector, found, wanted)


def _fused(lexical: LexicalLeg, vector: VectorLeg, found: Proposed, wanted: int) -> Ranking:
    """Return candidates of either leg with exact scores of both, for every passage that can reach the page."""
    words, near, weights = found.words, found.near, found.weights
    known, members = dict(zip(near[0].tolist(), near[1].tolist(), strict=True)), words[0].tolist()
    only_words, among = [chunk for chunk in members if chunk not in known], set(members)
    only_near = np.array([chunk for chunk in known if chunk not in among], dtype=np.int64)
    nearness = vector.scores(np.array(only_words, dtype=np.int64)).tolist()
    known.update(zip(only_words, nearness, strict=True))
    chunks = np.concatenate([words[0], only_near])
    by_vector = np.array([known[chunk] for chunk in chunks.tolist()], dtype=np.float32)
    by_words = np.concatenate([words[1], np.zeros(len(only_near), dtype=np.float32)])
    scores, unknown = combine(by_words, by_vector, weights), np.isnan(by_vector)
    if len(words[0]) >= found.depth:
        # What the lexical list left out scores at most as its last did, and nothing at all where the list is complete.
        # Passages with all words are in the list: what comes after them is in the order of how sure they are.
        last = np.float32(weights.lexical) * words[1][-1]
        best, sure = found.scale.sureness(scores + last, unknown), found.scale.sureness(scores, unknown)
        open_questions = np.flatnonzero(best[len(words[0]) :] >= _nth_item(chunks, sure, wanted)) + len(words[0])
        by_words[open_questions] = lexical.scores(chunks[open_questions])
        scores = combine(by_words, by_vector, weights)
    return in_order(found, chunks, scores, by_words, by_vector)


def _nth_item(chunks: Ids, scores: NDArray[np.float64], n: int) -> float:
    """Return the score of the n-th best item, so far; minus infinity where there are fewer."""
    items, seen = (chunks >> CHUNK_BITS).tolist(), set[int]()
    for row in np.argsort(-scores, kind="stable").tolist():
        seen.add(items[row])
        if len(seen) == n:
            return float(scores[row])
    return -np.inf


def as_shown(scores: Floats) -> NDArray[np.float64]:
    """Return scores with the digits that hits have."""
    return scores.astype(np.float64).round(4)


def enough(scores: Floats, least: float) -> NDArray[np.bool_]:
    """Return which scores are at least `least` as they are shown: a hit passes its own score as a bound."""
    return (as_shown(scores) if least else scores) >= least


def in_order(found: Proposed, chunks: Ids, values: Floats, lexical: Floats, vector: Floats) -> Ranking:
    """Return passages by their scores, which are what the fused values are on the scale of the query."""
    scores = found.scale.scores(chunks, values, np.isnan(vector))
    order = np.lexsort((chunks, -values, -scores))
    shown = scores[order].astype(np.float32)
    return Ranking(chunks[order], shown, lexical[order], vector[order], found.weights, found.scale)


def best_per_item(ranking: Ranking) -> Ranking:
    """Return the ranking with the best passage of each item."""
    _, first = firsts(ranking.chunks >> CHUNK_BITS)
    first.sort()
    return rows_of(ranking, first)


def few_per_item(ranking: Ranking, most: int) -> Ranking:
    """Return the ranking with at most so many passages of each item."""
    seen, rows = Counter[int](), list[int]()
    for row, item in enumerate((ranking.chunks >> CHUNK_BITS).tolist()):
        seen[item] += 1
        if seen[item] <= most:
            rows.append(row)
    return rows_of(ranking, np.array(rows, dtype=np.int64))


def near_enough(ranking: Ranking, least: float) -> Ranking:
    """Return the ranking of passages with at least this score of the vector leg; all for minus infinity."""
    if least == -np.inf:
        return ranking
    unplaced = int(np.count_nonzero(np.isnan(ranking.vector)))
    return replace(rows_of(ranking, np.flatnonzero(ranking.vector >= least)), unplaced=unplaced)


def rows_of(ranking: Ranking, rows: Ids) -> Ranking:
    """Return the ranking of these rows, in their order."""
    return Ranking(
        ranking.chunks[rows],
        ranking.scores[rows],
        ranking.lexical[rows],
        ranking.vector[rows],
        ranking.weights,
        ranking.scale,
        ranking.unplaced,
    )


def doubts(lexical: LexicalLeg, vector: VectorLeg | None, ranking: Ranking, *, only_meaning: bool) -> list[str]:
    """Return notes: what was guessed at, and that no hit is close, by its words or in meaning, where none is."""
    guesses = [] if only_meaning else list(lexical.plan.guesses)
    if not len(ranking.scores):
        return guesses if lexical.plan.query else []
    far = only_meaning or ranking.scores[0] < CLOSE
    if not lexical.plan.unknown and lexical.plan.telling < TELLS:
        return guesses  # words that many texts have tell nobody which of them is meant
    nearness = ranking.vector[~np.isnan(ranking.vector)]
    if far and vector is not None and len(nearness):
        far = not vector.is_apart(float(nearness.max()), lexical.index.passages())
    return [*guesses, NOT_CLOSE] if far else guesses


def tied(scores: Floats, shown: int) -> bool:
    """Return whether two scores, as they are shown, are the same on both sides of a cut."""
    return len(scores) > shown > 0 and len(set(as_shown(scores[shown - 1 : shown + 1]).tolist())) == 1
