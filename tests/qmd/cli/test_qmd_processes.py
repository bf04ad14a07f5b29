"""The `qmd` command in processes of its own: streams, exits, signals, servers and the daemon."""

from __future__ import annotations

import http.client
import json
import os
import pty
import re
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from qmd_asking import Ask

from kit.forked import forked

COMMAND = [sys.executable, "-m", "commonplace.qmd.cli"]
LONG = 60
Popen = subprocess.Popen[str]


@pytest.fixture
def notes(process: Ask, desk: Path) -> Path:
    assert process("collection", "add", str(desk / "notes")).code == 0
    return desk / "notes"


@contextmanager
def begun(*arguments: str, command: Sequence[str] = COMMAND) -> Iterator[Popen]:
    """A command that goes on; whatever is left of it is gone afterwards."""
    running = subprocess.Popen(
        [*command, *arguments],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8",
    )  # fmt: skip
    try:
        with running:
            yield running
            if running.poll() is None:
                running.kill()
    finally:
        if running.poll() is None:
            running.kill()
            running.wait(LONG)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def line_of(stream: Any) -> str:
    """The next line, within a time."""
    ready, _, _ = select.select([stream], [], [], LONG)
    assert ready
    return str(stream.readline())


def request(port: int, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LONG)
    try:
        connection.request(method, path, None if body is None else json.dumps(body))
        reply = connection.getresponse()
        return reply.status, json.loads(reply.read())
    finally:
        connection.close()


class Client:
    """Just enough of an MCP client to see every byte that comes back."""

    def __init__(self, server: Popen) -> None:
        self._server = server
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        self.send(1, "initialize", hello)
        assert json.loads(line_of(server.stdout))["id"] == 1
        self.send(None, "notifications/initialized", {})

    def send(self, number: int | None, method: str, params: dict[str, Any]) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps(message if number is None else {**message, "id": number}) + "\n")
        self._server.stdin.flush()

    def search(self, number: int, query: str) -> None:
        self.send(number, "tools/call", {"name": "search", "arguments": {"query": query}})

    def answer(self) -> Any:
        return json.loads(line_of(self._server.stdout))


# streams and exits


def test_results_go_to_stdout_and_everything_else_to_stderr(process: Ask, desk: Path) -> None:
    done = process("collection", "add", str(desk / "notes"))
    assert done.code == 0
    assert "Reading notes" in done.err
    assert "Reading notes" not in done.out
    found = process("query", "oolong", "--json")
    assert json.loads(found.out)[0]["file"] == "qmd://notes/tea.md"
    assert found.err.startswith("Note: keyword search only.")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["search", "nothingatall"], 0),
        (["get", "nothing.md"], 1),
        (["multi-get", "nothing*.md"], 1),
        (["vsearch", "tea"], 1),
        (["search", "tea", "--format", "yaml"], 1),
        (["search", "tea", "-n", "none"], 2),
        (["frobnicate"], 2),
        (["--help"], 0),
        (["--version"], 0),
        (["search", "--help"], 0),
    ],
)
def test_exits_are_0_1_and_2(process: Ask, notes: Path, arguments: list[str], code: int) -> None:
    done = process(*arguments)
    assert done.code == code, done
    assert bool(done.out) == (code == 0)


def test_output_is_utf_8_whatever_the_locale(process: Ask, notes: Path) -> None:
    done = process("search", "乌龙茶", "--files", LC_ALL="C", PYTHONUTF8="0", PYTHONIOENCODING="latin-1")
    assert "qmd://notes/茶.md" in done.out


def test_advice_is_for_the_index_that_was_named(process: Ask, desk: Path) -> None:
    assert "'qmd --index work collection add .'" in process("--index", "work", "collection", "list").err
    assert "'qmd --index work embed'" in process("collection", "add", str(desk / "notes"), "--index", "work").out
    assert "'qmd --index work embed'" in process("doctor", "--index", "work").out
    assert "'qmd --index work embed'" in process("vsearch", "tea", "--index", "work").err


def test_an_update_command_prints_to_stderr(process: Ask, notes: Path) -> None:
    process("collection", "update-cmd", "notes", "echo noise")
    done = process("update")
    assert "noise\n" in done.err
    assert "noise" not in done.out


