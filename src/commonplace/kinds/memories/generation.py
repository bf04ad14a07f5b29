"""Vectors and summaries of entries: made after the write, within bounds, or in strict mode before it."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from commonplace.errors import CommonplaceError
from commonplace.ingest.embedding import Embedding
from commonplace.kinds.memories.entry import GenerationFailed
from commonplace.kinds.memories.summaries import Summaries
from commonplace.models.hurry import hurried
from commonplace.settings import Settings
from commonplace.store.base import Store
from commonplace.store.rows import Model, Write

log = logging.getLogger(__name__)

MOST_CHUNKS = 64
MOST_S = 2.0
_FAILURES = (CommonplaceError, OSError, RuntimeError, ValueError)
"""Errors a provider may raise, its own library's included. A write that is durable must not fail because of one."""

REST_S = 30.0
"""Seconds for which a provider that failed is left alone."""


class Ahead:
    """Vectors and summaries that were made before a write and are stored with it."""

    def __init__(
        self,
        store: Store,
        vectors: tuple[Model, list[tuple[bytes, bytes]]] | None = None,
        summaries: Sequence[str] = (),
    ) -> None:
        self._store, self._vectors, self._summaries = store, vectors, tuple(summaries)

    def summarized(self, writes: Sequence[Write]) -> list[Write]:
        """Return the same writes with their summaries, where any were made."""
        if not self._summaries:
            return list(writes)
        pairs = zip(writes, self._summaries, strict=True)
        return [_with_summary(write, summary) if summary else write for write, summary in pairs]

    def keep(self) -> None:
        """Store the vectors. Call it in the transaction that has stored their passages."""
        if self._vectors is not None:
            self._store.add_vectors(*self._vectors)


def _with_summary(write: Write, summary: str) -> Write:
    return replace(write, draft=replace(write.draft, fields={**write.draft.fields, "summary": summary}))


class Generation:
    """A maker of vectors and summaries. No failure in it fails a store, except in strict mode."""

    def __init__(self, store: Store, embedding: Embedding, settings: Settings) -> None:
        self._store, self._embedding = store, embedding
        self.summaries = Summaries(store, settings)
        self.enabled = settings.memory_embedding
        self.strict = settings.memory_generation == "strict"
        self._resting_until = 0.0

    def after(self, item_ids: Sequence[int]) -> set[int]:
        """Embed items that were just stored, for at most `MOST_S` seconds.

        Return the items that have all their vectors; the others are left to background work.
        """
        if not self.enabled or not item_ids or time.monotonic() < self._resting_until:
            return set()
        try:
            with hurried(MOST_S):
                return self._embedding.embed_items(item_ids, most=MOST_CHUNKS, seconds=MOST_S)
        except _FAILURES as error:
            log.info("Memories are stored without vectors for now: %s", error)
            self._resting_until = time.monotonic() + REST_S
            return set()

    def before(self, writes: Sequence[Write], *, batch: bool) -> Ahead:
        """Return the vectors and summaries of writes to come in strict mode; nothing otherwise.

        Raise GenerationFailed where one of them cannot be made.
        """
        if not self.strict or not writes:
            return Ahead(self._store)
        failures: dict[str, Exception] = {}
        vectors, summaries = None, list[str]()
        try:
            passages = [passage for write in writes for passage in write.passages]
            vectors = self._embedding.make(passages) if self.enabled and passages else None
        except _FAILURES as error:
            failures["embedding"] = error
        try:
            summaries = [self._summary(write.draft.body) for write in writes]
        except _FAILURES as error:
            failures["summary"] = error
        if failures:
            raise _failed(failures, batch=batch)
        return Ahead(self._store, vectors, summaries if any(summaries) else ())

    def _summary(self, text: str) -> str:
        return self.summaries.make(text) if self.summaries.wants(text) else ""

    def later(self, texts: Mapping[int, str]) -> None:
        """Queue the summaries of items that were just stored, given as texts by item id.

        Call it in their transaction.
        """
        if not self.strict:
            self.summaries.queue([item_id for item_id, text in texts.items() if self.summaries.wants(text)])


def _failed(failures: Mapping[str, Exception], *, batch: bool) -> GenerationFailed:
    parts = []
    for kind, error in failures.items():
        log.info("Nothing is stored: %s", error)
        reason = str(error) if isinstance(error, CommonplaceError) else "the model failed; the log says how"
        parts.append(f"{kind}: {reason.rstrip('.')}" if len(failures) > 1 else f"{kind}: {reason}")
    sentence = f"Generation failed after exhausting configured retries: {'; '.join(parts)}"
    return GenerationFailed(f"{sentence.rstrip('.')}. No data was saved." if batch else sentence)
