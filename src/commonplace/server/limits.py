"""Limits of callers: allowances that refill, and time limits for slow clients."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable, Mapping
from typing import TypeVar

import anyio
import anyio.lowlevel
import anyio.to_thread
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_BUCKETS = 10_000
LONG = 65_536
"""The longest message that is read on the event loop; reading a longer one takes more time than a thread."""

Text = TypeVar("Text", str, bytes)
T = TypeVar("T")


class Buckets:
    """Token buckets by key, each with a minute's allowance that refills evenly."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._buckets: dict[Hashable, tuple[float, float]] = {}
        """(tokens left, time of that count) by key."""

    def take(self, key: Hashable, per_minute: int) -> float:
        """Take one token and return 0, or return the seconds until there is one. An allowance of 0 means no limit."""
        return self.take_all({key: per_minute})

    def take_all(self, allowances: Mapping[Hashable, int]) -> float:
        """Take one token from each key, or none from any, and return 0 or the longest wait in seconds."""
        now, wait = self._clock(), 0.0
        left: dict[Hashable, float] = {}
        for key, per_minute in allowances.items():
            if per_minute > 0:
                rate = per_minute / 60
                there, then = self._buckets.get(key, (float(per_minute), now))
                left[key] = min(per_minute, there + (now - then) * rate)
                wait = max(wait, (1 - left[key]) / rate)
        for key, there in left.items():
            self._buckets[key] = (there if wait > 0 else there - 1, now)
        if len(self._buckets) > MOST_BUCKETS:
            self._forget(now)
        return wait

    def _forget(self, now: float) -> None:
        """Drop buckets unused for a minute: they are full again, like new ones."""
        self._buckets = {key: bucket for key, bucket in self._buckets.items() if now - bucket[1] < 60}


def come_back_in(seconds: float) -> dict[str, str]:
    """Return the Retry-After header in whole seconds, rounded up, at least 1."""
    return {"Retry-After": str(max(1, math.ceil(seconds)))}


async def aside(read: Callable[[Text], T], message: Text) -> T:
    """Read a message, a long one in a thread so that others are not delayed."""
    return read(message) if len(message) <= LONG else await anyio.to_thread.run_sync(read, message)


class Patience:
    """ASGI middleware that gives up on a client that stops halfway in its request, or leaves."""

    def __init__(self, app: ASGIApp, seconds: float) -> None:
        self._app = app
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        complete = late = False

        async def patient() -> Message:
            nonlocal complete, late
            if complete:  # from here on it waits for the client to go away, which may take as long as it likes
                return await receive()
            with anyio.move_on_after(self._seconds) as waiting:
                message = await receive()
                complete = not message.get("more_body", False)
                if message["type"] != "http.disconnect":
                    return message
            late = waiting.cancelled_caught
            half.cancel()
            await anyio.lowlevel.checkpoint()  # it goes no further
            return {"type": "http.disconnect"}

        with anyio.CancelScope() as half:
            await self._app(scope, patient, send)
        if late:
            await too_late(self._seconds)(scope, receive, send)


def too_late(seconds: float) -> Response:
    """Return the answer (408) to a client that stopped halfway in its request."""
    said = f"The rest of the request did not come within {seconds:g} s. Send it again."
    error = {"error": {"code": "invalid_argument", "message": said}}
    return JSONResponse(error, status_code=408, headers={"Connection": "close"})
