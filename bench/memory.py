"""What a call of the memory surface costs, over stdio, beside a call of a tool that does nothing.

    python bench/memory.py                              1,000, 10,000 and 50,000 entries
    python bench/memory.py --large                      200,000 as well
    python bench/memory.py --sizes 50000 --keep DIR     one size; what was built is used again the next time

Every number is CPU time of the server's process, all of its threads, per call: the mean over the calls of a row, which
are sent one after the other, each a distinct question where there are distinct ones to ask. *beyond* is what that is
more than the first row, a server of the SDK alone with one tool that returns an empty object. Entries have 62 words of
a Zipf vocabulary, in 100 threads, with 5 metadata keys and 2 tags. Bounds hold at 50,000 entries, the semantic one at
10,000, and are for whole calls. Stores are made in a copy of what was built.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from itertools import accumulate, count
from pathlib import Path
from random import Random
from typing import Any

from commonplace.ingest.prepare import prepare
from commonplace.library import Library
from commonplace.model import Draft
from commonplace.settings import Settings
from commonplace.store.items import Items

WORDS, VOCABULARY, THREADS, TAGS = 62, 20_000, 100, 50
STATUSES = ("open", "done", "blocked", "review", "archived")
CALLS, WARM_UP = 100, 10
BULK = 1000
BOUND_AT, SEMANTIC_AT = 50_000, 10_000
_BUILT = "built.json"
_SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou"]


@dataclass(frozen=True)
class Row:
    """One line of the table. `bound` is for the whole call; None where the contract has none at this size."""

    name: str
    ms: float
    beyond: float
    """What it costs more than a call that does nothing."""
    bound: float | None = None
    note: str = ""


class Corpus:
    """Texts, questions and metadata, the same for every run of a seed."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        words: dict[str, None] = {}
        while len(words) < VOCABULARY:
            words["".join(self._random.choices(_SYLLABLES, k=self._random.randint(1, 4)))] = None
        self.words = list(words)
        self._weights = list(accumulate(1 / (rank + 2.7) for rank in range(VOCABULARY)))

    def text(self) -> str:
        return " ".join(self._random.choices(self.words, cum_weights=self._weights, k=WORDS)).capitalize() + "."

    def draft(self, number: int, size: int) -> Draft:
        random = self._random
        return Draft(
            "memory",
            str(number),
            parent=f"thread-{random.randrange(THREADS)}",
            body=self.text(),
            fields={"source": random.choice(("user", "agent"))},
            metadata={
                "status": random.choice(STATUSES),
                "agent_name": f"agent-{random.randrange(10)}",
                "project": f"project-{random.randrange(20)}",
                "priority": random.randrange(10),
                "task_name": self.words[random.randrange(1000)],
            },
            tags=tuple(f"tag-{tag}" for tag in random.sample(range(TAGS), 2)),
            created_at=datetime(2026, 1, 1, tzinfo=UTC) - timedelta(minutes=size - number),
        )

    def questions(self, texts: Sequence[str], amount: int) -> list[str]:
        """One, two or three words of an entry, a third of them each: so that something is found."""
        asked = []
        for place in range(amount):
            words = self._random.choice(texts).rstrip(".").lower().split()
            asked.append(" ".join(self._random.sample(words, 1 + place % 3)))
        return asked


def build(home: Path, size: int, seed: int, *, embed: bool) -> dict[str, Any]:
    """A library of so many entries, loaded through the store in bulk."""
    if (home / _BUILT).exists():
        built: dict[str, Any] = json.loads((home / _BUILT).read_text(encoding="utf-8"))
        return built
    corpus, texts = Corpus(seed), []
    start = time.perf_counter()
    with Library.open(home, settings=Settings(home=home, models=home / "models", model="static")) as library:
        library.memories.sweep()  # its indexed fields are there before the entries are
        for first in range(1, size + 1, BULK):
            drafts = [corpus.draft(number, size) for number in range(first, min(first + BULK, size + 1))]
            library.store.drawer(Items).put([prepare(draft) for draft in drafts])
            texts += [draft.body for draft in drafts[::50]]
        library.store.refresh_statistics()
        library.lexical.catch_up()
        if embed:
            library.embed()
    built = {"seconds": time.perf_counter() - start, "texts": texts}
    (home / _BUILT).write_text(json.dumps(built), encoding="utf-8")
    return built


