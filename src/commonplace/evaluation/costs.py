"""The costs of a model on this machine: time for a query and a passage, and memory, in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from commonplace.errors import CommonplaceError, Unavailable
from commonplace.models import open_embedder
from commonplace.settings import Settings

LONGEST_S = 300
MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True)
class Costs:
    """The time and memory that a model takes.

    CPU is what this machine spends; a caller waits longer where others are busy, or a provider is asked.
    """

    load_ms: float
    query_ms: float
    query_cpu_ms: float
    passage_ms: float
    passage_cpu_ms: float
    memory_mb: float | None
    """The most that was held beside what Python and the libraries take; None where the system does not tell."""


def measure(name: str, settings: Settings, passages: Sequence[str], queries: Sequence[str]) -> Costs:
    """Return the costs of each query and passage once, in a fresh process: nothing that this one has loaded counts."""
    work = {
        "model": name,
        "models": str(settings.models),
        "threads": settings.threads,
        "passages": list(passages),
        "queries": list(queries),
    }
    command = [sys.executable, "-m", __name__]
    try:
        process = subprocess.run(  # noqa: S603  our own module
            command, input=json.dumps(work), capture_output=True, text=True, timeout=LONGEST_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(
            f"{name} took more than {LONGEST_S} s for {len(passages)} passages and was given up."
        ) from None
    if process.returncode:
        reason = process.stderr.strip().splitlines()[-1:] or [f"exit status {process.returncode}"]
        raise Unavailable(f"{name} could not be measured: {reason[0]}")
    return Costs(**json.loads(process.stdout))


def main() -> None:
    """Measure in the fresh process: work on standard input, costs on standard output."""
    work: dict[str, Any] = json.load(sys.stdin)
    settings = Settings.load(models=Path(work["models"]), threads=work["threads"])
    try:
        costs = _measured(work, settings)
    except CommonplaceError as error:
        sys.exit(str(error))
    json.dump(asdict(costs), sys.stdout)


def _measured(work: dict[str, Any], settings: Settings) -> Costs:
    before = _most_memory()
    embedder = open_embedder(work["model"], settings.models, threads=settings.threads, settings=settings)
    load, _ = _timed(embedder.warm)
    query = _timed(lambda: [embedder.embed_queries([text]) for text in work["queries"]])
    passage = _timed(lambda: embedder.embed_passages(work["passages"]))
    after = _most_memory()
    growth = None if before is None or after is None else after - before
    each_query, each_passage = len(work["queries"]) or 1, len(work["passages"]) or 1
    return Costs(
        load, query[0] / each_query, query[1] / each_query, passage[0] / each_passage, passage[1] / each_passage, growth
    )


def _timed(call: Callable[[], object]) -> tuple[float, float]:
    """Return the milliseconds of a call by the clock, and of the processor."""
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return (time.perf_counter() - wall) * 1000, (time.process_time() - cpu) * 1000


def _most_memory() -> float | None:
    """Return the most this process has held so far, in megabytes; None where the system does not tell."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * 1024 / MEGABYTE for line in lines if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        pass
    try:
        import resource  # not on every system, and where /proc is it counts what the parent held, too
    except ImportError:
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / MEGABYTE


if __name__ == "__main__":
    main()
