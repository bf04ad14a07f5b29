"""A shared store that goes away under a running server: every door says so in a sentence, and is open when it is back.

What is asked before a call gets to its tool needs the store, too: whose session it is, what a client is greeted with.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest
from mcp.server.streamable_http import StreamableHTTPServerTransport
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect
from websockets.typing import Subprotocol

from commonplace.library import Library
from commonplace.server import auth
from commonplace.server.auth import make_gate
from commonplace.server.http import make_app
from commonplace.store.opening import open_accounts
from commonplace.store.postgres import connection, migrate
from opening import library_settings
from postgres_server import Server, postgres, start
from serving import served

ACCEPT = {"Accept": "application/json, text/event-stream"}
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
SAID = "cannot be reached: "


class Place(NamedTuple):
    """A server whose store is down, and what was made while it was not."""

    url: str
    session: str
    key: str
    database: Server


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    postgres()  # which says why, where there is none
    database = start()
    settings = library_settings(tmp_path_factory.mktemp("home"), store=database.app, store_connections=5)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connection, "CONNECT_S", 1)
        patch.setattr(connection, "RETRY_S", (0.01,))
        try:
            migrate(database.owner, database.app)
            with Library.open(settings.home, "default", settings) as library:
                _, key = library.tables.instances.create("front")
            with served(make_app(settings, make_gate(settings))) as port:
                url = f"http://127.0.0.1:{port}"
                opened = ask(url, "/mcp", "initialize", HELLO)
                assert ask(url, "/mcp/i/front", "initialize", HELLO, key=key).status_code == 200
                database.kill()
                yield Place(url, opened.headers["mcp-session-id"], key, database)
        finally:
            database.stop()


def ask(url: str, path: str, method: str, params: Any = None, *, key: str = "", session: str = "") -> httpx2.Response:
    headers = {**ACCEPT, **({"Authorization": f"Bearer {key}"} if key else {})}
    headers |= {"Mcp-Session-Id": session} if session else {}
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}
    return httpx2.post(url + path, json=message, headers=headers, timeout=60)


def error_of(reply: httpx2.Response) -> dict[str, Any]:
    text = reply.text
    if reply.headers["content-type"].startswith("text/event-stream"):
        text = next(line.removeprefix("data:") for line in reversed(text.splitlines()) if line.startswith("data:"))
    error: dict[str, Any] = json.loads(text)["error"]
    return error


def is_refused(reply: httpx2.Response) -> None:
    assert reply.status_code == 503, reply.text
    assert error_of(reply)["code"] == "unavailable"
    assert SAID in error_of(reply)["message"]


@pytest.mark.parametrize("path", ["/mcp", "/mcp/tables", "/mcp/knowledge"])
def test_a_session_cannot_be_begun_and_the_client_hears_why(place: Place, path: str) -> None:
    reply = ask(place.url, path, "initialize", HELLO)
    assert SAID in error_of(reply)["message"]
    assert "mcp-session-id" not in reply.headers


def test_what_could_not_be_begun_leaves_nothing_behind(place: Place) -> None:
    def kept() -> int:
        everything: list[Any] = gc.get_objects()
        return sum(type(one) is StreamableHTTPServerTransport and not one.is_terminated for one in everything)

    before = kept()
    for _ in range(3):
        assert ask(place.url, "/mcp", "initialize", HELLO).status_code == 503
    deadline = time.monotonic() + 20
    while kept() > before:
        assert time.monotonic() < deadline
        time.sleep(0.05)  # the bound of a wait for another thread, not a guess at its speed


def test_a_session_that_cannot_be_looked_up_is_not_taken_for_one_that_is_gone(place: Place) -> None:
    called = {"name": "search", "arguments": {"query": "tea"}}
    is_refused(ask(place.url, "/mcp", "tools/call", called, session=place.session))
    is_refused(httpx2.delete(f"{place.url}/mcp", headers={"Mcp-Session-Id": place.session}, timeout=60))


def test_an_instance_whose_key_cannot_be_checked_says_so(place: Place) -> None:
    is_refused(ask(place.url, "/mcp/i/front", "initialize", HELLO, key=place.key))


def test_a_search_of_everything_does_not_wait_for_each_source_in_turn(place: Place) -> None:
    reply = httpx2.post(f"{place.url}/api/v1/tools/knowledge.search", json={"query": "tea"}, timeout=60)
    is_refused(reply)
    assert not error_of(reply)["message"].startswith("None of the sources")


def test_metrics_that_cannot_be_told_are_no_bug(place: Place) -> None:
    is_refused(httpx2.get(f"{place.url}/metrics", timeout=60))


def test_a_websocket_is_closed_with_the_sentence(place: Place) -> None:
    address = place.url.replace("http", "ws") + "/ws"
    with connect(address, subprotocols=[Subprotocol("mcp")]) as socket, pytest.raises(ConnectionClosed) as closed:
        socket.recv(timeout=60)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1013
    assert SAID in closed.value.rcvd.reason


def test_everything_goes_on_once_the_store_is_back(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    database = place.database.again()
    try:
        monkeypatch.setattr(connection, "CONNECT_S", 60)
        called = {"name": "search", "arguments": {"query": "oolong"}}
        assert ask(place.url, "/mcp", "tools/call", called, session=place.session).status_code == 200
        assert ask(place.url, "/mcp", "initialize", HELLO).headers["mcp-session-id"]
        assert ask(place.url, "/mcp/i/front", "initialize", HELLO, key=place.key).status_code == 200
        assert httpx2.get(f"{place.url}/metrics", timeout=60).status_code == 200
    finally:
        database.stop()


@contextmanager
def frozen(database: Server) -> Iterator[None]:
    """A database that is there and does not answer, as one whose disk hangs."""
    pid = int((database.folder / "data" / "postmaster.pid").read_text("ascii").split()[0])
    children = Path(f"/proc/{pid}/task/{pid}/children")
    if not children.exists():
        pytest.skip("this system does not tell which processes a process has started")
    everyone = [pid, *map(int, children.read_text("ascii").split())]
    for each in everyone:
        os.kill(each, signal.SIGSTOP)
    try:
        yield
    finally:
        for each in everyone:
            os.kill(each, signal.SIGCONT)


@pytest.mark.timeout(110)
def test_a_database_that_does_not_answer_holds_nobody_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    postgres()  # which says why, where there is none
    database = start()
    try:
        migrate(database.owner, database.app)
        monkeypatch.setattr(auth, "ANSWER_S", 1)
        open_to_all = library_settings(tmp_path / "all", store=database.app, call_seconds=1.0, background=False)
        gate = make_gate(open_to_all)
        with_keys = replace(open_to_all, auth="keys")
        with closing(open_accounts(with_keys)) as accounts:
            accounts.add_user("ann")
            key = accounts.create_key("ann")
        with served(make_app(open_to_all, gate)) as one, served(make_app(with_keys, make_gate(with_keys))) as other:
            urls = [f"http://127.0.0.1:{port}" for port in (one, other)]
            sessions = [ask(url, "/mcp", "initialize", HELLO, key=key).headers["mcp-session-id"] for url in urls]
            called = {"name": "search", "arguments": {"query": "tea"}}
            with frozen(database):
                for url, session in zip(urls, sessions, strict=True):
                    reply = ask(url, "/mcp", "tools/call", called, key=key, session=session)
                    assert reply.status_code == 503, reply.text
                    assert "has not answered for 1 s" in error_of(reply)["message"]
                assert httpx2.get(f"{urls[0]}/readyz", timeout=60).status_code == 503
            for url, session in zip(urls, sessions, strict=True):
                assert ask(url, "/mcp", "tools/call", called, key=key, session=session).status_code == 200
    finally:
        database.stop()
