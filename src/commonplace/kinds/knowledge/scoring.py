"""Scores of whole items by their words, on the scale of every search (`search/scale.py`)."""

from __future__ import annotations

import numpy as np

from commonplace.index.base import WordReader
from commonplace.index.words.items import Scores, Scoring
from commonplace.index.words.query import LexicalQuery
from commonplace.kinds.knowledge.meaning import HIGHEST
from commonplace.search.plan import UNKNOWN_TERM_SHARE, telling
from commonplace.search.scale import ALL_WORDS, FEW, SURE, TELLS, evidence_line, highest, least_of, lifted, pressed


def scoring_of(query: LexicalQuery, missing: int, reader: WordReader) -> Scoring:
    """Return a function from BM25 and "has all words" to a score: 0.6 and more for items with all words that tell.

    The only item with all words has 0.75 at least, one of few 0.65; an item with some of them has less than 0.6.
    """
    idfs = [max(map(reader.idf, term.forms)) or 1.0 for term in query.terms]
    content = [place for place, term in enumerate(query.terms) if not term.function]
    mass = sum(term.weight * idf for term, idf in zip(query.terms, idfs, strict=True))
    mass = max(mass + missing * UNKNOWN_TERM_SHARE * mass / max(len(idfs), 1), 1e-6)
    tells = telling([idfs[place] for place in content], reader.passages())
    least, most = ALL_WORDS, highest(tells)
    if content and not missing and tells >= TELLS:
        holders = reader.having(tuple(query.terms[place] for place in content), FEW)
        least = least_of(holders) if len(holders) else ALL_WORDS
    line, apart = evidence_line(mass, reader.passages()), len(content) < len(query.terms)

    def score(strength: Scores, ceilings: Scores) -> Scores:
        sure = most * pressed(line.slope * strength / mass + line.start)
        whole = lifted(sure, least)
        if apart:
            middle = (least + SURE) / 2
            whole = np.where(ceilings >= 2, lifted(sure, middle), least + (middle - least) * sure)
        scores = np.where(ceilings >= 1, whole, ALL_WORDS * sure)
        return np.asarray(np.minimum(HIGHEST, scores if tells >= TELLS else most * scores))

    return score
