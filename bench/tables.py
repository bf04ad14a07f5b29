"""What tables cost: one of 50 MB with 100,000 strings, indexed, searched, changed and read by place.

    python bench/tables.py [--strings 100000]

Times are of this process's CPU where they say so, and medians.
"""

from __future__ import annotations

import argparse
import random
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from commonplace.library import Library
from commonplace.settings import Settings
from commonplace.surfaces.tables.types import run_tool

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


def timed(work: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> float:
    started = clock()
    work()
    return clock() - started


def cpu() -> float:
    return time.process_time()


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--strings", type=int, default=100_000)
    strings = options.parse_args().strings
    chance = random.Random(7)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        settings = Settings(home=home, models=home / "models", model="static")
        with Library.open(home, settings=settings) as library:
            measure(library, strings, chance)


def measure(library: Library, strings: int, chance: random.Random) -> None:
    tables = library.tables
    data = {"rows": rows(strings, chance)}
    tables.catalog.create_project("bench")
    created = timed(lambda: tables.catalog.create_table("bench", "big", data=data))
    table = tables.table("big")
    print(f"table: {table.size / 1e6:.1f} MB, created in {created:.1f} s")
    find = tables.catalog.create_tool(table, "search", "find", {"json_path": "/rows"})
    update = tables.catalog.create_tool(table, "update", "update", {"json_path": "/rows/17"})

    def index() -> None:
        while tables.jobs.step():
            pass

    indexed = timed(index)
    state = tables.states.search_index(table, find)
    print(f"chunked and embedded: {state['chunks_count']} chunks in {indexed:.1f} s, "
          f"{state['chunks_count'] / indexed:,.0f}/s; {state['status']}")  # fmt: skip
    first = timed(lambda: run_tool(library, find, {"query": "first"}))
    print(f"first search, which makes both indexes: {first:.1f} s")
    report_searches(library, find, data, chance)
    report_updates(library, find, update, data)
    report_reads(library, strings, chance)
    print(f"peak memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB")


def report_searches(library: Library, find: Any, data: Any, chance: random.Random) -> None:
    queries = [" ".join(chance.choice(data["rows"])["title"].split()[5:8]) for _ in range(100)]
    for query in queries[:5]:
        run_tool(library, find, {"query": query})
    times = [timed(lambda query=query: run_tool(library, find, {"query": query}), cpu) for query in queries]  # type: ignore[misc]
    print(f"search: {median(times) * 1e3:.2f} ms CPU, slowest of 100 {max(times) * 1e3:.2f} ms")


def report_updates(library: Library, find: Any, update: Any, data: Any) -> None:
    times = []
    for number in range(20):
        word = f"zyxwv{number}unique"
        text = f"{word} {data['rows'][number]['notes']}"

        def change(text: str = text, word: str = word) -> None:
            run_tool(library, update, {"updates": [{"key": "notes", "content": text}]})
            found = run_tool(library, find, {"query": word})["results"]
            assert found
            assert found[0]["chunk"]["chunk_text"].startswith(word)

        times.append(timed(change))
    print(f"one string changed and found: {median(times) * 1e3:.1f} ms, slowest of 20 {max(times) * 1e3:.1f} ms")


def report_reads(library: Library, strings: int, chance: random.Random) -> None:
    tables = library.tables
    table = tables.table("big")
    places = [("rows", str(chance.randrange(strings // PER_ROW)), "notes") for _ in range(500)]
    times = [timed(lambda place=place: tables.store.table_value(table.number, place)) for place in places]  # type: ignore[misc]
    print(f"one place read: {median(times) * 1e3:.3f} ms, slowest of 500 {max(times) * 1e3:.3f} ms")


if __name__ == "__main__":
    main()
