"""How fast and how right the vector index is, beside a numpy scan over float32.

    python bench/vectors.py                      10,000 and 100,000 rows of synthetic clusters
    python bench/vectors.py --full               1,000,000 rows as well (some minutes, 1 GB of disk)
    python bench/vectors.py --npy d.npy --queries q.npy     real vectors, enlarged by mixing and noise

CPU times are medians over distinct queries, one thread, in a process of its own that only searches.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commonplace.index.vectors.vector_index import VectorIndex
from commonplace.model import CHUNK_BITS, Change

Floats = NDArray[np.float32]
BLOCK = 4_096
QUERIES = 100
FLAT_ROWS = 100_000
COLUMNS = {
    "rows": "rows",
    "search_ms": "search",
    "filtered_ms": "1 % filter",
    "flat_ms": "numpy flat",
    "recall": "recall@10",
    "anon_mb": "own MB",
    "file_mb": "mapped MB",
    "open_ms": "open ms",
    "build_s": "build s",
}


class Clusters:
    """Rows as embedding models make them: a large common mean (0.75 long), topics, and a spectrum that falls off."""

    def __init__(self, seed: int, dims: int, topics: int = 300) -> None:
        rng = np.random.default_rng(seed)
        turn = np.linalg.qr(rng.standard_normal((dims, dims)))[0]
        self._shape = ((1 + np.arange(dims) / 100) ** -0.5)[:, None] * turn
        self._topics = (rng.standard_normal((topics, dims)) @ self._shape).astype(np.float32)
        reach = 2 * float(np.linalg.norm(self._topics, axis=1).mean()) / dims**0.5
        self._mean = (rng.standard_normal(dims) * reach).astype(np.float32)
        self.dims = dims

    def make(self, rng: np.random.Generator, count: int) -> Floats:
        topics = self._topics[rng.integers(0, len(self._topics), count)]
        noise = rng.standard_normal((count, self.dims)) @ self._shape
        return unit((self._mean + topics + 1.5 * noise).astype(np.float32))

    def queries(self, rng: np.random.Generator, count: int) -> Floats:
        return self.make(rng, count)


class Enlarged:
    """Real rows, then mixtures of two of them with noise of the shape of the whole."""

    def __init__(self, rows: Floats, queries: Floats | None) -> None:
        self._rows, self._queries = unit(rows), queries
        self._spread = self._rows.std(axis=0)
        self.dims = rows.shape[1]

    def make(self, rng: np.random.Generator, count: int) -> Floats:
        one, other = (self._rows[rng.integers(0, len(self._rows), count)] for _ in range(2))
        share = rng.uniform(0, 0.4, (count, 1)).astype(np.float32)
        noise = rng.standard_normal((count, self.dims), dtype=np.float32) * self._spread * 0.5
        return unit((1 - share) * one + share * other + noise)

    def queries(self, rng: np.random.Generator, count: int) -> Floats:
        if self._queries is None:
            return self.make(rng, count)
        return unit(self._queries[rng.permutation(len(self._queries))[:count]])


Corpus = Clusters | Enlarged


class Source:
    """A log of one item per row, whose vectors are made when they are asked for and never held together."""

    def __init__(self, corpus: Corpus, rows: int, seed: int) -> None:
        self._corpus, self._rows, self._seed = corpus, rows, seed
        self._kept: tuple[int, NDArray[np.float16]] | None = None

    def last_change(self) -> int:
        return self._rows

    def changes(self, after: int, limit: int) -> list[Change]:
        return [Change(n, "put", n, 1) for n in range(after + 1, min(self._rows, after + limit) + 1)]

    def vectors_of(self, item_ids: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.float16]]:
        items = np.array(item_ids, np.int64)
        parts = [self.block(n)[(items - 1)[(items - 1) // BLOCK == n] % BLOCK] for n in np.unique((items - 1) // BLOCK)]
        return items << CHUNK_BITS, np.concatenate(parts)

    def block(self, number: int) -> NDArray[np.float16]:
        if self._kept is None or self._kept[0] != number:
            rng = np.random.default_rng([self._seed, int(number)])
            self._kept = (number, self._corpus.make(rng, BLOCK).astype(np.float16))
        return self._kept[1]

    def blocks(self) -> Sequence[tuple[int, int]]:
        return [(n, min(BLOCK, self._rows - n * BLOCK)) for n in range(-(-self._rows // BLOCK))]


def unit(rows: Floats) -> Floats:
    lengths: Floats = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / lengths


def exact(source: Source, queries: Floats, k: int = 10) -> NDArray[np.int64]:
    """The items a full scan finds, block by block."""
    best = np.full((len(queries), k), -2, np.float32)
    items = np.zeros((len(queries), k), np.int64)
    for number, size in source.blocks():
        scores = queries @ source.block(number)[:size].astype(np.float32).T
        both = np.concatenate([best, scores], axis=1)
        named = np.concatenate([items, np.broadcast_to(number * BLOCK + 1 + np.arange(size), scores.shape)], axis=1)
        top = np.argpartition(-both, k, axis=1)[:, :k]
        best, items = np.take_along_axis(both, top, 1), np.take_along_axis(named, top, 1)
    return items


def cpu_ms(call: Callable[[Floats], object], queries: Floats) -> float:
    call(queries[0])
    times = []
    for query in queries:
        start = time.process_time()
        call(query)
        times.append(time.process_time() - start)
    return round(float(np.median(times)) * 1000, 3)


def measure(folder: Path, source: Source, queries: Floats, wanted: NDArray[np.int64]) -> dict[str, float]:
    """What a process that opens the index and searches it sees. Runs in a process of its own."""
    rows, dims = source.last_change(), queries.shape[1]
    start = time.process_time()
    index = VectorIndex(folder, source, dims, "bench")
    index.search(queries[0], 10)
    opened = time.process_time() - start
    some = np.unique(np.random.default_rng(5).integers(1, rows + 1, max(1, rows // 100)))
    found = [index.search(query, 10)[0] >> CHUNK_BITS for query in queries]
    recall = np.mean([len(np.intersect1d(a, b)) / len(b) for a, b in zip(found, wanted, strict=True)])
    return {
        "search_ms": cpu_ms(lambda query: index.search(query, 10), queries),
        "filtered_ms": cpu_ms(lambda query: index.search(query, 10, some), queries),
        "recall": round(float(recall), 3),
        "open_ms": round(opened * 1000, 1),
        **memory(),
    }


def memory() -> dict[str, float]:
    """Memory of this process alone, and mapped pages, which the system may take back. Nothing without /proc."""
    status = Path("/proc/self/status")
    if not status.exists():
        return {}
    fields = dict(line.split(":", 1) for line in status.read_text(encoding="ascii").splitlines())
    return {
        key: round(int(fields[name].split()[0]) / 1024, 1)
        for key, name in (("anon_mb", "RssAnon"), ("file_mb", "RssFile"))
    }


def measure_flat(source: Source, queries: Floats) -> float:
    """A float32 scan and a partition, over at most FLAT_ROWS rows and scaled from there."""
    parts = [
        source.block(number)[:size].astype(np.float32) for number, size in source.blocks()[: -(-FLAT_ROWS // BLOCK)]
    ]
    rows = np.concatenate(parts)
    return round(
        cpu_ms(lambda query: np.argpartition(rows @ query, -10)[-10:], queries) * source.last_change() / len(rows), 2
    )


def bench(corpus: Corpus, rows: int, seed: int) -> dict[str, Any]:
    source = Source(corpus, rows, seed)
    queries = corpus.queries(np.random.default_rng(seed + 1), QUERIES)
    with tempfile.TemporaryDirectory() as folder, multiprocessing.get_context("spawn").Pool(1) as apart:
        start = time.process_time()
        VectorIndex(Path(folder), source, corpus.dims, "bench").catch_up()
        built = time.process_time() - start
        seen = apart.apply(measure, (Path(folder), source, queries, exact(source, queries)))
        flat = apart.apply(measure_flat, (source, queries))
    return {"rows": rows, "flat_ms": flat, "build_s": round(built, 1), **seen}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="A million rows as well.")
    parser.add_argument("--rows", type=int, nargs="+", help="Other sizes.")
    parser.add_argument("--dims", type=int, default=384)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--npy", type=Path, nargs="+", default=[], help="Real vectors instead of synthetic ones.")
    parser.add_argument("--queries", type=Path, nargs="+", default=[], help="Queries that go with --npy.")
    parser.add_argument("--json", type=Path, help="Write the numbers to this file as well.")
    return parser.parse_args()


def load(paths: Sequence[Path]) -> Floats | None:
    return np.concatenate([np.load(path).astype(np.float32) for path in paths]) if paths else None


def main() -> None:
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")  # for the processes that measure
    options = arguments()
    real = load(options.npy)
    corpus = Clusters(options.seed, options.dims) if real is None else Enlarged(real, load(options.queries))
    sizes = options.rows or [10_000, 100_000, *([1_000_000] if options.full else [])]
    print(" | ".join(COLUMNS.values()))
    results = []
    for rows in sizes:
        results.append(bench(corpus, rows, options.seed))
        print(
            " | ".join(str(results[-1].get(key, "-")).rjust(len(title)) for key, title in COLUMNS.items()), flush=True
        )
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
