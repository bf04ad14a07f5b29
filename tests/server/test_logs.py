"""What a server writes to its log at `debug`.

1. Through every door (stdio, HTTP in both eras, WebSocket, REST) nothing of a document, a query or a key is in it.
2. Our own lines are there, and a traceback has the type and the place of an error without its message.
3. Levels are those of our own loggers: a library's `debug` and `info` are never heard, its warnings are.
"""

from __future__ import annotations

import io
import json
import logging
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from test_mcp import ERAS
from test_websocket import opened
from websockets.sync.client import connect

from commonplace.library import Library
from commonplace.model import Draft
from commonplace.server.logs import OURS, log_to
from commonplace.settings import Settings
from commonplace.store.accounts import FILE
from commonplace.store.sqlite.accounts import Accounts
from kit.forked import forked
from serving import environment_of, process

SAID, ASKED = "Zanzibarquince", "Wolframlupine"
"""Words of the document and of the queries. Neither is in anything else."""
SEARCH = {"query": f'"{SAID.lower()}" {ASKED}'}


@pytest.fixture
def key(tmp_path: Path) -> str:
    """The key of a user who has one note."""
    with closing(Accounts(tmp_path / FILE)) as accounts:
        accounts.add_user("alice")
        key = accounts.create_key("alice", ("write",))
    for space in ("alice", "default"):
        with Library.open(tmp_path, space, Settings(home=tmp_path, model="static")) as library:
            library.put(Draft("note", "tea", title=f"{SAID} tea", body=f"The {SAID} tea wants {SAID} water."))
            library.embed()
    return key


def calls(id: int) -> list[dict[str, Any]]:
    """Good calls, wrong ones and what is no call at all, each with something that must not be in the log."""
    tools = [
        ("search", SEARCH),
        ("search", {"query": ASKED, "limit": ASKED, ASKED: SAID}),
        ("fetch", {"uri": f"notes://{ASKED}"}),
        ("fetch", {"uri": "notes://tea"}),
        ("remember", {"title": f"{ASKED} note", "text": f"{SAID} and {ASKED}"}),
        ("search", [ASKED]),
    ]
    return [
        {"jsonrpc": "2.0", "id": id + at, "method": "tools/call", "params": {"name": name, "arguments": given}}
        for at, (name, given) in enumerate(tools)
    ]


def over_stdio(home: Path) -> str:
    """The log of one process that is called on its standard input."""
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    sent = [{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}]
    sent += [{"jsonrpc": "2.0", "method": "notifications/initialized"}, *calls(2), {"jsonrpc": ASKED, "method": SAID}]
    lines = "".join(f"{json.dumps(one)}\n" for one in sent) + f"{SAID} is no message\n"
    command = forked("mcp", "--allow-writes")
    environment = environment_of(home, COMMONPLACE_LOG_LEVEL="debug")
    done = subprocess.run(command, env=environment, input=lines, capture_output=True, text=True, timeout=60, check=True)
    assert SAID in done.stdout
    return done.stderr


@contextmanager
def talkative(home: Path, log: Path) -> Iterator[str]:
    """The address of a server with keys that writes all it has to say into a file."""
    settings = {"AUTH": "keys", "ALLOW_WRITES": "1", "LOG_LEVEL": "debug"}
    environment = environment_of(home, **{f"COMMONPLACE_{name}": value for name, value in settings.items()})
    with log.open("wb") as output, process(environment, output) as server:
        yield server.address


async def over_http(address: str, headers: dict[str, str]) -> None:
    for era in ERAS:
        async with (
            httpx.AsyncClient(headers=headers, timeout=60) as http,
            Client(streamable_http_client(address, http_client=http), mode=era) as client,  # type: ignore[arg-type]
        ):
            found = await client.call_tool("search", SEARCH)
            assert SAID in json.dumps(found.structured_content)
            for one in calls(2):
                if isinstance(one["params"]["arguments"], dict):
                    await client.call_tool(**one["params"])


