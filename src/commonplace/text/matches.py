"""Where a query's terms stand in a text, for snippets and highlights."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import regex

from commonplace.text.analyze import UNSPACED, token_forms
from commonplace.text.snippet import Match
from commonplace.text.terms import Term

_TOKEN = re.compile(r"\S+")
_CORE = regex.compile(r"[\w\p{M}](?:.*[\w\p{M}])?", regex.DOTALL)
_PREFIXES_GO = frozenset({"nl", "id", "ga"})  # languages whose stemmers also take something off the beginning


class Matcher:
    """The terms of one query, ready to be found in any number of texts, compared as the index compares them."""

    def __init__(self, terms: Sequence[Term], languages: Sequence[str]) -> None:
        self._languages = languages
        self._which = {form: number for number, term in enumerate(terms) if term.match == "word" for form in term.forms}
        self._begins = {term.forms[0]: number for number, term in enumerate(terms) if term.match == "prefix"}
        forms = (*self._which, *self._begins)
        self._pairs = {form: number for form, number in (self._which | self._begins).items() if UNSPACED.match(form)}
        # A stem begins as its word does; only a few short ones (`die` of `dying`) keep no more than the first letter.
        starts = {re.escape(form[: min(3, max(1, len(form) - 2))]) for form in forms if form.isascii()}
        hinted = starts and _PREFIXES_GO.isdisjoint(languages)
        self._hint = re.compile("|".join(sorted(starts))) if hinted else None

    def find(self, text: str) -> list[Match]:
        """Every place a term matches, in order."""
        if not self._which and not self._begins:
            return []
        if text.isascii() and self._hint is not None:
            return list(self._hinted(text, self._hint))
        places = list(self._words((token.start(), token[0]) for token in _TOKEN.finditer(text)))
        return sorted(places + self._runs(text))

    def _hinted(self, text: str, hints: re.Pattern[str]) -> Iterator[Match]:
        """Plain text is searched for how the terms begin, and only the tokens around such places are analysed."""
        flat = text.lower().replace("\n", " ").replace("\t", " ")
        done = 0
        for hint in hints.finditer(flat):
            if hint.start() < done:
                continue
            start = flat.rfind(" ", 0, hint.start()) + 1
            done = flat.find(" ", hint.end())
            done = done if done >= 0 else len(flat)
            yield from self._words([(start, text[start:done])])

    def _words(self, tokens: Iterator[tuple[int, str]] | Sequence[tuple[int, str]]) -> Iterator[Match]:
        for start, token in tokens:
            if not token.isascii() and UNSPACED.search(token):
                continue  # a sentence of an unspaced script: what matches in it are pairs
            number = self._term_of(token)
            if number is not None:
                core = _CORE.search(token)
                low, high = core.span() if core else (0, len(token))
                yield start + low, start + high, number

    def _term_of(self, token: str) -> int | None:
        for language in self._languages:
            exact, stems = token_forms(token, language)
            if stems in self._which:
                return self._which[stems]
            if " " in stems:
                for stem in stems.split():
                    if stem in self._which:
                        return self._which[stem]
        if self._begins:
            for form in exact.split():
                for prefix, number in self._begins.items():
                    if form.startswith(prefix):
                        return number
        return None

    def _runs(self, text: str) -> list[Match]:
        """Pairs of unspaced scripts, which stand inside longer tokens."""
        if not self._pairs or text.isascii():
            return []
        either = "|".join(sorted(map(re.escape, self._pairs), key=len, reverse=True))
        # A look-ahead, because overlapping pairs both count.
        found = re.finditer(rf"(?=({either}))", text)
        return [(place.start(), place.start() + len(place[1]), self._pairs[place[1]]) for place in found]
