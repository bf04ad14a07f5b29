"""The vectors of one model in the store, as an index follows them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from commonplace.index.scope import Ids
from commonplace.model import Change
from commonplace.store.base import Store


class StoredVectors:
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
