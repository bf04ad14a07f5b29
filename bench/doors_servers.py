"""The servers that bench/doors.py measures: ours and the bare SDK, each with one tool that does nothing.

python bench/doors_servers.py ours|bare stdio
python bench/doors_servers.py ours|bare http PORT
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

TOOL = "ping"


def ours(door: str, port: int) -> None:
    from commonplace.profiles import registry as profiles
    from commonplace.server.principal import OWNER
    from commonplace.settings import Settings

    profiles.PROFILES["ping"] = "doors_profile"
    settings = Settings(home=Path(tempfile.mkdtemp()), model="static")
    if door == "stdio":
        from commonplace.server.mcp import serve_stdio
        from commonplace.server.service import Service

        serve_stdio(Service(settings), "ping", OWNER)
        return
    from commonplace.server.auth import OpenGate
    from commonplace.server.http import serve_http

    serve_http(settings, OpenGate(), "127.0.0.1", port)


def bare(door: str, port: int) -> None:
    import anyio
    import mcp_types as types
    from mcp.server.lowlevel import Server
    from mcp.server.stdio import stdio_server

    schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    listed = types.ListToolsResult(tools=[types.Tool(name=TOOL, description="Answers.", input_schema=schema)])

    async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
        return listed

    async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        answer = {"text": (params.arguments or {})["text"]}
        return types.CallToolResult(content=[types.TextContent(text=str(answer))], structured_content=answer)

    server: Server[Any] = Server(
        "bare", on_list_tools=list_tools, on_call_tool=call_tool, get_tool_input_schema=lambda name: schema
    )
    if door == "stdio":

        async def run() -> None:
            async with stdio_server() as (read, write):
                await server.run(read, write, server.create_initialization_options())

        anyio.run(run)
        return
    import uvicorn

    app = server.streamable_http_app()  # on what the SDK brings along: without httptools and uvloop, which we add
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning", http="h11", loop="asyncio")


if __name__ == "__main__":
    who, door, *more = sys.argv[1:]
    {"ours": ours, "bare": bare}[who](door, int(more[0]) if more else 0)
