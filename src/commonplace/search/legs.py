"""The two ways of finding, behind one face each, and how much each is believed.

A leg is asked for candidates, or for the exact scores of given ones. Every candidate of either leg gets its exact score
from both, and each score is put on an absolute scale: a lexical score in units of the query's mass, a cosine between
the model's typical unrelated and related pairs. So the fused score of a passage depends on the query and the library
alone, never on a filter, a limit or the other hits. What it means is told by `scale.py`.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from commonplace.index.followers import VectorQuery, WordReader
from commonplace.index.scope import Ids, Scope, among, distinct
from commonplace.index.words.lexical_query import LexicalQuery
from commonplace.lazy_dataclass import dataclass
from commonplace.model import CHUNK_BITS
from commonplace.models.roles import Embedder
from commonplace.search.plan import LexicalPlan
from commonplace.search.scale import (
    ENOUGH_TOLD,
    TRUE_NEARNESS,
    Line,
    Scale,
    Strangers,
    alike_line,
    complete_passages,
    evidence_line,
    fused_share,
    highest,
    nearness_line,
    stands_apart,
)
from commonplace.search.strangers import strangers
from commonplace.text.languages import UNKNOWN, detect

log = logging.getLogger(__name__)
Floats = NDArray[np.float32]

MOST_INSIDE = 1_000
"""Passages of a few items that are looked through for those with all words."""

WELL_KNOWN = 2.0
"""Model tokens per word up to which a word is one that a model has learned something about."""

LEXICAL_SCALE = 0.0294
"""What the square root of a query's mass is worth in cosine: learned on judged sets (docs/benchmarks.md)."""

LEAST_MASS = 12.0
"""A query of one rare word has little mass, but whoever types it wants that word."""

OTHER_LANGUAGE = 0.35
"""Trust in a model for a language it was not trained on but whose letters it knows."""

OTHER_SCRIPT = 0.1
"""Trust in a model for a script it cannot read: enough to order what the words leave equal."""

READABLE = 4.0
"""Model tokens per word up to which a model reads a text as words rather than as letters."""


@dataclass(frozen=True, slots=True)
class Weights:
    """The weights of the legs for one query, which add up to 1 when both run."""

    lexical: float
    vector: float
    evidence: float = 1.0
    """What they added up to before: how much one unit of the fused score says."""


def trust_in_model(language: str, known: frozenset[str], *, latin: bool, fertility: float) -> float:
    """Return the trust in a model, from 0 to 1, by whether it speaks the language of a query and knows its words."""
    if language in known:
        return 1.0 if fertility <= READABLE else READABLE / fertility
    return OTHER_LANGUAGE if latin else OTHER_SCRIPT


def weigh(mass: float, vector: float) -> Weights:
    """Return the weights for the mass of a query's terms and the vector leg's own weight.

    Words count with the root of the evidence that the terms can bring.
    """
    lexical = LEXICAL_SCALE * max(mass, LEAST_MASS) ** 0.5 if mass else 0.0
    total = (lexical + vector) or 1.0
    return Weights(lexical / total, vector / total, total)


def combine(lexical: Floats, vector: Floats, weights: Weights) -> Floats:
    """Return the weighted mean of both scales. A passage without a vector is judged by its words alone."""
    both = weights.lexical * lexical + weights.vector * vector
    return np.where(np.isnan(vector), lexical, both).astype(np.float32, copy=False)


class Vectors(Protocol):
    """The part of an index of vectors that the vector leg needs."""

    def search(
        self, query: Floats, k: int, items: Ids | None = None, without: Ids | None = None
    ) -> tuple[Ids, Floats]: ...
    def scores(self, query: Floats, chunk_ids: Ids) -> Floats: ...
    def sample(self) -> Floats: ...


@dataclass(frozen=True, slots=True)
class LexicalLeg:
    """The leg by words: BM25 over the plan's terms, in units of the plan's mass."""

    index: WordReader
    plan: LexicalPlan
    scope: Scope

    def candidates(self, depth: int) -> tuple[Ids, Floats]:
        ids, scores = self.index.search(self.plan.query, depth, self.scope)
        return ids, self._scaled(scores)

    def complete(self) -> Ids:
        """Return the passages that have every word, in scope or not, where they are few."""
        return complete_passages(self.plan, self.index)

    def inside(self, complete: Ids) -> Ids:
        """Return those of a few passages with all words that are in scope and that the whole query lets through.

        The index is asked only for what the passages' items do not tell.
        """
        for admitted in (self.scope.items, self.scope.known):
            if len(complete) and admitted is not None:
                complete = complete[among(complete >> CHUNK_BITS, admitted)]
        if len(complete) and self.scope.without is not None:
            complete = complete[~among(complete >> CHUNK_BITS, self.scope.without)]
        if not len(complete) or self._told_by_items():
            return complete
        scope = replace(self.scope, items=distinct(complete >> CHUNK_BITS), known=None)
        return np.intersect1d(complete, self.index.search(self.plan.query, MOST_INSIDE, scope)[0])

    def _told_by_items(self) -> bool:
        """Return True if every passage with all words answers whose item is in scope."""
        query, scope = self.plan.query, self.scope
        if query.phrases or query.excluded or not query.by_name or scope.parts:
            return False
        return any(term.titled for term in self.plan.content) and (scope.known is not None or not scope.by_fields)

    def expect(self, vector: VectorLeg, depth: int) -> None:
        """Tell the index that both legs will be asked for candidates: one elsewhere looks for both at once."""
        self.index.expect(self.plan.query, depth, self.scope, VectorQuery(vector.query, vector.items, vector.without))

    def scores(self, chunks: Ids) -> Floats:
        return self._scaled(self.index.scores(self.plan.query, chunks))

    def allows(self, chunks: Ids) -> NDArray[np.bool_]:
        """Return which chunks the query's phrases and exclusions let through: another leg must bring no others back."""
        query = self.plan.query
        allowed = np.ones(len(chunks), dtype=np.bool_)
        for phrase in query.phrases:
            allowed &= self.index.scores(LexicalQuery(phrases=(phrase,)), chunks) > 0
        for phrase in query.excluded:
            allowed &= self.index.scores(LexicalQuery(phrases=(phrase,)), chunks) == 0
        return allowed

    def _scaled(self, scores: Floats) -> Floats:
        return scores / np.float32(self.plan.mass or 1.0)


