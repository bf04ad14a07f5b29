"""Items by their words, over an index that has one row for each: scored as `lexical_items` scores them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from commonplace.index.scope import Ids, Scope
from commonplace.index.turbopuffer.match import ANYTHING, BegunTitle, Every, Match, Times, either
from commonplace.index.turbopuffer.parts import Filter
from commonplace.index.turbopuffer.tallies import Terms
from commonplace.index.words.items import BEGUN, MISSING_SHARE, SATURATION, Ranked, Scoring, shown
from commonplace.index.words.query import TITLE_WEIGHT, LexicalQuery
from commonplace.lazy_dataclass import dataclass
from commonplace.text.terms import Term

if TYPE_CHECKING:
    from commonplace.index.turbopuffer.reader import TurbopufferReader


class ItemMatches:
    """One query, in any of several scopes."""

    def __init__(
        self, reader: TurbopufferReader, query: LexicalQuery, scopes: Sequence[Scope], *, missing: int, scoring: Scoring
    ) -> None:
        """`missing`: how many words of the query are nowhere."""
        self._scoring = scoring
        self._reader, self._query, self._scopes, self._missing = reader, query, scopes, missing
        self._ceiling = self._highest()

    def best(self, count: int, without: Ids | None = None) -> Ranked:
        """All items that answer; `without` may not."""
        if not self._query.terms or not self._scopes:
            return Ranked(np.empty(0, np.int64), np.empty(0, np.float64), 0)
        ranking = _Covering(
            tuple(map(self._term, self._query.terms)),
            tuple(term.weight >= 1 for term in self._query.terms),
            0.0 if self._missing else self._ceiling,
        )
        found = self._found(Every((*self._phrases(), ranking), refused=self._refused()), without)
        items = np.array(sorted(found), np.int64)
        raw = np.array([found[item] for item in items.tolist()], np.float64)
        return Ranked(items, shown(raw, self._ceiling, self._scoring), len(items))

    def allowed(self) -> Ids:
        """All items of the scopes that the query's phrases and exclusions let through, whatever words they have."""
        found = self._found(Every((*self._phrases(), ANYTHING), refused=self._refused()), None)
        return np.array(sorted(found), np.int64)

    def _term(self, term: Term) -> Match:
        found = self._reader.vocabulary.term(term)
        return Every((found,), (BegunTitle(term.forms, term.weight),)) if term.match == "prefix" else found

    def _found(self, match: Match, without: Ids | None) -> dict[int, float]:
        rows = {row.item: row.score for scope in self._scopes for row in self._reader.every(match, scope)}
        for item in () if without is None else without.tolist():
            rows.pop(item, None)
        return rows

    def _phrases(self) -> Iterable[Match]:
        """Required, and worth nothing."""
        return (Times(self._reader.vocabulary.phrase(phrase), 0.0) for phrase in self._query.phrases)

    def _refused(self) -> tuple[Match, ...]:
        return tuple(map(self._reader.vocabulary.phrase, self._query.excluded))

    def _highest(self) -> float:
        """More than any item can score, by the terms that the library has."""
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
    """Any of the terms; a ceiling more for all content words, and another for all words."""

    terms: tuple[Match, ...]
    content: tuple[bool, ...]
    ceiling: float

    def score(self, row: Terms) -> float | None:
        scores = [term.score(row) for term in self.terms]
        found = [score for score in scores if score is not None]
        if not found:
            return None
        wanted = self.content if any(self.content) else (True,) * len(self.terms)
        lacking = [asked for score, asked in zip(scores, wanted, strict=True) if score is None]
        return sum(found) + self.ceiling * ((not any(lacking)) + (not lacking))

    def need(self) -> Filter | None:
        return either([term.need() for term in self.terms])

    def tokens(self) -> Sequence[str]:
        return tuple(token for term in self.terms for token in term.tokens())
