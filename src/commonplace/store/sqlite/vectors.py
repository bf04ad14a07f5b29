"""The store on SQLite: models and their vectors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from commonplace.model import Chunk
from commonplace.store.embeddings import Embeddings
from commonplace.store.rows import Model
from commonplace.store.sqlite.items import SqliteItems


class SqliteVectors(SqliteItems):
    """Models, and vectors by what was embedded."""

    def model(self, fingerprint: str) -> Model | None:
        return self.drawer(Embeddings).model(fingerprint)

    def models(self) -> list[Model]:
        return self.drawer(Embeddings).models()

    def add_model(self, fingerprint: str, name: str, dims: int) -> Model:
        return self.drawer(Embeddings).add_model(fingerprint, name, dims)

    def drop_model(self, model_id: int) -> None:
        self.drawer(Embeddings).drop_model(model_id)

    def unembedded(self, model: Model, after: int, limit: int) -> tuple[list[Chunk], int]:
        return self.drawer(Embeddings).unembedded(model, after, limit)

    def lacking(self, model: Model, item_ids: Sequence[int]) -> list[Chunk]:
        return self.drawer(Embeddings).lacking(model, item_ids)

    def add_vectors(self, model: Model, vectors: Sequence[tuple[bytes, bytes]]) -> None:
        self.drawer(Embeddings).add(model, vectors)

    def drop_vectors(self, model_id: int, item_ids: Sequence[int]) -> None:
        self.drawer(Embeddings).drop(model_id, item_ids)

    def set_position(self, model: Model, seq: int) -> None:
        self.drawer(Embeddings).set_position(model, seq)

    def vectors_of(self, model_id: int, item_ids: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.float16]]:
        return self.drawer(Embeddings).of(model_id, item_ids)

    def embedded_total(self, model_id: int) -> int:
        return self.drawer(Embeddings).total(model_id)

    def has_vectors(self, item_id: int) -> bool:
        return self.drawer(Embeddings).any_of(item_id)
