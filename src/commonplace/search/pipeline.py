"""The one search: parse, plan, retrieve, filter, fuse, calibrate, present. Every surface runs this and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from commonplace.errors import Unavailable
from commonplace.index.lexical import LexicalIndex
from commonplace.index.lexical_reader import LexicalReader
from commonplace.index.scope import Ids, Scope
from commonplace.model import CHUNK_BITS, Filter, Item, Page
from commonplace.models.embedder import Embedder
from commonplace.search.fuse import Weights, calibrate, combine, weigh
from commonplace.search.legs import LexicalLeg, VectorLeg, Vectors, trust_for
from commonplace.search.parse import Parsed, parse
from commonplace.search.plan import plan_lexical, plan_telling
from commonplace.search.present import Presenter
from commonplace.search.request import Request
from commonplace.search.timed import Stages
from commonplace.store.base import Store
from commonplace.store.filters import fold_tag, micros

Floats = NDArray[np.float32]
T = TypeVar("T")
LEAST_DEPTH = 50
DEPTH_PER_HIT = 5


@dataclass(frozen=True, slots=True)
class Semantic:
    """A ready vector side: an index that has vectors and the model that made them."""

    index: Vectors
    embedder: Embedder
    mean_of: Callable[[int], Floats | None]
    """The mean direction of an item's vectors, where it has any."""


class SemanticSource(Protocol):
    """Gives the vector side when there is one, or raises Unavailable with the reason."""

    def __call__(self) -> Semantic: ...


@dataclass(frozen=True, slots=True)
class Ranking:
    """Passages in their final order, with what each leg thought of them on its own scale."""

    chunks: Ids
    scores: Floats
    lexical: Floats
    vector: Floats
    weights: Weights


