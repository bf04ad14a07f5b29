"""The profiles over a real MCP connection."""

from __future__ import annotations

import json
import os
from pathlib import Path

import anyio
import pytest
from knowledge_calls import Tools
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import MCPError

from commonplace.library import Library
from kit.answers import data_of, said, text_of
from kit.forked import forked_server


def server(home: Path, *more: str, **settings: str) -> StdioServerParameters:
    environment = {
        **os.environ,
        "COMMONPLACE_HOME": str(home),
        "COMMONPLACE_MODELS": str(home / "models"),
        "COMMONPLACE_MODEL": "static",
        **{f"COMMONPLACE_{name.upper()}": value for name, value in settings.items()},
    }
    return StdioServerParameters(**forked_server("mcp", *more), env=environment)


@pytest.fixture
def home(filled: Tools, library: Library) -> Path:
    library.close()
    return library.folder.parent.parent


@pytest.mark.parametrize("backend", ["sqlite"])  # the server is told its home only
@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
def test_a_client_finds_and_reads_over_stdio(home: Path, era: str) -> None:
    async def main() -> None:
        with anyio.fail_after(60):
            async with Client(stdio_client(server(home, "--profile", "knowledge")), mode=era) as client:
                tools = (await client.list_tools()).tools
                assert [tool.name for tool in tools][:2] == ["notes.search", "notes.get"]
                assert len(tools) == 13
                assert tools[0].meta["readOnlyHint"] is True  # type: ignore[index]
                found = await client.call_tool("knowledge_search", {"query": "oolong"})
                assert json.loads(text_of(found)) == found.structured_content
                (hit,) = found.structured_content["results"]
                read = await client.call_tool("knowledge.get", {"id": hit["uri"], "retrieval": {"loc": hit["loc"]}})
                assert read.structured_content["content"].startswith("Oolong")
                off = await client.call_tool("notes.create", {"title": "x", "content": "y"})
                assert off.is_error
                assert data_of(off)["error"]["code"] == "writes_disabled"
                types = await client.read_resource("media://types")
                assert json.loads(said(types.contents[0]))["counts"] == {"video": 1}
                with pytest.raises(MCPError):
                    await client.read_resource("notes://none")
                assert [prompt.name for prompt in (await client.list_prompts()).prompts] == ["Greet"]
                filled = await client.get_prompt("Greet", {"who": "you"})
                assert said(filled.messages[0].content) == "Hi you"
                with pytest.raises(MCPError, match=r"notes\.search"):
                    await client.call_tool("notes.serch", {})

    anyio.run(main)


def test_writing_and_aliases_are_listed_where_they_are_allowed(home: Path) -> None:
    async def main() -> None:
        with anyio.fail_after(60):
            parameters = server(
                home, "--profile", "knowledge", "--allow-writes", list_aliases="1", tool_names="underscore"
            )
            async with Client(stdio_client(parameters)) as client:
                names = [tool.name for tool in (await client.list_tools()).tools]
                assert len(names) == 31
                assert names[-2:] == ["search", "fetch"]
                assert names[13] == "notes_create"
                made = await client.call_tool("notes.create", {"title": "New", "content": "quagga"})
                assert made.structured_content["changed"] is True
                found = await client.call_tool("search", {"query": "quagga"})
                assert found.structured_content["results"][0]["title"] == "New"
            async with Client(stdio_client(server(home, "--profile", "research"))) as client:
                assert [tool.name for tool in (await client.list_tools()).tools] == ["search", "fetch"]
                found = await client.call_tool("search", {"query": "quagga"})
                read = await client.call_tool("fetch", {"id": found.structured_content["results"][0]["id"]})
                assert read.structured_content["text"] == "quagga"

    anyio.run(main)


@pytest.mark.parametrize("backend", ["sqlite"])
@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
def test_a_request_brings_its_config_over_stdio(home: Path, era: str) -> None:
    async def main() -> None:
        with anyio.fail_after(60):
            async with Client(stdio_client(server(home, "--profile", "knowledge")), mode=era) as client:
                config = {"snippetLength": 20, "colour": "red"}
                found = await client.call_tool("notes.search", {"query": "oolong"}, meta={"commonplace/config": config})  # type: ignore[arg-type]
                assert found.structured_content["applied"]["snippet_length"] == 20
                assert [warning["code"] for warning in found.structured_content["warnings"]] == ["config_ignored"]
                found = await client.call_tool("notes.search", {"query": "oolong"})
                assert found.structured_content["applied"]["snippet_length"] == 300

    anyio.run(main)
