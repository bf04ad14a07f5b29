"""What a search and a write cost, beside SQLite's FTS5 and sqlite-vec over the same texts and vectors.

    python bench/engine.py                              10,000 and 100,000 passages
    python bench/engine.py --sizes 1000000 --keep DIR   a million; what was built is used again the next time
    python bench/engine.py --text DIR                   your own text

Every number is CPU time of this process (`time.process_time`), median and 95th percentile over 200 distinct queries
after 20 others, one BLAS thread. The texts are real (bench/corpus.py), the vectors synthetic (bench/vectors.py), the
query's embedding excluded. All rows of a size ask the same queries, in the order printed: the first rows meet words the
analyzer has not seen in this process, the later ones (the filtered among them) hardly any, so a filtered row is
a little flattered beside its unfiltered one. FTS5 and sqlite-vec answer the first 40 queries at 100,000 and 6 above.

A lexical row has two numbers. *whole* is `Library.search`: parse, catch up, plan, retrieve, and ten hits presented with
titles, lines and snippets. *index* is `LexicalIndex.search` of a planned query, the best ten: that is what compares
with FTS5, which returns ten row ids, and what its target is for, as the one of `vector` is for that index alone. The
targets of hybrid rows are for the whole call, ten hits presented.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from commonplace.index.scope import Scope
from commonplace.model import CHUNK_BITS, Filter
from commonplace.search.plan import plan_lexical
from commonplace.search.request import parse
from commonplace.store.listing import Listing
from commonplace.text import analyze
from corpus import Corpus
from engine_home import ONE_PERCENT, ClusterEmbedder, build, draft, open_library, query_vectors, vector_source
from engine_peers import Fts5, open_vec
from vectors import exact

WARM_UP, QUERIES, WRITES = 20, 200, 40
TARGETS = {
    "lexical, 3 terms": {10_000: 0.3, 100_000: 0.5, 1_000_000: 3},
    "lexical, long question": {10_000: 1, 100_000: 4, 1_000_000: 30},
    "vector": {10_000: 1, 100_000: 3, 1_000_000: 25},
    "hybrid, 3 terms": {10_000: 2, 100_000: 6, 1_000_000: 50},
    "hybrid, long question": {10_000: 2, 100_000: 6, 1_000_000: 50},
}
FILTERED = 1.5
PUT_MS, AFTER_WRITE_MS, BULK_S, OPEN_S, RSS_MB, RSS_MODEL_MB = 1.5, 60, 12, 0.5, 150, 350
RECALL = 0.95


@dataclass(frozen=True)
class Row:
    """One line of the table. What a peer cannot do, or was not asked, is None."""

    name: str
    median: float
    p95: float | None = None
    target: float | None = None
    index: float | None = None
    """The same through the index alone."""
    peer: float | None = None
    note: str = ""

    @property
    def measured(self) -> float:
        """What is compared, like with like: the index where there is one."""
        return self.median if self.index is None else self.index

    @property
    def ratio(self) -> float | None:
        """How many times our cost the peer's is."""
        return None if self.peer is None or not self.measured else self.peer / self.measured


def cpu_ms(call: Callable[[Any], object], arguments: Sequence[Any], warm_up: int = WARM_UP) -> tuple[float, float]:
    """Median and 95th percentile."""
    for argument in arguments[:warm_up]:
        call(argument)
    times = []
    for argument in arguments[warm_up:]:
        start = time.process_time()
        call(argument)
        times.append((time.process_time() - start) * 1000)
    return statistics.median(times), float(np.percentile(times, 95))


def speed() -> float:
    """CPU ms of a fixed loop: neighbours on the same cores slow this down as much as they do the rows."""
    times = []
    for _ in range(5):
        start = time.process_time()
        sum(n * n for n in range(1_000_000))
        times.append((time.process_time() - start) * 1000)
    return statistics.median(times)


