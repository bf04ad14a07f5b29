"""Making vectors and summaries for entries: after the write and within bounds, or before it and without excuses."""

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
"""What a provider may raise, its own library's errors included. A write that is durable must not fail for it."""

REST_S = 30.0
"""How long a provider that failed is left alone."""


class Ahead:
    """What was made before a write and waits for it."""

    def __init__(
        self,
        store: Store,
        vectors: tuple[Model, list[tuple[bytes, bytes]]] | None = None,
        summaries: Sequence[str] = (),
    ) -> None:
        self._store, self._vectors, self._summaries = store, vectors, tuple(summaries)

    def summarised(self, writes: Sequence[Write]) -> list[Write]:
        """The same writes with their summaries, where any were made."""
        if not self._summaries:
            return list(writes)
        pairs = zip(writes, self._summaries, strict=True)
        return [_with_summary(write, summary) if summary else write for write, summary in pairs]

    def keep(self) -> None:
        """Store the vectors, in the transaction that has stored their passages."""
        if self._vectors is not None:
            self._store.add_vectors(*self._vectors)


def _with_summary(write: Write, summary: str) -> Write:
    return replace(write, draft=replace(write.draft, fields={**write.draft.fields, "summary": summary}))


class Generation:
    """Whatever fails here never fails a store, except where the setting says that it should."""

    def __init__(self, store: Store, embedding: Embedding, settings: Settings) -> None:
        self._store, self._embedding = store, embedding
        self.summaries = Summaries(store, settings)
        self.enabled = settings.memory_embedding
        self.strict = settings.memory_generation == "strict"
        self._resting_until = 0.0

    def after(self, item_ids: Sequence[int]) -> set[int]:
        """Embed what was just stored. Returns the items that have all their vectors; the rest is left for later."""
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
        """In strict mode the vectors and summaries of what is about to be stored; nothing otherwise."""
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
        """Queue the summaries of items that were just stored, by their texts. Inside their transaction."""
        if not self.strict:
            self.summaries.queue([item_id for item_id, text in texts.items() if self.summaries.wants(text)])


def _failed(failures: Mapping[str, Exception], *, batch: bool) -> GenerationFailed:
    said = []
    for what, error in failures.items():
        log.info("Nothing is stored: %s", error)
        reason = str(error) if isinstance(error, CommonplaceError) else "the model failed; the log says how"
        said.append(f"{what}: {reason.rstrip('.')}" if len(failures) > 1 else f"{what}: {reason}")
    sentence = f"Generation failed after exhausting configured retries: {'; '.join(said)}"
    return GenerationFailed(f"{sentence.rstrip('.')}. No data was saved." if batch else sentence)
