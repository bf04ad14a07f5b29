"""A search for whole items by their words, over an index that has one row for each, scored as in `words.items`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from commonplace.index.scope import Ids, Scope
from commonplace.index.turbopuffer.match import ANYTHING, BegunTitle, Every, Match, WeightedMatch, either
from commonplace.index.turbopuffer.parts import Filter
from commonplace.index.turbopuffer.tallies import Terms
from commonplace.index.words.items import BEGUN, MISSING_SHARE, SATURATION, ItemScores, Scoring, scores_of
from commonplace.index.words.query import TITLE_WEIGHT, LexicalQuery
from commonplace.text.terms import Term

if TYPE_CHECKING:
    from commonplace.index.turbopuffer.reader import TurbopufferReader


class ItemMatches:
    """A search of one query, in any of several scopes. An `ItemFinder`."""

    def __init__(
        self, reader: TurbopufferReader, query: LexicalQuery, scopes: Sequence[Scope], *, missing: int, scoring: Scoring
    ) -> None:
        """Prepare the query. `missing`: how many of its words no item has."""
        self._scoring = scoring
        self._reader, self._query, self._scopes, self._missing = reader, query, scopes, missing
        self._ceiling = self._highest()

    def best(self, count: int, without: Ids | None = None) -> ItemScores:
        """Return all items that match, however many `count` asks for. `without` are left out."""
        if not self._query.terms or not self._scopes:
            return ItemScores(np.empty(0, np.int64), np.empty(0, np.float64), 0)
        ranking = _Covering(
            tuple(map(self._term, self._query.terms)),
            tuple(term.weight >= 1 for term in self._query.terms),
            0.0 if self._missing else self._ceiling,
        )
        scores = self._scores(Every((*self._phrases(), ranking), refused=self._refused()), without)
        items = np.array(sorted(scores), np.int64)
        raw = np.array([scores[item] for item in items.tolist()], np.float64)
        return ItemScores(items, scores_of(raw, self._ceiling, self._scoring), len(items))

    def allowed(self) -> Ids:
        """Return all items of the scopes that the query's phrases and exclusions admit, whatever words they have."""
        scores = self._scores(Every((*self._phrases(), ANYTHING), refused=self._refused()), None)
        return np.array(sorted(scores), np.int64)

    def _term(self, term: Term) -> Match:
        match = self._reader.vocabulary.term(term)
        return Every((match,), (BegunTitle(term.forms, term.weight),)) if term.match == "prefix" else match

    def _scores(self, match: Match, without: Ids | None) -> dict[int, float]:
        """Return the scores of the items that match, by item."""
        rows = {row.item: row.score for scope in self._scopes for row in self._reader.every(match, scope)}
        for item in () if without is None else without.tolist():
            rows.pop(item, None)
        return rows

    def _phrases(self) -> Iterable[Match]:
        """Return the required phrases, which add 0 to a score."""
        return (WeightedMatch(self._reader.vocabulary.phrase(phrase), 0.0) for phrase in self._query.phrases)

    def _refused(self) -> tuple[Match, ...]:
        return tuple(map(self._reader.vocabulary.phrase, self._query.excluded))

    def _highest(self) -> float:
        """Return a score that no item reaches, from the terms that the library has."""
        vocabulary = self._reader.vocabulary

        def most(term: Term) -> float:
            if term.match != "word":
                return term.weight * BEGUN
            title = max(vocabulary.idf_of("title", form) for form in term.forms)
            body = max(map(vocabulary.idf, term.forms))
            return term.weight * SATURATION * (body + TITLE_WEIGHT * title)

        each = [most(term) for term in self._query.terms]
        return max(sum(each) + self._missing * MISSING_SHARE * sum(each) / max(len(each), 1), 1e-6)


@dataclass(frozen=True, slots=True)
class _Covering:
    """A match of any of the terms, with a ceiling added for all content words and another for all words."""

    terms: tuple[Match, ...]
    content: tuple[bool, ...]
    ceiling: float

    def score(self, row: Terms) -> float | None:
        """Return the row's score; None if it has none of the terms."""
        scores = [term.score(row) for term in self.terms]
        matching = [score for score in scores if score is not None]
        if not matching:
            return None
        content = self.content if any(self.content) else (True,) * len(self.terms)
        lacking = [is_content for score, is_content in zip(scores, content, strict=True) if score is None]
        return sum(matching) + self.ceiling * ((not any(lacking)) + (not lacking))

    def need(self) -> Filter | None:
        """Return a filter that all matches pass; None if there is none."""
        return either([term.need() for term in self.terms])

    def tokens(self) -> Sequence[str]:
        """Return the terms to rank candidates by."""
        return tuple(token for term in self.terms for token in term.tokens())
