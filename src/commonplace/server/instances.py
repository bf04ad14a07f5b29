"""Instances over MCP: endpoints that serve the tools bound to them and nothing else, looked up anew at each call."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import anyio
import mcp_types as types
from mcp.server.caching import CacheHint
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from commonplace import __version__
from commonplace.kinds.tables.keys import space_of
from commonplace.kinds.tables.tools.types import bound_tool
from commonplace.library import Library, space_folder
from commonplace.model import JSON
from commonplace.server.auth import challenge, token_of
from commonplace.server.changes import listening, telling
from commonplace.server.flaws import flaw_of
from commonplace.server.mcp import (
    LISTS_FRESH_MS,
    Context,
    Handler,
    VisitorOf,
    declared,
    in_words,
    introduction,
    progress_of,
    result_of,
    serve_server,
    unsieved,
    whole,
)
from commonplace.server.principal import Principal
from commonplace.server.service import Service, Visitor
from commonplace.server.stdio import told_to_end
from commonplace.server.transport import Endpoint
from commonplace.store.opening import has_space
from commonplace.store.table_rows import InstanceRow, ToolRow
from commonplace.tools.profile import Lists, Profile, Registry
from commonplace.tools.tool import Tool

_NAME = "instance "
_SCOPES = frozenset({"read", "write"})
_INSTRUCTIONS = (
    "Tools over JSON data of the user. Each works on its own part of it; json_path is relative to that part."
)


def principal_of(instance: InstanceRow, space: str) -> Principal:
    """Who calls through an instance: the instance itself. What is not bound to it, it cannot reach."""
    return Principal(f"{_NAME}{instance.id}", space, _SCOPES)


def _instance_of(principal: Principal) -> str:
    return principal.name.removeprefix(_NAME)


def _profile(instance_id: str) -> Profile:
    """An instance as those know it who tell of lists that change."""
    lists: Lists = {"tools": lambda library: library.tables.instances.state(instance_id)}
    return Profile(f"{_NAME}{instance_id}", (), lambda library: _INSTRUCTIONS, always_writes=True, lists=lists)


async def _served(service: Service, principal: Principal, name: str | None = None) -> Sequence[ToolRow]:
    identity = _instance_of(principal)
    return await service.look(principal.space, lambda library: library.tables.instances.served(identity, name))


def make_instance_server(service: Service, registry: Registry, visitor_of: VisitorOf) -> Server[Any]:
    """A server of all instances: which one is meant, the visitor of each request says."""
    server: Server[Any] = Server(
        "commonplace",
        version=__version__,
        title="Commonplace",
        cache_hints={"tools/list": CacheHint(ttl_ms=LISTS_FRESH_MS)},
    )
    server.middleware.append(in_words)
    server.add_request_handler("tools/list", types.PaginatedRequestParams, _list_tools(service, visitor_of))
    server.add_request_handler("tools/call", types.CallToolRequestParams, _call_tool(service, visitor_of))

    def space_of_context(context: Context) -> str:
        return visitor_of(context).principal.space

    def profile_of(context: Context) -> Profile:
        return _profile(_instance_of(visitor_of(context).principal))

    listen = listening(service.changes, profile_of, space_of_context)
    server.add_request_handler("subscriptions/listen", types.SubscriptionsListenRequestParams, listen)
    server.middleware.append(telling(service.changes, profile_of, space_of_context))
    server.middleware += [introduction(service, registry, visitor_of), whole]
    return server


def _list_tools(service: Service, visitor_of: VisitorOf) -> Handler:
    async def list_tools(context: Context, params: types.PaginatedRequestParams | None) -> dict[str, JSON]:
        rows = await _served(service, visitor_of(context).principal)
        return {"tools": [declared(bound_tool(row)) for row in rows], "resultType": "complete"}

    return list_tools


def _call_tool(service: Service, visitor_of: VisitorOf) -> Handler:
    async def call_tool(context: Context, params: types.CallToolRequestParams) -> dict[str, JSON]:
        visitor = visitor_of(context)
        rows = await _served(service, visitor.principal, params.name)
        if not rows:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}")
        tool = bound_tool(rows[0])
        given = params.arguments or {}
        answer = flaw_of(context.meta) or await service.call(
            visitor, _registry((tool,)), tool, given, progress_of(context)
        )
        result = result_of(answer)
        unsieved.set(result["content"])
        return result

    return call_tool


def _registry(tools: tuple[Tool, ...] = ()) -> Registry:
    """Tools that are bound may do what they are for: whoever bound them has allowed it."""
    profile = Profile("instance", tools, lambda library: _INSTRUCTIONS, always_writes=True, exact=True)
    return Registry(profile, writable=True)


class InstanceEndpoint(Endpoint):
    """MCP over HTTP for all instances."""

    def __init__(self, service: Service) -> None:
        super().__init__(service, _registry(), make_instance_server)

    async def _tool(self, request: Request, name: str) -> Tool | None:
        rows = await _served(self._service, request.scope["principal"], name)
        return bound_tool(rows[0]) if rows else None


class InstanceDoor:
    """An ASGI application: an instance's own key is what opens it, and nothing else does."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._endpoint = InstanceEndpoint(service)
        self.run, self.hang_up = self._endpoint.run, self._endpoint.hang_up

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        key = key_of(scope)
        space = await self._space(key)
        instance = None
        if key is not None and space is not None:
            name = scope["path_params"]["name"]
            look = partial(_admitted, name, key)
            instance = await self._service.look(space, look)
        if instance is None or space is None:
            await _refused()(scope, receive, send)
        elif not instance.enabled:
            await _said("denied", "This instance is disabled. Its owner can enable it.", 403)(scope, receive, send)
        else:
            scope["principal"] = principal_of(instance, space)
            await self._endpoint(scope, receive, send)

    async def _space(self, key: str | None) -> str | None:
        """The space that a key names, if it is there: none is made because somebody says so."""
        space, settings = space_of(key) if key else None, self._service.settings
        if space is None or space_folder(settings.home, space).is_dir():
            return space
        if not settings.store:
            return None
        made: bool = await anyio.to_thread.run_sync(has_space, settings, space)  # perhaps by another server
        return space if made else None


def _admitted(name: str, key: str, library: Library) -> InstanceRow | None:
    return library.tables.instances.admitted(name, key)


def key_of(scope: Scope) -> str | None:
    """The key of a request: its bearer token or its X-API-KEY; never a part of its address."""
    own = [value.decode("latin-1").strip() for name, value in scope["headers"] if name == b"x-api-key"]
    bearer = token_of(scope)
    given = {*own, *([bearer] if bearer else [])}
    return given.pop() if len(given) == 1 else None


def _refused() -> Response:
    """The same for a missing or wrong key, another instance's and an instance that is not there."""
    headers = {"WWW-Authenticate": challenge(None, error="invalid_token"), "Cache-Control": "no-store"}
    message = "An instance is opened by its own key. Send it as `Authorization: Bearer …` or `X-API-KEY`."
    return _said("unauthorized", message, 401, headers)


def _said(code: str, message: str, status: int, headers: dict[str, str] | None = None) -> Response:
    return JSONResponse({"error": {"code": code, "message": message}}, status_code=status, headers=headers)


def serve_instance(service: Service, principal: Principal) -> None:
    """Serve one client of an instance on standard input and output until its end of input, or until told to end."""
    visitor = Visitor(principal)

    async def run() -> None:
        async with told_to_end() as ending:
            server = make_instance_server(service, _registry(), lambda context: visitor)
            await serve_server(server, ending, exact=True)

    anyio.run(run)
