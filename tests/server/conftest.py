"""A small library, and a real server of it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from commonplace.library import Library
from commonplace.model import Draft
from commonplace.settings import Settings


@pytest.fixture
def home(tmp_path: Path) -> Path:
    settings = Settings(home=tmp_path, models=tmp_path / "models", model="static")
    with Library.open(tmp_path, settings=settings) as library:
        library.put(
            Draft("note", "tea", title="Tea", body="Oolong wants water just off the boil.\nGreen tea does not.")
        )
        library.put(Draft("note", "bread", title="Bread", body="Sourdough needs a long cold proof.", tags=("food",)))
        library.embed()
    return tmp_path


@pytest.fixture
def environment(home: Path) -> dict[str, str]:
    return {**os.environ, "COMMONPLACE_HOME": str(home), "COMMONPLACE_MODEL": "static"}


@pytest.fixture
def address(environment: dict[str, str]) -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "commonplace", "serve", "--port", str(port)]
    server = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    try:
        _wait_for(port, server)
        yield f"http://127.0.0.1:{port}/mcp"
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
