"""Sessions that are begun and left: they take no more room than they may, and nobody is refused for their sake."""

from __future__ import annotations

from pathlib import Path

import httpx2
import pytest

from commonplace.server import transport
from commonplace.server.auth import make_gate
from commonplace.server.http import make_app
from opening import library_settings
from serving import fill, served

ACCEPT = {"Accept": "application/json, text/event-stream"}
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


def ask(url: str, method: str, params: object, session: str = "") -> httpx2.Response:
    headers = {**ACCEPT, **({"Mcp-Session-Id": session} if session else {})}
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return httpx2.post(url, json=message, headers=headers, timeout=60)


def begin(url: str) -> str:
    reply = ask(url, "initialize", HELLO)
    assert reply.status_code == 200, reply.text
    return str(reply.headers["mcp-session-id"])


def test_the_connection_that_was_idle_for_longest_gives_way_and_its_session_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "MOST_CONNECTIONS", 3)
    settings = library_settings(fill(tmp_path))
    with served(make_app(settings, make_gate(settings))) as port, httpx2.Client(timeout=60) as client:
        url = f"http://127.0.0.1:{port}/mcp"

        def listens(session: str) -> int:
            """Whether it has a connection, which alone can be listened to; nobody does when this ends."""
            with client.stream("GET", url, headers={**ACCEPT, "Mcp-Session-Id": session}) as reply:
                return reply.status_code

        listener, first, second = begin(url), begin(url), begin(url)
        with client.stream("GET", url, headers={**ACCEPT, "Mcp-Session-Id": listener}) as stream:
            assert stream.status_code == 200
            called = {"name": "search", "arguments": {"query": "oolong"}}
            assert ask(url, "tools/call", called, first).status_code == 200  # so that the second is idle for longer
            third = begin(url)
            assert [listens(session) for session in (first, second, third)] == [200, 405, 200]
            assert ask(url, "tools/call", called, second).status_code == 200
            for session in (listener, first, third):
                assert ask(url, "tools/call", called, session).status_code == 200
