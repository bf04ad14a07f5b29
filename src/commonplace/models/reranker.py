"""The interface of a model that takes a second, slower look at the best passages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Reranker(Protocol):
    """A model that judges passages one by one. Without one the stage is skipped."""

    @property
    def name(self) -> str: ...

    def score(self, query: str, passages: Sequence[str]) -> Sequence[float]:
        """Return a score from 0 to 1 for each passage, in the order given."""
        ...
