"""The two ways of finding, behind one face each: ask for candidates, or for the exact scores of given ones."""

from __future__ import annotations

import logging
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from commonplace.index.base import Near, WordReader
from commonplace.index.lexical_query import LexicalQuery
from commonplace.index.scope import Ids, Scope
from commonplace.lazy_dataclass import dataclass
from commonplace.models.embedder import Embedder
from commonplace.search.fuse import trust_in_model
from commonplace.search.plan import LexicalPlan
from commonplace.text.languages import UNKNOWN, detect

log = logging.getLogger(__name__)
Floats = NDArray[np.float32]


class Vectors(Protocol):
    """What the vector leg asks of its index."""

    def search(
        self, query: Floats, k: int, items: Ids | None = None, without: Ids | None = None
    ) -> tuple[Ids, Floats]: ...
    def scores(self, query: Floats, chunk_ids: Ids) -> Floats: ...


@dataclass(frozen=True, slots=True)
class LexicalLeg:
    """BM25 over the plan's terms, in units of the plan's mass."""

    index: WordReader
    plan: LexicalPlan
    scope: Scope

    def candidates(self, depth: int) -> tuple[Ids, Floats]:
        ids, scores = self.index.search(self.plan.query, depth, self.scope)
        return ids, self._scaled(scores)

    def expect(self, vector: VectorLeg, depth: int) -> None:
        """Both legs are about to be asked for candidates: an index elsewhere looks for both at once."""
        self.index.expect(self.plan.query, depth, self.scope, Near(vector.query, vector.items, vector.without))

    def scores(self, chunks: Ids) -> Floats:
        return self._scaled(self.index.scores(self.plan.query, chunks))

    def allows(self, chunks: Ids) -> NDArray[np.bool_]:
        """Whether the query's phrases and exclusions let these through: another leg must not bring them back."""
        query = self.plan.query
        allowed = np.ones(len(chunks), dtype=np.bool_)
        for phrase in query.phrases:
            allowed &= self.index.scores(LexicalQuery(phrases=(phrase,)), chunks) > 0
        for phrase in query.excluded:
            allowed &= self.index.scores(LexicalQuery(phrases=(phrase,)), chunks) == 0
        return allowed

    def _scaled(self, scores: Floats) -> Floats:
        return scores / np.float32(self.plan.mass or 1.0)


@dataclass(frozen=True, slots=True)
class VectorLeg:
    """Cosine, on a scale where 0 is the model's typical unrelated pair and 1 its typical related one."""

    index: Vectors
    embedder: Embedder
    query: Floats
    items: Ids | None
    trust: float
    without: Ids | None = None

    @property
    def spread(self) -> float:
        return self.embedder.related - self.embedder.unrelated

    @property
    def weight(self) -> float:
        """What one unit of this leg's scale is worth for this query."""
        return weight_of(self.embedder, self.trust)

    def candidates(self, depth: int) -> tuple[Ids, Floats]:
        ids, cosines = self.index.search(self.query, depth, self.items, self.without)
        return ids, self.scaled(cosines)

    def scores(self, chunks: Ids) -> Floats:
        return self.scaled(self.index.scores(self.query, chunks))

    def scaled(self, cosines: Floats) -> Floats:
        return ((cosines - self.embedder.unrelated) / self.spread).astype(np.float32)


def weight_of(embedder: Embedder, trust: float) -> float:
    """What one unit between a model's typical unrelated and related pairs is worth where it is trusted so much."""
    return trust * embedder.evidence * (embedder.related - embedder.unrelated)


def cosine_of(scaled: float, embedder: Embedder) -> float:
    """The cosine that a score of the vector leg stands for."""
    return scaled * (embedder.related - embedder.unrelated) + embedder.unrelated


def trust_for(text: str, embedder: Embedder, main_language: str) -> float:
    """How much a model is believed for a query. A query too short to tell its language has the library's."""
    if not embedder.languages:
        return 1.0
    language = detect(text)
    if language == UNKNOWN:
        language = main_language
    latin = sum(character.isascii() for character in text) * 2 >= len(text)
    return trust_in_model(language, embedder.languages, latin=latin, fertility=embedder.fertility(text))
