"""The TypeScript clients and the Inspector, as they come from npm, against the real server.

1. Both client packages list, search and fetch over stdio and Streamable HTTP, in every era they know.
2. The Inspector does too, and finds no error in what our tools declare.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from needs import NODE

WALKS = [("sdk", "legacy", "2025-11-25"), ("client", "legacy", "2025-11-25"), ("client", "modern", "2026-07-28")]
SERVER = [sys.executable, "-m", "commonplace", "mcp"]


def run(command: list[str], environment: dict[str, str]) -> Any:
    """What a client printed, as JSON. A client that complains or does not end is a failure."""
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    return json.loads(done.stdout)


def check_answers(search: Any, fetch: Any) -> None:
    assert not search.get("isError")
    assert search["structuredContent"]["results"][0]["uri"] == "notes://tea"
    assert json.loads(search["content"][0]["text"]) == search["structuredContent"]
    assert not fetch.get("isError")
    assert fetch["structuredContent"]["items"][0]["text"] == "Oolong wants water just off the boil."


def check_walk(seen: Any, protocol: str) -> None:
    assert seen["protocol"] == protocol
    assert seen["server"]["name"] == "commonplace"
    assert "2 notes" in seen["instructions"]
    assert {"search", "fetch"} <= {tool["name"] for tool in seen["tools"]}
    assert "remember" not in {tool["name"] for tool in seen["tools"]}
    check_answers(seen["search"], seen["fetch"])
    assert seen["unknown"]["thrown"] == -32602
    assert "There is no tool 'frobnicate'" in seen["unknown"]["message"]


def check_mistake(missing: Any) -> None:
    assert missing.get("isError") is True, missing
    assert missing["structuredContent"]["error"]["code"] == "not_found"


@pytest.mark.parametrize(("library", "era", "protocol"), WALKS)
def test_a_typescript_client_looks_things_up_over_http(
    bin: Path, address: str, environment: dict[str, str], library: str, era: str, protocol: str
) -> None:
    command = [str(bin / "node"), str(NODE / "walk.mjs"), library, era, address]
    seen = run(command, environment)
    check_walk(seen, protocol)
    if library == "client":
        check_mistake(seen["missing"])


@pytest.mark.parametrize(("library", "era", "protocol"), WALKS)
def test_a_typescript_client_looks_things_up_over_stdio(
    bin: Path, environment: dict[str, str], library: str, era: str, protocol: str
) -> None:
    command = [str(bin / "node"), str(NODE / "walk.mjs"), library, era, *SERVER]
    check_walk(run(command, environment), protocol)


def test_a_mistake_is_told_in_words_by_a_client_that_checks_errors_too(
    bin: Path, address: str, environment: dict[str, str]
) -> None:
    command = [str(bin / "node"), str(NODE / "walk.mjs"), "sdk", "legacy", address]
    check_mistake(run(command, environment)["missing"])


def inspect(bin: Path, environment: dict[str, str], options: list[str], target: list[str]) -> Any:
    asked = ["--connect-timeout", "30000", *options, *target]
    return run([str(bin / "node"), str(bin / "inspector"), "--cli", *asked], environment)


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_the_inspector_looks_things_up_over_http(
    bin: Path, address: str, environment: dict[str, str], era: str
) -> None:
    def call(tool: str, arguments: dict[str, str]) -> Any:
        options = ["--protocol-era", era, "--transport", "http", "--method", "tools/call", "--tool-name", tool]
        return inspect(bin, environment, [*options, "--tool-args-json", json.dumps(arguments)], [address])

    check_answers(call("search", {"query": "how hot for oolong"}), call("fetch", {"uri": "notes://tea"}))


def test_the_inspector_finds_no_error_in_what_the_tools_declare(bin: Path, environment: dict[str, str]) -> None:
    passed_on = [f"-e{name}={environment[name]}" for name in ("COMMONPLACE_HOME", "COMMONPLACE_MODEL")]
    listed = inspect(bin, environment, [*passed_on, "--method", "tools/list", "--strict"], SERVER)
    assert {"search", "fetch"} <= {tool["name"] for tool in listed["tools"]}
