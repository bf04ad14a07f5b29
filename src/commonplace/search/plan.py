"""A parsed query as the terms an index looks up, and how much they would weigh if all were found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from math import log
from typing import Protocol

from commonplace.index.words.lexical_query import LexicalQuery
from commonplace.index.words.phrases import Phrase, phrase, phrases
from commonplace.lazy_dataclass import dataclass
from commonplace.search.request import Parsed
from commonplace.text.analyze import exact, stems, token_forms
from commonplace.text.languages import detect, stemmed_as
from commonplace.text.terms import MOST_TERMS, Term, beginning, query_terms

GUESS_WEIGHT = 0.5
"""What a beginning or a near miss counts beside the word itself."""

MOST_GUESSES = 8

TELLING_IDF = 1.6
"""What a word tells that a fifth of all passages has."""

FEWEST_PASSAGES = 50
"""Passages that a library counts as having at least where words are called rare."""

MOST_TOLD = 5
_BEGUN, _SPELLED = ", so words that begin so were looked for", ", so words spelled much like that were looked for"

UNKNOWN_TERM_SHARE = 0.5
"""A term found nowhere weighs this much of a mean one: it was asked for, but says little about what there is."""


class Vocabulary(Protocol):
    """The facts about words that a plan needs of an index."""

    def languages(self) -> tuple[str, ...]: ...
    def rarer(self) -> tuple[str, ...]: ...
    def idf(self, form: str) -> float: ...
    def knows(self, language: str, form: str) -> bool: ...
    def begins(self, prefix: str) -> bool: ...
    def occurs(self, word: str) -> bool: ...
    def passages(self) -> int: ...


@dataclass(frozen=True, slots=True)
class LexicalPlan:
    """The query for the index and its mass: the score of an average passage that holds every term once."""

    query: LexicalQuery
    mass: float
    shares: tuple[float, ...] = ()
    """What each term of the query brings to the mass where it is found; a guess brings half of its word's part."""
    languages: tuple[str, ...] = ()
    """Those that its words were stemmed in."""
    content: tuple[Term, ...] = ()
    """The words that say something and are known, where the query has nothing but words."""
    unknown: tuple[str, ...] = ()
    """The words that say something and are in no text."""
    telling: float = 0.0
    """How much the known ones tell together: 0 for words that one text in five has."""
    alike: bool = False
    """Whether the words are those of a whole text, and what is like it is looked for."""
    guesses: tuple[str, ...] = ()
    """What is said of whole words that no text has."""


def understood(words: str, vocabulary: Vocabulary) -> tuple[tuple[str, ...], tuple[Term, ...]]:
    """Return the languages and the terms of some words. A rarer language is among them if it alone knows a word."""
    languages = vocabulary.languages()
    terms = query_terms(words, languages)
    missing = [term.written for term in terms if term.match == "word" and not any(map(vocabulary.idf, term.forms))]
    asked = missing[:MOST_TERMS]
    more = [one for one in vocabulary.rarer() if any(vocabulary.knows(one, stems(word, one)) for word in asked)]
    return (languages, terms) if not more else ((*languages, *more), query_terms(words, (*languages, *more)))


def required(parsed: Parsed, vocabulary: Vocabulary) -> tuple[Phrase, ...]:
    """Return the phrases of a query, as an index looks for them."""
    return tuple(part for quoted in parsed.phrases for part in phrases(quoted, vocabulary.occurs))


def refused(parsed: Parsed, vocabulary: Vocabulary) -> tuple[Phrase, ...]:
    """Return the phrases that a query leaves out, as an index looks for them."""
    return tuple(filter(None, (phrase(excluded, vocabulary.occurs) for excluded in parsed.excluded)))


def plan_lexical(parsed: Parsed, vocabulary: Vocabulary) -> LexicalPlan:
    """Return a query's plan: known terms as they are; unknown ones as beginnings or with typos, at half weight."""
    known: list[tuple[Term, float]] = []
    unknown: list[Term] = []
    beginnings = {prefix: beginning(prefix) for prefix in parsed.prefixes}
    words = " ".join((parsed.words, *(prefix for prefix, form in beginnings.items() if form is None)))
    languages, terms = understood(words, vocabulary)
    for term in terms:
        idf = max(map(vocabulary.idf, term.forms))
        if idf or term.match == "prefix":
            known.append((term, idf or 1.0))
        else:
            unknown.append(term)
    known = sorted(known, key=lambda pair: -pair[1])[:MOST_TERMS] if len(known) > MOST_TERMS else known
    if not any(term.titled and term.match == "word" for term, _ in known):  # then what is there has to find something
        known = [(replace(term, titled=True), idf) for term, idf in known]
    mean = sum(idf for _, idf in known) / len(known) if known else 1.0
    mass = sum(term.weight * idf for term, idf in known) + UNKNOWN_TERM_SHARE * mean * len(unknown)
    guesses = [guess for term in unknown[:MOST_GUESSES] if (guess := _guess(term, vocabulary))]
    begun = [Term((form,), mean, "prefix") for form in beginnings.values() if form is not None]
    others, foreign = _foreign(known, languages, vocabulary)
    query = LexicalQuery(
        terms=(
            *(term for term, _ in known),
            *foreign,
            *(replace(guess, weight=guess.weight * mean) for guess in guesses),
            *begun,
        ),
        phrases=required(parsed, vocabulary),
        excluded=refused(parsed, vocabulary),
    )
    shares = (
        *(term.weight * idf for term, idf in known),
        *(0.0 for _ in foreign),  # another way to say what counts already
        *(GUESS_WEIGHT * UNKNOWN_TERM_SHARE * mean for _ in guesses),
        *(mean for _ in begun),
    )
    content = [(term, idf) for term, idf in known if not term.function]
    return LexicalPlan(
        query,
        mass + mean * len(begun),
        shares,
        (*languages, *others),
        content=tuple(_in_all_languages(term, foreign) for term, _ in content) if not begun else (),
        unknown=tuple(term.written or term.forms[0] for term in unknown if not term.function),
        telling=telling([idf for _, idf in content], vocabulary.passages()),
        guesses=_guesses(words, unknown, guesses),
    )