class Bench:
    """All rows for one size."""

    def __init__(self, folder: Path, corpus: Corpus, size: int, peers: bool) -> None:
        self._home, self._corpus, self._size = folder / f"{size}", corpus, size
        self._home.mkdir(parents=True, exist_ok=True)
        count = WARM_UP + QUERIES
        self._short, self._long = corpus.short_queries(count, size), corpus.long_queries(count, size)
        self._vectors = query_vectors(count, corpus.seed)
        self._embedder = ClusterEmbedder(self._vectors)
        self.built = build(self._home, corpus, size, self._embedder)
        self._library = open_library(self._home, self._embedder)
        self._fts = Fts5(self._home / "fts5.db", corpus, size) if peers else None
        self._vec = open_vec(self._home / "vec.db", vector_source(size, corpus.seed)) if peers else None
        # The peers scan everything: as many queries as a minute or so allows.
        self._peer_queries = WARM_UP + QUERIES if size <= 10_000 else 40 if size <= 100_000 else 6

    def rows(self) -> Iterator[Row]:
        gc.collect()
        gc.freeze()  # the corpus is ours: collecting it over and over is no cost of the engine's
        yield from self._searches(Filter(), "", {})
        yield from self._analysis()
        yield from self._bulk()
        yield from self._writes()
        self._library.close()
        yield from self._fresh_process()

    # searching

    def _searches(self, filter: Filter, suffix: str, unfiltered: dict[str, float]) -> Iterator[Row]:
        peers: dict[str, float | None] = {}
        for name, queries in (("3 terms", self._short), ("long question", self._long)):
            peers[name] = self._fts_ms(queries, filter)
            row = self._lexical(f"lexical, {name}{suffix}", queries, filter, peers[name], unfiltered)
            unfiltered.setdefault(row.name, row.measured)
            yield row
        peers["vector"] = self._vec_ms(filter)
        row = self._vector(f"vector{suffix}", filter, peers["vector"], unfiltered)
        unfiltered.setdefault(row.name, row.measured)
        yield row
        for name, queries in (("3 terms", self._short), ("long question", self._long)):
            both = (peers[name], peers["vector"])
            peer = None if None in both else sum(both)  # type: ignore[arg-type]
            row = self._hybrid(f"hybrid, {name}{suffix}", queries, filter, peer, unfiltered)
            unfiltered.setdefault(row.name, row.measured)
            yield row
        if not suffix:
            yield from self._searches(ONE_PERCENT, ", 1 % filter", unfiltered)

    def _target(self, name: str, unfiltered: dict[str, float]) -> float | None:
        plain = name.removesuffix(", 1 % filter")
        return FILTERED * unfiltered[plain] if plain != name else TARGETS[plain].get(self._size)

    def _lexical(
        self, name: str, queries: Sequence[str], filter: Filter, peer: float | None, unfiltered: dict[str, float]
    ) -> Row:
        library, scope = self._library, Scope(parents=filter.parents)
        whole = cpu_ms(lambda query: library.search(query, mode="lexical", filter=filter, limit=10), queries)
        plans = library.lexical.ask(lambda words: [plan_lexical(parse(query), words).query for query in queries])
        alone = cpu_ms(lambda plan: library.lexical.search(plan, 10, scope), plans)
        return Row(name, *whole, self._target(name, unfiltered), alone[0], peer)

    def _vector(self, name: str, filter: Filter, peer: float | None, unfiltered: dict[str, float]) -> Row:
        index, _ = self._library.embedding.ready()
        items = self._library.store.drawer(Listing).select(filter) if filter else None
        times = cpu_ms(lambda query: index.search(query, 10, items), self._vectors)
        note = "" if filter else f"recall@10 {self._recall():.3f} (≥ {RECALL})"
        return Row(name, *times, self._target(name, unfiltered), peer=peer, note=note)

    def _recall(self) -> float:
        index, _ = self._library.embedding.ready()
        wanted = exact(vector_source(self._size, self._corpus.seed), self._vectors)
        found = [index.search(query, 10)[0] >> CHUNK_BITS for query in self._vectors]
        return float(np.mean([len(np.intersect1d(a, b)) / len(b) for a, b in zip(found, wanted, strict=True)]))

    def _hybrid(
        self, name: str, queries: Sequence[str], filter: Filter, peer: float | None, unfiltered: dict[str, float]
    ) -> Row:
        stages = {stage.name for stage in self._library.search(queries[0], filter=filter).stages if stage.ms}
        assert {"lexical", "vector", "fuse", "present"} <= stages
        times = cpu_ms(lambda query: self._library.search(query, filter=filter, limit=10), queries)
        return Row(name, *times, self._target(name, unfiltered), peer=peer)

    def _fts_ms(self, queries: Sequence[str], filter: Filter) -> float | None:
        if self._fts is None:
            return None
        search = self._fts.search_one_percent if filter else self._fts.search
        return cpu_ms(search, queries[: self._peer_queries], 2)[0]

    def _vec_ms(self, filter: Filter) -> float | None:
        if self._vec is None:
            return None
        search = self._vec.search_one_percent if filter else self._vec.search
        return cpu_ms(search, self._vectors[: self._peer_queries], 2)[0]

    # writing

    def _analysis(self) -> Iterator[Row]:
        texts = [self._corpus.passage(number) for number in range(QUERIES * 5)]
        times = cpu_ms(lambda text: (analyze.stems(text, "en"), analyze.exact(text)), texts + texts, len(texts))
        yield Row("analyze one passage, stems and words", *times)

    def _bulk(self) -> Iterator[Row]:
        target = {"lexical catch_up": BULK_S * 1000 if self._size == 100_000 else None}
        for part, seconds in self.built.items():
            peer = self._fts.build_s * 1000 if self._fts and part == "lexical catch_up" else None
            yield Row(f"bulk: {part}", seconds * 1000, None, target.get(part), peer=peer)

    def _writes(self) -> Iterator[Row]:
        library, first = self._library, self._size
        texts = [self._corpus.passage(first + n) for n in range(3 * WRITES)]
        drafts = [draft(first + n, text, parent="bench-writes") for n, text in enumerate(texts)]
        peer = None
        if self._fts is not None:
            peer = cpu_ms(self._fts.insert, texts[:WRITES], 5)[0]
            self._fts.forget_inserts()
        yield Row("put one item", *cpu_ms(library.put, drafts[:WRITES], 5), PUT_MS, peer=peer, note="durable")
        for mode, some in (("lexical", drafts[WRITES : 2 * WRITES]), ("auto", drafts[2 * WRITES :])):
            times = []
            library.search(self._short[0], mode=mode)
            for number, made in enumerate(some):
                library.put(made)
                start = time.process_time()
                library.search(self._short[number], mode=mode)
                times.append((time.process_time() - start) * 1000)
            name = f"first search after one write, {'hybrid' if mode == 'auto' else mode}"
            yield Row(name, statistics.median(times), float(np.percentile(times, 95)), AFTER_WRITE_MS)
        library.delete_where(Filter(parents=("bench-writes",)))
        library.search(self._short[0])

    # from outside

    def _fresh_process(self) -> Iterator[Row]:
        for what in ("lexical", "hybrid"):
            runs = [self._probe(what) for _ in range(5)]
            middle = sorted(runs, key=lambda run: run["total_s"])[len(runs) // 2]
            parts = ("interpreter", "imports", "open", "first_search")
            note = ", ".join(f"{part.replace('_', ' ')} {middle[part + '_s'] * 1000:.0f}" for part in parts)
            yield Row(f"fresh process, first {what} search", middle["total_s"] * 1000, None, OPEN_S * 1000, note=note)
            if what == "lexical":
                yield self._memory_row("lexical searches", middle, RSS_MB)
        seen = self._probe("model")
        yield self._memory_row("hybrid, model loaded", seen, RSS_MODEL_MB, f"; {seen['model']}")

    def _memory_row(self, what: str, seen: dict[str, Any], target: float, more: str = "") -> Row:
        """A larger library is mapped into more memory, which has no target."""
        bound = target if self._size <= 100_000 else None
        return Row(f"RSS in MB, {what}", seen["rss_mb"], None, bound, note=_memory(seen) + more)

    def _probe(self, what: str) -> dict[str, Any]:
        queries = json.dumps(self._short[:30] + self._long[:30])
        command = [sys.executable, str(Path(__file__).with_name("engine_probe.py")), str(self._home), what, queries]
        found: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        return found


def _memory(seen: dict[str, Any]) -> str:
    return (
        f"own {seen['anon_mb']:.0f}, mapped {seen['mapped_mb']:.0f}, peak {seen['peak_mb']:.0f}, "
        f"after imports {seen['imported_mb']:.0f}"
    )


def show(row: Row) -> str:
    def number(value: float | None, suffix: str = "") -> str:
        return "" if value is None else f"{value:,.{2 if value < 100 else 0}f}{suffix}"

    mark = "" if row.target is None else "ok" if row.measured <= row.target else "OVER"
    cells = [row.name.ljust(42), *(number(value).rjust(9) for value in (row.median, row.p95, row.target))]
    cells += [mark.rjust(4), number(row.index).rjust(8), number(row.peer).rjust(9), number(row.ratio, "×").rjust(9)]
    return " ".join([*cells, row.note]).rstrip()


HEAD = (
    f"{'CPU ms':42} {'median':>9} {'p95':>9} {'target':>9} {'':4} {'index':>8} {'SQLite':>9} {'SQLite/us':>9}"
    " (FTS5, sqlite-vec)"
)


@contextmanager
def place(keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        yield keep
        return
    folder = Path(tempfile.mkdtemp(prefix="commonplace-bench-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="10000,100000", help="Passages, with commas between.")
    parser.add_argument("--text", type=Path, help="Your own text instead of this machine's.")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--keep", type=Path, help="Build here, or use what was built here before.")
    parser.add_argument("--no-peers", action="store_true", help="Leave FTS5 and sqlite-vec out.")
    parser.add_argument("--json", type=Path, help="Write the numbers to this file as well.")
    return parser.parse_args()


def main() -> None:
    if "OPENBLAS_NUM_THREADS" not in os.environ:  # read when numpy is imported, so for a fresh process
        os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")
        os.execv(sys.executable, [sys.executable, *sys.argv])
    options = arguments()
    corpus = Corpus(options.text, options.seed)
    results: dict[str, Any] = {"machine": platform.platform(), "python": platform.python_version(), "sizes": {}}
    with place(options.keep) as folder:
        for size in map(int, options.sizes.split(",")):
            bench = Bench(folder, corpus, size, not options.no_peers)
            load, loop = os.getloadavg()[0], speed()
            print(f"\n{size:,} passages; load {load:.1f} on {os.cpu_count()} cores, a million squares {loop:.0f} ms")
            print(HEAD, flush=True)
            rows = []
            for row in bench.rows():
                print(show(row), flush=True)
                rows.append({**asdict(row), "ratio": row.ratio})
            results["sizes"][str(size)] = {"load": load, "million_squares_ms": loop, "rows": rows}
    if options.json:
        options.json.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
