"""The qmd server: `/mcp` and the qmd endpoints on HTTP, standard input and output, or both, on one engine."""

from __future__ import annotations

import json
import logging
import os
import re
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import anyio
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from commonplace.errors import CommonplaceError, Denied, InvalidInput, TooLarge, Unavailable
from commonplace.library import Library
from commonplace.model import JSON
from commonplace.qmd.tools.index_status import record, state
from commonplace.server.auth import Authentication, Gate, metadata_address, metadata_routes
from commonplace.server.background import Watching
from commonplace.server.calls import Failure
from commonplace.server.heads import Heads, OriginGuard
from commonplace.server.http import Farewell, own_hosts
from commonplace.server.limits import Patience, aside, come_back_in
from commonplace.server.mcp import PATIENCE_S, make_server, serve_input
from commonplace.server.principal import Principal
from commonplace.server.rest import error_response, read_object
from commonplace.server.service import Service, Visitor
from commonplace.server.stdio import end_signals
from commonplace.server.transport import ProfileEndpoint, read_body
from commonplace.tools.tool import Reply
from commonplace.web.site import Site

MOST_TEXTS = 1000
_SNAKE = re.compile(r"_([a-z])")
_FIND = ("search", "vsearch", "query")
_READ = ("get", "multi_get")


def routes(service: Service, prefix: str = "") -> list[Route]:
    """Return the endpoints under a prefix. `scope["principal"]` has been set by the middleware."""
    registry = service.registry("qmd")
    started = time.monotonic()

    async def answered(request: Request, name: str) -> Reply:
        arguments = await _arguments(request, service.settings.body_bytes)
        if name == "search" and "searches" in arguments:
            name = "query"
        tool = registry.find(name)
        assert tool is not None  # noqa: S101  # the profile has them all
        answer = await service.call(Visitor(request.scope["principal"]), registry, tool, arguments)
        if isinstance(answer, Failure):
            raise _Refused(answer)
        return answer

    async def find(request: Request) -> Response:
        reply = await answered(request, _last(request))
        return JSONResponse({**(reply.structured or {}), "content": reply.content[0]["text"]})

    async def read(request: Request) -> Response:
        reply = await answered(request, _last(request))
        return JSONResponse({"content": list(reply.content)})

    async def status(request: Request) -> Response:
        return JSONResponse(record(await _work(service, request, state)))

    async def embed(request: Request) -> Response:
        texts, kind = _texts(await _arguments(request, service.settings.body_bytes))
        return JSONResponse(await _work(service, request, lambda library: _embedded(library, texts, kind)))

    async def health(request: Request) -> Response:
        uptime = round(time.monotonic() - started, 3)
        try:
            loaded = await service.work(request.scope["principal"].space, _loaded)
        except CommonplaceError:
            return JSONResponse({"status": "unhealthy", "model_loaded": False, "uptime": uptime}, status_code=503)
        return JSONResponse({"status": "healthy", "model_loaded": loaded, "uptime": uptime})

    return [
        *(Route(f"{prefix}/{name}", _with_details(find), methods=["POST"]) for name in _FIND),
        *(Route(f"{prefix}/{name}", _with_details(read), methods=["POST"]) for name in _READ),
        Route(f"{prefix}/status", _with_details(status), methods=["GET"]),
        Route(f"{prefix}/embed", _with_details(embed), methods=["POST"]),
        Route(f"{prefix}/health", _with_details(health), methods=["GET"]),
    ]


def allowed_hosts(environment: Mapping[str, str] = os.environ) -> list[str]:
    """Return the host names that `QMD_ALLOWED_HOSTS` and `QMD_ALLOWED_ORIGINS` add to this machine's own."""
    named: list[str] = []
    for variable in ("QMD_ALLOWED_HOSTS", "QMD_ALLOWED_ORIGINS"):
        for entry in filter(None, map(str.strip, environment.get(variable, "").split(","))):
            host = urlsplit(entry if "://" in entry else f"//{entry}").hostname
            named += [host] if host else []
    return named


