"""The vector side of a space: which model it uses, what still lacks a vector, and the index of what has one."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from commonplace.errors import Busy, Unavailable
from commonplace.index.files import room_on_disk
from commonplace.index.scope import Ids
from commonplace.index.vectors import VectorIndex
from commonplace.ingest.prepare import RULES, embedded_text
from commonplace.model import Change, Chunk, Filter, fingerprint, item_of
from commonplace.models import DEFAULT, STATIC, find, open_embedder
from commonplace.models.embedder import Embedder
from commonplace.settings import Settings
from commonplace.store.base import Store
from commonplace.store.rows import Model, Passage

Progress = Callable[[int, int], None]
"""Called with (done, total)."""

BATCH = 32
MOST_WALKED = 1000  # changes a new process may have to walk before its first search
_ON_THE_SPOT_S = 0.3


class AlreadyEmbedding(Busy):
    """Another process makes this library's vectors."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of a library has vectors, and of which model."""

    model: str | None
    embedded: int
    total: int

    @property
    def pending(self) -> int:
        return self.total - self.embedded


class _Source:
    """The store as the vector index sees it: the log, and the vectors of one model."""

    def __init__(self, store: Store, model_id: int, dims: int) -> None:
        self._store, self._model_id, self._dims = store, model_id, dims

    def last_change(self) -> int:
        return self._store.last_change()

    def changes(self, after: int, limit: int) -> list[Change]:
        return self._store.changes(after, limit)

    def vectors_of(self, item_ids: Sequence[int]) -> tuple[Ids, NDArray[np.float16]]:
        ids, vectors = self._store.vectors_of(self._model_id, item_ids)
        return ids, vectors if len(ids) else vectors.reshape(0, self._dims)


