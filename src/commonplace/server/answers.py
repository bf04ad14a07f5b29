"""The answers a connection still owes: its end comes after them."""

from __future__ import annotations

import re
from collections import Counter
from types import TracebackType
from typing import Any, Self

import anyio
import mcp_types as types
from anyio import to_thread
from mcp.shared.dispatcher import as_request_id, coerce_request_id
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from commonplace.errors import LONE_SURROGATE
from commonplace.server.flaws import envelope_of, has_lone_surrogate, mark_flaw

_NEVER_ANSWERED = frozenset({"subscriptions/listen"})
"""Requests that last as long as their connection."""
MOST_OWED = 100
"""How many unanswered requests a connection may have: a client that asks on without reading has to wait."""
_HALF = re.compile("[\ud800-\udfff]")
_WHAT_TO_SEND = "Send one message at a time, a JSON object."
_TOO_MUCH = (
    "This is nested too deep, or has a number too long, to be read. Send less of it, and such a number as a string."
)


class Answers:
    """The outgoing side of a connection, with a count of the requests that are not answered yet."""

    def __init__(self, write: Any) -> None:
        self._write = write
        self._asked: Counter[Any] = Counter()
        self._answered = anyio.Event()

    def expect(self, incoming: Any) -> None:
        """Count a request from the client as unanswered, or drop one that it cancels."""
        message = getattr(incoming, "message", None)
        if isinstance(message, types.JSONRPCRequest) and message.method not in _NEVER_ANSWERED:
            self._asked[coerce_request_id(message.id)] += 1
        elif isinstance(message, types.JSONRPCNotification) and message.method == "notifications/cancelled":
            asked = as_request_id((message.params or {}).get("requestId"))
            if asked is not None:  # the SDK passes over what names no request
                self._drop(asked)

    async def refuse(self, error: Exception) -> None:
        """Answer input that is no message, which the SDK would ignore silently while its sender waits."""
        flaws = error.errors(include_url=False) if isinstance(error, ValidationError) else []
        read = [flaw["input"] for flaw in flaws]
        code, what = types.INVALID_REQUEST, f"This is not a message of JSON-RPC 2.0. {_WHAT_TO_SEND}"
        if (text := _no_json(error)) is not None:
            if not text.strip():
                return  # a blank line is nothing
            if (request := await to_thread.run_sync(envelope_of, text)) is None:
                code, what = types.PARSE_ERROR, f"This is not JSON. {_WHAT_TO_SEND}"
            else:
                read, what = [request], LONE_SURROGATE if has_lone_surrogate(text) else _TOO_MUCH
        ids = (part["id"] for part in read if isinstance(part, dict) and _is_writable_id(part.get("id")))
        said = types.ErrorData(code=code, message=what)
        await self.send(SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=next(ids, None), error=said)))

    @property
    def owed(self) -> bool:
        """True if the client waits for an answer."""
        return bool(self._asked)

    async def settle(self, seconds: float) -> None:
        """Wait until everything is answered, but not longer than `seconds`."""
        with anyio.move_on_after(seconds):
            while self._asked:
                self._answered = anyio.Event()
                await self._answered.wait()

    async def wait_for_room(self, incoming: Any) -> None:
        """Wait with a request until fewer than `MOST_OWED` are unanswered: unread answers stay in memory."""
        asks = isinstance(getattr(incoming, "message", None), types.JSONRPCRequest)
        while asks and self._asked.total() >= MOST_OWED:
            self._answered = anyio.Event()
            await self._answered.wait()

    async def send(self, outgoing: Any) -> None:
        try:
            await self._write.send(outgoing)
        finally:  # where it cannot be sent, nobody waits for it
            if isinstance(outgoing.message, types.JSONRPCResponse | types.JSONRPCError):
                self._drop(outgoing.message.id)

    def _drop(self, identity: Any) -> None:
        self._asked -= Counter([coerce_request_id(identity)])  # as the SDK takes 7 and "7" for one
        self._answered.set()

    async def aclose(self) -> None:
        await self._write.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


async def recover_message(error: Exception) -> SessionMessage | Exception:
    """Return the same error, or the message if it is a call that only its arguments made unreadable, its flaw marked.

    Runs in a thread, as `envelope_of` does, so that a large message delays nobody else.
    """
    text = _no_json(error)
    if text is None:
        return error
    try:
        marked = await to_thread.run_sync(mark_flaw, text)
        return SessionMessage(types.jsonrpc_message_adapter.validate_json(marked, by_name=False))
    except ValueError:
        return error


def _is_writable_id(identity: Any) -> bool:
    """Return whether an answer can name this request: writing half of a surrogate pair would raise."""
    return type(identity) is int or (type(identity) is str and not _HALF.search(identity))


def _no_json(error: Exception) -> str | None:
    """Return the text that was not readable as JSON; None where something else is wrong."""
    flaws = error.errors(include_url=False) if isinstance(error, ValidationError) else []
    return str(flaws[0]["input"]) if flaws and flaws[0]["type"] == "json_invalid" else None
