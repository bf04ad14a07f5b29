"""The tools over the Model Context Protocol, on the official SDK, in both protocol eras; and the stdio door."""

from __future__ import annotations

import json
from typing import Any

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from commonplace import __version__
from commonplace.library import Library
from commonplace.model import JSON
from commonplace.server.calls import Failure, run
from commonplace.surfaces.commonplace import TOOLS, instructions
from commonplace.surfaces.tool import Registry, Tool


def make_registry(library: Library) -> Registry:
    """The tools a library offers. Those that write are there only where writing is allowed."""
    return Registry(TOOLS, writable=library.settings.allow_writes)


def make_server(library: Library, registry: Registry) -> Server[Any]:
    """A server of these tools over one library."""
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
        server = make_server(library, make_registry(library))
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    anyio.run(run)


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
    answer = run(tool, library, arguments)
    if isinstance(answer, Failure):
        return types.CallToolResult(
            content=[types.TextContent(text=answer.message)], structured_content=answer.record(), is_error=True
        )
    compact = json.dumps(answer, ensure_ascii=False, separators=(",", ":"))
    return types.CallToolResult(content=[types.TextContent(text=compact)], structured_content=answer)
