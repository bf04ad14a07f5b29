"""What a call of the qmd surface costs, over MCP on standard input and output, from a fresh process and in memory.

    python bench/qmd.py                       5,000 Markdown files, 37 MB of real prose (bench/files.py)
    python bench/qmd.py --files 500           fewer
    python bench/qmd.py --keep DIR            keep the files and the library here, or use those kept before
    python bench/qmd.py --json FILE           the numbers as JSON too

Times are CPU (user and system, all threads) of the server's process, read from the system before and after a hundred
calls; *ping* is what the SDK takes for a call that does nothing. Needs Linux, for /proc.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from commonplace.library import Library
from commonplace.settings import Settings
from corpus import Corpus
from files import FILES, Row, write_files

CALLS = 100
DIFFERENT = 500
QUERIES = ("returns number arguments", "file system encoding", "socket connection timeout", "regular expression",
           "how do I parse a date", "list of modules", "threads lock", "garbage collector")  # fmt: skip
MISSES = ("bench/area-1/topic-2/page-0321.md", "pag-00321.md", "notes/page-4711.md")
GLOBS = ("area-3/topic-4/page-000*.md", "**/page-0003*.md", "bench/area-1/topic-?/page-00*1.md")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=FILES)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.keep or Path(scratch)
        make(folder, options.files)
        rows = list(measure(folder / "home"))
    width = max(len(row.name) for row in rows)
    for row in rows:
        target = f"  target {row.target:g}" if row.target is not None else ""
        print(f"{row.name:{width}}  {row.value:8.2f} {row.unit}{target}  {row.note}".rstrip())
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1), encoding="utf-8")


def make(folder: Path, count: int) -> None:
    """The files, and a library of them that is indexed but has no vectors."""
    files, home = folder / "files", folder / "home"
    if not files.exists():
        write_files(files, Corpus(), count)
    with Library.open(home, settings=Settings(home=home, model="static")) as library:
        library.add_folder(files, "bench", "**/*.md")
        library.lexical.catch_up()


def measure(home: Path) -> Iterator[Row]:
    with served(home) as server:
        yield Row("memory after the handshake", server.memory(), None, unit="MB")
        ping = server.cost("ping", [{}])
        yield Row("ping", ping, None, "the SDK alone", "ms")
        for name, tool, arguments, target in (
            ("search", "search", [{"query": query} for query in QUERIES], 2.5),
            ("query, by words only", "query", [{"query": query} for query in QUERIES], None),
            ("get", "get", [{"file": "page-00321.md"}], None),
            ("get of a missing path", "get", [{"file": file} for file in MISSES], 5.0),
            ("multi_get by glob", "multi_get", [{"pattern": glob, "maxLines": 5} for glob in GLOBS], 5.0),
            ("status", "status", [{}], None),
        ):
            calls = [{"name": tool, "arguments": given} for given in arguments]
            yield Row(name, server.cost("tools/call", calls), target, unit="ms")
            if name == "search":
                yield Row("memory after the searches", server.memory(), 100.0, unit="MB")
        yield Row("memory after all calls", server.memory(), 100.0, unit="MB")
    with served(home) as server:
        for query in Corpus().short_queries(DIFFERENT, 10_000):
            server.ask("tools/call", {"name": "search", "arguments": {"query": query}})
        yield Row(f"memory after {DIFFERENT} different searches", server.memory(), 100.0, unit="MB")
    yield Row("fresh process, search", fresh(home, ["search", "socket connection timeout"]), 0.15, unit="s")


def fresh(home: Path, command: list[str]) -> float:
    """User and system seconds of a whole command, the best of three."""
    times = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, "-m", "commonplace", *command],
            env=environment(home),
            check=True,
            stdout=subprocess.DEVNULL,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(times)


def environment(home: Path) -> dict[str, str]:
    return {**os.environ, "COMMONPLACE_HOME": str(home), "COMMONPLACE_MODEL": "static"}


class Server:
    """One client's connection to a real server."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process, self._number = process, 0
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        self.ask("initialize", hello)
        self._send({"method": "notifications/initialized"})

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._number += 1
        self._send({"id": self._number, "method": method, "params": params})
        assert self._process.stdout is not None
        while True:
            message: dict[str, Any] = json.loads(self._process.stdout.readline())
            if message.get("id") == self._number:
                return message

    def cost(self, method: str, calls: list[dict[str, Any]]) -> float:
        """Milliseconds of CPU per call, the least of five rounds."""
        for params in calls:
            assert "error" not in self.ask(method, params)
        rounds = []
        for _ in range(5):
            before = self._cpu()
            for number in range(CALLS):
                self.ask(method, calls[number % len(calls)])
            rounds.append((self._cpu() - before) / CALLS * 1000)
        return min(rounds)

    def memory(self) -> float:
        status = Path(f"/proc/{self._process.pid}/status").read_text(encoding="ascii")
        return int(status.split("VmRSS:")[1].split()[0]) / 1024

    def _cpu(self) -> float:
        """Of every thread that lives, in nanoseconds' resolution where the clock ticks of `stat` are too coarse."""
        tasks = Path(f"/proc/{self._process.pid}/task")
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks.iterdir()) / 1e9

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self._process.stdin.flush()


@contextmanager
def served(home: Path) -> Iterator[Server]:
    command = [sys.executable, "-m", "commonplace", "mcp", "--profile", "qmd"]
    process = subprocess.Popen(command, env=environment(home), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        yield Server(process)
    finally:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        process.wait(timeout=30)
        process.stdout.close()


if __name__ == "__main__":
    main()
