"""Plain HTTP, over a real socket.

1. Every tool is callable, with the same answers and the same errors as over the protocol.
2. The OpenAPI document describes exactly the tools there are.
3. What is not JSON, too deep, of another site or unknown is refused in words; the server goes on.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from commonplace.library import Library
from commonplace.model import Draft
from commonplace.settings import Settings
from serving import environment_of, fill, process

Send = Callable[..., tuple[int, Any]]


@pytest.fixture(scope="module")
def send(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Send]:
    with process(environment_of(fill(tmp_path_factory.mktemp("home")))) as server:
        yield sender(server.address)


def sender(address: str) -> Send:
    place = urlsplit(address)

    def request(
        method: str, path: str, body: Any = None, *, raw: bytes | None = None, **headers: str
    ) -> tuple[int, Any]:
        connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=30)
        data = raw if raw is not None else None if body is None else json.dumps(body).encode()
        connection.request(method, path, data, {"Content-Type": "application/json", **headers})
        reply = connection.getresponse()
        content = reply.read()
        connection.close()
        return reply.status, json.loads(content) if content.startswith(b"{") else content

    return request


def test_tools_are_listed_called_and_described(send: Send) -> None:
    status, listed = send("GET", "/api/v1/tools")
    names = [tool["name"] for tool in listed["tools"]]
    assert (status, names[:5]) == (200, ["search", "fetch", "browse", "related", "status"])
    status, found = send("POST", "/api/v1/tools/search", {"query": "oolong"})
    assert (status, found["results"][0]["uri"]) == (200, "notes://tea")
    assert found["results"][0]["snippet"] == "Oolong wants water just off the boil.\nGreen tea does not."
    assert send("POST", "/api/v1/tools/status", {})[1]["items"] == {"note": 2}
    status, described = send("GET", "/openapi.json")
    assert list(described["paths"]) == [f"/api/v1/tools/{name}" for name in names]
    assert (
        described["paths"]["/api/v1/tools/search"]["post"]["requestBody"]["content"]["application/json"]["schema"]
        == (listed["tools"][0]["inputSchema"])
    )
    assert send("GET", "/healthz") == (200, {"status": "ok"})
    assert send("GET", "/readyz") == (200, {"status": "ready"})


@pytest.mark.parametrize(
    ("path", "raw", "status", "code"),
    [
        ("search", b"{}", 400, "invalid_argument"),
        ("search", b'{"query": "x", "limit": "ten"}', 400, "invalid_argument"),
        ("search", b"not json", 400, "invalid_argument"),
        ("search", b"[1]", 400, "invalid_argument"),
        ("search", b"[" * 100_000, 400, "invalid_argument"),
        ("search", b"\xff\xfe", 400, "invalid_argument"),
        ("fetch", b'{"uri": "notes://nothing"}', 404, "not_found"),
        ("remember", b'{"text": "x"}', 403, "writes_disabled"),
        ("frobnicate", b"{}", 404, "not_found"),
    ],
)
def test_a_mistake_has_a_status_a_code_and_a_sentence(
    send: Send, path: str, raw: bytes, status: int, code: str
) -> None:
    answered, said = send("POST", f"/api/v1/tools/{path}", raw=raw)
    assert (answered, said["error"]["code"]) == (status, code)
    assert said["error"]["message"].endswith(".")
    assert send("GET", "/healthz")[0] == 200


@pytest.mark.parametrize(
    ("method", "path", "status", "code", "hint"),
    [
        ("GET", "/api/v1/tools/search", 405, "invalid_argument", "POST"),
        ("DELETE", "/api/v1/tools", 405, "invalid_argument", "GET, HEAD"),
        ("POST", "/api/v1/tools/a/b", 404, "not_found", "/openapi.json"),
        ("GET", "/nothing", 404, "not_found", "/openapi.json"),
        ("GET", "/mcp/nobody", 404, "not_found", "/mcp"),
    ],
)
def test_an_address_that_is_none_and_a_method_that_does_not_go_there_are_told_so(
    send: Send, method: str, path: str, status: int, code: str, hint: str
) -> None:
    answered, said = send(method, path)
    assert (answered, said["error"]["code"]) == (status, code)
    assert path in said["error"]["message"]
    assert hint in said["error"]["message"]


@pytest.mark.parametrize("headers", [{"Host": "evil.example"}, {"Origin": "https://evil.example"}])
@pytest.mark.parametrize("path", ["/api/v1/tools/search", "/mcp"])
def test_a_page_of_another_site_is_refused(send: Send, path: str, headers: dict[str, str]) -> None:
    assert send("POST", path, {"query": "oolong"}, **headers)[0] == 403


def test_a_search_takes_a_path(send: Send) -> None:
    status, answer = send("POST", "/api/v1/tools/search", {"query": "oolong", "path": "ops/**"})
    assert (status, answer["results"]) == (200, [])
    status, answer = send("POST", "/api/v1/tools/search", {"query": "oolong", "path": "//"})
    assert (status, answer["error"]["code"]) == (400, "invalid_argument")


def test_a_document_goes_by_the_end_of_its_path_over_http_too(tmp_path: Path) -> None:
    with Library.open(tmp_path / "home", settings=Settings(home=tmp_path / "home", model="static")) as library:
        for key in ("Areas/Vim.md", "a/Tea.md", "b/tea.md"):
            library.put(Draft("document", key, parent="Vault", body="# One\n\nTwo.\n", format="markdown"))
    with process(environment_of(tmp_path / "home")) as server:
        send = sender(server.address)
        status, read = send("POST", "/api/v1/tools/fetch", {"uri": "vim:3:1"})
        assert (status, read["items"][0]["uri"], read["items"][0]["text"]) == (200, "docs://Vault/Areas/Vim.md", "Two.")
        status, said = send("POST", "/api/v1/tools/fetch", {"uri": "tea"})
        assert (status, said["error"]["code"], said["error"]["candidates"]) == (
            409, "ambiguous", ["Vault/a/Tea.md", "Vault/b/tea.md"],
        )  # fmt: skip
        status, said = send("POST", "/api/v1/tools/related", {"uri": "vmi"})
        assert (status, said["error"]["message"]) == (404, "There is no vmi. Did you mean Vault/Areas/Vim.md?")
