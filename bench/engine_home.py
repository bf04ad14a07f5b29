"""A library to measure: one passage per item, a hundred collections, and a vector for every passage."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from commonplace.ingest.embedding import vector_fingerprint
from commonplace.ingest.prepare import embedded_text, vector_key
from commonplace.library import Library
from commonplace.model import Draft, Filter
from commonplace.settings import Settings
from commonplace.store.chunks import Chunks
from commonplace.store.embeddings import Embeddings
from commonplace.store.stored_settings import StoredSettings
from corpus import Corpus
from vectors import BLOCK, Clusters, Source

Floats = NDArray[np.float32]
T = TypeVar("T")
COLLECTIONS = 100
ONE_PERCENT = Filter(parents=("p7",))
DIMS = 384
_BUILT = "built.json"


class ClusterEmbedder:
    """An Embedder whose vectors were made beforehand, so that what is measured is the engine and never a model.

    The vectors say nothing about the texts: the two legs of a search hardly ever agree, which is the dearest case for
    fusion, since every candidate of one leg has to be scored by the other.
    """

    name = "bench-clusters"
    dims = DIMS
    fingerprint = "bench-clusters-1"
    related, unrelated, evidence, widens = 0.8, 0.65, 1.0, True
    languages = frozenset({"en"})

    def __init__(self, queries: Floats) -> None:
        self._queries, self._asked = queries, 0

    def warm(self) -> None:
        pass

    def embed_queries(self, texts: Sequence[str]) -> Floats:
        start, self._asked = self._asked, self._asked + len(texts)
        return self._queries[np.arange(start, self._asked) % len(self._queries)]

    def embed_passages(self, texts: Sequence[str], progress: object = None) -> Floats:
        return self.embed_queries(texts)

    def fertility(self, text: str) -> float:
        return 1.2


def vector_source(size: int, seed: int) -> Source:
    """Item n's vector, made again whenever it is asked for."""
    return Source(Clusters(seed, DIMS), size, seed)


def query_vectors(count: int, seed: int) -> Floats:
    return Clusters(seed, DIMS).queries(np.random.default_rng(seed + 1), count)


def open_library(home: Path, embedder: ClusterEmbedder) -> Library:
    """The library as anyone opens it, with the model it would have loaded put in its place."""
    library = Library.open(home, settings=Settings(home=home))
    library.embedding._opened = ((embedder.name, embedder),)
    return library


def draft(number: int, text: str, parent: str | None = None) -> Draft:
    return Draft(
        "document",
        f"{number}.txt",
        parent=parent or f"p{number % COLLECTIONS}",
        title=" ".join(text.split()[:5]),
        body=text,
    )


def build(home: Path, corpus: Corpus, size: int, embedder: ClusterEmbedder) -> dict[str, float]:
    """Fill a home, unless it was filled before; returns the CPU seconds of each part."""
    built = home / _BUILT
    if built.exists():
        kept: dict[str, float] = json.loads(built.read_text(encoding="utf-8"))
        return kept
    with open_library(home, embedder) as library:
        drafts = Spent(draft(number, text) for number, text in enumerate(corpus.passages(size)))
        seconds: dict[str, float] = {}
        seconds["put_many"] = cpu_s(lambda: library.put_many(drafts)) - drafts.seconds
        if library.store.drawer(Chunks).total() != size:
            raise SystemExit("A passage became more than one chunk: make them shorter.")
        seconds["lexical catch_up"] = cpu_s(library.lexical.catch_up)
        seconds["add_vectors"] = cpu_s(lambda: _add_vectors(library, corpus, size, embedder))
        seconds["vector catch_up"] = cpu_s(lambda: library.embedding.ready())
        library.lexical.catch_up()
    built.write_text(json.dumps(seconds), encoding="utf-8")
    return seconds


class Spent:
    """Drafts, and the CPU time that making them took, which is not the engine's."""

    def __init__(self, drafts: Iterator[Draft]) -> None:
        self._drafts, self.seconds = drafts, 0.0

    def __iter__(self) -> Iterator[Draft]:
        return self

    def __next__(self) -> Draft:
        start = time.process_time()
        try:
            return next(self._drafts)
        finally:
            self.seconds += time.process_time() - start


def _add_vectors(library: Library, corpus: Corpus, size: int, embedder: ClusterEmbedder) -> None:
    store = library.store
    model = store.drawer(Embeddings).add_model(vector_fingerprint(embedder), embedder.name, embedder.dims)
    source = vector_source(size, corpus.seed)
    for number, count in source.blocks():
        rows = source.block(number)[:count]
        drafts = (draft(n, corpus.passage(n)) for n in range(number * BLOCK, number * BLOCK + count))
        keys = (vector_key(embedded_text(made.title, (), made.body)) for made in drafts)
        store.drawer(Embeddings).add(model, [(key, row.tobytes()) for key, row in zip(keys, rows, strict=True)])
    store.drawer(Embeddings).set_position(model, store.last_change())
    store.drawer(StoredSettings).set("model", embedder.name)


def cpu_s(work: Callable[[], Any]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start
