"""What a server loads of the MCP SDK.

1. A server on standard input and output answers without clients, HTTP clients, cryptography or models.
2. Whoever asks the SDK's packages for a name gets it, as if nothing had been left out.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

_NOT_FOR_WORDS = {
    "cryptography",
    "httpx2",
    "jwt",
    "mcp.client.client",
    "mcp.server.mcpserver",
    "onnxruntime",
    "rapidfuzz",
    "rich",
    "tokenizers",
}
_NOT_FOR_PIPES = {"uvicorn", "watchfiles"}  # `qmd mcp` has a door for HTTP too
_HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
_MESSAGES = (
    {"id": 1, "method": "initialize", "params": _HELLO},
    {"method": "notifications/initialized"},
    {"id": 2, "method": "tools/call", "params": {"name": "search", "arguments": {"query": "oolong"}}},
)


def python(script: str, home: Path, given: str = "") -> list[str]:
    """The lines that a new interpreter prints."""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "COMMONPLACE_HOME": str(home), "COMMONPLACE_MODEL": "static"},
        input=given,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("module", "command", "needless"),
    [
        ("commonplace.cli.main", ["mcp", "--profile", "qmd"], _NOT_FOR_WORDS | _NOT_FOR_PIPES),
        ("commonplace.qmd.cli.program", ["mcp"], _NOT_FOR_WORDS),
    ],
)
def test_a_server_that_searches_by_words_loads_nothing_else_of_the_sdk(
    module: str, command: list[str], needless: set[str], tmp_path: Path
) -> None:
    kept = tmp_path / "modules"
    script = (
        f"import pathlib, sys; from {module} import cli; given = {{'home': None, 'space': 'default'}}; "
        f"cli({command}, standalone_mode=False, obj=given); "
        f"pathlib.Path({str(kept)!r}).write_text(' '.join(sys.modules))"
    )
    sent = "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in _MESSAGES)
    answers = [json.loads(line) for line in python(script, tmp_path, sent)]
    assert [(answer["id"], "error" in answer) for answer in answers] == [(1, False), (2, False)]
    loaded = set(kept.read_text("utf-8").split())
    assert "mcp.server.lowlevel" in loaded
    assert needless & loaded == set()


@pytest.mark.parametrize(
    "use",
    [
        "from mcp import Client, types",
        "from mcp.server import MCPServer, Server",
        "from mcp import *; Client",
        "import mcp; mcp.ClientSession; mcp.server.lowlevel.Server",
        "import mcp.server; mcp.server.MCPServer",
        "import mcp.client.stdio; mcp.client.stdio.stdio_client",
    ],
)
@pytest.mark.parametrize("module", ["", ".mcp"], ids=["nothing loaded yet", "a server loaded"])
def test_a_name_that_was_left_out_is_there_when_it_is_asked_for(use: str, module: str, tmp_path: Path) -> None:
    python(f"import commonplace.server{module}; {use}", tmp_path)


def test_a_name_that_the_sdk_does_not_have_is_missing_as_from_any_module(tmp_path: Path) -> None:
    script = (
        "import commonplace.server, mcp\n"
        "for _ in range(2):\n"
        "    try: mcp.nothing\n"
        "    except AttributeError as error: print(error)\n"
    )
    assert python(script, tmp_path) == ["module 'mcp' has no attribute 'nothing'"] * 2


def test_threads_that_ask_at_once_all_get_the_whole(tmp_path: Path) -> None:
    script = (
        "import commonplace.server, mcp\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        "with ThreadPoolExecutor(8) as pool:\n"
        "    print(len({client for client in pool.map(lambda _: mcp.Client, range(8))}))\n"
    )
    assert python(script, tmp_path) == ["1"]
