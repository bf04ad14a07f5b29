"""MCP over WebSocket, with a real client on a real socket.

1. A client of either era lists and calls tools; each connection has a session of its own.
2. What is no message is answered as an error, and the connection goes on.
3. The close codes: 1008 for someone else's session, 1013 over the limit, 1001 when idle, 1009 for what is too large.
4. A page of another site gets nowhere.
"""

from __future__ import annotations

import json
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin, Subprotocol

from commonplace.server.auth import make_gate
from commonplace.server.calls import run
from commonplace.server.http import make_app
from commonplace.server.websocket import WebSocketProtocol
from commonplace.settings import Settings
from kit.answers import present
from serving import served

HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
ENVELOPE: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
TAKES_NOTHING_BACK = '{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": [2]}}'


@pytest.fixture
def place(address: str) -> str:
    return address.replace("http://", "ws://").replace("/mcp", "/ws")


def ask(socket: ClientConnection, id: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
    socket.send(json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
    reply = json.loads(socket.recv(timeout=30))
    assert reply["id"] == id
    return reply


def opened(socket: ClientConnection) -> dict[str, Any]:
    result: dict[str, Any] = ask(socket, 1, "initialize", HELLO)["result"]
    socket.send(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}))
    return result


def search(socket: ClientConnection, id: int = 2, **meta: Any) -> dict[str, Any]:
    params = {"name": "search", "arguments": {"query": "oolong"}, **({"_meta": meta} if meta else {})}
    return ask(socket, id, "tools/call", params)


@pytest.mark.parametrize("profile", ["", "/commonplace"])
def test_a_client_of_the_handshake_era_is_served(place: str, profile: str) -> None:
    with connect(place + profile, subprotocols=[Subprotocol("mcp")]) as socket:
        assert socket.subprotocol == "mcp"
        hello = opened(socket)
        assert "2 notes" in hello["instructions"]
        assert len(hello["_meta"]["commonplace/session"]) >= 22
        tools = ask(socket, 3, "tools/list", {})["result"]["tools"]
        assert tools[0]["name"] == "search"
        found = search(socket)["result"]["structuredContent"]
        assert found["results"][0]["uri"] == "notes://tea"


def test_a_client_of_the_stateless_era_is_served(place: str) -> None:
    with connect(place) as socket:
        found = search(socket, **ENVELOPE)
        assert found["result"]["structuredContent"]["results"][0]["uri"] == "notes://tea"
        assert found["result"]["resultType"] == "complete"


def test_every_connection_has_its_own_session(place: str) -> None:
    with connect(place) as one, connect(place) as other:
        sessions = {opened(socket)["_meta"]["commonplace/session"] for socket in (one, other)}
        assert len(sessions) == 2


def test_a_session_goes_on_in_another_connection_and_only_one_that_exists(place: str) -> None:
    with connect(place) as socket:
        session = opened(socket)["_meta"]["commonplace/session"]
    with connect(place, additional_headers={"Mcp-Session-Id": session}) as socket:
        assert opened(socket)["_meta"]["commonplace/session"] == session
    with connect(place, additional_headers={"Mcp-Session-Id": "made-up"}) as socket:
        with pytest.raises(ConnectionClosed):
            socket.recv(timeout=30)
        assert socket.close_code == 1008


@pytest.mark.parametrize(
    "frame", ["not json", "[1, 2]", "{}", "\x00", '{"jsonrpc": "1.0"}', b"\x00\xff", TAKES_NOTHING_BACK]
)
def test_what_is_no_message_does_not_end_the_connection(place: str, frame: str | bytes) -> None:
    with connect(place) as socket:
        opened(socket)
        socket.send(frame)
        call = {"name": "search", "arguments": {"query": "oolong"}}
        socket.send(json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}))
        while (reply := json.loads(socket.recv(timeout=30))).get("id") != 2:
            assert "error" in reply
        assert reply["result"]["structuredContent"]["results"]


@pytest.mark.parametrize(
    ("frame", "identity", "code"),
    [
        ("not json", None, -32700),
        ('{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": []}', 7, -32600),
        ('{"jsonrpc": "2.0", "id": "a", "method": 5}', "a", -32600),
        ('[{"jsonrpc": "2.0", "id": 7, "method": "ping"}]', None, -32600),
        (r'{"jsonrpc": "2.0", "id": "\ud83d", "method": "ping"}', None, -32600),
    ],
)
def test_what_is_no_message_is_answered_so_that_nobody_waits(
    place: str, frame: str, identity: int | str | None, code: int
) -> None:
    with connect(place) as socket:
        opened(socket)
        socket.send(frame)
        reply = json.loads(socket.recv(timeout=30))
    assert (reply["id"], reply["error"]["code"]) == (identity, code)
    assert "\n" not in reply["error"]["message"]


