"""The qmd server as a client meets it: MCP with the qmd tools at /mcp, the endpoints at the root."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client import Client

from commonplace.library import Library
from commonplace.qmd.http_server import make_qmd_app
from commonplace.server.auth import KeyGate, OpenGate
from commonplace.server.http import PortTaken, listen, make_app
from commonplace.server.service import Service
from commonplace.settings import Settings
from commonplace.store.sqlite.accounts import Accounts
from opening import library_settings
from qmd_library import fill, write
from serving import served


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    root: Path = tmp_path_factory.mktemp("app")
    write(root / "files")
    settings = library_settings(root / "home")
    with Library.open(root / "home", settings=settings) as library:
        fill(library, root / "files")
    return settings


@pytest.fixture(scope="module")
def port(settings: Settings) -> Iterator[int]:
    service = Service(settings)
    try:
        with served(make_qmd_app(service, OpenGate())) as port:
            yield port
    finally:
        service.close()


def ask(port: int, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        reply = connection.getresponse()
        return reply.status, json.loads(reply.read())
    finally:
        connection.close()


@pytest.mark.parametrize("place", ["/mcp", "/mcp/qmd"])
def test_an_mcp_client_finds_six_tools(port: int, place: str) -> None:
    async def talk() -> tuple[list[str], Any]:
        async with Client(f"http://127.0.0.1:{port}{place}") as client:
            listed = await client.list_tools()
            answer = await client.call_tool("search", {"query": "quarterly plan", "limit": 1})
            return [tool.name for tool in listed.tools], answer.structured_content

    names, answer = anyio.run(talk)
    assert names == ["search", "vsearch", "query", "get", "multi_get", "status"]
    assert answer["results"][0]["file"] == "notes/2025/plan.md"


def test_the_endpoints_are_at_the_root(port: int) -> None:
    assert ask(port, "GET", "/status")[1]["totalDocuments"] > 90
    assert ask(port, "POST", "/get", {"file": "notes/abc.md"})[1]["content"][0]["resource"]["name"] == "notes/abc.md"
    assert ask(port, "GET", "/health")[1]["status"] == "healthy"


@pytest.mark.parametrize(
    ("method", "path", "status"), [("GET", "/nowhere", 404), ("GET", "/search", 405), ("POST", "/get", 400)]
)
def test_what_is_refused_says_so_in_one_shape(port: int, method: str, path: str, status: int) -> None:
    code, answer = ask(port, method, path, {} if method == "POST" else None)
    assert code == status
    assert answer["status_code"] == status
    assert answer["detail"]


def test_pages_of_other_sites_are_kept_out(port: int) -> None:
    status, answer = ask(port, "GET", "/status", Origin="https://elsewhere.example")
    assert (status, answer["status_code"]) == (403, 403)
    assert ask(port, "POST", "/mcp", {}, Origin="https://elsewhere.example")[0] == 403
    assert ask(port, "GET", "/status", Origin="http://localhost:3000")[0] == 200


def test_friends_named_in_the_environment_are_let_in(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QMD_ALLOWED_ORIGINS", "https://friend.example")
    monkeypatch.setenv("QMD_ALLOWED_HOSTS", "box.local")
    service = Service(settings)
    try:
        with served(make_qmd_app(service, OpenGate())) as port:
            assert ask(port, "GET", "/status", Origin="https://friend.example", Host=f"box.local:{port}")[0] == 200
            assert ask(port, "GET", "/status", Origin="https://elsewhere.example")[0] == 403
    finally:
        service.close()


def test_a_key_is_asked_for_where_there_are_users(settings: Settings, tmp_path: Path) -> None:
    service = Service(replace(settings, auth="keys"))
    gate = KeyGate(Accounts(tmp_path / "accounts.db"))
    try:
        with served(make_qmd_app(service, gate)) as port:
            status, answer = ask(port, "GET", "/status")
            assert (status, answer["status_code"]) == (401, 401)
    finally:
        gate.close()
        service.close()


def test_the_whole_server_has_them_under_qmd(settings: Settings) -> None:
    with served(make_app(settings, OpenGate())) as port:
        assert ask(port, "GET", "/qmd/status")[1]["totalDocuments"] > 90
        status, answer = ask(port, "POST", "/qmd/search", {"query": " "})
        assert (status, answer) == (400, {"detail": "query must not be empty", "status_code": 400})
        assert ask(port, "GET", "/qmd/status", Origin="https://elsewhere.example")[1]["status_code"] == 403


def test_a_port_that_is_taken_is_told_in_words() -> None:
    with listen("127.0.0.1", 0) as taken, pytest.raises(PortTaken, match="cannot be listened on"):
        listen("127.0.0.1", taken.getsockname()[1])
