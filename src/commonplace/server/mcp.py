"""The tools over the Model Context Protocol, on the official SDK: both protocol eras, stdio and HTTP."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from commonplace import __version__
from commonplace.errors import CommonplaceError
from commonplace.library import Library
from commonplace.model import JSON
from commonplace.surfaces.commonplace import TOOLS, instructions
from commonplace.surfaces.tool import Registry, Tool

log = logging.getLogger(__name__)


def make_server(library: Library, tools: Sequence[Tool] = TOOLS) -> Server[Any]:
    """A server of these tools over one library. Tools that write are there only where writing is allowed."""
    registry = Registry(tools, writable=library.settings.allow_writes)
    listed = types.ListToolsResult(tools=[_declared(tool) for tool in registry.tools])

    async def list_tools(context: Any, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return listed

    async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        tool = registry.find(params.name)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, f"There is no tool {params.name!r}. The tools are {registry.names()}.")
        return await anyio.to_thread.run_sync(_call, tool, library, params.arguments or {})

    return Server(
        "commonplace",
        version=__version__,
        title="Commonplace",
        instructions=instructions(library),
        get_tool_input_schema=lambda name: tool.input if (tool := registry.find(name)) else None,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def serve_stdio(library: Library) -> None:
    """Serve one client on standard input and output until its end of input."""

    async def run() -> None:
        server = make_server(library)
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    anyio.run(run)


def serve_http(library: Library, host: str, port: int) -> None:
    """Serve any number of clients over Streamable HTTP at /mcp. Loopback only: there are no users yet."""
    import uvicorn

    app = make_server(library).streamable_http_app(host=host, json_response=True)
    uvicorn.run(app, host=host, port=port, log_level="warning")


def _declared(tool: Tool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=dict(tool.input),
        output_schema=dict(tool.output),
        annotations=types.ToolAnnotations.model_validate(tool.annotations),
    )


def _call(tool: Tool, library: Library, arguments: dict[str, JSON]) -> types.CallToolResult:
    try:
        return _result(tool.call(library, arguments))
    except CommonplaceError as error:
        return _failure(error.code, str(error))
    except Exception:  # the door: a bug is logged with a number and answered with the same number
        reference = uuid4().hex[:8]
        log.exception("%s failed (%s)", tool.name, reference)
        return _failure("internal", f"{tool.name} failed unexpectedly. The log has the details under {reference}.")


def _failure(code: str, message: str) -> types.CallToolResult:
    error = {"error": {"code": code, "message": message}}
    return types.CallToolResult(content=[types.TextContent(text=message)], structured_content=error, is_error=True)


def _result(value: dict[str, JSON]) -> types.CallToolResult:
    compact = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return types.CallToolResult(content=[types.TextContent(text=compact)], structured_content=value)
