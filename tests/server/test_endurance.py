"""A server that is treated badly keeps serving.

1. What is not HTTP, not JSON or not MCP is refused, and the next call is answered.
2. A thousand connections that say nothing do not keep the thousand-and-first from being served.
3. Clients that disappear in the middle of a call, many times over, leave nothing behind.
4. After ten thousand calls the server is as large as after the first few hundred.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from test_websocket import HELLO

from serving import Server, environment_of, fill, process

CALL = json.dumps({"query": "oolong", "limit": 3})


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with process(environment_of(fill(tmp_path_factory.mktemp("home")))) as server:
        yield server


@pytest.fixture
def place(server: Server) -> tuple[str, int]:
    parts = urlsplit(server.address)
    return parts.hostname or "", parts.port or 0


def works(place: tuple[str, int]) -> bool:
    reply = httpx.post(f"http://{place[0]}:{place[1]}/api/v1/tools/search", content=CALL, timeout=30)
    return reply.status_code == 200 and bool(reply.json()["results"])


def request(path: str, body: bytes, *headers: str, method: str = "POST") -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode("latin-1") + body


INITIALIZE = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}).encode()
ACCEPT = "Accept: application/json, text/event-stream"
JSON = "Content-Type: application/json"


@pytest.mark.parametrize(
    "sent",
    [
        b"\x00\xff" * 50 + b"\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        request("/mcp", b"{", JSON, ACCEPT),
        request("/mcp", b"[" * 50_000, JSON, ACCEPT),
        request("/mcp", b"{}", JSON, ACCEPT),
        request("/mcp", b"[]", JSON, ACCEPT),
        request("/mcp", b'{"jsonrpc": "2.0", "id": 1, "method": 7}', JSON, ACCEPT),
        request("/mcp", INITIALIZE, JSON),
        request("/mcp", INITIALIZE, ACCEPT),
        request("/mcp", INITIALIZE, JSON, ACCEPT, "Mcp-Protocol-Version: 1999-01-01"),
        request("/mcp", INITIALIZE, JSON, ACCEPT, "Mcp-Protocol-Version: 2026-07-28"),
        request("/mcp", INITIALIZE, JSON, ACCEPT, "Mcp-Session-Id: no such one \xff"),
        request("/mcp", b"", method="GET"),
        request("/mcp", b"", method="DELETE"),
        request("/mcp", b"", method="PATCH"),
        request("/mcp/nothing", INITIALIZE, JSON, ACCEPT),
        request("/mcp?config=%00&mcp-session-id=%ff", INITIALIZE, JSON, ACCEPT),
        request("/ws", b"", method="GET"),
        request("/api/v1/tools/search", b'{"query": NaN}', JSON),
        request("/api/v1/tools/%00%ff", b"{}", JSON),
        request("/api/v1/tools/" + "x" * 5000, b"{}", JSON),
        request("/healthz", b"", "X: " + "x" * 100_000),
    ],
)
def test_what_makes_no_sense_is_refused(place: tuple[str, int], sent: bytes) -> None:
    with socket.create_connection(place, timeout=30) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        status = connection.recv(2000).split(b" ")[1:2]
    assert not status or 400 <= int(status[0]) < 500
    assert works(place)


def test_a_thousand_silent_connections_keep_nobody_waiting(place: tuple[str, int]) -> None:
    with ExitStack() as stack:
        for number in range(1000):
            silent = stack.enter_context(socket.create_connection(place, timeout=30))
            if number % 2:
                silent.sendall(b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99\r\n\r\n{")
        assert works(place)
    assert works(place)


def test_a_thousand_calls_at_once_are_all_answered(place: tuple[str, int]) -> None:
    with ExitStack() as stack:
        callers = [stack.enter_context(socket.create_connection(place, timeout=60)) for _ in range(1000)]
        for caller in callers:
            caller.sendall(request("/api/v1/tools/status", b"{}", JSON))
        assert all(caller.recv(15).endswith(b"200 OK") for caller in callers)


def resident_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


def test_nothing_is_left_behind_by_many_calls_and_clients_that_vanish(place: tuple[str, int], server: Server) -> None:
    pid = server.pid
    connection = http.client.HTTPConnection(*place, timeout=30)

    def call(times: int) -> None:
        for _ in range(times):
            connection.request("POST", "/api/v1/tools/search", CALL, {"Content-Type": "application/json"})
            assert connection.getresponse().read().startswith(b"{")

    def vanish(times: int) -> None:
        for _ in range(times):
            with socket.create_connection(place, timeout=30) as gone:
                gone.sendall(request("/mcp", INITIALIZE, JSON, ACCEPT))

    call(500)
    vanish(100)
    call(500)
    before, files = resident_mb(pid), len(os.listdir(f"/proc/{pid}/fd"))
    call(9000)
    vanish(300)
    call(500)
    assert resident_mb(pid) < before + 15
    assert len(os.listdir(f"/proc/{pid}/fd")) < files + 20
    connection.close()
