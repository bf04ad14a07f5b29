"""The tools as plain HTTP: `POST /api/v1/tools/{name}` with a JSON object, described by `/openapi.json`."""

from __future__ import annotations

import json
from typing import Any

from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from commonplace import __version__
from commonplace.errors import CommonplaceError, Denied, InvalidInput, TooLarge
from commonplace.kinds.tables.values import half, parsed
from commonplace.model import JSON
from commonplace.server.calls import Failure
from commonplace.server.flaws import has_lone_surrogate
from commonplace.server.limits import aside, come_back_in
from commonplace.server.mcp import declared
from commonplace.server.metrics import CONTENT_TYPE, Metrics
from commonplace.server.principal import OWNER
from commonplace.server.service import Service, Visitor
from commonplace.server.transport import HEADER, collections_of, read_body
from commonplace.tools.profile import Registry
from commonplace.tools.tool import Tool

_ERROR = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {"code": {"type": "string"}, "message": {"type": "string"}},
            "required": ["code", "message"],
        }
    },
    "required": ["error"],
}
_CONTENT = {"type": "object", "properties": {"content": {"type": "array", "items": {"type": "object"}}}}


def routes(service: Service, registry: Registry, metrics: Metrics) -> list[Route]:
    """Return the routes of plain HTTP. The registry is that of all profiles, where each tool has one name."""
    listed = {"tools": [declared(tool) for tool in registry.tools]}
    described = openapi(registry)

    async def call(request: Request) -> Response:
        name = request.path_params["name"]
        tool = registry.find(name)
        if tool is None:
            return failure_response(Failure("not_found", registry.unknown(name), 404))
        try:
            arguments = await _arguments(request, service.settings.body_bytes)
        except CommonplaceError as error:
            return failure_response(Failure.of(error))
        query = request.query_params
        visitor = Visitor(
            request.scope["principal"],
            query.get(HEADER),
            query.get("config"),
            collections=collections_of(query),
            client=request.headers.get("user-agent", ""),
        )
        answer = await service.call(visitor, registry, tool, arguments)
        if isinstance(answer, Failure):
            return failure_response(answer)
        return JSONResponse({"content": answer.content} if answer.structured is None else answer.structured)

    async def tools(request: Request) -> Response:
        return JSONResponse(listed)

    async def description(request: Request) -> Response:
        return JSONResponse(described)

    async def healthy(request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def ready(request: Request) -> Response:
        try:
            service.libraries.check_home()
            await service.work(OWNER.space, lambda library: library.store.last_change())
        except CommonplaceError as error:
            return failure_response(Failure(error.code, str(error), 503))
        return JSONResponse({"status": "ready"})

    async def measured(request: Request) -> Response:
        if not request.scope["principal"].may("admin"):
            return failure_response(Failure.of(Denied("/metrics needs a key with the admin scope.")))
        return Response(await service.work(OWNER.space, lambda library: metrics.text()), media_type=CONTENT_TYPE)

    return [
        Route("/api/v1/tools", tools, methods=["GET"]),
        Route("/api/v1/tools/{name}", call, methods=["POST"]),
        Route("/openapi.json", description, methods=["GET"]),
        Route("/healthz", healthy, methods=["GET"]),
        Route("/readyz", ready, methods=["GET"]),
        Route("/metrics", measured, methods=["GET"]),
    ]


def openapi(registry: Registry) -> dict[str, JSON]:
    """Return the OpenAPI document of the tools."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "Commonplace", "version": __version__},
        "paths": {f"/api/v1/tools/{tool.name}": {"post": _operation(tool)} for tool in registry.tools},
    }


def _operation(tool: Tool) -> dict[str, JSON]:
    answered = tool.output if tool.output is not None else _CONTENT
    return {
        "operationId": tool.name,
        "summary": tool.title,
        "description": tool.description,
        "requestBody": {"required": True, "content": {"application/json": {"schema": tool.input}}},
        "responses": {
            "200": {"description": "The answer.", "content": {"application/json": {"schema": answered}}},
            "default": {"description": "What went wrong.", "content": {"application/json": {"schema": _ERROR}}},
        },
    }


async def _arguments(request: Request, most: int) -> dict[str, Any]:
    body = await read_body(request, most)
    if body is None:
        raise TooLarge(f"A request has at most {most} bytes. Send less at once.")
    return await aside(read_object, body or b"{}")


def read_object(body: bytes) -> dict[str, Any]:
    """Return the JSON object in a body. Raise InvalidInput, which says what to send, for anything else."""
    try:
        text = body.decode(json.detect_encoding(body), "surrogatepass")
        arguments = parsed(text, "The body", within=())
    except ValueError:
        raise InvalidInput("The body is not JSON. Send one JSON object with the tool's arguments.") from None
    if not isinstance(arguments, dict):
        raise InvalidInput("The body is not an object. Send one JSON object with the tool's arguments.")
    if has_lone_surrogate(text):
        raise half(text, "The body", within=())
    return arguments


async def error_response(connection: HTTPConnection, error: Exception) -> Response:
    """Return the answer for an error outside of a tool call, such as a store that cannot be reached."""
    assert isinstance(error, CommonplaceError)  # noqa: S101  # no other is sent here
    return failure_response(Failure.of(error))


def failure_response(failure: Failure) -> Response:
    """Return a failure as an HTTP response, with Retry-After where it passes by itself."""
    retry: Any = failure.details.get("retry_after")
    headers = {} if retry is None else come_back_in(retry)
    return JSONResponse(failure.record(), status_code=failure.status, headers=headers)
