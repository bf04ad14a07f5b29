"""The server on HTTP: MCP at /mcp, WebSocket at /ws, plain calls under /api/v1."""

from __future__ import annotations

import gc
import resource
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from importlib import import_module
from urllib.parse import urlsplit

import uvicorn
from sse_starlette.sse import AppStatus
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from commonplace.errors import CommonplaceError
from commonplace.profiles.registry import DEFAULT, profile_names
from commonplace.server.auth import INSTANCES, Authentication, Gate, metadata_address, metadata_routes
from commonplace.server.heads import Heads, OriginGuard
from commonplace.server.instances import InstanceDoor
from commonplace.server.limits import Patience
from commonplace.server.mcp import make_server
from commonplace.server.metrics import Metrics
from commonplace.server.rest import error_response, routes
from commonplace.server.service import Service
from commonplace.server.transport import MakeServer, ProfileEndpoint, memory_body_bytes
from commonplace.server.websocket import Connections, WebSocketProtocol
from commonplace.settings import Settings
from commonplace.tools.tool import View

ALIVE = "/health"
"""The path of the health check that clients of other servers use."""
_EVERYWHERE = ("", "0.0.0.0", "::")  # noqa: S104
"""The hosts that mean every address; no client can use one as a name."""
QMD_ENDPOINTS = "commonplace.qmd.http_server"
"""The module of qmd's endpoints, found by name: it is built on the server."""
PAGE = "commonplace.web.site"
"""The module of the page for people, found by name: it is built on the server."""
QMD = "/qmd"
"""The path that the qmd endpoints are under."""


def make_app(
    settings: Settings,
    gate: Gate,
    make_server: MakeServer = make_server,
    *,
    first: str = DEFAULT,
    view: View = View(),
    host: str = "",
) -> Starlette:
    """Return the app with all that is served over HTTP; `first` is the profile at /mcp, `host` where it listens.

    Its lifespan opens and closes the service.
    """
    qmd = import_module(QMD_ENDPOINTS)
    metrics = Metrics()
    service = Service(settings, metrics.observe, view)
    metrics.watch(service)
    registries = {name: service.registry(name) for name in profile_names()}
    endpoints = {name: ProfileEndpoint(service, registry, make_server) for name, registry in registries.items()}
    connections = Connections(service, gate, make_server)
    instances = InstanceDoor(service)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            stack.callback(gate.close)
            stack.callback(service.close)
            for endpoint in endpoints.values():
                await stack.enter_async_context(endpoint.run())
            await stack.enter_async_context(instances.run())
            service.begin()
            yield

    paths: list[BaseRoute] = [Route(f"{INSTANCES}{{name}}", instances)]
    for name, endpoint in endpoints.items():
        places = ("", f"/{name}") if name == first else (f"/{name}",)
        paths += [Route(f"/mcp{place}", endpoint) for place in places]
        paths += [connections.route(f"/ws{place}", registries[name]) for place in places]
    paths += [*routes(service, registries["all"], metrics), *qmd.routes(service, QMD), *metadata_routes(settings)]
    paths.append(Route(ALIVE, _alive, methods=["GET"]))
    app = Starlette(
        routes=paths,
        middleware=[
            Middleware(qmd.Details, prefix=QMD),
            Middleware(OriginGuard, hosts=[*own_hosts(settings, host), *qmd.allowed_hosts()]),
            Middleware(import_module(PAGE).Site, service=service, gate=gate),
            Middleware(Authentication, gate=gate, metadata_url=metadata_address(settings), also_open=(ALIVE,)),
            Middleware(Patience, seconds=settings.idle_seconds),
        ],
        exception_handlers={HTTPException: _routing_error, CommonplaceError: error_response},
        lifespan=lifespan,
    )

    def farewell() -> None:
        service.changes.close()
        instances.hang_up()
        for endpoint in endpoints.values():
            endpoint.hang_up()

    app.state.farewell = farewell
    app.state.idle_seconds = settings.idle_seconds
    return app


