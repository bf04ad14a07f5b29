"""A query's words as weighted terms, ready for an index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Literal

import regex

from commonplace.lazy_dataclass import dataclass
from commonplace.text.analyze import UNSPACED, exact, stems, token_forms
from commonplace.text.languages import stop_words

FUNCTION_WORD_WEIGHT = 0.3
"""The weight of a function word beside a content word: not 0, for it orders what the content words leave equal."""

MOST_TERMS = 256

_FEW_FOLLOW = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}]")
"""Scripts with so few characters to follow one that an index can look at every pair that begins with it."""
_HIRAGANA = regex.compile(r"\p{Hiragana}+")
_CHINESE_PARTICLES = frozenset("的是了吗呢么什哪谁在和与及")
_KOREAN_PARTICLES = frozenset("은는이가을를의에도로와과만서")
_HANGUL = regex.compile(r"\p{Hangul}")


Match = Literal["word", "prefix", "typo", "typos"]
"""A whole word, the beginning of one, or a word one or two slips away."""


@dataclass(frozen=True, slots=True)
class Term:
    """A term to look for. Its forms are alternatives: the stems that the library's languages give the word."""

    forms: tuple[str, ...]
    weight: float
    match: Match = "word"
    written: str = ""
    """The word itself, unstemmed: what a slip is measured on."""
    titled: bool = True
    """True: it is looked for in titles, too. A function word tells nothing there (docs/benchmarks.md)."""
    function: bool = False
    """True for a function word, also where it weighs 1 because there is nothing else."""


def query_terms(words: str, languages: Sequence[str]) -> tuple[Term, ...]:
    """Return every distinct term of some words once, in order.

    Function words weigh little unless there is nothing else.
    """
    term_by_forms: dict[tuple[str, ...], Term] = {}
    for word in words.split():
        forms_by_language = [token_forms(word, language) for language in languages]
        written = forms_by_language[0][0].split()
        alone = not word.isascii() and all(map(_is_single, written))
        alternatives = zip(*(stems.split() for _, stems in forms_by_language), strict=True)
        for position, forms in enumerate(alternatives):
            left = len(written) - 1 - position
            term = _term(tuple(dict.fromkeys(forms)), languages, written[position], alone=alone, left=left)
            if term is not None and (term.forms not in term_by_forms or term_by_forms[term.forms].weight < term.weight):
                term_by_forms[term.forms] = term
    terms = tuple(term_by_forms.values())
    if terms and all(term.weight < 1 for term in terms):
        return tuple(replace(term, weight=1.0, titled=True) for term in terms)
    return terms


def _term(forms: tuple[str, ...], languages: Sequence[str], written: str, *, alone: bool, left: int) -> Term | None:
    """Return a term of a word, or None for one that only the index needs.

    `alone`: the word has nothing but single characters of unspaced scripts. `left` is how many of its terms follow.
    """
    form = forms[0]
    if UNSPACED.match(form):
        if not _is_pair(form):
            # Every run ends in its last character alone, so that one character can be found as the beginning of a term.
            return Term(forms, 1.0, "prefix", written) if alone else None
        tells = not _grammatical(form, at_end=left <= 1)
    else:
        tells = all(_function_stems(language).isdisjoint(forms) for language in languages)
    return Term(forms, 1.0 if tells else FUNCTION_WORD_WEIGHT, written=written, titled=tells, function=not tells)


def _is_pair(form: str) -> bool:
    return len(regex.findall(r"\X", form)) > 1


def _is_single(form: str) -> bool:
    """Return whether a term is one character of an unspaced script."""
    return UNSPACED.match(form) is not None and not _is_pair(form)


def _grammatical(pair: str, *, at_end: bool) -> bool:
    """Return whether a pair is likely grammar: kana endings, Chinese particles, a Korean word's last particle."""
    if _HANGUL.match(pair):
        return at_end and pair[-1] in _KOREAN_PARTICLES
    return bool(_HIRAGANA.fullmatch(pair)) or not _CHINESE_PARTICLES.isdisjoint(pair)


@cache
def _function_stems(language: str) -> frozenset[str]:
    return frozenset(stems(word, language) for word in stop_words(language))


def beginning(prefix: str) -> str | None:
    """Return the beginning of indexed words that a prefix asks for, or None in a script that has no spaces.

    There any run of characters is found.
    """
    terms = exact(prefix).split()
    return None if not terms or UNSPACED.match(terms[-1]) else terms[-1]


def ends_in_beginning(phrase: Sequence[str]) -> bool:
    """Return whether a phrase ends in one character of an unspaced script: any term that begins so may stand there."""
    return _is_single(phrase[-1]) and (len(phrase) == 1 or _FEW_FOLLOW.match(phrase[-1]) is not None)
