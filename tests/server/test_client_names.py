"""The name a client gives itself is kept with its session, whichever door and protocol era it came through."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from websockets.sync.client import connect
from websockets.typing import Subprotocol

from commonplace.library import Library
from commonplace.server.principal import OWNER
from kit.forked import forked
from opening import library_settings
from serving import environment_of

HANDSHAKE, STATELESS = "2025-11-25", "2026-07-28"
CLIENT = {"name": "Marvin", "version": "1"}
HELLO = {"protocolVersion": HANDSHAKE, "capabilities": {}, "clientInfo": CLIENT}
META = {
    "io.modelcontextprotocol/protocolVersion": STATELESS,
    "io.modelcontextprotocol/clientInfo": CLIENT,
    "io.modelcontextprotocol/clientCapabilities": {},
}
SEARCH = {"name": "notes.search", "arguments": {"query": "oolong", "session": "mine"}}


def client_of(home: Path, session: str) -> str:
    with Library.open(home, settings=library_settings(home)) as library:
        found = library.sessions.of(OWNER.name).find(session)
        assert found is not None
        return found.client


def message(method: str, params: dict[str, Any], number: int = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def posted(address: str, era: str, session: str | None = None) -> Callable[..., httpx2.Response]:
    headers = {"Accept": "application/json, text/event-stream", "User-Agent": "agent/1.0"}
    if era != HANDSHAKE:
        headers["MCP-Protocol-Version"] = era
    if session:
        headers["Mcp-Session-Id"] = session

    def post(method: str, params: dict[str, Any], **more: str) -> httpx2.Response:
        with httpx2.Client(timeout=60) as client:
            reply = client.post(f"{address}/all", json=message(method, params), headers={**headers, **more})
        assert reply.status_code == 200, reply.text
        return reply

    return post


def test_over_http_it_is_kept_with_the_session_that_begins(address: str, home: Path) -> None:
    session = posted(address, HANDSHAKE)("initialize", HELLO).headers["Mcp-Session-Id"]
    assert client_of(home, session) == "Marvin"
    posted(address, HANDSHAKE, session)("tools/call", SEARCH)
    assert client_of(home, "mine") == "Marvin"


def test_over_http_without_sessions_it_is_kept_with_the_one_that_a_call_names(address: str, home: Path) -> None:
    more = {"Mcp-Method": "tools/call", "Mcp-Name": "notes.search"}
    posted(address, STATELESS)("tools/call", {**SEARCH, "_meta": META}, **more)
    assert client_of(home, "mine") == "Marvin"


def test_over_websocket_it_takes_the_place_of_the_user_agent(address: str, home: Path) -> None:
    place = address.replace("http://", "ws://").replace("/mcp", "/ws/all")
    with connect(place, subprotocols=[Subprotocol("mcp")], user_agent_header="agent/1.0") as socket:

        def ask(method: str, params: dict[str, Any]) -> Any:
            socket.send(json.dumps(message(method, params)))
            return json.loads(socket.recv(timeout=60))["result"]

        session = ask("initialize", HELLO)["_meta"]["commonplace/session"]
        assert client_of(home, session) == "Marvin"
        ask("tools/call", SEARCH)
        assert client_of(home, "mine") == "Marvin"
    with connect(f"{place}?mcp-session-id={session}", subprotocols=[Subprotocol("mcp")]) as socket:
        ask("initialize", {**HELLO, "clientInfo": {"name": "Zaphod", "version": "1"}})
        assert client_of(home, session) == "Zaphod"  # whoever goes on with it


@pytest.mark.parametrize("era", [HANDSHAKE, STATELESS])
def test_over_standard_input_it_is_kept_with_the_session_that_a_call_names(home: Path, era: str) -> None:
    command = forked("mcp", "--profile", "all")
    with subprocess.Popen(
        command, env=environment_of(home), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        if era == HANDSHAKE:
            asked = [message("initialize", HELLO), message("tools/call", SEARCH, 2)]
        else:
            asked = [message("tools/call", {**SEARCH, "_meta": META})]
        for one in asked:
            server.stdin.write(f"{json.dumps(one)}\n")
            server.stdin.flush()
            assert "result" in json.loads(server.stdout.readline())
        server.stdin.close()
        assert server.wait(60) == 0
    assert client_of(home, "mine") == "Marvin"


def test_plain_calls_have_the_user_agent(address: str, home: Path) -> None:
    with httpx2.Client(timeout=60, headers={"User-Agent": "curl/8"}) as client:
        place = address.replace("/mcp", "/api/v1/tools/notes.search")
        assert client.post(place, json=SEARCH["arguments"]).status_code == 200
    assert client_of(home, "mine") == "curl/8"


@pytest.mark.parametrize("info", [{"version": "1"}, {"name": 7, "version": "1"}, "Marvin", None])
def test_what_is_no_name_is_none(address: str, home: Path, info: Any) -> None:
    more = {"Mcp-Method": "tools/call", "Mcp-Name": "notes.search"}
    meta = {**META, "io.modelcontextprotocol/clientInfo": info}
    with httpx2.Client(timeout=60) as client:
        headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": STATELESS, **more}
        reply = client.post(f"{address}/all", json=message("tools/call", {**SEARCH, "_meta": meta}), headers=headers)
    if reply.status_code == 200:
        assert client_of(home, "mine") == ""
