"""How much a caller may ask.

1. A bucket gives a minute's allowance at once and refills evenly; every caller and tool has its own.
2. One call too many is a 429 with Retry-After over HTTP, and a sentence over stdio.
3. A request or an answer that is too large, a call that takes too long: a sentence each, and the server goes on.
4. A caller that goes away in the middle of a call, and a client that stops in the middle of a request, hold nobody up;
   nor does one that asks for much at once.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from commonplace.errors import RateLimited
from commonplace.model import JSON
from commonplace.server.auth import make_gate
from commonplace.server.calls import Failure
from commonplace.server.http import make_app
from commonplace.server.limits import Buckets
from commonplace.server.principal import OWNER
from commonplace.server.service import Service, Visitor
from commonplace.settings import Settings
from commonplace.tools.profile import Profile, Registry
from commonplace.tools.schema import obj
from commonplace.tools.tool import ADDS, READ_ONLY, Call, Reply, Tool
from kit.answers import text_of
from kit.forked import forked_server
from serving import served

HEADERS = {"Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2025-11-25"}


@given(st.integers(1, 50), st.lists(st.floats(0, 30), max_size=120))
def test_a_bucket_never_gives_more_than_its_allowance(per_minute: int, pauses: list[float]) -> None:
    now = 0.0
    buckets = Buckets(clock=lambda: now)
    given_at: list[float] = []
    for pause in pauses:
        now += pause
        wait = buckets.take("someone", per_minute)
        if wait == 0:
            given_at.append(now)
        else:
            now += wait + 1e-6
            assert buckets.take("someone", per_minute) == 0  # what it says is long enough
            given_at.append(now)
    for start in given_at:
        within = [moment for moment in given_at if start <= moment < start + 60]
        assert len(within) <= 2 * per_minute  # a full bucket, and a minute's refill
    assert buckets.take("someone else", per_minute) == 0


def test_no_allowance_means_no_limit() -> None:
    buckets = Buckets()
    assert not any(buckets.take("x", 0) for _ in range(1000))


def test_a_call_that_is_refused_takes_nothing_off_the_other_allowance(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, model="static", rate_limit_per_minute=2, write_limit_per_minute=3)
    service = Service(settings)
    first, second = (replace(SLOW, name=name, annotations=ADDS) for name in ("first", "second"))
    for _ in range(2):
        service.meter(OWNER, first)
    for _ in range(3):
        with pytest.raises(RateLimited):
            service.meter(OWNER, first)
    service.meter(OWNER, second)  # the third of all that write
    with pytest.raises(RateLimited):
        service.meter(OWNER, second)
    service.close()


def slow(call: Call, given: Mapping[str, JSON]) -> dict[str, JSON]:
    BEGUN.set()
    assert GO_ON.wait(30)
    DONE.set()
    return {}


BEGUN, GO_ON, DONE = threading.Event(), threading.Event(), threading.Event()
SLOW = Tool("slow", "Slow", "Waits.", obj(), None, READ_ONLY, slow)
LONG = Tool("long", "Long", "Talks.", obj(), None, READ_ONLY, lambda call, given: {"text": "word " * 10_000})
PROFILE = Profile("test", (SLOW, LONG, replace(SLOW, name="slow_write", annotations=ADDS)), lambda library: "")


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    for event in (BEGUN, GO_ON, DONE):
        event.clear()
    service = Service(
        Settings(home=tmp_path, model="static", call_seconds=1, concurrency=2, result_tokens=1000, allow_writes=True)
    )
    yield service
    GO_ON.set()
    service.close()


def called(service: Service, name: str) -> Reply | Failure:
    registry = Registry(PROFILE, writable=True)
    tool = registry.find(name)
    assert tool is not None
    return anyio.run(service.call, Visitor(OWNER), registry, tool, {})


@pytest.mark.parametrize(("name", "advice"), [("slow", "Ask for less"), ("slow_write", "look before you repeat it")])
def test_a_call_that_takes_too_long_is_given_up(service: Service, name: str, advice: str) -> None:
    answer = called(service, name)
    assert isinstance(answer, Failure)
    assert (answer.code, answer.status) == ("unavailable", 504)
    assert f"{name} took longer than 1 s and was given up" in answer.message
    assert advice in answer.message
    GO_ON.set()
    assert DONE.wait(30)  # what was begun is ended, not killed


def test_an_answer_that_is_too_long_says_what_to_do(service: Service) -> None:
    answer = called(service, "long")
    assert isinstance(answer, Failure)
    assert (answer.code, answer.status) == ("too_large", 413)
    assert "Ask for less at once" in answer.message


def test_who_asks_for_much_at_once_waits_for_itself_and_not_others_for_it(tmp_path: Path) -> None:
    service = Service(Settings(home=tmp_path, model="static", concurrency=1))
    done = list[str]()

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            for space in ("ann", "ann", "ann", "ann", "bob"):
                tasks.start_soon(service.run_in_thread, space, lambda library: done.append(library.folder.name))

    anyio.run(main)
    service.close()
    assert done.index("bob") <= 2


def test_a_caller_that_goes_away_gives_its_place_back_when_the_work_is_done(service: Service) -> None:
    registry = Registry(PROFILE, writable=True)

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            for _ in range(2):  # both places are taken
                BEGUN.clear()
                tasks.start_soon(service.call, Visitor(OWNER), registry, SLOW, {})
                assert await anyio.to_thread.run_sync(BEGUN.wait, 30)
            tasks.cancel_scope.cancel()
        assert service.waiting == 0
        with anyio.move_on_after(0.2) as waited:
            await service.work("default", lambda library: None)
        assert waited.cancelled_caught
        GO_ON.set()
        with anyio.fail_after(20):
            await service.work("default", lambda library: None)

    anyio.run(main)


@pytest.mark.parametrize("settings", [{"COMMONPLACE_RATE_LIMIT_PER_MINUTE": "2"}], indirect=True)
def test_one_call_too_many_is_a_429(address: str) -> None:
    with httpx.Client(base_url=address.removesuffix("/mcp"), timeout=30) as client:
        for _ in range(2):
            assert client.post("/api/v1/tools/search", json={"query": "tea"}).status_code == 200
        refused = client.post("/api/v1/tools/search", json={"query": "tea"})
        assert refused.status_code == 429
        assert 1 <= int(refused.headers["retry-after"]) <= 31
        assert refused.json()["error"]["code"] == "rate_limited"
        assert client.post("/api/v1/tools/status", json={}).status_code == 200

        call = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "search", "arguments": {}}}
        over_mcp = client.post("/mcp", json=call, headers=HEADERS)
        assert over_mcp.status_code == 429
        assert over_mcp.headers["retry-after"]
        assert over_mcp.json()["id"] == 7
        assert 'errors_total{code="rate_limited",tool="search"} 2.0' in client.get("/metrics").text
        over_qmd = client.post("/qmd/search", json={"query": "tea"})
        assert (over_qmd.status_code, over_qmd.json()["status_code"]) == (429, 429)
        assert 1 <= int(over_qmd.headers["retry-after"]) <= 31
        listing = client.post(
            "/mcp", json=modern("tools/list"), headers={**HEADERS, **MODERN, "Mcp-Method": "tools/list"}
        )
        assert listing.status_code == 200


@pytest.mark.parametrize("settings", [{"COMMONPLACE_WRITE_LIMIT_PER_MINUTE": "1"}], indirect=True)
def test_a_call_that_is_denied_takes_nothing_off_an_allowance_at_any_door(address: str) -> None:
    with httpx.Client(base_url=address.removesuffix("/mcp"), timeout=30) as client:
        for _ in range(2):
            denied = modern("tools/call", name="remember", arguments={"text": "x"})
            named = {**HEADERS, **MODERN, "Mcp-Method": "tools/call", "Mcp-Name": "remember"}
            over_mcp = client.post("/mcp", json=denied, headers=named).json()["result"]
            assert over_mcp["structuredContent"]["error"]["code"] == "writes_disabled"
            over_rest = client.post("/api/v1/tools/remember", json={"text": "x"})
            assert over_rest.json()["error"]["code"] == "writes_disabled"


MODERN = {"Mcp-Protocol-Version": "2026-07-28"}


def modern(method: str, **params: Any) -> dict[str, Any]:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}


@pytest.mark.parametrize("settings", [{"COMMONPLACE_RATE_LIMIT_PER_MINUTE": "1"}], indirect=True)
def test_one_call_too_many_is_a_sentence_over_stdio(environment: dict[str, str]) -> None:
    async def main() -> None:
        server = StdioServerParameters(**forked_server("mcp"), env=environment)
        with anyio.fail_after(60):
            async with Client(stdio_client(server)) as client:
                assert not (await client.call_tool("status", {})).is_error
                refused = await client.call_tool("status", {})
        assert refused.is_error
        assert text_of(refused).startswith("status was called too often. Try again in ")
        assert refused.structured_content["error"]["code"] == "rate_limited"

    anyio.run(main)


@pytest.mark.parametrize("settings", [{"COMMONPLACE_BODY_BYTES": "4096"}], indirect=True)
def test_a_request_that_is_too_large_is_refused(address: str) -> None:
    with httpx.Client(base_url=address.removesuffix("/mcp"), timeout=30) as client:
        large = {"query": "x" * 10_000}
        refused = client.post("/api/v1/tools/search", json=large)
        assert (refused.status_code, refused.json()["error"]["code"]) == (413, "too_large")
        refused = client.post("/mcp", json=modern("tools/call", name="search", arguments=large))
        said = "A request has at most 4096 bytes. Send less at once."
        assert (refused.status_code, refused.json()["error"]["message"]) == (413, said)
        pieces = (b'{"query": "' + b"x" * 1000 for _ in range(100))
        assert client.post("/api/v1/tools/search", content=pieces).status_code == 413
        assert client.post("/api/v1/tools/search", json={"query": "tea"}).status_code == 200


@pytest.mark.parametrize("path", ["/api/v1/tools/search", "/mcp", "/mcp/tables", "/qmd/search"])
@pytest.mark.parametrize("settings", [{"COMMONPLACE_IDLE_SECONDS": "1"}], indirect=True)
def test_a_client_that_stops_in_the_middle_is_told_so_and_given_up(address: str, path: str) -> None:
    place = urlsplit(address)
    with socket.create_connection((place.hostname, place.port), timeout=30) as stuck:
        stuck.sendall(_half_a_request(place.netloc, path))
        told = b""
        while more := stuck.recv(1000):  # until the server hangs up
            told += more
    assert told.startswith(b"HTTP/1.1 408 ")
    assert b"The rest of the request did not come within 1 s. Send it again." in told
    assert httpx.post(f"http://{place.netloc}/api/v1/tools/status", json={}).status_code == 200


@pytest.mark.parametrize("path", ["/api/v1/tools/search", "/mcp", "/mcp/tables", "/qmd/search"])
def test_a_client_that_leaves_in_the_middle_is_no_error(
    home: Path, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    settings = Settings(home=home, model="static")
    with served(make_app(settings, make_gate(settings))) as port:
        with socket.create_connection(("127.0.0.1", port), timeout=30) as leaving:
            leaving.sendall(_half_a_request(f"127.0.0.1:{port}", path))
        assert httpx.post(f"http://127.0.0.1:{port}/api/v1/tools/status", json={}).status_code == 200
    assert not [record.getMessage() for record in caplog.records if record.exc_info]


def _half_a_request(host: str, path: str) -> bytes:
    kinds = "Content-Type: application/json\r\nAccept: application/json, text/event-stream"
    return f"POST {path} HTTP/1.1\r\nHost: {host}\r\n{kinds}\r\nContent-Length: 500\r\n\r\n{{".encode()


def test_what_was_counted_is_told(address: str) -> None:
    with httpx.Client(base_url=address.removesuffix("/mcp"), timeout=30) as client:
        client.post("/api/v1/tools/search", json={"query": "tea"})
        client.post("/api/v1/tools/search", json={"nothing": 1})
        told = client.get("/metrics")
    assert told.headers["content-type"].startswith("text/plain")
    lines = dict(line.rsplit(" ", 1) for line in told.text.splitlines() if not line.startswith("#"))
    assert lines['commonplace_calls_total{tool="search"}'] == "2.0"
    assert lines['commonplace_errors_total{code="unknown_argument",tool="search"}'] == "1.0"
    assert lines['commonplace_call_seconds_count{tool="search"}'] == "2.0"
    assert lines["commonplace_embedding_coverage"] == "1.0"
    assert lines["commonplace_index_lag_changes"] == "0.0"
    assert {"commonplace_jobs_waiting", "commonplace_calls_waiting", "commonplace_open_libraries"} <= lines.keys()
