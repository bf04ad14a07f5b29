"""Where a query's terms stand in a text, for snippets and highlights."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import regex

from commonplace.text.analyze import UNSPACED, token_forms
from commonplace.text.snippet import Match, blanked
from commonplace.text.terms import Term

_TOKEN = re.compile(r"\S+")
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f\s]")
_CORE = regex.compile(r"[\w\p{M}](?:.*[\w\p{M}])?", regex.DOTALL)
_PREFIXES_GO = frozenset({"nl", "id", "ga"})  # languages whose stemmers also take something off the beginning
_JOINTS = "-_"
_LONGEST_HINT = 6


class Matcher:
    """The terms of one query, ready to be found in any number of texts, compared as the index compares them."""

    def __init__(self, terms: Sequence[Term], languages: Sequence[str]) -> None:
        self._languages = languages
        self._which = {form: number for number, term in enumerate(terms) if term.match == "word" for form in term.forms}
        self._begins = {term.forms[0]: number for number, term in enumerate(terms) if term.match == "prefix"}
        forms = (*self._which, *self._begins)
        self._pairs = {form: number for form, number in (self._which | self._begins).items() if UNSPACED.match(form)}
        starts = _shortest(_beginning(form, languages) for form in forms if form.isascii())
        self._hints = starts if _PREFIXES_GO.isdisjoint(languages) else None
        self._broken = {start[:end] for start in starts for end in range(1, len(start))}  # of `email` in `e-mail`
        self._ends = {part[-1] for part in self._broken}  # a look at one letter tells nearly always
        self._known: dict[str, Match | None] = {}  # the same tokens come again from hit to hit

    def find(self, text: str) -> list[Match]:
        """Every place a term matches, in order."""
        if not self._which and not self._begins:
            return []
        if self._hints is None or (not text.isascii() and len(text.lower()) != len(text)):
            places = list(self._words((token.start(), token[0]) for token in _TOKEN.finditer(text)))
        else:
            places = list(self._words(self._hinted(text, self._hints)))
        return places if text.isascii() else sorted(places + self._runs(text))

    def _hinted(self, text: str, hints: Sequence[str]) -> list[tuple[int, str]]:
        """The tokens that may match: where a term begins, those of several parts, and those not written in ASCII."""
        flat = blanked(text.lower())
        tokens: dict[int, str] = {}

        def take(at: int) -> int:
            start, end = flat.rfind(" ", 0, at) + 1, flat.find(" ", at)
            end = end if end >= 0 else len(flat)
            tokens[start] = text[start:end]
            return end

        for hint in hints:  # one by one: a pattern of alternatives would look at every character
            at = flat.find(hint)
            while at >= 0:
                # A term begins where a word does, or at a capital inside of one; what is not ASCII comes below.
                begins = at == 0 or not flat[at - 1].isalnum() or text[at].isupper()
                at = flat.find(hint, take(at) if begins else at + 1)
        for joint in _JOINTS:
            at = flat.find(joint)
            while at >= 0:
                breaks = flat[at - 1 : at] in self._ends and self._breaks(flat, at)
                at = flat.find(joint, take(at) if breaks else at + 1)
        if not text.isascii():
            place = _BEYOND_ASCII.search(text)
            while place:
                place = _BEYOND_ASCII.search(text, take(place.start()))
        return sorted(tokens.items())

    def _breaks(self, flat: str, at: int) -> bool:
        """Whether a joint stands inside of what may be the beginning of a term."""
        if not flat[at + 1 : at + 2].isalnum():
            return False
        start = at
        while start > 0 and at - start < _LONGEST_HINT and flat[start - 1].isalnum():
            start -= 1
        return flat[start:at] in self._broken

    def _words(self, tokens: Iterator[tuple[int, str]] | Sequence[tuple[int, str]]) -> Iterator[Match]:
        for start, token in tokens:
            if token not in self._known:
                self._known[token] = self._place(token)
            place = self._known[token]
            if place is not None:
                low, high, number = place
                yield start + low, start + high, number

    def _place(self, token: str) -> Match | None:
        """The part of a token that is the word, and the term it matches."""
        if not token.isascii() and UNSPACED.search(token):
            return None  # a sentence of an unspaced script: what matches in it are pairs
        number = self._term_of(token)
        if number is None:
            return None
        core = _CORE.search(token)
        low, high = core.span() if core else (0, len(token))
        return low, high, number

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


def _shortest(starts: Iterable[str]) -> list[str]:
    """Those that do not begin with another one."""
    kept: list[str] = []
    for start in sorted(starts):
        if not kept or not start.startswith(kept[-1]):
            kept.append(start)
    return kept


def _beginning(form: str, languages: Sequence[str]) -> str:
    """What every word of a stem begins with: all of it but a letter or two, `tri` of `try` and `trying`."""
    if tuple(languages) != ("en",):
        return form[: min(_LONGEST_HINT, max(1, len(form) - 2))]
    if form in ("die", "lie", "tie"):
        return form[0]  # of `dying`
    return form[: min(_LONGEST_HINT, len(form) - (len(form) > 2))]
