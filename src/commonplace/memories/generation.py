"""Making vectors for entries: after the write and within bounds, or before it and without excuses."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

from commonplace.errors import CommonplaceError
from commonplace.ingest.embedding import Embedding
from commonplace.memories.entry import GenerationFailed
from commonplace.settings import Settings
from commonplace.store.base import Store
from commonplace.store.rows import Model, Write

log = logging.getLogger(__name__)

MOST_CHUNKS = 64
MOST_S = 2.0
_FAILURES = (CommonplaceError, OSError, RuntimeError, ValueError)
"""What a provider may raise, its own library's errors included. A write that is durable must not fail for it."""

REST_S = 30.0
"""How long a provider that failed is left alone."""


class Vectors:
    """Vectors that wait for their passages."""

    def __init__(self, store: Store, made: tuple[Model, list[tuple[bytes, bytes]]] | None = None) -> None:
        self._store, self._made = store, made

    def keep(self) -> None:
        """Store them, in the transaction that has stored their passages."""
        if self._made is not None:
            self._store.add_vectors(*self._made)


class Generation:
    """Whatever fails here never fails a store, except where the setting says that it should."""

    def __init__(self, store: Store, embedding: Embedding, settings: Settings) -> None:
        self._store, self._embedding = store, embedding
        self.enabled = settings.memory_embedding
        self.strict = settings.memory_generation == "strict"
        self._resting_until = 0.0

    def after(self, item_ids: Sequence[int]) -> set[int]:
        """Embed what was just stored. Returns the items that have all their vectors; the rest is left for later."""
        if not self.enabled or not item_ids or time.monotonic() < self._resting_until:
            return set()
        try:
            return self._embedding.embed_items(item_ids, most=MOST_CHUNKS, seconds=MOST_S)
        except _FAILURES as error:
            log.info("Memories are stored without vectors for now: %s", error)
            self._resting_until = time.monotonic() + REST_S
            return set()

    def before(self, writes: Sequence[Write], *, batch: bool) -> Vectors:
        """In strict mode the vectors of what is about to be stored; nothing otherwise."""
        passages = [passage for write in writes for passage in write.passages]
        if not (self.enabled and self.strict and passages):
            return Vectors(self._store)
        try:
            return Vectors(self._store, self._embedding.make(passages))
        except _FAILURES as error:
            log.info("Nothing is stored: %s", error)
            reason = str(error) if isinstance(error, CommonplaceError) else "the model failed; the log says how"
            sentence = f"Generation failed after exhausting configured retries: embedding: {reason}"
            raise GenerationFailed(f"{sentence.rstrip('.')}. No data was saved." if batch else sentence) from error
