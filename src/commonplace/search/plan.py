"""A parsed query as the terms an index looks up, and how much they would weigh if all were found."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Protocol

from commonplace.index.lexical_query import LexicalQuery
from commonplace.search.parse import Parsed
from commonplace.text.analyze import fold, stems
from commonplace.text.terms import MOST_TERMS, Term, phrase_terms, query_terms

GUESS_WEIGHT = 0.5
"""What a beginning or a near miss counts beside the word itself."""

MOST_GUESSES = 8

UNKNOWN_TERM_SHARE = 0.5
"""A term found nowhere weighs this much of a mean one: it was asked for, but says little about what there is."""


class Vocabulary(Protocol):
    """What the plan asks an index."""

    def languages(self) -> tuple[str, ...]: ...
    def idf(self, form: str) -> float: ...
    def begins(self, prefix: str) -> bool: ...


@dataclass(frozen=True, slots=True)
class LexicalPlan:
    """The query for the index and its mass: the score of an average passage that holds every term once."""

    query: LexicalQuery
    mass: float
    unknown: tuple[str, ...] = ()
    """Terms no chunk has, as they were looked for."""


def plan_lexical(parsed: Parsed, vocabulary: Vocabulary) -> LexicalPlan:
    """Known terms as they are; unknown ones as beginnings or with typos forgiven, at half weight."""
    known: list[tuple[Term, float]] = []
    unknown: list[Term] = []
    for term in query_terms(parsed.words, vocabulary.languages()):
        idf = max(map(vocabulary.idf, term.forms))
        if idf or term.match == "prefix":
            known.append((term, idf or 1.0))
        else:
            unknown.append(term)
    known = sorted(known, key=lambda pair: -pair[1])[:MOST_TERMS] if len(known) > MOST_TERMS else known
    mean = sum(idf for _, idf in known) / len(known) if known else 1.0
    mass = sum(term.weight * idf for term, idf in known) + UNKNOWN_TERM_SHARE * mean * len(unknown)
    guesses = [guess for term in unknown[:MOST_GUESSES] if (guess := _guess(term, vocabulary))]
    begun = [Term((fold(prefix),), mean, "prefix") for prefix in parsed.prefixes]
    query = LexicalQuery(
        terms=(
            *(term for term, _ in known),
            *(replace(guess, weight=guess.weight * mean) for guess in guesses),
            *begun,
        ),
        phrases=tuple(filter(None, map(phrase_terms, parsed.phrases))),
        excluded=tuple(filter(None, map(phrase_terms, parsed.excluded))),
    )
    return LexicalPlan(query, mass + mean * len(begun), tuple(term.forms[0] for term in unknown))


def _guess(term: Term, vocabulary: Vocabulary) -> Term | None:
    """What an unknown term may have meant: a longer word, or one mistyped."""
    form, weight = term.forms[0], term.weight * GUESS_WEIGHT
    if len(form) >= 3 and vocabulary.begins(form):
        return Term((form,), weight, "prefix")
    if len(form) >= 4:
        return Term((form,), weight, "typos" if len(form) >= 8 else "typo")
    return None


def telling_words(text: str, vocabulary: Vocabulary, most: int = 25) -> str:
    """The words that set a text apart: those with the highest term frequency × idf."""
    language = vocabulary.languages()[0]
    counts = Counter(stems(text, language).split())
    ranked = sorted(counts.items(), key=lambda pair: -pair[1] * vocabulary.idf(pair[0]))
    return " ".join(word for word, _ in ranked[:most])
