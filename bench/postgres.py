"""What the same library costs over PostgreSQL and over a file, and what plain SQL with ts_rank and pgvector costs.

    python bench/postgres.py                        20,000 passages
    python bench/postgres.py --sizes 20000 100000   as docs/operations.md has it

Every number is wall time on this machine (a server's CPU time is not this process's), median over 100 distinct queries
after 10 others. The server is real, on loopback, durable (fsync on), with 256 MB of shared buffers. Texts and vectors
are those of bench/engine.py; the query's embedding is excluded.

*file* and *PostgreSQL* are the whole `Library.search`: catch up, retrieve, fuse, and ten hits presented. *plain SQL* is
one statement that returns ten ids, without row-level security: `ts_rank` over a GIN index with an OR of the words,
pgvector's HNSW over halfvec with `hnsw.iterative_scan = strict_order`, and for hybrid one after the other. *hits* is
how many of ten HNSW returned on average, *recall* how many of the ten nearest were among them.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import psycopg

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from commonplace.library import Library
from commonplace.model import Draft, Filter, Mode
from commonplace.settings import Settings
from corpus import Corpus, words_of
from engine_home import (
    COLLECTIONS,
    DIMS,
    ONE_PERCENT,
    ClusterEmbedder,
    Floats,
    _add_vectors,
    draft,
    query_vectors,
    vector_source,
)
from postgres_server import APP, OWNER, Server, _await, _who, start
from vectors import BLOCK, exact

WARM_UP, QUERIES, WRITES = 10, 100, 100


@dataclass(frozen=True)
class Row:
    """A line of the table, in milliseconds or seconds. What plain SQL was not asked is None."""

    name: str
    file: float
    served: float
    plain: float | None = None
    note: str = ""

    def __str__(self) -> str:
        plain = ("–", "–") if self.plain is None else (f"{self.plain:.1f}", f"{self.plain / self.served:.2f} ×")
        cells = (
            self.name,
            f"{self.file:.2f}",
            f"{self.served:.1f}",
            f"{self.served / self.file:.2f} ×",
            *plain,
            self.note,
        )
        return f"| {' | '.join(cells)} |"


def wall_ms(call: Callable[[Any], object], arguments: Sequence[Any]) -> float:
    times = []
    for number, argument in enumerate(arguments):
        began = time.perf_counter()
        call(argument)
        if number >= WARM_UP:
            times.append((time.perf_counter() - began) * 1000)
    return statistics.median(times)


def wall_s(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def durable_server() -> Server:
    """The server of the tests, started again without their haste."""
    server = start()
    server.kill()
    command = [
        str(server.bin / "postgres"), "-D", str(server.folder / "data"), "-p", str(server.port), "-h", "127.0.0.1",
        "-k", str(server.folder), "-c", "shared_buffers=256MB", "-c", "maintenance_work_mem=512MB",
        "-c", "max_wal_size=4GB",
    ]  # fmt: skip
    guarded = '"$@" & server=$!; cat > /dev/null; kill -QUIT $server; wait $server'
    with (server.folder / "log").open("ab") as log:
        process = subprocess.Popen(
            ["sh", "-c", guarded, "sh", *command],
            stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True, **_who(),
        )  # fmt: skip
    server = replace(server, process=process)
    _await(server)
    return server


class Plain:
    """The same texts and vectors as somebody would keep them who needs no more than SQL."""

    def __init__(self, url: str, corpus: Corpus, size: int) -> None:
        self._db = psycopg.connect(url, autocommit=True)
        self._corpus, self._size = corpus, size
        self.stored = wall_s(self._store)
        self.words = wall_s(lambda: self._db.execute("create index on passages using gin (words)"))
        near = "create index on passages using hnsw (vector halfvec_cosine_ops)"
        self.near = wall_s(lambda: self._db.execute(near))
        self._db.execute("create index on passages (parent)")
        self._db.execute("analyze passages")
        self._db.execute("set hnsw.iterative_scan = strict_order")

    def close(self) -> None:
        self._db.close()

    def _store(self) -> None:
        self._db.execute("create extension if not exists vector")
        self._db.execute(
            f"""create table passages (id bigint primary key, parent text not null, body text not null,
                  words tsvector generated always as (to_tsvector('english', body)) stored, vector halfvec({DIMS}))"""
        )
        source = vector_source(self._size, self._corpus.seed)
        with self._db.cursor() as cursor, cursor.copy("copy passages (id, parent, body, vector) from stdin") as copy:
            for number, count in source.blocks():
                for n, row in enumerate(source.block(number)[:count], start=number * BLOCK):
                    made = draft(n, self._corpus.passage(n))
                    copy.write_row((n, made.parent, f"{made.title}\n{made.body}", _written(row)))

    def lexical(self, query: str, parent: str | None = None) -> list[int]:
        where, values = self._among(parent)
        wanted = " or ".join(words_of(query))
        return self._ids(
            f"""select id from passages, websearch_to_tsquery('english', %(query)s) as wanted
                where words @@ wanted {where} order by ts_rank(words, wanted) desc limit 10""",
            {"query": wanted, **values},
        )

    def vector(self, query: Floats, parent: str | None = None) -> list[int]:
        where, values = self._among(parent)
        return self._ids(
            f"""select id from passages where true {where}
                order by vector <=> %(query)s::halfvec({DIMS}) limit 10""",
            {"query": _written(query), **values},
        )

    def put(self, number: int) -> None:
        row = np.zeros(DIMS)
        row[number % DIMS] = 1
        self._db.execute(
            "insert into passages (id, parent, body, vector) values (%s, 'writes', %s, %s)",
            (self._size + number, self._corpus.passage(number), _written(row)),
        )

    @staticmethod
    def _among(parent: str | None) -> tuple[str, dict[str, str]]:
        return ("and parent = %(parent)s", {"parent": parent}) if parent else ("", {})

    def _ids(self, query: str, values: dict[str, Any]) -> list[int]:
        return [identity for (identity,) in self._db.execute(query.encode(), values)]


def _written(row: Any) -> str:
    return "[" + ",".join(f"{value:.5g}" for value in row.astype(np.float64)) + "]"


class Bench:
    """All rows of a size."""

    def __init__(self, folder: Path, server: Server, corpus: Corpus, size: int) -> None:
        self._corpus, self._size = corpus, size
        count = WARM_UP + QUERIES
        self._short, self._long = corpus.short_queries(count, size), corpus.long_queries(count, size)
        self._vectors = query_vectors(count, corpus.seed)
        name = f"size{size}"
        server.create_database(name)
        server.execute("create extension vector", server.url("postgres", name))
        server.execute(f"grant create on schema public to {OWNER}", server.url("postgres", name))
        served = {"store": server.url(APP, name), "store_owner": server.url(OWNER, name)}
        self._libraries = [self._open(folder / f"file{size}"), self._open(folder / f"served{size}", **served)]
        self._other = self._open(folder / f"other{size}", **served)
        self._plain_url = server.url(OWNER, name)

    def _open(self, home: Path, **given: Any) -> Library:
        embedder = ClusterEmbedder(self._vectors)
        library = Library.open(home, settings=Settings(home=home, **given))
        library.embedding._opened = ((embedder.name, embedder),)
        return library

    def close(self) -> None:
        for library in (*self._libraries, self._other):
            library.close()

    def _each(self, measure: Callable[[Library], float]) -> tuple[float, float]:
        """Of the file and of PostgreSQL."""
        file, served = self._libraries
        return measure(file), measure(served)

    def rows(self) -> Iterator[Row]:
        yield from self._building()
        with closing(Plain(self._plain_url, self._corpus, self._size)) as plain:
            yield Row("make the indexes, s", *self._indexed, plain.words + plain.near, f"of it HNSW {plain.near:.0f}")
            yield from self._searching(plain)
            yield from self._writing(plain)

    def _building(self) -> Iterator[Row]:
        def drafts() -> Iterator[Draft]:
            return (draft(number, text) for number, text in enumerate(self._corpus.passages(self._size)))

        yield Row("store all, s", *self._each(lambda each: wall_s(lambda: each.put_many(drafts()))))
        embedder = ClusterEmbedder(self._vectors)

        def add_vectors(library: Library) -> float:
            return wall_s(lambda: _add_vectors(library, self._corpus, self._size, embedder))

        yield Row("store all vectors, s", *self._each(add_vectors))
        self._indexed = self._each(lambda each: wall_s(lambda: each.search(self._short[0])))

    def _searching(self, plain: Plain) -> Iterator[Row]:
        for filter, parent, suffix in ((Filter(), None, ""), (ONE_PERCENT, "p7", ", 1 % filter")):
            near, note = self._near(plain, parent)
            for name, queries in (("3 terms", self._short), ("long question", self._long)):
                words = self._words(plain, parent, queries)
                yield Row(f"lexical, {name}{suffix}", *self._both("lexical", filter, queries), words)
                ours = self._both("hybrid", filter, queries)
                yield Row(f"hybrid, {name}{suffix}", *ours, words + near, note if name == "3 terms" else "")

    def _both(self, mode: Mode, filter: Filter, queries: Sequence[str]) -> tuple[float, float]:
        return self._each(
            lambda each: wall_ms(lambda query: each.search(query, mode=mode, filter=filter, limit=10), queries)
        )

    @staticmethod
    def _words(plain: Plain, parent: str | None, queries: Sequence[str]) -> float:
        return wall_ms(lambda query: plain.lexical(query, parent), queries)

    def _near(self, plain: Plain, parent: str | None) -> tuple[float, str]:
        spent = wall_ms(lambda query: plain.vector(query, parent), list(self._vectors))
        found = [plain.vector(query, parent) for query in self._vectors[:QUERIES]]
        note = f"HNSW: {spent:.1f} ms, hits {np.mean([len(each) for each in found]):.1f}"
        wanted = self._nearest(parent)
        shared = [len(set(one) & set(other)) / 10 for one, other in zip(found, wanted, strict=True)]
        return spent, f"{note}, recall {np.mean(shared):.2f}"

    def _nearest(self, parent: str | None) -> list[list[int]]:
        source, queries = vector_source(self._size, self._corpus.seed), self._vectors[:QUERIES]
        if parent is None:
            return [[int(item) - 1 for item in row] for row in exact(source, queries)]
        blocks = [source.block(number)[:count] for number, count in source.blocks()]
        mine = np.arange(int(parent[1:]), self._size, COLLECTIONS)
        rows = np.concatenate(blocks).astype(np.float32)[mine]
        return [mine[np.argsort(-(rows @ query))[:10]].tolist() for query in queries]

    def _writing(self, plain: Plain) -> Iterator[Row]:
        def put(library: Library, number: int) -> None:
            library.put(draft(self._size + number, self._corpus.passage(number), "writes"))

        def after_write(writer: Library, reader: Library) -> float:
            reader.search("warm", mode="lexical")
            times = []
            for number in range(WARM_UP + 30):
                put(writer, 10_000 + number)
                query = self._short[number]
                times.append(wall_s(lambda query=query: reader.search(query, mode="lexical")) * 1000)
            return statistics.median(times)

        numbers = range(WARM_UP + WRITES)
        ours = self._each(lambda each: wall_ms(lambda number: put(each, number), numbers))
        yield Row("store one", *ours, wall_ms(plain.put, numbers), "plain SQL: with its vector, into HNSW")
        yield Row("read one", *self._each(lambda each: wall_ms(lambda _: each.get("docs://p7/7.txt"), numbers)))
        file, served = self._libraries
        late = after_write(served, self._other)
        yield Row("search after a write", after_write(file, file), late, note="PostgreSQL: one of another server")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[20_000])
    parser.add_argument("--text", type=Path, help="a folder of prose to use instead")
    given = parser.parse_args()
    corpus, server = Corpus(given.text), durable_server()
    try:
        for size in given.sizes:
            print(f"\n{size:,} passages\n")
            print("| ms | file | PostgreSQL | of the file's | plain SQL | of ours | |\n|---|---|---|---|---|---|---|")
            with tempfile.TemporaryDirectory() as folder, closing(Bench(Path(folder), server, corpus, size)) as bench:
                for row in bench.rows():
                    print(row, flush=True)
    finally:
        server.stop()


if __name__ == "__main__":
    main()
