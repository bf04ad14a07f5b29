"""The vectors of one model in the store, as an index follows them, and the passages that lack one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from commonplace.index.scope import Ids
from commonplace.ingest.library_status import Coverage
from commonplace.model import Change, Chunk
from commonplace.store.base import Store
from commonplace.store.chunks import Chunks
from commonplace.store.embeddings import Embeddings
from commonplace.store.items import Items
from commonplace.store.rows import Model

MOST_WALKED = 1000
"""Changes that a new process may have to walk before its first search."""


class StoredVectors:
    """The store as the vector index sees it: the log, and the vectors of one model."""

    def __init__(self, store: Store, model_id: int, dims: int) -> None:
        self._store, self._model_id, self._dims = store, model_id, dims

    def last_change(self) -> int:
        return self._store.last_change()

    def changes(self, after: int, limit: int) -> list[Change]:
        return self._store.changes(after, limit)

    def vectors_of(self, item_ids: Sequence[int]) -> tuple[Ids, NDArray[np.float16]]:
        ids, vectors = self._store.drawer(Embeddings).vectors_of(self._model_id, item_ids)
        return ids, vectors if len(ids) else vectors.reshape(0, self._dims)


class Backlog:
    """The passages of a library without a vector. It remembers how far in the log there are none."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._level = ("", -1)
        """A cache key, and the change up to which every passage has a vector, as far as this process knows."""

    def coverage(self, name: str | None, model: Model | None) -> Coverage:
        """Return how many passages have a vector of the model, which is called `name`."""
        total = self._store.drawer(Chunks).total()
        if model is None:
            return Coverage(name, 0, total)
        chunks = self._recent(model)
        embedded = self._store.drawer(Embeddings).total(model.id) if chunks is None else max(0, total - len(chunks))
        return Coverage(name, embedded, total)

    def documents(self, model: Model | None, parents: Sequence[str] = ()) -> int:
        """Return how many documents, of these collections where any are named, have a passage without a vector."""
        chunks = self._recent(model) if model else None
        if chunks is None:
            return self._store.drawer(Embeddings).documents_lacking(model.id if model else None, parents)
        items = self._store.drawer(Items).get(sorted({chunk.item_id for chunk in chunks}))
        return sum(item.kind == "document" and (not parents or item.parent in parents) for item in items)

    def chunks(self, model: Model, most: int) -> tuple[list[Chunk], int]:
        """Return at most `most` passages without a vector, and the change up to which they were looked for."""
        return self._store.drawer(Embeddings).unembedded(model, self._reached(model), most)

    def is_empty(self, model: Model) -> bool:
        """Return whether every passage has a vector of the model."""
        pending, reached = self.chunks(model, 1)
        if not pending:
            self.note_empty(model, reached)  # whoever asks next need not walk there again
        return not pending

    def is_known_empty(self, model: Model, last: int) -> bool:
        """Return whether this process knows, without asking the store, that all is there up to the change `last`."""
        return self._level == (self._cache_key(model), last)

    def note_empty(self, model: Model, reached: int) -> None:
        """Remember that every passage up to the change `reached` has a vector of the model."""
        self._level = self._cache_key(model), reached

    def _recent(self, model: Model) -> list[Chunk] | None:
        """Return the passages without a vector, read off the end of the log; None where they are many or that is long.

        Counting instead looks at every passage there is.
        """
        if self._store.last_change() - model.position > MOST_WALKED:
            return None
        pending, _ = self._store.drawer(Embeddings).unembedded(model, model.position, MOST_WALKED + 1)
        return pending if len(pending) <= MOST_WALKED else None

    def _reached(self, model: Model) -> int:
        last, (key, reached) = self._store.last_change(), self._level
        is_valid = key == self._cache_key(model) and reached <= last
        return max(model.position, reached) if is_valid else model.position

    def _cache_key(self, model: Model) -> str:
        """Return a name of this log and this model.

        `_level` is valid for this pair alone: restoring a backup changes the log's id.
        """
        return f"{self._store.log} {model.fingerprint}"
