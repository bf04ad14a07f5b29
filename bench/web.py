"""CPU of the page's screens: what a search page costs beyond the search, lists of 10,000 memories, the reader.

    python bench/web.py [--memories 10000] [--times 20] [--json FILE]

Each row is CPU time of this process in milliseconds, the median of several; `most` is what it may cost.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from starlette.datastructures import QueryParams

from commonplace.kinds.memories.entry import New
from commonplace.library import Library
from commonplace.model import Draft, uri_of
from commonplace.server.principal import OWNER
from commonplace.settings import Settings
from commonplace.web.frame import rendered
from commonplace.web.paths import item_path
from commonplace.web.screens import SCREENS
from commonplace.web.visits import Visit

WORDS = [
    "kettle", "copper", "lease", "token", "fence", "order", "payment", "staging", "release", "audit", "index", "vector",
]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        with Library.open(home, settings=Settings(home=home, models=home / "models", model="static")) as library:
            fill(library, given.memories)
            gc.freeze()  # as the server does
            rows = measure(library, given.times)
    print(f"{'':44}{'ms':>8}{'most':>8}")
    for name, ms, most in rows:
        print(f"{name:44}{ms:8.2f}{most if most else '':>8}{'  OVER' if most and ms > most else ''}")
    if given.json:
        given.json.write_text(json.dumps([{"name": name, "ms": ms, "most": most} for name, ms, most in rows], indent=1))


def fill(library: Library, memories: int) -> None:
    """Store what is measured."""
    chance = random.Random(7)

    def sentence(words: int) -> str:
        return " ".join(chance.choices(WORDS, k=words)).capitalize() + "."

    entries = [
        New(f"thread-{number % 12}", "agent", sentence(14) + f" Fact {number}.", tags=(f"tag-{number % 30}",))
        for number in range(memories)
    ]
    for start in range(0, memories, 500):
        library.memories.store(entries[start : start + 500])
    for number in range(200):
        body = "".join(f"## {sentence(3)}\n\n{sentence(60)}\n\n" for _ in range(6))
        library.put(
            Draft("document", f"page-{number}.md", parent="docs", title=sentence(3), body=body, format="markdown")
        )
    long = "".join(f"## {sentence(3)}\n\n{sentence(80)}\n\n- {sentence(9)}\n- [x](page-1.md)\n\n" for _ in range(60))
    library.put(Draft("document", "long.md", parent="docs", title="Long", body=long, format="markdown"))
    library.embed()


def measure(library: Library, times: int) -> list[tuple[str, float, float | None]]:
    """Return (name, milliseconds, most) of each row."""

    def screen(address: str) -> Callable[[], Any]:
        path, _, query = address.partition("?")
        visit = Visit(
            path, path, QueryParams(query), "http://127.0.0.1:8377", OWNER, "s" * 43, library.settings, is_owner=True
        )
        found = SCREENS.find("GET", path)
        assert found is not None
        return lambda: rendered(found.run(library, visit), visit)  # type: ignore[arg-type]

    long = item_path(uri_of("document", "docs", "long.md"), q="kettle copper", line=40)

    def first_reading() -> None:
        library.put(
            Draft(
                "document", "long.md", parent="docs", title="Long", body=f"{body}\n{time.time_ns()}", format="markdown"
            )
        )

    body = library.get(uri_of("document", "docs", "long.md")).body
    engine = cpu(lambda: library.search("kettle copper lease", limit=20, explain=True), times)
    page = cpu(screen("/?q=kettle+copper+lease"), times)
    rows: list[tuple[str, float, float | None]] = [
        ("search: the engine, 20 hits", engine, None),
        ("search: what the page adds", page - engine, 3.0),
        ("as one types: what the page adds", cpu(screen("/live?q=kettle"), times) - cpu(live(library), times), 3.0),
        ("first page", cpu(screen("/"), times), 10.0),
        ("memories, 10,000", cpu(screen("/memories"), times), 10.0),
        ("memories of a thread and a tag", cpu(screen("/memories?thread=thread-3&tag=tag-3"), times), 10.0),
        ("sources", cpu(screen("/sources"), times), 10.0),
        ("health", cpu(screen("/health"), times), 10.0),
        ("reader, read before", cpu(screen(long), times), 5.0),
        ("reader, the first time", cpu(screen(long), max(3, times // 5), first_reading), 120.0),
    ]
    return rows


def live(library: Library) -> Callable[[], Any]:
    return lambda: library.search("kettle", limit=8, snippet_length=120)


def cpu(run: Callable[[], Any], times: int, before: Callable[[], Any] | None = None) -> float:
    """Return the median CPU time of a call in milliseconds, after one that is not counted."""
    spans = []
    for _ in range(times + 1):
        if before:
            before()
        start = time.process_time()
        run()
        spans.append((time.process_time() - start) * 1000)
    return median(spans[1:])


if __name__ == "__main__":
    main()
