"""What a second look reads of texts: their stems, and the pieces of words they share with a question."""

from __future__ import annotations

import re
from collections import Counter

import regex

from commonplace.lazy_dataclass import dataclass
from commonplace.text.analyze import UNSPACED, fold, stems
from commonplace.text.languages import detect, stemmed_as

MOST_PIECES = 256
"""Of a question: a longer one has said what it is about by then."""

_WORD = regex.compile(r"[\w\p{M}]+")
_WITHOUT_SPACES_OR_SYLLABLES = regex.compile(r"[\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]")
_PLAIN_WORD = re.compile(r"\w+")
_SENTENCE = re.compile(r"[.!?…][\"'”’)\]]*\s+|[。！？]+|\n+")


def pieces_of(text: str) -> tuple[str, ...]:
    """Return the runs of letters that words of a text have in common with their relatives, each once.

    Four characters, the blank before a word among them, and a shorter word whole; where words are not spaced, two
    characters, or four where a syllable takes several. So `swim` and `swimming` share pieces whatever stems they have.
    """
    found: dict[str, None] = {}
    for word in _WORD.findall(fold(text)):
        if _WITHOUT_SPACES_OR_SYLLABLES.search(word):
            size = 4
        elif UNSPACED.search(word):
            size = 2
        else:
            size, word = 4, f" {word}"
            if len(word) <= size:
                word = f"{word} "
                size = len(word)
        found.update(dict.fromkeys(word[start : start + size] for start in range(max(1, len(word) - size + 1))))
        if len(found) >= MOST_PIECES:
            break
    return tuple(found)[:MOST_PIECES]


@dataclass(frozen=True, slots=True)
class Reading:
    """A passage as a second look sees it."""

    heading: str
    sentences: tuple[str, ...]
    """Folded, with blanks around every word, as the heading is: what `pieces_of` a question are looked for in."""
    counts: Counter[str]
    """How often each stem stands in the passage and over it."""


def read(heading: str, text: str, language: str) -> Reading:
    """Return a passage as a second look reads it. `language`: whose stems texts get that have none of their own."""
    found = stemmed_as(detect(text), language)
    parts = [part for part in _SENTENCE.split(text) if part and not part.isspace()]
    counts = Counter(stems(f"{heading}\n{text}", found).split())
    return Reading(_spaced(heading), tuple(map(_spaced, parts)), counts)


def _spaced(text: str) -> str:
    words = _PLAIN_WORD.findall(text.lower()) if text.isascii() else _WORD.findall(fold(text))
    return f" {' '.join(words)} "
