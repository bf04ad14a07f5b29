"""Protection from requests that a page of another site makes a browser send: Host and Origin must be ours."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from functools import lru_cache
from urllib.parse import urlsplit

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

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
