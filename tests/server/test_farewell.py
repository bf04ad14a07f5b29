"""A server over HTTP that is told to end: calls under way are answered, those who only listen are let go."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from test_websocket import HELLO, opened
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from commonplace.library import Library
from commonplace.settings import Settings
from serving import environment_of, process
from wire_server import Site, serving

FOR_US = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
COMMANDS = {"serve": ["commonplace", "serve"], "qmd": ["commonplace.qmd.cli", "server", "--transport", "http"]}


@pytest.fixture
def site() -> Iterator[Site]:
    with serving() as site:
        yield site


@pytest.fixture
def environment(site: Site, tmp_path: Path) -> dict[str, str]:
    """A library of one document, with vectors of a provider."""
    (tmp_path / "files").mkdir()
    (tmp_path / "files/tea.md").write_text("# Tea\n\nOolong wants water just off the boil.\n")
    home, models = tmp_path / "home", tmp_path / "models"
    settings = Settings(home=home, models=models, model="ollama:static", embedder_url=site.url)
    with Library.open(home, settings=settings) as library:
        library.folders.add(tmp_path / "files", name="files")
        library.folders.update("files")
        library.embed()
    return environment_of(
        home,
        COMMONPLACE_MODEL="ollama:static",
        COMMONPLACE_MODELS=str(models),
        COMMONPLACE_EMBEDDER_URL=site.url,
    )


@pytest.mark.parametrize("signals", [[signal.SIGTERM], [signal.SIGINT, signal.SIGINT]], ids=["told", "told twice"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_call_under_way_is_answered_and_an_open_stream_holds_nobody_up(
    command: str, signals: list[signal.Signals], site: Site, environment: dict[str, str]
) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    line = [sys.executable, "-m", *COMMANDS[command], "--port", str(port)]
    server = subprocess.Popen(line, env=environment, stderr=subprocess.PIPE, text=True)
    address = f"http://127.0.0.1:{port}/mcp/qmd"
    try:
        wait_until(lambda: _answers(port))
        said = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
        session = {
            **FOR_US,
            "mcp-session-id": httpx.post(address, headers=FOR_US, json=said, timeout=30).headers["mcp-session-id"],
        }
        httpx.post(address, headers=session, json={"jsonrpc": "2.0", "method": "notifications/initialized"}, timeout=30)
        site.always = lambda handler: (site.released.wait(30), handler.answer(*handler._answer(site.asked[-1].body)))  # type: ignore[assignment, func-returns-value]
        asked = len(site.asked)
        search = {"name": "vsearch", "arguments": {"query": "how hot", "minScore": 0}}
        call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": search}
        answers: list[str] = []
        caller = threading.Thread(
            target=lambda: answers.append(httpx.post(address, headers=session, json=call, timeout=30).text)
        )
        with httpx.stream("GET", address, headers=session, timeout=30) as listening:
            caller.start()
            wait_until(lambda: len(site.asked) > asked)
            for number in signals:
                server.send_signal(number)
                wait_until(lambda: not _answers(port))  # it has heard the signal
            listening.read()  # it ends in good order, though the call is still under way
        assert server.poll() is None
        site.released.set()
        caller.join(20)
        found = json.loads(answers[0].partition("data: ")[2])["result"]
        assert [hit["file"] for hit in found["structuredContent"]["results"]] == ["files/tea.md"]
        assert "Traceback" not in server.communicate(timeout=20)[1]
        assert server.returncode == 0
    finally:
        site.released.set()
        server.kill()
        server.communicate()


def test_a_call_under_way_over_websocket_is_answered_and_who_is_idle_holds_nobody_up(
    site: Site, environment: dict[str, str]
) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    line = [sys.executable, "-m", *COMMANDS["serve"], "--port", str(port)]
    server = subprocess.Popen(line, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        wait_until(lambda: _answers(port))
        place = f"ws://127.0.0.1:{port}/ws/qmd"
        with connect(place) as idle, connect(place) as calling:
            opened(calling)
            opened(idle)
            site.always = lambda handler: (  # type: ignore[assignment]
                site.released.wait(30),
                handler.answer(*handler._answer(site.asked[-1].body)),  # type: ignore[func-returns-value]
            )
            asked = len(site.asked)
            search = {"name": "vsearch", "arguments": {"query": "how hot", "minScore": 0}}
            calling.send(json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": search}))
            wait_until(lambda: len(site.asked) > asked)
            server.send_signal(signal.SIGTERM)
            with pytest.raises(ConnectionClosed):
                idle.recv(timeout=20)
            assert (idle.close_code, server.poll()) == (1012, None)
            site.released.set()
            found = json.loads(calling.recv(timeout=20))["result"]
            assert [hit["file"] for hit in found["structuredContent"]["results"]] == ["files/tea.md"]
            with pytest.raises(ConnectionClosed):
                calling.recv(timeout=20)
            assert calling.close_code == 1012
        assert "Traceback" not in server.communicate(timeout=20)[1]
    finally:
        site.released.set()
        server.kill()
        server.communicate()


def test_a_websocket_that_waits_for_its_answer_is_not_taken_for_an_idle_one(
    site: Site, environment: dict[str, str]
) -> None:
    with process({**environment, "COMMONPLACE_IDLE_SECONDS": "1"}) as server:
        place = server.address.replace("http://", "ws://").replace("/mcp", "/ws/qmd")
        site.always = lambda handler: (site.released.wait(30), handler.answer(*handler._answer(site.asked[-1].body)))  # type: ignore[assignment, func-returns-value]
        try:
            with connect(place) as waiting:
                opened(waiting)
                search = {"name": "vsearch", "arguments": {"query": "how hot", "minScore": 0}}
                waiting.send(json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": search}))
                with connect(place) as idle:  # which was silent for a shorter time when it is closed
                    opened(idle)
                    with pytest.raises(ConnectionClosed):
                        idle.recv(timeout=20)
                    assert idle.close_code == 1001
                site.released.set()
                found = json.loads(waiting.recv(timeout=20))["result"]
                assert [hit["file"] for hit in found["structuredContent"]["results"]] == ["files/tea.md"]
                with pytest.raises(ConnectionClosed):
                    waiting.recv(timeout=20)
                assert waiting.close_code == 1001
        finally:
            site.released.set()


def wait_until(so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not so():
        assert time.monotonic() < deadline
        time.sleep(0.02)  # the bound of a wait for another process, not a guess at its speed


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
