"""Text into terms, the same way for every language, document and query.

Two forms of every word are indexed: *exact* (folded, unstemmed), for phrases and prefixes, and its *stem*, for
ranking. Identifiers and compounds (`getUserName`, `real-time`, `HTTP/2`) give their parts, their neighbouring
parts joined, and the whole; scripts written without spaces give overlapping pairs of characters.

Words repeat, so each white-space-delimited token is analysed once and remembered: analysing a text is then a
split, a look-up per word and a join (`bench/engine.py`, row analyze).
"""

from __future__ import annotations

import threading
import unicodedata
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise

import regex

from commonplace.text.languages import UNKNOWN, stemmer

_REMEMBERED = 150_000  # words of a generation, of which there are two
_LONGEST_REMEMBERED = 48  # a longer token is a sentence of an unspaced script or a blob: it will not come again
_LONGEST_TERM = 100
_PUNCTUATION = "\"'`.,;:!?()[]{}<>*-–—“”‘’…|/\\"
_MOST_PARTS = 12

_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\u30fc\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
UNSPACED = regex.compile(f"[{_UNSPACED}]")
"""A character of a script whose words are indexed in pairs of characters."""

_PIECES = regex.compile(
    rf"""
      (?P<run>  (?: [{_UNSPACED}] \p{{M}}* )+ )
    | (?P<word> [[\w\p{{M}}]--[{_UNSPACED}]]+
                (?: ['’\-‐‑./:@=&+\#~\\]{{1,2}} [[\w\p{{M}}]--[{_UNSPACED}]]+ )*
                (?: \+\+ | \# )? )
    | (?P<sign> \p{{Extended_Pictographic}} )
    """,
    regex.VERBOSE | regex.VERSION1,
)
_CLUSTER = regex.compile(r"\X")
_PART = regex.compile(r"[^\W_]+", regex.VERSION1)
_CAMEL = regex.compile(r"(?<=[\p{Ll}\d])(?=\p{Lu})|(?<=\p{Lu})(?=\p{Lu}\p{Ll})", regex.VERSION1)
_CONTRACTION = regex.compile(r"^(\w+)['’](s|t|re|ve|ll|d|m)$", regex.IGNORECASE)
_LATIN = regex.compile(r"\p{Latin}")
_MARKS = regex.compile(r"(?<=\p{Latin})\p{Mn}+")
_ARABIC_MARKS = regex.compile(r"[\u064b-\u065f\u0670\u0640]")
_LETTERS = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ı": "i", "ħ": "h"})


def fold(text: str) -> str:
    """Case, compatibility forms and Latin diacritics ignored: `Zoë` and `zoe` are one word, `й` and `и` are not."""
    if text.isascii():
        return text.lower()
    text = unicodedata.normalize("NFKC", text).casefold()
    if _LATIN.search(text):
        text = _MARKS.sub("", unicodedata.normalize("NFD", text)).translate(_LETTERS)
    return unicodedata.normalize("NFC", _ARABIC_MARKS.sub("", text))


def exact_terms(token: str) -> tuple[str, ...]:
    """The unstemmed terms of one white-space-delimited token, in the order of the text."""
    core = token.strip(_PUNCTUATION)
    if core.isascii() and core.isalpha() and _is_plain(core):
        return (core.lower()[:_LONGEST_TERM],)  # most tokens by far: not worth a pattern
    terms: list[str] = []
    if not token.isascii():
        token = unicodedata.normalize("NFKC", token)
    for match in _PIECES.finditer(token):
        if match.lastgroup == "word":
            terms.extend(_word_terms(match[0]))
        elif match.lastgroup == "run":
            terms.extend(pairs(match[0]))
        else:
            terms.append(match[0])
    return tuple(term[:_LONGEST_TERM] for term in terms if term)


def pieces(token: str) -> list[tuple[str, str]]:
    """What a white-space-delimited token is made of: each `word`, `run` of an unspaced script or `sign`, in order."""
    if not token.isascii():
        token = unicodedata.normalize("NFKC", token)
    return [(match.lastgroup or "", match[0]) for match in _PIECES.finditer(token)]


