"""What is in a library and how ready it is, in one object."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace.lazy_dataclass import dataclass

if TYPE_CHECKING:  # nobody needs them to hold one
    from commonplace.ingest.embedding import Coverage
    from commonplace.ingest.pending import Pending


@dataclass(frozen=True, slots=True)
class Status:
    """What is in a library and how ready it is."""

    items: dict[str, int]
    collections: dict[str, int]
    chunks: int
    changes: int
    indexed: int
    """The change the lexical index is level with."""
    coverage: Coverage
    better_model: str | None
    switching: Coverage | None = None
    """How far it is on its way to another model."""
    index_trouble: str = ""
    """Why an index on a service is behind, in a sentence; empty where nothing went wrong."""
    pending: Pending | None = None
    """What is found by its words only, and what happens next; None where everything has its vectors."""
