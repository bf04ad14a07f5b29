"""A query made wider by what the best of a first retrieval have in common: more words, and a vector moved towards them.

Pseudo-relevance feedback needs somebody who has understood the question. Where the model reads its language, the best
have been found by meaning too, and their words are other ways to say it; where words do most of the work, what they
bring along was measured to harm (docs/benchmarks.md), so nothing is added.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from commonplace.lazy_dataclass import dataclass
from commonplace.model import CHUNK_BITS
from commonplace.search.engine import MeanOf
from commonplace.search.legs import OTHER_LANGUAGE, LexicalLeg, VectorLeg
from commonplace.search.plan import LexicalPlan
from commonplace.search.rerank import RerankCandidates, passages_of
from commonplace.search.rerank_features import belief, centre
from commonplace.store.base import Store
from commonplace.text.terms import Term

Floats = NDArray[np.float32]

READ = 5
"""The best items that are believed."""

MOST_ADDED = 30
WORDS_SHARE = 1.0
"""What the added words weigh together, in units of those of the query."""

MOVED = 0.3
"""How far the query's vector goes towards the centre of the best, which is 1 away."""

_STEEP = 8.0


@dataclass(frozen=True, slots=True)
class Widened:
    """The legs that look for more than was asked, and the stems that were added, the most telling first."""

    lexical: LexicalLeg
    vector: VectorLeg
    added: tuple[str, ...]

    @property
    def note(self) -> str:
        """Return the sentence that says what was added, for a search that is explained."""
        if not self.added:
            return "Nothing was added to the query: the best hits have no more words."
        return f"Added to the query, from the best hits: {', '.join(self.added)}."


def why_not(vector: VectorLeg | None) -> str:
    """Return why a query is not made wider; "" where it is."""
    if vector is None:
        return "there is no meaning to tell what else belongs to it"
    if vector.trust <= OTHER_LANGUAGE:
        return f"the model {vector.embedder.name} does not read this language"
    return "" if vector.embedder.widens else f"questions lose by it with the model {vector.embedder.name}"


def widened(store: Store, found: RerankCandidates, lexical: LexicalLeg, vector: VectorLeg, mean_of: MeanOf) -> Widened:
    """Return legs that look for more. `found`: the best of a first retrieval, an item each; if none, the same legs."""
    found = found.first(READ)
    language = lexical.index.languages()[0]
    counts = [one.reading.counts for one in passages_of(store, found.chunks.tolist(), language)]
    asked = {form for term in lexical.plan.query.terms for form in term.forms}
    worths = telling_words(counts, found.scores[: len(counts)], asked, lexical.index.idf)
    plan = _with_words(lexical.plan, worths, lexical.index.idf)
    items = (found.chunks >> CHUNK_BITS).tolist()
    return Widened(replace(lexical, plan=plan), _moved(vector, centre(items, found.scores, mean_of)), tuple(worths))


def telling_words(
    counts: Sequence[Counter[str]], scores: Floats, asked: Collection[str], idf: Callable[[str], float]
) -> dict[str, float]:
    """Return the stems of the best that say most, with their worth; those of the question left out.

    A stem is worth the sum of its share in each passage, weighted by belief, times its idf in the library.
    """
    worth: dict[str, float] = defaultdict(float)
    for count, weight in zip(counts, belief(scores, _STEEP).tolist(), strict=True):
        length = count.total() or 1
        for stem, times in count.items():
            if stem not in asked:
                worth[stem] += weight * times / length
    telling = {stem: value * idf(stem) for stem, value in worth.items()}
    best = sorted((stem for stem in telling if telling[stem] > 0), key=lambda stem: (-telling[stem], stem))
    return {stem: telling[stem] for stem in best[:MOST_ADDED]}


def _with_words(plan: LexicalPlan, worths: dict[str, float], idf: Callable[[str], float]) -> LexicalPlan:
    """Return a plan with more terms, which bring `WORDS_SHARE` of its mass where all are found, each in proportion."""
    if not worths or not plan.mass:
        return plan
    whole = sum(worth * idf(stem) for stem, worth in worths.items())
    weights = {stem: WORDS_SHARE * plan.mass * worth / whole for stem, worth in worths.items()}
    terms = (Term((stem,), weight) for stem, weight in weights.items())
    shares = (weight * idf(stem) for stem, weight in weights.items())
    query = replace(plan.query, terms=(*plan.query.terms, *terms))
    return replace(plan, query=query, mass=plan.mass * (1 + WORDS_SHARE), shares=(*plan.shares, *shares))


def _moved(vector: VectorLeg, middle: Floats | None) -> VectorLeg:
    if middle is None:
        return vector
    query = vector.query + np.float32(MOVED) * middle
    return replace(vector, query=np.asarray(query / (np.linalg.norm(query) or 1.0), dtype=np.float32))
