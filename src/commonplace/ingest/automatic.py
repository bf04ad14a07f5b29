"""Vectors that are made without anybody asking: beside the calls, and a few with the write that wants them.

That is all items but documents and rows of tables. Documents get their first vectors by a command that says so, and
rows of tables by the jobs that make them.
"""

from __future__ import annotations

import logging
import threading
import time

from commonplace.ingest.embedding import BATCH, Embedding, Progress
from commonplace.ingest.suited import first_choice
from commonplace.models.providers.endpoint import is_provided
from commonplace.settings import Settings
from commonplace.store.base import Store
from commonplace.store.embeddings import Embeddings
from commonplace.store.items import Items
from commonplace.store.rows import Model

WALKED = 500
"""Changes looked at in one step."""
OTHERS = frozenset({"document", "table", "collection"})
"""Kinds that do not belong here."""
log = logging.getLogger(__name__)
MOST_S = 0.3
"""Seconds a write waits for vectors at most, beyond a step that has begun; the rest is made in the background."""
STEP = 4
"""Passages between two looks at the clock: the default model takes about a fifth of a second for so many long ones."""
BY_THEMSELVES = frozenset({"memory", "table"})
"""Kinds whose writes make their own vectors, and say whether they did."""
REST_S = 30.0
"""Seconds that a model that failed is left alone."""


class AutomaticVectors:
    """The maker of vectors that nobody asks for. It remembers how far in the log all of them are there.

    There is one for a library, or one for a run.
    """

    def __init__(self, store: Store, embedding: Embedding) -> None:
        self._store, self._embedding = store, embedding
        self._level = ("", 0)  # a log and a model, and the change up to which that has the vectors

    def since(self, after: int, most: int = WALKED, *, without: frozenset[str] = OTHERS) -> tuple[list[int], int]:
        """Return the ids of items that the next `most` changes wrote, and the last change of these.

        `without`: kinds that are left out.
        """
        changes = self._store.changes(after, most)
        ids = sorted({change.item_id for change in changes if change.op == "put"})
        item_ids = [item.id for item in self._store.drawer(Items).get(ids) if item.kind not in without] if ids else []
        return item_ids, changes[-1].seq if changes else after

    def fill(self, model: Model | None, progress: Progress | None = None) -> int:
        """Make the missing vectors, for a caller that has the lock, and return how many.

        Without a model the first is chosen. Each step is kept as soon as it is made. Where there is no such item no
        model is chosen.
        """
        reached, done = self._reached(model), 0
        while True:
            ids, following = self.since(reached)
            if following == reached:
                break
            if ids:
                model = model or self._embedding.first_model()
                pending = self._store.drawer(Embeddings).lacking(model, ids)
                for start in range(0, len(pending), BATCH):
                    step = pending[start : start + BATCH]
                    done += self._embedding.embed_chunks(model, step)
                    self._embedding.pace.note(len(step))
                    if progress:
                        progress(done, done + len(pending) - start - len(step))
            reached = following
            self._level = self._key(model), reached
        if done and (index := self._embedding.index()):
            index.catch_up()
        return done

    def _reached(self, model: Model | None) -> int:
        """Return the change to go on after. A backup that was restored, or another model, begins anew."""
        key, reached = self._level
        return reached if key == self._key(model) and reached <= self._store.last_change() else 0

    def _key(self, model: Model | None) -> str:
        """Return (log id, model fingerprint) as text. `_level` is valid only for this pair."""
        return f"{self._store.log} {model.fingerprint if model else ''}"


class OnWrite:
    """The embedding of what a write has just brought.

    Threads may share it: one embeds, and the next finds what is left.
    """

    def __init__(self, store: Store, embedding: Embedding, automatic: AutomaticVectors, settings: Settings) -> None:
        self._store, self._embedding, self._automatic = store, embedding, automatic
        self._most = settings.embed_on_write if settings.memory_embedding else 0
        self._settings = settings
        self._one = threading.Lock()
        self._resting_until = 0.0

    def embed(self, after: int) -> None:
        """Make the vectors of what was written after a change, by a model on this machine. Never raises.

        What a provider would have to make is left to the background, and so is everything where there is much.
        """
        if not self._most or time.monotonic() < self._resting_until:
            return
        try:
            if self._store.last_change() != after:
                self._embed(after)
        except Exception as error:  # what is written is durable: whatever a model comes up with is no reason to fail
            log.info("What was written has no vectors for now: %s", error, exc_info=True)
            self._resting_until = time.monotonic() + REST_S

    def _embed(self, after: int) -> None:
        deadline = time.monotonic() + MOST_S
        if is_provided(self._embedding.chosen or first_choice(self._store, self._settings)):
            return
        most = 4 * self._most  # a change is a put or, for what has its vectors already, an embedding of it
        ids, reached = self._automatic.since(after, most, without=BY_THEMSELVES)
        if not ids:
            return
        serving = self._embedding.serving()
        if serving is None or not serving.position:  # nobody has had documents embedded
            ids, reached = self._automatic.since(after, most, without=BY_THEMSELVES | OTHERS)
        if not ids or (len(ids) > self._most) or reached - after >= most:
            return
        if not self._one.acquire(timeout=MOST_S):
            return
        try:
            self._embed_few(serving or self._embedding.first_model(), ids, deadline)
        finally:
            self._one.release()

    def _embed_few(self, model: Model, ids: list[int], deadline: float) -> None:
        pending = self._store.drawer(Embeddings).lacking(model, ids)
        if len(pending) > self._most:
            return
        for start in range(0, len(pending), STEP):
            if start and time.monotonic() >= deadline:
                return
            self._embedding.embed_chunks(model, pending[start : start + STEP])