class Server:
    """A server on standard input and output, spoken to in plain JSON-RPC: the client's own cost is not the server's."""

    def __init__(self, command: Sequence[str], environment: dict[str, str]) -> None:
        self._start = time.perf_counter()
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
        )
        self._ids = count(1)
        client = {"name": "bench", "version": "1"}
        self.request("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client})
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self.request("tools/list", {})
        self.started = time.perf_counter() - self._start
        self.start_cpu = self.cpu()

    def cpu(self) -> float:
        """Seconds of CPU that all threads of the process have used."""
        return time.clock_gettime((~self._process.pid << 3) | 2)

    def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        number = next(self._ids)
        self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        assert self._process.stdout is not None
        while line := self._process.stdout.readline():
            reply: dict[str, Any] = json.loads(line)
            if reply.get("id") == number:
                return reply
        raise RuntimeError(f"the server ended while it was asked for {method}")

    def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        reply = self.request("tools/call", {"name": tool, "arguments": arguments})
        result: dict[str, Any] = reply.get("result") or {}
        if not result or result.get("isError"):
            raise RuntimeError(f"{tool} {json.dumps(arguments)[:200]}: {json.dumps(reply)[:500]}")
        found: dict[str, Any] = result["structuredContent"]
        return found

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=30)
        self._process.stdout.close()


@contextmanager
def serving(command: Sequence[str], environment: dict[str, str]) -> Iterator[Server]:
    server = Server(command, environment)
    try:
        yield server
    finally:
        server.close()


class Bench:
    """All rows for one size."""

    def __init__(self, home: Path, size: int, seed: int) -> None:
        self._home, self._size = home, size
        self._embedded = size <= SEMANTIC_AT
        built = build(home, size, seed, embed=self._embedded)
        self.seconds = built["seconds"]
        self._corpus = Corpus(seed + 1)
        self._corpus.words = Corpus(seed).words
        self._questions = self._corpus.questions(built["texts"], CALLS + WARM_UP)
        self._environment = {
            **os.environ,
            "COMMONPLACE_HOME": str(home),
            "COMMONPLACE_MODEL": "static",
            "OPENBLAS_NUM_THREADS": "1",
        }

    def rows(self) -> Iterator[Row]:
        bare, starts = self._bare()
        yield Row("an empty tool of the SDK alone", bare, 0.0)
        with self._server("true" if self._embedded else "false") as server:
            if self._size == BOUND_AT:
                bound = 1.3 * starts
                yield Row("start to first reply, CPU", server.start_cpu * 1000, 0.0, bound, f"{server.started:.2f} s")
            for name, tool, arguments, bound in self._reads():
                yield self._measured(server, name, tool, arguments, bare, bound)
        for embedding in ("false", "true"):
            with tempfile.TemporaryDirectory(prefix="commonplace-bench-") as copy:
                shutil.copytree(self._home, copy, dirs_exist_ok=True)  # what was built stays as it is
                with self._server(embedding, COMMONPLACE_HOME=copy) as server:
                    yield from self._writes(server, bare, embedding == "true")

    def _server(self, embedding: str, **more: str) -> Any:
        command = [sys.executable, "-m", "commonplace", "mcp", "--profile", "memory"]
        return serving(command, {**self._environment, "COMMONPLACE_MEMORY_EMBEDDING": embedding, **more})

    def _bare(self) -> tuple[float, float]:
        command = [sys.executable, str(Path(__file__)), "--bare"]
        with serving(command, self._environment) as server:
            return self._per_call(server, "nothing", lambda place: {}), server.start_cpu * 1000

    def _reads(self) -> Iterator[tuple[str, str, Callable[[int], dict[str, Any]], float | None]]:
        common = " ".join(self._corpus.words[:2])
        asked = self._questions.__getitem__
        yield "fts, mixed", "fts_search_context", lambda n: {"query": asked(n)}, 3
        yield "fts, the two commonest words", "fts_search_context", lambda n: {"query": common, "offset": n % 7}, 4
        filtered = [{"key": "status", "value": "open"}]
        yield (
            "fts and a metadata filter",
            "fts_search_context",
            lambda n: {"query": asked(n), "metadata_filters": filtered},
            4,
        )
        yield "fts, highlighted", "fts_search_context", lambda n: {"query": asked(n), "highlight": True}, None
        yield (
            "search with status=",
            "search_context",
            lambda n: {"metadata": {"status": STATUSES[n % 5]}, "limit": 5},
            4,
        )
        nowhere = [{"key": "task_name", "operator": "contains", "value": "qqqq"}]
        yield "search, contains without a hit", "search_context", lambda n: {"metadata_filters": nowhere}, 8
        unindexed = [{"key": "priority", "operator": "gt", "value": 100}]
        yield "a field that is not indexed, no hit", "search_context", lambda n: {"metadata_filters": unindexed}, 30
        yield "search, limit 100", "search_context", lambda n: {"limit": 100, "offset": n}, 8
        yield "search of one thread", "search_context", lambda n: {"thread_id": f"thread-{n % 100}", "limit": 5}, None
        yield "get_context_by_ids", "get_context_by_ids", lambda n: {"context_ids": [n + 1]}, None
        yield "list_threads", "list_threads", lambda n: {}, 6
        yield "get_statistics", "get_statistics", lambda n: {}, None
        if self._embedded:
            yield "semantic", "semantic_search_context", lambda n: {"query": asked(n)}, 4
            yield "semantic and a metadata filter", "semantic_search_context", self._semantic_filtered, None
            yield "hybrid", "hybrid_search_context", lambda n: {"query": asked(n)}, None

    def _semantic_filtered(self, n: int) -> dict[str, Any]:
        return {"query": self._questions[n], "metadata": {"status": "open"}}

    def _writes(self, server: Server, bare: float, embedded: bool) -> Iterator[Row]:
        kind = "with embedding" if embedded else "without embedding"
        entry = self._corpus.draft

        def one(n: int) -> dict[str, Any]:
            draft = entry(n, 0)
            stored = {"thread_id": draft.parent, "source": draft.fields["source"], "text": draft.body}
            return {**stored, "metadata": dict(draft.metadata), "tags": list(draft.tags)}

        yield self._measured(server, f"a store {kind}", "store_context", one, bare, None if embedded else 2)
        batch = self._measured(
            server,
            f"a batch of 100 {kind}, per entry",
            "store_context_batch",
            lambda n: {"entries": [one(n) for _ in range(100)]},
            bare,
            None,
            calls=20,
        )
        bound = 0.15 if not embedded and self._size == BOUND_AT else None
        yield Row(batch.name, batch.ms / 100, batch.beyond / 100, bound)

    def _measured(
        self,
        server: Server,
        name: str,
        tool: str,
        arguments: Callable[[int], dict[str, Any]],
        bare: float,
        bound: float | None,
        calls: int = CALLS,
    ) -> Row:
        ms = self._per_call(server, tool, arguments, calls)
        at = SEMANTIC_AT if tool == "semantic_search_context" else BOUND_AT
        return Row(name, ms, ms - bare, bound if self._size == at else None)

    @staticmethod
    def _per_call(server: Server, tool: str, arguments: Callable[[int], dict[str, Any]], calls: int = CALLS) -> float:
        for place in range(WARM_UP):
            server.call(tool, arguments(place))
        asked = [arguments(WARM_UP + place) for place in range(calls)]
        before = server.cpu()
        for one in asked:
            server.call(tool, one)
        return (server.cpu() - before) / calls * 1000


