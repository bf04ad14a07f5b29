"""The head of a request, before anything of ours has seen it.

1. A client that stops in the middle of one is told so and given up; one that sends nothing is let go.
2. A head without end is refused as soon as it is too long; one that comes in pieces is a request like any other.
3. What is given up does not speak into an answer that is still being sent on the same connection.
4. Trailers are no headers, and have an end too; the rest of a request that is answered is not waited for without end.
5. Nor is a client that does not read, and one that leaves has left every request it sent.
"""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from test_websocket import HELLO

from commonplace.server.auth import make_gate
from commonplace.server.heads import Heads
from commonplace.server.http import make_app
from commonplace.settings import Settings
from serving import served

FOR_US = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
IMPATIENT = {"COMMONPLACE_IDLE_SECONDS": "1"}


def opened(address: str) -> socket.socket:
    place = urlsplit(address)
    return socket.create_connection((place.hostname or "", place.port or 0), timeout=30)


def heard(connection: socket.socket) -> bytes:
    """All that comes until the server hangs up, or says nothing for as long as the connection waits."""
    told = b""
    try:
        while more := connection.recv(65_536):
            told += more
    except (ConnectionResetError, TimeoutError):
        pass  # it hung up on bytes that nobody will read, or is silent
    return told


@pytest.mark.parametrize(
    "half", [b"P", b"GET /healthz HTTP/1.1\r\nHo", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"]
)
@pytest.mark.parametrize("settings", [IMPATIENT], indirect=True)
def test_a_client_that_stops_in_the_middle_of_a_head_is_told_so_and_given_up(address: str, half: bytes) -> None:
    with opened(address) as stuck:
        stuck.sendall(half)
        told = heard(stuck)
    assert told.startswith(b"HTTP/1.1 408 ")
    error = json.loads(told.partition(b"\r\n\r\n")[2])["error"]
    assert error["message"] == "The rest of the request did not come within 1 s. Send it again."
    assert httpx.get(address.replace("/mcp", "/healthz")).status_code == 200


@pytest.mark.parametrize("settings", [IMPATIENT], indirect=True)
def test_a_client_that_sends_nothing_is_let_go(address: str) -> None:
    with opened(address) as silent:
        assert heard(silent) == b""


@pytest.mark.parametrize("settings", [IMPATIENT], indirect=True)
def test_a_connection_that_has_been_answered_may_stop_in_the_middle_of_its_next_head(address: str) -> None:
    with opened(address) as stuck:
        stuck.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        answer = b""
        while not answer.endswith(b'{"status":"ok"}'):
            answer += stuck.recv(65_536)
        stuck.sendall(b"GET /hea")
        assert heard(stuck).startswith(b"HTTP/1.1 408 ")


def test_a_head_that_comes_in_pieces_is_served(address: str) -> None:
    with opened(address) as slow:
        for piece in (b"GE", b"T /healthz HTTP/1.1\r\nHost: loc", b"alhost\r\nConnection: close\r", b"\n\r", b"\n"):
            slow.sendall(piece)
        assert heard(slow).startswith(b"HTTP/1.1 200 ")


def test_a_head_without_end_is_refused(address: str) -> None:
    with opened(address) as endless:
        endless.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n")
        try:
            for _ in range(1000):
                endless.sendall(b"X-Padding: " + b"y" * 10_000 + b"\r\n")
        except OSError:
            pass  # it hung up
        else:
            pytest.fail("it took ten megabytes")
        told = heard(endless)
    assert told == b"" or told.startswith(b"HTTP/1.1 431 ")
    assert httpx.get(address.replace("/mcp", "/healthz")).status_code == 200


def test_a_head_that_is_too_long_is_told_so(address: str) -> None:
    with opened(address) as long:
        long.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Padding: " + b"y" * 70_000)
        told = heard(long)
    assert told.startswith(b"HTTP/1.1 431 ")
    assert json.loads(told.partition(b"\r\n\r\n")[2])["error"]["code"] == "too_large"


@pytest.mark.parametrize("settings", [IMPATIENT], indirect=True)
def test_half_a_head_behind_a_stream_does_not_speak_into_it(address: str) -> None:
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    asked = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
    begun = httpx.post(address, json=asked, headers={"Accept": "application/json, text/event-stream"})
    session = begun.headers["Mcp-Session-Id"]
    with opened(address) as listening:
        listening.sendall(
            f"GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nMcp-Session-Id: {session}\r\n\r\n"
            "GET /hea".encode()
        )
        listening.settimeout(2.5)  # more than twice as long as half a head is waited for
        told = heard(listening)
    assert told.startswith(b"HTTP/1.1 200 ")
    assert b"408" not in told


CHUNKED = b"POST %s HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize("path", [b"/mcp", b"/nowhere"], ids=["read", "answered already"])
@pytest.mark.parametrize(
    ("begun", "line"),
    [(b"0\r\n", b"a: b\r\n" * 1000), (b"0\r\na: ", b"b" * 10_000), (b"2;", b"x" * 10_000)],
    ids=["trailers", "a trailer", "an extension"],
)
def test_what_is_no_body_has_an_end_in_a_body_too(address: str, path: bytes, begun: bytes, line: bytes) -> None:
    with opened(address) as endless:
        endless.sendall(CHUNKED % path + b"2\r\n{}\r\n" + begun)
        with pytest.raises(OSError, match=r"reset|pipe"):  # it hung up
            endless.sendall(line * 3000)
    assert httpx.get(address.replace("/mcp", "/healthz")).status_code == 200


def test_a_body_in_chunks_smaller_than_what_is_around_them_is_read_whole(address: str) -> None:
    chunks = b"".join(b"1;why=%s\r\n \r\n" % (b"y" * 50) for _ in range(5000))
    with opened(address) as wordy:
        head = CHUNKED.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n") % b"/api/v1/tools/status"
        wordy.sendall(head + b"2\r\n{}\r\n" + chunks + b"0\r\nX-Sum: 1\r\n\r\n")
        assert heard(wordy).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    ("asked", "more"),
    [
        (CHUNKED % b"/nowhere", b"1"),
        (CHUNKED % b"/nowhere", b"0\r\n\r\n"),
        (b"GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n", b"\r\n"),
    ],
    ids=["half of the rest", "the rest", "an empty line"],
)
@pytest.mark.parametrize("settings", [IMPATIENT], indirect=True)
def test_what_follows_an_answer_keeps_no_connection_open(address: str, asked: bytes, more: bytes) -> None:
    with opened(address) as stuck:
        stuck.sendall(asked)
        assert stuck.recv(65_536).startswith(b"HTTP/1.1 404 ")
        stuck.sendall(more)
        begun = time.monotonic()
        heard(stuck)
    assert time.monotonic() - begun < 20


