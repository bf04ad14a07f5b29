"""The places of a query's terms in a text, for snippets and highlights."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

import regex

from commonplace.text.analyze import UNSPACED, fold, token_forms
from commonplace.text.languages import UNKNOWN
from commonplace.text.snippet import Match, blanked
from commonplace.text.terms import Term

_TOKEN = re.compile(r"\S+")
_CORE = regex.compile(r"[\w\p{M}](?:.*[\w\p{M}])?", regex.DOTALL)
_PREFIXES_GO = frozenset({"nl", "id", "ga", "sr"})  # languages whose stemmers also change how words begin
_JOINTS = "-_'./:@=&+#~\\"  # of ASCII, that stand between the parts of a word; others are not hinted at
_FLAT = dict.fromkeys(_JOINTS, "-") | {sign: " " for sign in map(chr, range(128)) if sign.isspace()}
_FLATTENED = bytes(ord(_FLAT.get(chr(code), chr(code).lower())) for code in range(128)) + bytes(128)
"""ASCII in lower case, with one kind of white space and one of joints."""

_LONGEST_HINT = 6
_LONGEST_SHOWN = 64  # of a longer token only the part that matches: it may be a line of its own
_PART = regex.compile(r"[^\W_]+")
_UNBRACKETED = regex.compile(r"[^()\[\]{}<>\"`=,;|]+")
"""What stands between the brackets and quotes of code, which no blank sets apart."""
_WORD = re.compile(r"[^\W_]+")
_SPACED = regex.compile(f"[^{UNSPACED.pattern[1:]}+")
_OTHER_LETTERS = re.compile("[\u00aa-\u0dff\uff10-\uff5a]")
"""Of scripts whose words are found inside a sentence of an unspaced one, and that are not hinted at."""
_WITH_BASE = (
    "\u1100-\u11ff\u2e80-\u2fdf\u3038-\u303a\u3099\u309a\u309f\u30ff\u3131-\u318e\u3192-\u319f\u3200-\u33ff"
    "\uf900-\ufaff\uff66-\uffdc\U0001f200-\U0001f251\U0002f800-\U0002fa1d"
)
_ALONE = "\u0e33\u0eb3\u0edc\u0edd"
_OTHER_FORMS = re.compile(f"[{_ALONE}{_WITH_BASE}]")
"""Characters of unspaced scripts that the index keeps as others: half-width kana, letters of Hangul, ำ of Thai."""
_WRITTEN_OTHERWISE = re.compile(f"[{_ALONE}]|.?[{_WITH_BASE}]+", re.DOTALL)
"""The same with what they may become one character with."""
_CLUSTER = regex.compile(r"\X")
_SLIPS = {"typo": 1, "typos": 2}
_MOST_WITH_SLIPS = 4
"""Terms of a query. Of a longer one the other words tell where, and every word need not be looked at."""


class Matcher:
    """A finder of one query's terms in any number of texts, which compares them as the index does."""

    def __init__(
        self, terms: Sequence[Term], languages: Sequence[str], phrases: Sequence[Sequence[tuple[str, ...]]] = ()
    ) -> None:
        """Take `phrases` as exact terms one after the other, in any of several ways.

        Where one stands it counts as many further terms as the first way has.
        """
        self._languages = languages
        self._which = {form: number for number, term in enumerate(terms) if term.match == "word" for form in term.forms}
        self._begins = {term.forms[0]: number for number, term in enumerate(terms) if term.match == "prefix"}
        forms = self._which | self._begins
        self._pairs = {form: number for form, number in forms.items() if not form.isascii() and UNSPACED.match(form)}
        begun = (start for form in forms for start in _beginnings(form, languages))
        starts = _shortest(_flat(start) for start in begun if start.isascii())  # Turkish `topic` has the stem `topiç`
        self._slips, self._phrases = _slips_among(terms), _numbered(phrases, len(terms))
        self._worded = len(self._pairs) < len(forms)  # else all that is looked for stands inside of tokens
        self._hints = starts if _PREFIXES_GO.isdisjoint(languages) else None
        self._within = {start[at : at + 2] for start in starts for at in range(len(start) - 1)}
        self._known: dict[str, Sequence[Match]] = {}  # the same tokens come again from hit to hit
        self._slip_lengths = {len(word) + more for word, most, _ in self._slips for more in range(-most, most + 1)}
        self._meant: dict[str, int | None] = {}

    def find(self, text: str) -> list[Match]:
        """Return every place where a term matches, in order."""
        if not self._which and not self._begins and not self._slips:
            return []
        matches_by_token, places = self._known, list[Match]()
        for start, token in self._tokens(text) if self._worded else ():
            if token not in matches_by_token:
                matches_by_token[token] = self._places(token)
            for low, high, number in matches_by_token[token]:
                places.append((start + low, start + high, number))
        if not text.isascii():
            places = sorted(places + self._runs(text))
        if self._slips:
            places = sorted(places + self._slipped(text))
        return sorted(places + self._adjacent(text)) if self._phrases else places

    def _tokens(self, text: str) -> list[tuple[int, str]]:
        if self._hints is None:
            return [(token.start(), token[0]) for token in _TOKEN.finditer(text)]
        return self._hinted(text, self._hints)

    def _hinted(self, text: str, hints: Sequence[str]) -> list[tuple[int, str]]:
        """Return the tokens that may match, in order: a term begins there or is in parts, or they are not ASCII."""
        spaced = text if text.isascii() else blanked(text)
        # The space at the end ends every token, and is what stands before the first character, at -1.
        flat = _flat(spaced) + " "
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
        joined = flat.replace("- ", "  ")  # what ends a token, as nearly every full stop does, joins nothing
        at = joined.find("-")
        while at >= 0:
            after = joined[at + 1] if joined[at + 1] != "-" else joined[at + 2]  # two may join as one, in `std::vector`
            if joined[at - 1] + after in within:  # `em` of `email`, in `e-mail`
                likely.append(at)
            at = joined.find("-", at + 2)
        return likely

    def _places(self, token: str) -> Sequence[Match]:
        """Return the parts of a token that are words, with the terms they match."""
        if not token.isascii() and UNSPACED.search(token):
            # A sentence of an unspaced script: what matches in it are pairs, and words of others inside of it.
            return self._within_parts(token, _SPACED) if self._may_hold_words(token) else ()
        numbers = self._terms_of(token)
        if not numbers:
            return ()
        if len(token) > _LONGEST_SHOWN and (inside := self._within_parts(token, _PART)):
            return inside
        apart = self._within_parts(token, _UNBRACKETED)
        if {number for _, _, number in apart}.issuperset(numbers):
            return apart
        low, high = _core(token)
        return [(low, high, number) for number in numbers]

    def _may_hold_words(self, token: str) -> bool:
        """Return whether a term may begin inside a token of an unspaced script, told quickly."""
        if self._hints is None or any(map(token.__contains__, _JOINTS)) or _OTHER_LETTERS.search(token):
            return True
        flat = token.lower()
        return any(hint in flat for hint in self._hints)

    def _within_parts(self, token: str, parts: regex.Pattern[str]) -> Sequence[Match]:
        places_by_part = ((part.start(), self._places(part[0])) for part in parts.finditer(token) if part[0] != token)
        return [(at + low, at + high, number) for at, places in places_by_part for low, high, number in places]

    def _terms_of(self, token: str) -> Sequence[int]:
        """Return the terms that a token matches: of a compound all that its parts and their joins do."""
        numbers: set[int] | None = None
        for language in self._languages:
            exact, stems = token_forms(token, language)
            if " " in stems:
                numbers = (numbers or set()).union(self._which[stem] for stem in stems.split() if stem in self._which)
            elif stems in self._which:
                return (self._which[stems],)
        if numbers:
            return sorted(numbers)
        if self._begins:
            for form in exact.split():
                for prefix, number in self._begins.items():
                    if form.startswith(prefix):
                        return (number,)
        return ()

    def _slipped(self, text: str) -> list[Match]:
        """Return words that a term may have meant."""
        words, lengths, meant = set(_WORD.findall(text)), self._slip_lengths, self._meant
        for word in words.difference(meant):
            if len(word) in lengths or not word.isascii():  # whose length may be another once it is folded
                meant[word] = self._slip_of(fold(word))
        numbers = {word: number for word in words if (number := meant.get(word)) is not None}
        return sorted((at, at + len(word), number) for word, number in numbers.items() for at in _places_of(word, text))

    def _slip_of(self, form: str) -> int | None:
        letters = set(form)
        for word, most, number in self._slips:
            # Most words differ at sight.
            alike = abs(len(form) - len(word)) <= most and len(letters.symmetric_difference(word)) <= 2 * most
            if alike and _few_slips(word, form, most):
                return number
        return None

    def _adjacent(self, text: str) -> list[Match]:
        """Return phrases, wherever their words follow each other."""
        words = [
            (term, token.start(), token.end())
            for token in _TOKEN.finditer(text)
            for term in token_forms(token[0], UNKNOWN)[0].split()
        ]
        spelled, places = [term for term, *_ in words], list[Match]()
        for phrase, numbers in self._phrases:
            last = len(phrase) - 1
            for at in [at for at, term in enumerate(spelled) if term == phrase[0]]:
                if spelled[at : at + len(phrase)] == phrase:
                    low, high = _core(text[words[at][1] : words[at + last][2]])
                    places += [(words[at][1] + low, words[at][1] + high, number) for number in numbers]
        return places

    def _runs(self, text: str) -> list[Match]:
        """Return pairs of unspaced scripts, which stand inside longer tokens."""
        if not self._pairs or text.isascii():
            return []
        either = "|".join(sorted(map(re.escape, self._pairs), key=len, reverse=True))
        # A look-ahead, because overlapping pairs both count.
        places = places_as_kept(re.compile(rf"(?=({either}))"), text)
        return [(start, end, self._pairs[form]) for start, end, form in places]


