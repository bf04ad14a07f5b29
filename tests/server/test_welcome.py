"""What a person sees who opens a server's address in a browser.

1. `/`, `/mcp` and an address that there is not answer a short page: what this is, what is in it, how to connect.
2. Programs get what they got: JSON, errors, the protocol.
3. Where a key is needed, the page tells nothing about the library. What the address says is never markup.
"""

from __future__ import annotations

import http.client
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from serving import environment_of, fill, process

BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with process(environment_of(fill(tmp_path_factory.mktemp("home")))) as server:
        yield server.address


def ask(
    address: str, path: str, headers: dict[str, str], method: str = "GET"
) -> tuple[int, http.client.HTTPMessage, str]:
    place = urlsplit(address)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=30)
    try:
        connection.request(method, path, headers=headers)
        reply = connection.getresponse()
        return reply.status, reply.headers, reply.read().decode()
    finally:
        connection.close()


def words(page: str) -> str:
    """Return what a page says, on one line and without markup."""
    return " ".join(unescape(re.sub(r"<style>.*?</style>|<[^>]*>", " ", page, flags=re.DOTALL)).split())


# 1. A page


@pytest.mark.parametrize(
    ("path", "status", "place"),
    [
        ("/", 200, "/mcp"),
        ("/mcp", 200, "/mcp"),
        ("/mcp/memory", 200, "/mcp/memory"),
        ("/nothing", 404, "/mcp"),
        ("/mcp/nothing", 404, "/mcp"),
        ("/favicon.html", 404, "/mcp"),
    ],
)
def test_a_browser_is_told_what_this_is_and_how_to_connect(path: str, status: int, place: str, server: str) -> None:
    answered, headers, page = ask(server, path, BROWSER)
    assert (answered, headers["Content-Type"]) == (status, "text/html; charset=utf-8")
    said = words(page)
    assert "2 notes" in said
    assert f"claude mcp add --scope user --transport http commonplace {server.removesuffix('/mcp')}{place}" in said
    assert (f"There is nothing at {path} ." in said) is (status == 404)
    assert len(page) < 8_000
    assert "script" not in page


def test_the_page_is_current_and_is_kept_by_nobody(tmp_path: Path) -> None:
    with process(environment_of(tmp_path)) as server:
        _, headers, page = ask(server.address, "/", BROWSER)
    assert "commonplace add FOLDER" in words(page)
    assert headers["Cache-Control"] == "no-store"
    assert headers["Vary"] == "Accept"


def test_the_server_of_qmd_shows_the_page_too(tmp_path: Path) -> None:
    with process(environment_of(fill(tmp_path)), command=("qmd", "server", "--transport", "http")) as server:
        status, _, page = ask(server.address, "/", BROWSER)
    assert status == 200
    assert f"claude mcp add --scope user --transport http commonplace {server.address}" in words(page)


def test_asking_for_the_head_alone_gets_the_head_alone(server: str) -> None:
    status, headers, page = ask(server, "/", BROWSER, "HEAD")
    assert (status, page) == (200, "")
    assert int(headers["Content-Length"]) > 500


# 2. Programs


@pytest.mark.parametrize("accept", [{}, {"Accept": "*/*"}, {"Accept": "application/json, text/event-stream"}])
@pytest.mark.parametrize("path", ["/", "/nothing", "/mcp"])
def test_a_program_is_not_shown_a_page(path: str, accept: dict[str, str], server: str) -> None:
    _, headers, body = ask(server, path, accept)
    assert "text/html" not in headers.get("Content-Type", "")
    assert "<html" not in body


@pytest.mark.parametrize("path", ["/health", "/healthz", "/api/v1/tools", "/openapi.json"])
def test_what_answers_json_answers_it_to_a_browser_too(path: str, server: str) -> None:
    status, headers, _ = ask(server, path, BROWSER)
    assert (status, headers["Content-Type"]) == (200, "application/json")


def test_what_changes_something_is_never_answered_with_a_page(server: str) -> None:
    assert "text/html" not in ask(server, "/mcp", BROWSER, "POST")[1].get("Content-Type", "")
    assert "text/html" not in ask(server, "/nothing", BROWSER, "DELETE")[1].get("Content-Type", "")


# 3. Nothing is given away


def test_where_a_key_is_needed_the_page_says_so_and_nothing_of_the_library(tmp_path: Path) -> None:
    with process(environment_of(fill(tmp_path), COMMONPLACE_AUTH="keys")) as server:
        status, _, page = ask(server.address, "/", BROWSER)
        programs, _, _ = ask(server.address, "/mcp", {"Accept": "application/json"})
    said = words(page)
    assert (status, programs) == (200, 401)
    assert "You need a key of this server" in said
    assert "Authorization: Bearer YOUR_KEY" in said
    assert "notes," in said  # what a server keeps in general
    assert not re.search(r"\d+ notes", said)


@pytest.mark.parametrize("path", ["/<script>alert(1)</script>", "/%3Cscript%3Ealert(1)%3C/script%3E", '/"><b>x'])
def test_an_address_is_text_on_the_page(path: str, server: str) -> None:
    status, headers, page = ask(server, path, BROWSER)
    assert status == 404
    assert "<script" not in page
    assert "<b>x" not in page
    assert headers["Content-Security-Policy"].startswith("default-src 'none'")


def test_another_sites_name_is_shown_no_page(server: str) -> None:
    status, _, body = ask(server, "/", {**BROWSER, "Host": "books.example"})
    assert (status, "notes" in body) == (403, False)
