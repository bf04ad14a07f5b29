"""`make run` is the front door: a sample in a home of its own, and four lines that say what to do next.

`tools/run.sh` is what it runs once everything is set up; here it runs in a copy of what it needs of a checkout.
"""

from __future__ import annotations

import shlex
import shutil
import signal
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from fresh_user import PROGRAMS, FreshUser

ROOT = Path(__file__).parent.parent


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "checkout" / "tools").mkdir(parents=True)
    shutil.copytree(ROOT / "sample", tmp_path / "checkout" / "sample")
    shutil.copy(ROOT / "tools" / "run.sh", tmp_path / "checkout" / "tools")
    (tmp_path / "checkout" / ".venv").symlink_to(PROGRAMS.parent)
    return tmp_path / "checkout"


@pytest.fixture
def user(tmp_path: Path) -> FreshUser:
    """A user with a library of their own and settings that the sample has nothing to do with."""
    own = tmp_path / "own"
    return FreshUser(tmp_path / "user", COMMONPLACE_HOME=str(own), COMMONPLACE_AUTH="keys", COMMONPLACE_STORE="x")


@pytest.fixture
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


@pytest.fixture
def lines(checkout: Path, user: FreshUser, port: int) -> Iterator[list[str]]:
    """What is printed until the server is ready; it runs for as long as the test."""
    command = ["sh", "tools/run.sh", ".venv/bin", str(port)]
    running = subprocess.Popen(command, cwd=checkout, env=user.environment, stdout=subprocess.PIPE, text=True)
    assert running.stdout is not None
    printed: list[str] = []
    for line in running.stdout:
        printed.append(line.rstrip("\n"))
        if line.startswith("  Yours"):
            break
    yield printed
    running.send_signal(signal.SIGINT)
    assert running.wait(30) == 0
    running.stdout.close()


def test_the_front_door_says_what_it_does_and_ends_in_four_lines(
    lines: list[str], checkout: Path, user: FreshUser, port: int
) -> None:
    assert any(line.startswith("Reading the sample, 7 notes, into .sample-home.") for line in lines)
    assert [line.split()[0] for line in lines[-4:]] == ["Look", "Ask", "Connect", "Yours"]
    look, ask, connect, yours = (line.split(maxsplit=1)[1] for line in lines[-4:])
    with urllib.request.urlopen(urllib.request.Request(look, headers={"Accept": "text/html"})) as page:
        assert b"7 documents" in page.read()
    command = shlex.split(ask)
    clean = {name: value for name, value in user.environment.items() if not name.startswith("COMMONPLACE_")}
    asked = FreshUser(user.home)
    asked.environment = clean
    assert "Sourdough" in asked.program(*command, cwd=checkout).stdout
    assert connect == f"claude mcp add --scope user --transport http commonplace http://127.0.0.1:{port}/mcp"
    assert f"&& .venv/bin/commonplace serve --port {port}" in yours
    assert (checkout / ".sample-home" / "spaces" / "default" / "library.db").is_file()
    assert not (user.home.parent / "own").exists()
    assert not (user.home / ".local").exists()


def test_a_port_that_is_taken_is_said_with_one_that_may_be_free(checkout: Path, user: FreshUser) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = user.program("sh", "tools/run.sh", ".venv/bin", str(port), cwd=checkout, code=1).stderr
    assert f"Run: make run PORT={port + 1}" in said
    assert not (checkout / ".sample-home").exists()
