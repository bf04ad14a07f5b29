"""What stands before every request over HTTP: who may ask from where, and heads that are well formed."""

from __future__ import annotations

import asyncio
import ipaddress
from collections import deque
from collections.abc import Iterable, Sequence
from functools import lru_cache
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from commonplace.server.limits import too_late

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
"""The most common names of this machine; all of 127.0.0.0/8 is its own too."""


class OriginGuard:
    """ASGI middleware that refuses a request unless its Host, and its Origin if it has one, is served here."""

    def __init__(self, app: ASGIApp, hosts: Iterable[str] = ()) -> None:
        self._app = app
        self._hosts = LOOPBACK | {host.lower().strip("[]") for host in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or self._allows(scope["headers"]):
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket" and "websocket.http.response" not in scope.get("extensions", {}):
            await send({"type": "websocket.close", "code": 1008})
        else:
            error = {"code": "denied", "message": "This server answers only to its own host and to pages it served."}
            await JSONResponse({"error": error}, status_code=403)(scope, receive, send)

    def _allows(self, headers: Sequence[tuple[bytes, bytes]]) -> bool:
        hosts = [f"//{value.decode('latin-1')}" for name, value in headers if name == b"host"]
        origins = [value.decode("latin-1") for name, value in headers if name == b"origin" and value]
        return len(hosts) == 1 and all(map(self._is_ours, (*hosts, *origins)))

    def _is_ours(self, address: str) -> bool:
        name = _name(address)
        return name in self._hosts or _is_loopback(name)


def _is_loopback(name: str | None) -> bool:
    try:
        return ipaddress.ip_address(name or "").is_loopback
    except ValueError:
        return False


@lru_cache(maxsize=256)
def _name(address: str) -> str | None:
    try:
        return urlsplit(address).hostname
    except ValueError:  # such as an unfinished IPv6 address
        return None


MOST_BYTES = 65_536
"""The most bytes of a head, and of what surrounds the pieces of a chunked body.

Bytes that arrive with the last piece are not counted.
"""


class Heads(HttpToolsProtocol):
    """One HTTP connection, closed when a head stops halfway or never begins.

    It is also closed when the rest of a request that is already answered does not come. The app's state has the limit
    in seconds: `idle_seconds`.
    """

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._seconds: float = self.config.app.state.idle_seconds  # type: ignore[union-attr]
        self._waiting: asyncio.TimerHandle | None = None
        self._begun = False
        """Whether a head has begun and not ended yet."""
        self._whole = True
        """Whether the latest request has ended."""
        self._size = 0
        """The bytes of the head, or since the last piece of the body."""
        self._fed = False
        """Whether the latest bytes contain a part of a body."""
        self._earlier: deque[RequestResponseCycle] = deque()
        """Requests behind which others came before they were answered."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait_no_more()
        for cycle in self._earlier:  # uvicorn tells only the one that came last
            cycle.disconnected = not cycle.response_complete
            cycle.message_event.set()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        self._begun, self._whole, self._size = True, False, 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._begun:  # trailers are ignored: the app has seen the headers, and the caller is known
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._begun = False
        self._wait_no_more()
        before = self.cycle
        super().on_headers_complete()
        if before is not None and before is not self.cycle and not before.response_complete:
            while self._earlier and self._earlier[0].response_complete:
                self._earlier.popleft()
            self._earlier.append(before)

    def on_body(self, body: bytes) -> None:
        self._fed = True
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._whole = True
        super().on_message_complete()

    def data_received(self, data: bytes) -> None:
        self._fed = False
        super().data_received(data)
        if self.transport.is_closing():
            self._wait_no_more()
            return
        self._size = 0 if self._fed else self._size + len(data)
        if self._begun and self._size > MOST_BYTES:
            self._refuse(_too_long())
        elif not self._whole and self._size > MOST_BYTES:
            self.transport.close()
        elif self._waiting is None and (self._begun or (self.cycle is not None and self.cycle.response_complete)):
            self._wait()

    def _wait(self) -> None:
        self._waiting = self.loop.call_later(self._seconds, self._give_up)

    def _wait_no_more(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _give_up(self) -> None:
        if self._begun:
            self._refuse(too_late(self._seconds))
        else:
            self.transport.close()

    def _refuse(self, response: Response) -> None:
        """Answer and close; while an earlier request is still being answered, only close after that."""
        self._wait_no_more()
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.keep_alive = False
            self.flow.pause_reading()
            return
        status = HTTPStatus(response.status_code)
        lines = [f"HTTP/1.1 {status.value} {status.phrase}".encode()]
        lines += [b"%s: %s" % header for header in response.raw_headers]
        self.transport.write(b"\r\n".join([*lines, b"", bytes(response.body)]))
        self.transport.close()


def _too_long() -> Response:
    said = f"The address and the headers of a request have at most {MOST_BYTES} bytes. Send less in them."
    error = {"error": {"code": "too_large", "message": said}}
    return JSONResponse(error, status_code=431, headers={"Connection": "close"})