def on_a_terminal(*arguments: str, module: str = "commonplace.qmd.cli", **more: str) -> str:
    """What a command prints on a terminal."""
    ours, theirs = pty.openpty()
    command = forked(*arguments, module=module)
    running = subprocess.Popen(command, stdout=theirs, stderr=theirs, env={**os.environ, "TERM": "xterm", **more})
    os.close(theirs)
    shown = b""
    try:
        while select.select([ours], [], [], LONG)[0]:
            try:
                piece = os.read(ours, 65_536)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            shown += piece
        assert running.wait(LONG) == 0
    finally:
        os.close(ours)
    return shown.decode("utf-8")


@pytest.mark.parametrize("module", ["commonplace.qmd.cli", "commonplace"])
def test_colour_is_for_terminals_that_want_it(
    process: Ask, notes: Path, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[" in on_a_terminal("search", "oolong", module=module)
    assert "\x1b[" not in on_a_terminal("search", "oolong", module=module, NO_COLOR="1")
    assert "\x1b[" not in on_a_terminal("search", "oolong", "--json", module=module)
    assert "\x1b[" not in process("search", "oolong").out


@pytest.mark.parametrize("module", ["commonplace.qmd.cli", "commonplace"])
def test_a_terminal_shows_what_a_document_would_have_it_do(process: Ask, notes: Path, module: str) -> None:
    """The sequences that move the cursor, name the window or hide what follows; one byte is enough for some."""
    told = "\x1b[2J \x1b]0;mine\x07 \x9b1A \x1b[8m \x1b[36m back\rforth \x7f"
    shown = r"\u001b[2J \u001b]0;mine\u0007 \u009b1A \u001b[8m \u001b[36m back\u000dforth \u007f"
    (notes / "log.md").write_text(f"# Log {told}\n\nThe word zebra {told}.\n", "utf-8")
    process("update")
    for command in (["get", "notes/log.md"], ["multi-get", "notes/log.md"], ["ls", f"notes/{told}"]):
        assert shown in on_a_terminal(*command, module=module), command
    found = on_a_terminal("search", "zebra", module=module, COLUMNS="120")
    assert r"Log \u001b[2J \u001b]0;mine\u0007 \u009b1A \u001b[8m \u001b[36m back" in found
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", re.sub(r"\x1b\[(1|2|36|0|1;31)m|\r\n", "", found)), found


def test_a_daemon_without_a_folder_is_a_sentence(process: Ask, desk: Path) -> None:
    (desk / "file").write_text("no folder", "utf-8")
    done = process("mcp", "--daemon", "--port", "0", COMMONPLACE_HOME=str(desk / "file"))
    assert (done.code, done.out) == (1, "")
    assert (
        done.err
        == f"{desk / 'file/spaces/default'} cannot be used: Not a directory. Check that path and its permissions.\n"
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize(("module", "code"), [("commonplace.qmd.cli", 1), ("commonplace", 74)])
@pytest.mark.parametrize("asked", [["search", "oolong"], ["--help"], ["--version"], ["search", "--help"]])
def test_output_that_finds_no_room_is_a_sentence(notes: Path, module: str, code: int, asked: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", module, *asked], stdout=full, stderr=subprocess.PIPE, text=True,
            timeout=60, check=False,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (code, "The output could not be written: No space left on device.\n")


def test_a_reader_who_leaves_is_no_error(notes: Path) -> None:
    for number in range(200):
        (notes / f"many-{number}.md").write_text("# Many\n\n" + "tea " * 200, "utf-8")
    subprocess.run([*COMMAND, "update"], check=True, capture_output=True, timeout=LONG)
    with begun("search", "tea", "--all", "--full") as running:
        assert running.stdout is not None
        running.stdout.read(10)
        running.stdout.close()
        assert running.stderr is not None
        assert running.stderr.read() == ""
        assert running.wait(LONG) == 0


# the same verbs elsewhere


def test_commonplace_has_the_same_verbs_over_the_same_collections(process: Ask, notes: Path) -> None:
    def commonplace(*arguments: str) -> str:
        command = forked(*arguments)
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=LONG).stdout

    for arguments in (["ls", "notes"], ["multi-get", "*.md", "--json"]):  # each in its own scheme
        assert commonplace(*arguments) == process(*arguments).out.replace("qmd://", "docs://")
    commonplace("context", "add", "qmd://notes", "Notes of the house")
    assert "Folder Context: Notes of the house\n" in process("get", "tea.md").out
    assert process("embed").code == 0
    assert json.loads(commonplace("vsearch", "oolong", "--json"))
    assert commonplace("cleanup", "--dry-run").startswith("Would drop 0 caches")


# watching


def test_watch_follows_the_files_and_ends_well_on_sigint(process: Ask, notes: Path) -> None:
    with begun("watch", "-c", "notes", "--no-embed") as running:
        assert line_of(running.stderr).startswith("Watching notes ")
        (notes / "new.md").write_text("# New\n\nA quetzal.\n", "utf-8")
        assert line_of(running.stdout).startswith("notes: 1 new, ")
        assert process("search", "quetzal", "--files").out
        running.send_signal(signal.SIGINT)
        assert running.wait(LONG) == 0


# servers


@pytest.mark.parametrize("arguments", [["mcp"], ["server", "--transport", "mcp"]], ids=" ".join)
def test_the_end_of_input_comes_after_the_answers(notes: Path, arguments: list[str]) -> None:
    with begun(*arguments) as server:
        client = Client(server)
        client.search(2, "oolong")
        assert server.stdin is not None
        server.stdin.close()
        assert client.answer()["result"]["structuredContent"]["results"][0]["file"] == "notes/tea.md"
        assert server.stdout is not None
        assert server.stdout.read() == ""
        assert server.wait(LONG) == 0


def _eof(server: Popen) -> None:
    assert server.stdin is not None
    server.stdin.close()


ENDS = pytest.mark.parametrize(
    "end",
    [_eof, lambda server: server.send_signal(signal.SIGTERM), lambda server: server.send_signal(signal.SIGINT)],
    ids=["end of input", "SIGTERM", "SIGINT"],
)


@ENDS
def test_commonplace_ends_as_well(notes: Path, end: Callable[[Popen], None]) -> None:
    with begun("mcp", "--profile", "qmd", command=forked()) as server:
        client = Client(server)
        client.search(2, "oolong")
        assert client.answer()["id"] == 2
        end(server)
        assert server.wait(LONG) == 0


@ENDS
def test_both_doors_are_one_process_and_end_together(notes: Path, end: Callable[[Popen], None]) -> None:
    port = free_port()
    with begun("server", "--transport", "both", "--port", str(port)) as server:
        client = Client(server)
        assert request(port, "GET", "/health")[1]["status"] == "healthy"
        assert request(port, "POST", "/search", {"query": "oolong"})[1]["results"][0]["file"] == "notes/tea.md"
        client.search(2, "oolong")
        assert client.answer()["id"] == 2
        end(server)
        assert server.wait(LONG) == 0
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", port)) != 0


def test_a_busy_port_is_an_error_for_http_and_a_warning_for_both(process: Ask, notes: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as busy:
        port = busy.getsockname()[1]
        for arguments in (["server"], ["mcp", "--http"]):
            done = process(*arguments, "--port", str(port))
            assert (done.code, done.out) == (1, "")
            assert f"127.0.0.1:{port} cannot be listened on" in done.err
        with begun("server", "--transport", "both", "--port", str(port)) as server:
            client = Client(server)
            client.search(2, "oolong")
            assert client.answer()["id"] == 2
            _eof(server)
            assert server.wait(LONG) == 0
            assert server.stderr is not None
            assert "Only standard input and output are served." in server.stderr.read()


def test_only_this_machine_is_served_without_users(process: Ask, desk: Path) -> None:
    done = process("server", "--host", "0.0.0.0", "--port", str(free_port()))
    assert (done.code, done.out) == (1, "")
    assert "Without users only this machine is served" in done.err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_http_server_watches_and_ends_well(notes: Path, number: signal.Signals) -> None:
    port = free_port()
    with begun("server", "--port", str(port), "--watch") as server:
        assert line_of(server.stderr) == f"QMD is at http://127.0.0.1:{port}/mcp\n"
        assert request(port, "GET", "/status")[1]["totalDocuments"] == 3
        (notes / "new.md").write_text("# New\n\nA quetzal.\n", "utf-8")
        assert line_of(server.stderr).startswith("notes: 1 new, ")
        assert request(port, "POST", "/search", {"query": "quetzal"})[1]["results"][0]["file"] == "notes/new.md"
        server.send_signal(number)
        assert server.wait(LONG) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("watch", [(), ("--watch",)], ids=["", "watching"])
def test_a_server_that_is_told_to_end_as_soon_as_it_says_where_it_is_ends_well(
    notes: Path, watch: tuple[str, ...], number: signal.Signals
) -> None:
    with begun("server", "--port", "0", *watch) as server:
        assert line_of(server.stderr).startswith("QMD is at ")
        server.send_signal(number)
        assert server.wait(LONG) == 0


# the daemon


@pytest.fixture
def daemon(process: Ask, notes: Path) -> Iterator[int]:
    """The port of a daemon."""
    port = free_port()
    done = process("mcp", "--daemon", "--port", str(port))
    try:
        assert done.code == 0, done
        assert done.out.startswith(f"Started at http://127.0.0.1:{port}/mcp (PID ")
        yield port
    finally:
        process("mcp", "stop")


def test_a_daemon_serves_until_it_is_stopped(process: Ask, daemon: int, desk: Path) -> None:
    folder = desk / "home/spaces/default"
    pid = json.loads((folder / "mcp.pid").read_text("utf-8"))["pid"]
    assert request(daemon, "GET", "/status")[1]["totalDocuments"] == 3
    assert process("mcp", "status").out == f"Running at http://127.0.0.1:{daemon}/mcp (PID {pid})\n"
    again = process("mcp", "--daemon", "--port", str(free_port()))
    assert (again.code, again.out) == (1, "")
    assert again.err == f"Already running at http://127.0.0.1:{daemon}/mcp (PID {pid}). Run 'qmd mcp stop' first.\n"
    assert process("mcp", "stop").out == f"Stopped QMD MCP server (PID {pid}).\n"
    assert process("mcp", "status").out == "Not running.\n"
    assert not (folder / "mcp.pid").exists()
    assert "QMD is at" in (folder / "mcp.log").read_text("utf-8")


def test_stop_ends_no_process_it_cannot_identify(process: Ask, desk: Path) -> None:
    folder = desk / "home/spaces/default"
    folder.mkdir(parents=True)
    stranger = subprocess.Popen(["sleep", str(LONG)])
    try:
        record = {"pid": stranger.pid, "address": "http://127.0.0.1:1/mcp", "started": "1"}
        (folder / "mcp.pid").write_text(json.dumps(record), "utf-8")
        assert process("mcp", "stop").out == "Not running.\n"
        with begun("mcp", "--held", "--port", "0") as impostor:  # holds the lock, under a file that names another
            assert line_of(impostor.stderr).startswith("QMD is at")
            (folder / "mcp.pid").write_text(json.dumps(record), "utf-8")
            assert process("mcp", "stop").out == "Not running.\n"
            impostor.send_signal(signal.SIGTERM)
            assert impostor.wait(LONG) == 0
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait(LONG)


def test_a_daemon_that_cannot_start_says_why(process: Ask, desk: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as busy:
        done = process("mcp", "--daemon", "--port", str(busy.getsockname()[1]))
    assert (done.code, done.out) == (1, "")
    assert "cannot be listened on" in done.err


def test_a_killed_daemon_leaves_nothing_in_the_way(process: Ask, daemon: int, desk: Path) -> None:
    pid = json.loads((desk / "home/spaces/default/mcp.pid").read_text("utf-8"))["pid"]
    os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + LONG
    while process("mcp", "status").out != "Not running.\n":
        assert time.monotonic() < deadline
    port = free_port()
    assert process("mcp", "--daemon", "--port", str(port)).code == 0
    assert request(port, "GET", "/health")[0] == 200
