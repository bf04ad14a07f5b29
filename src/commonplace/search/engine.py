"""The engine of every search: recipes, and the stages that they are made of.

A vector side in time or the reason why not, candidates of both legs, fusing by rank, going deeper, and budgets.

What is late, broken or absent is left out, and the reply says why.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextvars import copy_context
from operator import itemgetter
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from commonplace.errors import CommonplaceError, Unavailable
from commonplace.index.scope import Ids, distinct
from commonplace.lazy_dataclass import dataclass
from commonplace.model import Stage
from commonplace.models.hurry import hurried
from commonplace.models.roles import Embedder
from commonplace.search.legs import LexicalLeg, VectorLeg, Vectors, Weights, scale_of, weigh
from commonplace.search.scale import Scale

log = logging.getLogger(__name__)
T = TypeVar("T")
R = TypeVar("R")
Floats = NDArray[np.float32]

EMBED_S = 2.0
"""How long a provider may think about a query that words can answer, too."""

LEAST_DEPTH, DEPTH_PER_HIT = 50, 5
"""Candidates of each leg that are looked at first: at least so many, and so many for each hit that is wanted."""

DEEPER = 4
"""How many times deeper a search goes each time it does not find enough."""


class MeanOf(Protocol):
    """A function that returns the mean direction of the vectors of items, or None where they have none."""

    def __call__(self, *item_ids: int) -> Floats | None: ...


@dataclass(frozen=True, slots=True)
class Semantic:
    """A ready vector side: an index that has vectors and the model that made them."""

    index: Vectors
    embedder: Embedder
    mean_of: MeanOf


class SemanticSource(Protocol):
    """A function that returns the vector side, or raises Unavailable with the reason."""

    def __call__(self) -> Semantic: ...


def in_time(work: Callable[[], T], seconds: float | None = EMBED_S) -> T | Unavailable:
    """Return the result of `work`, or the error that says why a model or a provider did not answer in these seconds.

    None sets no bound. Work that gets the vector side and embeds a query with it counts both as one.
    """
    try:
        with hurried(seconds):
            return work()
    except Unavailable as reason:
        return reason


def deepen(depth: int, step: Callable[[int], T], enough: Callable[[T], bool]) -> T:
    """Return the first `step(depth)` that is enough, four times deeper each time it is not.

    `enough` also says so of a step that found all there is.
    """
    while not enough(result := step(depth)):
        depth *= DEEPER
    return result


@dataclass(frozen=True, slots=True)
class FusedRanks:
    """Ranked lists fused by rank: all ids ascending, and for each list their ranks and what those are worth."""

    ids: Ids
    ranks: tuple[Ids, ...]
    """From 1; 0 for an id that the list has not."""
    worths: tuple[NDArray[np.float64], ...]
    """`weight / (k + rank)`; 0 for an id that the list has not."""

    @property
    def total(self) -> NDArray[np.float64]:
        """Return the fused score of each id: what all lists add to it."""
        return sum(self.worths[1:], self.worths[0])


def reciprocal(lists: Sequence[Ids], weights: Sequence[float] = (), *, k: int = 60) -> FusedRanks:
    """Return lists of distinct ids, best first, fused by reciprocal ranks. Without `weights` each list counts 1."""
    ids = distinct(np.concatenate(lists))
    ranks = [np.zeros(len(ids), np.int64) for _ in lists]
    for ranked, members in zip(ranks, lists, strict=True):
        ranked[np.searchsorted(ids, members)] = np.arange(1, len(members) + 1)
    worths = [
        np.where(ranked > 0, weight / (k + ranked), 0.0)
        for ranked, weight in zip(ranks, weights or [1.0] * len(lists), strict=True)
    ]
    return FusedRanks(ids, tuple(ranks), tuple(worths))


def no_passages() -> tuple[Ids, Floats]:
    """Return an empty list of candidates."""
    return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)


def with_complete(lexical: LexicalLeg, words: tuple[Ids, Floats], complete: Ids, depth: int) -> tuple[Ids, Floats]:
    """Return the candidates of the lexical leg, and those passages with all words that are not among them.

    `depth`: how many were asked for; where there are fewer, they are all that match, those with all words included.
    """
    if len(words[0]) < depth:
        return words
    left_out = _lacking(words[0], complete)
    return with_lacking(lexical, words, lexical.inside(left_out)) if len(left_out) else words


def with_lacking(leg: LexicalLeg | VectorLeg, found: tuple[Ids, Floats], passages: Ids) -> tuple[Ids, Floats]:
    """Return the candidates of a leg, after those of some passages that it knows and that are not among them."""
    lacking = _lacking(found[0], passages)
    if not len(lacking):
        return found
    scores = leg.scores(lacking)
    known = ~np.isnan(scores)
    return np.concatenate([lacking[known], found[0]]), np.concatenate([scores[known], found[1]])


def _lacking(found: Ids, passages: Ids) -> Ids:
    """Return those of a few passages that are not among the candidates. `np.setdiff1d` takes ten times as long."""
    if not len(passages):
        return passages
    known = set(found.tolist())
    return np.array([passage for passage in passages.tolist() if passage not in known], dtype=np.int64)


# stages under a budget


@dataclass(frozen=True, slots=True)
class Budgets:
    """The seconds that each stage with a model may take."""

    expand: float = 1.5
    embed: float = 1.0
    rerank: float = 2.0


class Clock:
    """A clock of one question: the seconds that a stage may take, and all of them together."""

    def __init__(self, seconds: float) -> None:
        self._began, self._seconds = time.perf_counter(), seconds

    @property
    def spent(self) -> float:
        return time.perf_counter() - self._began

    def left(self, budget: float) -> float:
        """Return the seconds of a stage's budget that are left, at most what is left for all stages."""
        return max(0.0, min(budget, self._seconds - self.spent))


