"""A circuit breaker, which leaves a failing provider alone."""

from __future__ import annotations

import threading
import time

FAILURES = 5
REST_S = 30.0
LONGEST_REST_S = 300.0


class Breaker:
    """A circuit breaker: after some failures in a row it lets nobody through for a while, and then one who tries.

    The others wait for what that one finds. Threads may share it.
    """

    def __init__(self, failures: int = FAILURES, rest: float = REST_S) -> None:
        self._most, self._rest = failures, rest
        self._failed = 0
        self._until = 0.0
        self._lock = threading.Lock()

    def wait(self) -> float:
        """Return the seconds until somebody may try.

        0 means that the caller may, and that others wait for what it finds.
        """
        with self._lock:
            now = time.monotonic()
            if now < self._until:
                return self._until - now
            if self._failed >= self._most:
                self._until = now + self._rest
            return 0.0

    def succeeded(self) -> None:
        with self._lock:
            self._failed, self._until = 0, 0.0

    def failed(self) -> None:
        with self._lock:
            self._failed += 1
            if self._failed >= self._most:
                self._until = time.monotonic() + self._rest

    def rest(self, seconds: float) -> None:
        """Leave the provider alone for as long as it has asked for."""
        with self._lock:
            self._until = max(self._until, time.monotonic() + min(seconds, LONGEST_REST_S))
