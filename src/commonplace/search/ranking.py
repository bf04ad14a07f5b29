"""Passages in one order: what both legs found of them, fused, cut down and kept together."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from commonplace.index.scope import Ids, firsts
from commonplace.lazy_dataclass import dataclass
from commonplace.model import CHUNK_BITS
from commonplace.search.legs import LexicalLeg, VectorLeg, Weights, combine, scale_of, weigh
from commonplace.search.scale import CLOSE, NOT_CLOSE, TELLS, Scale

Floats = NDArray[np.float32]


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


def no_passages() -> tuple[Ids, Floats]:
    """Return an empty list of candidates."""
    return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)


def fused(
    lexical: LexicalLeg,
    vector: VectorLeg,
    words: tuple[Ids, Floats],
    near: tuple[Ids, Floats],
    *,
    depth: int,
    wanted: int,
) -> Ranking:
    """Return candidates of either leg with exact scores of both, for every passage that can reach the page."""
    complete = lexical.complete()
    words = with_complete(lexical, words, complete, depth)
    known, found = dict(zip(near[0].tolist(), near[1].tolist(), strict=True)), words[0].tolist()
    only_words, among = [chunk for chunk in found if chunk not in known], set(found)
    only_near = np.array([chunk for chunk in known if chunk not in among], dtype=np.int64)
    only_near = only_near[lexical.allows(only_near)]
    nearness = vector.scores(np.array(only_words, dtype=np.int64)).tolist()
    known.update(zip(only_words, nearness, strict=True))
    chunks = np.concatenate([words[0], only_near])
    by_vector = np.array([known[chunk] for chunk in chunks.tolist()], dtype=np.float32)
    by_words = np.concatenate([words[1], np.zeros(len(only_near), dtype=np.float32)])
    weights = weigh(lexical.plan.mass if lexical.plan.query else 0.0, vector.weight)
    scores, unknown = combine(by_words, by_vector, weights), np.isnan(by_vector)
    scale = scale_of(lexical, vector, weights, complete)
    if len(words[0]) >= depth:
        # What the lexical list left out scores at most as its last did, and nothing at all where the list is complete.
        # Passages with all words are in the list: what comes after them is in the order of how sure they are.
        last = np.float32(weights.lexical) * words[1][-1]
        best, sure = scale.sureness(scores + last, unknown), scale.sureness(scores, unknown)
        open_questions = np.flatnonzero(best[len(words[0]) :] >= _nth_item(chunks, sure, wanted)) + len(words[0])
        by_words[open_questions] = lexical.scores(chunks[open_questions])
        scores = combine(by_words, by_vector, weights)
    return in_order(chunks, scores, by_words, by_vector, weights, scale)


def with_complete(lexical: LexicalLeg, words: tuple[Ids, Floats], complete: Ids, depth: int) -> tuple[Ids, Floats]:
    """Return the candidates of the lexical leg, and those passages with all words that are not among them.

    `depth`: how many were asked for; where there are fewer, they are all that match, those with all words included.
    """
    if len(words[0]) < depth:
        return words
    left_out = _lacking(words[0], complete)
    return with_lacking(lexical, words, lexical.inside(left_out)) if len(left_out) else words


def with_lacking(leg: LexicalLeg | VectorLeg, found: tuple[Ids, Floats], passages: Ids) -> tuple[Ids, Floats]:
    """Return the candidates of a leg, after those of some passages that it knows and that are not among them."""
    lacking = _lacking(found[0], passages)
    if not len(lacking):
        return found
    scores = leg.scores(lacking)
    known = ~np.isnan(scores)
    return np.concatenate([lacking[known], found[0]]), np.concatenate([scores[known], found[1]])


def _lacking(found: Ids, passages: Ids) -> Ids:
    """Return those of a few passages that are not among the candidates. `np.setdiff1d` takes ten times as long."""
    if not len(passages):
        return passages
    known = set(found.tolist())
    return np.array([passage for passage in passages.tolist() if passage not in known], dtype=np.int64)


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


def in_order(chunks: Ids, values: Floats, lexical: Floats, vector: Floats, weights: Weights, scale: Scale) -> Ranking:
    """Return passages by their scores, which are what the fused values are on the scale of the query."""
    scores = scale.scores(chunks, values, np.isnan(vector))
    order = np.lexsort((chunks, -values, -scores))
    shown = scores[order].astype(np.float32)
    return Ranking(chunks[order], shown, lexical[order], vector[order], weights, scale)


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
