"""Text into terms, the same way for every language, document and query.

Two forms of every word are indexed: *exact* (folded, unstemmed), for phrases and prefixes, and its *stem*, for
ranking. Identifiers and compounds (`getUserName`, `real-time`, `HTTP/2`) give their parts, their neighboring
parts joined, and the whole; scripts written without spaces give overlapping pairs of characters.

Words repeat, so each white-space-delimited token is analyzed once and remembered, and its stems by its terms: analyzing
a text is then a split, two look-ups per word and two joins (`bench/engine.py`, row analyze).
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import pairwise

import regex

from commonplace.text.languages import UNKNOWN, stemmer
from commonplace.text.normal import normalized

_REMEMBERED, _REMEMBERED_OF_MANY = 5_000, 150_000  # words of a generation, of which there are two
_LONGEST_TOKEN = 48  # a longer one is a sentence of an unspaced script or a blob: it will not come again
_LONGEST_FORM = 160  # the terms of a token that is no longer than that, nearly always
_LONGEST_TERM = 100
_PUNCTUATION = "\"'`.,;:!?()[]{}<>*-–—“”‘’…|/\\"
_MOST_PARTS = 12
_APART = bytes.maketrans(b',;!?()[]{}*|"`$%^', b" " * 17)
"""Signs that are in no word: blanks in their place, and `word`, `word,` and `(word` are one token to look up."""

_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\u30fc\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_SOFT_HYPHEN, _JOINER = "\xad", "\u200d"  # where a word may be broken, and how its letters are drawn: it is one word

UNSPACED = regex.compile(f"[{_UNSPACED}]")
"""A character of a script whose words are indexed in pairs of characters."""

_PIECES = regex.compile(
    rf"""
      (?P<run>  (?: [{_UNSPACED}] \p{{M}}* )+ )
    | (?P<word> [[\w\p{{M}}]--[{_UNSPACED}\u200c]]+
                (?: ['’\-‐‑./:@=&+\#~\\\u200c]{{1,2}} [[\w\p{{M}}]--[{_UNSPACED}\u200c]]+ )*
                (?: \+\+ | \# )? )
    | (?P<sign> \p{{Extended_Pictographic}} | \p{{Regional_Indicator}}{{2}} )
    """,
    regex.VERBOSE | regex.VERSION1,
)
_ASCII_WORD = re.compile(r"\w+(?:['\-./:@=&+#~\\]{1,2}\w+)*(?:\+\+|#)?", re.ASCII)  # the same word, three times quicker
_ASCII_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]*[a-z0-9]+|[A-Z]+")  # the same as _PART and _CAMEL, likewise
_CLUSTER = regex.compile(r"\X")
_PART = regex.compile(r"[^\W_\u200c]+", regex.VERSION1)
_CAMEL = regex.compile(r"(?<=[\p{Ll}\d])(?=\p{Lu})|(?<=\p{Lu})(?=\p{Lu}\p{Ll})", regex.VERSION1)
_CONTRACTION = regex.compile(r"^(\w+)['’](s|t|re|ve|ll|d|m)$", regex.IGNORECASE)
_LATIN = regex.compile(r"\p{Latin}")
_MARKS = regex.compile(r"(?<=\p{Latin})\p{Mn}+")
_VOWEL_MARKS = regex.compile(r"[\u064b-\u065f\u0670\u0640\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7]")
"""The vowel marks of Arabic and Hebrew, which most texts are written without."""
_LETTERS = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ı": "i", "ħ": "h"})


def fold(text: str) -> str:
    """Return a text without case, compatibility forms, Latin diacritics and Semitic vowel marks.

    `Zoë` is `zoe`, `й` is not `и`.
    """
    if text.isascii():
        return text.lower()
    text = normalized("NFKC", text).casefold()
    if _LATIN.search(text):
        text = _MARKS.sub("", normalized("NFD", text)).translate(_LETTERS)
    return normalized("NFC", _VOWEL_MARKS.sub("", text))


def exact_terms(token: str) -> tuple[str, ...]:
    """Return the unstemmed terms of one white-space-delimited token, in the order of the text."""
    if word := _plain_word(token.strip(_PUNCTUATION)):
        return (word,)
    terms: list[str] = []
    if token.isascii():
        for word in _ASCII_WORD.findall(token):
            terms.extend(_word_terms(word))
    else:
        for kind, piece in pieces(token):
            terms.extend(_word_terms(piece) if kind == "word" else pairs(piece) if kind == "run" else [piece])
    return tuple(term[:_LONGEST_TERM] for term in terms if term)


def pieces(token: str) -> list[tuple[str, str]]:
    """Return the (kind, text) of each part of a token, in order.

    A kind is `word`, `run` of an unspaced script, or `sign`.
    """
    if not token.isascii():
        token = normalized("NFKC", token.replace(_SOFT_HYPHEN, "").replace(_JOINER, ""))
    return [(match.lastgroup or "", match[0]) for match in _PIECES.finditer(token)]


def pairs(run: str) -> list[str]:
    """Return overlapping pairs of characters, and the last one alone, so that every character begins some term."""
    clusters = _CLUSTER.findall(fold(run))
    return [a + b for a, b in pairwise(clusters)] + clusters[-1:]


def _plain_word(core: str) -> str:
    """Return the term of a plain ASCII word, or "" for any other.

    Most tokens by far are plain and not worth a pattern.
    """
    return core.lower()[:_LONGEST_TERM] if core.isascii() and core.isalpha() and _is_plain(core) else ""


def _is_plain(word: str) -> bool:
    """Return whether a word's capitals mean nothing: true for `word`, `Word` and `WORD`, false for `someWord`."""
    return word.islower() or word[1:].islower() or word.isupper()


def _word_terms(word: str) -> list[str]:
    if word.isalpha() and _is_plain(word):
        return [fold(word)]
    contraction = _CONTRACTION.match(word) if "'" in word or "’" in word else None
    if contraction:
        return [fold(contraction[1])] if contraction[2].lower() == "s" else [fold(contraction[1] + contraction[2])]
    parts = _parts(word)
    if not parts:
        return []
    tail = "++" if word.endswith("++") else "#" if word.endswith("#") else ""
    if len(parts) == 1:
        return [parts[0], parts[0] + tail] if tail else parts
    if len(parts) > _MOST_PARTS:
        return parts
    return [*compound_of(parts)[:-1], "".join(parts) + tail]


def _parts(word: str) -> list[str]:
    if word.isascii():
        return _ASCII_PART.findall(word) if word == word.lower() else list(map(str.lower, _ASCII_PART.findall(word)))
    return [fold(part) for piece in _PART.findall(word) for part in _CAMEL.split(piece) if part]


def compound_of(parts: Sequence[str]) -> tuple[str, ...]:
    """Return the terms that a compound of these parts is indexed by."""
    joined = [a + b for a, b in pairwise(parts)] if len(parts) > 2 else []
    return (*parts, *joined, "".join(parts))


def parts_of(terms: Sequence[str]) -> Sequence[str] | None:
    """Return the parts among the terms of a compound.

    None where these are not the terms of a compound without symbols after it.
    """
    count = 2 if len(terms) == 3 else len(terms) // 2
    return terms[:count] if len(terms) > 2 and tuple(terms) == compound_of(terms[:count]) else None


Forms = tuple[str, str]
"""The exact terms of a token or a text and their stems, each joined by blanks."""


class _Memory(dict[str, str]):
    """A cache from a word to something computed of it: filled on demand, bounded, shared by all threads.

    It has two generations: a full young one becomes the old one, and an entry of the old one comes back when it is
    read.
    """

    most = _REMEMBERED

    def __init__(self, tell: Callable[[str], str], longest: int) -> None:
        super().__init__()
        self.tell, self._longest = tell, longest
        self._old: dict[str, str] = {}

    def forget(self) -> None:
        self._old = {}
        self.clear()

    def __missing__(self, word: str) -> str:
        value = self._old.get(word)
        if value is None:
            value = self.tell(word)
        if len(word) <= self._longest:
            if len(self) >= self.most:
                self._old = dict(self)
                self.clear()
            self[word] = value
        return value


def _exact_form(token: str) -> str:
    core = token.strip(_PUNCTUATION)
    if core != token and core in _words and token.isascii():
        return _words[core]
    form = _plain_word(core) or " ".join(exact_terms(token))
    return token if form == token else form


_words = _Memory(_exact_form, _LONGEST_TOKEN)
_stemming = threading.Lock()  # a Snowball stemmer keeps state while it works


@cache
def _stems(language: str) -> _Memory | None:
    """Return the cache from exact terms to stems, both joined by blanks. None for a language that has no stemmer."""
    snowball = stemmer(language)
    if snowball is None:
        return None

    def stem(form: str) -> str:
        if " " not in form:
            with _stemming:
                root = snowball.stemWord(form)
            return form if root == form else root or form
        terms = form.split()
        with _stemming:
            roots = snowball.stemWords(terms)
        return " ".join([root or term for root, term in zip(roots, terms, strict=True)])  # Greek `ικα` has no stem

    return _Memory(stem, _LONGEST_FORM)


@contextmanager
def many_texts() -> Iterator[None]:
    """Remember more words while very many texts are analyzed, and none of them afterwards."""
    _Memory.most = _REMEMBERED_OF_MANY
    try:
        yield
    finally:
        _Memory.most = _REMEMBERED
        _words.forget()
        _stems.cache_clear()


def analyze(text: str, language: str) -> Forms:
    """Return a text's exact terms and its stems, as an index keeps them."""
    spaced = text.encode("utf-8", "surrogatepass").translate(_APART).decode("utf-8", "surrogatepass")
    forms = list(map(_words.__getitem__, spaced.split()))
    exact, stems_by_form = " ".join(forms), _stems(language)
    return exact, exact if stems_by_form is None else " ".join(map(stems_by_form.__getitem__, forms))


def exact(text: str) -> str:
    """Return all exact terms of a text, joined by blanks, in order."""
    return analyze(text, UNKNOWN)[0]


def stems(text: str, language: str) -> str:
    """Return all terms of a text, stemmed by the rules of `language`, joined by blanks, in order."""
    return analyze(text, language)[1]


def stems_once(text: str, language: str) -> str:
    """Return the same as `stems`, for a path or an id that will not come again. Nothing of it is remembered."""
    exact = " ".join(" ".join(exact_terms(token)) for token in text.split())
    stems_by_form = _stems(language)
    return exact if stems_by_form is None else stems_by_form.tell(exact)


def token_forms(token: str, language: str) -> Forms:
    """Return the exact terms and the stems of one white-space-delimited token."""
    exact, stems_by_form = _words[token], _stems(language)
    return exact, exact if stems_by_form is None else stems_by_form[exact]
