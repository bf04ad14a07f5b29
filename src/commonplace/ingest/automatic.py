"""Vectors that are made without anybody asking: those of all items but documents and rows of tables.

Documents get their first vectors by a command that says so, and rows of tables by the jobs that make them.
"""

from __future__ import annotations

from commonplace.ingest.embedding import BATCH, Embedding, Progress
from commonplace.store.base import Store
from commonplace.store.rows import Model

WALKED = 500
"""Changes looked at in one step."""
OTHERS = frozenset({"document", "table", "collection"})
"""Kinds that do not belong here."""


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
        item_ids = [item.id for item in self._store.items(ids) if item.kind not in without] if ids else []
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
                pending = self._store.lacking(model, ids)
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