def places_as_kept(sought: re.Pattern[str], text: str) -> Iterator[tuple[int, int, str]]:
    """Yield each place of a pattern's first group in a text, with unspaced scripts compared as the index keeps them."""
    if not _OTHER_FORMS.search(text):
        for place in sought.finditer(text):
            yield place.start(1), place.end(1), place[1]
        return
    kept, sources = _as_kept(text)
    for place in sought.finditer(kept):
        last = sources[place.end(1) - 1]
        yield sources[place.start(1)], sources[bisect_right(sources, last)], place[1]


def _as_kept(text: str) -> tuple[str, list[int]]:
    """Return a text in the characters that the index keeps, and the source place of each of them and of the end."""
    kept, places, done = list[str](), list[int](), 0
    for written in _WRITTEN_OTHERWISE.finditer(text):
        at = written.start()
        kept.append(text[done:at])
        places += range(done, at)
        for start, form in _folded(written[0]):
            kept.append(form)
            places += [at + start] * len(form)
        done = written.end()
    kept.append(text[done:])
    places += range(done, len(text) + 1)
    return "".join(kept), places


@lru_cache(maxsize=1000)
def _folded(written: str) -> list[tuple[int, str]]:
    """Return the (start, kept form) of each character."""
    return [(cluster.start(), fold(cluster[0])) for cluster in _CLUSTER.finditer(written)]


