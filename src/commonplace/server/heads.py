"""The head of a request, which the app sees only once it is whole: how long it is waited for, and how long it is."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any

from starlette.responses import JSONResponse, Response
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from commonplace.server.limits import too_late

MOST_BYTES = 65_536
"""How long a head may be; what comes with its last piece is not counted."""


class Heads(HttpToolsProtocol):
    """One connection as the server has it, which gives up on half of a head, and on who never begins one.

    The app's state says after how many seconds: `idle_seconds`.
    """

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._seconds: float = self.config.app.state.idle_seconds  # type: ignore[union-attr]
        self._waiting: asyncio.TimerHandle | None = None
        self._begun = False
        """Whether a head has begun and not ended."""
        self._size = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait_no_more()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        self._begun, self._size = True, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._begun = False
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if not self._begun or self.transport.is_closing():
            self._wait_no_more()
            return
        self._size += len(data)
        if self._size > MOST_BYTES:
            self._refuse(_too_long())
        elif self._waiting is None:
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
        """Answer and hang up; only hang up, once it is sent, where an answer to an earlier request is under way."""
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
