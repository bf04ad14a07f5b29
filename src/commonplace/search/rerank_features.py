"""What a second look reads of each candidate, and what it knows of it beyond its two scores.

A text is read as stems, and as the pieces of words that it shares with a question. The best of a retrieval are told by
what they have in common: nobody has judged them, so they are believed as far as their scores are near the first's.
What is known is a column each, named and explained in `FEATURES`. Columns are weighted by what the query gives the
legs: words tell more where words do the work, and what is near in meaning tells only where the model reads the
language.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from math import log

import numpy as np
import regex
from numpy.typing import NDArray

from commonplace.index.scope import distinct
from commonplace.lazy_dataclass import dataclass
from commonplace.search.legs import Weights
from commonplace.text.analyze import UNSPACED, fold, stems
from commonplace.text.languages import detect, stemmed_as
from commonplace.text.terms import Term

Floats = NDArray[np.float32]
Matrix = NDArray[np.float64]

# what is read of a text

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


# what the best have in common

CENTRE_OF = 5
WORDS_OF = 10
MOST_WORDS = 25
_STEEP_CENTRE, _STEEP_WORDS = 8.0, 6.0


def belief(scores: Floats, steep: float) -> Floats:
    """Return `exp(steep · (score − best))`: 1 for the first, falling with the distance from it."""
    return np.exp(steep * (scores - scores[0])).astype(np.float32) if len(scores) else scores


def centre(items: Sequence[int], scores: Floats, mean_of: Callable[[int], Floats | None]) -> Floats | None:
    """Return the direction of the first few items' vectors, weighted by belief; None where none has a vector."""
    total: Floats | None = None
    for item, weight in zip(items[:CENTRE_OF], belief(scores[:CENTRE_OF], _STEEP_CENTRE).tolist(), strict=True):
        mean = mean_of(item)
        if mean is not None:
            total = weight * mean if total is None else total + weight * mean
    if total is None:
        return None
    return np.asarray(total / (np.linalg.norm(total) or 1.0), dtype=np.float32)


def shared_words(counts: Sequence[Counter[str]], scores: Floats, asked: Collection[str]) -> dict[str, float]:
    """Return the stems that set the first few apart from the rest, with their worth; those of the question left out.

    A stem is worth the sum of its share in each of the first, weighted by belief, times its rarity among all.
    """
    worth: dict[str, float] = defaultdict(float)
    for count, weight in zip(counts[:WORDS_OF], belief(scores[:WORDS_OF], _STEEP_WORDS).tolist(), strict=True):
        length = count.total() or 1
        for stem, times in count.items():
            worth[stem] += weight * times / length
    holders = Counter(stem for count in counts for stem in count)
    rare = {
        stem: value * log(1 + (len(counts) - holders[stem] + 0.5) / (holders[stem] + 0.5))
        for stem, value in worth.items()
        if stem not in asked
    }
    best = sorted(rare, key=lambda stem: (-rare[stem], stem))[:MOST_WORDS]
    return {stem: rare[stem] for stem in best}


# the columns

FEATURES: Mapping[str, str] = {
    "words": "the lexical score itself: how often the terms stand there counts for less than which of them do",
    "coverage": "the share of the question's terms that the passage has, each by the square of its idf",
    "pieces": "the same for pieces of words, each by its rarity among the candidates",
    "sentence": "the share of pieces that one sentence has, with the headings over it",
    "centre": "the cosine with the mean vector of the best few",
    "shared": "the share of the words that the best have in common",
    "beside": "the score of the better neighbour, where what is stored side by side belongs together",
    "further": "the scores of the neighbours after next",
    "title": "the best score among others under the same title",
}

CLOSE, FAR = (1, 2), (11, 50)
"""Distances between ids of items: those of neighbours, and those that tell how many of them chance would bring."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One passage: its item, where the item is kept, and what it says."""

    item: int
    home: tuple[str, str]
    title: str
    reading: Reading


@dataclass(frozen=True, slots=True)
class Standing:
    """The scores of the candidates before they are read, best first."""

    scores: Floats
    lexical: Floats
    weights: Weights
    nearness: Floats | None
    """Of each to the centre of the best, in units of what sets a true pair apart from a random one."""


def features(
    candidates: Sequence[Candidate],
    standing: Standing,
    terms: Sequence[Term],
    shares: Sequence[float],
    pieces: Sequence[str],
) -> Matrix:
    """Return a row per candidate and a column per feature, in the order of `FEATURES`."""
    by_words, by_meaning = standing.weights.lexical, standing.weights.vector
    only_words = by_words**3  # little where both legs count, and nearly all where words do the work alone
    readings = [candidate.reading for candidate in candidates]
    whole, best = _pieces(readings, pieces)
    beside, further = _neighbours(candidates, standing.scores)
    side_by_side = _ordered(candidates) * min(1.0, 3.0 * by_meaning)
    nearness = np.zeros(len(candidates)) if standing.nearness is None else np.nan_to_num(standing.nearness)
    columns = (
        by_words * standing.lexical,
        only_words * _coverage(readings, terms, shares),
        only_words * whole,
        by_words * best,
        by_meaning * nearness,
        by_meaning * _shared(readings, standing.scores, terms) if by_meaning else np.zeros(len(candidates)),
        side_by_side * beside,
        side_by_side * further,
        _under_title(candidates, standing.scores),
    )
    return np.stack(columns, axis=1).astype(np.float64)


