"""MCP over HTTP: one endpoint per profile, both protocol eras, sessions that any process of the home can serve."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast
from weakref import WeakKeyDictionary

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.streamable_http import StreamableHTTPServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Message, Receive, Scope, Send

from commonplace.errors import CommonplaceError, Denied, RateLimited, WritesDisabled
from commonplace.library import Library
from commonplace.server.flaws import mark_flaw_in_body
from commonplace.server.limits import aside, come_back_in
from commonplace.server.mcp import Context, client_of, meta_config
from commonplace.server.principal import Principal
from commonplace.server.service import Service, Visitor
from commonplace.settings import Settings
from commonplace.tools.profile import Registry
from commonplace.tools.sessions import Session
from commonplace.tools.tool import Tool

_MIB = 1 << 20
HEADER = "mcp-session-id"
METERED = "commonplace.metered"
"""The key in a request's scope that says its call has been taken off the caller's allowance."""
MOST_CONNECTIONS = 1000
"""The most connections of a profile's sessions in this process, if one is idle: each takes 40 KB."""
_NO_QUERY = QueryParams()
MakeServer = Callable[[Service, Registry, Callable[[Context], Visitor]], Server[Any]]


def visitor_of(context: Context) -> Visitor:
    """Return the visitor of a request over HTTP; the middleware has set its principal."""
    request: Request = cast(Request, context.request)
    query = request.query_params if request.scope["query_string"] else _NO_QUERY
    # In the stateless era there is no such header, and a client could have made it up.
    session_id = request.headers.get(HEADER) if context.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS else None
    return Visitor(
        principal=request.scope["principal"],
        session=query.get(HEADER) or session_id,
        config=meta_config(context) or query.get("config"),
        metered=METERED in request.scope,
        collections=collections_of(query),
        client=client_of(context),
    )


def collections_of(query: QueryParams) -> tuple[str, ...]:
    """Return the names in an address's `?collections=A,B`, which may occur more than once."""
    return tuple(filter(None, map(str.strip, ",".join(query.getlist("collections")).split(","))))


