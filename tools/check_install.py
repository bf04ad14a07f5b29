"""Install the wheel of this checkout as a user does, in an empty home each time, and ask it something.

    python tools/check_install.py [pip] [uv] [uvx] [pipx]

Each way has to end with an agent's handshake, and with a text that is remembered and found by its words and by others.
A table says how long installing took and what lies on the disk. The exit status is 1 if a way fails. `uv` and `pipx`
come from the package index, for this run alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
TEXT = "Sourdough needs a long cold proof."
_NOT_THEIRS = ("COMMONPLACE_", "XDG_", "VIRTUAL_ENV", "PYTHON")
Environment = dict[str, str]


class WrongAnswer(Exception):
    """The error that a program is installed and does not do what it is for."""


def main(ways: Sequence[str]) -> int:
    """Check each way of installing, print a table, and return the exit status."""
    failed = False
    with tempfile.TemporaryDirectory(prefix="install-") as folder:
        place = Path(folder)
        tools = _tools(place / "tools")
        wheel = _built(place / "dist")
        print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB")
        for way in ways or list(WAYS):
            home = place / way
            home.mkdir()
            clean = {name: value for name, value in os.environ.items() if not name.startswith(_NOT_THEIRS)}
            path = f"{home / '.local' / 'bin'}{os.pathsep}{tools}{os.pathsep}{clean['PATH']}"
            environment = {**clean, "HOME": str(home), "PATH": path, "HF_HUB_OFFLINE": "1"}
            started = time.monotonic()
            try:
                command, server = WAYS[way](wheel, home, environment)
                installed = time.monotonic() - started
                _ask(command, server, environment)
            except (subprocess.CalledProcessError, WrongAnswer) as error:
                failed = True
                print(f"{way:5} FAILED: {error}\n{getattr(error, 'stderr', '') or ''}")
                continue
            print(f"{way:5} {installed:5.0f} s to install, {_bytes(home) / 1e6:5.0f} MB in the home")
    return int(failed)


def _run(command: Sequence[str], environment: Mapping[str, str], given: str = "") -> str:
    """Return what a program printed; raise CalledProcessError if it failed."""
    done = subprocess.run(
        command, env=environment, input=given, capture_output=True, text=True, timeout=900, check=True, cwd="/"
    )
    return done.stdout


def _tools(folder: Path) -> Path:
    """Install uv and pipx into a virtual environment, and return the folder of its programs."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    subprocess.run([str(folder / "bin" / "pip"), "install", "-q", "uv", "pipx"], check=True)
    return folder / "bin"


def _built(folder: Path) -> Path:
    """Build the wheel of this checkout and return its path."""
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--wheel-dir", str(folder), str(ROOT)]
    subprocess.run(command, check=True)
    return next(folder.glob("*.whl"))


def _by_pip(wheel: Path, home: Path, environment: Environment) -> tuple[list[str], list[str]]:
    _run([sys.executable, "-m", "venv", str(home / "venv")], environment)
    _run([str(home / "venv/bin/pip"), "install", "-q", str(wheel)], environment)
    return [str(home / "venv/bin/commonplace")], [str(home / "venv/bin/commonplace-mcp")]


def _by_uv(wheel: Path, home: Path, environment: Environment) -> tuple[list[str], list[str]]:
    _run(["uv", "tool", "install", "-q", "--python", sys.executable, str(wheel)], environment)
    return ["commonplace"], ["commonplace-mcp"]


def _by_uvx(wheel: Path, home: Path, environment: Environment) -> tuple[list[str], list[str]]:
    from_wheel = ["uvx", "-q", "--python", sys.executable, "--from", str(wheel)]
    _run([*from_wheel, "commonplace", "--version"], environment)
    return [*from_wheel, "commonplace"], [*from_wheel, "commonplace-mcp"]


def _by_pipx(wheel: Path, home: Path, environment: Environment) -> tuple[list[str], list[str]]:
    _run(["pipx", "install", "-q", "--python", sys.executable, str(wheel)], environment)
    return ["commonplace"], ["commonplace-mcp"]


WAYS: dict[str, Callable[[Path, Path, Environment], tuple[list[str], list[str]]]] = {
    "pip": _by_pip,
    "uv": _by_uv,
    "uvx": _by_uvx,
    "pipx": _by_pipx,
}


def _ask(command: list[str], server: list[str], environment: Environment) -> None:
    """Shake hands, remember, and find by words and by meaning; raise WrongAnswer."""
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "check", "version": "1"}}
    requests = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    ]
    lines = _run(server, environment, "".join(f"{json.dumps(request)}\n" for request in requests)).splitlines()
    tools = [tool["name"] for tool in json.loads(lines[1])["result"]["tools"]]
    if "search" not in tools:
        raise WrongAnswer(f"tools/list names {tools}")
    _run([*command, "remember", TEXT], environment)
    for query in (["search", "sourdough"], ["query", "how should bread dough rest"]):
        if TEXT not in _run([*command, *query], environment):
            raise WrongAnswer(f"{query} does not find what was remembered")


def _bytes(folder: Path) -> int:
    """Return what the files below a folder take, each counted once however often it is linked."""
    sizes: dict[tuple[int, int], int] = {}
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            status = path.stat()
            sizes[status.st_dev, status.st_ino] = status.st_size
    return sum(sizes.values())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