def _places_of(word: str, text: str) -> Iterator[int]:
    """Yield each place where a word stands by itself."""
    at = text.find(word)
    while at >= 0:
        end = at + len(word)
        if not text[max(0, at - 1) : at].isalnum() and not text[end : end + 1].isalnum():
            yield at
        at = text.find(word, at + 1)


def _slips_among(terms: Sequence[Term]) -> list[tuple[str, int, int]]:
    """Return the (word, slips, term number) of each word that may have been mistyped."""
    if len(terms) > _MOST_WITH_SLIPS:
        return []
    return [(term.forms[0], _SLIPS[term.match], number) for number, term in enumerate(terms) if term.match in _SLIPS]


def _few_slips(word: str, form: str, most: int) -> bool:
    """Return whether at most so many slips make one word of the other. Two neighbors exchanged are one slip.

    For a handful of words this is quicker than loading rapidfuzz.
    """
    before, row = list[int](), list(range(len(form) + 1))
    for at, letter in enumerate(word, 1):
        following = [at]
        for place, other in enumerate(form, 1):
            slips = min(row[place] + 1, following[-1] + 1, row[place - 1] + (letter != other))
            if at > 1 and place > 1 and letter == form[place - 2] and other == word[at - 2]:
                slips = min(slips, before[place - 2] + 1)
            following.append(slips)
        before, row = row, following
    return row[-1] <= most


def _numbered(phrases: Sequence[Sequence[tuple[str, ...]]], first: int) -> list[tuple[list[str], range]]:
    """Return the ways of phrases of spaced words, and the numbers that the terms of each phrase have."""
    numbered = list[tuple[list[str], range]]()
    for plain, *others in phrases:
        if len(plain) > 1 and not any(map(UNSPACED.match, plain)):
            numbers = range(first, first + len(plain))
            numbered += [(list(way), numbers) for way in (plain, *others)]
            first = numbers.stop
    return numbered


def _core(token: str) -> tuple[int, int]:
    """Return where a token is a word, without what stands around it."""
    core = None if token.isalnum() else _CORE.search(token)
    return core.span() if core else (0, len(token))


def _beyond_ascii(text: str, flat: str) -> Iterator[int]:
    """Yield a place in every token that is not all ASCII, which `flat` has a question mark for."""
    at = flat.find("?")
    while at >= 0:
        if text[at] == "?":
            at += 1
        else:
            yield at
            at = flat.find(" ", at)
        at = flat.find("?", at)


def _flat(text: str) -> str:
    return text.encode("ascii", "replace").translate(_FLATTENED).decode("ascii")


def _shortest(starts: Iterable[str]) -> list[str]:
    """Return the starts that do not begin with another one."""
    shortest: list[str] = []
    for start in sorted(starts):
        if not shortest or not start.startswith(shortest[-1]):
            shortest.append(start)
    return shortest


def _beginnings(form: str, languages: Sequence[str]) -> Iterator[str]:
    """Yield the beginnings that a word of a stem may have.

    German takes the `e` out of `ae`, `oe` and `ue`, as umlauts are written.
    """
    start = _beginning(form, languages)
    yield start
    if "de" in languages:
        yield from (start[: at + 1] + "e" for at, letter in enumerate(start) if letter in "aou")


def _beginning(form: str, languages: Sequence[str]) -> str:
    """Return what every word of a stem begins with: all of it but a letter or two, `tri` of `try` and `trying`."""
    if tuple(languages) != ("en",):
        return form[: min(_LONGEST_HINT, max(1, len(form) - 2))]
    if form in ("die", "lie", "tie"):
        return form[0]  # of `dying`
    return form[: min(_LONGEST_HINT, len(form) - (len(form) > 2))]