class Details:
    """ASGI middleware that rewrites errors made before these endpoints into their form."""

    def __init__(self, app: ASGIApp, prefix: str = "") -> None:
        names = (*_FIND, *_READ, "status", "embed", "health")
        self._app, self._paths = app, frozenset(f"{prefix}/{name}" for name in names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] not in self._paths:
            await self._app(scope, receive, send)
            return
        start: MutableMapping[str, Any] | None = None
        body = bytearray()

        async def detailing(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start" and message["status"] >= 400:
                start = message
            elif start is None:
                await send(message)
            else:
                body.extend(message.get("body", b""))
                if not message.get("more_body"):
                    await _detailed(start, bytes(body))(scope, receive, send)

        await self._app(scope, receive, detailing)


def _detailed(start: MutableMapping[str, Any], body: bytes) -> Response:
    status = start["status"]
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in start["headers"]}
    kept = {name: value for name, value in headers.items() if name.lower() not in ("content-length", "content-type")}
    try:
        said = json.loads(body)
    except ValueError:
        return _refusal(status, body.decode("utf-8", "replace"), kept)
    if isinstance(said, dict) and "detail" not in said and "status" not in said:
        error = said.get("error", said)
        said = {"detail": error.get("message", str(error)) if isinstance(error, dict) else str(error)}
        return _refusal(status, str(said["detail"]), kept)
    return JSONResponse(said, status_code=status, headers=kept)


class _Refused(Exception):
    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


def _with_details(endpoint: Any) -> Any:
    """Return an endpoint whose failures are `{"detail": sentence, "status_code": n}`."""

    async def saying(request: Request) -> Response:
        try:
            response: Response = await endpoint(request)
        except _Refused as refused:
            retry: Any = refused.failure.details.get("retry_after")
            headers = None if retry is None else come_back_in(retry)
            return _refusal(refused.failure.status, refused.failure.message, headers)
        except CommonplaceError as error:
            return _refusal(error.status, str(error))
        return response

    return saying


def _refusal(status: int, sentence: str, headers: Mapping[str, str] | None = None) -> Response:
    return JSONResponse({"detail": sentence, "status_code": status}, status_code=status, headers=headers)


def _last(request: Request) -> str:
    return str(request.url.path.rsplit("/", 1)[-1])


async def _arguments(request: Request, most: int) -> dict[str, JSON]:
    """Return the object in the body, with `min_score` as `minScore`. Raise TooLarge or InvalidInput."""
    body = await read_body(request, most)
    if body is None:
        raise TooLarge(f"A request has at most {most} bytes. Send less at once.")
    given = await aside(read_object, body or b"{}")
    return {_SNAKE.sub(lambda letter: letter[1].upper(), name): value for name, value in given.items()}


async def _work(service: Service, request: Request, task: Any) -> Any:
    principal = request.scope["principal"]
    if not principal.may("read"):
        raise Denied("This needs a key with the read scope.")
    if principal.collections:
        raise Denied("This shows the whole library, and the key is limited to collections of documents.")
    return await service.run_in_thread(principal.space, task)


def _texts(given: Mapping[str, JSON]) -> tuple[list[str], str]:
    unknown = ", ".join(sorted(given.keys() - {"texts", "kind"}))
    if unknown:
        raise InvalidInput(f'There is no argument "{unknown}". It takes: texts, kind.')
    texts, kind = given.get("texts"), given.get("kind", "document")
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise InvalidInput("texts must be a list of strings.")
    if kind not in ("document", "query"):
        raise InvalidInput("kind must be one of document, query.")
    if not texts:
        raise InvalidInput("Empty texts list")
    if len(texts) > MOST_TEXTS:
        raise TooLarge(f"Too many texts ({len(texts)} > {MOST_TEXTS})")
    return texts, str(kind)


def _embedded(library: Library, texts: list[str], kind: str) -> dict[str, JSON]:
    try:
        embedder = library.embedding.embedder()
        vectors = embedder.embed_queries(texts) if kind == "query" else embedder.embed_passages(texts)
    except Unavailable:
        raise Unavailable("Model not loaded") from None
    return {"embeddings": vectors.tolist(), "model": embedder.name, "dimensions": embedder.dims}


def _loaded(library: Library) -> bool:
    library.store.last_change()
    return library.embedding.is_loaded


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
