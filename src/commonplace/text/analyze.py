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

from commonplace.text.languages import stemmer

_REMEMBERED = 150_000  # words; beyond it the memory is emptied and fills again with what is current
_LONGEST_REMEMBERED = 48  # a longer token is a sentence of an unspaced script or a blob: it will not come again
_LONGEST_TERM = 100
_PUNCTUATION = "\"'`.,;:!?()[]{}<>*-–—“”‘’…|/\\"
_MOST_PARTS = 12

_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\u30fc\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
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
    joined = [a + b for a, b in pairwise(parts)] if len(parts) > 2 else []
    return [*parts, *joined, "".join(parts) + tail]


class _Memory(dict[str, str]):
    """Token → its terms joined by blanks. Filled on demand, bounded, and shared by all threads."""

    def __init__(self, terms: Callable[[str], str]) -> None:
        super().__init__()
        self._terms = terms

    def __missing__(self, token: str) -> str:
        terms = self._terms(token)
        if len(token) <= _LONGEST_REMEMBERED:
            if len(self) >= _REMEMBERED:
                self.clear()
            self[token] = terms
        return terms


_exact_memory = _Memory(lambda token: " ".join(exact_terms(token)))
_stemming = threading.Lock()  # a Snowball stemmer keeps state while it works


@cache
def _stem_memory(language: str) -> _Memory:
    snowball = stemmer(language)
    if snowball is None:
        return _exact_memory

    def stems(token: str) -> str:
        terms = _exact_memory[token]
        with _stemming:
            if " " not in terms:
                return snowball.stemWord(terms) or terms  # some Greek words have no stem at all
            return " ".join(snowball.stemWord(term) or term for term in terms.split())

    return _Memory(stems)


def analyse(text: str, language: str) -> tuple[str, str]:
    """The exact terms and the stems of a text: what an index keeps of it."""
    tokens = text.split()
    return " ".join(token_exact(tokens)), " ".join(token_stems(tokens, language))


def exact(text: str) -> str:
    """All exact terms of a text, joined by blanks, in order."""
    return " ".join(token_exact(text.split()))


def stems(text: str, language: str) -> str:
    """All terms of a text, stemmed as the language is, joined by blanks, in order."""
    return " ".join(token_stems(text.split(), language))


def token_exact(tokens: Sequence[str]) -> list[str]:
    """The exact terms of each white-space-delimited token, joined by blanks where there are several."""
    return list(map(_exact_memory.__getitem__, tokens))


def token_stems(tokens: Sequence[str], language: str) -> list[str]:
    """The stems of each white-space-delimited token, joined by blanks where there are several."""
    return list(map(_stem_memory(language).__getitem__, tokens))
