"""A profile over the Model Context Protocol, on the official SDK, in both protocol eras; and the stdio door."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, cast

import anyio
import mcp_types as types
from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from commonplace import __version__
from commonplace.errors import CommonplaceError, InvalidInput, NotFound
from commonplace.library import Library
from commonplace.model import JSON
from commonplace.server.answers import Answers, recover_message
from commonplace.server.calls import Failure
from commonplace.server.changes import announce_changes, listen_handler
from commonplace.server.flaws import flaw_of, mark_flaw
from commonplace.server.principal import Principal
from commonplace.server.service import Service, Visitor
from commonplace.server.stdio import Ending, Input, Output, end_signals
from commonplace.tools.profile import Profile, Prompts, Registry, Resources
from commonplace.tools.schema import outline, parts_of
from commonplace.tools.soft_config import parse_config
from commonplace.tools.tool import Call, Reply, Report, Tool

Context = ServerRequestContext[Any, Any]
VisitorOf = Callable[[Context], Visitor]
Handler = Callable[[Context, Any], Awaitable[dict[str, JSON]]]
Work = Callable[[Context, Callable[[Call], Any]], Awaitable[Any]]
Complete = Callable[[Call, Mapping[str, JSON], str, str], Sequence[str]]

LISTS_FRESH_MS = 300_000
"""The milliseconds a client may cache a list: it changes when the server restarts differently, or says so."""
PATIENCE_S = 5.0
"""The seconds that calls under way have when the input ends."""
PROGRESS_EVERY_S = 0.1
CONFIG_META = "commonplace/config"
SESSION_META = "commonplace/session"


def make_server(service: Service, registry: Registry, visitor_of: VisitorOf) -> Server[Any]:
    """Return a server of one profile. `visitor_of`, which depends on the door, returns the visitor of a request."""
    profile = registry.profile
    server: Server[Any] = Server(
        "commonplace",
        version=__version__,
        title="Commonplace",
        cache_hints=dict.fromkeys(_LISTS, CacheHint(ttl_ms=LISTS_FRESH_MS)),
        get_tool_input_schema=lambda name: tool.input if (tool := registry.find(name)) else None,
    )
    server.middleware.append(errors_as_protocol_errors)
    work = partial(_work, service, visitor_of)
    server.add_request_handler("tools/list", types.PaginatedRequestParams, _list_tools(registry))
    server.add_request_handler("tools/call", types.CallToolRequestParams, _call_tool(service, registry, visitor_of))
    if profile.resources:
        _add_resources(server, profile.resources, work)
    if profile.prompts:
        _add_prompts(server, profile.prompts, work)
    if profile.complete:
        _add_completion(server, profile.complete, work)
    if profile.lists:
        _add_changes(server, service, profile, visitor_of)
    server.middleware += [add_instructions(service, registry, visitor_of), restore_dropped_fields]
    return server


_LISTS: tuple[CacheableMethod, ...] = ("tools/list", "prompts/list", "resources/list", "resources/templates/list")


def declared(tool: Tool, *, brief: bool = False) -> dict[str, JSON]:
    """Return a tool as MCP and REST list it: every agent reads all of this before its first question.

    So objects deep inside the arguments, and what is inside the parts of an answer, are left to /openapi.json; with
    `brief` all objects inside arguments, the answer, and the title, which is the name once more.
    """
    listed: dict[str, JSON] = {
        "name": tool.name,
        **({} if brief else {"title": tool.title}),
        "description": tool.description,
        "inputSchema": outline(tool.input, levels=1 if brief else 2),
        "annotations": dict(tool.annotations),
    }
    if tool.meta:
        listed["_meta"] = dict(tool.meta)
    return listed if tool.output is None or brief else {**listed, "outputSchema": parts_of(tool.output)}


def _list_tools(registry: Registry) -> Handler:
    brief = registry.profile.brief
    listed = {"tools": [declared(tool, brief=brief) for tool in registry.tools], "resultType": "complete"}

    async def list_tools(context: Context, params: types.PaginatedRequestParams | None) -> dict[str, JSON]:
        return listed

    return list_tools


def _call_tool(service: Service, registry: Registry, visitor_of: VisitorOf) -> Handler:
    async def call_tool(context: Context, params: types.CallToolRequestParams) -> dict[str, JSON]:
        tool = registry.find(params.name)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, registry.unknown(params.name))
        given = params.arguments or {}
        answer = flaw_of(context.meta) or await service.call(
            visitor_of(context), registry, tool, given, progress_of(context)
        )
        result = result_of(answer)
        raw_content.set(result["content"])
        return result

    return call_tool


def result_of(answer: Reply | Failure) -> dict[str, JSON]:
    if isinstance(answer, Failure):
        said = [{"type": "text", "text": answer.message}]
        return {
            "content": said,
            "structuredContent": answer.record(),
            "isError": True,
            "resultType": "complete",
        }
    result: dict[str, JSON] = {"content": list(answer.content), "isError": False, "resultType": "complete"}
    return result if answer.structured is None else {**result, "structuredContent": answer.structured}


def progress_of(context: Context) -> Report:
    """Return the function by which a thread reports progress. The SDK sends nothing to clients that did not ask."""
    reported_at, loop = 0.0, asyncio.get_running_loop()

    def report(done: float, total: float | None, words: str) -> None:
        nonlocal reported_at
        if (now := time.monotonic()) - reported_at >= PROGRESS_EVERY_S or done == total:
            reported_at = now
            # Not waited for: work does not stop because its client is slow to listen.
            asyncio.run_coroutine_threadsafe(context.session.report_progress(done, total, words), loop)

    return report


async def _work(service: Service, visitor_of: VisitorOf, context: Context, task: Callable[[Call], Any]) -> Any:
    """Run a task for a visitor that is not a tool call. Raise MCPError for a key that is limited to collections."""
    visitor = visitor_of(context)
    if visitor.principal.collections:
        raise MCPError(types.INVALID_PARAMS, "This key is limited to collections of documents.")

    def run(library: Library) -> Any:
        return task(visitor.call(library, service.view))

    return await service.work(visitor.principal.space, run)


_RESOURCE_NOT_FOUND = -32002
"""The error code of a missing resource in revisions before 2026-07-28."""


def _add_resources(server: Server[Any], resources: Resources, work: Work) -> None:
    async def entries(context: Context, params: Any) -> dict[str, JSON]:
        return {"resources": list(await work(context, resources.entries)), "resultType": "complete"}

    async def templates(context: Context, params: Any) -> dict[str, JSON]:
        return {"resourceTemplates": list(resources.templates), "resultType": "complete"}

    async def read(context: Context, params: types.ReadResourceRequestParams) -> dict[str, JSON]:
        content = await work(context, lambda call: _content(context, resources, call, str(params.uri)))
        raw_content.set([content])
        return {"contents": [content], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}

    server.add_request_handler("resources/list", types.PaginatedRequestParams, entries)
    server.add_request_handler("resources/templates/list", types.PaginatedRequestParams, templates)
    server.add_request_handler("resources/read", types.ReadResourceRequestParams, read)


def _content(context: Context, resources: Resources, call: Call, uri: str) -> Mapping[str, JSON]:
    try:
        return resources.read(call, uri)
    except NotFound as error:
        older = resources.missing_by_era and context.protocol_version < "2026"
        code = _RESOURCE_NOT_FOUND if older else types.INVALID_PARAMS
        raise MCPError(code, str(error), {"uri": uri, **error.details}) from None


def _add_prompts(server: Server[Any], prompts: Prompts, work: Work) -> None:
    async def page(context: Context, params: types.PaginatedRequestParams | None) -> dict[str, JSON]:
        cursor = params.cursor if params else None
        listed, following = await work(context, lambda call: prompts.page(call, cursor))
        result: dict[str, JSON] = {"prompts": list(listed), "resultType": "complete"}
        return result if following is None else {**result, "nextCursor": following}

    async def get(context: Context, params: types.GetPromptRequestParams) -> dict[str, JSON]:
        filled = await work(context, lambda call: prompts.get(call, params.name, params.arguments or {}))
        return {**filled, "resultType": "complete"}

    server.add_request_handler("prompts/list", types.PaginatedRequestParams, page)
    server.add_request_handler("prompts/get", types.GetPromptRequestParams, get)


def _add_completion(server: Server[Any], complete: Complete, work: Work) -> None:
    async def completion(context: Context, params: types.CompleteRequestParams) -> dict[str, JSON]:
        reference = params.ref.model_dump(by_alias=True, exclude_none=True)
        typed = params.argument
        values = list(await work(context, lambda call: complete(call, reference, typed.name, typed.value)))
        shown = {"values": values[:100], "total": len(values), "hasMore": len(values) > 100}
        return {"completion": shown, "resultType": "complete"}

    server.add_request_handler("completion/complete", types.CompleteRequestParams, completion)


def _add_changes(server: Server[Any], service: Service, profile: Profile, visitor_of: VisitorOf) -> None:
    def space_of(context: Context) -> str:
        return visitor_of(context).principal.space

    listen = listen_handler(service.changes, profile, space_of)
    server.add_request_handler("subscriptions/listen", types.SubscriptionsListenRequestParams, listen)
    server.middleware.append(announce_changes(service.changes, profile, space_of))


async def errors_as_protocol_errors(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Turn errors outside of tool calls into protocol errors with their sentences. (Middleware.)"""
    try:
        return await call_next(ctx)
    except (InvalidInput, NotFound) as error:
        raise MCPError(types.INVALID_PARAMS, str(error), error.details or None) from None
    except CommonplaceError as error:
        raise MCPError(types.INTERNAL_ERROR, str(error)) from None


