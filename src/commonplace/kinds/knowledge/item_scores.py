"""A query as terms of the library, and scores of whole items by those words and by meaning.

Both are on the scale of every search (`search/scale.py`). Where `knowledge_search` is `hybrid`, the score of a passage
says how much nearer it is than strangers are to the query, and an item is near when one of its passages scores at
least `NEAR`. That depends on the item, the query and the library alone, so a filter or a limit changes no score.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter

import numpy as np

from commonplace.errors import Unavailable
from commonplace.index.followers import WordReader
from commonplace.index.scope import Ids
from commonplace.index.words.item_ranking import Scores, Scoring
from commonplace.index.words.lexical_query import LexicalQuery
from commonplace.model import CHUNK_BITS
from commonplace.search.engine import SemanticSource, deepen, in_time
from commonplace.search.legs import OTHER_SCRIPT, VectorLeg, trust_for
from commonplace.search.plan import UNKNOWN_TERM_SHARE, refused, required, telling, understood
from commonplace.search.request import Parsed, parse
from commonplace.search.scale import (
    ALL_WORDS,
    FEW,
    SURE,
    TELLS,
    evidence_line,
    highest,
    least_of,
    lifted,
    pressed,
    pressed_nearness,
)
from commonplace.text.analyze import stems
from commonplace.text.terms import Term, beginning


@dataclass(frozen=True, slots=True)
class AnalyzedQuery:
    """A query as terms of the library, with its scoring."""

    query: LexicalQuery
    missing: int
    """Number of its words that no item has."""
    languages: tuple[str, ...]
    scoring: Scoring
    """A function from an item's words to a score."""
    rarity: Mapping[Term, float] = field(default_factory=dict)
    """How rare a term is in this library; 1 for a term that is not here."""

    @property
    def empty(self) -> bool:
        return not self.query.terms and not self.missing


def ask(text: str, reader: WordReader) -> AnalyzedQuery:
    """Return the terms of a query that the library has. Words are taken as they are, without spelling correction."""
    return _planned(parse(text), reader)


def _planned(parsed: Parsed, reader: WordReader) -> AnalyzedQuery:
    whole = " ".join((parsed.words, *(prefix for prefix in parsed.prefixes if beginning(prefix) is None)))
    languages, words = understood(whole, reader)
    prefix_terms = [_begun(form, languages) for prefix in parsed.prefixes if (form := beginning(prefix))]
    known_terms = [term for term in words if term.match == "prefix" or any(map(reader.idf, term.forms))]
    query = LexicalQuery((*known_terms, *prefix_terms), required(parsed, reader), refused(parsed, reader))
    rarity = {term: min(filter(None, map(reader.idf, term.forms))) for term in known_terms if term.match == "word"}
    missing = len(words) - len(known_terms)
    return AnalyzedQuery(query, missing, languages, scoring_of(query, missing, reader), rarity)


def _begun(form: str, languages: Sequence[str]) -> Term:
    """Return the term of a prefix, with its stems in case it is a whole word: titles are indexed as stems."""
    whole = (stems(form, language).split()[-1] for language in languages)
    return Term(tuple(dict.fromkeys((form, *whole))), 1.0, "prefix")


# by words


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


# by meaning


NEAR = 0.35
HIGHEST = 0.985
"""Upper bound of scores by words or by meaning."""
_DEPTH = 256


@dataclass(frozen=True, slots=True)
class NearItems:
    """Scores of near items by item id, from 0 to 1; and why there are none, where there could be."""

    scores: Mapping[int, float] = field(default_factory=dict)
    reason: str = ""
    ran: bool = False


def near(semantic: SemanticSource, text: str, language: str) -> NearItems:
    """Return every item near to a text, with its score; none, with the reason, where no vector can be had in time."""
    side = in_time(semantic)
    if isinstance(side, Unavailable):
        return NearItems(reason=side.reason)
    embedder = side.embedder
    if trust_for(text, embedder, language) <= OTHER_SCRIPT:
        return NearItems(reason=f"the model {embedder.name} does not read this script")
    query = in_time(lambda: embedder.embed_queries([text])[0])
    if isinstance(query, Unavailable):
        return NearItems(reason=query.reason)
    leg = VectorLeg(side.index, embedder, query, None, 1.0)
    line = leg.line(alike=False)

    def nearest(depth: int) -> tuple[Ids, Scores, bool]:
        chunks, scaled = leg.candidates(depth)
        scores = HIGHEST * pressed_nearness(line.slope * scaled + line.start)
        return chunks, scores, len(chunks) < depth or bool(scores[-1] < NEAR)

    chunks, scores, _ = deepen(_DEPTH, nearest, itemgetter(2))
    is_near = scores >= NEAR
    items, scores = chunks[is_near] >> CHUNK_BITS, scores[is_near]
    best: dict[int, float] = {}
    for item, score in zip(items.tolist(), scores.tolist(), strict=True):
        best[item] = max(score, best.get(item, 0.0))
    return NearItems(best, ran=True)


def both(words: float, meaning: float) -> float:
    """Return the score of an item with both scores: `max + 0.1 · min · (0.985 − max)`, to four places.

    Either leg is enough, both are a little better.
    """
    best, other = max(words, meaning), min(words, meaning)
    return round(best + 0.1 * other * (HIGHEST - best), 4)