def _in_all_languages(term: Term, foreign: Sequence[Term]) -> Term:
    """Return a word with the stems that rarer languages give it."""
    others = [form for other in foreign if other.written == term.written for form in other.forms]
    return replace(term, forms=(*term.forms, *others)) if others else term


def telling(idfs: Sequence[float], passages: int) -> float:
    """Return the sum of what each word tells more than one that a fifth of all passages has.

    In a library of a few passages a word counts as rare, too, that one of them has.
    """
    grown = log((max(passages, FEWEST_PASSAGES) + 1) / (passages + 1))
    return sum(max(0.0, idf + grown - TELLING_IDF) for idf in idfs)


def _guesses(words: str, unknown: Sequence[Term], guesses: Sequence[Term]) -> tuple[str, ...]:
    """Return a sentence on whole words that no text has. A part of a name that is unknown says nothing by itself."""
    whole = {exact(word) for word in words.split()} if unknown else ()
    how = {guess.forms[0]: guess.match for guess in guesses}
    said: dict[str, list[str]] = {}
    for term in unknown:
        if not term.function and term.written in whole:
            match = next((how[form] for form in (term.written, *term.forms) if form in how), "")
            done = _BEGUN if match == "prefix" else _SPELLED if match else ""
            said.setdefault(done, []).append(f'"{term.written}"')
    return tuple(f"No text has {_listed(names)}{done}." for done, names in said.items())


def _listed(names: Sequence[str]) -> str:
    """Return a few names as a sentence lists them."""
    shown = [*names[:MOST_TOLD], *([f"{len(names) - MOST_TOLD} more"] if len(names) > MOST_TOLD else [])]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} or {shown[-1]}"


def _foreign(
    known: Sequence[tuple[Term, float]], languages: Sequence[str], vocabulary: Vocabulary
) -> tuple[list[str], list[Term]]:
    """Return the rarer languages that stem known words their own way, and those stems.

    `Paris` is `pari` in English, `paris` in French.

    Only stems that no common language has, for those would be of other words; they count as much as the word does.
    """
    found: dict[str, Term] = {}
    stemming: dict[str, None] = {}
    others = [language for language in vocabulary.rarer() if language not in languages]
    for term, idf in known if others else ():
        if term.match != "word" or term.weight < 1:
            continue
        for language in others:
            form = token_forms(term.written, language)[1]
            if form in term.forms or not vocabulary.knows(language, form):
                continue
            if not any(vocabulary.knows(common, form) for common in languages):
                weight = term.weight * min(1.0, idf / vocabulary.idf(form))
                found[form] = Term((form,), weight, written=term.written)  # once, however many languages have it
                stemming[language] = None
    return list(stemming), list(found.values())


def _guess(term: Term, vocabulary: Vocabulary) -> Term | None:
    """Return the term that an unknown one may stand for, a longer word or one mistyped; None if there is none."""
    word, weight = term.written or term.forms[0], term.weight * GUESS_WEIGHT
    for form in dict.fromkeys((word, term.forms[0])):
        if len(form) >= 3 and vocabulary.begins(form):
            return Term((form,), weight, "prefix")
    if len(word) >= 4:
        return Term((word,), weight, "typos" if len(word) >= 8 else "typo")
    return None


def plan_telling(text: str, vocabulary: Vocabulary, most: int = 25) -> LexicalPlan:
    """Return a plan of what sets a text apart: the stems with the highest term frequency × idf, as they are indexed."""
    language = stemmed_as(detect(text), vocabulary.languages()[0])
    counts = Counter(stems(text, language).split())
    worth = {form: count * vocabulary.idf(form) for form, count in counts.items()}
    telling = sorted((form for form in worth if worth[form]), key=lambda form: -worth[form])[:most]
    query, mass = LexicalQuery(tuple(Term((form,), 1.0) for form in telling)), sum(map(vocabulary.idf, telling))
    languages = tuple(dict.fromkeys((language, *vocabulary.languages())))
    return LexicalPlan(query, mass, languages=languages, telling=mass, alike=True)
