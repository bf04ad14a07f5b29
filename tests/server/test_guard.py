"""Whose requests are let in, by the Host and the Origin they name.

1. This machine by every address it has to itself, and the names that were set, however they are written.
2. A server that was told where to listen answers to that.
3. Anybody else's name is refused, also beside one of ours.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.responses import PlainTextResponse

from commonplace.server.auth import make_gate
from commonplace.server.heads import OriginGuard
from commonplace.server.http import make_app
from commonplace.settings import Settings
from serving import served


def status(port: int, *headers: str) -> int:
    lines = ["GET /healthz HTTP/1.1", *headers, "Connection: close", "", ""]
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall("\r\n".join(lines).encode())
        return int(connection.recv(65_536).split()[1])


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    app = OriginGuard(PlainTextResponse("in"), ["Books.Example.org", "[fd00::1]"])
    with served(app) as port:
        yield port


@pytest.mark.parametrize(
    "host",
    ["localhost", "LOCALHOST:8377", "127.0.0.1:1", "127.0.0.2", "127.255.0.9:8377", "[::1]:8377", "[0:0:0:0:0:0:0:1]",
     "books.example.org", "BOOKS.example.org:443", "[fd00::1]:8377"],
)  # fmt: skip
def test_a_name_of_ours_is_let_in_as_host_and_as_origin(port: int, host: str) -> None:
    assert status(port, f"Host: {host}") == 200
    assert status(port, "Host: localhost", f"Origin: http://{host}") == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "127.0.0.1.evil.example", "128.0.0.1", "0.0.0.0", "[::]", "[fd00::2]", "localhost.evil", ""],
)
def test_any_other_is_refused(port: int, host: str) -> None:
    assert status(port, f"Host: {host}") == 403
    assert not host or status(port, "Host: localhost", f"Origin: http://{host}") == 403
    assert status(port) == 403


@pytest.mark.parametrize("name", ["Host", "Origin"])
def test_a_second_name_does_not_hide_the_first(port: int, name: str) -> None:
    ours, theirs = f"{name}: {'' if name == 'Host' else 'http://'}localhost", f"{name}: http://evil.example"
    beside = ["Host: localhost"] if name == "Origin" else []
    assert status(port, *beside, ours, theirs) == 403
    assert status(port, *beside, theirs, ours) == 403


def test_a_server_answers_to_the_address_it_was_told_to_listen_on(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, model="static")
    with served(make_app(settings, make_gate(settings), host="Reading.Room.example")) as port:
        assert status(port, "Host: reading.room.example:8377") == 200
        assert status(port, "Host: room.example") == 403
    with served(make_app(settings, make_gate(settings), host="0.0.0.0")) as port:  # which is nobody's address
        assert status(port, "Host: 0.0.0.0") == 403
