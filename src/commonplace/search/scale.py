"""One scale for every score of every surface: from 0 to 1, how sure it is that a hit is about the query.

Within one query a score rises with what the legs think of a hit, so that it never changes their order, but for one
case: passages that have all of a query's words, where these tell something and few passages have them all, come before
those that have some. What it means depends on the query and the library alone: on how much the words tell, on how many
passages could share them by chance, and on how near strangers are to this query here. `docs/search.md` has the
formulas, `tools/measure_scores.py` prints how many hits of each band are relevant.
"""

from __future__ import annotations

import math
from dataclasses import field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from commonplace.index.scope import Ids, among, distinct
from commonplace.lazy_dataclass import dataclass
from commonplace.model import CHUNK_BITS
from commonplace.search.plan import LexicalPlan
from commonplace.text.terms import Term

Floats = NDArray[np.float32]

CLOSE = 0.2
"""What the best hit scores at least where anything is about the query: below it, the answer says that nothing is."""

NOT_CLOSE = "No hit is close: what is shown is only the nearest there is."

FEW = 10
"""How many items may have all of a query's words where those come before the items that have some of them."""

SURE = 0.8
"""Nine in ten of the hits that score at least this are relevant: no score comes here by a bound alone."""

ALONE, AMONG_FEW, ALL_WORDS = 0.75, 0.65, 0.6
"""What an item scores at least that has all words in a passage, as the only one or one of few; or that has them all."""

COMMON, TOLD = 0.39, 0.79
"""What nothing scores more than where no word of the query tells anything, and where they tell enough for an answer.

Meaning alone says no more than the second, either."""

SPARING = 0.6
"""From where on a score by meaning alone rises more slowly."""

MOST_UNSURE = 40.0
"""From where on a score is 0 in all its digits."""

TELLS = 1.0
"""How much the words of a query have to tell where it matters that a passage has all of them."""

ENOUGH_TOLD, ALL_TOLD = 1.5, 8.0
"""How much the words of a query have to tell for an answer, and for a score to be as high as it can be."""

FEWEST_PASSAGES, MOST_PASSAGES = 500, 20_000
"""Libraries that are smaller or larger have as many passages like a query by chance: judged sets lie between."""

TRUE_NEARNESS = 3.5
"""How many times their scatter a true answer is away from strangers."""

EVIDENCE = (0.47, -0.28, 0.47)
"""What a unit of evidence, a unit of chance and nothing at all add to how sure a hit is: fitted on judged sets."""

_APART = 0.3
_NEARNESS, _LIKENESS = (0.5, 3.3), (1.2, 2.55)
_WORDS_ALIKE, _BOTH_ALIKE = (15.0, 0.25), (8.0, 0.25)
"""What each number does is said by the functions below."""


class WordStatistics(Protocol):
    """The facts that a scale needs of an index of words."""

    def passages(self) -> int: ...
    def having(self, terms: tuple[Term, ...], most: int) -> Ids: ...


@dataclass(frozen=True, slots=True)
class Line:
    """A score before it is pressed between 0 and 1: `slope · x + start`."""

    slope: float
    start: float


ITSELF = Line(1.0, 0.0)


@dataclass(frozen=True, slots=True)
class Strangers:
    """The nearness to a query of passages that have nothing to do with it: the median cosine, and the scatter."""

    cosine: float
    scatter: float


@dataclass(frozen=True, slots=True)
class Scale:
    """A scale for one query, which turns values of the legs into scores from 0 to 1."""

    words: Line
    """Of a lexical score in masses."""
    both: Line
    """Of a fused score, or of nearness where only that was asked for."""
    most: float = 1.0
    """What no score exceeds but those of passages with all the words."""
    complete: Ids = field(default_factory=lambda: np.empty(0, np.int64))
    """The passages with all the words, where they are few."""
    only_near: bool = False
    """Whether nothing but nearness to a question was asked for, which is never sure."""

    def scores(self, chunks: Ids, values: Floats, unknown: NDArray[np.bool_] | bool) -> NDArray[np.float64]:
        """Return the scores of passages. `unknown`: those without a vector, which their words alone judge."""
        sureness = self.sureness(values, unknown)
        scores = self.most * (pressed_nearness(sureness) if self.only_near else pressed(sureness))
        if not len(self.complete):
            return scores
        return completed(scores, among(chunks, self.complete), least_of(self.complete))

    def sureness(self, values: Floats, unknown: NDArray[np.bool_] | bool) -> NDArray[np.float64]:
        """Return the values on one line, whichever leg each is from: from minus to plus infinity."""
        wide = np.asarray(values, np.float64)
        sure: NDArray[np.float64] = self.both.slope * wide + self.both.start
        if np.any(unknown):
            sure = np.where(unknown, self.words.slope * wide + self.words.start, sure)
        return sure