def add_instructions(service: Service, registry: Registry, visitor_of: VisitorOf) -> Any:
    """Return middleware that adds the library's instructions to the greeting, and stores the session's defaults."""

    async def greet(ctx: Context, call_next: CallNext) -> HandlerResult:
        result = await call_next(ctx)
        if ctx.method in ("initialize", "server/discover") and isinstance(result, dict):
            visitor = visitor_of(ctx)
            if not visitor.principal.collections or all(tool.within_view for tool in registry.tools):
                result["instructions"] = await service.work(visitor.principal.space, registry.profile.instructions)
            if visitor.session:
                result["_meta"] = {**result.get("_meta", {}), SESSION_META: visitor.session}
            if ctx.method == "initialize":
                await _keep_session(service, visitor, ctx.session._connection.session_id or visitor.session)
        return result

    return greet


async def _keep_session(service: Service, visitor: Visitor, session: str | None) -> None:
    """Store the name and the defaults that a client begins its session with, for all of the session."""
    defaults = parse_config(visitor.config).defaults
    if session is None or not (defaults or visitor.client):
        return

    def keep(library: Library) -> None:
        sessions = library.sessions.of(visitor.principal.name)
        sessions.issue(session, visitor.client)
        if defaults:
            sessions.open(session).set_defaults(defaults)

    await service.work(visitor.principal.space, keep)


