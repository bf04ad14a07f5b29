"""Requests that a page of another site made a browser send, kept out: the Host and Origin must be ours."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from urllib.parse import urlsplit

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


class OriginGuard:
    """Lets a request through when its Host, and its Origin if it has one, is among those served here."""

    def __init__(self, app: ASGIApp, hosts: Iterable[str] = ()) -> None:
        self._app = app
        self._hosts = LOOPBACK | frozenset(hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or self._allows(dict(scope["headers"])):
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket" and "websocket.http.response" not in scope.get("extensions", {}):
            await send({"type": "websocket.close", "code": 1008})
        else:
            error = {"code": "denied", "message": "This server answers only to its own host and to pages it served."}
            await JSONResponse({"error": error}, status_code=403)(scope, receive, send)

    def _allows(self, headers: dict[bytes, bytes]) -> bool:
        origin = headers.get(b"origin", b"").decode("latin-1")
        host = headers.get(b"host", b"").decode("latin-1")
        return _name(f"//{host}") in self._hosts and (not origin or _name(origin) in self._hosts)


@lru_cache(maxsize=256)
def _name(address: str) -> str | None:
    try:
        return urlsplit(address).hostname
    except ValueError:  # such as an unfinished IPv6 address
        return None