def is_held(server: int, client: int) -> bool:
    """Whether the server's end of a connection is still there."""
    lines = Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]
    ends = [[int(end.partition(":")[2], 16) for end in line.split()[1:3]] for line in lines]
    return [server, client] in ends


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="only Linux keeps an eye on who reads")
@pytest.mark.parametrize("settings", [IMPATIENT], indirect=True)
def test_a_client_that_reads_nothing_of_its_answers_is_let_go(address: str) -> None:
    place = urlsplit(address)
    with socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.connect((place.hostname, place.port))
        deaf.sendall(100 * b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n")
        deadline = time.monotonic() + 15
        while is_held(place.port or 0, deaf.getsockname()[1]):
            assert time.monotonic() < deadline
            time.sleep(0.1)  # the bound of a wait for another process, not a guess at its speed
    assert httpx.get(address.replace("/mcp", "/healthz")).status_code == 200


def test_who_leaves_with_a_second_request_sent_has_left_the_first_too(
    home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = Settings(home=home, model="static")
    app = make_app(settings, make_gate(settings))
    with served(app, http=Heads) as port:
        hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
        session = httpx.post(f"http://127.0.0.1:{port}/mcp", json=hello, headers=FOR_US).headers["mcp-session-id"]
        head = f"Host: localhost\r\nAccept: text/event-stream\r\nMcp-Session-Id: {session}\r\n\r\n"

        def listen() -> bytes:
            """The beginning of the answer to a request for the session's only stream, with another right behind it."""
            with socket.create_connection(("127.0.0.1", port), timeout=30) as leaving:
                leaving.sendall(f"GET /mcp HTTP/1.1\r\n{head}GET /healthz HTTP/1.1\r\n{head}".encode())
                return leaving.recv(12)

        assert listen() == b"HTTP/1.1 200"
        deadline = time.monotonic() + 8
        while listen() != b"HTTP/1.1 200":
            assert time.monotonic() < deadline
    assert not [record.getMessage() for record in caplog.records if record.exc_info]
