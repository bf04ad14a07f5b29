"""What the stages of a `query` cost, and whether its time holds while every core is busy with something else.

    python bench/models.py                    2,000 passages, the shipped model, as many busy processes as cores
    python bench/models.py --passages 500 --busy 4
    python bench/models.py --json FILE        the numbers as JSON too

Calm times are CPU milliseconds, medians; busy ones are wall time, of which 99 in 100 calls must stay within the
budget of the second look and 50 ms more.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from statistics import median, quantiles

from commonplace.library import Library
from commonplace.model import Draft, Filter
from commonplace.search.question import HybridAnswer, Question, Search
from commonplace.search.rerank import BUDGET_S
from commonplace.settings import Settings
from corpus import Corpus
from files import Row

CALLS = 200
GRACE_MS = 50.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--passages", type=int, default=2000)
    parser.add_argument("--busy", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    corpus = Corpus()
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch)
        with Library.open(home, settings=Settings(home=home, model="static")) as library:
            library.put_many(
                Draft("document", f"{number:06}", parent="bench", body=corpus.passage(number))
                for number in range(options.passages)
            )
            library.embed()
            rows = list(measure(library, corpus.long_queries(CALLS, options.passages), options.busy))
    width = max(len(row.name) for row in rows)
    for row in rows:
        target = f"  target {row.target:g}" if row.target is not None else ""
        print(f"{row.name:{width}}  {row.value:8.2f} {row.unit}{target}  {row.note}".rstrip())
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1), encoding="utf-8")


def measure(library: Library, questions: Sequence[str], busy: int) -> Iterator[Row]:
    def query(text: str, *, rerank: bool = True) -> HybridAnswer:
        searches = (Search("lex", text), Search("vec", text))
        return library.hybrid.find(Question(searches, Filter(kinds=("document",)), plain=True, rerank=rerank))

    def fused(text: str) -> HybridAnswer:
        return query(text, rerank=False)

    query(questions[0])
    for name, ask in (
        ("search", library.search),
        ("search with a second look", lambda text: library.search(text, rerank=True)),
        ("query without a second look", fused),
        ("query", query),
    ):
        yield Row(f"{name}, CPU", median(cpu_ms(ask, questions)), None, unit="ms")
    before = os.getloadavg()[0]  # what others do here counts as well, and is none of the bench's
    with busy_processes(busy):
        whole, looks = zip(*(waited(query, text) for text in questions), strict=True)
    budget = BUDGET_S * 1000
    note = f"{busy} busy processes beside it; load before: {before:.1f}"
    yield Row("second look, wall, p99", percentile(looks), budget, note, "ms")
    yield Row("query, wall, p99", percentile(whole), budget + GRACE_MS, note, "ms")


def cpu_ms(ask: Callable[[str], object], questions: Sequence[str]) -> list[float]:
    spent = []
    for text in questions:
        start = time.process_time()
        ask(text)
        spent.append((time.process_time() - start) * 1000)
    return spent


def waited(query: Callable[[str], HybridAnswer], text: str) -> tuple[float, float]:
    """Wall milliseconds of a query and of its second look."""
    start = time.perf_counter()
    answer = query(text)
    took = (time.perf_counter() - start) * 1000
    return took, next(stage.ms for stage in answer.stages if stage.name == "rerank")


def percentile(values: Sequence[float]) -> float:
    return quantiles(values, n=100)[98]


@contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """So many processes that do nothing but count, while the block runs."""
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_spin, daemon=True) for _ in range(count)]
    for worker in workers:
        worker.start()
    try:
        yield
    finally:
        for worker in workers:
            worker.terminate()
            worker.join()


def _spin() -> None:
    number = 0
    while True:
        number += 1


if __name__ == "__main__":
    main()
