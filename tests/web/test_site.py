"""The page as a part of the server.

1. `/`, an address of MCP and one that there is not answer a browser with a screen; programs get JSON or what they got.
2. Every screen has a twin in JSON, one heading of the first level, and headers that let nothing foreign in.
3. The style sheet and script have names that change with them, and may be kept for ever; the first load is light.
4. Where a key is needed, a stranger sees nothing of a library. What an address says is never markup.
"""

from __future__ import annotations

import gzip
import http.client
import json
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from commonplace.kinds.memories.entry import Image, New
from commonplace.library import Library
from commonplace.settings import Settings
from commonplace.web.frame import POLICY
from serving import environment_of, fill, process

BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
SCREENS = [
    "/",
    "/?q=tea",
    "/?q=nothingness+unheard",
    "/?tag=food",
    "/i/notes/tea",
    "/i/notes/tea?q=water&line=2",
    "/connect",
]


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


def ask_bytes(address: str, path: str) -> tuple[int, http.client.HTTPMessage, bytes]:
    place = urlsplit(address)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=30)
    try:
        connection.request("GET", path, headers=BROWSER)
        reply = connection.getresponse()
        return reply.status, reply.headers, reply.read()
    finally:
        connection.close()


def words(page: str) -> str:
    """Return what a page says, on one line and without markup."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", page)).split())


# 1. A screen for browsers, and programs as before


def test_the_first_page_tells_what_is_here(server: str) -> None:
    status, headers, page = ask(server, "/", BROWSER)
    assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert "2 notes" in words(page)
    assert "Changed last" in words(page)
    assert 'href="/i/notes/tea"' in page


@pytest.mark.parametrize(("path", "place"), [("/mcp", "/mcp"), ("/mcp/memory", "/mcp/memory")])
def test_a_browser_at_an_address_of_mcp_is_told_how_to_connect(path: str, place: str, server: str) -> None:
    status, headers, _ = ask(server, path, BROWSER)
    assert status == 303
    _, _, page = ask(server, headers["Location"], BROWSER)
    assert f"claude mcp add --scope user --transport http commonplace {server.removesuffix('/mcp')}{place}" in words(
        page
    )


@pytest.mark.parametrize("path", ["/nothing", "/favicon.html", "/i", "/i/"])
def test_an_address_that_there_is_not_says_so(path: str, server: str) -> None:
    status, _, page = ask(server, path, BROWSER)
    assert status == 404
    assert f"There is nothing at {path}." in words(page)
    assert "Search" in words(page)


def test_an_unknown_profile_is_named_with_those_there_are(server: str) -> None:
    status, headers, _ = ask(server, "/mcp/nothing", BROWSER)
    status, _, page = ask(server, headers["Location"], BROWSER)
    assert status == 400
    assert "There is no profile 'nothing'. The profiles are commonplace" in words(page)


@pytest.mark.parametrize("accept", [{}, {"Accept": "*/*"}, {"Accept": "application/json, text/event-stream"}])
@pytest.mark.parametrize("path", ["/", "/nothing", "/mcp", "/health"])
def test_a_program_is_not_shown_a_page(path: str, accept: dict[str, str], server: str) -> None:
    _, headers, body = ask(server, path, accept)
    assert "text/html" not in headers.get("Content-Type", "")
    assert "<html" not in body


@pytest.mark.parametrize("path", ["/healthz", "/api/v1/tools", "/openapi.json"])
def test_what_answers_json_answers_it_to_a_browser_too(path: str, server: str) -> None:
    status, headers, _ = ask(server, path, BROWSER)
    assert (status, headers["Content-Type"]) == (200, "application/json")


def test_what_changes_something_is_never_answered_with_a_page_that_reads(server: str) -> None:
    assert "text/html" not in ask(server, "/mcp", BROWSER, "POST")[1].get("Content-Type", "")
    assert "text/html" not in ask(server, "/nothing", BROWSER, "DELETE")[1].get("Content-Type", "")


def test_the_server_of_qmd_shows_the_page_too(tmp_path: Path) -> None:
    with process(environment_of(fill(tmp_path)), command=("qmd", "server", "--transport", "http")) as server:
        status, _, page = ask(server.address, "/", BROWSER)
    assert status == 200
    assert "2 notes" in words(page)


def test_asking_for_the_head_alone_gets_the_head_alone(server: str) -> None:
    status, headers, page = ask(server, "/", BROWSER, "HEAD")
    assert (status, page) == (200, "")
    assert int(headers["Content-Length"]) > 500


# 2. Twins, headings and headers


@pytest.mark.parametrize("path", SCREENS)
def test_every_screen_has_one_first_heading_and_a_twin_in_json(path: str, server: str) -> None:
    status, _, page = ask(server, path, BROWSER)
    assert (status, len(re.findall(r"<h1[ >]", page))) == (200, 1)
    assert re.search(r"<title>.+Commonplace|<title>Commonplace", page)
    as_asked = json.loads(ask(server, path, {"Accept": "application/json"})[2])
    where, _, query = path.partition("?")
    by_name = json.loads(ask(server, f"{where}.json{'?' if query else ''}{query}", BROWSER)[2])
    assert as_asked.keys() == by_name.keys()
    assert as_asked


@pytest.mark.parametrize("path", [*SCREENS, "/nothing", "/i/notes/gone", "/live?q=tea"])
def test_every_answer_forbids_what_is_foreign_and_is_kept_by_nobody(path: str, server: str) -> None:
    for accept in (BROWSER, {"Accept": "application/json"}):
        _, headers, page = ask(server, path, accept)
        if path == "/nothing" and accept is not BROWSER:
            continue  # that is the server's own answer
        assert headers["Content-Security-Policy"] == POLICY
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cache-Control"] == "no-store"
        assert headers["Vary"] == "Accept, Cookie"
        assert not re.search(r"<[^>]*\s(style|on\w+)=", page)
        assert not re.search(r"<script(?! src=\"/static/)|<style", page)


def test_a_stored_file_is_sandboxed_and_only_a_picture_is_shown(tmp_path: Path) -> None:
    with Library.open(
        tmp_path, settings=Settings(home=tmp_path, models=tmp_path / "models", model="static")
    ) as library:
        images = (Image(b"\x89PNG", "image/png"), Image(b"<script>alert(1)</script>", "text/html"))
        library.memories.store([New("main", "agent", "With files.", images=images)])
    with process(environment_of(tmp_path)) as server:
        _, picture, _ = ask_bytes(server.address, "/memories/1/images/0")
        _, page, _ = ask_bytes(server.address, "/memories/1/images/1")
    assert picture["Content-Type"] == "image/png"
    assert page["Content-Type"] == "application/octet-stream"
    assert page["Content-Disposition"] == "attachment"
    for headers in (picture, page):
        assert headers["Content-Security-Policy"] == "sandbox; default-src 'none'"
        assert headers["X-Content-Type-Options"] == "nosniff"


# 3. Static files


def static_paths(page: str) -> list[str]:
    return re.findall(r'(?:src|href)="(/static/[^"]+)"', page)


def test_static_files_are_kept_for_ever_under_names_with_their_hash(server: str) -> None:
    _, _, page = ask(server, "/", BROWSER)
    paths = static_paths(page)
    assert len(paths) == 2
    for path in paths:
        status, headers, content = ask(server, path, {})
        assert status == 200
        assert headers["Cache-Control"] == "public, max-age=31536000, immutable"
        assert re.search(r"\.[0-9a-f]{16}\.(css|js)$", path)
        assert content
        changed = re.sub(r"\.[0-9a-f]{16}\.", ".0123456789abcdef.", path)
        assert ask(server, changed, {})[0] == 404


def test_the_first_load_is_at_most_forty_kilobytes_in_three_requests(server: str) -> None:
    _, _, page = ask(server, "/?q=tea", BROWSER)
    place = urlsplit(server)
    total = len(gzip.compress(page.encode(), 6))
    assert len(page) <= 60_000
    for path in static_paths(page):
        connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=30)
        connection.request("GET", path, headers={"Accept-Encoding": "gzip"})
        reply = connection.getresponse()
        assert reply.headers["Content-Encoding"] == "gzip"
        total += len(reply.read())
        connection.close()
    assert total <= 40_000
    assert not re.findall(r'(?:src|href)="(?:https?:)?//[^"]*\.(?:css|js|woff2?|png)', page)


# 4. Strangers


@pytest.mark.parametrize("path", ["/", "/?q=tea", "/i/notes/tea", "/live?q=tea", "/.json", "/item?uri=notes://tea"])
def test_where_a_key_is_needed_a_stranger_sees_nothing_of_the_library(path: str, tmp_path: Path) -> None:
    with process(environment_of(fill(tmp_path), COMMONPLACE_AUTH="keys")) as server:
        status, headers, page = ask(server.address, path, BROWSER)
        program, _, _ = ask(server.address, path, {"Accept": "application/json"})
        connect, _, told = ask(server.address, "/connect", BROWSER)
    assert (status, program) == ((303, 401) if path != "/.json" else (401, 401))
    assert "Oolong" not in page
    assert status == 401 or headers["Location"].startswith("/login")
    assert connect == 200
    assert "Authorization: Bearer YOUR_KEY" in words(told)
    assert not re.search(r"\d+ notes", words(told))


@pytest.mark.parametrize("path", ["/<script>alert(1)</script>", "/%3Cscript%3Ealert(1)%3C/script%3E", '/"><b>x'])
def test_an_address_is_text_on_the_page(path: str, server: str) -> None:
    status, _, page = ask(server, path, BROWSER)
    assert status == 404
    assert "<script>" not in page
    assert "<b>x" not in page


def test_another_sites_name_is_shown_no_page(server: str) -> None:
    status, _, body = ask(server, "/", {**BROWSER, "Host": "books.example"})
    assert (status, "notes" in body) == (403, False)


def test_a_page_that_fails_says_under_which_number_the_log_has_it(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("wb") as errors, process(environment_of(fill(tmp_path / "home")), errors) as server:
        (tmp_path / "home" / "spaces" / "default" / "library.db").write_bytes(b"no database")
        status, _, page = ask(server.address, "/", BROWSER)
    assert status >= 500
    assert "That did not work" in words(page)