class Embedding:
    """Made once per library. The model is chosen by the first embedding and kept until `use` names another."""

    def __init__(self, store: Store, folder: Path, settings: Settings) -> None:
        self._store, self._folder, self._settings = store, folder, settings
        self._embedder: tuple[str | None, Embedder] | None = None
        self._index: tuple[str, VectorIndex] | None = None
        self._level_at = -1  # the change up to which nothing was left to embed, as far as this process knows

    @property
    def chosen(self) -> str | None:
        """The model this library's vectors are made with; None before the first embedding."""
        chosen = self._store.setting("model")
        return str(chosen) if chosen else None

    def use(self, name: str) -> None:
        """Make vectors with this model from now on. The next `embed` makes them; the old ones go when it is done."""
        open_embedder(name, self._settings.models, threads=self._settings.threads)  # refuses a model that is not there
        self._store.set_setting("model", name)
        self._embedder, self._index, self._level_at = None, None, -1

    def embedder(self) -> Embedder:
        """The model in use, or the one that the first embedding would use."""
        return self._open(self.chosen or self._settings.model or None)

    def _open(self, name: str | None) -> Embedder:
        opened = self._embedder
        if opened is None or opened[0] != name:  # another process may have chosen another
            opened = name, open_embedder(name, self._settings.models, threads=self._settings.threads)
            self._embedder = opened
        return opened[1]

    def ready(self) -> tuple[VectorIndex, Embedder]:
        """The index, level with the log, and its model. Raises Unavailable when there are no vectors to search."""
        chosen = self.chosen
        embedder = self._open(chosen) if chosen else None
        model = self._store.model(_fingerprint(embedder)) if embedder else None
        if embedder is None or model is None:
            raise Unavailable("there are no vectors yet; `commonplace embed` makes them", code="vector_index_missing")
        self._embed_few(model)
        index = self._vector_index(model)
        if index.position() != self._store.last_change():  # behind the store, or ahead of one that was put back
            index.catch_up()
        return index, embedder

    def coverage(self) -> Coverage:
        model = self._model_there()
        return Coverage(self.chosen, self._store.embedded_total(model.id) if model else 0, self._store.chunk_total())

    def documents_lacking(self, parents: Sequence[str] = ()) -> int:
        """How many documents, of these collections where any are named, have a passage without a vector."""
        model = self._model_there()
        return self._store.unembedded_documents(model.id if model else None, parents)

    def lacks_some(self) -> bool:
        """Whether some passage has no vector of the model in use."""
        model = self._model()
        if model is None:
            return True
        return bool(self._store.unembedded(model, max(model.position, self._level_at), 1)[0])

    def entries(self) -> tuple[int, int, int]:
        """Memory entries with vectors, their vectors, and entries that lack some."""
        model = self._model_there()
        return self._store.embedded_entries(model.id if model else 0)

    @property
    def folder(self) -> Path:
        """Where this library's indexes are."""
        return self._folder

    @property
    def is_loaded(self) -> bool:
        """Whether this process holds a model. Asking loads none."""
        return self._embedder is not None

    def embed(self, progress: Progress | None = None, kind: str | None = None) -> int:
        """Make every missing vector, in small durable steps; returns how many. A killed run goes on where it was.

        With a kind, only those of its items.
        """
        with self.exclusive():
            return self.embed_all(progress) if kind is None else self._embed_kind(kind, progress)

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Be the only one who makes vectors in bulk, among all threads and processes. Raises AlreadyEmbedding."""
        from filelock import FileLock, Timeout  # slow to load, and no search needs it

        lock = FileLock(self._folder.with_name("embed.lock"), timeout=0)
        try:
            with room_on_disk(self._folder):
                lock.acquire()
        except Timeout:
            raise AlreadyEmbedding(
                "Another process is embedding this library already. Its vectors will be here when it is done."
            ) from None
        try:
            yield
        finally:
            lock.release()

    def index(self) -> VectorIndex | None:
        """The vector index as it is, or None where there are no vectors."""
        model = self._model_there()
        return self._vector_index(model) if model else None

    def mean_of(self, item_id: int) -> NDArray[np.float32] | None:
        """The mean direction of an item's vectors, or None where it has none."""
        model = self._model()
        _, vectors = self._store.vectors_of(model.id, [item_id]) if model else (None, np.empty((0, 0), np.float16))
        if not len(vectors):
            return None
        mean = vectors.astype(np.float32).mean(axis=0)
        return np.asarray(mean / (np.linalg.norm(mean) or 1.0), dtype=np.float32)

    def embed_items(self, item_ids: Sequence[int], *, most: int, seconds: float) -> set[int]:
        """Make vectors that these items lack, within bounds. Returns those that have all of theirs now."""
        model = self._model() or self.first_model()
        pending = self._store.lacking(model, item_ids)
        deadline = time.monotonic() + seconds
        done = 0
        while done < min(most, len(pending)) and time.monotonic() < deadline:
            done += self.embed_chunks(model, pending[done : min(done + BATCH, most)])
        return set(item_ids) - {chunk.item_id for chunk in pending[done:]}

    def make(self, passages: Sequence[Passage]) -> tuple[Model, list[tuple[bytes, bytes]]]:
        """Vectors for passages that are not stored yet, by key, for `add_vectors` to keep when they are."""
        model = self._model() or self.first_model()
        unique = {passage.vector_key: passage.span for passage in passages}
        texts = [embedded_text("", span.headings, span.text) for span in unique.values()]
        vectors = self.embedder().embed_passages(texts).astype(np.float16)
        return model, [(key, vector.tobytes()) for key, vector in zip(unique, vectors, strict=True)]

    def first_model(self) -> Model:
        """The model of the vectors to come; the first to be chosen stays chosen."""
        embedder = self.embedder()
        model = self._store.add_model(_fingerprint(embedder), embedder.name, embedder.dims)
        if self.chosen is None:
            self._store.settle("model", self._settings.model or embedder.name)
        return model

    def embed_all(self, progress: Progress | None = None) -> int:
        """`embed` for who is exclusive already."""
        model = self.first_model()
        total = self._store.chunk_total() - self._store.embedded_total(model.id)
        done, reached = 0, model.position
        while True:
            pending, reached = self._store.unembedded(model, reached, BATCH)
            if not pending:
                break
            done += self.embed_chunks(model, pending)
            if progress:
                progress(min(done, total), total)
        self._store.set_position(model, reached)
        self._drop_others(model)
        self._vector_index(model).catch_up()
        return done

    def _embed_kind(self, kind: str, progress: Progress | None) -> int:
        model, asked = self.first_model(), Filter(kinds=(kind,))
        done, after, walked, total = 0, 0, 0, len(self._store.select(asked))
        while items := self._store.scan(asked, after=after, limit=BATCH):
            after, walked = items[-1].id, walked + len(items)
            pending = self._store.lacking(model, [item.id for item in items])
            for start in range(0, len(pending), BATCH):
                done += self.embed_chunks(model, pending[start : start + BATCH])
            if progress:
                progress(walked, total)
        self._vector_index(model).catch_up()
        return done

    def _embed_few(self, model: Model) -> None:
        """A handful of fresh chunks is embedded by the search that wants them; a bulk never holds a search up."""
        most = self._settings.embed_on_search
        pending, reached = self._store.unembedded(model, max(model.position, self._level_at), most + 1)
        if len(pending) > most or not most:
            return
        deadline = time.monotonic() + _ON_THE_SPOT_S
        for start in range(0, len(pending), 8):
            if time.monotonic() > deadline:
                return
            self.embed_chunks(model, pending[start : start + 8])
        self._level_at = reached
        if reached - model.position > MOST_WALKED:
            self._store.set_position(model, reached)

    def embed_chunks(self, model: Model, chunks: Sequence[Chunk]) -> int:
        """Make the vectors of some passages and keep them; returns how many passages there were."""
        unique = {chunk.vector_key: chunk for chunk in chunks}
        titles = {item.id: item.title for item in self._store.items([item_of(chunk.id) for chunk in unique.values()])}
        texts = [embedded_text(titles.get(chunk.item_id, ""), chunk.headings, chunk.text) for chunk in unique.values()]
        vectors = self.embedder().embed_passages(texts).astype(np.float16)
        self._store.add_vectors(model, [(key, vector.tobytes()) for key, vector in zip(unique, vectors, strict=True)])
        return len(chunks)

    def _model(self) -> Model | None:
        if self.chosen is None:
            return None
        return self._store.model(_fingerprint(self.embedder()))

    def _model_there(self) -> Model | None:
        """The model of the vectors that are there, also where its files are not."""
        try:
            return self._model()
        except Unavailable:
            return next((model for model in self._store.models() if model.name == self.chosen), None)

    def _vector_index(self, model: Model) -> VectorIndex:
        opened = self._index
        if opened is None or opened[0] != model.fingerprint:
            folder = self._folder / f"vectors-{model.fingerprint[:8]}"
            source = _Source(self._store, model.id, model.dims)
            opened = model.fingerprint, VectorIndex(folder, source, model.dims, model.fingerprint)
            self._index = opened
        return opened[1]

    def _drop_others(self, kept: Model) -> None:
        for model in self._store.models():
            if model.id != kept.id:
                self._store.drop_model(model.id)
                shutil.rmtree(self._folder / f"vectors-{model.fingerprint[:8]}", ignore_errors=True)


def better_model(chosen: str | None, settings: Settings) -> str | None:
    """The model that would find more than the one in use, if there is one."""
    if chosen not in (None, STATIC) or (chosen is None and (settings.model or find(DEFAULT, settings.models))):
        return None
    return DEFAULT


def _fingerprint(embedder: Embedder) -> str:
    """What guards against mixing vectors: the model, its prefixes, and the rules by which text is cut for it."""
    return fingerprint(embedder.fingerprint, RULES.version).hex()
