"""What is remembered: items that get their vectors without anybody asking, which are all but documents.

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


class Kept:
    """Made once per library, or for one run: it remembers how far in the log everything kept has its vectors."""

    def __init__(self, store: Store, embedding: Embedding) -> None:
        self._store, self._embedding = store, embedding
        self._level = ("", 0)  # a log and a model, and the change up to which that has the vectors

    def since(self, after: int, most: int = WALKED, *, without: frozenset[str] = OTHERS) -> tuple[list[int], int]:
        """Return the ids of items that the next `most` changes wrote, and the last change of these.

        `without`: kinds that are left out.
        """
        changes = self._store.changes(after, most)
        ids = sorted({change.item_id for change in changes if change.op == "put"})
        kept = [item.id for item in self._store.items(ids) if item.kind not in without] if ids else []
        return kept, changes[-1].seq if changes else after

    def fill(self, model: Model | None, progress: Progress | None = None) -> int:
        """Make the vectors they lack, for who is exclusive; returns how many. Without a model the first is chosen.

        Each step is kept as soon as it is made, and where nothing is kept no model is chosen.
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
        """A backup that was restored, or another model, begins anew."""
        key, reached = self._level
        return reached if key == self._key(model) and reached <= self._store.last_change() else 0

    def _key(self, model: Model | None) -> str:
        return f"{self._store.log} {model.fingerprint if model else ''}"
