"""The same texts and vectors in SQLite's own FTS5 and in sqlite-vec, to be measured beside ours."""

from __future__ import annotations

import time
from pathlib import Path

import apsw
import numpy as np

from corpus import Corpus, words_of
from engine_home import COLLECTIONS, DIMS, Floats, draft
from vectors import BLOCK, Source


class Fts5:
    """FTS5 as it is usually used: porter stems, BM25, an OR of the words, the best ten."""

    def __init__(self, path: Path, corpus: Corpus, size: int) -> None:
        self._db, fresh = _open(path)
        if fresh:
            seconds = 0.0
            self._db.execute(
                "create virtual table passages using fts5(text, parent unindexed, tokenize = 'porter unicode61')"
            )
            for start in range(0, size, 10_000):
                drafts = [draft(n, corpus.passage(n)) for n in range(start, min(size, start + 10_000))]
                rows = [(f"{made.title}\n{made.body}", made.parent) for made in drafts]
                began = time.process_time()
                with self._db:
                    self._db.executemany("insert into passages (text, parent) values (?, ?)", rows)
                seconds += time.process_time() - began
            self._db.execute("create table built (seconds real)")
            self._db.execute("insert into built values (?)", (seconds,))
        self.build_s = float(next(self._db.execute("select seconds from built"))[0])

    def search(self, query: str) -> list[int]:
        wanted = " OR ".join(f'"{word}"' for word in words_of(query))
        return [
            row
            for (row,) in self._db.execute(
                "select rowid from passages where passages match ? order by rank limit 10", (wanted,)
            )
        ]

    def search_one_percent(self, query: str) -> list[int]:
        wanted = " OR ".join(f'"{word}"' for word in words_of(query))
        return [
            row
            for (row,) in self._db.execute(
                "select rowid from passages where passages match ? and parent = 'p7' order by rank limit 10", (wanted,)
            )
        ]

    def insert(self, text: str) -> None:
        with self._db:
            self._db.execute("insert into passages (text, parent) values (?, 'bench-writes')", (text,))

    def forget_inserts(self) -> None:
        self._db.execute("delete from passages where parent = 'bench-writes'")


class SqliteVec:
    """sqlite-vec's flat scan over float32, cosine. `open_vec` gives None where the extension cannot be loaded."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db

    def search(self, query: Floats) -> list[int]:
        return [
            row
            for (row,) in self._db.execute(
                "select rowid from vectors where embedding match ? and k = 10", (query.astype(np.float32).tobytes(),)
            )
        ]

    def search_one_percent(self, query: Floats) -> list[int]:
        return [
            row
            for (row,) in self._db.execute(
                "select rowid from vectors where embedding match ? and k = 10 and parent = 'p7'",
                (query.astype(np.float32).tobytes(),),
            )
        ]


def open_vec(path: Path, source: Source) -> SqliteVec | None:
    try:
        import sqlite_vec  # an optional package

        db, fresh = _open(path)
        db.enable_load_extension(True)
        db.load_extension(sqlite_vec.loadable_path())
    except (ImportError, apsw.Error):
        return None
    if fresh:
        db.execute(
            f"create virtual table vectors using vec0(embedding float[{DIMS}] distance_metric=cosine, parent text)"
        )
        for number, count in source.blocks():
            rows = source.block(number)[:count].astype(np.float32)
            with db:
                db.executemany(
                    "insert into vectors (rowid, embedding, parent) values (?, ?, ?)",
                    [(n + 1, row.tobytes(), f"p{n % COLLECTIONS}") for n, row in enumerate(rows, start=number * BLOCK)],
                )
    return SqliteVec(db)


def _open(path: Path) -> tuple[apsw.Connection, bool]:
    fresh = not path.exists()
    db = apsw.Connection(str(path))
    db.execute("pragma journal_mode = wal; pragma synchronous = full")
    return db, fresh
