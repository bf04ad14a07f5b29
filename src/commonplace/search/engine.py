"""What every search is made of: a vector side in time, going deeper, fusing by rank, and stages under a budget.

What is late, broken or absent is left out, and the reply says why.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from commonplace.errors import CommonplaceError, Unavailable
from commonplace.index.scope import Ids, distinct
from commonplace.lazy_dataclass import dataclass
from commonplace.model import Stage
from commonplace.models.hurry import hurried
from commonplace.models.roles import Embedder

log = logging.getLogger(__name__)
T = TypeVar("T")
Floats = NDArray[np.float32]

EMBED_S = 2.0
"""How long a provider may think about a query that words can answer, too."""

DEEPER = 4
"""How many times deeper a search goes each time it does not find enough."""


class Vectors(Protocol):
    """The part of an index of vectors that the vector leg needs."""

    def search(
        self, query: Floats, k: int, items: Ids | None = None, without: Ids | None = None
    ) -> tuple[Ids, Floats]: ...
    def scores(self, query: Floats, chunk_ids: Ids) -> Floats: ...
    def sample(self) -> Floats: ...


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