class StageOmitted(Exception):
    """The error that a stage did not come to its end. `broken`: it failed; otherwise it was late."""

    def __init__(self, reason: str, *, broken: bool = False) -> None:
        super().__init__(reason)
        self.broken = broken


class _Run(Generic[T]):
    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self.result: T | None = None
        self.error: Exception | None = None

    def __call__(self) -> None:
        try:
            self.result = self._work()
        except Exception as error:  # noqa: BLE001  # it belongs to the caller's thread, which says what it means
            self.error = error


def within(seconds: float, work: Callable[[], T]) -> T:
    """Return the result of `work`, or raise StageOmitted where it fails or takes longer than `seconds`.

    Late work goes on alone and is forgotten; it must not write. A provider that is called inside knows the time, and
    gives up on its own.
    """
    if seconds <= 0:
        raise StageOmitted("there was no time left for it")

    def hurrying() -> T:
        with hurried(seconds):
            return work()

    run = _Run(hurrying)
    thread = threading.Thread(target=copy_context().run, args=(run,), daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise StageOmitted(f"it took longer than {seconds * 1000:.0f} ms")
    if run.error is not None:
        if isinstance(run.error, CommonplaceError):  # such as a service that is away
            log.warning("A stage of a search failed: %s", run.error)
        else:
            log.warning("A stage of a search failed", exc_info=run.error)
        raise StageOmitted(f"it failed: {run.error}", broken=True)
    return run.result  # type: ignore[return-value]  # it ended without an error


class Stages:
    """A record of the stages of a search: those that ran, with their milliseconds, and those that did not, with why."""

    def __init__(self) -> None:
        self._stages: dict[str, Stage] = {}

    @property
    def done(self) -> tuple[Stage, ...]:
        return tuple(self._stages.values())

    def timed(self, name: str, work: Callable[[], T]) -> T:
        """Return the result of `work`, and record its time. The times of a stage that runs twice are added."""
        start = time.perf_counter()
        result = work()
        before = self._stages[name].ms if name in self._stages else 0.0
        self._stages[name] = Stage(name, "ran", before + (time.perf_counter() - start) * 1000)
        return result

    def skip(self, name: str, reason: str) -> None:
        self._stages[name] = Stage(name, "skipped", reason=reason)

    def leave(self, name: str, left: StageOmitted) -> None:
        self._stages[name] = Stage(name, "failed" if left.broken else "skipped", reason=str(left))


# recipes


def usual_depth(wanted: int) -> int:
    """Return how many candidates of each leg are looked at first."""
    return max(LEAST_DEPTH, DEPTH_PER_HIT * wanted)


@dataclass(frozen=True, slots=True)
class Legs:
    """The ways of finding of one search. `vector`: None where there is no vector of the query."""

    lexical: LexicalLeg
    vector: VectorLeg | None
    by_words: bool = True
    """False: only meaning is asked for, and the words tell what is left out and what has all of them."""


@dataclass(frozen=True, slots=True)
class Proposed:
    """The passages that the legs propose at one depth, best first, each with its score on the scale of its leg."""

    depth: int
    words: tuple[Ids, Floats]
    """Those with all words are among them."""
    near: tuple[Ids, Floats]
    """Those that the query's phrases and exclusions let through."""
    complete: Ids
    """The passages with all words, in scope or not, where few have them."""
    weights: Weights
    scale: Scale
    full: bool
    """Whether a leg may have more."""


def candidates(legs: Legs, depth: int, least: float, stages: Stages) -> Proposed:
    """Return what the legs propose. `least`: the nearness that hits need; minus infinity asks for none."""
    lexical, vector = legs.lexical, legs.vector
    if vector is not None and legs.by_words:
        lexical.expect(vector, depth)
    near = stages.timed("vector", lambda: vector.candidates(depth)) if vector else no_passages()
    near_full = len(near[0]) >= depth and bool(near[1][-1] >= least)
    if legs.by_words:
        words = stages.timed("lexical", lambda: lexical.candidates(depth))
        words_full = len(words[0]) >= depth and least == -np.inf  # else the vector leg has all that are near enough
    else:
        stages.skip("lexical", "only meaning was asked for")
        words, words_full = no_passages(), False
    complete = lexical.complete()
    words = with_complete(lexical, words, complete, depth) if legs.by_words else words
    if vector is not None:
        allowed = lexical.allows(near[0])
        near = near[0][allowed], near[1][allowed]
    weights = _weights(legs)
    scale = scale_of(lexical, vector, weights, complete)
    return Proposed(depth, words, near, complete, weights, scale, words_full or near_full)


def _weights(legs: Legs) -> Weights:
    if legs.vector is None or not legs.by_words:
        return Weights(float(legs.by_words), float(not legs.by_words))
    return weigh(legs.lexical.plan.mass if legs.lexical.plan.query else 0.0, legs.vector.weight)


@dataclass(frozen=True, slots=True)
class Recipe(Generic[R]):
    """A surface's way to rank what its legs propose: how deep it looks, how it orders that, and when it has enough.

    The engine asks the legs, goes deeper, and stops where neither leg has more.
    """

    fusion: Callable[[Legs, Proposed], R]
    """The order, and the scores."""
    enough: Callable[[R], bool]
    least: float = -np.inf
    """The nearness that a hit needs, on the scale of the vector leg."""
    depth: Callable[[int], int] = usual_depth
    """Candidates of each leg at first, of the hits that are wanted."""


def rank(recipe: Recipe[R], legs: Legs, wanted: int, stages: Stages) -> R:
    """Return the ranking of a recipe, as deep as it takes to have enough."""

    def step(depth: int) -> tuple[R, bool]:
        found = candidates(legs, depth, recipe.least, stages)
        ranking = recipe.fusion(legs, found)
        return ranking, not found.full or recipe.enough(ranking)

    return deepen(recipe.depth(wanted), step, itemgetter(1))[0]
