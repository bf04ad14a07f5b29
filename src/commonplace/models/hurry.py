"""The time that a caller can wait for a model, told to whoever waits on a wire below it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_UNTIL: ContextVar[float | None] = ContextVar("commonplace_hurry", default=None)


@contextmanager
def hurried(seconds: float | None) -> Iterator[None]:
    """Bound what a provider does inside to these seconds, and to any hurry around it. None adds no bound."""
    outer = _UNTIL.get()
    until = None if seconds is None else time.monotonic() + seconds
    bounds = [bound for bound in (outer, until) if bound is not None]
    token = _UNTIL.set(min(bounds, default=None))
    try:
        yield
    finally:
        _UNTIL.reset(token)


def time_left() -> float | None:
    """Return the seconds until the hurry is over, 0 when it is; None where there is none."""
    until = _UNTIL.get()
    return None if until is None else max(0.0, until - time.monotonic())
