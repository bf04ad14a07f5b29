"""Real servers on loopback, for as long as a test needs them: any ASGI app in a thread, or `serve` in a process."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import uvicorn
from starlette.types import ASGIApp

from commonplace.library import Library
from commonplace.model import Draft
from commonplace.settings import Settings
from kit.forked import forked


@contextmanager
def served(app: ASGIApp, **more: Any) -> Iterator[int]:
    """The port of a server that runs in a thread until the block ends."""
    options: dict[str, Any] = {"log_level": "critical", "ws": "websockets-sansio", **more}
    config = uvicorn.Config(app, host="127.0.0.1", port=0, **options)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        deadline = time.monotonic() + 20
        while not server.started:
            assert thread.is_alive()
            assert time.monotonic() < deadline
            time.sleep(0.01)  # the bound of a wait for another thread, not a guess at its speed
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(20)


def get(port: int, path: str, headers: dict[str, str] | None = None) -> tuple[int, Any, dict[str, str]]:
    """Status, JSON body and headers (in lower case) of a GET."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request("GET", path, headers=headers or {})
        reply = connection.getresponse()
        body = reply.read()
        return reply.status, json.loads(body), {name.lower(): value for name, value in reply.getheaders()}
    finally:
        connection.close()


def fill(home: Path) -> Path:
    """Two notes in the home's own library."""
    settings = Settings(home=home, models=home / "models", model="static")
    with Library.open(home, settings=settings) as library:
        library.put(
            Draft("note", "tea", title="Tea", body="Oolong wants water just off the boil.\nGreen tea does not.")
        )
        library.put(Draft("note", "bread", title="Bread", body="Sourdough needs a long cold proof.", tags=("food",)))
        library.embed()
    return home


def environment_of(home: Path, **settings: str) -> dict[str, str]:
    return {**os.environ, "COMMONPLACE_HOME": str(home), "COMMONPLACE_MODEL": "static", **settings}


class Server(NamedTuple):
    address: str
    pid: int


@contextmanager
def process(
    environment: dict[str, str], log: IO[bytes] | int = subprocess.DEVNULL, command: Sequence[str] = ("serve",)
) -> Iterator[Server]:
    """A server in a process of its own, as a user starts it. What it says on standard error goes to `log`."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    started = forked(*command, "--port", str(port))
    server = subprocess.Popen(started, env=environment, stderr=log)
    try:
        _wait_for(port, server)
        yield Server(f"http://127.0.0.1:{port}/mcp", server.pid)
    finally:
        server.terminate()
        server.wait(timeout=20)


def _wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    for _ in range(300):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert server.poll() is None
        time.sleep(0.1)  # the bound of a wait for another process, not a guess at its speed
    raise AssertionError("the server did not start")