def _routing_error(request: Request, error: Exception) -> Response:
    """Return the answer to an unknown address or a wrong method, in the form of every other error."""
    assert isinstance(error, HTTPException)  # noqa: S101  # no other is sent here
    path, headers = request.url.path, dict(error.headers or {})
    if error.status_code == 405:
        allowed = ", ".join(sorted(headers.get("Allow", "").split(", ")))
        code, said = "invalid_argument", f"{request.method} does not go to {path}. Use {allowed}."
    else:
        code, said = "not_found", f"There is nothing at {path}. See /openapi.json for the tools; MCP is at /mcp."
    return JSONResponse({"error": {"code": code, "message": said}}, status_code=error.status_code, headers=headers)


async def _alive(request: Request) -> Response:
    return JSONResponse({"status": "ok"})


def own_hosts(settings: Settings, host: str = "") -> list[str]:
    """Return the host names of this server beside this machine's own; `host` is where it listens."""
    named = [host.strip() for host in settings.hosts.split(",") if host.strip()]
    public = urlsplit(settings.public_url).hostname if settings.public_url else None
    return [*named, *([public] if public else []), *([host] if host not in _EVERYWHERE else [])]


class PortTaken(CommonplaceError):
    """The error that the address to listen on is in use, or is not this machine's."""

    code, status, exit_code = "port_taken", 503, 1


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens there. Raise PortTaken with the reason."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise PortTaken(
            f"{host}:{port} cannot be listened on: {error.strerror or error}. Give another --port, or end what uses it."
        ) from error


def serve_http(
    settings: Settings,
    gate: Gate,
    host: str,
    port: int,
    *,
    proxy_headers: bool = False,
    make_server: MakeServer = make_server,
    first: str = DEFAULT,
    view: View = View(),
    ready: Callable[[int], None] = lambda port: None,
) -> None:
    """Serve any number of clients until told to stop. `ready` gets the port once it is listened on."""
    listen(host, port).close()  # an address that is taken is reported before anything is opened
    _allow_many_files()
    # It would cut off calls under way; streams that only listen are closed in `Farewell.shutdown`.
    AppStatus.disable_automatic_graceful_drain()  # type: ignore[no-untyped-call]
    config = uvicorn.Config(
        make_app(settings, gate, make_server, first=first, view=view, host=host),
        host=host,
        port=port,
        access_log=False,
        log_config=None,  # its lines go where ours go (`logs.py`), without colors
        proxy_headers=proxy_headers,
        http=Heads,
        ws=WebSocketProtocol,
        ws_max_size=max(settings.body_bytes, memory_body_bytes(settings)),
        ws_per_message_deflate=False,  # a hundred kilobytes would be a hundred megabytes here
        timeout_graceful_shutdown=5,
    )
    server = Farewell(config, ready)
    gc.freeze()  # what is there now stays: looking it through for garbage again and again costs a fifth of a call
    server.run()
    if not server.started:
        sys.exit(3)  # as uvicorn's own command does; it has said why


class Farewell(uvicorn.Server):
    """The server, which ends streams that only listen before it waits for requests to end: these would not."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[int], None] = lambda port: None) -> None:
        super().__init__(config)
        self._ready = ready

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Run until told to end. uvicorn would raise the signal again at the end, as if the process had failed."""
        before = {number: signal.signal(number, self._end) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            super().run(sockets)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _end(self, number: int, frame: object) -> None:
        """Note a signal, also before uvicorn listens for signals: it then ends as soon as it has started."""
        self.should_exit = True

    def handle_exit(self, sig: int, frame: object) -> None:
        """End at the first signal and ignore a second: some terminals and wrappers send every interrupt twice."""
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for server in self.servers:
            for listener in server.sockets:
                _limit_unread_time(listener, self.config.app.state.idle_seconds)  # type: ignore[union-attr]
        self._ready(self.servers[0].sockets[0].getsockname()[1])

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.config.app.state.farewell()  # type: ignore[union-attr]
        await super().shutdown(sockets)


def _limit_unread_time(listener: socket.socket, seconds: int) -> None:
    """Have the system drop a connection whose client reads nothing of its answer for `seconds`, even a closed one."""
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # which its connections have from the socket that they come through
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, min(1000 * seconds, 2**31 - 1))


def _allow_many_files() -> None:
    """Raise the limit of open files: each connection is one, and many systems allow 1,024 unless a process asks."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65_536), hard))
