"""Conditions on rows: a filter for the rows that could match, whether one does, and its score.

BM25 as the local index computes it (k1 1.2, b 0.75), with the counts of the whole library:

    ln(1 + (N − n + ½) / (n + ½)) · 2.2 · f / (f + 1.2 · (¼ + ¾ · length / mean length))
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from rapidfuzz.distance import OSA

from commonplace.index.turbopuffer.ledger import Ledger
from commonplace.index.turbopuffer.parts import Filter, all_of, any_of, token_of
from commonplace.index.turbopuffer.tallies import FIELDS, Terms
from commonplace.index.words.lexical_query import TITLE_WEIGHT, LexicalQuery
from commonplace.index.words.phrases import Phrase
from commonplace.text.terms import Term, ends_in_beginning

K1, B = 1.2, 0.75
MOST_EXPANDED = 1_000
"""Words that a beginning or a typo expands to in a request; with more, all rows are requested."""

CONTENT = "content"


class Match(Protocol):
    """A condition on a row, with a score."""

    def score(self, row: Terms) -> float | None:
        """Return the row's score; None if it does not match."""
        ...

    def need(self) -> Filter | None:
        """Return a filter of the service that every match passes; None if there is none."""
        ...

    def tokens(self) -> Sequence[str]:
        """Return the terms to rank candidates by."""
        ...


NEVER: Filter = ("Never",)
"""The need of a match that no row passes. It is never sent."""


def having(terms: Sequence[str]) -> Filter | None:
    """Return the filter for rows with any of some terms; None if they are too many to send."""
    if not terms:
        return NEVER
    if len(terms) == 1:
        return (CONTENT, "Contains", token_of(terms[0]))
    return (CONTENT, "ContainsAny", tuple(map(token_of, terms))) if len(terms) <= MOST_EXPANDED else None


def both(needs: Sequence[Filter | None]) -> Filter | None:
    """Return the filter for rows that pass all needs. Needs that are None are left out."""
    filters = list(dict.fromkeys(need for need in needs if need is not None))
    return NEVER if NEVER in filters else all_of(filters)


def either(needs: Sequence[Filter | None]) -> Filter | None:
    """Return the filter for rows that pass any need; None if one of them is None, or there are none."""
    filters = [need for need in needs if need is not None]
    if not filters or len(filters) < len(needs):
        return None
    possible = [need for need in dict.fromkeys(filters) if need != NEVER]
    return any_of(possible) if possible else NEVER


@dataclass(frozen=True, slots=True)
class Sequenced:
    """A match of adjacent terms of one field, or of a single term."""

    field: str
    terms: tuple[str, ...]
    weight: float
    """0 if no row has one of them."""
    mean: float
    """The mean length of the field, in terms."""

    def score(self, row: Terms) -> float | None:
        text = row.of(self.field)
        count = _occurrences(text, f" {' '.join(self.terms)} ") if self.weight else 0
        if not count:
            return None
        return self.weight * count / (count + K1 * (1 - B + B * (text.count(" ") - 1) / self.mean))

    def need(self) -> Filter | None:
        return both([having((term,)) for term in self.terms]) if self.weight else NEVER

    def tokens(self) -> Sequence[str]:
        return self.terms


@dataclass(frozen=True, slots=True)
class AnyWord:
    """A match of any of some exact words, all with the same score."""

    words: frozenset[str]
    worth: float = 1.0

    def score(self, row: Terms) -> float | None:
        return None if self.words.isdisjoint(row.words.split()) else self.worth

    def need(self) -> Filter | None:
        return having(sorted(self.words))

    def tokens(self) -> Sequence[str]:
        return sorted(self.words)[:MOST_EXPANDED]


@dataclass(frozen=True, slots=True)
class Begins:
    """A match of words of which the last is a beginning; all matches have the same score."""

    prefix: str
    words: tuple[str, ...]
    """The words that its last one expands to, or the first of them."""
    worth: float = 1.0

    def score(self, row: Terms) -> float | None:
        return self.worth if f" {self.prefix}" in row.words else None

    def need(self) -> Filter | None:
        return having(self.words)

    def tokens(self) -> Sequence[str]:
        return self.words[:MOST_EXPANDED]


@dataclass(frozen=True, slots=True)
class BegunTitle:
    """A match of a title that a beginning is in. Titles hold stems, so a whole word matches by its stems too."""

    forms: tuple[str, ...]
    weight: float

    def score(self, row: Terms) -> float | None:
        begun, *whole = self.forms
        matches = f" {begun}" in row.title or any(f" {form} " in row.title for form in whole)
        return self.weight * TITLE_WEIGHT if matches else None

    def need(self) -> Filter | None:
        return None

    def tokens(self) -> Sequence[str]:
        return ()


@dataclass(frozen=True, slots=True)
class Best:
    """A match of any of some parts, with the best of their scores."""

    parts: tuple[Match, ...]

    def score(self, row: Terms) -> float | None:
        scores = [score for part in self.parts if (score := part.score(row)) is not None]
        return max(scores) if scores else None

    def need(self) -> Filter | None:
        return either([part.need() for part in self.parts])

    def tokens(self) -> Sequence[str]:
        return tuple(token for part in self.parts for token in part.tokens())


