"""Another model for a library: its vectors are made beside those that answer, and take their place in one step.

Whoever dies on the way leaves the old model answering: one transaction names the new one, once it has every vector and
an index of them, and only then are the old vectors dropped. Vectors that were made stay: the next run goes on there.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass

from commonplace.errors import Command, InvalidInput, StorageFull
from commonplace.ingest.automatic import AutomaticVectors
from commonplace.ingest.embedding import Embedding, Next, Progress, vector_fingerprint
from commonplace.ingest.library_status import Coverage
from commonplace.store.base import Store
from commonplace.store.chunks import Chunks
from commonplace.store.embeddings import Embeddings
from commonplace.store.rows import Model

_ROW = 100
"""Bytes of a vector beside its numbers: keys, a change in the log, an id in the index."""
MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a switch, known before it begins."""

    passages: int
    """Passages that have to be embedded."""
    made: int
    """Passages that have been embedded already, by a switch that was stopped."""
    bytes_new: int
    bytes_old: int
    """Bytes that are free again when it is done."""
    bytes_free: int

    def require_room(self) -> None:
        if self.bytes_new > self.bytes_free:
            raise StorageFull(
                f"The new vectors need about {self.bytes_new // MEGABYTE + 1} MB beside the old ones, and "
                f"{self.bytes_free // MEGABYTE} MB are free. Make room, then try again."
            )


class Switch:
    """A way from the model that answers to another. There is one for each switch."""

    def __init__(self, store: Store, embedding: Embedding, name: str, *, by_hand: bool = True) -> None:
        """Open the model: one that is not there is refused before anything is done.

        `by_hand`: a person asked for it, so that no other takes its place unasked.
        """
        if not name.strip():
            raise InvalidInput("The model has no name. `", Command("models list"), "` says which there are.")
        self._store, self._embedding, self.name, self._by_hand = store, embedding, name, by_hand
        self._embedder = embedding.open(name)

    @property
    def is_needed(self) -> bool:
        """Return whether there are vectors of another model that answer now."""
        serving = self._serving()
        return serving is not None and serving.fingerprint != vector_fingerprint(self._embedder)

    def cost(self) -> Cost:
        serving, total = self._serving(), self._store.drawer(Chunks).total()
        model = self._store.drawer(Embeddings).model(vector_fingerprint(self._embedder))
        embedded = self._store.drawer(Embeddings).total(model.id) if model else 0
        old = self._store.drawer(Embeddings).total(serving.id) * _bytes(serving.dims) if serving else 0
        folder = self._embedding.folder
        free = shutil.disk_usage(next(place for place in (folder, *folder.parents) if place.exists())).free
        return Cost(total - embedded, embedded, (total - embedded) * _bytes(self._embedder.dims), old, free)

    def run(self, progress: Progress | None = None, *, patient: bool = True) -> int:
        """Make the vectors, put them in place, drop the old ones, and return how many were made.

        Where the model answers already this makes what it lacks, and ends a switch to another. Raise AlreadyEmbedding
        where another process is at it.
        """
        embedding = self._embedding
        with embedding.exclusive(patient=patient):
            model = embedding.model_for(self._embedder)
            embedding.note_next(Next(self.name, model.fingerprint) if self.is_needed else None)
            serving = embedding.serving()
            if self._by_hand or (serving and serving.position):
                count = embedding.fill(model, progress)
            else:  # nobody has asked for the vectors of documents yet
                count = AutomaticVectors(self._store, embedding).fill(model, progress)
            embedding.put_in_place(self.name, model, by_hand=self._by_hand)
            embedding.drop_others(model)
        return count

    def _serving(self) -> Model | None:
        serving = self._embedding.serving()
        return serving if serving and self._store.drawer(Embeddings).total(serving.id) else None


def switching(store: Store, embedding: Embedding) -> Coverage | None:
    """Return how far a library is on its way to another model; None where it is on no such way."""
    coming = embedding.next
    if coming is None:
        return None
    model = store.drawer(Embeddings).model(coming.fingerprint)
    return Coverage(coming.name, store.drawer(Embeddings).total(model.id) if model else 0, store.drawer(Chunks).total())


def _bytes(dims: int) -> int:
    """Return the bytes of a vector in the store and in its index, in half precision, and of its code."""
    return 4 * dims + dims // 8 + _ROW
