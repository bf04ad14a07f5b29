"""The contents of a library and how ready it is, in one object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # nobody needs them to hold one
    from commonplace.ingest.backlog import Coverage
    from commonplace.ingest.pending import Pending


@dataclass(frozen=True, slots=True)
class Status:
    """The contents of a library and how ready it is."""

    items: dict[str, int]
    collections: dict[str, int]
    chunks: int
    changes: int
    indexed: int
    """The change the lexical index is level with."""
    coverage: Coverage
    better_model: str | None
    switching: Coverage | None = None
    """The coverage of the model that is to take the place of this one."""
    index_trouble: str = ""
    """The reason, in a sentence, that an index on a service is behind; empty where nothing went wrong."""
    pending: Pending | None = None
    """The part that is found by its words only, and what happens next; None where everything has its vectors."""
