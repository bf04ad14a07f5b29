"""Instances over HTTP and standard input: opened by their own key, serving what is bound to them as it is now.

1. A missing or wrong key, another instance's and an unknown instance are the same 401; a disabled one is 403.
2. What is listed and callable is the enabled bindings, by name, checked at each call.
3. Clients hear of changes in both eras, whichever process made them.
4. Nothing else of the space is reached.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import ToolsListChanged

from commonplace.library import Library
from commonplace.server.auth import make_gate
from commonplace.server.http import make_app
from commonplace.server.principal import OWNER
from commonplace.settings import Settings
from kit.forked import forked, forked_server
from opening import library_settings
from serving import served

HELLO = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}  # fmt: skip


class World:
    """A space with a table, two instances and a server."""

    def __init__(self, home: Path, settings: Settings) -> None:
        self.home, self.settings, self.port = home, settings, 0
        with self.open() as library:
            tables = library.tables
            tables.catalog.create_project("p")
            table = tables.catalog.create_table(
                "p", "t", data={"stock": [{"name": "oolong"}], "secret": "hidden words"}
            )
            for type, name in (("search", "find"), ("get_all_data", "all"), ("create", "add")):
                tables.catalog.create_tool(table, type, name, {"json_path": "/stock"})
            _, self.key = tables.instances.create("front", tool_ids=["find", "all", "add"])
            _, self.other_key = tables.instances.create("back")

    def open(self) -> Library:
        return Library.open(self.home, settings=self.settings)

    @asynccontextmanager
    async def client(self, era: str = "auto", heard: Any = None, key: str | None = None) -> AsyncIterator[Client]:
        headers = {"Authorization": f"Bearer {key or self.key}"}
        with anyio.fail_after(60):
            async with httpx2.AsyncClient(headers=headers, timeout=30) as carrier:
                streams = streamable_http_client(f"http://127.0.0.1:{self.port}/mcp/i/front", http_client=carrier)
                async with Client(streams, mode=era, message_handler=heard) as client:
                    yield client

    def post(self, name: str, headers: dict[str, str]) -> tuple[int, dict[str, Any]]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            kinds = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
            connection.request("POST", f"/mcp/i/{name}", json.dumps(HELLO), {**kinds, **headers})
            reply = connection.getresponse()
            body = reply.read()
            is_json = "json" in (reply.getheader("Content-Type") or "")
            return reply.status, json.loads(body) if is_json else {}
        finally:
            connection.close()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    settings = library_settings(tmp_path)
    world = World(tmp_path, settings)
    with served(make_app(settings, make_gate(settings, owner=OWNER))) as port:
        world.port = port
        yield world


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def test_only_its_own_key_opens_an_instance(world: World) -> None:
    assert world.post("front", bearer(world.key))[0] == 200
    assert world.post("front", {"X-API-KEY": world.key})[0] == 200
    refusals = [
        world.post("front", {}),
        world.post("front", bearer("nonsense")),
        world.post("front", bearer(world.key[:-1] + ("0" if world.key[-1] != "0" else "1"))),
        world.post("front", bearer(world.other_key)),
        world.post("none", bearer(world.key)),
        world.post("front", bearer(world.key.replace("_default_", "_elsewhere_"))),
        world.post(f"front?key={world.key}", {}),
    ]
    assert {status for status, _ in refusals} == {401}
    assert len({json.dumps(body) for _, body in refusals}) == 1
    assert not (world.home / "spaces" / "elsewhere").exists()


def test_a_disabled_instance_is_forbidden_and_a_new_key_ends_the_old_one(world: World) -> None:
    with world.open() as library:
        instances = library.tables.instances
        instances.update(instances.find("front"), {"status": "disabled"})
        assert world.post("front", bearer(world.key))[0] == 403
        assert world.post("front", bearer(world.other_key))[0] == 401
        _, key = instances.update(instances.find("front"), {"status": "enabled", "rotate_key": True})
        assert key is not None
        assert world.post("front", bearer(world.key))[0] == 401
        assert world.post("front", bearer(key))[0] == 200


@pytest.mark.parametrize("era", ["auto", "legacy"])
def test_an_instance_serves_its_bindings_by_name_and_nothing_else(world: World, era: str) -> None:
    async def main() -> None:
        async with world.client(era) as client:
            listed = (await client.list_tools()).tools
            assert [tool.name for tool in listed] == ["add", "all", "find"]
            assert listed[2].annotations is not None
            assert listed[2].annotations.read_only_hint
            assert client.server_capabilities.tools is not None
            assert client.server_capabilities.tools.list_changed
            assert client.server_capabilities.resources is None
            assert client.server_capabilities.prompts is None
            made = await client.call_tool("add", {"elements": [{"content": {"name": "sencha"}}]})
            assert made.structured_content == {"created": [{"key": 1, "json_path": "/1"}], "version": 2}
            found = await client.call_tool("find", {"query": "sencha"})
            assert found.structured_content is not None
            assert found.structured_content["results"][0]["json_path"] == "/1"
            refused = await client.call_tool("find", {"query": "x", "top_k": 50})
            assert refused.is_error
            assert refused.structured_content is not None
            assert refused.structured_content["error"]["argument"] == "top_k"
            for unknown in ("table_list", "search", "nothing"):
                with pytest.raises(MCPError) as refusal:
                    await client.call_tool(unknown, {})
                assert refusal.value.code == -32602

    anyio.run(main)


def test_an_answer_of_a_mebibyte_is_sent_whole(world: World) -> None:
    most = "x" * (1024 * 1024 - 2)
    with world.open() as library:
        tables = library.tables
        table = tables.catalog.create_table("p", "large", data=most)
        tables.catalog.create_tool(table, "get_all_data", "large", {})
        tables.instances.bind(tables.instances.find("front"), ["large"])

    async def main() -> None:
        async with world.client() as client:
            answer = await client.call_tool("large", {})
            assert answer.structured_content == {"data": most, "version": 1}

    anyio.run(main)


def test_calls_are_counted_by_what_a_tool_does_and_not_by_the_name_its_owner_gave_it(world: World) -> None:
    async def main() -> None:
        async with world.client() as client:
            await client.call_tool("all", {})
            await anyio.to_thread.run_sync(rename, world)
            await client.call_tool("everything", {})

    anyio.run(main)
    connection = http.client.HTTPConnection("127.0.0.1", world.port, timeout=20)
    connection.request("GET", "/metrics")
    told = connection.getresponse().read().decode()
    connection.close()
    assert 'commonplace_calls_total{tool="instance.get_all_data"} 2.0' in told
    assert "everything" not in told


def test_each_call_is_checked_against_what_is_bound_now(world: World) -> None:
    async def main() -> None:
        async with world.client() as client:
            assert not (await client.call_tool("all", {})).is_error
            await anyio.to_thread.run_sync(unbind)
            with pytest.raises(MCPError) as refusal:
                await client.call_tool("all", {})
            assert refusal.value.code == -32602
            assert [tool.name for tool in (await client.list_tools()).tools] == ["add"]

    def unbind() -> None:
        with world.open() as library:
            instances = library.tables.instances
            instances.bind(instances.find("front"), ["all"], enabled=False)
            instances.unbind(instances.find("front"), ["find"])

    anyio.run(main)


def rename(world: World) -> None:
    with world.open() as library:
        library.tables.catalog.update_tool(library.tables.tool("all"), {"name": "everything"})


@pytest.mark.parametrize("era", ["auto", "legacy"])
def test_clients_hear_of_what_another_process_binds(world: World, era: str) -> None:
    async def main() -> None:
        sink, source = anyio.create_memory_object_stream[str](100)

        async def hear(message: Any) -> None:
            if (method := getattr(message, "method", None)) is not None:
                await sink.send(method)

        async with world.client(era, hear) as client:
            if era == "auto":
                async with client.listen(tools_list_changed=True) as changes:
                    assert changes.honored.tools_list_changed
                    await anyio.to_thread.run_sync(rename, world)
                    with anyio.fail_after(10):
                        assert await anext(aiter(changes)) == ToolsListChanged()
            else:
                await heard_at_last(world, source)
            names = [tool.name for tool in (await client.list_tools()).tools]
            assert "everything" in names or era == "legacy"
        sink.close()
        source.close()

    anyio.run(main)


async def heard_at_last(world: World, source: Any) -> None:
    """Over HTTP the client opens its stream when it likes; what changes before that, it is not told."""
    for number in range(20):
        await anyio.to_thread.run_sync(describe, world, number)
        with anyio.move_on_after(3):
            assert await source.receive() == "notifications/tools/list_changed"
            return
    raise AssertionError("nothing was heard")


def describe(world: World, number: int) -> None:
    with world.open() as library:
        library.tables.catalog.update_tool(library.tables.tool("all"), {"description": f"number {number}"})


def test_whoever_has_the_files_serves_an_instance_on_standard_input(world: World) -> None:
    environment = {**os.environ, "COMMONPLACE_HOME": str(world.home), "COMMONPLACE_MODEL": "static"}
    command = forked_server("mcp", "--instance", "front")

    async def main() -> None:
        server = stdio_client(StdioServerParameters(**command, env=environment))
        with anyio.fail_after(60):
            async with Client(server) as client:
                assert [tool.name for tool in (await client.list_tools()).tools] == ["add", "all", "find"]
                found = await client.call_tool("find", {"query": "oolong"})
                assert found.structured_content is not None
                assert found.structured_content["results"][0]["chunk"]["json_pointer"] == "/stock/0"

    anyio.run(main)
    with world.open() as library:
        library.tables.instances.update(library.tables.instances.find("front"), {"status": "disabled"})
    for name, sentence in (("front", "is disabled"), ("none", "There is no instance")):
        ended = subprocess.run(
            forked("mcp", "--instance", name), env=environment, capture_output=True, text=True, timeout=60,
            stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip
        assert ended.returncode != 0
        assert sentence in ended.stderr
