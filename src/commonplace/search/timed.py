"""Stages under a budget: what is late, broken or absent is left out, and the reply says why."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextvars import copy_context
from typing import Generic, TypeVar

from commonplace.errors import CommonplaceError
from commonplace.lazy_dataclass import dataclass
from commonplace.model import Stage
from commonplace.models.hurry import hurried

log = logging.getLogger(__name__)
T = TypeVar("T")


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
