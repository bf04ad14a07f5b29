"""Where a query's terms stand in a text, for snippets and highlights."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import regex

from commonplace.text.analyze import UNSPACED, token_forms
from commonplace.text.snippet import Match, blanked
from commonplace.text.terms import Term

_TOKEN = re.compile(r"\S+")
_CORE = regex.compile(r"[\w\p{M}](?:.*[\w\p{M}])?", regex.DOTALL)
_PREFIXES_GO = frozenset({"nl", "id", "ga"})  # languages whose stemmers also take something off the beginning
_FLAT = {"_": "-"} | {sign: " " for sign in map(chr, range(128)) if sign.isspace()}
_FLATTENED = bytes(ord(_FLAT.get(chr(code), chr(code).lower())) for code in range(128)) + bytes(128)
"""ASCII in lower case, with one kind of white space and one of joints."""

_LONGEST_HINT = 6


class Matcher:
    """The terms of one query, ready to be found in any number of texts, compared as the index compares them."""

    def __init__(self, terms: Sequence[Term], languages: Sequence[str]) -> None:
        self._languages = languages
        self._which = {form: number for number, term in enumerate(terms) if term.match == "word" for form in term.forms}
        self._begins = {term.forms[0]: number for number, term in enumerate(terms) if term.match == "prefix"}
        forms = self._which | self._begins
        self._pairs = {form: number for form, number in forms.items() if not form.isascii() and UNSPACED.match(form)}
        starts = _shortest(_beginning(form, languages) for form in forms if form.isascii())
        self._hints = starts if _PREFIXES_GO.isdisjoint(languages) else None
        self._within = {start[at : at + 2] for start in starts for at in range(len(start) - 1)}
        self._known: dict[str, Match | None] = {}  # the same tokens come again from hit to hit

    def find(self, text: str) -> list[Match]:
        """Every place a term matches, in order."""
        if not self._which and not self._begins:
            return []
        if self._hints is None:
            tokens = [(token.start(), token[0]) for token in _TOKEN.finditer(text)]
        else:
            tokens = self._hinted(text, self._hints)
        known, places = self._known, list[Match]()
        for start, token in tokens:
            if token not in known:
                known[token] = self._place(token)
            place = known[token]
            if place is not None:
                places.append((start + place[0], start + place[1], place[2]))
        return places if text.isascii() else sorted(places + self._runs(text))

    def _hinted(self, text: str, hints: Sequence[str]) -> list[tuple[int, str]]:
        """The tokens that may match, in order: where a term begins or is in parts, and those not written in ASCII."""
        spaced = text if text.isascii() else blanked(text)
        # The space at the end ends every token, and is what stands before the first character, at -1.
        flat = spaced.encode("ascii", "replace").translate(_FLATTENED).decode("ascii") + " "
        likely = self._likely(text, flat, hints)
        if not text.isascii():
            likely += _beyond_ascii(text, flat)
        tokens, end = list[tuple[int, str]](), 0
        for at in sorted(likely):
            if at >= end:
                start, end = flat.rfind(" ", end, at) + 1, flat.find(" ", at)
                tokens.append((start, text[start:end]))
        return tokens

    def _likely(self, text: str, flat: str, hints: Sequence[str]) -> list[int]:
        likely, within = list[int](), self._within
        for hint in hints:  # one by one: a pattern of alternatives would look at every character
            at = flat.find(hint)
            while at >= 0:
                # A term begins where a word does, or at a capital inside of one.
                if not flat[at - 1].isalnum() or text[at].isupper():
                    likely.append(at)
                at = flat.find(hint, at + 1)
        at = flat.find("-")
        while at >= 0:
            if flat[at - 1] + flat[at + 1] in within:  # `em` of `email`, in `e-mail`
                likely.append(at)
            at = flat.find("-", at + 2)  # one beside another joins no letters
        return likely

    def _place(self, token: str) -> Match | None:
        """The part of a token that is the word, and the term it matches."""
        if not token.isascii() and UNSPACED.search(token):
            return None  # a sentence of an unspaced script: what matches in it are pairs
        number = self._term_of(token)
        if number is None:
            return None
        core = None if token.isalnum() else _CORE.search(token)
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


def _beyond_ascii(text: str, flat: str) -> Iterator[int]:
    """A place in every token that is not all ASCII, which `flat` has a question mark for."""
    at = flat.find("?")
    while at >= 0:
        if text[at] == "?":
            at += 1
        else:
            yield at
            at = flat.find(" ", at)
        at = flat.find("?", at)


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
