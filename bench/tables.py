"""What tables cost: one of 50 MB with 100,000 strings, indexed, searched, changed and read by place.

    python bench/tables.py [--strings 100000] [--keep FOLDER]

Times are medians, of this process's CPU and of the clock on the wall. With `--keep` the library stays in that folder,
and the next run with the same folder begins with the searches.
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import resource
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from commonplace.kinds.tables.data_drawer import DataDrawer
from commonplace.kinds.tables.tools.types import run_tool
from commonplace.library import Library
from commonplace.settings import Settings

WORDS = 20_000
PER_ROW = 4
LENGTH = 500


def vocabulary(chance: random.Random) -> list[str]:
    parts = ["ka", "lo", "mi", "ter", "sun", "vor", "el", "pra", "qui", "dan", "ose", "bri", "ton", "ful", "gar"]
    return ["".join(chance.choices(parts, k=chance.randint(2, 4))) for _ in range(WORDS)]


def rows(strings: int, chance: random.Random) -> list[dict[str, Any]]:
    words = vocabulary(chance)
    weights = [1 / (place + 10) for place in range(WORDS)]
    made = []
    for number in range(strings // PER_ROW):
        row: dict[str, Any] = {"id": number}
        for field in ("title", "summary", "notes", "history")[:PER_ROW]:
            text = " ".join(chance.choices(words, weights, k=LENGTH // 6))
            row[field] = text[:LENGTH]
        made.append(row)
    return made


@dataclass(frozen=True, slots=True)
class Spent:
    """Seconds of this process's CPU, all its threads together, and on the wall."""

    cpu: float
    wall: float


def timed(work: Callable[[], Any]) -> Spent:
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return Spent(time.process_time() - cpu, time.perf_counter() - wall)


def shown(name: str, times: Sequence[Spent]) -> None:
    """In milliseconds: medians, the slowest in a hundred, and how much of the wall was spent waiting."""
    cpu, wall = sorted(spent.cpu * 1e3 for spent in times), sorted(spent.wall * 1e3 for spent in times)
    last = int(len(times) * 0.99)
    print(f"{name}: {median(cpu):.2f} ms CPU ({cpu[last]:.2f} at worst), {median(wall):.2f} ms on the wall "
          f"({wall[last]:.2f} at worst)")  # fmt: skip


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--strings", type=int, default=100_000)
    options.add_argument("--keep", type=Path)
    arguments = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = arguments.keep or Path(folder)
        settings = Settings(home=home, models=home / "models", model="static")
        with Library.open(home, settings=settings) as library:
            measure(library, arguments.strings, random.Random(7))


def measure(library: Library, strings: int, chance: random.Random) -> None:
    tables = library.tables
    data = {"rows": rows(strings, chance)}
    gc.collect()
    gc.freeze()  # these are the bench's own objects: nobody else should look through them again and again
    if not tables.rows.projects():
        build(library, data)
    find, update = tables.tool("find"), tables.tool("update")
    report_searches(library, find, data, chance)
    report_updates(library, find, update, data)
    report_reads(library, strings, chance)
    print(f"load: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(f"peak memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB")


def build(library: Library, data: Any) -> None:
    tables = library.tables
    tables.catalog.create_project("bench")
    created = timed(lambda: tables.catalog.create_table("bench", "big", data=data))
    table = tables.table("big")
    print(f"table: {table.size / 1e6:.1f} MB, created in {created.cpu:.1f} s CPU, {created.wall:.1f} s on the wall")
    find = tables.catalog.create_tool(table, "search", "find", {"json_path": "/rows"})
    tables.catalog.create_tool(table, "update", "update", {"json_path": "/rows/17"})

    def index() -> None:
        while tables.jobs.step():
            pass

    indexed = timed(index)
    state = tables.states.search_index(table, find)
    count = state["chunks_count"]
    print(f"chunked and embedded: {count} chunks, {count / indexed.cpu:,.0f} per s of CPU, "
          f"{count / indexed.wall:,.0f} per s on the wall; {state['status']}")  # fmt: skip
    first = timed(lambda: run_tool(library, find, {"query": "first"}))
    print(f"first search, which makes both indexes: {first.cpu:.1f} s CPU, {first.wall:.1f} s on the wall")


def report_searches(library: Library, find: Any, data: Any, chance: random.Random) -> None:
    queries = [" ".join(chance.choice(data["rows"])["title"].split()[5:8]) for _ in range(100)]
    for query in queries[:5]:
        run_tool(library, find, {"query": query})
    shown("search", [timed(lambda query=query: run_tool(library, find, {"query": query})) for query in queries])  # type: ignore[misc]


def report_updates(library: Library, find: Any, update: Any, data: Any) -> None:
    times = []
    for number in range(40):
        word = f"zyxwv{number}unique{time.time_ns():x}"
        text = f"{word} {data['rows'][number]['notes']}"

        def change(text: str = text, word: str = word) -> None:
            run_tool(library, update, {"updates": [{"key": "notes", "content": text}]})
            found = run_tool(library, find, {"query": word})["results"]
            assert found
            assert found[0]["chunk"]["chunk_text"].startswith(word)

        times.append(timed(change))
    shown("one string changed and found", times)


def report_reads(library: Library, strings: int, chance: random.Random) -> None:
    tables = library.tables
    table = tables.table("big")
    places = [("rows", str(chance.randrange(strings // PER_ROW)), "notes") for _ in range(500)]

    def read(place: tuple[str, ...]) -> Spent:
        return timed(lambda: library.store.drawer(DataDrawer).value(table.number, place))

    shown("one place read", [read(place) for place in places])


if __name__ == "__main__":
    main()
