"""The qmd profile on standard input and output, line by line: what really goes over the wire."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from commonplace.library import Library
from kit.forked import forked
from opening import library_settings
from qmd_library import fill, write
from serving import environment_of

Rpc = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def rpc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rpc]:
    root: Path = tmp_path_factory.mktemp("stdio")
    write(root / "files")
    with Library.open(root / "home", settings=library_settings(root / "home")) as library:
        fill(library, root / "files")
    command = forked("mcp", "--profile", "qmd")
    server = subprocess.Popen(command, env=environment_of(root / "home"), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert server.stdin is not None
    assert server.stdout is not None

    def send(message: dict[str, Any]) -> None:
        assert server.stdin is not None
        server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        server.stdin.flush()

    number = 0

    def ask(method: str, **params: Any) -> dict[str, Any]:
        nonlocal number
        number += 1
        send({"id": number, "method": method, "params": params})
        assert server.stdout is not None
        while True:
            line = server.stdout.readline()
            assert line, "the server went away"
            message: dict[str, Any] = json.loads(line)  # nothing but JSON-RPC on standard output
            if message.get("id") == number:
                return message

    try:
        client = {"name": "test", "version": "1"}
        opened = ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=client)
        assert opened["result"]["protocolVersion"] == "2025-06-18"
        assert "Collections: docs, notes, private." in opened["result"]["instructions"]
        send({"method": "notifications/initialized"})
        yield ask
    finally:
        server.stdin.close()
        try:
            assert server.wait(timeout=20) == 0
        finally:
            server.kill()
            server.wait()
            server.stdout.close()


def test_the_list_of_tools_is_under_eight_kilobytes(rpc: Rpc) -> None:
    result = rpc("tools/list")["result"]
    assert [tool["name"] for tool in result["tools"]] == ["search", "vsearch", "query", "get", "multi_get", "status"]
    assert len(json.dumps(result, separators=(",", ":")).encode()) < 8000


def test_get_is_one_embedded_resource_with_its_name_and_title(rpc: Rpc) -> None:
    result = rpc("tools/call", name="get", arguments={"file": "notes/2025/old plan.md:1:1", "lineNumbers": True})[
        "result"
    ]
    assert "structuredContent" not in result
    assert not result.get("isError")
    (block,) = result["content"]
    assert block["type"] == "resource"
    assert block["resource"] == {
        "uri": "qmd://notes/2025/old%20plan.md",
        "name": "notes/2025/old plan.md",
        "title": "Old plan",
        "mimeType": "text/markdown",
        "text": "<!-- Context: Everything about the house.\n\nPlans of the year --&gt; and more. -->\n\n1: # Old plan",
    }


def test_a_search_has_text_and_structure(rpc: Rpc) -> None:
    result = rpc("tools/call", name="search", arguments={"query": "quarterly plan"})["result"]
    assert result["content"][0]["text"].startswith("Found ")
    assert result["structuredContent"]["results"][0]["file"] == "notes/2025/plan.md"


@pytest.mark.parametrize(
    ("name", "arguments", "code"),
    [
        ("get", {"file": "notes/2025/pln.md"}, "not_found"),
        ("get", {"file": "c.md"}, "ambiguous"),
        ("get", {"file": "drafts/hidden.md"}, "excluded_by_ignore"),
        ("multi_get", {"pattern": "zz*"}, "no_match"),
        ("search", {"query": "tea", "collection": "nope"}, "collection_not_found"),
        ("search", {"query": "tea", "nope": 1}, "invalid_argument"),
        ("search", {"query": "tea", "limit": "many"}, "invalid_argument"),
        ("query", {"searches": [{"type": "lex", "query": " "}]}, "invalid_argument"),
        ("vsearch", {"query": "tea"}, "vector_index_missing"),
    ],
)
def test_a_failure_is_an_error_with_a_code_and_the_sentence(
    rpc: Rpc, name: str, arguments: dict[str, Any], code: str
) -> None:
    result = rpc("tools/call", name=name, arguments=arguments)["result"]
    assert result["isError"] is True
    sentence = result["content"][0]["text"]
    assert result["structuredContent"]["error"] == {"code": code, "message": sentence}


def test_resources_are_read_by_address_and_not_listed(rpc: Rpc) -> None:
    assert rpc("resources/list")["result"]["resources"] == []
    (template,) = rpc("resources/templates/list")["result"]["resourceTemplates"]
    assert template["uriTemplate"] == "qmd://{+path}"
    (content,) = rpc("resources/read", uri="qmd://notes/crlf.md")["result"]["contents"]
    assert (content["uri"], content["name"], content["title"]) == ("qmd://notes/crlf.md", "notes/crlf.md", "Windows")
    assert content["text"].endswith("1: # Windows\n2: \n3: first line\n4: second line")


@pytest.mark.parametrize("uri", ["qmd://notes/2025/pln.md", "qmd://c.md", "qmd://notes/drafts/hidden.md"])
def test_a_resource_that_cannot_be_read_is_a_protocol_error(rpc: Rpc, uri: str) -> None:
    error = rpc("resources/read", uri=uri)["error"]
    assert error["code"] == -32002
    assert error["data"]["uri"] == uri
    assert isinstance(error["data"]["suggestions"], list)
    assert error["message"].startswith(("Document not found", "Ambiguous path", "Document excluded"))


def test_the_prompt_reaches_the_client(rpc: Rpc) -> None:
    assert [prompt["name"] for prompt in rpc("prompts/list")["result"]["prompts"]] == ["query"]
    (message,) = rpc("prompts/get", name="query")["result"]["messages"]
    assert message["content"]["text"].startswith("# QMD - Quick Markdown Search")
