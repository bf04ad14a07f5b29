"""The server on HTTP: the protocol at /mcp, plain calls under /api/v1, on this machine only."""

from __future__ import annotations

from urllib.parse import urlsplit

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from commonplace.library import Library
from commonplace.server.mcp import make_registry, make_server
from commonplace.server.rest import routes

HOST = "127.0.0.1"
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


class LoopbackGuard:
    """Refuses requests that a page of another site made a browser send: their Host or Origin is not this machine."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or _is_local(dict(scope["headers"])):
            await self._app(scope, receive, send)
            return
        error = {"code": "denied", "message": "Only requests from this machine to this machine are served."}
        await JSONResponse({"error": error}, status_code=403)(scope, receive, send)


def _is_local(headers: dict[bytes, bytes]) -> bool:
    host = urlsplit(f"//{headers.get(b'host', b'').decode('latin-1')}").hostname
    origin = headers.get(b"origin", b"").decode("latin-1")
    return host in _LOOPBACK and (not origin or urlsplit(origin).hostname in _LOOPBACK)


def make_app(library: Library) -> Starlette:
    """Everything a client can reach over HTTP."""
    registry = make_registry(library)
    app = make_server(library, registry).streamable_http_app(
        host=HOST, json_response=True, custom_starlette_routes=routes(library, registry)
    )
    app.user_middleware.insert(0, Middleware(LoopbackGuard))
    return app


def serve_http(library: Library, port: int) -> None:
    """Serve any number of clients until told to stop. Loopback only: there are no users yet."""
    uvicorn.run(make_app(library), host=HOST, port=port, log_level="warning")
