"""The interface of a store. `sqlite/` and `postgres/` implement it; no SQL is known above this room."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from commonplace.model import JSON, Change, Chunk, Filter, IndexedItem, Item
from commonplace.store.rows import Job, Model, Moment, Write
from commonplace.store.session import D, StoreSession


class Store(Protocol):
    """A store of one space. Every method is safe from any thread; a write that has returned is durable."""

    @property
    def replaced(self) -> bool:
        """Return whether another process has put a backup in its place since it was opened.

        Indexes of the old log are not fit for the new one. Known as of the last call of `last_change`.
        """
        ...

    @property
    def log(self) -> str | None:
        """Return which log that call has seen. The numbers of changes mean something in their own log alone."""
        ...

    @property
    def session(self) -> StoreSession:
        """Return what its drawers speak to."""
        ...

    def close(self) -> None: ...

    def drawer(self, kind: type[D]) -> D:
        """Return the rows of one noun, by their class. It is opened when it is first asked for."""
        ...

    def transaction(self) -> AbstractContextManager[None]:
        """Make everything this thread writes inside the block durable together when it ends, or undo it when it raises.

        Blocks may be nested: an inner one that raises is undone alone.
        """
        ...

    # items

    def put(self, writes: Sequence[Write]) -> list[Item]:
        """Store all in one transaction, or none, and return their items. An unchanged one gets no change number."""
        ...

    def delete(self, item_ids: Sequence[int], expected_version: int | None = None) -> int:
        """Remove items with everything that hangs on them, vectors included, and return how many there were."""
        ...

    def item(self, kind: str, parent: str | None, key: str, *, body: bool = True) -> Item | None:
        """Return the item at an address, or None. A parent of None is any: raise NotFound where several match."""
        ...

    def items(self, item_ids: Sequence[int], *, body: bool = False) -> list[Item]:
        """Return the items of these ids that exist, in the order of the ids."""
        ...

    def scan(self, filter: Filter, *, after: int = 0, limit: int = 1000, body: bool = False) -> list[Item]:
        """Return matching items in id order, from just after an id: the way to walk all of them in bounded steps."""
        ...

    def chunks(self, chunk_ids: Sequence[int]) -> list[Chunk]:
        """Return the chunks of these ids that exist, in the order of the ids."""
        ...

    def chunks_of(self, item_id: int) -> list[Chunk]:
        """Return the chunks of an item in their order."""
        ...

    def heads(self, item_ids: Sequence[int], length: int) -> list[Item]:
        """Return the items of these ids that exist, in their order, each with the first characters of its body."""
        ...

    def last_item(self) -> int:
        """Return the largest item id ever given out."""
        ...

    # filters

    def select(self, filter: Filter) -> NDArray[np.int64]:
        """Return the ids of all matching items, ascending."""
        ...

    def ids_of(self, addresses: Sequence[tuple[str, str | None, str]]) -> list[int]:
        """Return the ids of the items at these (kind, parent, key) that exist; a parent of None stands for any."""
        ...

    def counts(self) -> dict[str, int]:
        """Return the number of items of each kind."""
        ...

    def parents(self, kind: str) -> dict[str, int]:
        """Return the number of items that each parent holds of a kind."""
        ...

    def chunk_total(self) -> int:
        """Return the number of chunks."""
        ...

    def matching(self, filter: Filter, item_ids: Sequence[int]) -> dict[int, int]:
        """Return when each of the items that match was created, in microseconds, by id."""
        ...

    def newest(
        self, filter: Filter, *, limit: int, after: Moment | None = None, upto: int | None = None
    ) -> list[Moment]:
        """Return matching items, newest first, then by id, descending; from just after one, up to the id `upto`."""
        ...

    def plan(self, filter: Filter) -> str:
        """Return the database's own description of how it would find the items that match, newest first."""
        ...

    def tags(self) -> dict[str, int]:
        """Return how many items have each tag, the commonest first. One spelling stands for those of any case."""
        ...

    # the log

    def last_change(self) -> int:
        """Return the number of the last change, 0 where there is none, and refresh `replaced` and `log`."""
        ...

    def changes(self, after: int, limit: int) -> list[Change]:
        """Return at most `limit` changes in order, from just after a number."""
        ...

    def indexed(self, item_ids: Sequence[int]) -> list[IndexedItem]:
        """Return the items of these ids that exist as an index reads them, by id."""
        ...

    # vectors

    def model(self, fingerprint: str) -> Model | None:
        """Return the model with this fingerprint, or None."""
        ...

    def models(self) -> list[Model]:
        """Return all models by id."""
        ...

    def add_model(self, fingerprint: str, name: str, dims: int) -> Model:
        """Return the model with this fingerprint, stored now unless there is one."""
        ...

    def drop_model(self, model_id: int) -> None:
        """Remove a model and all of its vectors."""
        ...

    def unembedded(self, model: Model, after: int, limit: int) -> tuple[list[Chunk], int]:
        """Walk the log from just after a change until about `limit` chunks without a vector are found, or it ends.

        Return the chunks, those of the oldest change first, and the change that the walk has reached.
        """
        ...

    def lacking(self, model: Model, item_ids: Sequence[int]) -> list[Chunk]:
        """Return the chunks of these items that have no vector of a model, in the order of the items."""
        ...

    def add_vectors(self, model: Model, vectors: Sequence[tuple[bytes, bytes]]) -> None:
        """Store vectors as (key, float16 bytes), and log an `embed` change for every item that gains one."""
        ...

    def drop_vectors(self, model_id: int, item_ids: Sequence[int]) -> None:
        """Remove the vectors of these items' passages, so that they count as lacking."""
        ...

    def set_position(self, model: Model, seq: int) -> None:
        """Raise the change up to which every chunk has a vector of a model."""
        ...

    def vectors_of(self, model_id: int, item_ids: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.float16]]:
        """Return the chunk ids of these items that have a vector of a model, and the vectors, one to a row."""
        ...

    def embedded_total(self, model_id: int) -> int:
        """Return the number of chunks that have a vector of a model."""
        ...

    def has_vectors(self, item_id: int) -> bool:
        """Return whether any passage of an item has a vector of any model."""
        ...

    # jobs, settings

    def enqueue(self, kind: str, payload: dict[str, JSON], delay_s: float = 0) -> int:
        """Store a job to be run after a delay in seconds, and return its id."""
        ...

    def claim(self, kind: str, lease_s: float) -> Job | None:
        """Return the job of a kind that has waited longest, leased for some seconds; None where nothing is due."""
        ...

    def finish(self, job: Job) -> None:
        """Remove a job that is done, unless its lease ran out and another has claimed it since."""
        ...

    def fail(self, job: Job, error: str, retry_s: float) -> None:
        """Put a job off for some seconds with what went wrong, unless another has claimed it since."""
        ...

    def job_total(self) -> int:
        """Return the number of jobs that are not finished."""
        ...

    def setting(self, name: str) -> JSON:
        """Return the value of a setting, or None."""
        ...

    def set_setting(self, name: str, value: JSON) -> None:
        """Set a setting."""
        ...

    def settle(self, name: str, value: JSON) -> JSON:
        """Set a setting unless it is set, and return its value: the same to every process that asks at once."""
        ...

    # care

    def backup(self, target: Path) -> None:
        """Write a consistent copy to a file, which takes its name only when it is complete and on disk."""
        ...

    def restore(self, source: Path) -> None:
        """Replace everything with the content of a backup, of a store of any kind, in one transaction."""
        ...

    def check(self) -> list[str]:
        """Return what is wrong with the store, one sentence each; nothing where it is sound."""
        ...

    def leftovers(self, *, drop: bool = False) -> dict[str, int]:
        """Return how many rows of each sort belong to nothing that is there, and with `drop` remove them."""
        ...

    def refresh_statistics(self) -> None:
        """Tell the query planner how much there is, at the end of a bulk write."""
        ...

    def vacuum(self) -> None:
        """Give room on disk back to the system."""
        ...

    def metrics(self) -> dict[str, JSON]:
        """Return this process's use of the database: connections, queries, transactions that failed."""
        ...