class Pipeline:
    """Runs searches over one space. Holds no state of its own: indexes and store are asked anew each time."""

    def __init__(self, store: Store, lexical: LexicalIndex, semantic: SemanticSource) -> None:
        self._store = store
        self._lexical = lexical
        self._semantic = semantic

    def search(self, request: Request) -> Page:
        return self._lexical.ask(lambda words: self._search(request, words))

    def related(self, item: Item, request: Request) -> Page:
        """What is like an item: its most telling words in the lexical leg, the mean of its vectors in the other."""
        return self._lexical.ask(lambda words: self._related(item, request, words))

    def _search(self, request: Request, words: LexicalReader) -> Page:
        stages = Stages()
        parsed = parse(request.text)
        scope = self._scope(request)
        lexical = LexicalLeg(words, stages.timed("plan", lambda: plan_lexical(parsed, words)), scope)
        vector = self._vector_leg(request, parsed, words, scope, stages)
        notes = [] if lexical.plan.query or vector else ["The query has no word that can be looked for."]
        wanted = request.offset + request.limit
        ranking = self._rank(lexical, vector, wanted, request, stages)
        skipped = self._skipped(lexical, vector, request)
        if lexical.plan.query.phrases and not len(ranking.chunks) and not len(skipped.chunks):
            lexical = LexicalLeg(words, plan_lexical(replace(parsed, phrases=()), words), scope)
            ranking = self._rank(lexical, vector, wanted, request, stages)
            skipped = self._skipped(lexical, vector, request)
            notes.append("No passage has the quoted phrase, so its words were looked for.")
        stages.skip("rerank", "no reranker is configured")
        kept = np.flatnonzero(ranking.scores >= request.min_score)
        presenter = Presenter(self._store, lexical.plan.query.terms, words.languages(), request)
        hits = stages.timed("present", lambda: presenter.hits(ranking, kept[request.offset : wanted].tolist()))
        return Page(
            tuple(hits),
            stages.done,
            tuple(notes),
            more=len(kept) > wanted,
            found=len(kept),
            skipped=int(np.count_nonzero(skipped.scores >= request.min_score)),
        )

    def _related(self, item: Item, request: Request, words: LexicalReader) -> Page:
        stages = Stages()
        scope = self._scope(request)
        plan = plan_telling(f"{item.title}\n{item.body or ''}", words)
        lexical = LexicalLeg(words, plan, scope)
        vector = self._vector_leg_of(item, request, scope, stages)
        ranking = self._rank(lexical, vector, request.limit + 1, request, stages)
        others = np.flatnonzero(ranking.chunks >> CHUNK_BITS != item.id)[: request.limit]
        presenter = Presenter(self._store, plan.query.terms, words.languages(), request)
        return Page(tuple(presenter.hits(ranking, others.tolist())), stages.done)

    def _vector_leg_of(self, item: Item, request: Request, scope: Scope, stages: Stages) -> VectorLeg | None:
        try:
            semantic = self._semantic()
        except Unavailable as reason:
            stages.skip("vector", str(reason))
            return None
        mean = semantic.mean_of(item.id)
        if mean is None:
            stages.skip("vector", "the item has no vectors yet")
            return None
        items = self._items(request.filter, scope)
        return VectorLeg(semantic.index, semantic.embedder, mean, items, trust=1.0, without=scope.without)

    # plan

    def _scope(self, request: Request) -> Scope:
        filter = request.filter
        left_out = request.exclude.union(self._replaced(filter))
        without = np.array(sorted(left_out), dtype=np.int64) if left_out else None
        if not filter:
            return Scope(without=without)
        items = self._store.select(filter) if filter.where or filter.entries else None
        if items is not None:  # the store has applied the whole filter, not only the part an index cannot
            return Scope(items=items, without=without)
        return Scope(
            without=without,
            kinds=filter.kinds,
            parents=filter.parents,
            tags=tuple(dict.fromkeys(map(fold_tag, filter.tags))),
            created=(_micros(filter.created_from), _micros(filter.created_to)),
            updated=(_micros(filter.updated_from), _micros(filter.updated_to)),
        )

    def _replaced(self, filter: Filter) -> Sequence[int]:
        """Memory entries whose place a newer one has taken: no answers, unless the filter speaks of entries itself."""
        told = filter.entries is not None or (filter.kinds and "memory" not in filter.kinds)
        return () if told else self._store.superseded_items()

    def _vector_leg(
        self, request: Request, parsed: Parsed, words: LexicalReader, scope: Scope, stages: Stages
    ) -> VectorLeg | None:
        if request.mode == "lexical":
            stages.skip("vector", "only words were asked for")
            return None
        try:
            semantic = self._semantic()
        except Unavailable as reason:
            if request.mode == "semantic":
                raise
            stages.skip("vector", str(reason))
            return None
        embedder = semantic.embedder
        meaning = " ".join((parsed.words, *parsed.prefixes))
        query = stages.timed("embed", lambda: embedder.embed_queries([meaning])[0])
        trust = trust_for(meaning, embedder, words.languages()[0])
        items = self._items(request.filter, scope)
        return VectorLeg(semantic.index, embedder, query, items, trust, scope.without)

    def _items(self, filter: Filter, scope: Scope) -> Ids | None:
        """The item ids a vector index is held to: it keeps no fields, so the store evaluates the filter."""
        if scope.items is not None:
            return scope.items
        return self._store.select(filter) if scope.by_fields else None

    # retrieve, fuse, calibrate

    def _rank(
        self, lexical: LexicalLeg, vector: VectorLeg | None, wanted: int, request: Request, stages: Stages
    ) -> Ranking:
        """Enough passages for the page, however many of them belong to the same few items."""
        depth = max(LEAST_DEPTH, DEPTH_PER_HIT * wanted)
        while True:
            ranking, full = self._rank_at(lexical, vector, depth, request, stages)
            if request.per_item:
                ranking = _best_per_item(ranking)
            if not full or len(ranking.chunks) > wanted:
                return ranking
            depth *= 4

    def _skipped(self, lexical: LexicalLeg, vector: VectorLeg | None, request: Request) -> Ranking:
        """What answers among the items that are left out, and nothing where none are."""
        without = np.array(sorted(request.exclude.difference(self._replaced(request.filter))), dtype=np.int64)
        if not len(without):
            chunks, scores = _nothing()
            return Ranking(chunks, scores, scores, scores, Weights(0.0, 0.0))
        items = without if lexical.scope.items is None else np.intersect1d(without, lexical.scope.items)
        words = replace(lexical, scope=replace(lexical.scope, items=items, without=None))
        if vector is not None:
            near = without if vector.items is None else np.intersect1d(without, vector.items)
            vector = replace(vector, items=near, without=None)
        return self._rank(words, vector, len(without), replace(request, per_item=True), Stages())

    def _rank_at(
        self, lexical: LexicalLeg, vector: VectorLeg | None, depth: int, request: Request, stages: Stages
    ) -> tuple[Ranking, bool]:
        """The ranking at a depth, and whether any leg may have had more to give."""
        near = stages.timed("vector", lambda: vector.candidates(depth)) if vector else _nothing()
        if request.mode == "semantic":
            stages.skip("lexical", "only meaning was asked for")
            allowed = lexical.allows(near[0])
            chunks, scores = near[0][allowed], near[1][allowed]
            return _sorted(chunks, scores, np.zeros_like(scores), scores, Weights(0.0, 1.0)), len(near[0]) >= depth
        words = stages.timed("lexical", lambda: lexical.candidates(depth))
        words_full = len(words[0]) >= depth
        if vector is None:
            unknown = np.full_like(words[1], np.nan)
            return _sorted(words[0], words[1], words[1], unknown, Weights(1.0, 0.0)), words_full
        wanted = request.offset + request.limit + 1  # one more than shown, to know whether there is more
        ranking = stages.timed("fuse", lambda: _fused(lexical, vector, words, near, depth=depth, wanted=wanted))
        return ranking, words_full or len(near[0]) >= depth


