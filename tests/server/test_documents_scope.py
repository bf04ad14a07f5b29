"""The documents tools through real doors, and what each of them lets a caller see."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from commonplace.library import Library
from commonplace.server.auth import make_gate
from commonplace.server.http import make_app
from commonplace.store.sqlite.accounts import Accounts
from commonplace.tools.tool import View
from kit.answers import text_of
from kit.forked import forked, forked_server
from opening import library_settings
from serving import served


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for name, text in (("guide", "# Tea\n\nOolong.\n\n## Water\n\nHot.\n"), ("manual", "# Router\n\nRestart it.\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.md").write_text(text, encoding="utf-8")
    with Library.open(tmp_path / "home", settings=library_settings(tmp_path / "home")) as library:
        library.add_folder(tmp_path / "guide", "guide")
        library.add_folder(tmp_path / "manual", "manual")
        library.embed()
    return tmp_path / "home"


def environment(home: Path) -> dict[str, str]:
    return {**os.environ, "COMMONPLACE_HOME": str(home), "COMMONPLACE_MODEL": "static"}


def stdio(home: Path, *more: str) -> StdioServerParameters:
    command = forked_server("mcp", "--profile", "documents", *more)
    return StdioServerParameters(**command, env=environment(home), cwd=str(home.parent))


def test_a_client_uses_every_tool_over_stdio(home: Path) -> None:
    place = {"collection": "guide", "document": "a.md"}
    calls: list[tuple[str, dict[str, Any]]] = [
        ("documents_list_documents", {"collection": "guide"}),
        ("documents_get_document", place),
        ("documents_get_outline", place),
        ("documents_get_section", {**place, "section": "water"}),
        ("documents_search_batch", {"queries": [{"query": "tea"}, {"query": "router"}]}),
        ("documents_find_related", {**place, "collections": ["*"]}),
    ]

    async def main() -> None:
        with anyio.fail_after(90):
            async with Client(stdio_client(stdio(home))) as client:
                tools = (await client.list_tools()).tools
                assert len(tools) == 8
                listed = await client.call_tool("documents_list_collections", {})
                assert json.loads(text_of(listed)) == listed.structured_content["collections"]
                found = await client.call_tool("documents_search", {"query": "oolong"})
                assert json.loads(text_of(found)) == found.structured_content["results"]
                for name, arguments in calls:
                    answer = await client.call_tool(name, arguments)
                    assert not answer.is_error, name
                    assert json.loads(text_of(answer)) == answer.structured_content
                missing = await client.call_tool("documents_get_document", {**place, "document": "b.md"})
                assert not missing.is_error
                assert text_of(missing).startswith('Document "b.md" not found in collection "guide".')
                unknown = await client.call_tool("documents_get_document", {**place, "collection": "gide"})
                assert unknown.is_error
                assert text_of(unknown).startswith('Collection "gide" not found.')
                assert unknown.structured_content["error"]["code"] == "collection_not_found"

    anyio.run(main)


def test_a_server_shows_what_it_was_started_with_and_what_changes_since(home: Path) -> None:
    project = home.parent / "project"
    project.mkdir()
    (project / "context.json").write_text('{"collections": {"own": "../guide"}}', encoding="utf-8")

    async def names(client: Client) -> list[str]:
        listed = await client.call_tool("documents_list_collections", {})
        return [one["collection"] for one in listed.structured_content["collections"]]

    async def main() -> None:
        with anyio.fail_after(90):
            async with Client(stdio_client(stdio(home, "--collections", "manual"))) as client:
                assert await names(client) == ["manual"]
            async with Client(stdio_client(stdio(home, "--project", str(project), "--no-global"))) as client:
                assert await names(client) == ["own"]
                (project / "context.json").write_text('{"collections": {"mine": "../guide"}}', encoding="utf-8")
                assert await names(client) == ["mine"]

    anyio.run(main)


def test_an_unknown_collection_stops_the_start(home: Path) -> None:
    command = forked("mcp", "--profile", "documents", "--collections", "guide,gide")
    done = subprocess.run(command, env=environment(home), input="", capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert 'Collection "gide" not found' in done.stderr
    assert "guide, manual" in done.stderr


def test_an_unknown_collection_stops_the_start_also_where_users_have_keys(home: Path) -> None:
    command = forked("serve", "--port", "0", "--collections", "gide")
    given = {**environment(home), "COMMONPLACE_AUTH": "keys"}
    done = subprocess.run(command, env=given, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    assert 'Collection "gide" not found' in done.stderr


def test_a_user_sees_nothing_of_what_the_servers_owner_has_declared(home: Path) -> None:
    project = home.parent / "project"
    project.mkdir()
    (project / "context.json").write_text('{"collections": {"secret-plans": "../guide"}}', encoding="utf-8")
    (home / "context.json").write_text('{"collections": {"payroll": "https://example.org/x.tgz"}}', encoding="utf-8")
    accounts = Accounts(home / "accounts.db")
    accounts.add_user("owner", "default")
    accounts.add_user("ann", "ann")
    own, other = accounts.create_key("owner"), accounts.create_key("ann")
    accounts.close()
    settings = library_settings(home, auth="keys")
    with served(make_app(settings, make_gate(settings), view=View(project))) as port:
        shown = [
            one["collection"] for one in ask(port, "documents_list_collections", {}, key=own).json()["collections"]
        ]
        assert shown == ["manual", "payroll", "secret-plans"]
        assert ask(port, "documents_list_collections", {}, key=other).json()["collections"] == []
        refused = ask(port, "documents_list_documents", {"collection": "payroll"}, key=other)
        assert (refused.status_code, refused.json()["error"]["collections"]) == (404, [])


def ask(port: int, tool: str, arguments: dict[str, Any], query: str = "", key: str = "") -> httpx.Response:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    address = f"http://127.0.0.1:{port}/api/v1/tools/{tool}{query}"
    return httpx.post(address, json=arguments, headers=headers, timeout=60)


def test_an_address_narrows_and_never_widens(home: Path) -> None:
    settings = library_settings(home)
    with served(make_app(settings, make_gate(settings))) as port:
        for query in ("?collections=manual,nothing", "?collections=manual&collections=nothing"):
            listed = ask(port, "documents_list_collections", {}, query).json()
            assert [one["collection"] for one in listed["collections"]] == ["manual"], query
        refused = ask(
            port, "documents_get_document", {"collection": "guide", "document": "a.md"}, "?collections=manual"
        )
        assert (refused.status_code, refused.json()["error"]["collections"]) == (404, ["manual"])
        found = ask(port, "documents_search", {"query": "oolong", "limit": 100}, "?collections=manual").json()
        assert {one["collection"] for one in found["results"]} == {"manual"}

        async def over_mcp() -> None:
            with anyio.fail_after(60):
                async with Client(f"http://127.0.0.1:{port}/mcp/documents?collections=guide&collections=nil") as client:
                    answer = await client.call_tool("documents_list_collections", {})
                    assert [one["collection"] for one in answer.structured_content["collections"]] == ["guide"]

        anyio.run(over_mcp)


def test_a_limited_key_sees_its_collections_and_nothing_else_of_the_space(home: Path) -> None:
    accounts = Accounts(home / "accounts.db")
    accounts.add_user("ann", "default")
    limited, free = accounts.create_key("ann", collections=["manual"]), accounts.create_key("ann")
    accounts.close()
    settings = library_settings(home, auth="keys")
    with served(make_app(settings, make_gate(settings))) as port:
        for query in ("", "?collections=guide,manual"):
            listed = ask(port, "documents_list_collections", {}, query, limited).json()
            assert [one["collection"] for one in listed["collections"]] == ["manual"]
        assert len(ask(port, "documents_list_collections", {}, key=free).json()["collections"]) == 2
        for tool, arguments in (("search", {"query": "oolong"}), ("fetch", {"uri": "docs://guide/a.md"})):
            denied = ask(port, tool, arguments, key=limited)
            assert denied.status_code == 403
            assert "limited to collections" in denied.json()["error"]["message"]
            assert ask(port, tool, arguments, key=free).status_code == 200
        embedded = httpx.post(
            f"http://127.0.0.1:{port}/qmd/embed", json={"texts": ["x"]}, headers={"Authorization": f"Bearer {limited}"}
        )
        assert embedded.status_code == 403
