"""The qmd endpoints over real HTTP: the tools' answers, and refusals as a sentence with a status."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Receive, Scope, Send

from commonplace.library import Library
from commonplace.qmd.http_server import Details, allowed_hosts, routes
from commonplace.server.heads import OriginGuard
from commonplace.server.principal import OWNER
from commonplace.server.service import Service
from opening import library_settings
from qmd_library import fill, write
from serving import served

Ask = Callable[..., tuple[int, Any]]


class Owned:
    """Everyone is the owner of the home."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app({**scope, "principal": OWNER}, receive, send)


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    root: Path = tmp_path_factory.mktemp("http")
    settings = replace(library_settings(root / "home"), body_bytes=10_000_000)
    write(root / "files")
    with Library.open(root / "home", settings=settings) as library:
        fill(library, root / "files")
    service = Service(settings)
    middleware = [Middleware(Details), Middleware(OriginGuard, hosts=["friend.example"]), Middleware(Owned)]
    try:
        with served(Starlette(routes=routes(service), middleware=middleware)) as port:

            def request(method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
                try:
                    sent = body if isinstance(body, bytes | None) else json.dumps(body).encode()
                    connection.request(method, path, sent, headers)
                    reply = connection.getresponse()
                    return reply.status, json.loads(reply.read())
                finally:
                    connection.close()

            yield request
    finally:
        service.close()


def test_a_search_answers_results_text_and_stages(ask: Ask) -> None:
    status, answer = ask("POST", "/search", {"query": "quarterly plan", "min_score": 0.1, "limit": 3})
    assert status == 200
    assert answer["results"][0]["file"] == "notes/2025/plan.md"
    assert answer["content"].startswith("Found ")
    assert [stage["stage"] for stage in answer["stages"]] == ["lexical"]
    assert (
        ask("POST", "/search", {"query": "quarterly plan", "minScore": 0.1, "limit": 3})[1]["results"]
        == answer["results"]
    )


def test_search_given_searches_answers_as_query(ask: Ask) -> None:
    searches = {"searches": [{"type": "lex", "query": "oolong"}]}
    assert ask("POST", "/search", searches)[1]["results"] == ask("POST", "/query", searches)[1]["results"]


def test_documents_are_read(ask: Ask) -> None:
    status, answer = ask("POST", "/get", {"file": "numbers.md", "from_line": 5, "max_lines": 1, "line_numbers": True})
    assert status == 200
    (block,) = answer["content"]
    assert block["resource"]["name"] == "notes/numbers.md"
    assert block["resource"]["title"] == "numbers"
    assert block["resource"]["text"].endswith("\n\n5: line 5")
    assert len(ask("POST", "/multi_get", {"pattern": "?/c.md"})[1]["content"]) == 2


def test_status_and_health_tell_how_it_is(ask: Ask) -> None:
    status, answer = ask("GET", "/status")
    assert (status, [one["name"] for one in answer["collections"]]) == (200, ["docs", "notes", "private"])
    status, answer = ask("GET", "/health")
    assert (status, answer["status"]) == (200, "healthy")
    assert isinstance(answer["model_loaded"], bool)
    assert answer["uptime"] >= 0


def test_texts_are_embedded(ask: Ask) -> None:
    status, answer = ask("POST", "/embed", {"texts": ["tea", "bread"], "kind": "query"})
    assert (status, len(answer["embeddings"])) == (200, 2)
    assert {len(vector) for vector in answer["embeddings"]} == {answer["dimensions"]}
    assert answer["model"]


@pytest.mark.parametrize(
    ("path", "body", "status", "sentence"),
    [
        ("/search", {"query": " "}, 400, "query must not be empty"),
        ("/search", {"query": "tea", "nope": 1}, 400, 'search has no argument "nope".'),
        ("/search", b"not json", 400, "The body is not JSON."),
        ("/search", [1], 400, "The body is not an object."),
        ("/search", {"query": "tea", "collection": "nope"}, 404, "Collection not found: nope."),
        ("/vsearch", {"query": "tea"}, 503, "Vector index not found. Run 'qmd embed' first to create embeddings."),
        ("/get", {"file": "nothing-like-it-anywhere-at-all.xyz"}, 404, "Document not found: "),
        ("/get", {"file": "c.md"}, 409, "Ambiguous path c.md: "),
        ("/get", {"file": "drafts/hidden.md"}, 404, "Document excluded by ignore rule: "),
        ("/multi_get", {"pattern": "zz*"}, 404, "No files matched pattern: zz*"),
        ("/embed", {"texts": []}, 400, "Empty texts list"),
        ("/embed", {"texts": ["x"] * 1001}, 413, "Too many texts (1001 > 1000)"),
        ("/embed", {"texts": "x"}, 400, "texts must be a list of strings."),
        ("/embed", {"texts": ["x"], "kind": "poem"}, 400, "kind must be one of document, query."),
        ("/search", b"[" + b" " * 10_000_001 + b"]", 413, "A request has at most 10000000 bytes."),
        ("/health", {}, 405, "Method Not Allowed"),
    ],
)  # fmt: skip
def test_a_refusal_is_a_sentence_and_a_status(ask: Ask, path: str, body: Any, status: int, sentence: str) -> None:
    got, answer = ask("POST", path, body)
    assert (got, answer["status_code"]) == (status, status)
    assert answer["detail"].startswith(sentence)
    assert set(answer) == {"detail", "status_code"}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "https://evil.example"}, 403),
        ({"Host": "evil.example"}, 403),
        ({"Origin": "http://localhost:3000"}, 200),
        ({"Host": "friend.example"}, 200),
    ],
)
def test_foreign_pages_are_refused(ask: Ask, headers: dict[str, str], status: int) -> None:
    got, answer = ask("GET", "/status", **headers)
    assert got == status
    if status == 403:
        assert answer["status_code"] == 403
        assert answer["detail"]


def test_hosts_may_be_added_by_the_environment() -> None:
    given = {"QMD_ALLOWED_HOSTS": "a.example, b.example:8181", "QMD_ALLOWED_ORIGINS": "https://c.example:1,"}
    assert allowed_hosts(given) == ["a.example", "b.example", "c.example"]