def test_a_page_of_another_site_is_refused(place: str) -> None:
    with pytest.raises(InvalidStatus) as refused, connect(place, origin=Origin("https://evil.example")):
        pass
    assert refused.value.response.status_code == 403


@pytest.mark.parametrize("settings", [{"COMMONPLACE_CONNECTIONS": "1"}], indirect=True)
def test_one_connection_too_many_is_told_to_come_back(place: str) -> None:
    with connect(place) as first:
        opened(first)
        with connect(place) as second:
            with pytest.raises(ConnectionClosed):
                second.recv(timeout=30)
            assert second.close_code == 1013
        assert search(first)["result"]["isError"] is False


@pytest.mark.parametrize("settings", [{"COMMONPLACE_BODY_BYTES": "4096"}], indirect=True)
def test_a_message_has_the_size_of_a_request_at_most(place: str) -> None:
    with connect(place) as socket:
        opened(socket)
        asked = {"name": "search", "arguments": {"query": "é" * 2500}}  # of two bytes each
        call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": asked}
        socket.send(json.dumps(call, ensure_ascii=False))
        with pytest.raises(ConnectionClosed) as closed:
            socket.recv(timeout=30)
        assert (present(closed.value.rcvd).code, present(closed.value.rcvd).reason) == (
            1009,
            "A message has at most 4096 bytes.",
        )
    with connect(f"{place}/memory") as socket:  # which takes what its images may be
        opened(socket)
        assert ask(socket, 2, "tools/call", asked | {"name": "list_threads"})["result"]["isError"]


def listing(number: int) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/list", "params": {"_meta": ENVELOPE}})


def test_who_asks_much_before_reading_is_answered_all_of_it(place: str) -> None:
    with connect(f"{place}/all", max_size=None) as client:
        for number in range(300):
            client.send(listing(number))
        assert {json.loads(client.recv(timeout=30))["id"] for _ in range(300)} == set(range(300))


def test_who_reads_its_answers_is_there_though_its_pong_waits_behind_its_questions(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(*given: Any) -> Any:
        time.sleep(0.02)
        return run(*given)

    monkeypatch.setattr("commonplace.server.service.run", slow)
    settings = Settings(home=home, model="static", concurrency=2)
    app, call = make_app(settings, make_gate(settings)), {"name": "status", "arguments": {}, "_meta": ENVELOPE}
    with (
        served(app, ws=WebSocketProtocol, ws_ping_interval=0.3, ws_ping_timeout=0.7) as port,
        connect(f"ws://127.0.0.1:{port}/ws") as client,
    ):
        for number in range(300):  # of which a hundred are heard, and the last after two seconds
            client.send(json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": call}))
        assert {json.loads(client.recv(timeout=30))["id"] for _ in range(300)} == set(range(300))


@pytest.mark.parametrize("settings", [{"COMMONPLACE_CONNECTIONS": "1"}], indirect=True)
def test_who_asks_and_never_reads_leaves_nothing_behind(place: str) -> None:
    with connect(f"{place}/all", max_size=None) as client:
        for number in range(500):
            client.send(listing(number))
        client.socket.close()
    for _ in range(100):
        with connect(place) as another, suppress(ConnectionClosed):
            ask(another, 1, "tools/list", {"_meta": ENVELOPE})
            return
        time.sleep(0.1)  # the bound of a wait for the server, not a guess at its speed
    pytest.fail("the connection that is gone is still counted")


def test_a_message_takes_no_more_room_here_than_on_its_way(place: str) -> None:
    with connect(place, compression="deflate") as client:
        assert client.response is not None
        assert "Sec-WebSocket-Extensions" not in client.response.headers


@pytest.mark.parametrize("settings", [{"COMMONPLACE_IDLE_SECONDS": "1"}], indirect=True)
def test_an_idle_connection_is_closed(place: str) -> None:
    with connect(place) as socket:
        opened(socket)
        with pytest.raises(ConnectionClosed):
            socket.recv(timeout=30)
        assert socket.close_code == 1001
