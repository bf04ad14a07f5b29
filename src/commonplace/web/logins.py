"""Logins: a key or token is given once, and a cookie stands for it until it ends. The gate decides who may call."""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Protocol

from anyio import to_thread

from commonplace.server.auth import Gate, KeyGate, OpenGate
from commonplace.server.principal import Principal
from commonplace.store.accounts import IDLE_US, new_login
from commonplace.store.opening import AnyAccounts

MOST_FAILURES = 5
FAILURES_S = 60.0
MOST_LOGINS = 1000


class Logins(Protocol):
    """The logins of one server."""

    async def log_in(self, secret: str) -> str | None:
        """Return the cookie of a new login; None where the key or token is nobody's."""
        ...

    async def principal(self, cookie: str) -> Principal | None:
        """Return whom a cookie stands for, or None."""
        ...

    async def log_out(self, cookie: str) -> None: ...


class KeyLogins:
    """Logins by keys of this home, kept as hashes beside the keys: every process knows them, and they end with them."""

    def __init__(self, accounts: AnyAccounts) -> None:
        self._accounts = accounts

    async def log_in(self, secret: str) -> str | None:
        return await to_thread.run_sync(self._accounts.log_in, secret)

    async def principal(self, cookie: str) -> Principal | None:
        grant = await to_thread.run_sync(self._accounts.verify_login, cookie)
        return Principal(*grant) if grant else None

    async def log_out(self, cookie: str) -> None:
        await to_thread.run_sync(self._accounts.log_out, cookie)


class TokenLogins:
    """Logins by tokens that others issue: they last as long as this process, and as their token is admitted."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._tokens: OrderedDict[bytes, tuple[str, float]] = OrderedDict()
        """(token, time of the last use) by the digest of the cookie; the least recently used comes first."""

    async def log_in(self, secret: str) -> str | None:
        if await self._gate.admit(secret) is None:
            return None
        cookie = new_login()
        self._tokens[_digest(cookie)] = secret, time.monotonic()
        while len(self._tokens) > MOST_LOGINS:
            self._tokens.popitem(last=False)
        return cookie

    async def principal(self, cookie: str) -> Principal | None:
        token, used_at = self._tokens.get(_digest(cookie), ("", 0.0))
        if not token:
            return None
        principal = await self._gate.admit(token) if time.monotonic() - used_at < IDLE_US / 1_000_000 else None
        if principal is None:
            await self.log_out(cookie)
        else:
            self._tokens[_digest(cookie)] = token, time.monotonic()
            self._tokens.move_to_end(_digest(cookie))
        return principal

    async def log_out(self, cookie: str) -> None:
        self._tokens.pop(_digest(cookie), None)


def logins_of(gate: Gate) -> Logins | None:
    """Return the logins of a server with this gate; None where everybody is the owner."""
    if isinstance(gate, OpenGate):
        return None
    return KeyLogins(gate.accounts) if isinstance(gate, KeyGate) else TokenLogins(gate)


class Failures:
    """The failed logins of each caller within a minute. Lives on the event loop."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._times: dict[str, deque[float]] = {}

    def wait(self, caller: str) -> float:
        """Return the seconds until a caller may try again, 0 for now."""
        times, now = self._times.get(caller, deque()), self._clock()
        while times and times[0] <= now - FAILURES_S:
            times.popleft()
        return times[0] + FAILURES_S - now if len(times) >= MOST_FAILURES else 0.0

    def note(self, caller: str) -> None:
        """Count a failure. Callers without one within the minute are forgotten once there are many."""
        if len(self._times) >= MOST_LOGINS:
            now = self._clock()
            self._times = {name: times for name, times in self._times.items() if times[-1] > now - FAILURES_S}
        self._times.setdefault(caller, deque()).append(self._clock())


def _digest(cookie: str) -> bytes:
    return hashlib.sha256(cookie.encode("utf-8", "surrogatepass")).digest()