@dataclass(frozen=True)
class VectorLeg:
    """The leg by meaning: cosine, scaled so that 0 is the model's typical unrelated pair and 1 its related one."""

    index: Vectors
    embedder: Embedder
    query: Floats
    items: Ids | None
    trust: float
    without: Ids | None = None

    @cached_property
    def strangers(self) -> Strangers:
        """Return the nearness to the query of passages that have nothing to do with it."""
        return strangers(self.index.sample(), self.query, self.embedder)

    @property
    def spread(self) -> float:
        return self.embedder.related - self.embedder.unrelated

    @property
    def weight(self) -> float:
        """Return the worth of one unit of this leg's scale for this query."""
        return weight_of(self.embedder, self.trust)

    def candidates(self, depth: int) -> tuple[Ids, Floats]:
        ids, cosines = self.index.search(self.query, depth, self.items, self.without)
        return ids, self.scaled(cosines)

    def scores(self, chunks: Ids) -> Floats:
        return self.scaled(self.index.scores(self.query, chunks))

    def line(self, *, alike: bool) -> Line:
        """Return the line of the leg's scale where it is used alone."""
        line = nearness_line(self.strangers, alike=alike)
        return Line(line.slope * self.spread, line.start + line.slope * self.embedder.unrelated)

    def is_apart(self, scaled: float, passages: int) -> bool:
        """Return whether something is nearer than strangers can be expected to be among so many passages."""
        return stands_apart(cosine_of(scaled, self.embedder), self.strangers, passages)

    def scaled(self, cosines: Floats) -> Floats:
        return ((cosines - self.embedder.unrelated) / self.spread).astype(np.float32)


def scale_of(lexical: LexicalLeg, vector: VectorLeg | None, weights: Weights, complete: Ids) -> Scale:
    """Return the scale of the scores of these legs, fused with these weights, or of each by itself."""
    plan, passages = lexical.plan, lexical.index.passages()
    words = alike_line() if plan.alike else evidence_line(plan.mass, passages)
    if vector is None:
        return Scale(words, words, highest(plan.telling), complete)
    most = highest(telling_for(plan, vector.embedder))
    if not weights.lexical:
        return Scale(words, vector.line(alike=plan.alike), most, complete, only_near=not plan.alike)
    apart, believed = vector.strangers, vector.trust * vector.embedder.evidence
    near = believed * (vector.embedder.unrelated - apart.cosine)
    usual = weights.lexical * weights.evidence + TRUE_NEARNESS * believed * apart.scatter
    share = fused_share(weights.evidence, near, usual)
    both = alike_line(share) if plan.alike else evidence_line(plan.mass, passages, share)
    return Scale(words, both, most, complete)


def telling_for(plan: LexicalPlan, embedder: Embedder) -> float:
    """Return how much the words of a query tell to a model.

    Words that no text has tell as much as any rare one, if the model knows them.
    """
    known = plan.unknown and embedder.fertility(" ".join(plan.unknown)) <= WELL_KNOWN
    return plan.telling + (ENOUGH_TOLD if known else 0.0)


def weight_of(embedder: Embedder, trust: float) -> float:
    """Return the worth of one unit between a model's typical unrelated and related pairs, for a trust from 0 to 1."""
    return trust * embedder.evidence * (embedder.related - embedder.unrelated)


def cosine_of(scaled: float, embedder: Embedder) -> float:
    """Return the cosine that a score of the vector leg stands for."""
    return scaled * (embedder.related - embedder.unrelated) + embedder.unrelated


def trust_for(text: str, embedder: Embedder, main_language: str) -> float:
    """Return the trust in a model for a query, from 0 to 1. One too short to tell its language has the library's."""
    if not embedder.languages:
        return 1.0
    language = detect(text)
    if language == UNKNOWN:
        language = main_language
    latin = sum(character.isascii() for character in text) * 2 >= len(text)
    return trust_in_model(language, embedder.languages, latin=latin, fertility=embedder.fertility(text))
