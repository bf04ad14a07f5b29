"""What a store promises. SQLite implements it here; PostgreSQL will. No SQL dialect is known above this room."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from commonplace.model import JSON, Change, Chunk, Draft, Filter, IndexedItem, Item, Span


@dataclass(frozen=True, slots=True)
class Passage:
    """A span on its way into the store, with the key its vector will be kept under."""

    span: Span
    vector_key: bytes
    anchor: dict[str, JSON] | None = None


@dataclass(frozen=True, slots=True)
class Write:
    """One item to store. `expected_version` is the version to replace: 0 for "must be new", None for any."""

    draft: Draft
    passages: Sequence[Passage]
    language: str
    expected_version: int | None = None


@dataclass(frozen=True, slots=True)
class Model:
    """An embedder that has vectors here. `position` is the change up to which every chunk has one."""

    id: int
    fingerprint: str
    name: str
    dims: int
    position: int


@dataclass(frozen=True, slots=True)
class Attachment:
    hash: bytes
    media_type: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Job:
    id: int
    kind: str
    payload: dict[str, JSON]
    attempts: int


class Store(Protocol):
    """The truth. Every method is safe from any thread; a write that has returned is durable."""

    def close(self) -> None: ...

    # items
    def put(self, writes: Sequence[Write]) -> list[Item]:
        """Store all of them in one transaction, or none. One that would not change gets no change number."""
        ...

    def delete(self, item_ids: Sequence[int], expected_version: int | None = None) -> int:
        """Remove items with everything that hangs on them, vectors included; returns how many were there."""
        ...

    def item(self, kind: str, parent: str | None, key: str, *, body: bool = True) -> Item | None: ...
    def items(self, item_ids: Sequence[int], *, body: bool = False) -> list[Item]:
        """The items of these ids that exist, in the order asked for."""
        ...

    def scan(self, filter: Filter, *, after: int = 0, limit: int = 1000, body: bool = False) -> list[Item]:
        """Matching items in id order, from just after an id: the way to walk all of them in bounded steps."""
        ...

    def chunks(self, chunk_ids: Sequence[int]) -> list[Chunk]:
        """The chunks of these ids that exist, in the order asked for."""
        ...

    def chunks_of(self, item_id: int) -> list[Chunk]: ...

    # filters
    def select(self, filter: Filter) -> NDArray[np.int64]:
        """The ids of all matching items, ascending."""
        ...

    def counts(self) -> dict[str, int]:
        """How many items of each kind there are."""
        ...

    def parents(self, kind: str) -> dict[str, int]:
        """How many items of a kind each parent holds."""
        ...

    def chunk_total(self) -> int: ...

    # the log
    def last_change(self) -> int: ...
    def changes(self, after: int, limit: int) -> list[Change]: ...
    def indexed(self, item_ids: Sequence[int]) -> list[IndexedItem]: ...

    # vectors
    def model(self, fingerprint: str) -> Model | None: ...
    def models(self) -> list[Model]: ...
    def add_model(self, fingerprint: str, name: str, dims: int) -> Model: ...
    def drop_model(self, model_id: int) -> None: ...
    def unembedded(self, model: Model, after: int, limit: int) -> tuple[list[Chunk], int]:
        """Walk the log from just after a change until about `limit` chunks without a vector are found, or it ends.

        Returns the chunks, oldest change first, and the change the walk has reached.
        """
        ...

    def add_vectors(self, model: Model, vectors: Sequence[tuple[bytes, bytes]]) -> None:
        """Keep vectors by key and note an `embed` change for every item that gains one."""
        ...

    def set_position(self, model: Model, seq: int) -> None: ...
    def vectors_of(self, model_id: int, item_ids: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.float16]]: ...
    def embedded_total(self, model_id: int) -> int:
        """How many chunks have a vector of this model."""
        ...

    # attachments, jobs, settings
    def attach(self, item_id: int, attachments: Sequence[tuple[Attachment, dict[str, JSON]]]) -> None: ...
    def attachments_of(self, item_id: int) -> list[tuple[Attachment, dict[str, JSON]]]: ...
    def enqueue(self, kind: str, payload: dict[str, JSON], delay_s: float = 0) -> int: ...
    def claim(self, kind: str, lease_s: float) -> Job | None: ...
    def finish(self, job: Job) -> None:
        """Done. Nothing happens when the lease ran out and another has claimed it since."""
        ...

    def fail(self, job: Job, error: str, retry_s: float) -> None:
        """To be tried again later, unless another has claimed it since."""
        ...

    def setting(self, name: str) -> JSON: ...
    def set_setting(self, name: str, value: JSON) -> None: ...
    def settle(self, name: str, value: JSON) -> JSON:
        """Set it unless it is set, and return what it is: the same answer to every process that asks at once."""
        ...

    # care
    def backup(self, target: Path) -> None: ...
    def check(self) -> list[str]:
        """What is wrong with the store, one sentence each; empty when it is sound."""
        ...

    def vacuum(self) -> None: ...