class ProfileEndpoint:
    """An ASGI app that serves one profile over MCP.

    The handshake era has sessions. The SDK generates their ids, and the space's store has them, so that they belong to
    one principal, end for every process at once, and outlive the process that issued them: another one serves their
    calls without the connection's own state, which only server-to-client requests need.
    """

    def __init__(self, service: Service, registry: Registry, make_server: MakeServer) -> None:
        server = make_server(service, registry, visitor_of)
        most_bytes = most_body_bytes(service.settings, registry)
        self._service, self._most_bytes = service, most_bytes
        self._registry, self._exact = registry, registry.profile.exact
        self._stateful = StreamableHTTPSessionManager(
            server, session_idle_timeout=service.settings.session_ttl_seconds, max_request_body_size=most_bytes
        )
        self._stateless = StreamableHTTPSessionManager(server, stateless=True, max_request_body_size=most_bytes)
        self._here = self._stateful._server_instances
        """The sessions whose connections are in this process: the SDK's own, which it has no public name for."""
        self._owners: WeakKeyDictionary[Any, tuple[str, str]] = WeakKeyDictionary()
        """The space and principal of each: anybody may name a session of their own after another's."""

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        async with self._stateful.run(), self._stateless.run():
            yield

    def hang_up(self) -> None:
        """End streams that only listen and would never end; calls under way have streams of their own."""
        for connection in self._here.values():
            connection.close_standalone_sse_stream()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Blanks around a header's value are no part of it, but httptools leaves those after it. A stream that broke off
        # is not taken up again: whoever asks for that gets a new one, where the SDK would give no answer at all.
        sent = ((name, value) for name, value in scope["headers"] if name != b"last-event-id")
        scope["headers"] = [(name, value.strip(b" \t")) for name, value in sent]
        request = Request(scope, receive)
        principal: Principal = scope["principal"]
        if int(request.headers.get("content-length", 0)) > self._most_bytes:  # in words that clients show
            await self._too_large()(scope, receive, send)
            return
        if request.method == "POST" and (self._exact or self._service.settings.limits_calls):
            replay = await self._read_ahead(request, receive, send)
            if replay is None:
                return
            receive = replay
        session = request.headers.get(HEADER)
        era = request.headers.get("mcp-protocol-version")
        if era is not None and era not in HANDSHAKE_PROTOCOL_VERSIONS:
            await self._stateful.handle_request(scope, receive, send)
        elif session is None:
            await self._begin(principal, request, receive, send)
        elif not await self._knows(principal, session):
            await _error(404, types.INVALID_REQUEST, "Session not found")(scope, receive, send)
        elif session in self._here:
            await self._in_session(session, principal, scope, receive, send)
        elif request.method == "POST":
            await self._stateless.handle_request(scope, receive, send)
        elif request.method == "DELETE":
            await self._end(principal, session)
            await Response(status_code=200)(scope, receive, send)
        else:
            await Response(status_code=405, headers={"Allow": "POST, DELETE"})(scope, receive, send)

    async def _begin(self, principal: Principal, request: Request, receive: Receive, send: Send) -> None:
        self._make_room()
        refused: list[str] = []
        registering = self._registering(principal, request, send, refused)
        await self._stateful.handle_request(request.scope, receive, registering)
        for session in refused:
            self._let_go(session)

    def _make_room(self) -> None:
        """Drop the connection that was idle longest, if there are too many; its session goes on without it."""
        if len(self._here) >= MOST_CONNECTIONS:
            session, connection = min(self._here.items(), key=lambda one: _idle_until(one[1]))
            if _idle_until(connection) < math.inf:
                self._let_go(session)

    def _let_go(self, session: str) -> None:
        connection = self._here.pop(session, None)
        if connection is not None and connection.idle_scope is not None:
            connection.idle_scope.cancel()

    async def _in_session(self, session: str, principal: Principal, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "DELETE":
            await self._end(principal, session)
        await self._stateful.handle_request(scope, receive, send)

    async def _knows(self, principal: Principal, session: str) -> bool:
        """Return whether this is a session of this principal that is alive, and note that it is in use."""
        if session in self._here and self._owners.get(self._here[session]) != (principal.space, principal.name):
            return False

        def find(library: Library) -> Session | None:
            return library.sessions.of(principal.name).find(session)

        known = await self._service.look(principal.space, find)
        if known is not None and known.fades:
            await self._service.work(principal.space, lambda library: known.touch())
        return known is not None

    async def _end(self, principal: Principal, session: str) -> None:
        await self._service.work(principal.space, lambda library: library.sessions.of(principal.name).end(session))

    def _registering(self, principal: Principal, request: Request, send: Send, refused: list[str]) -> Send:
        """Return a `send` that stores the session a reply announces before the client gets it, or answers the error.

        A session that could not be stored is added to `refused`.
        """

        async def registering(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = {name.decode("latin-1").lower(): value for name, value in message["headers"]}
                if message["status"] < 400 and HEADER in headers:
                    session = headers[HEADER].decode("latin-1")
                    try:
                        await self._register(principal, session, request)
                    except CommonplaceError as error:
                        refused.append(session)
                        refusal = _error(error.status, types.INTERNAL_ERROR, str(error))
                        await refusal(request.scope, request.receive, send)
            if not refused:
                await send(message)

        return registering

    async def _register(self, principal: Principal, session: str, request: Request) -> None:
        client = request.headers.get("user-agent", "")  # for who has not said a name

        def issue(library: Library) -> None:
            sessions = library.sessions.of(principal.name)
            if sessions.find(session) is None:
                sessions.issue(session, client)

        await self._service.work(principal.space, issue)
        if session in self._here:
            self._owners[self._here[session]] = (principal.space, principal.name)

    async def _tool(self, request: Request, name: str) -> Tool | None:
        """Return the tool of a name, or None; subclasses look at who asks."""
        return self._registry.find(name)

    async def _read_ahead(self, request: Request, receive: Receive, send: Send) -> Receive | None:
        """Read a request's body before the SDK does.

        Return what to read the request from now, or None when it has been answered.
        """
        body = await read_body(request, self._most_bytes)
        if body is None:
            await self._too_large()(request.scope, receive, send)
            return None
        if self._exact:
            body = await aside(mark_flaw_in_body, body)
        if self._service.settings.limits_calls and not await self._metered(request, body, receive, send):
            return None
        return _replay(body, receive)

    def _too_large(self) -> Response:
        sentence = f"A request has at most {self._most_bytes} bytes. Send less at once."
        return _error(413, types.INVALID_REQUEST, sentence)

    async def _metered(self, request: Request, body: bytes, receive: Receive, send: Send) -> bool:
        """Take a tool call off the caller's allowance. Return False for one too many, after answering with 429."""
        name, request_id = await aside(_called_tool, body)
        tool = await self._tool(request, name) if name else None
        if tool is not None:
            principal: Principal = request.scope["principal"]
            try:
                self._service.permit(principal, self._registry, tool)
                self._service.meter(principal, tool)
            except (Denied, WritesDisabled):
                return True  # the call itself says so
            except RateLimited as error:
                if self._service.observe:
                    self._service.observe(tool.counted_as, error.code, 0.0)
                refusal = _error(429, types.INVALID_REQUEST, str(error), request_id, error.retry_after)
                await refusal(request.scope, receive, send)
                return False
            request.scope[METERED] = True
        return True


def _idle_until(connection: StreamableHTTPServerTransport) -> float:
    """Return the loop time at which a connection expires; infinity while somebody asks or listens."""
    return math.inf if connection.idle_scope is None else connection.idle_scope.deadline


def most_body_bytes(settings: Settings, registry: Registry) -> int:
    """Return the largest request of a profile in bytes. That of memories depends on the settings of its images."""
    return memory_body_bytes(settings) if registry.profile.name == "memory" else settings.body_bytes


def memory_body_bytes(settings: Settings) -> int:
    """Return the bytes of the largest memory entry: images as base64, a text that JSON may double, and the rest."""
    return _MIB * (-(-settings.memory_max_images_mb * 4 // 3) + 2 * settings.memory_max_text_mb + 6)


async def read_body(request: Request, most: int) -> bytes | None:
    """Return the body of a request, or None as soon as it is longer than `most` bytes."""
    pieces: list[bytes] = []
    size = 0
    async for piece in request.stream():
        size += len(piece)
        if size > most:
            return None
        pieces.append(piece)
    return b"".join(pieces)


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that gives the body again, then whatever comes after it."""
    waiting = [body]

    async def again() -> Message:
        if not waiting:
            return await receive()
        return {"type": "http.request", "body": waiting.pop(), "more_body": False}  # it is not kept here as well

    return again


def _called_tool(body: bytes) -> tuple[str | None, Any]:
    """Return the tool a message calls and the message's id; None for what is missing."""
    try:
        message = json.loads(body)
        return str(message["params"]["name"]) if message["method"] == "tools/call" else None, message.get("id")
    except (ValueError, RecursionError, TypeError, KeyError, AttributeError):
        return None, None


def _error(status: int, code: int, sentence: str, request_id: Any = None, retry_after: float | None = None) -> Response:
    headers = {} if retry_after is None else come_back_in(retry_after)
    error = {"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": sentence}}
    return JSONResponse(error, status_code=status, headers=headers)