def _coverage(readings: Sequence[Reading], terms: Sequence[Term], shares: Sequence[float]) -> Matrix:
    worth = np.array([share * share / (term.weight or 1.0) for term, share in zip(terms, shares, strict=True)])
    if not worth.sum():
        return np.zeros(len(readings))
    has = np.array([[any(form in reading.counts for form in term.forms) for term in terms] for reading in readings])
    return np.asarray(has @ worth / worth.sum())


def _pieces(readings: Sequence[Reading], pieces: Sequence[str]) -> tuple[Matrix, Matrix]:
    """Return the shares of the question's pieces of each passage, by squared rarity, and of its best sentence."""
    if not pieces:
        return np.zeros(len(readings)), np.zeros(len(readings))
    whole = np.zeros((len(readings), len(pieces)), np.bool_)
    best = np.zeros(len(readings))
    for row, reading in enumerate(readings):
        over = np.array([piece in reading.heading for piece in pieces])
        each = [over | np.array([piece in sentence for piece in pieces]) for sentence in reading.sentences] or [over]
        whole[row] = np.logical_or.reduce(each)
        best[row] = max(int(found.sum()) for found in each) / len(pieces)
    holders = whole.sum(axis=0)
    worth = np.log(1 + (len(readings) - holders + 0.5) / (holders + 0.5)) ** 2
    return np.asarray(whole @ worth / worth.sum()), best


def _shared(readings: Sequence[Reading], scores: Floats, terms: Sequence[Term]) -> Matrix:
    asked = {form for term in terms for form in term.forms}
    shared = shared_words([reading.counts for reading in readings], scores, asked)
    total = sum(shared.values()) or 1.0
    return np.array(
        [sum(worth for stem, worth in shared.items() if stem in reading.counts) / total for reading in readings]
    )


def _ordered(candidates: Sequence[Candidate]) -> float:
    """Return how far items stored one after another answer the same questions, as turns of a chat do, from 0 to 1.

    It compares how many candidates are neighbors with how many would be if the order meant nothing, which pairs
    further apart tell: 0 up to 1.3 times as many, 1 from 3.3 times.
    """
    items = distinct(np.array([candidate.item for candidate in candidates], dtype=np.int64))
    reach = int(items[-1] - items[0]) + 1
    if reach <= FAR[0]:
        return 0.0
    apart = (items[None, :] - items[:, None]).ravel()
    close, close_places = _pairs(apart, reach, CLOSE)
    far, far_places = _pairs(apart, reach, FAR)
    chance = far * close_places / far_places
    return float(np.clip(((close + 1) / (chance + 1) - 1.3) / 2, 0.0, 1.0))


def _pairs(apart: NDArray[np.int64], reach: int, distances: tuple[int, int]) -> tuple[int, int]:
    """Return how many pairs are between two distances apart, and how many there is room for."""
    low, high = distances
    return int(np.count_nonzero((apart >= low) & (apart <= high))), sum(
        reach - distance for distance in range(low, min(high, reach - 1) + 1)
    )


def _neighbours(candidates: Sequence[Candidate], scores: Floats) -> tuple[Matrix, Matrix]:
    """Return the better score of the two next to each in the same home, and the sum of the two beyond.

    Scores are counted from the least of all.
    """
    least = float(scores.min()) if len(scores) else 0.0
    standing: dict[tuple[tuple[str, str], int], float] = {}
    for one, score in zip(candidates, scores, strict=True):
        standing.setdefault((one.home, one.item), float(score) - least)

    def at(one: Candidate, distance: int) -> float:
        return standing.get((one.home, one.item + distance), 0.0)

    beside = [max(at(one, -1), at(one, 1)) for one in candidates]
    return np.array(beside), np.array([at(one, -2) + at(one, 2) for one in candidates])


def _under_title(candidates: Sequence[Candidate], scores: Floats) -> Matrix:
    """Return for each the best score, from the least of all, of another item of its title in the same home."""
    least = float(scores.min()) if len(scores) else 0.0
    best: dict[tuple[tuple[str, str], str], list[tuple[int, float]]] = {}
    for one, score in zip(candidates, scores, strict=True):
        if one.title:
            best.setdefault((one.home, one.title), []).append((one.item, float(score) - least))
    return np.array(
        [
            next((score for item, score in best.get((one.home, one.title), ()) if item != one.item), 0.0)
            for one in candidates
        ]
    )
