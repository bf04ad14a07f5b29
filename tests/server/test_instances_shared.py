"""Instances of servers that share a database: what one has made, the other serves, changes and is told of."""

from __future__ import annotations

from pathlib import Path

import anyio
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from commonplace.kinds.tables.data_drawer import DataDrawer
from commonplace.library import Library
from commonplace.server.auth import make_gate
from commonplace.server.http import make_app
from commonplace.server.principal import OWNER
from commonplace.store.postgres import has_space
from opening import library_settings, space_of
from postgres_server import postgres
from serving import served


def test_a_server_serves_instances_that_another_has_made(tmp_path: Path) -> None:
    space = space_of(tmp_path)
    here = library_settings(tmp_path / "here", store=postgres().app, store_connections=5)
    there = library_settings(tmp_path / "there", store=postgres().app, store_connections=5)
    with Library.open(here.home, space, here) as library:
        tables = library.tables
        tables.catalog.create_project("p")
        table = tables.catalog.create_table("p", "t", data=[{"name": "oolong"}])
        for type, name in (("search", "find"), ("create", "add")):
            tables.catalog.create_tool(table, type, name, {})
        _, key = tables.instances.create("front", tool_ids=["find", "add"])
        with served(make_app(there, make_gate(there, owner=OWNER))) as port:
            anyio.run(use, port, key)
            assert library.store.drawer(DataDrawer).value(table.number, ("1",)) == {"name": "sencha"}
            unknown = key.replace(f"_{space}_", f"_{space}x_")
            assert anyio.run(status, port, unknown) == 401
            tables.instances.update(tables.instances.find("front"), {"status": "disabled"})
            assert anyio.run(status, port, key) == 403
    assert not (there.home / "spaces" / f"{space}x").exists()
    assert has_space(postgres().app, space, 5)
    for name in (f"{space}x", "x'; drop table items; --", ""):
        assert not has_space(postgres().app, name, 5)


async def use(port: int, key: str) -> None:
    with anyio.fail_after(60):
        async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}, timeout=30) as carrier:
            streams = streamable_http_client(f"http://127.0.0.1:{port}/mcp/i/front", http_client=carrier)
            async with Client(streams) as client:
                assert [tool.name for tool in (await client.list_tools()).tools] == ["add", "find"]
                made = await client.call_tool("add", {"elements": [{"content": {"name": "sencha"}}]})
                assert made.structured_content == {"created": [{"key": 1, "json_path": "/1"}], "version": 2}
                found = await client.call_tool("find", {"query": "sencha"})
                assert found.structured_content is not None
                assert found.structured_content["results"][0]["json_path"] == "/1"


async def status(port: int, key: str) -> int:
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}, timeout=30) as carrier:
        return (await carrier.post(f"http://127.0.0.1:{port}/mcp/i/front", json={})).status_code
