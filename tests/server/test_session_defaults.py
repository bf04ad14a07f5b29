"""The safe config of `initialize`: what a client asks for once holds for the session that begins with it.

1. Over WebSocket and over HTTP, however the config is sent, calls without one of their own go by it.
2. What an argument says, or what is set later, comes before it; what makes no sense in it keeps nobody out.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import httpx
import pytest
from websockets.sync.client import connect
from websockets.typing import Subprotocol

HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
SHORT = {"snippet_length": 20}
ENCODED = base64.urlsafe_b64encode(json.dumps({"snippetLength": 20}).encode()).decode().rstrip("=")
LONG = 57
"""How long the snippet of the note about tea is where nobody asks for less."""


class Ask(Protocol):
    def __call__(self, method: str, params: dict[str, Any]) -> dict[str, Any]: ...


@contextmanager
def over_websocket(address: str, query: str = "") -> Iterator[Ask]:
    place = address.replace("http://", "ws://").replace("/mcp", "/ws/knowledge")
    with connect(f"{place}{query}", subprotocols=[Subprotocol("mcp")]) as socket:

        def ask(method: str, params: dict[str, Any]) -> dict[str, Any]:
            socket.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
            result: dict[str, Any] = json.loads(socket.recv(timeout=30))["result"]
            return result

        yield ask


@contextmanager
def over_http(address: str, query: str = "") -> Iterator[Ask]:
    """A client that sends the query with its first request alone."""
    headers = {"Accept": "application/json, text/event-stream"}
    with httpx.Client(timeout=30) as client:

        def ask(method: str, params: dict[str, Any]) -> dict[str, Any]:
            place = f"{address}/knowledge{query if method == 'initialize' else ''}"
            asked = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            reply = client.post(place, json=asked, headers=headers)
            headers.setdefault("Mcp-Session-Id", reply.headers["Mcp-Session-Id"])
            (line,) = [line for line in reply.text.splitlines() if line.startswith("data:")]
            result: dict[str, Any] = json.loads(line.removeprefix("data:"))["result"]
            return result

        yield ask


def shown(ask: Ask, **arguments: Any) -> int:
    """How much of the note about tea a search shows."""
    call = {"name": "notes.search", "arguments": {"query": "oolong", **arguments}}
    answer = ask("tools/call", call)["structuredContent"]
    return len(answer["results"][0]["snippet"])


META = {"_meta": {"commonplace/config": SHORT}}


@pytest.mark.parametrize(
    ("door", "query", "said"),
    [
        (over_websocket, "", {"config": SHORT}),
        (over_websocket, "", {"config": ENCODED}),
        (over_websocket, "", META),
        (over_http, "", META),
        (over_http, f"?config={ENCODED}", {}),
    ],
)
def test_what_a_client_says_at_first_holds_for_its_session(
    address: str, door: Any, query: str, said: dict[str, Any]
) -> None:
    with door(address, query) as ask:
        ask("initialize", HELLO | said)
        assert shown(ask) <= 20
        assert shown(ask, snippet_length=300) == LONG
        later = {"query": "oolong", "session_defaults": {"snippet_length": 40}}
        assert not ask("tools/call", {"name": "knowledge.search", "arguments": later})["isError"]
        assert 20 < shown(ask) <= 40
    with door(address) as ask:  # another session knows nothing of it
        ask("initialize", HELLO)
        assert shown(ask) == LONG


@pytest.mark.parametrize("door", [over_websocket, over_http])
def test_a_config_that_makes_no_sense_keeps_nobody_out(address: str, door: Any) -> None:
    with door(address) as ask:
        ask("initialize", HELLO | {"_meta": {"commonplace/config": {"snippet_length": "short", "user_id": "bob"}}})
        assert shown(ask) == LONG
    with door(address) as ask:
        ask("initialize", HELLO | {"config": 5, "_meta": {"commonplace/config": "no base64"}})
        assert shown(ask) == LONG
