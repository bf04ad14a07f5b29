"""The vectors of a space: the model that makes them, the making, and the index of them."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from commonplace.errors import Command, InvalidInput, NotFound, Unavailable
from commonplace.index.followers import MakeVectors, NearIndex
from commonplace.index.vectors.vector_index import VectorIndex
from commonplace.ingest.embed_lock import Pace, embed_lock
from commonplace.ingest.library_status import Coverage
from commonplace.ingest.model_vectors import MOST_WALKED, Backlog, StoredVectors
from commonplace.ingest.prepare import RULES, embedded_text, vector_key
from commonplace.ingest.suited import first_choice
from commonplace.model import JSON, Chunk, Filter, fingerprint
from commonplace.models import check_model, open_embedder
from commonplace.models.hurry import hurried
from commonplace.models.roles import Embedder
from commonplace.settings import BadSetting, Settings
from commonplace.store.base import Store
from commonplace.store.chunks import Chunks
from commonplace.store.embeddings import Embeddings
from commonplace.store.items import Items
from commonplace.store.listing import Listing
from commonplace.store.rows import Model, Passage
from commonplace.store.stored_settings import StoredSettings

Progress = Callable[[int, int], None]
"""Called with (done, total)."""

BATCH, LARGE_BATCH, QUICK_S = 32, 256, 0.05
"""Passages per durable step: more of them where a model is so quick that keeping them is most of the work."""
FIRST_S = 10.0
"""Seconds a search waits at most for a provider that has not been heard of before; who can do without waits less."""
_ON_THE_SPOT_S = 0.3
_SERVING, _NEXT, _BY_HAND = "model", "next_model", "model_by_hand"
"""The store's settings for the model that answers, for the one whose vectors are being made to take its place, and for
whether a person has chosen."""


@dataclass(frozen=True, slots=True)
class Next:
    """The model a library is on its way to."""

    name: str
    fingerprint: str


class Embedding:
    """The vectors of one library, and the model that makes them.

    The model is chosen by the first embedding and kept until another one takes its place.
    """

    def __init__(self, store: Store, folder: Path, settings: Settings, make: MakeVectors | None = None) -> None:
        """Take `make` as what makes an index of vectors, where it is not the local one."""
        self._store, self._folder, self._settings = store, folder, settings
        self._vectors, self._kept = store.drawer(Embeddings), store.drawer(StoredSettings)
        self._make: MakeVectors = make or VectorIndex
        self._opened: tuple[tuple[str, Embedder], ...] = ()
        self._index: tuple[str, NearIndex] | None = None
        self._backlog = Backlog(store)
        self.pace = Pace(folder.with_name("embed.json"))
        """The pace at which vectors are made, by whichever process."""

    @property
    def chosen(self) -> str | None:
        """Return the model this library's vectors are made with; None before the first embedding."""
        name = self._kept.get(_SERVING)
        return str(name) if name else None

    @property
    def is_settled(self) -> bool:
        """Return whether somebody has chosen the model, so that none takes its place unasked."""
        return bool(self._settings.model) or self._kept.get(_BY_HAND) is True

    @property
    def next(self) -> Next | None:
        """Return the model this library is on its way to; None where it stays with the one it has."""
        record = self._kept.get(_NEXT)
        return Next(str(record["name"]), str(record["fingerprint"])) if isinstance(record, dict) else None

    def embedder(self) -> Embedder:
        """Return the model in use, or the one that the first embedding would use."""
        return self.open(self.chosen) if self.chosen else self._open_first()

    def open(self, name: str) -> Embedder:
        """Return the model of a name. Two are kept: the one that answers, and the one that is to take its place."""
        embedder = next((opened for opened_name, opened in self._opened if opened_name == name), None)
        if embedder is None:
            settings = self._settings
            embedder = open_embedder(name, settings.models, threads=settings.threads, settings=settings)
            self._opened = (*self._opened[-1:], (name, embedder))
        return embedder

    def _open_first(self) -> Embedder:
        """Return the model that the first embedding would use. Raise BadSetting where the one that is set is none."""
        try:
            return self.open(first_choice(self._store, self._settings))
        except (NotFound, InvalidInput) as error:
            if not self._settings.model:
                raise
            raise BadSetting(f"model cannot be {self._settings.model!r}. {error}") from error

    def ready(self) -> tuple[NearIndex, Embedder]:
        """Return the index, level with the log, and its model.

        Raise Unavailable when there are no vectors to search.
        """
        chosen = self.chosen
        while True:
            with hurried(FIRST_S):
                pair = self._answering(chosen)
            now = self.chosen
            if now == chosen:
                break
            chosen = now  # another process has put another model in its place, and dropped the vectors of this one
        if pair is None:
            words = ("There are no vectors yet; `", Command("embed"), "` makes them.")
            raise Unavailable(*words, code="vector_index_missing")
        return pair

    def _answering(self, chosen: str | None) -> tuple[NearIndex, Embedder] | None:
        try:
            embedder = self.open(chosen) if chosen else None
        except NotFound as gone:  # it was there when it was chosen
            raise Unavailable(str(gone)) from gone
        model = self._vectors.model(vector_fingerprint(embedder)) if embedder else None
        if embedder is None or model is None:
            return None
        last = self._store.last_change()
        if not self._backlog.is_known_empty(model, last):
            self._embed_few(model)
            last = self._store.last_change()
        index = self._vector_index(model)
        if index.position() != last:  # behind the store, or ahead of one that was put back
            index.catch_up()
        return index, embedder

    def coverage(self) -> Coverage:
        """Return how many passages have a vector of the model in use."""
        return self._backlog.coverage(self.chosen, self.serving())

    def documents_lacking(self, parents: Sequence[str] = ()) -> int:
        """Return how many documents, of these collections where any are named, have a passage without a vector."""
        return self._backlog.documents(self.serving(), parents)

    def lacks_some(self) -> bool:
        """Return whether some passage has no vector of the model in use."""
        model = self._model()
        return model is None or not self._backlog.is_empty(model)

    def pending(self, most: int) -> list[Chunk] | None:
        """Return at most `most` passages without a vector of the model in use; None where no model is."""
        model = self.serving()
        return self._backlog.chunks(model, most)[0] if model else None

    @property
    def model_id(self) -> int | None:
        """Return the store's id of the model in use; None where there is none."""
        model = self.serving()
        return model.id if model else None

    @property
    def folder(self) -> Path:
        """Return the folder of this library's indexes."""
        return self._folder

    @property
    def is_loaded(self) -> bool:
        """Return whether this process holds a model. Asking loads none."""
        return bool(self._opened)

    def embed(self, progress: Progress | None = None, kind: str | None = None) -> int:
        """Make every missing vector, in small durable steps, and return how many. A killed run goes on where it was.

        With a kind, only those of its items.
        """
        with self.exclusive(patient=True):
            return self.embed_all(progress) if kind is None else self._embed_kind(kind, progress)

    def exclusive(self, *, patient: bool = False) -> AbstractContextManager[None]:
        """Return the lock of whoever makes vectors in bulk, one among all threads and processes.

        Entering it raises AlreadyEmbedding where another has it or, for who is `patient`, still has it after seconds.
        """
        return embed_lock(self._folder, patient=patient)

    def index(self) -> NearIndex | None:
        """Return the vector index as it is, or None where there are no vectors."""
        model = self.serving()
        return self._vector_index(model) if model else None

    def check(self) -> list[str]:
        """Return what is wrong with the vectors or with the model that makes them, every byte of both read."""
        problems, vectors, chosen = list[str](), self.index(), self.chosen
        if vectors is not None:
            vectors.catch_up()
            problems += vectors.check()
        return problems + check_model(chosen, self._settings) if chosen else problems

    def mean_of(self, *item_ids: int) -> NDArray[np.float32] | None:
        """Return the mean direction of the vectors of an item, or of several together; None where there are none."""
        model = self._model()
        _, vectors = self._vectors.vectors_of(model.id, item_ids) if model else (None, np.empty((0, 0), np.float16))
        if not len(vectors):
            return None
        mean = vectors.astype(np.float32).mean(axis=0)
        return np.asarray(mean / (np.linalg.norm(mean) or 1.0), dtype=np.float32)

    def embed_items(self, item_ids: Sequence[int], *, most: int, seconds: float) -> set[int]:
        """Make vectors that these items lack, within bounds. Return the items that have all of theirs now."""
        model = self._model() or self.first_model()
        pending = self._vectors.lacking(model, item_ids)
        began = time.monotonic()
        deadline, done, size = began + seconds, 0, BATCH
        while done < min(most, len(pending)) and began < deadline:
            done += self.embed_chunks(model, pending[done : min(done + size, most)])
            now = time.monotonic()
            size = min(2 * size, LARGE_BATCH) if now - began < QUICK_S else BATCH
            began = now
        return set(item_ids) - {chunk.item_id for chunk in pending[done:]}

    def make(self, passages: Sequence[Passage]) -> tuple[Model, list[tuple[bytes, bytes]]]:
        """Return vectors for passages that are not stored yet, by key, for `add_vectors` to keep when they are."""
        model = self._model() or self.first_model()
        unique = {passage.vector_key: passage.span for passage in passages}
        texts = [embedded_text("", span.headings, span.text) for span in unique.values()]
        vectors = self._maker(model).embed_passages(texts).astype(np.float16)
        return model, [(key, vector.tobytes()) for key, vector in zip(unique, vectors, strict=True)]

    def first_model(self) -> Model:
        """Return the model of the vectors to come. The first to be chosen stays chosen."""
        if self.chosen is None:
            vector_fingerprint(self._open_first())  # refuses a model that is not there before anybody counts on it
            self._kept.settle(_SERVING, first_choice(self._store, self._settings))
            if self._settings.model:
                self._kept.set(_BY_HAND, True)
        return self.model_for(self.embedder())

    def model_for(self, embedder: Embedder) -> Model:
        """Return the row that an embedder's vectors are kept under."""
        return self._vectors.add_model(vector_fingerprint(embedder), embedder.name, embedder.dims)

    def embed_all(self, progress: Progress | None = None) -> int:
        """Do as `embed` does, for a caller that has the lock already."""
        model = self.first_model()
        done = self.fill(model, progress)
        self.drop_others(model)
        self._vector_index(model).catch_up()
        return done

    def fill(self, model: Model, progress: Progress | None = None) -> int:
        """Make every vector that a model lacks, and return how many. Each step is kept as soon as it is made."""
        total = self._store.drawer(Chunks).total() - self._vectors.total(model.id)
        done, reached = 0, model.position
        try:
            while True:
                pending, following = self._vectors.unembedded(model, reached, BATCH)
                done += self.embed_chunks(model, pending) if pending else 0
                reached = following
                if not pending:
                    break
                self.pace.note(len(pending))
                if progress:
                    progress(min(done, total), total)
        finally:
            if reached != model.position:  # who goes on need not walk there again
                self._vectors.set_position(model, reached)
        return done

    def note_next(self, coming: Next | None) -> None:
        """Remember which model is to take the place of the one that answers, for `fill` to be gone on with."""
        record: JSON = {"name": coming.name, "fingerprint": coming.fingerprint} if coming else None
        self._kept.set(_NEXT, record)

    def put_in_place(self, name: str, model: Model, *, by_hand: bool) -> None:
        """Answer with this model from now on, in every process. Its index is made first, so that no search waits."""
        self._vector_index(model).catch_up()
        with self._store.transaction():
            self._kept.set(_SERVING, name)
            self._kept.set(_NEXT, None)
            if by_hand:
                self._kept.set(_BY_HAND, True)

    def _embed_kind(self, kind: str, progress: Progress | None) -> int:
        model, filter = self.first_model(), Filter(kinds=(kind,))
        done, after, walked, total = 0, 0, 0, len(self._store.drawer(Listing).select(filter))
        while items := self._store.drawer(Listing).scan(filter, after=after, limit=BATCH):
            after, walked = items[-1].id, walked + len(items)
            pending = self._vectors.lacking(model, [item.id for item in items])
            for start in range(0, len(pending), BATCH):
                done += self.embed_chunks(model, pending[start : start + BATCH])
            if progress:
                progress(walked, total)
        self._vector_index(model).catch_up()
        return done

    def _embed_few(self, model: Model) -> None:
        """Embed a handful of fresh chunks for the search that wants them. A bulk never holds a search up."""
        most = self._settings.embed_on_search
        pending, reached = self._backlog.chunks(model, most + 1)
        if len(pending) > most or not most:
            return
        deadline = time.monotonic() + _ON_THE_SPOT_S
        for start in range(0, len(pending), 8):
            seconds = deadline - time.monotonic()
            if seconds <= 0:
                return
            try:
                with hurried(seconds):
                    self.embed_chunks(model, pending[start : start + 8])
            except Unavailable:
                return  # a provider that is late or gone: what has vectors is searched, the rest waits
        self._backlog.note_empty(model, reached)
        if reached - model.position > MOST_WALKED:
            self._vectors.set_position(model, reached)

    def embed_chunks(self, model: Model, chunks: Sequence[Chunk]) -> int:
        """Make the vectors of some passages and keep them. Return how many passages there were.

        A passage that was renamed or removed since it was read is left out: its key may be that of another item by now,
        of a moved file for instance, whose vector would be made of other words for good.
        """
        titles = {item.id: item.title for item in self._store.drawer(Items).get([chunk.item_id for chunk in chunks])}
        texts = [embedded_text(titles.get(chunk.item_id, ""), chunk.headings, chunk.text) for chunk in chunks]
        pairs = list(zip(chunks, texts, strict=True))
        gone = self._gone([chunk for chunk, text in pairs if vector_key(text) != chunk.vector_key])
        text_by_key = {chunk.vector_key: text for chunk, text in pairs if chunk.id not in gone}
        if text_by_key:
            vectors = self._maker(model).embed_passages(list(text_by_key.values())).astype(np.float16)
            self._vectors.add(model, [(key, one.tobytes()) for key, one in zip(text_by_key, vectors, strict=True)])
        return len(chunks)

    def _gone(self, chunks: Sequence[Chunk]) -> set[int]:
        """Return the ids of those that are no more as they were read.

        A key that has stayed is one that older rules gave.
        """
        keys = {chunk.id: chunk.vector_key for chunk in self._store.drawer(Chunks).get([chunk.id for chunk in chunks])}
        return {chunk.id for chunk in chunks if keys.get(chunk.id) != chunk.vector_key}

    def _maker(self, model: Model) -> Embedder:
        """Return the embedder whose vectors these are; never another's, whatever other processes have chosen since."""
        for _, embedder in self._opened:
            if vector_fingerprint(embedder) == model.fingerprint:
                return embedder
        embedder = self.embedder()
        if vector_fingerprint(embedder) != model.fingerprint:
            raise Unavailable(f"The library has switched from {model.name} to {self.chosen} meanwhile. Try again.")
        return embedder

    def _model(self) -> Model | None:
        if self.chosen is None:
            return None
        return self._vectors.model(vector_fingerprint(self.embedder()))

    def serving(self) -> Model | None:
        """Return the model of the vectors that are there, also where its files are not."""
        try:
            return self._model()
        except (Unavailable, NotFound):
            coming = self.next.fingerprint if self.next else None
            return next((model for model in self._vectors.models() if model.fingerprint != coming), None)

    def _vector_index(self, model: Model) -> NearIndex:
        if self._index is None or self._index[0] != model.fingerprint:
            folder = self._folder / f"vectors-{model.fingerprint[:8]}"
            source = StoredVectors(self._store, model.id, model.dims)
            self._index = model.fingerprint, self._make(folder, source, model.dims, model.fingerprint)
        return self._index[1]

    def drop_others(self, serving: Model) -> None:
        """Forget the vectors of every other model, but for those that are on their way to take its place."""
        coming = self.next
        for model in self._vectors.models():
            if model.id != serving.id and not (coming and coming.fingerprint == model.fingerprint):
                self._vectors.drop_model(model.id)
                shutil.rmtree(self._folder / f"vectors-{model.fingerprint[:8]}", ignore_errors=True)


def vector_fingerprint(embedder: Embedder) -> str:
    """Return a hash of the model, its prefixes, and the rules by which text is cut for it.

    It guards against mixing vectors.
    """
    return fingerprint(embedder.fingerprint, RULES.version).hex()
