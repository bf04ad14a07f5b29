"""The nouns of tables as their drawers keep them. Times are microseconds since 1970."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from commonplace.model import JSON, Chunk


@dataclass(frozen=True, slots=True)
class ProjectRow:
    """A project that tables belong to."""

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
        """Return the generations that writes go to."""
        return (self.generation,) if self.building is None else (self.generation, self.building)

    @property
    def kept_generations(self) -> tuple[int, ...]:
        """Return the generations that have nodes."""
        return self.generations if self.leaving is None else (*self.generations, self.leaving)


TABLE_COLUMNS = (
    "number, id, project, name, description, searchable, version, size, generation, building, leaving, basis, "
    "created_at, updated_at"
)


@dataclass(frozen=True, slots=True)
class ToolRow:
    """A tool that reads, writes or searches a place of a table."""

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


TOOL_COLUMNS = (
    "id, tbl, json_path, type, name, description, metadata, created_at, updated_at, configured_at, started_at, "
    "indexed_at"
)


@dataclass(frozen=True, slots=True)
class InstanceRow:
    """A set of tools that is served under a name. `digest` is of its key, `hint` the key's end."""

    id: str
    name: str
    description: str
    enabled: bool
    digest: bytes
    hint: str
    created_at: int


INSTANCE_COLUMNS = "id, name, description, enabled, digest, hint, created_at"


class BindingRow(NamedTuple):
    """A tool of an instance."""

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


DIRTY_COLUMNS = "id, tbl, generation, pointer, first, alone, cursor, swept, upto"


@dataclass(frozen=True, slots=True)
class TableJob:
    """Work that is left for a table, and its lease."""

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


JOB_COLUMNS = "id, tbl, kind, progress, holder, lease_until, heartbeat_at, attempts, run_after, error"


@dataclass(frozen=True, slots=True)
class Nodes:
    """Indexed nodes: ascending item ids and, for each, how many chunks it has. None: it was skipped."""

    items: NDArray[np.int64]
    chunks: NDArray[np.int64]


class NodePassage(NamedTuple):
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


FRAGMENT_COLUMNS = "id, parent, position, key, count, shape, size, text"
Location = tuple[list[Fragment], list[str]]
"""The fragments on the way to a place, the last of which holds it, and where in that one it is."""


class Missing(NamedTuple):
    """There is nothing at a place. `found` is how many of its tokens lead somewhere."""

    found: int


def value_of(fragment: Fragment) -> Any:
    """Return the JSON value of a fragment that holds its own text; None for a branch."""
    return json.loads(fragment.text or "null")
