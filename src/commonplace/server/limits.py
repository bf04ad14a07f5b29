"""How much a caller may ask: allowances that refill, and clients that must not keep others waiting."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable

import anyio
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_BUCKETS = 10_000


class Buckets:
    """Token buckets by key: each holds a minute's allowance and refills evenly."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._buckets: dict[Hashable, tuple[float, float]] = {}
        """What is left, and when that was so."""

    def take(self, key: Hashable, per_minute: int) -> float:
        """Take one; returns 0, or the seconds until there is one to take. No allowance means no limit."""
        if per_minute <= 0:
            return 0.0
        now, rate = self._clock(), per_minute / 60
        left, then = self._buckets.get(key, (float(per_minute), now))
        left = min(per_minute, left + (now - then) * rate)
        if left < 1:
            self._buckets[key] = (left, now)
            return (1 - left) / rate
        self._buckets[key] = (left - 1, now)
        if len(self._buckets) > MOST_BUCKETS:
            self._forget(now)
        return 0.0

    def _forget(self, now: float) -> None:
        """Those not used for a minute are full again, as good as never used."""
        self._buckets = {key: bucket for key, bucket in self._buckets.items() if now - bucket[1] < 60}


def come_back_in(seconds: float) -> dict[str, str]:
    """The header that says when to try again: whole seconds, and never too few."""
    return {"Retry-After": str(max(1, math.ceil(seconds)))}


class Patience:
    """Gives up on a client that stops in the middle of sending its request."""

    def __init__(self, app: ASGIApp, seconds: float) -> None:
        self._app = app
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        complete = False

        async def patient() -> Message:
            nonlocal complete
            if complete:  # from here on it waits for the client to go away, which may take as long as it likes
                return await receive()
            with anyio.move_on_after(self._seconds):
                message = await receive()
                complete = not message.get("more_body", False)
                return message
            complete = True
            return {"type": "http.disconnect"}

        await self._app(scope, patient, send)
