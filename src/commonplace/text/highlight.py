"""Places in a text where the words of a query stand, and the few stretches of it that show them, marked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import regex

from commonplace.text.analyze import fold, parts_of, pieces, token_forms
from commonplace.text.matches import places_as_kept
from commonplace.text.snippet import Match, window

GAP = " … "
_TOKEN = re.compile(r"\S+")
_SIGN = r"[\p{Extended_Pictographic}\p{Regional_Indicator}]"
_MORE = rf"(?: .* [\w\p{{M}}+\#] (?! (?<=\u200d) {_SIGN} ) )?"  # a joiner belongs to the sign that follows
_CORE = regex.compile(rf"[\w\p{{M}}] {_MORE} | (?={_SIGN}) \X {_MORE}", regex.DOTALL | regex.VERBOSE)
_MOST_FRAGMENTS = 3
_LEAST_ROOM = 40  # characters of a fragment


@dataclass(frozen=True, slots=True)
class Sought:
    """The words, beginnings and phrases to find. Every member of each is a thing of its own."""

    words: Sequence[str] = ()
    beginnings: Sequence[str] = ()
    phrases: Sequence[str] = ()


@dataclass(slots=True)
class _Forms:
    """The same in the forms in which an index compares them."""

    stems: dict[str, int] = field(default_factory=dict)
    exact: dict[str, int] = field(default_factory=dict)
    begins: dict[str, int] = field(default_factory=dict)
    sequences: list[tuple[tuple[str, ...], int]] = field(default_factory=list)
    runs: dict[str, int] = field(default_factory=dict)


class Highlighter:
    """A finder of one query's words in any number of texts."""

    def __init__(self, sought: Sought, languages: Sequence[str]) -> None:
        self._languages = languages
        self._forms = _Forms()
        number = 0
        for word in sought.words:
            self._add_word(word, number := number + 1)
        for word in sought.beginnings:
            self._add_beginning(word, number := number + 1)
        for phrase in sought.phrases:
            self._add_sequence(phrase, number := number + 1)

    def find(self, text: str) -> list[Match]:
        """Return every place of a word, beginning or phrase, in order.

        Of places that overlap it is the first and longest.
        """
        tokens = [(token.start(), token[0]) for token in _TOKEN.finditer(text)]
        places = [*self._single(tokens), *self._adjacent(tokens), *self._inside(text)]
        matches: list[Match] = []
        for place in sorted(places, key=lambda place: (place[0], -place[1])):
            if not matches or place[0] >= matches[-1][1]:
                matches.append(place)
        return matches

    def _add_word(self, word: str, number: int) -> None:
        for token in word.split():
            for kind, piece in pieces(token):
                if kind == "run":
                    self._forms.runs.setdefault(fold(piece), number)
                    continue
                terms = token_forms(piece, self._languages[0])[0].split()
                for language in self._languages:
                    stems = token_forms(piece, language)[1].split()
                    self._forms.stems.update((stem, number) for stem in (stems[:1] if len(stems) < 3 else stems[-1:]))
                self._forms.exact.update((term, number) for term in (terms if len(terms) < 3 else terms[-1:]))
                if parts := parts_of(terms):
                    self._forms.sequences.append((tuple(parts), number))

    def _add_beginning(self, word: str, number: int) -> None:
        for kind, piece in pieces(word):
            if kind == "run":
                self._forms.runs.setdefault(fold(piece), number)
            elif terms := token_forms(piece, self._languages[0])[0].split():
                self._forms.begins.setdefault(terms[-1], number)
                if parts := parts_of(terms):
                    self._forms.sequences.append((tuple(parts[:-1]), number))

    def _add_sequence(self, phrase: str, number: int) -> None:
        self._forms.runs.update(
            (fold(piece), number) for token in phrase.split() for kind, piece in pieces(token) if kind == "run"
        )
        parts = tuple(part for part, _ in _parts(_tokens_of(phrase)))
        if parts:
            self._forms.sequences.append((parts, number))

    def _single(self, tokens: Iterable[tuple[int, str]]) -> Iterator[Match]:
        for start, token in tokens:
            number = self._number_of(token)
            if number is not None:
                yield (*_core(start, token), number)

    def _number_of(self, token: str) -> int | None:
        forms = self._forms
        for language in self._languages:
            exact, stems = token_forms(token, language)
            for stem in stems.split():
                if stem in forms.stems:
                    return forms.stems[stem]
        for term in exact.split():
            if term in forms.exact:
                return forms.exact[term]
            for beginning, number in forms.begins.items():
                if term.startswith(beginning):
                    return number
        return None

    def _adjacent(self, tokens: Sequence[tuple[int, str]]) -> Iterator[Match]:
        """Yield the parts of words that follow each other, whichever of them were written as one."""
        if not self._forms.sequences:
            return
        parts = list(_parts(tokens))
        words = [part for part, _ in parts]
        for sequence, number in self._forms.sequences:
            for place in range(len(words) - len(sequence) + 1):
                if words[place] == sequence[0] and tuple(words[place : place + len(sequence)]) == sequence:
                    last = parts[place + len(sequence) - 1][1]
                    yield parts[place][1][0], last[1], number

    def _inside(self, text: str) -> Iterator[Match]:
        """Yield the runs of unspaced scripts, which stand inside longer tokens."""
        if text.isascii():
            return
        for run, number in self._forms.runs.items():
            for start, end, _ in places_as_kept(re.compile(f"({re.escape(run)})"), text):
                yield start, end, number


