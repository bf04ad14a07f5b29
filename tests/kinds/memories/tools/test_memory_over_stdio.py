"""The memory profile over MCP, served by its own process and spoken to by the official client."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from kit.answers import text_of
from kit.forked import forked_server

TITLES = {
    "store_context": "Store Context",
    "search_context": "Search Context",
    "get_context_by_ids": "Get Context By IDs",
    "delete_context": "Delete Context",
    "update_context": "Update Context",
    "list_threads": "List Threads",
    "get_statistics": "Get Statistics",
    "semantic_search_context": "Semantic Search Context",
    "fts_search_context": "Full-Text Search Context",
    "hybrid_search_context": "Hybrid Search Context",
    "store_context_batch": "Store Context (Batch)",
    "update_context_batch": "Update Context (Batch)",
    "delete_context_batch": "Delete Context (Batch)",
}
PIXEL = base64.b64encode(b"pixel").decode()


async def walk(client: Client) -> None:
    tools = (await client.list_tools()).tools
    assert {tool.name: tool.title for tool in tools} == TITLES
    listed = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools]
    assert len(json.dumps({"tools": listed}, separators=(",", ":")).encode()) <= 28 * 1024
    for tool in tools:
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint == (tool.name.startswith(("search", "get", "list", "sem", "fts", "hyb")))
        assert tool.annotations.open_world_hint is False

    for text in ("Oolong tea wants hot water", "Sourdough needs a cold proof"):
        stored = await client.call_tool("store_context", {"thread_id": "t", "source": "user", "text": text})
        assert not stored.is_error
    for name in ("semantic_search_context", "fts_search_context", "hybrid_search_context"):
        found = await client.call_tool(name, {"query": "hot tea", "limit": 1})
        assert found.structured_content is not None
        assert found.structured_content["results"][0]["text_content"] == "Oolong tea wants hot water"
        assert json.loads(text_of(found)) == found.structured_content

    newest = await client.call_tool("search_context", {"limit": 1})
    assert newest.structured_content is not None
    rest = await client.call_tool("search_context", {"limit": 1, "cursor": newest.structured_content["next_cursor"]})
    assert rest.structured_content is not None
    assert [entry["id"] for entry in rest.structured_content["results"]] == [1]

    await client.call_tool(
        "store_context", {"thread_id": "t", "source": "agent", "text": "look", "images": [{"data": PIXEL}]}
    )
    whole = await client.call_tool("get_context_by_ids", {"context_ids": [3]})
    assert [block.type for block in whole.content] == ["text", "image"]
    assert PIXEL not in text_of(whole)
    assert whole.structured_content is not None
    assert whole.structured_content["result"][0]["images"][0]["data"] == PIXEL

    wrong = await client.call_tool("fts_search_context", {"query": "  "})
    assert wrong.is_error
    assert text_of(wrong) == "query cannot be empty or whitespace"
    assert wrong.structured_content["error"]["code"] == "invalid_argument"


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
def test_a_client_stores_finds_and_reads_over_stdio(tmp_path: Path, era: str) -> None:
    environment = {**os.environ, "COMMONPLACE_HOME": str(tmp_path), "COMMONPLACE_MODEL": "static"}
    server = StdioServerParameters(**forked_server("mcp", "--profile", "memory"), env=environment)

    async def run() -> None:
        with anyio.fail_after(60):
            async with Client(stdio_client(server), mode=era) as client:
                await walk(client)

    anyio.run(run)
