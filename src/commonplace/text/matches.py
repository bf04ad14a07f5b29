"""Where a query's terms stand in a text, for snippets and highlights."""

from __future__ import annotations

import re
from collections.abc import Sequence

import regex

from commonplace.text.analyze import exact, stems
from commonplace.text.terms import Term

Match = tuple[int, int, int]
"""(start, end, which term)"""

_UNSPACED = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]")
_EDGE = regex.compile(r"^[^\w\p{M}]+|[^\w\p{M}]+$")


def find_matches(text: str, terms: Sequence[Term], languages: Sequence[str]) -> list[Match]:
    """Every place a term matches, in order. Words are compared as the index compares them, not letter by letter."""
    which = {form: number for number, term in enumerate(terms) for form in term.forms if term.match == "word"}
    begins = {term.forms[0]: number for number, term in enumerate(terms) if term.match == "prefix"}
    if not which and not begins:
        return []
    matched: dict[str, int] = {}
    for token in set(text.split()):
        number = _match(token, which, begins, languages)
        if number is not None:
            matched[token] = number
    places = _words(text, matched) + _runs(text, which | begins)
    return sorted(places)


def _match(token: str, which: dict[str, int], begins: dict[str, int], languages: Sequence[str]) -> int | None:
    if _UNSPACED.search(token):
        return None
    for language in languages:
        for form in stems(token, language).split():
            if form in which:
                return which[form]
    if begins:
        for form in exact(token).split():
            for prefix, number in begins.items():
                if form.startswith(prefix):
                    return number
    return None


def _words(text: str, matched: dict[str, int]) -> list[Match]:
    if not matched:
        return []
    # Few distinct tokens match, so one alternation of them finds every place without a step per word in Python.
    either = "|".join(sorted(map(re.escape, matched), key=len, reverse=True))
    places = []
    for found in re.finditer(rf"(?<!\S)(?:{either})(?!\S)", text):
        edges = [edge.span() for edge in _EDGE.finditer(found[0])]
        start, end = found.span()
        for edge_start, edge_end in edges:
            if edge_start == 0:
                start += edge_end
            else:
                end -= edge_end - edge_start
        places.append((start, max(start, end), matched[found[0]]))
    return places


def _runs(text: str, forms: dict[str, int]) -> list[Match]:
    """Pairs of unspaced scripts, which stand inside longer tokens."""
    pairs = {form: number for form, number in forms.items() if _UNSPACED.match(form)}
    if not pairs:
        return []
    either = "|".join(sorted(map(re.escape, pairs), key=len, reverse=True))
    # A look-ahead, because overlapping pairs both count.
    return [
        (found.start(), found.start() + len(found[1]), pairs[found[1]])
        for found in re.finditer(rf"(?=({either}))", text)
    ]
