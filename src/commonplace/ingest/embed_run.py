"""Making the vectors of documents in batches: within a time, with second tries, and with an end to failures."""

from __future__ import annotations

import logging
import time
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from commonplace.batches import batches
from commonplace.errors import CommonplaceError, StorageBroken, StorageFull
from commonplace.ingest.embedding import BATCH, Embedding
from commonplace.model import Chunk, Filter
from commonplace.store.base import Store
from commonplace.store.embeddings import Embeddings
from commonplace.store.items import Items
from commonplace.store.listing import Listing
from commonplace.store.rows import Model

log = logging.getLogger(__name__)

LEAST_TRIED = 20
"""Passages that must have been tried before a share of failures says anything."""
_LOOKED_AT = 500

Progress = Callable[[int, int], None]
"""Called with (documents done, documents in all)."""


@dataclass(frozen=True, slots=True)
class EmbedLimits:
    """The bounds of a run: the size of a batch, the attempts, the seconds, and the share that may fail."""

    documents: int = 64
    bytes: int = 64 * 1024 * 1024
    attempts: int = 3
    seconds: float | None = 1800.0
    failures: float = 0.8


@dataclass(slots=True)
class EmbedOutcome:
    """The counts of what a run did, and why it ended early."""

    documents: int = 0
    passages: int = 0
    failed: int = 0
    """Passages that no attempt made a vector for."""
    late: bool = False
    """The time was up before the work was done."""
    hopeless: bool = False
    """Too much failed to go on."""
    reasons: list[str] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        return not (self.failed or self.late or self.hopeless)


def embed_documents(
    store: Store,
    embedding: Embedding,
    limits: EmbedLimits = EmbedLimits(),
    *,
    collections: Sequence[str] = (),
    anew: bool = False,
    progress: Progress | None = None,
) -> EmbedOutcome:
    """Make the vectors that documents lack, of these collections or of all; `anew` also those that are there.

    Each step is kept at once. Raise AlreadyEmbedding where another process is at it.
    """
    with embedding.exclusive(patient=True):
        return _Run(store, embedding, limits, collections, progress).run(anew)


class _Run:
    def __init__(
        self,
        store: Store,
        embedding: Embedding,
        limits: EmbedLimits,
        collections: Sequence[str],
        progress: Progress | None,
    ) -> None:
        self._store, self._embedding, self._limits = store, embedding, limits
        self._collections, self._progress = tuple(collections), progress
        self._deadline = time.monotonic() + limits.seconds if limits.seconds else None
        self._outcome = EmbedOutcome()

    def run(self, anew: bool) -> EmbedOutcome:
        model = self._embedding.first_model()
        filter = Filter(kinds=("document",), parents=self._collections)
        item_ids = self._store.drawer(Listing).select(filter).tolist()
        pending = item_ids if anew else self._pending(model, item_ids)
        sizes, limits = self._store.drawer(Items).body_sizes(pending), self._limits
        for batch in batches(pending, lambda item: sizes.get(item, 0), most=limits.documents, most_size=limits.bytes):
            if anew:  # batch by batch, so that a run that ends early has lost nothing it did not come to
                self._store.drawer(Embeddings).drop(model.id, batch)
            before = self._outcome.documents
            if not self._embed(model, self._store.drawer(Embeddings).lacking(model, batch), len(pending)):
                break
            self._outcome.documents = before + len(batch)
        if self._outcome.complete and not self._collections:
            self._embedding.embed_all()  # what is no document, and the note of how far it all got
        elif index := self._embedding.index():
            index.catch_up()
        return self._outcome

    def _pending(self, model: Model, item_ids: Sequence[int]) -> list[int]:
        pending: list[int] = []
        for start in range(0, len(item_ids), _LOOKED_AT):
            lacking = self._store.drawer(Embeddings).lacking(model, item_ids[start : start + _LOOKED_AT])
            pending += dict.fromkeys(chunk.item_id for chunk in lacking)
        return pending

    def _embed(self, model: Model, chunks: Sequence[Chunk], total: int) -> bool:
        """Embed these and return whether to go on after them. A document is done with its last passage."""
        before = self._outcome.documents
        ends = sorted({chunk.item_id: place for place, chunk in enumerate(chunks)}.values())
        for start in range(0, len(chunks), BATCH):
            if self._deadline is not None and time.monotonic() >= self._deadline:
                self._outcome.late = True
                return False
            step = chunks[start : start + BATCH]
            if not self._try(model, step):
                for chunk in step:
                    self._persist(model, chunk)
            self._embedding.pace.note(len(step))
            self._outcome.documents = before + bisect_left(ends, start + BATCH)
            if self._progress:
                self._progress(self._outcome.documents, total)
            tried = self._outcome.passages + self._outcome.failed
            if tried >= LEAST_TRIED and self._outcome.failed > self._limits.failures * tried:
                self._outcome.hopeless = True
                return False
        return True

    def _persist(self, model: Model, chunk: Chunk) -> None:
        """Embed one passage by itself, in the attempts left to it: the step it was in was the first."""
        for _ in range(self._limits.attempts - 1):
            if self._try(model, [chunk]):
                return
        self._outcome.failed += 1

    def _try(self, model: Model, chunks: Sequence[Chunk]) -> bool:
        try:
            self._outcome.passages += self._embedding.embed_chunks(model, chunks)
        except (StorageFull, StorageBroken):
            raise
        except CommonplaceError as error:
            self._note(str(error))
        except Exception as error:  # whatever a model may come up with costs these passages, and no others
            log.debug("Passages could not be embedded", exc_info=True)
            self._note(f"{type(error).__name__}: {error}")
        else:
            return True
        return False

    def _note(self, reason: str) -> None:
        if reason not in self._outcome.reasons and len(self._outcome.reasons) < 5:
            self._outcome.reasons.append(reason)
