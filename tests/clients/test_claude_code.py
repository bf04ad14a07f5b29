"""Claude Code, as it comes from npm, in a home of its own, against the real server.

1. Told by its own command or by `commonplace install`, over HTTP or stdio, it reports the server as connected.
2. It lists our tools to its model and calls them; the model is scripted, everything between it and the library is real.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def user(environment: dict[str, str], tmp_path: Path) -> dict[str, str]:
    """A user who has never run Claude Code."""
    return {**environment, "HOME": str(tmp_path), "DISABLE_AUTOUPDATER": "1"}


def run(command: list[str], user: dict[str, str]) -> str:
    done = subprocess.run(
        command, env=user, cwd=user["HOME"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def test_claude_code_connects_to_a_server_it_was_told_of(bin: Path, address: str, user: dict[str, str]) -> None:
    claude = str(bin / "claude")
    run([claude, "mcp", "add", "--scope", "user", "--transport", "http", "books", address], user)
    installed = run([sys.executable, "-m", "commonplace", "install", "claude-code"], user)
    assert "The file as it was" in installed
    listed = run([claude, "mcp", "list"], user).splitlines()
    assert f"books: {address} (HTTP) - ✔ Connected" in listed
    (ours,) = [line for line in listed if line.startswith("commonplace: ")]
    assert f"--home {user['COMMONPLACE_HOME']} mcp" in ours
    assert ours.endswith("✔ Connected")


def test_what_claude_code_adds_and_what_install_adds_is_the_same_entry(bin: Path, user: dict[str, str]) -> None:
    install = [sys.executable, "-m", "commonplace", "install", "claude-code"]
    run(install, user)
    file = Path(user["HOME"]) / ".claude.json"
    entry = json.loads(file.read_text("utf-8"))["mcpServers"]["commonplace"]
    claude = str(bin / "claude")
    run([claude, "mcp", "remove", "--scope", "user", "commonplace"], user)
    assert "commonplace" not in json.loads(file.read_text("utf-8"))["mcpServers"]
    run([claude, "mcp", "add", "--scope", "user", "commonplace", "--", entry["command"], *entry["args"]], user)
    assert "already installed" in run(install, user)


def test_install_writes_where_claude_code_looks_when_its_folder_is_moved(
    bin: Path, address: str, user: dict[str, str], tmp_path: Path
) -> None:
    moved = {**user, "CLAUDE_CONFIG_DIR": str(tmp_path / "elsewhere")}
    run([sys.executable, "-m", "commonplace", "install", "claude-code", "--http", address], moved)
    assert "✔ Connected" in run([str(bin / "claude"), "mcp", "list"], moved)
    assert not (tmp_path / ".claude.json").exists()


PLAN: list[tuple[str, dict[str, str]]] = [
    ("mcp__books__search", {"query": "how hot for oolong"}),
    ("mcp__books__fetch", {"uri": "notes://tea"}),
]


def reply(request: dict[str, Any]) -> list[dict[str, Any]]:
    """A model that knows what it wants: one call of the plan after the other, then the end. As streamed events."""
    done = len(results_in(request))
    block: dict[str, Any] = {"type": "text", "text": ""}
    delta, reason = {"type": "text_delta", "text": "Just off the boil."}, "end_turn"
    if request.get("tools") and done < len(PLAN):
        name, arguments = PLAN[done]
        block = {"type": "tool_use", "id": f"toolu_{done}", "name": name, "input": {}}
        delta, reason = {"type": "input_json_delta", "partial_json": json.dumps(arguments)}, "tool_use"
    message = {"id": "msg", "type": "message", "role": "assistant", "model": request["model"], "content": []}
    usage = {"input_tokens": 1, "output_tokens": 1}
    return [
        {"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None, "usage": usage}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage},
        {"type": "message_stop"},
    ]


def results_in(request: dict[str, Any]) -> list[dict[str, Any]]:
    """What the calls so far answered."""
    contents = [message["content"] for message in request["messages"] if isinstance(message["content"], list)]
    return [block for content in contents for block in content if block["type"] == "tool_result"]


@contextmanager
def scripted_model(requests: list[dict[str, Any]]) -> Iterator[str]:
    """A model on the loopback address that writes down what it is asked."""

    class Model(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["content-length"])))
            requests.append(request)
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            for event in reply(request):
                self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())

        def log_message(self, *arguments: Any) -> None:
            """Requests are in the list; nobody reads them on stderr."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Model) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join(timeout=10)


def test_claude_code_shows_its_model_our_tools_and_calls_them(bin: Path, address: str, user: dict[str, str]) -> None:
    run([sys.executable, "-m", "commonplace", "install", "claude-code", "--name", "books", "--http", address], user)
    requests: list[dict[str, Any]] = []
    with scripted_model(requests) as model:
        asking = {**user, "ANTHROPIC_BASE_URL": model, "ANTHROPIC_API_KEY": "none", "ENABLE_TOOL_SEARCH": "false"}
        allowed = ",".join(name for name, _ in PLAN)
        command = [str(bin / "claude"), "-p", "How hot for oolong?", "--allowedTools", allowed]
        said = json.loads(run([*command, "--output-format", "json"], asking))
    assert said["result"] == "Just off the boil."
    shown = {tool["name"]: tool for tool in requests[-1]["tools"]}
    assert {name for name, _ in PLAN} <= shown.keys()
    assert shown["mcp__books__search"]["input_schema"]["required"] == ["query"]
    found, fetched = (json.dumps(result) for result in results_in(requests[-1]))
    assert "notes://tea" in found
    assert "Oolong wants water just off the boil." in fetched


def test_claude_code_keeps_to_the_home_it_was_given(bin: Path, user: dict[str, str]) -> None:
    assert os.path.realpath(user["HOME"]) != os.path.realpath(os.path.expanduser("~"))
    assert "No MCP servers configured" in run([str(bin / "claude"), "mcp", "list"], user)