def _tokens_of(text: str) -> list[tuple[int, str]]:
    return [(token.start(), token[0]) for token in _TOKEN.finditer(text)]


def _parts(tokens: Sequence[tuple[int, str]]) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield every part of every word, with where its word stands. Runs of unspaced scripts are left to `_inside`."""
    for start, token in tokens:
        for kind, piece in pieces(token):
            if kind == "run":
                continue
            terms = token_forms(piece, "")[0].split()
            for part in parts_of(terms) or terms[:1]:
                yield part, _core(start, token)


def _core(start: int, token: str) -> tuple[int, int]:
    """Return where a token stands without the punctuation around it."""
    core = _CORE.search(token)
    low, high = core.span() if core else (0, len(token))
    return start + low, start + high


def marked(text: str, places: Sequence[Match], length: int = 300) -> str:
    """Return at most `length` characters of the text around its best places, each place in `<mark>`, else verbatim.

    What does not fit into one stretch is shown in several, joined by ` … `. Without a place, the first word is marked.
    """
    if not places:
        first = _TOKEN.search(text)
        places = [(*_core(first.start(), first[0]), 0)] if first else []
    places = [(start, min(end, start + length - 2), term) for start, end, term in places]
    stretches = _stretches(text, places, length)
    return GAP.join(_framed(text, places, *stretch) for stretch in stretches)


def _stretches(text: str, places: Sequence[Match], length: int) -> list[tuple[int, int]]:
    """Return the densest stretch alone where everything is in it, otherwise shorter ones that together hold more."""
    terms = {term for _, _, term in places}
    whole = window(text, places, length)
    count = min(_MOST_FRAGMENTS, len(terms))
    room = (length - len(GAP) * (count - 1)) // max(count, 1)
    if _shown(places, [whole]) == terms or room < _LEAST_ROOM:
        return [whole]
    stretches: list[tuple[int, int]] = []
    places = missing = [(start, min(end, start + room - 2), term) for start, end, term in places]
    while missing and len(stretches) < count:
        stretches.append(window(text, missing, room))
        terms_shown = _shown(places, stretches)
        missing = [place for place in places if place[2] not in terms_shown]
    return _apart(sorted(stretches))


def _shown(places: Sequence[Match], stretches: Sequence[tuple[int, int]]) -> set[int]:
    return {term for start, end, term in places for low, high in stretches if low <= start and end <= high}


def _apart(stretches: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the stretches without overlaps: what two of them share is shown once."""
    apart: list[tuple[int, int]] = []
    for low, high in stretches:
        if apart and low <= apart[-1][1]:
            apart[-1] = (apart[-1][0], max(high, apart[-1][1]))
        else:
            apart.append((low, high))
    return apart


def _framed(text: str, places: Sequence[Match], low: int, high: int) -> str:
    marks = [(start, end) for start, end, _ in places if low <= start and end <= high]
    if not marks:  # one that is longer than the stretch, which then shows its beginning
        marks = [(start, high) for start, _, _ in places if low <= start < high][:1]
    out, end_of_last = [], low
    for start, end in marks:
        if start >= end_of_last:
            out += [text[end_of_last:start], "<mark>", text[start:end], "</mark>"]
            end_of_last = end
    return ("".join(out) + text[end_of_last:high]).strip()
