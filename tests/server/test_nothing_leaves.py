"""Nothing leaves the machine: what a server that searches and embeds connects to and writes, seen by the kernel."""

from __future__ import annotations

import ipaddress
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from commonplace.library import Library
from commonplace.model import Draft
from commonplace.models import DEFAULT, find
from commonplace.settings import Settings, user_path
from needs import missing

QUIET_S = 30
"""How long a server is left alone: what reported to its maker looked it up nine seconds after a search."""

_CONNECTED = re.compile(r'inet_addr\("([^"]+)"\)|inet_pton\(AF_INET6, "([^"]+)"')
_WRITTEN = re.compile(r'openat\((?:AT_FDCWD|\d+<([^>]*)>), "([^"]*)", [^)]*O_(?:WRONLY|RDWR|CREAT)[^)]*\)\s+= \d+')


def strangers(trace: str) -> list[str]:
    """Return the lines of a trace in which a host other than this machine is contacted."""
    addresses = [
        (line, ipaddress.ip_address(found[1] or found[2]))
        for line in trace.splitlines()
        if (found := _CONNECTED.search(line))
    ]
    return [line for line, address in addresses if not address.is_loopback]


def written_files(trace: str) -> list[str]:
    """Return the absolute paths of the files that a trace saw opened for writing."""
    return [
        os.path.normpath(os.path.join(found[1] or "/", found[2]))
        for line in trace.splitlines()
        if (found := _WRITTEN.search(line))
    ]


def post(port: int, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/api/v1/tools/{tool}",
        data=json.dumps(arguments).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as reply:
        answer: dict[str, Any] = json.load(reply)
    return answer


def wait_for_address(process: subprocess.Popen[str]) -> int:
    """Return the port in the line that `serve` prints once it listens."""
    assert process.stdout is not None
    for line in process.stdout:
        if found := re.search(r"http://127\.0\.0\.1:(\d+)", line):
            return int(found[1])
    raise AssertionError("the server ended before it listened")


def test_a_trace_tells_strangers_from_this_machine_and_files_from_reads() -> None:
    trace = (
        '7 connect(7, {sa_family=AF_INET, sin_port=htons(53), sin_addr=inet_addr("10.1.2.3")}, 16) = 0\n'
        '7 sendto(7, "x", 1, 0, {sa_family=AF_INET6, inet_pton(AF_INET6, "2001:db8::1", &sin6_addr)}, 28) = 1\n'
        '7 connect(7, {sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr("127.0.0.1")}, 16) = 0\n'
        '7 openat(AT_FDCWD</work>, "read.txt", O_RDONLY|O_CLOEXEC) = 3\n'
        '7 openat(6</home/me/.cache>, "id", O_WRONLY|O_CREAT, 0600) = 7</home/me/.cache/id>\n'
        '7 openat(AT_FDCWD, "/etc/none", O_RDWR) = -1 ENOENT (No such file or directory)\n'
    )
    assert [line.split("(")[0] for line in strangers(trace)] == ["7 connect", "7 sendto"]
    assert written_files(trace) == ["/home/me/.cache/id"]


@pytest.mark.model
@pytest.mark.slow
def test_a_server_that_searches_and_embeds_contacts_nobody_and_writes_nowhere_else(tmp_path: Path) -> None:
    """The real model, so that onnxruntime is loaded; a home of its own, so that whatever is written shows."""
    if not shutil.which("strace"):
        missing("strace is not installed. Run `make packages`.")
    models = Path(os.environ.get("COMMONPLACE_MODELS") or user_path("cache") / "models")
    if not find(DEFAULT, models):
        missing(f"{DEFAULT} is not pulled. Run `make models`.")
    user, library, temporary = tmp_path / "user", tmp_path / "library", tmp_path / "temporary"
    log = tmp_path / "trace"
    user.mkdir()
    temporary.mkdir()
    settings = Settings(home=library, models=models, model=DEFAULT)
    with Library.open(library, settings=settings) as filled:
        filled.put(Draft("note", "tea", title="Tea", body="Oolong wants water just off the boil."))
        filled.embed()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "COMMONPLACE_", "ORT_"))}
    environment = {
        **kept,
        "HOME": str(user),
        "TMPDIR": str(temporary),
        "PYTHONDONTWRITEBYTECODE": "1",
        "COMMONPLACE_HOME": str(library),
        "COMMONPLACE_MODELS": str(models),
        "COMMONPLACE_MODEL": DEFAULT,
    }
    command = [
        *("strace", "-f", "-qq", "-y", "-s", "200", "-e", "trace=connect,sendto,openat", "-o", str(log)),
        *(sys.executable, "-m", "commonplace", "serve", "--port", "0", "--allow-writes"),
    ]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as process:
        try:
            port = wait_for_address(process)
            post(port, "remember", {"text": "Sourdough needs a long cold proof."})
            found = post(port, "search", {"query": "how hot should tea be", "mode": "semantic"})
            time.sleep(QUIET_S)  # what is tested is what happens while nobody asks for anything
            again = post(port, "search", {"query": "cold sourdough"})
        finally:
            os.killpg(process.pid, signal.SIGTERM)  # strace itself passes no signal on
            process.wait(timeout=30)
    assert "Oolong" in found["results"][0]["snippet"]
    assert "Sourdough" in again["results"][0]["snippet"]
    trace = log.read_text(encoding="utf-8", errors="replace")
    assert "onnxruntime" in trace, "the trace saw the model's runtime loaded"
    assert strangers(trace) == []
    allowed = (str(library), str(models), str(temporary), "/dev/", "/proc/")
    assert [path for path in written_files(trace) if not path.startswith(allowed)] == []
    assert list(user.iterdir()) == []
