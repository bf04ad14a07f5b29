"""What is looked for, as conditions on rows: which rows could have it, whether one has, and what that is worth.

BM25 as the local index computes it (k1 1.2, b 0.75), with the counts of the whole library:

    ln(1 + (N − n + ½) / (n + ½)) · 2.2 · f / (f + 1.2 · (¼ + ¾ · length / mean length))
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

from rapidfuzz.distance import OSA

from commonplace.index.turbopuffer.ledger import Ledger
from commonplace.index.turbopuffer.parts import Filter, all_of, any_of, token_of
from commonplace.index.turbopuffer.tallies import FIELDS, Terms
from commonplace.index.words.phrases import Phrase
from commonplace.index.words.query import TITLE_WEIGHT, LexicalQuery
from commonplace.lazy_dataclass import dataclass
from commonplace.text.terms import Term, ends_in_beginning

K1, B = 1.2, 0.75
MOST_EXPANDED = 1_000
"""Words a beginning or a slip may stand for where the service is asked; beyond that it is asked for everything."""

CONTENT = "content"


class Match(Protocol):
    """A condition on one row."""

    def score(self, row: Terms) -> float | None:
        """What the row scores; None where it does not match."""
        ...

    def need(self) -> Filter | None:
        """What every row that matches has, as the service is asked for it; None where that cannot be said."""
        ...

    def tokens(self) -> Sequence[str]:
        """The terms to rank candidates by."""
        ...


NEVER: Filter = ("Never",)
"""The need of what no row has. It is not sent."""


def having(terms: Sequence[str]) -> Filter | None:
    """Any of some terms; None where they are too many to ask for."""
    if not terms:
        return NEVER
    if len(terms) == 1:
        return (CONTENT, "Contains", token_of(terms[0]))
    return (CONTENT, "ContainsAny", tuple(map(token_of, terms))) if len(terms) <= MOST_EXPANDED else None


def both(needs: Sequence[Filter | None]) -> Filter | None:
    """All of some needs, as far as they can be said."""
    said = list(dict.fromkeys(need for need in needs if need is not None))
    return NEVER if NEVER in said else all_of(said)


def either(needs: Sequence[Filter | None]) -> Filter | None:
    """Any of some needs; None where one of them cannot be said, or there are none."""
    said = [need for need in needs if need is not None]
    if not said or len(said) < len(needs):
        return None
    possible = [need for need in dict.fromkeys(said) if need != NEVER]
    return any_of(possible) if possible else NEVER


@dataclass(frozen=True, slots=True)
class Sequenced:
    """Terms of one field that stand one after the other; a single one just stands there."""

    field: str
    terms: tuple[str, ...]
    weight: float
    """0 where one of them is nowhere."""
    mean: float

    def score(self, row: Terms) -> float | None:
        text = row.of(self.field)
        found = _occurrences(text, f" {' '.join(self.terms)} ") if self.weight else 0
        if not found:
            return None
        return self.weight * found / (found + K1 * (1 - B + B * (text.count(" ") - 1) / self.mean))

    def need(self) -> Filter | None:
        return both([having((term,)) for term in self.terms]) if self.weight else NEVER

    def tokens(self) -> Sequence[str]:
        return self.terms


@dataclass(frozen=True, slots=True)
class AnyWord:
    """Any of some exact words. All of them are worth the same."""

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
    """Any exact word that begins so, after those that the beginning has before its last one."""

    prefix: str
    words: tuple[str, ...]
    """Those that begin like its last one, or the first of them."""
    worth: float = 1.0

    def score(self, row: Terms) -> float | None:
        return self.worth if f" {self.prefix}" in row.words else None

    def need(self) -> Filter | None:
        return having(self.words)

    def tokens(self) -> Sequence[str]:
        return self.words[:MOST_EXPANDED]


@dataclass(frozen=True, slots=True)
class BegunTitle:
    """A title that a beginning is in. It is kept as stems: where that is a whole word, by the stems of that too."""

    forms: tuple[str, ...]
    weight: float

    def score(self, row: Terms) -> float | None:
        begun, *whole = self.forms
        found = f" {begun}" in row.title or any(f" {form} " in row.title for form in whole)
        return self.weight * TITLE_WEIGHT if found else None

    def need(self) -> Filter | None:
        return None

    def tokens(self) -> Sequence[str]:
        return ()


@dataclass(frozen=True, slots=True)
class Best:
    """Alternatives, of which the best counts."""

    parts: tuple[Match, ...]

    def score(self, row: Terms) -> float | None:
        found = [score for part in self.parts if (score := part.score(row)) is not None]
        return max(found) if found else None

    def need(self) -> Filter | None:
        return either([part.need() for part in self.parts])

    def tokens(self) -> Sequence[str]:
        return tuple(token for part in self.parts for token in part.tokens())


@dataclass(frozen=True, slots=True)
class Every:
    """All of the required, and any of the others: at least one of them where nothing is required."""

    required: tuple[Match, ...] = ()
    others: tuple[Match, ...] = ()
    refused: tuple[Match, ...] = ()

    def score(self, row: Terms) -> float | None:
        total = 0.0
        for part in self.required:
            found = part.score(row)
            if found is None:
                return None
            total += found
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
class Times:
    """The same for more, or for less."""

    part: Match
    factor: float

    def score(self, row: Terms) -> float | None:
        found = self.part.score(row)
        return None if found is None else found * self.factor

    def need(self) -> Filter | None:
        return self.part.need()

    def tokens(self) -> Sequence[str]:
        return self.part.tokens()


ANYTHING = Every()
NOTHING = AnyWord(frozenset())


def _occurrences(text: str, wanted: str) -> int:
    """How often terms stand there; two that follow each other share the blank between them."""
    found, at = 0, text.find(wanted)
    while at >= 0:
        found += 1
        at = text.find(wanted, at + 1)
    return found


class Vocabulary:
    """The words of one moment, and how to look for them."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.rows = ledger.tally("rows")
        self._counted = self.rows + 1  # the local index counts the document that holds its position, too
        self._means = {field: max(ledger.tally(f"length:{field}") / self._counted, 1e-9) for field in FIELDS}
        self._idfs: dict[tuple[str, str], float] = {}

    def idf(self, form: str) -> float:
        """As it is in passages, or in titles where no passage has it: the words of a key are in its title alone."""
        return self.idf_of("body", form) or self.idf_of("title", form)

    def idf_of(self, field: str, term: str) -> float:
        known = self._idfs.get((field, term))
        if known is None:
            found = self.ledger.occurs(field, term)
            known = math.log(1 + (self._counted - found + 0.5) / (found + 0.5)) if found else 0.0
            self._idfs[field, term] = known
        return known

    def adjacent(self, terms: Sequence[str], field: str = "words") -> Match:
        each = [self.idf_of(field, term) for term in terms]
        return Sequenced(field, tuple(terms), sum(each) * (1 + K1) if all(each) else 0.0, self._means[field])

    def phrase(self, phrase: Phrase) -> Match:
        return Best(tuple(map(self._sequence, phrase)))

    def _sequence(self, terms: Sequence[str]) -> Match:
        if not ends_in_beginning(terms):
            return self.adjacent(terms)
        return Begins(" ".join(terms), tuple(self.ledger.beginning(terms[-1], MOST_EXPANDED + 1)))

    def beginning(self, prefix: str, worth: float = 1.0) -> Match:
        return Begins(prefix, tuple(self.ledger.beginning(prefix, MOST_EXPANDED + 1)), worth)

    def term(self, term: Term, *, by_name: bool = True, titled: bool = True) -> Match:
        """A term of a query, with its weight. A passage repeats its title: what that has alone is of the key."""
        form = term.forms[0]
        if term.match == "prefix":
            return self.beginning(form, term.weight)
        if term.match != "word":
            return AnyWord(self._near(form, 1 if term.match == "typo" else 2), term.weight)
        body, title = (Best(tuple(self.adjacent((each,), field) for each in term.forms)) for field in ("body", "title"))
        said, named = Times(body, term.weight), Times(title, term.weight * TITLE_WEIGHT)
        if not titled:
            return said
        return Every(others=(said, named)) if by_name else Every((said,), (named,))

    def _near(self, word: str, distance: int) -> frozenset[str]:
        """The words that few slips make of one; two neighbours exchanged are one slip."""
        words = self.ledger.words(len(word) - distance, len(word) + distance)
        return frozenset(each for each in words if OSA.distance(word, each, score_cutoff=distance) <= distance)

    def query(self, query: LexicalQuery) -> Match:
        """Terms are alternatives, phrases are required, exclusions are refused."""
        terms = tuple(self.term(term, by_name=query.by_name, titled=term.titled) for term in query.terms)
        phrases = tuple(map(self.phrase, query.phrases))
        return Every(phrases, terms, tuple(map(self.phrase, query.excluded)))