NO_SCALE = Scale(ITSELF, ITSELF)
"""Of a list with nothing in it."""


def pressed(sureness: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Return `1 / (1 + e^−x)`."""
    pressed: NDArray[np.float64] = 1.0 / (1.0 + np.exp(np.minimum(-sureness, MOST_UNSURE)))
    return pressed


def pressed_nearness(sureness: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Return `p = 1 / (1 + e^−x)`, above 0.6 `0.6 + 0.475 · (p − 0.6)`: the nearest is often something else."""
    even = pressed(sureness)
    return np.where(even > SPARING, SPARING + (TOLD - SPARING) * (even - SPARING) / (1.0 - SPARING), even)


def least_of(complete: Ids) -> float:
    """Return the least score of passages with all the words, where there are any."""
    return ALONE if len(distinct(complete >> CHUNK_BITS)) == 1 else AMONG_FEW


def completed(
    scores: NDArray[np.float64], complete: NDArray[np.bool_], least: float | NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the scores of those with all the words above `least`, of the others below, each in the order they had."""
    return np.where(complete, lifted(scores, least), least * scores)


def lifted(scores: NDArray[np.float64], least: float | NDArray[np.float64]) -> NDArray[np.float64]:
    """Return scores below 0.8 spread from `least` to there, and the others as they are.

    So an item with all the words has `least` in any case, and is only called sure where it is so without that.
    """
    return np.where(scores < SURE, least + (SURE - least) * scores / SURE, scores)


def evidence_line(mass: float, passages: int, share: Line = ITSELF) -> Line:
    """Return the line of evidence as a share of what a good answer has, which `share` makes of a leg's value.

    Half of that says little and all of it much: more for a query with more to say, less among more passages.
    """
    unit, chance, start = EVIDENCE
    slope = unit * math.sqrt(mass)
    return Line(slope * share.slope, slope * (share.start - 0.5) + chance * chances(passages) + start)


def fused_share(evidence: float, near: float, usual: float) -> Line:
    """Return the line that makes of the mean of both legs the share of what a good answer has.

    `evidence`: what the weights of the legs add up to; `near`: how far the vector leg's zero is from strangers;
    `usual`: what a passage has that holds every word once and is as near as true answers are.
    """
    return Line(evidence / usual, near / usual)


def alike_line(share: Line | None = None) -> Line:
    """Return the line of evidence that a passage is like a text, by words alone where there is no `share`.

    Few passages have a quarter of a text's telling words.
    """
    slope, half = _WORDS_ALIKE if share is None else _BOTH_ALIKE
    share = share or ITSELF
    return Line(slope * share.slope, slope * (share.start - half))


def nearness_line(strangers: Strangers, *, alike: bool = False) -> Line:
    """Return the line of a cosine: how many times further it is from strangers than these are from each other.

    `alike`: the query is itself a passage. Passages lie nearer to each other than questions lie to them.
    """
    slope, half = _LIKENESS if alike else _NEARNESS
    return Line(slope / strangers.scatter, -slope * (strangers.cosine / strangers.scatter + half))


def stands_apart(cosine: float, strangers: Strangers, passages: int) -> bool:
    """Return whether a passage is nearer than the nearest of `passages` strangers can be expected to be."""
    expected = math.sqrt(2.0 * math.log(max(passages, 2))) + _APART
    return cosine > strangers.cosine + expected * strangers.scatter


def highest(telling: float) -> float:
    """Return the highest score, from 0 to 1, that a hit may have where the words of a query tell so much."""
    enough, rest = min(telling, ENOUGH_TOLD), min(max(telling, ENOUGH_TOLD), ALL_TOLD) - ENOUGH_TOLD
    return COMMON + (TOLD - COMMON) * enough / ENOUGH_TOLD + (1.0 - TOLD) * rest / (ALL_TOLD - ENOUGH_TOLD)


def complete_passages(plan: LexicalPlan, reader: WordStatistics) -> Ids:
    """Return the passages that have every word of a query, where few do and the words tell something; else none."""
    if plan.unknown or not plan.content or plan.telling < TELLS:
        return np.empty(0, np.int64)
    return reader.having(plan.content, FEW)


def chances(passages: int) -> float:
    """Return the logarithm of how many passages may be like a query by chance."""
    return math.log(min(max(passages, FEWEST_PASSAGES), MOST_PASSAGES))