raw_content: ContextVar[Sequence[Mapping[str, JSON]]] = ContextVar("raw_content", default=())
"""The content blocks that this request's handler returned, before the SDK's models drop fields."""


async def restore_dropped_fields(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Restore fields that clients show and the SDK's models drop, such as a document's name and title. (Middleware.)"""
    raw_content.set(())
    result = await call_next(ctx)
    if isinstance(result, dict):
        content: list[dict[str, JSON]] = result.get("content") or result.get("contents") or []
        for sent, given in zip(content, raw_content.get(), strict=False):
            if "resource" in given:
                sent["resource"] = {**given["resource"], **sent["resource"]}
            elif "uri" in given:
                sent.update({name: value for name, value in given.items() if name not in sent})
    return result


async def serve_streams(server: Server[Any], read: Any, answers: Answers) -> None:
    """Serve one connection until its input ends and the calls under way are answered."""
    async with _lasting(read, answers) as lasting:
        await server.run(lasting, cast(Any, answers), server.create_initialization_options())


@asynccontextmanager
async def _lasting(read: Any, answers: Answers) -> AsyncIterator[Any]:
    """Yield the stream, ending only after the answers: the SDK drops calls under way when its input ends."""
    sink, source = anyio.create_memory_object_stream[Any](0)

    async def relay() -> None:
        async with sink:
            async for message in read:
                if isinstance(message, Exception):
                    message = await recover_message(message)
                if isinstance(message, Exception):
                    with anyio.move_on_after(PATIENCE_S):  # a client that does not read must not hold up the end
                        await answers.refuse(message)
                else:
                    await answers.wait_for_room(message)
                    answers.expect(message)
                    await sink.send(message)
            await answers.settle(PATIENCE_S)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(relay)
        yield source
        tasks.cancel_scope.cancel()


def serve_stdio(service: Service, profile: str, principal: Principal) -> None:
    """Serve one client on standard input and output until its end of input or a signal."""

    async def run() -> None:
        async with end_signals() as ending:
            await serve_input(service, profile, principal, ending)

    anyio.run(run)


async def serve_input(service: Service, profile: str, principal: Principal, ending: Ending) -> None:
    """Serve one client on standard input and output, on a running event loop, until `ending` is set at the latest."""
    registry = service.registry(profile)
    server = make_server(
        service, registry, lambda context: Visitor(principal, config=meta_config(context), client=client_of(context))
    )
    await serve_server(server, ending, exact=registry.profile.exact)


async def serve_server(server: Server[Any], ending: Ending, *, exact: bool) -> None:
    """Run a server on standard input and output; `exact` as in its profile."""
    gc.freeze()  # what is loaded stays loaded: no garbage collection has to look through it again
    lines, output = Input(ending, partial(mark_flaw, exact=exact)), Output(ending, PATIENCE_S)
    async with stdio_server(cast(Any, lines), cast(Any, output)) as (read, write):
        await serve_streams(server, read, Answers(write))
        output.over()


def client_of(context: Context) -> str:
    """Return the client's own name, from its greeting or, in the era without one, from each request; else ""."""
    if context.method == "initialize":  # which the connection remembers once it is answered
        info: Any = (context.params or {}).get("clientInfo")
        return str(info.get("name", "")) if isinstance(info, dict) else ""
    said = context.session.client_params
    return said.client_info.name if said else ""


def meta_config(context: Context) -> Mapping[str, JSON] | str | None:
    """Return the soft defaults in a request's `_meta`, or None."""
    meta: Any = context.meta or {}
    config: Mapping[str, JSON] | str | None = meta.get(CONFIG_META)
    return config
