"""The nouns of tables as the store keeps them. Times are microseconds since 1970."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from commonplace.lazy_dataclass import dataclass
from commonplace.model import JSON, Chunk


@dataclass(frozen=True, slots=True)
class ProjectRow:
    id: str
    name: str
    description: str
    created_at: int


@dataclass(frozen=True, slots=True)
class TableRow:
    """A table without its data. `number` is what everything of it in the store goes by."""

    number: int
    id: str
    project: str
    name: str
    description: str
    searchable: bool
    version: int
    size: int
    generation: int
    building: int | None
    leaving: int | None
    basis: str
    created_at: int
    updated_at: int

    @property
    def generations(self) -> tuple[int, ...]:
        """Those that writes go to."""
        return (self.generation,) if self.building is None else (self.generation, self.building)

    @property
    def kept_generations(self) -> tuple[int, ...]:
        """Those that there are nodes of."""
        return self.generations if self.leaving is None else (*self.generations, self.leaving)


@dataclass(frozen=True, slots=True)
class ToolRow:
    id: str
    table: int
    json_path: str
    type: str
    name: str
    description: str
    metadata: Mapping[str, JSON]
    created_at: int
    updated_at: int
    configured_at: int | None = None
    started_at: int | None = None
    indexed_at: int | None = None


@dataclass(frozen=True, slots=True)
class InstanceRow:
    id: str
    name: str
    description: str
    enabled: bool
    digest: bytes
    hint: str
    created_at: int


class BindingRow(NamedTuple):
    instance: str
    tool: str
    enabled: bool


class DirtyRow(NamedTuple):
    """A place that has changed and is not indexed yet."""

    id: int
    table: int
    generation: int
    pointer: str
    first: int | None
    """Of a list: only elements from this one on."""
    alone: bool
    """Only the record of the place itself, nothing inside of it."""
    cursor: str | None
    """The last node that is done; None where none is."""
    swept: int
    upto: int


@dataclass(frozen=True, slots=True)
class TableJob:
    """What is left to do for a table, and who is at it."""

    id: int
    table: int
    kind: str
    progress: Mapping[str, JSON]
    holder: str
    lease_until: int
    heartbeat_at: int
    attempts: int
    run_after: int
    error: str | None


@dataclass(frozen=True, slots=True)
class Nodes:
    """Indexed nodes: ascending item ids and, for each, how many chunks it has. None: it was skipped."""

    items: NDArray[np.int64]
    chunks: NDArray[np.int64]


class Passage(NamedTuple):
    """A chunk of a table's node, and what is kept of that node."""

    chunk: Chunk
    fields: Mapping[str, JSON]
    content_hash: str
    chunk_count: int


FragmentShape = Literal["object", "list", "value", "run"]


class Fragment(NamedTuple):
    """A part of a table's data. `text` is None where its members are fragments of their own."""

    id: int
    parent: int
    position: int
    key: str | None
    held: int
    """How many elements of a list it has."""
    shape: FragmentShape
    size: int
    text: str | None

    @property
    def is_branch(self) -> bool:
        return self.text is None


class Missing(NamedTuple):
    """There is nothing at a place. `found` is how many of its tokens lead somewhere."""

    found: int
