"""Instances over MCP: endpoints that serve only the tools bound to them, looked up anew at each call."""

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
from commonplace.kinds.tables.json_tables import Tables
from commonplace.kinds.tables.rows import InstanceRow, ToolRow
from commonplace.kinds.tables.tool_instances import space_of
from commonplace.kinds.tables.tools.types import bound_tool
from commonplace.library import Library
from commonplace.model import JSON
from commonplace.server.auth import challenge, token_of
from commonplace.server.changes import announce_changes, listen_handler
from commonplace.server.flaws import flaw_of
from commonplace.server.mcp import (
    LISTS_FRESH_MS,
    Context,
    Handler,
    VisitorOf,
    add_instructions,
    declared,
    errors_as_protocol_errors,
    progress_of,
    raw_content,
    restore_dropped_fields,
    result_of,
    serve_server,
)
from commonplace.server.principal import Principal
from commonplace.server.service import Service, Visitor
from commonplace.server.stdio import end_signals
from commonplace.server.transport import ProfileEndpoint
from commonplace.space import space_folder
from commonplace.store.opening import has_space
from commonplace.tools.profile import Lists, Profile, Registry
from commonplace.tools.tool import Tool

_NAME = "instance "
_SCOPES = frozenset({"read", "write"})
_INSTRUCTIONS = (
    "Tools over JSON data of the user. Each works on its own part of it; json_path is relative to that part."
)


def principal_of(instance: InstanceRow, space: str) -> Principal:
    """Return the principal of an instance: the instance itself. It reaches only what is bound to it."""
    return Principal(f"{_NAME}{instance.id}", space, _SCOPES)


def _instance_of(principal: Principal) -> str:
    return principal.name.removeprefix(_NAME)


def _profile(instance_id: str) -> Profile:
    """Return the profile by which `Changes` watches an instance's list of tools."""
    lists: Lists = {"tools": lambda space: space.part(Tables).instances.state(instance_id)}
    return Profile(f"{_NAME}{instance_id}", (), lambda space: _INSTRUCTIONS, always_writes=True, lists=lists)


async def _served(service: Service, principal: Principal, name: str | None = None) -> Sequence[ToolRow]:
    identity = _instance_of(principal)
    return await service.look(principal.space, lambda library: library.tables.instances.served(identity, name))


def make_instance_server(service: Service, registry: Registry, visitor_of: VisitorOf) -> Server[Any]:
    """Return one server for all instances: the visitor of each request says which is meant."""
    server: Server[Any] = Server(
        "commonplace",
        version=__version__,
        title="Commonplace",
        cache_hints={"tools/list": CacheHint(ttl_ms=LISTS_FRESH_MS)},
    )
    server.middleware.append(errors_as_protocol_errors)
    server.add_request_handler("tools/list", types.PaginatedRequestParams, _list_tools(service, visitor_of))
    server.add_request_handler("tools/call", types.CallToolRequestParams, _call_tool(service, visitor_of))

    def space_of_context(context: Context) -> str:
        return visitor_of(context).principal.space

    def profile_of(context: Context) -> Profile:
        return _profile(_instance_of(visitor_of(context).principal))

    listen = listen_handler(service.changes, profile_of, space_of_context)
    server.add_request_handler("subscriptions/listen", types.SubscriptionsListenRequestParams, listen)
    server.middleware.append(announce_changes(service.changes, profile_of, space_of_context))
    server.middleware += [add_instructions(service, registry, visitor_of), restore_dropped_fields]
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
        raw_content.set(result["content"])
        return result

    return call_tool


def _registry(tools: tuple[Tool, ...] = ()) -> Registry:
    """Return a registry of bound tools; all may write, as whoever bound them has allowed it."""
    profile = Profile("instance", tools, lambda space: _INSTRUCTIONS, always_writes=True, exact=True)
    return Registry(profile, writable=True)


class InstanceEndpoint(ProfileEndpoint):
    """The MCP endpoint of all instances over HTTP."""

    def __init__(self, service: Service) -> None:
        super().__init__(service, _registry(), make_instance_server)

    async def _tool(self, request: Request, name: str) -> Tool | None:
        rows = await _served(self._service, request.scope["principal"], name)
        return bound_tool(rows[0]) if rows else None


class InstanceDoor:
    """An ASGI app that admits the bearer of an instance's own key and nobody else."""

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
            await _unauthorized()(scope, receive, send)
        elif not instance.enabled:
            await _error("denied", "This instance is disabled. Its owner can enable it.", 403)(scope, receive, send)
        else:
            scope["principal"] = principal_of(instance, space)
            await self._endpoint(scope, receive, send)

    async def _space(self, key: str | None) -> str | None:
        """Return the space that a key names, or None if it does not exist: a key creates none."""
        space, settings = space_of(key) if key else None, self._service.settings
        if space is None or space_folder(settings.home, space).is_dir():
            return space
        if not settings.store:
            return None
        exists: bool = await anyio.to_thread.run_sync(has_space, settings, space)  # perhaps made by another server
        return space if exists else None


def _admitted(name: str, key: str, library: Library) -> InstanceRow | None:
    return library.tables.instances.admitted(name, key)


def key_of(scope: Scope) -> str | None:
    """Return the key of a request: its bearer token or X-API-KEY; None for both, or for none."""
    own = [value.decode("latin-1").strip() for name, value in scope["headers"] if name == b"x-api-key"]
    bearer = token_of(scope)
    keys = {*own, *([bearer] if bearer else [])}
    return keys.pop() if len(keys) == 1 else None


def _unauthorized() -> Response:
    """Return the same answer for a missing or wrong key, another instance's, and an unknown instance."""
    headers = {"WWW-Authenticate": challenge(None, error="invalid_token"), "Cache-Control": "no-store"}
    message = "An instance is opened by its own key. Send it as `Authorization: Bearer …` or `X-API-KEY`."
    return _error("unauthorized", message, 401, headers)


def _error(code: str, message: str, status: int, headers: dict[str, str] | None = None) -> Response:
    return JSONResponse({"error": {"code": code, "message": message}}, status_code=status, headers=headers)


def serve_instance(service: Service, principal: Principal) -> None:
    """Serve one client of an instance on standard input and output until its end of input or a signal."""
    visitor = Visitor(principal)

    async def run() -> None:
        async with end_signals() as ending:
            server = make_instance_server(service, _registry(), lambda context: visitor)
            await serve_server(server, ending, exact=True)

    anyio.run(run)
