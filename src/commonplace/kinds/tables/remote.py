"""The index of a table that a service holds: how much of a place it lacks, and why."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from commonplace.errors import Unavailable
from commonplace.index.base import Progress, ServiceIndex
from commonplace.ingest.embedding import Embedding
from commonplace.model import item_of
from commonplace.store.table_base import TableStore
from commonplace.store.table_rows import Nodes

MOST_FOLLOWED = 100_000
"""Changes that are searched for those of one place; with more, all of the place counts as pending."""


@dataclass(frozen=True, slots=True)
class Lack:
    """The chunks of one place that are still to be sent, those that were rejected, and a sentence about either."""

    pending: int = 0
    rejected: int = 0
    reason: str = ""


NOTHING = Lack()


class Remote:
    """The index that a service holds for one library."""

    def __init__(self, store: TableStore, index: ServiceIndex, embedding: Embedding) -> None:
        self._store, self.index, self._embedding = store, index, embedding

    def send(self, progress: Progress) -> None:
        """Send what the service lacks, with the vectors there are. Raise Unavailable where it does not take all."""
        model = self._embedding.serving()
        if model is not None:
            self.index.use(model.fingerprint, model.dims)
        self.index.catch_up(progress)
        if trouble := self.index.trouble():
            raise Unavailable(trouble)

    def lack(self, nodes: Nodes) -> Lack:
        """Return what the service has not acknowledged of some nodes."""
        refused = [(item_of(chunk), reason) for chunk, reason in self.index.refusals()]
        inside = np.isin(np.array([item for item, _ in refused], dtype=np.int64), nodes.items)
        reasons = [reason for (_, reason), is_inside in zip(refused, inside, strict=True) if is_inside]
        pending = self._pending(nodes)
        reason = self.index.trouble() if pending else ""
        return Lack(pending, len(reasons), reason or next(iter(reasons), ""))

    def _pending(self, nodes: Nodes) -> int:
        model, last = self._embedding.serving(), self._store.last_change()
        position = self.index.position_of(model.fingerprint) if model else self.index.position()
        if position >= last:
            return 0
        if last - position > MOST_FOLLOWED:
            return int(nodes.chunks.sum())
        changed = [change.item_id for change in self._store.changes(position, MOST_FOLLOWED)]
        return int(nodes.chunks[np.isin(nodes.items, np.array(changed, dtype=np.int64))].sum())
