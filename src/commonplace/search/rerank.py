"""The built-in second look: a few telling features of the best candidates, weighed by a small learned table.

`tools/train_reranker.py` makes the weights and prints what they bring on sets they were not learned from
(docs/benchmarks.md). Nothing is loaded and nothing is asked of a model: it reads some dozens of passages.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np
from numpy.typing import NDArray

from commonplace.index.followers import WordReader
from commonplace.index.scope import Ids, Scope, firsts
from commonplace.lazy_dataclass import dataclass
from commonplace.model import CHUNK_BITS
from commonplace.search.engine import MeanOf, Semantic
from commonplace.search.legs import LexicalLeg, VectorLeg, Weights, combine, scale_of, trust_for, weigh
from commonplace.search.plan import LexicalPlan, plan_lexical
from commonplace.search.request import Parsed
from commonplace.search.rerank_features import (
    CENTRE_OF,
    FEATURES,
    Candidate,
    Matrix,
    Standing,
    centre,
    features,
    pieces_of,
    read,
)
from commonplace.store.base import Store
from commonplace.store.chunks import Chunks
from commonplace.store.items import Items

Floats = NDArray[np.float32]

CANDIDATES = 60
"""The items a second look is taken at, however few are shown: so a page never changes with its length."""

BUDGET_S = 0.15
"""How long it may take where nobody says. What is not read by then keeps its place behind what is."""

LEAST_S = 0.05
"""What it has in any case: enough for all of its candidates where nothing else is busy."""

READING = 0.6
"""The part of the time that passages are read in; to weigh what was read takes about half as long."""

WEIGHTS: Mapping[str, float] = {
    "words": -0.4,
    "coverage": 0.05,
    "pieces": 0.4,
    "sentence": 0.4,
    "centre": 0.2,
    "shared": 0.325,
    "beside": 0.9,
    "further": 0.6,
    "title": 0.4,
}
"""What each feature is worth, in units of the fused score: learned with the default and the static model at once."""

_BUDGET: ContextVar[float] = ContextVar("commonplace_second_look", default=BUDGET_S)


@dataclass(frozen=True, slots=True)
class RerankCandidates:
    """RerankCandidates for a second look: passages best first, with the exact scores of both legs and their weights."""

    chunks: Ids
    lexical: Floats
    vector: Floats
    weights: Weights

    @property
    def scores(self) -> Floats:
        """Return the fused scores, before they are calibrated."""
        return combine(self.lexical, self.vector, self.weights)

    def first(self, count: int) -> RerankCandidates:
        return RerankCandidates(self.chunks[:count], self.lexical[:count], self.vector[:count], self.weights)


@dataclass(frozen=True, slots=True)
class RerankQuery:
    """A query for a second look: the text, and what the legs made of it."""

    text: str
    plan: LexicalPlan
    language: str
    """Of texts whose own cannot be told."""
    near: VectorLeg | None = None
    mean_of: MeanOf | None = None


class SecondLook:
    """Reads candidates and scores them anew. Threads may share it."""

    def __init__(self, store: Store, weights: Mapping[str, float] = WEIGHTS) -> None:
        self._store = store
        self._weights = np.array([weights[name] for name in FEATURES])

    def scores(self, query: RerankQuery, candidates: RerankCandidates, seconds: float | None = None) -> Floats:
        """Return new scores on the scale of the old for as many of the first as there is time to read, at least one.

        To the score of each is added `Σ weight · (feature − its mean over all that were read)`: what they have in
        common changes nothing, so a score goes on meaning what it did.
        """
        until = time.perf_counter() + READING * (_BUDGET.get() if seconds is None else seconds)
        matrix, seen = self.features(query, candidates, until)
        gain = (matrix - matrix.mean(axis=0)) @ self._weights if len(seen.chunks) else np.zeros(0)
        return np.asarray(seen.scores + gain, dtype=np.float32)

    def features(
        self, query: RerankQuery, ranked: RerankCandidates, until: float = np.inf
    ) -> tuple[Matrix, RerankCandidates]:
        """Return a row for each of the first candidates that could be read in time, and those candidates."""
        candidates: list[Candidate] = []
        for candidate in passages_of(self._store, ranked.chunks.tolist(), query.language):
            candidates.append(candidate)
            if time.perf_counter() > until:
                break
        ranked = ranked.first(len(candidates))
        if not candidates:
            return np.zeros((0, len(FEATURES))), ranked
        standing = Standing(ranked.scores, ranked.lexical, ranked.weights, _nearness(query, ranked))
        terms = query.plan.query.terms
        return features(candidates, standing, terms, query.plan.shares, pieces_of(query.text)), ranked


def passages_of(store: Store, chunks: Sequence[int], language: str) -> Iterator[Candidate]:
    """Yield passages as they are read, up to the first that was deleted a moment ago."""
    texts = {chunk.id: chunk for chunk in store.drawer(Chunks).get(chunks)}
    items = {item.id: item for item in store.drawer(Items).get([chunk >> CHUNK_BITS for chunk in chunks])}
    for identity in chunks:
        chunk, item = texts.get(identity), items.get(identity >> CHUNK_BITS)
        if chunk is None or item is None:
            return
        heading = " ".join(dict.fromkeys(filter(None, (item.title, *chunk.headings))))
        yield Candidate(item.id, (item.kind, item.parent), item.title, read(heading, chunk.text, language))


def time_for(spent: float) -> float:
    """Return the seconds that a second look may take after `spent` seconds of retrieval, which share a budget."""
    return max(LEAST_S, _BUDGET.get() - spent)


@contextmanager
def allowed(seconds: float) -> Iterator[None]:
    """Give second looks taken inside a budget of `seconds`: for measuring how they rank and not how fast."""
    token = _BUDGET.set(seconds)
    try:
        yield
    finally:
        _BUDGET.reset(token)


def reordered(scores: Floats, before: Floats) -> tuple[Ids, Floats]:
    """Return the rows of a ranking in their new order, and their scores.

    `scores` are those of the first rows that were looked at, `before` the ones of all. What was not looked at stays
    behind, in its order, and scores no higher than the last that was.
    """
    order = np.argsort(-scores, kind="stable")
    fresh = scores[order]
    rest = before[len(scores) :]
    if len(fresh):
        rest = np.minimum(rest, fresh[-1])
    return np.concatenate([order, np.arange(len(scores), len(before))]), np.concatenate([fresh, rest])


def _nearness(query: RerankQuery, candidates: RerankCandidates) -> Floats | None:
    """Return the nearness of each candidate to the center of the best; None where there are no vectors."""
    if query.near is None or query.mean_of is None or not candidates.weights.vector:
        return None
    items, first = firsts(candidates.chunks[:CENTRE_OF] >> CHUNK_BITS)
    order = np.argsort(first)  # the best passage of each, best first
    middle = centre(items[order].tolist(), candidates.scores[first[order]], query.mean_of)
    if middle is None:
        return None
    return np.asarray(query.near.index.scores(middle, candidates.chunks) / query.near.spread, dtype=np.float32)


# hits that were fused by rank: they have no scores of both legs, so those are asked for


@dataclass(frozen=True, slots=True)
class Meaning:
    """The vector of a question, and the vector side that made it."""

    semantic: Semantic
    vector: Floats


@dataclass(frozen=True, slots=True)
class FusedLook:
    """A second look at passages for one question."""

    look: SecondLook
    words: WordReader
    parsed: Parsed
    meaning: Meaning | None

    def scores(self, chunks: Sequence[int], seconds: float) -> list[float | None]:
        """Return a score from 0 to 1 for each chunk, in their order; None for one that there was no time to read."""
        text = " ".join((self.parsed.words, *self.parsed.prefixes))
        languages = self.words.languages()
        lexical = LexicalLeg(self.words, plan_lexical(Parsed(text), self.words), Scope())
        near = self._near(text, languages[0])
        candidates, order = _best_first(np.array(chunks, dtype=np.int64), lexical, near)
        mean_of = self.meaning.semantic.mean_of if self.meaning else None
        query = RerankQuery(text, lexical.plan, languages[0], near, mean_of)
        scale = scale_of(lexical, near, candidates.weights, lexical.complete())
        values = self.look.scores(query, candidates, seconds)
        seen = len(values)
        fresh = scale.scores(candidates.chunks[:seen], values, np.isnan(candidates.vector[:seen])).tolist()
        scores: list[float | None] = [None] * len(chunks)
        for place, score in zip(order.tolist(), fresh, strict=False):
            scores[place] = score
        return scores

    def _near(self, text: str, language: str) -> VectorLeg | None:
        if self.meaning is None:
            return None
        semantic = self.meaning.semantic
        trust = trust_for(text, semantic.embedder, language)
        return VectorLeg(semantic.index, semantic.embedder, self.meaning.vector, None, trust)


def _best_first(
    chunks: NDArray[np.int64], lexical: LexicalLeg, near: VectorLeg | None
) -> tuple[RerankCandidates, NDArray[np.int64]]:
    """Return these passages as candidates, best first, and the place that each had among `chunks`."""
    by_words = lexical.scores(chunks)
    by_meaning = near.scores(chunks) if near else np.full(len(chunks), np.nan, dtype=np.float32)
    weights = weigh(lexical.plan.mass if lexical.plan.query else 0.0, near.weight) if near else Weights(1.0, 0.0)
    order = np.argsort(-combine(by_words, by_meaning, weights), kind="stable")
    return RerankCandidates(chunks[order], by_words[order], by_meaning[order], weights), order
