"""The tools as plain HTTP: `POST /api/v1/tools/{name}` with a JSON object, described by `/openapi.json`."""

from __future__ import annotations

import json
from typing import Any

import anyio.to_thread
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from commonplace import __version__
from commonplace.errors import CommonplaceError
from commonplace.library import Library
from commonplace.model import JSON
from commonplace.server.calls import Failure, run
from commonplace.surfaces.tool import Registry, Tool

LARGEST_BODY = 160 * 1024 * 1024
"""Bytes: images travel as base64."""

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


def routes(library: Library, registry: Registry) -> list[Route]:
    """All routes beside the protocol's own."""

    async def call(request: Request) -> Response:
        tool = registry.find(request.path_params["name"])
        if tool is None:
            return _said(Failure("not_found", f"There is no such tool. The tools are {registry.names()}.", 404))
        arguments = await _arguments(request)
        if isinstance(arguments, Failure):
            return _said(arguments)
        answer = await anyio.to_thread.run_sync(run, tool, library, arguments)
        return _said(answer) if isinstance(answer, Failure) else JSONResponse(answer)

    async def tools(request: Request) -> Response:
        return JSONResponse({"tools": [declared(tool) for tool in registry.tools]})

    async def description(request: Request) -> Response:
        return JSONResponse(openapi(registry))

    async def healthy(request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def ready(request: Request) -> Response:
        try:
            await anyio.to_thread.run_sync(library.store.last_change)
        except CommonplaceError as error:
            return _said(Failure(error.code, str(error), 503))
        return JSONResponse({"status": "ready"})

    return [
        Route("/api/v1/tools", tools, methods=["GET"]),
        Route("/api/v1/tools/{name}", call, methods=["POST"]),
        Route("/openapi.json", description, methods=["GET"]),
        Route("/healthz", healthy, methods=["GET"]),
        Route("/readyz", ready, methods=["GET"]),
    ]


def declared(tool: Tool) -> dict[str, JSON]:
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": tool.input,
        "outputSchema": tool.output,
        "annotations": dict(tool.annotations),
    }


def openapi(registry: Registry) -> dict[str, JSON]:
    """The document that describes the tools to clients of plain HTTP."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "Commonplace", "version": __version__},
        "paths": {f"/api/v1/tools/{tool.name}": {"post": _operation(tool)} for tool in registry.tools},
    }


def _operation(tool: Tool) -> dict[str, JSON]:
    return {
        "operationId": tool.name,
        "summary": tool.title,
        "description": tool.description,
        "requestBody": {"required": True, "content": {"application/json": {"schema": tool.input}}},
        "responses": {
            "200": {"description": "The answer.", "content": {"application/json": {"schema": tool.output}}},
            "default": {"description": "What went wrong.", "content": {"application/json": {"schema": _ERROR}}},
        },
    }


async def _arguments(request: Request) -> dict[str, Any] | Failure:
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > LARGEST_BODY:
            return Failure("too_large", f"A request has at most {LARGEST_BODY} bytes. Send less at once.", 413)
    try:
        arguments = json.loads(bytes(body) or b"{}")
    except (ValueError, RecursionError):
        return Failure("invalid_argument", "The body is not JSON. Send one JSON object with the tool's arguments.", 400)
    if not isinstance(arguments, dict):
        return Failure("invalid_argument", "The body is not an object. Send one JSON object.", 400)
    return arguments


def _said(failure: Failure) -> Response:
    return JSONResponse(failure.record(), status_code=failure.status)