def over_rest(address: str, headers: dict[str, str]) -> None:
    tools = address.replace("/mcp", "/api/v1/tools")
    found = httpx.post(f"{tools}/search", json=SEARCH, headers=headers, timeout=60)
    assert SAID in found.text
    for one in calls(2):
        httpx.post(f"{tools}/{one['params']['name']}", json=one["params"]["arguments"], headers=headers, timeout=60)
    httpx.post(f"{tools}/search", content=f"{ASKED} is no JSON", headers=headers, timeout=60)
    httpx.post(address, content=f'{{"jsonrpc": "{ASKED}"}}', headers=headers, timeout=60)
    wrong = {"Authorization": f"Bearer {headers['Authorization'][-20:]}"}
    assert httpx.post(f"{tools}/search", json=SEARCH, headers=wrong, timeout=60).status_code == 401


def over_websocket(address: str, headers: dict[str, str]) -> None:
    with connect(address.replace("http", "ws", 1).replace("/mcp", "/ws"), additional_headers=headers) as socket:
        opened(socket)
        for one in calls(2):
            socket.send(json.dumps(one))
            while json.loads(reply := socket.recv(timeout=30)).get("id") != one["id"]:
                pass
            assert reply
        socket.send(f"{ASKED} is no message")
        socket.recv(timeout=30)


def check(log: str, *secrets: str) -> None:
    for secret in (SAID, ASKED, *secrets):
        told = [line for line in log.splitlines() if secret.lower() in line.lower()]
        assert not told, told[:3]


def test_nothing_that_a_client_of_stdio_says_or_reads_is_in_the_log(tmp_path: Path, key: str) -> None:
    check(over_stdio(tmp_path), key)


def test_nothing_that_goes_through_a_socket_is_in_the_log(tmp_path: Path, key: str) -> None:
    log, headers = tmp_path / "log", {"Authorization": f"Bearer {key}"}
    with talkative(tmp_path, log) as address:
        anyio.run(over_http, address, headers)
        over_rest(address, headers)
        over_websocket(address, headers)
    check(log.read_text(), key, key[-20:])


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    """A log at `debug`, and everything as it was when the test ends."""
    root, ours = logging.getLogger(), logging.getLogger(OURS)
    handlers, level = root.handlers[:], ours.level
    stream = io.StringIO()
    log_to(stream, "debug")
    yield stream
    root.handlers[:] = handlers
    ours.setLevel(level)


def test_our_own_lines_are_heard_and_of_libraries_only_warnings(stream: io.StringIO) -> None:
    logging.getLogger(f"{OURS}.server.mcp").debug("ours")
    logging.getLogger("sse_starlette.sse").debug("chunk")
    logging.getLogger("httpx").info("address")
    logging.getLogger("mcp").warning("gave up")
    assert stream.getvalue() == "DEBUG ours\nWARNING gave up\n"


def test_a_traceback_says_which_error_was_raised_where_and_not_what_it_quotes(stream: io.StringIO) -> None:
    try:
        try:
            int(SAID)
        except ValueError as error:
            raise RuntimeError(ASKED) from error
    except RuntimeError:
        logging.getLogger(OURS).exception("search failed (%s)", "1234abcd")
    told = stream.getvalue()
    check(told)
    assert told.startswith("ERROR search failed (1234abcd)\nTraceback")
    assert "ValueError\nThen:\n" in told
    assert told.endswith("RuntimeError\n")
    assert "test_logs.py" in told


def test_a_log_that_is_set_again_writes_a_line_once(stream: io.StringIO) -> None:
    again = io.StringIO()
    log_to(again, "error")
    logging.getLogger(OURS).error("once")
    logging.getLogger(OURS).warning("no error")
    assert (stream.getvalue(), again.getvalue()) == ("", "ERROR once\n")
