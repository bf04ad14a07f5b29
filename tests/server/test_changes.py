"""Clients hear of lists that change, in both protocol eras, through every door that stays open.

1. What is announced is what can change, and no more.
2. A write is told to those who listen; a write that changes no list is not.
3. What another process writes is told too.
4. Nothing of one space is told in another.
5. When nobody listens any more, nothing is watched.
6. A server that is told to stop ends the streams in good order and does not wait for those who listen.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.subscriptions import PromptsListChanged, ResourcesListChanged
from test_websocket import ENVELOPE, HELLO
from websockets.sync.client import ClientConnection, connect

from commonplace.library import Library
from commonplace.model import Draft
from commonplace.profiles import registry
from commonplace.server.auth import make_gate
from commonplace.server.http import make_app
from commonplace.server.mcp import make_server
from commonplace.server.principal import OWNER
from commonplace.server.service import Service, Visitor
from commonplace.settings import Settings
from commonplace.store.sqlite.accounts import Accounts
from kit.answers import present
from opening import library_settings
from serving import served

HERE = Path(__file__).parent
DOORS = ["stdio", "http"]


@pytest.fixture(autouse=True)
def growing(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(registry.PROFILES, "growing", "growing")
    registry.profile.cache_clear()
    yield
    registry.profile.cache_clear()


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return library_settings(tmp_path)


@pytest.fixture
def port(settings: Settings) -> Iterator[int]:
    with served(make_app(settings, make_gate(settings, owner=OWNER))) as port:
        yield port


class Heard:
    """What a client of the handshake era was notified of, in order."""

    def __init__(self) -> None:
        self._sink, self._source = anyio.create_memory_object_stream[str](100)

    async def __call__(self, message: Any) -> None:
        if (method := getattr(message, "method", None)) is not None:
            await self._sink.send(method)

    async def next(self) -> str:
        return await self._source.receive()

    def close(self) -> None:
        self._sink.close()
        self._source.close()


@asynccontextmanager
async def through(door: str, home: Path, port: int, era: str, heard: Heard | None = None) -> AsyncIterator[Client]:
    if door == "http":
        address: Any = f"http://127.0.0.1:{port}/mcp/growing"
    else:
        arguments = [str(HERE / "growing.py"), str(home)]
        address = stdio_client(StdioServerParameters(command=sys.executable, args=arguments, env=dict(os.environ)))
    with anyio.fail_after(60):
        async with Client(address, mode=era, message_handler=heard) as client:
            yield client


async def add(client: Client, name: str, kind: str = "prompt") -> None:
    assert not (await client.call_tool("add", {"name": name, "kind": kind})).is_error


@pytest.mark.parametrize("door", DOORS)
def test_a_client_of_the_stateless_era_hears_of_a_list_that_changed(
    door: str, settings: Settings, tmp_path: Path, port: int
) -> None:
    async def main() -> None:
        async with through(door, tmp_path, port, "auto") as client:
            assert present(client.server_capabilities.prompts).list_changed
            assert present(client.server_capabilities.resources).list_changed
            assert not present(client.server_capabilities.tools).list_changed
            assert not present(client.server_capabilities.resources).subscribe
            async with client.listen(
                prompts_list_changed=True, tools_list_changed=True, resource_subscriptions=["notes://tea"]
            ) as changes:
                assert changes.honored.prompts_list_changed
                assert not changes.honored.tools_list_changed
                assert not changes.honored.resource_subscriptions
                await add(client, "nothing listed", kind="message")
                await add(client, "not listened to", kind="note")
                await add(client, "one")
                assert await anext(aiter(changes)) == PromptsListChanged()
                assert len((await client.list_prompts()).prompts) == 1

    anyio.run(main)


@pytest.mark.parametrize("door", DOORS)
def test_a_client_of_the_handshake_era_hears_of_a_list_that_changed(
    door: str, settings: Settings, tmp_path: Path, port: int
) -> None:
    async def main() -> None:
        heard = Heard()
        async with through(door, tmp_path, port, "legacy", heard) as client:
            assert present(client.server_capabilities.prompts).list_changed
            assert present(client.server_capabilities.resources).list_changed
            assert not present(client.server_capabilities.tools).list_changed
            await told_at_last(client, heard)
            await add(client, "nothing listed", kind="message")
            await add(client, "a note", kind="note")
            assert await heard.next() == "notifications/resources/list_changed"
            await add(client, "one more")
            assert await heard.next() == "notifications/prompts/list_changed"
        heard.close()

    anyio.run(main)


async def told_at_last(client: Client, heard: Heard) -> None:
    """Over HTTP the client opens its stream when it likes; what changes before that, it is not told."""
    for number in range(20):
        await add(client, f"early {number}")
        with anyio.move_on_after(1):
            assert await heard.next() == "notifications/prompts/list_changed"
            return
    raise AssertionError("nothing was heard")


@pytest.mark.parametrize("door", DOORS)
def test_what_another_process_writes_is_heard_of(door: str, settings: Settings, tmp_path: Path, port: int) -> None:
    async def main() -> None:
        async with (
            through(door, tmp_path, port, "auto") as client,
            client.listen(prompts_list_changed=True) as changes,
        ):
            await anyio.to_thread.run_sync(write, tmp_path, settings)
            assert await anext(aiter(changes)) == PromptsListChanged()

    anyio.run(main)


def write(home: Path, settings: Settings) -> None:
    with Library.open(home, settings=settings) as library:
        library.put(Draft("prompt", "from elsewhere", body="Something to start from."))


def test_nothing_of_one_space_is_heard_in_another(tmp_path: Path) -> None:
    settings = library_settings(tmp_path, auth="keys")
    accounts = Accounts(tmp_path / "accounts.db")
    for name in ("ann", "bob"):
        accounts.add_user(name)
    keys = {name: accounts.create_key(name, ["write"]) for name in ("ann", "bob")}
    accounts.close()

    @asynccontextmanager
    async def of(name: str, port: int, era: str, heard: Heard | None = None) -> AsyncIterator[Client]:
        headers = {"Authorization": f"Bearer {keys[name]}"}
        async with httpx2.AsyncClient(headers=headers, timeout=30) as carrier:
            streams = streamable_http_client(f"http://127.0.0.1:{port}/mcp/growing", http_client=carrier)
            async with Client(streams, mode=era, message_handler=heard) as client:
                yield client

    async def main(port: int) -> None:
        heard = Heard()
        with anyio.fail_after(60):
            async with (
                of("ann", port, "auto") as ann,
                of("bob", port, "auto") as bob,
                of("bob", port, "legacy", heard) as older,
                ann.listen(prompts_list_changed=True, resources_list_changed=True) as of_ann,
                bob.listen(prompts_list_changed=True, resources_list_changed=True) as of_bob,
            ):
                await told_at_last(older, heard)
                assert await anext(aiter(of_bob)) == PromptsListChanged()
                await add(ann, "hers", kind="note")
                assert await anext(aiter(of_ann)) == ResourcesListChanged()
                await add(bob, "his")
                assert await anext(aiter(of_bob)) == PromptsListChanged()
                assert await heard.next() == "notifications/prompts/list_changed"
        heard.close()

    with served(make_app(settings, make_gate(settings))) as port:
        anyio.run(main, port)


def send(wire: ClientConnection, **message: Any) -> None:
    wire.send(json.dumps({"jsonrpc": "2.0", **message}))


def receive(wire: ClientConnection, method: str) -> dict[str, Any]:
    """The next notification of this method; replies to requests may come between."""
    while True:
        message: dict[str, Any] = json.loads(wire.recv(timeout=30))
        if message.get("method") == method:
            return message
        assert "result" in message, message


def test_a_websocket_of_the_handshake_era_hears_of_a_list_that_changed(port: int) -> None:
    with connect(f"ws://127.0.0.1:{port}/ws/growing") as wire:
        send(wire, id=1, method="initialize", params=HELLO)
        assert json.loads(wire.recv(timeout=30))["result"]["capabilities"]["prompts"] == {"listChanged": True}
        send(wire, method="notifications/initialized")
        send(wire, id=2, method="tools/call", params={"name": "add", "arguments": {"name": "one"}})
        receive(wire, "notifications/prompts/list_changed")


def test_a_websocket_of_the_stateless_era_hears_of_a_list_that_changed(port: int) -> None:
    with connect(f"ws://127.0.0.1:{port}/ws/growing") as wire:
        wanted = {"notifications": {"promptsListChanged": True}, "_meta": ENVELOPE}
        send(wire, id=7, method="subscriptions/listen", params=wanted)
        receive(wire, "notifications/subscriptions/acknowledged")
        call = {"name": "add", "arguments": {"name": "one"}, "_meta": ENVELOPE}
        send(wire, id=8, method="tools/call", params=call)
        told = receive(wire, "notifications/prompts/list_changed")
        assert told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == 7


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
def test_when_nobody_listens_nothing_is_watched(settings: Settings, era: str) -> None:
    async def main() -> None:
        service = Service(settings)
        server = make_server(service, service.registry("growing"), lambda context: Visitor(OWNER))
        with anyio.fail_after(60):
            async with Client(server, mode=era) as client:
                if era == "legacy":
                    assert service.changes.watched == 1
                else:
                    assert service.changes.watched == 0
                    async with client.listen(prompts_list_changed=True), client.listen(prompts_list_changed=True):
                        assert service.changes.watched == 1
            while service.changes.watched:
                await anyio.sleep(0.01)
        service.close()

    anyio.run(main)


def test_a_profile_whose_lists_stay_promises_nothing(port: int) -> None:
    async def main() -> None:
        with anyio.fail_after(60):
            for era in ("legacy", "auto"):
                async with Client(f"http://127.0.0.1:{port}/mcp", mode=era) as client:
                    assert not present(client.server_capabilities.tools).list_changed

    anyio.run(main)


def test_a_server_that_stops_lets_those_go_who_listen(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, str(HERE / "growing.py"), str(tmp_path), str(port)]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)

    async def main() -> None:
        async with (
            through("http", tmp_path, port, "auto") as client,
            client.listen(prompts_list_changed=True) as changes,
        ):
            server.terminate()
            assert [event async for event in changes] == []  # an abrupt end would raise

    try:
        wait_for(port, server)
        anyio.run(main)
        _, said = server.communicate(timeout=20)
        assert said == ""
    finally:
        server.kill()
        server.communicate()


def wait_for(port: int, server: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert server.poll() is None
        time.sleep(0.05)  # the bound of a wait for another process, not a guess at its speed
    raise AssertionError("the server did not start")
