"""What a search and a window of the knowledge tools cost, in process.

    python bench/knowledge.py                      200,000 items over the five kinds
    python bench/knowledge.py --items 20000        fewer
    python bench/knowledge.py --keep DIR           what was built is used again the next time

Every number is CPU time of the process per call: the median and the 95th percentile over 100 calls, each of them
another question. Words are of a Zipf vocabulary of 20,000: *common* queries have three of its first 50 words, *usual*
ones three of the next 450, *rare* ones three of the 4,500 after those. Bounds are those of the *usual* query over all
kinds, and of a window around a match.
"""

from __future__ import annotations

import argparse
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from commonplace.kinds.knowledge.records import put_record
from commonplace.library import Library
from commonplace.profiles.registry import profile
from commonplace.settings import Settings
from commonplace.store.listing import Listing
from commonplace.tools.profile import Registry
from commonplace.tools.tool import Call

VOCABULARY, CALLS, BATCH = 20_000, 100, 1000
SEARCH_MS, WINDOW_MS = 5.0, 2.0
QUERIES = {"common": (0, 50), "usual": (50, 500), "rare": (500, 5000)}
_SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou"]
_WEIGHTS = [1 / (rank + 5) for rank in range(VOCABULARY)]


def vocabulary() -> list[str]:
    """Words that can be told apart by how they begin, as those of a language can."""
    random, words = Random(3), dict[str, None]()
    while len(words) < VOCABULARY:
        words["".join(random.choices(_SYLLABLES, k=random.randint(1, 4)))] = None
    return list(words)


_WORDS = vocabulary()


def record(random: Random, number: int) -> dict[str, Any]:
    """The item of a number: the kinds take turns."""

    def text(words: int) -> str:
        return " ".join(random.choices(_WORDS, _WEIGHTS, k=words))

    match number % 5:
        case 0:
            return {"kind": "note", "id": f"n{number}", "title": text(4), "body": text(80)}
        case 1:
            return {"kind": "media", "id": number, "title": text(4), "media_type": "video", "body": text(80)}
        case 2:
            said = [{"sender": "Me", "content": text(40)}]
            return {"kind": "conversation", "id": f"c{number}", "title": text(4), "messages": said}
        case 3:
            return {"kind": "character", "id": number, "name": text(2), "description": text(60), "scenario": text(20)}
        case _:
            return {"kind": "prompt", "id": number, "name": f"{text(2)} {number}", "user_prompt": text(60)}


def build(library: Library, items: int) -> None:
    random, started = Random(7), time.perf_counter()
    for start in range(0, items, BATCH):
        with library.store.transaction():
            for number in range(start, min(start + BATCH, items)):
                put_record(library.store, record(random, number))
    stored = time.perf_counter()
    library.knowledge.index.catch_up()
    indexed = time.perf_counter()
    print(f"stored {items / (stored - started):,.0f} items/s, indexed {items / (indexed - stored):,.0f} items/s")


def measure(name: str, make: Callable[[], Callable[[], Any]], bound: float | None = None) -> bool:
    """Prints a row; whether its median keeps the bound."""
    times = []
    for _ in range(CALLS + 10):
        work = make()
        started = time.process_time()
        work()
        times.append((time.process_time() - started) * 1000)
    times = sorted(times[10:])
    median, late = times[len(times) // 2], times[int(len(times) * 0.95)]
    kept = bound is None or median <= bound
    asked = "" if bound is None else f"  (at most {bound:g})"
    print(f"{name:<42} {median:7.2f} ms  p95 {late:7.2f} ms{asked}{'' if kept else '  TOO SLOW'}")
    return kept


def run(library: Library) -> bool:
    tools, call, random = Registry(profile("knowledge"), writable=False), Call(library), Random(11)
    search, get = tools.find("knowledge.search"), tools.find("knowledge.get")
    assert search is not None
    assert get is not None

    def asking(low: int, high: int, **more: Any) -> Callable[[], Callable[[], Any]]:
        def make() -> Callable[[], Any]:
            query = " ".join(_WORDS[random.randrange(low, high)] for _ in range(3))
            return lambda: search.call(call, {"query": query, **more})

        return make

    kept = True
    for name, (low, high) in QUERIES.items():
        bound = SEARCH_MS if name == "usual" else None
        kept &= measure(f"knowledge.search, {name} words", asking(low, high), bound)
    kept &= measure("knowledge.search, usual words, recent", asking(50, 500, order_by="recent"))
    kept &= measure("knowledge.search, usual words, one source", asking(50, 500, sources=["notes"]))
    hits: Any = search.call(call, {"query": f"{_WORDS[600]} {_WORDS[700]}", "limit": 100})
    around = {"mode": "chunk_with_siblings"}

    def reading() -> Callable[[], Any]:
        hit = random.choice(hits["results"])
        return lambda: get.call(call, {"id": hit["uri"], "retrieval": {**around, "loc": hit["loc"]}})

    return kept & measure("knowledge.get, chunk_with_siblings", reading, WINDOW_MS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=200_000)
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        home = options.keep or Path(scratch)
        with Library.open(home, settings=Settings(home=home, model="static")) as library:
            if not library.store.drawer(Listing).counts():
                build(library, options.items)
            print(f"{sum(library.store.drawer(Listing).counts().values()):,} items, Python {platform.python_version()}")
            kept = run(library)
    sys.exit(0 if kept else 1)


if __name__ == "__main__":
    main()
