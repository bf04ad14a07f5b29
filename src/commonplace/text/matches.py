"""Where a query's terms stand in a text, for snippets and highlights."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice

import regex

from commonplace.text.analyze import token_exact, token_stems
from commonplace.text.snippet import Match
from commonplace.text.terms import Term

_UNSPACED = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]")
_TOKEN = re.compile(r"\S+")
_CORE = regex.compile(r"[\w\p{M}](?:.*[\w\p{M}])?", regex.DOTALL)


def find_matches(text: str, terms: Sequence[Term], languages: Sequence[str]) -> list[Match]:
    """Every place a term matches, in order. Words are compared as the index compares them, not letter by letter."""
    which = {form: number for number, term in enumerate(terms) if term.match == "word" for form in term.forms}
    begins = {term.forms[0]: number for number, term in enumerate(terms) if term.match == "prefix"}
    tokens = text.split()
    matched: dict[int, int] = {}
    if begins:
        matched.update(_beginnings(tokens, begins))
    for language in languages:
        matched.update(_same(token_stems(tokens, language), which))
    places = _places(text, matched) if matched else []
    return sorted(places + _runs(text, which | begins))


def _same(analysed: Sequence[str], which: dict[str, int]) -> list[tuple[int, int]]:
    """Which tokens are which terms. Most tokens are one term, so a look-up decides; compounds are taken apart."""
    found = [(place, which[terms]) for place, terms in enumerate(analysed) if terms in which]
    compounds = [(place, terms) for place, terms in enumerate(analysed) if " " in terms]
    found += [(place, which[term]) for place, terms in compounds for term in terms.split() if term in which]
    return found


def _beginnings(tokens: Sequence[str], begins: dict[str, int]) -> Iterator[tuple[int, int]]:
    prefixes = tuple(begins)
    for place, terms in enumerate(token_exact(tokens)):
        for term in terms.split():
            if term.startswith(prefixes):
                yield place, next(number for prefix, number in begins.items() if term.startswith(prefix))
                break


def _places(text: str, matched: dict[int, int]) -> list[Match]:
    places = []
    for place, token in enumerate(islice(_TOKEN.finditer(text), max(matched) + 1)):
        if place in matched and not _UNSPACED.search(token[0]):
            core = _CORE.search(token[0])
            start, end = core.span() if core else (0, len(token[0]))
            places.append((token.start() + start, token.start() + end, matched[place]))
    return places


def _runs(text: str, forms: dict[str, int]) -> list[Match]:
    """Pairs of unspaced scripts, which stand inside longer tokens."""
    pairs = {form: number for form, number in forms.items() if not form.isascii() and _UNSPACED.match(form)}
    if not pairs:
        return []
    either = "|".join(sorted(map(re.escape, pairs), key=len, reverse=True))
    # A look-ahead, because overlapping pairs both count.
    return [
        (found.start(), found.start() + len(found[1]), pairs[found[1]])
        for found in re.finditer(rf"(?=({either}))", text)
    ]