def _nothing() -> tuple[Ids, Floats]:
    return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)


def _fused(
    lexical: LexicalLeg,
    vector: VectorLeg,
    words: tuple[Ids, Floats],
    near: tuple[Ids, Floats],
    *,
    depth: int,
    wanted: int,
) -> Ranking:
    """Candidates from either leg, exact scores from both, for every passage that can reach the page."""
    known = dict(zip(near[0].tolist(), near[1].tolist(), strict=True))
    only_words = np.array([chunk for chunk in words[0].tolist() if chunk not in known], dtype=np.int64)
    among = set(words[0].tolist())
    only_near = np.array([chunk for chunk in near[0].tolist() if chunk not in among], dtype=np.int64)
    only_near = only_near[lexical.allows(only_near)]
    known.update(zip(only_words.tolist(), vector.scores(only_words).tolist(), strict=True))
    chunks = np.concatenate([words[0], only_near])
    by_vector = np.array([known[chunk] for chunk in chunks.tolist()], dtype=np.float32)
    by_words = np.concatenate([words[1], np.zeros(len(only_near), dtype=np.float32)])
    weights = weigh(lexical.plan.mass if lexical.plan.query else 0.0, vector.weight)
    scores = combine(by_words, by_vector, weights)
    if len(words[0]) >= depth:
        # What the lexical list left out scores at most as its last did, and nothing at all where the list is complete.
        best = scores + np.float32(weights.lexical) * words[1][-1]
        open_questions = np.flatnonzero(best[len(words[0]) :] >= _nth_item(chunks, scores, wanted)) + len(words[0])
        by_words[open_questions] = lexical.scores(chunks[open_questions])
        scores = combine(by_words, by_vector, weights)
    return _sorted(chunks, scores, by_words, by_vector, weights)


def _nth_item(chunks: Ids, scores: Floats, n: int) -> float:
    """The score of the n-th best item, so far; minus infinity where there are fewer."""
    order = np.argsort(-scores, kind="stable")
    _, first = np.unique(chunks[order] >> CHUNK_BITS, return_index=True)
    return float(np.sort(scores[order][first])[-n]) if len(first) >= n else -np.inf


def _sorted(chunks: Ids, scores: Floats, lexical: Floats, vector: Floats, weights: Weights) -> Ranking:
    order = np.lexsort((chunks, -scores))
    return Ranking(chunks[order], calibrate(scores[order]), lexical[order], vector[order], weights)


def _best_per_item(ranking: Ranking) -> Ranking:
    _, first = np.unique(ranking.chunks >> CHUNK_BITS, return_index=True)
    first.sort()
    return Ranking(
        ranking.chunks[first], ranking.scores[first], ranking.lexical[first], ranking.vector[first], ranking.weights
    )


def _micros(moment: datetime | None) -> int | None:
    return micros(moment) if moment else None