def speed() -> float:
    """CPU ms of a fixed loop: neighbours on the same cores slow this down as much as they do the rows."""
    times = []
    for _ in range(5):
        start = time.process_time()
        sum(n * n for n in range(1_000_000))
        times.append((time.process_time() - start) * 1000)
    return sorted(times)[2]


def bare() -> None:
    """A server of the SDK with one tool that does nothing."""
    import anyio
    import mcp_types as types
    from mcp.server.lowlevel import Server as SdkServer
    from mcp.server.stdio import stdio_server

    async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool(name="nothing", input_schema={"type": "object"})])

    async def call_tool(context: Any, params: Any) -> types.CallToolResult:
        return types.CallToolResult(content=[types.TextContent(text="{}")], structured_content={})

    async def run() -> None:
        server: Any = SdkServer("bare", on_list_tools=list_tools, on_call_tool=call_tool)
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    anyio.run(run)


def show(row: Row) -> str:
    mark = "" if row.bound is None else "ok" if row.ms <= row.bound else "OVER"
    bound = "" if row.bound is None else f"{row.bound:,.2f}"
    return f"{row.name:42} {row.ms:9.2f} {row.beyond:9.2f} {bound:>9} {mark:4} {row.note}".rstrip()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="1000,10000,50000", help="Entries, with commas between.")
    parser.add_argument("--large", action="store_true", help="200,000 entries as well.")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--keep", type=Path, help="Build here, or use what was built here before.")
    parser.add_argument("--json", type=Path, help="Write the numbers to this file as well.")
    parser.add_argument("--bare", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    options = arguments()
    if options.bare:
        bare()
        return
    sizes = [*map(int, options.sizes.split(",")), *([200_000] if options.large else [])]
    results: dict[str, Any] = {"machine": platform.platform(), "python": platform.python_version(), "sizes": {}}
    folder = options.keep or Path(tempfile.mkdtemp(prefix="commonplace-bench-"))
    try:
        for size in sizes:
            (folder / str(size)).mkdir(parents=True, exist_ok=True)
            bench = Bench(folder / str(size), size, options.seed)
            load, loop = os.getloadavg()[0], speed()
            print(
                f"\n{size:,} entries, built in {bench.seconds:.0f} s; load {load:.1f}, a million squares {loop:.0f} ms"
            )
            print(f"{'CPU ms per call':42} {'whole':>9} {'beyond':>9} {'bound':>9}", flush=True)
            rows = []
            for row in bench.rows():
                print(show(row), flush=True)
                rows.append(asdict(row))
            results["sizes"][str(size)] = {
                "build_s": bench.seconds,
                "load": load,
                "million_squares_ms": loop,
                "rows": rows,
            }
    finally:
        if options.keep is None:
            shutil.rmtree(folder, ignore_errors=True)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
