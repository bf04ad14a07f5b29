"""MCP over WebSocket: one JSON-RPC message per text frame, one session per connection."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import anyio
import mcp_types as types
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from commonplace.errors import CommonplaceError
from commonplace.library import Library
from commonplace.server.answers import Answers
from commonplace.server.auth import Gate, token_of
from commonplace.server.flaws import mark_flaw
from commonplace.server.limits import aside
from commonplace.server.mcp import Context, client_of, meta_config, serve_streams
from commonplace.server.principal import Principal
from commonplace.server.service import Service, Visitor
from commonplace.server.transport import HEADER, MakeServer, collections_of, most_body_bytes
from commonplace.tools.profile import Registry

WRONG_OWNER, OVER_LIMIT, IDLE, ENDING, TOO_LARGE = 1008, 1013, 1001, 1012, 1009
SUBPROTOCOL = "mcp"
_LONGEST_REASON = 123  # bytes that a close frame has room for
_FAREWELL_S = 1.0
"""The seconds a client has to answer a close frame once the server ends."""


class WebSocketProtocol(WebSocketsSansIOProtocol):
    """One WebSocket connection, which stays open at the server's end until its calls are answered."""

    def shutdown(self) -> None:
        if self.close_sent or not self.handshake_complete:
            super().shutdown()
        else:
            self.stop_keepalive()
            self.close_timeout = _FAREWELL_S
            self.queue.put_nowait({"type": "websocket.disconnect", "code": ENDING})

    def keepalive_timeout(self) -> None:
        """Close for a missing pong, unless it may wait behind unread messages of a client that reads ours."""
        if self.read_paused and self.writable.is_set():
            self.pong_timer = self.pending_ping_payload = None
            self.schedule_ping()
        else:
            super().keepalive_timeout()


class Connections:
    """The open WebSocket connections of one server."""

    def __init__(self, service: Service, gate: Gate, make_server: MakeServer) -> None:
        self._service = service
        self._gate = gate
        self._make_server = make_server
        self._open = 0

    def route(self, path: str, registry: Registry) -> WebSocketRoute:
        async def endpoint(socket: WebSocket) -> None:
            await self._serve(socket, registry)

        return WebSocketRoute(path, endpoint)

    async def _serve(self, socket: WebSocket, registry: Registry) -> None:
        offered = socket.scope.get("subprotocols", [])
        await socket.accept(SUBPROTOCOL if SUBPROTOCOL in offered else None)
        if self._open >= self._service.settings.connections:
            await socket.close(OVER_LIMIT, "There are too many connections. Try again later.")
            return
        self._open += 1
        try:
            principal: Principal = socket.scope["principal"]
            try:
                session = await self._session(socket, principal)
            except CommonplaceError as error:
                await socket.close(OVER_LIMIT, _reason(error))
                return
            if session is None:
                await socket.close(WRONG_OWNER, "There is no such session of yours.")
                return
            visitor = Visitor(principal, session, collections=collections_of(socket.query_params))
            connection = _Connection(self._service, self._gate, socket, visitor)
            await connection.serve(registry, self._make_server)
        finally:
            self._open -= 1

    async def _session(self, socket: WebSocket, principal: Principal) -> str | None:
        """Return a new session for this connection, or its own one that it asks for; None if that is not alive."""
        wanted = socket.query_params.get(HEADER) or socket.headers.get(HEADER)

        def find_or_issue(library: Library) -> str | None:
            sessions = library.sessions.of(principal.name)
            if wanted is not None:
                return wanted if sessions.find(wanted) is not None else None
            return sessions.issue(client=socket.headers.get("user-agent", ""))

        return await self._service.work(principal.space, find_or_issue)


@dataclass(slots=True)
class _Connection:
    service: Service
    gate: Gate
    socket: WebSocket
    visitor: Visitor

    async def serve(self, registry: Registry, make_server: MakeServer) -> None:
        """Serve until the client leaves, is silent for too long, or its key is no longer valid."""
        server = make_server(self.service, registry, self._visitor_of)
        inbox, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        write, outbox = anyio.create_memory_object_stream[SessionMessage](0)
        answers = Answers(write)
        async with read, anyio.create_task_group() as tasks:
            tasks.start_soon(self._receive, inbox, answers, tasks, registry)
            tasks.start_soon(self._send, outbox)
            await serve_streams(server, read, answers)
            await self._close(ENDING, "The server ends.")  # which nobody hears who has left
            tasks.cancel_scope.cancel()

    def _visitor_of(self, context: Context) -> Visitor:
        config = meta_config(context)
        if config is None and context.method == "initialize":
            config = (context.params or {}).get("config")
        return replace(self.visitor, config=config, client=client_of(context))

    async def _receive(
        self, inbox: MemoryObjectSendStream[Any], answers: Answers, tasks: TaskGroup, registry: Registry
    ) -> None:
        most = most_body_bytes(self.service.settings, registry)
        async with inbox:
            while True:
                frame = None
                with anyio.move_on_after(self.service.settings.idle_seconds):
                    frame = await self._frame()
                if frame is None and answers.owed:
                    continue  # it waits for us
                if frame is None:
                    await self._close(IDLE, "The connection was idle for too long.")
                    break
                if not frame:
                    break
                if len(frame.encode()) > most:
                    await self._close(TOO_LARGE, f"A message has at most {most} bytes.")
                    break
                if not await self._still_admitted():
                    tasks.cancel_scope.cancel()
                    break
                await inbox.send(_message(await aside(partial(mark_flaw, exact=registry.profile.exact), frame)))

    async def _still_admitted(self) -> bool:
        """Return whether the key is still valid; otherwise, or if that cannot be known now, end the connection."""
        try:
            principal = await self.gate.admit(token_of(self.socket.scope))
        except CommonplaceError as error:
            await self._close(OVER_LIMIT, _reason(error))
            return False
        if principal != self.visitor.principal:
            await self._close(WRONG_OWNER, "The key is no longer valid.")
        return principal == self.visitor.principal

    async def _frame(self) -> str:
        """Return the next frame's text; "" when the client has left."""
        try:
            message = await self.socket.receive()
        except (WebSocketDisconnect, RuntimeError):
            return ""
        if message["type"] == "websocket.disconnect":
            return ""
        return message.get("text") or "\N{REPLACEMENT CHARACTER}"  # bytes are no message

    async def _send(self, outbox: MemoryObjectReceiveStream[SessionMessage]) -> None:
        async with outbox:
            async for message in outbox:
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                try:
                    await self.socket.send_text(text)
                except (WebSocketDisconnect, RuntimeError, OSError):
                    return  # the client is gone, and so is whoever would read the rest

    async def _close(self, code: int, reason: str) -> None:
        with suppress(WebSocketDisconnect, RuntimeError, OSError):
            await self.socket.close(code, reason)


def _reason(error: CommonplaceError) -> str:
    """Return as much of an error's sentence as a close frame has room for."""
    return str(error).encode("utf-8", "replace")[:_LONGEST_REASON].decode(errors="ignore")


def _message(frame: str) -> SessionMessage | Exception:
    try:
        return SessionMessage(types.jsonrpc_message_adapter.validate_json(frame, by_name=False))
    except ValueError as error:
        return error
