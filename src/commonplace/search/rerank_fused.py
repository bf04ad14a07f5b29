"""The built-in second look at hits that were fused by rank: they have no scores of both legs, so it asks for those."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commonplace.index.base import WordReader
from commonplace.index.scope import Scope
from commonplace.search.fuse import Weights, combine, weigh
from commonplace.search.legs import LexicalLeg, VectorLeg, scale_of, trust_for
from commonplace.search.parse import Parsed
from commonplace.search.pipeline import Semantic
from commonplace.search.plan import plan_lexical
from commonplace.search.question import PlacedHit
from commonplace.search.rerank import RerankCandidates, RerankQuery, SecondLook
from commonplace.store.base import Store
from commonplace.store.chunks import Chunks
from commonplace.store.items import Items

Floats = NDArray[np.float32]


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


def passages_to_rerank(store: Store, hits: Sequence[PlacedHit]) -> list[str]:
    """Return what a reranker reads of each hit: where the passage stands, then what it says."""
    chunks = {chunk.id: chunk for chunk in store.drawer(Chunks).get([hit.chunk_id for hit in hits])}
    titles = {item.id: item.title for item in store.drawer(Items).get([hit.item_id for hit in hits])}
    texts = []
    for hit in hits:
        chunk = chunks.get(hit.chunk_id)
        path = dict.fromkeys(filter(None, (titles.get(hit.item_id, ""), *(chunk.headings if chunk else ()))))
        texts.append("\n".join(filter(None, (" › ".join(path), chunk.text if chunk else ""))))
    return texts