def pairs(run: str) -> list[str]:
    """Overlapping pairs of characters, and the last one alone, so that every character begins some term."""
    clusters = _CLUSTER.findall(fold(run))
    return [a + b for a, b in pairwise(clusters)] + clusters[-1:]


def _is_plain(word: str) -> bool:
    """Whether its capitals say nothing: `word`, `Word` and `WORD`, but not `someWord`."""
    return word.islower() or word[1:].islower() or word.isupper()


def _word_terms(word: str) -> list[str]:
    if word.isalpha() and _is_plain(word):
        return [fold(word)]
    contraction = _CONTRACTION.match(word)
    if contraction:
        return [fold(contraction[1])] if contraction[2].lower() == "s" else [fold(contraction[1] + contraction[2])]
    written = _PART.findall(word)
    parts = [fold(part) for piece in written for part in _CAMEL.split(piece) if part]
    if not parts:
        return []
    tail = "++" if word.endswith("++") else "#" if word.endswith("#") else ""
    if len(parts) == 1:
        return [parts[0], parts[0] + tail] if tail else parts
    if len(parts) > _MOST_PARTS:
        return parts
    return [*compound_of(parts)[:-1], "".join(parts) + tail]


def compound_of(parts: Sequence[str]) -> tuple[str, ...]:
    """The terms that a compound of these parts is indexed by."""
    joined = [a + b for a, b in pairwise(parts)] if len(parts) > 2 else []
    return (*parts, *joined, "".join(parts))


def parts_of(terms: Sequence[str]) -> Sequence[str] | None:
    """The parts among the terms of a compound; None where they are not the terms of one without symbols after it."""
    count = 2 if len(terms) == 3 else len(terms) // 2
    return terms[:count] if len(terms) > 2 and tuple(terms) == compound_of(terms[:count]) else None


Forms = tuple[str, str]
"""The exact terms of a token and their stems, each joined by blanks."""


class _Memory(dict[str, Forms]):
    """Token → its forms. Filled on demand, bounded, and shared by all threads.

    Two generations: when the young one is full it becomes the old one, and what is asked for again comes back from it.
    """

    def __init__(self, forms: Callable[[str], Forms]) -> None:
        super().__init__()
        self.forms = forms
        self._old: dict[str, Forms] = {}

    def __missing__(self, token: str) -> Forms:
        forms = self._old.get(token) or self.forms(token)
        if len(token) <= _LONGEST_REMEMBERED:
            if len(self) >= _REMEMBERED:
                self._old = dict(self)
                self.clear()
            self[token] = forms
        return forms


_stemming = threading.Lock()  # a Snowball stemmer keeps state while it works


@cache
def _memory(language: str) -> _Memory:
    snowball = stemmer(language)

    def forms(token: str) -> Forms:
        terms = exact_terms(token)
        exact = " ".join(terms)
        if snowball is None or not terms:
            return exact, exact
        with _stemming:
            if len(terms) == 1:
                return exact, snowball.stemWord(exact) or exact
            roots = snowball.stemWords(list(terms))
        return exact, " ".join(root or term for root, term in zip(roots, terms, strict=True))  # Greek `ικα` has no stem

    return _Memory(forms)


def analyse(text: str, language: str) -> Forms:
    """The exact terms and the stems of a text: what an index keeps of it."""
    forms = list(map(_memory(language).__getitem__, text.split()))
    if not forms:
        return "", ""
    words, roots = zip(*forms)  # noqa: B905  # pairs, all of them
    return " ".join(words), " ".join(roots)


def exact(text: str) -> str:
    """All exact terms of a text, joined by blanks, in order."""
    return analyse(text, UNKNOWN)[0]


def stems(text: str, language: str) -> str:
    """All terms of a text, stemmed as the language is, joined by blanks, in order."""
    return analyse(text, language)[1]


def stems_once(text: str, language: str) -> str:
    """The same for what will not come again, a path or an id: nothing of it is remembered."""
    return " ".join(_memory(language).forms(token)[1] for token in text.split())


def token_forms(token: str, language: str) -> Forms:
    """The exact terms and the stems of one white-space-delimited token."""
    return _memory(language)[token]
