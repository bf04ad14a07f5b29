"""A log that others never stop writing to: a search gets what was there when it was asked, and waits for no more.

1. Catching up with words, and with vectors, ends.
2. What had been written before is in it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from commonplace.index.vectors.vector_index import VectorIndex
from commonplace.index.words.lexical_index import LexicalIndex
from commonplace.ingest.prepare import prepare
from commonplace.model import Change, Draft
from commonplace.store import SqliteStore
from commonplace.store.embeddings import Embeddings
from commonplace.store.items import Items


class Busy:
    """A store to which somebody writes whenever its log is looked at."""

    def __init__(self, store: SqliteStore) -> None:
        self._store, self._written = store, 0

    def changes(self, after: int, limit: int) -> list[Change]:
        self._written += 1
        assert self._written < 50, "it goes after the end of the log"
        self._store.drawer(Items).put([prepare(Draft("note", f"more {self._written}", body="more"))])
        return self._store.changes(after, limit)

    def vectors_of(self, item_ids: Any) -> Any:
        return self._store.drawer(Embeddings).vectors_of(1, item_ids)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


@pytest.fixture
def busy(sqlite: SqliteStore) -> Busy:
    sqlite.drawer(Items).put([prepare(Draft("note", str(number), body=f"pebble{number}")) for number in range(5)])
    return Busy(sqlite)


def test_catching_up_with_words_ends(busy: Busy, tmp_path: Path) -> None:
    index = LexicalIndex(tmp_path / "lexical", busy, "en")
    assert index.catch_up() >= 5
    assert index.catch_up() >= 6


def test_catching_up_with_vectors_ends(busy: Busy, tmp_path: Path) -> None:
    index = VectorIndex(tmp_path / "vectors", busy, 8, "f")
    assert index.catch_up() >= 5
