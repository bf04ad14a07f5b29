"""The qmd server: `/mcp` and the qmd endpoints on HTTP, standard input and output, or both, on one engine."""

from __future__ import annotations

import logging
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

import anyio
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from commonplace.errors import CommonplaceError
from commonplace.qmd.http.routes import Details, allowed_hosts, routes
from commonplace.server.auth import Authentication, Gate, metadata_address, metadata_routes
from commonplace.server.guard import OriginGuard
from commonplace.server.heads import Heads
from commonplace.server.http import Farewell, own_hosts
from commonplace.server.limits import Patience
from commonplace.server.mcp import PATIENCE_S, make_server, serve_input
from commonplace.server.principal import Principal
from commonplace.server.rest import error_response
from commonplace.server.service import Service
from commonplace.server.stdio import end_signals
from commonplace.server.transport import ProfileEndpoint
from commonplace.server.watching import Watching
from commonplace.web.site import Site

log = logging.getLogger(__name__)

PROFILE = "qmd"


@dataclass(frozen=True, slots=True)
class Plan:
    """The parts of a server. `listener` is bound already; `say` gets sentences for the person at the log.

    `signals` are SIGTERM and SIGINT that came before it began.
    """

    principal: Principal
    gate: Gate
    listener: socket.socket | None = None
    stdio: bool = False
    watch: bool = False
    say: Callable[[str], None] = log.info
    signals: Sequence[int] = ()


def make_qmd_app(service: Service, gate: Gate) -> Starlette:
    """Return the app with all that is served over HTTP. The caller closes the service and the gate."""
    settings = service.settings
    endpoint = ProfileEndpoint(service, service.registry(PROFILE), make_server)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with endpoint.run():
            yield

    app = Starlette(
        routes=[
            Route("/mcp", endpoint),
            Route(f"/mcp/{PROFILE}", endpoint),
            *routes(service),
            *metadata_routes(settings),
        ],
        middleware=[
            Middleware(Details),
            Middleware(OriginGuard, hosts=[*own_hosts(settings), *allowed_hosts()]),
            Middleware(Site, service=service, gate=gate),
            Middleware(Authentication, gate=gate, metadata_url=metadata_address(settings)),
            Middleware(Patience, seconds=settings.idle_seconds),
        ],
        exception_handlers={HTTPException: _routing_error, CommonplaceError: error_response},
        lifespan=lifespan,
    )

    def farewell() -> None:
        service.changes.close()
        endpoint.hang_up()

    app.state.farewell = farewell
    app.state.idle_seconds = settings.idle_seconds
    return app


def _routing_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101  # no other is sent here
    refusal = {"detail": f"{error.detail}: {request.method} {request.url.path}", "status_code": error.status_code}
    return JSONResponse(refusal, status_code=error.status_code, headers=error.headers)


def serve(service: Service, plan: Plan) -> None:
    """Serve until a signal, or until standard input ends if it is served. Calls under way get their time."""
    try:
        with _watching(service, plan):
            anyio.run(_serve, service, plan)
    finally:
        plan.gate.close()
        service.close()


async def _serve(service: Service, plan: Plan) -> None:
    async with end_signals(plan.signals) as ending:
        server = _Server(service, plan.gate) if plan.listener else None

        async def serve_one() -> None:
            await serve_input(service, PROFILE, plan.principal, ending)
            ending.set()

        async def serve_many(server: _Server, listener: socket.socket) -> None:
            await server.serve(sockets=[listener])
            ending.set()

        async with anyio.create_task_group() as tasks:
            if server is not None and plan.listener is not None:
                tasks.start_soon(serve_many, server, plan.listener)
            if plan.stdio:
                tasks.start_soon(serve_one)
            await ending.wait()
            if server is not None:
                server.should_exit = True


class _Server(Farewell):
    """A server that ends when its task is told to: signals are handled outside of it."""

    def __init__(self, service: Service, gate: Gate) -> None:
        config = uvicorn.Config(
            make_qmd_app(service, gate),
            http=Heads,
            access_log=False,
            log_config=None,
            timeout_graceful_shutdown=int(PATIENCE_S),
        )
        super().__init__(config)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextmanager
def _watching(service: Service, plan: Plan) -> Iterator[None]:
    """Keep collections level with their folders during the block, if the plan says so."""
    if not plan.watch:
        yield
        return
    watching = Watching(service.libraries, service.embed_soon, plan.say)
    watching.visit(plan.principal.space)
    try:
        yield
    finally:
        watching.close()
