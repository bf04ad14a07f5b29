"""What a door costs: CPU time of the server per call of a tool that does nothing, beside the bare SDK in the same run.

    python bench/doors.py [--calls 300] [--json FILE]

Every figure is the median over rounds of (the server's CPU time over a round) / (calls in it), ours and the bare
SDK's rounds taking turns. WebSocket is held against the SDK's stdio and REST against its HTTP, which it has none of.
Start-up is the CPU time of a fresh process until it has answered `initialize` and been told to end.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from websockets.sync.client import connect

HERE = Path(__file__).parent
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
ACCEPT = {"Accept": "application/json, text/event-stream"}
ROUNDS = 5
BOUND = 1.3
START_BOUND = 1.5
Ask = Callable[[], None]


def message(id: int | None, method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", **({} if id is None else {"id": id}), "method": method, "params": params}


PING = {"name": "ping", "arguments": {"text": "hello"}}


def cpu_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def stdio(who: str) -> Iterator[tuple[int, Ask]]:
    command = [sys.executable, str(HERE / "doors_servers.py"), who, "stdio"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin
        assert server.stdout

        def send(*sent: dict[str, Any]) -> None:
            assert server.stdin
            server.stdin.write("".join(json.dumps(one) + "\n" for one in sent))
            server.stdin.flush()

        def ask() -> None:
            assert server.stdout
            send(message(1, "tools/call", PING))
            assert '"hello"' in server.stdout.readline()

        send(message(0, "initialize", HELLO))
        server.stdout.readline()
        send(message(None, "notifications/initialized", {}))
        yield server.pid, ask
        server.stdin.close()
        server.wait(timeout=20)


@contextmanager
def http_server(who: str) -> Iterator[tuple[int, str]]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen([sys.executable, str(HERE / "doors_servers.py"), who, "http", str(port)])
    try:
        for _ in range(300):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield server.pid, f"127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(timeout=20)


@contextmanager
def http(who: str, era: str) -> Iterator[tuple[int, Ask]]:
    with http_server(who) as (pid, place), httpx.Client(timeout=30, headers=ACCEPT) as client:
        address = f"http://{place}/mcp" + ("/ping" if who == "ours" else "")
        if era == "2025":
            opened = client.post(address, json=message(0, "initialize", HELLO))
            client.headers.update(
                {"mcp-session-id": opened.headers["mcp-session-id"], "mcp-protocol-version": "2025-11-25"}
            )
            client.post(address, json=message(None, "notifications/initialized", {}))
            body = message(1, "tools/call", PING)
        else:
            client.headers.update(
                {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "ping"}
            )
            body = message(1, "tools/call", {**PING, "_meta": META})

        def ask() -> None:
            reply = client.post(address, json=body)
            assert reply.status_code == 200, reply.text
            assert "hello" in reply.text

        yield pid, ask


@contextmanager
def websocket() -> Iterator[tuple[int, Ask]]:
    with http_server("ours") as (pid, place), connect(f"ws://{place}/ws/ping", compression=None) as client:
        client.send(json.dumps(message(0, "initialize", HELLO)))
        client.recv(timeout=30)
        client.send(json.dumps(message(None, "notifications/initialized", {})))

        def ask() -> None:
            client.send(json.dumps(message(1, "tools/call", PING)))
            assert "hello" in str(client.recv(timeout=30))

        yield pid, ask


@contextmanager
def rest() -> Iterator[tuple[int, Ask]]:
    with http_server("ours") as (pid, place), httpx.Client(timeout=30) as client:

        def ask() -> None:
            assert client.post(f"http://{place}/api/v1/tools/ping", json=PING["arguments"]).json() == {"text": "hello"}

        yield pid, ask


def compare(mine: Any, theirs: Any, calls: int) -> tuple[float, float]:
    """CPU ms per call, ours and the bare SDK's, in rounds that take turns."""
    with mine as (my_pid, my_ask), theirs as (their_pid, their_ask):
        sides = ((my_pid, my_ask), (their_pid, their_ask))
        for _, ask in sides:
            for _ in range(50):  # what is made ready on first use
                ask()
        found: tuple[list[float], list[float]] = ([], [])
        for _ in range(ROUNDS):
            for (pid, ask), kept in zip(sides, found, strict=True):
                before = cpu_of(pid)
                for _ in range(calls):
                    ask()
                kept.append((cpu_of(pid) - before) * 1000 / calls)
    return statistics.median(found[0]), statistics.median(found[1])


def start(command: list[str]) -> float:
    """CPU seconds of a process from its start to its answer to `initialize`, its end included."""
    before = os.times()
    hello = json.dumps(message(0, "initialize", HELLO)) + "\n"
    done = subprocess.run(command, input=hello, capture_output=True, text=True, timeout=60, check=True)
    assert '"result"' in done.stdout
    after = os.times()
    return (after.children_user + after.children_system) - (before.children_user + before.children_system)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    doors: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
        "stdio": (lambda: stdio("ours"), lambda: stdio("bare")),
        "HTTP 2025": (lambda: http("ours", "2025"), lambda: http("bare", "2025")),
        "HTTP 2026": (lambda: http("ours", "2026"), lambda: http("bare", "2026")),
        "WebSocket": (websocket, lambda: stdio("bare")),
        "REST": (rest, lambda: http("bare", "2026")),
    }
    rows: list[dict[str, Any]] = []
    print(f"{'door':12} {'ours ms':>8} {'SDK ms':>8} {'ratio':>6}  bound")
    for name, (mine, theirs) in doors.items():
        our_ms, sdk_ms = compare(mine(), theirs(), options.calls)
        rows.append({"door": name, "ours_ms": our_ms, "sdk_ms": sdk_ms, "ratio": our_ms / sdk_ms, "bound": BOUND})
        print(f"{name:12} {our_ms:8.2f} {sdk_ms:8.2f} {our_ms / sdk_ms:6.2f}  {BOUND}", flush=True)
    empty = ["-m", "commonplace", "--home", "/tmp/bench-doors-home", "mcp"]
    ours_s = statistics.median(start([sys.executable, *empty]) for _ in range(ROUNDS))
    sdk_s = statistics.median(
        start([sys.executable, str(HERE / "doors_servers.py"), "bare", "stdio"]) for _ in range(ROUNDS)
    )
    rows.append(
        {
            "door": "start-up",
            "ours_ms": ours_s * 1000,
            "sdk_ms": sdk_s * 1000,
            "ratio": ours_s / sdk_s,
            "bound": START_BOUND,
        }
    )
    print(f"{'start-up':12} {ours_s * 1000:8.0f} {sdk_s * 1000:8.0f} {ours_s / sdk_s:6.2f}  {START_BOUND}")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