@dataclass(frozen=True, slots=True)
class Every:
    """A match of all the required parts, with the scores of any others; without required parts, of any other.

    A row that matches a refused part does not match.
    """

    required: tuple[Match, ...] = ()
    others: tuple[Match, ...] = ()
    refused: tuple[Match, ...] = ()

    def score(self, row: Terms) -> float | None:
        total = 0.0
        for part in self.required:
            score = part.score(row)
            if score is None:
                return None
            total += score
        more = [score for part in self.others if (score := part.score(row)) is not None]
        if not more and not self.required and self.others:
            return None
        if any(part.score(row) is not None for part in self.refused):
            return None
        return total + sum(more)

    def need(self) -> Filter | None:
        if self.required:
            return both([part.need() for part in self.required])
        return either([part.need() for part in self.others])

    def tokens(self) -> Sequence[str]:
        return tuple(token for part in (*self.required, *self.others) for token in part.tokens())


@dataclass(frozen=True, slots=True)
class WeightedMatch:
    """A match whose score is multiplied by a factor."""

    part: Match
    factor: float

    def score(self, row: Terms) -> float | None:
        score = self.part.score(row)
        return None if score is None else score * self.factor

    def need(self) -> Filter | None:
        return self.part.need()

    def tokens(self) -> Sequence[str]:
        return self.part.tokens()


ANYTHING = Every()
NOTHING = AnyWord(frozenset())


def _occurrences(text: str, terms: str) -> int:
    """Return how often terms occur; two occurrences in a row share the blank between them."""
    count, at = 0, text.find(terms)
    while at >= 0:
        count += 1
        at = text.find(terms, at + 1)
    return count


class LedgerVocabulary:
    """The words of the ledger at one moment, which turns terms, phrases and queries into matches."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.rows = ledger.tally("rows")
        self._counted = self.rows + 1  # the local index also counts the document that holds its position
        self._means = {field: max(ledger.tally(f"length:{field}") / self._counted, 1e-9) for field in FIELDS}
        self._idfs: dict[tuple[str, str], float] = {}

    def idf(self, form: str) -> float:
        """Return the idf of a stem in passages, or in titles where no passage has it, as with words of a key."""
        return self.idf_of("body", form) or self.idf_of("title", form)

    def idf_of(self, field: str, term: str) -> float:
        """Return BM25's inverse document frequency of a term in a field; 0 if no row has it."""
        idf = self._idfs.get((field, term))
        if idf is None:
            count = self.ledger.occurs(field, term)
            idf = math.log(1 + (self._counted - count + 0.5) / (count + 0.5)) if count else 0.0
            self._idfs[field, term] = idf
        return idf

    def adjacent(self, terms: Sequence[str], field: str = "words") -> Match:
        """Return the match of adjacent terms of a field."""
        each = [self.idf_of(field, term) for term in terms]
        return Sequenced(field, tuple(terms), sum(each) * (1 + K1) if all(each) else 0.0, self._means[field])

    def phrase(self, phrase: Phrase) -> Match:
        """Return the match of a phrase, in any of its alternatives."""
        return Best(tuple(map(self._sequence, phrase)))

    def _sequence(self, terms: Sequence[str]) -> Match:
        if not ends_in_beginning(terms):
            return self.adjacent(terms)
        return Begins(" ".join(terms), tuple(self.ledger.beginning(terms[-1], MOST_EXPANDED + 1)))

    def beginning(self, prefix: str, worth: float = 1.0) -> Match:
        """Return the match of words that begin with `prefix`, all with the score `worth`."""
        return Begins(prefix, tuple(self.ledger.beginning(prefix, MOST_EXPANDED + 1)), worth)

    def term(self, term: Term, *, by_name: bool = True, titled: bool = True) -> Match:
        """Return the match of a query's term. A body repeats its title, so a title alone has only words of the key."""
        form = term.forms[0]
        if term.match == "prefix":
            return self.beginning(form, term.weight)
        if term.match != "word":
            return AnyWord(self._near(form, 1 if term.match == "typo" else 2), term.weight)
        body, title = (Best(tuple(self.adjacent((each,), field) for each in term.forms)) for field in ("body", "title"))
        in_body, in_title = WeightedMatch(body, term.weight), WeightedMatch(title, term.weight * TITLE_WEIGHT)
        if not titled:
            return in_body
        return Every(others=(in_body, in_title)) if by_name else Every((in_body,), (in_title,))

    def _near(self, word: str, distance: int) -> frozenset[str]:
        """Return the words within an edit distance of one; two neighbors exchanged count as one edit."""
        words = self.ledger.words(len(word) - distance, len(word) + distance)
        return frozenset(each for each in words if OSA.distance(word, each, score_cutoff=distance) <= distance)

    def query(self, query: LexicalQuery) -> Match:
        """Return the match of a query, whose terms are alternatives, phrases required, exclusions refused."""
        terms = tuple(self.term(term, by_name=query.by_name, titled=term.titled) for term in query.terms)
        phrases = tuple(map(self.phrase, query.phrases))
        return Every(phrases, terms, tuple(map(self.phrase, query.excluded)))
