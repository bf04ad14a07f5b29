"""Which requests of a connection still wait for their answers: its end comes after them."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

import anyio
import mcp_types as types

_NEVER_ANSWERED = frozenset({"subscriptions/listen"})
"""Requests that go on as long as their connection does."""


class Answers:
    """The way a connection's answers go, which knows what has been asked and not answered."""

    def __init__(self, write: Any) -> None:
        self._write = write
        self._asked: set[Any] = set()
        self._answered = anyio.Event()

    def expect(self, incoming: Any) -> None:
        """Note what a message from the client asks for, or takes back."""
        message = getattr(incoming, "message", None)
        if isinstance(message, types.JSONRPCRequest) and message.method not in _NEVER_ANSWERED:
            self._asked.add(message.id)
        elif isinstance(message, types.JSONRPCNotification) and message.method == "notifications/cancelled":
            self._drop((message.params or {}).get("requestId"))

    async def settle(self, seconds: float) -> None:
        """Wait until everything is answered, but not longer than that."""
        with anyio.move_on_after(seconds):
            while self._asked:
                self._answered = anyio.Event()
                await self._answered.wait()

    async def send(self, outgoing: Any) -> None:
        await self._write.send(outgoing)
        if isinstance(outgoing.message, types.JSONRPCResponse | types.JSONRPCError):
            self._drop(outgoing.message.id)

    def _drop(self, identity: Any) -> None:
        self._asked.discard(identity)
        self._answered.set()

    async def aclose(self) -> None:
        await self._write.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
