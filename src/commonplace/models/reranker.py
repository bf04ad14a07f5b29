"""What the engine asks of a model that takes a second, slower look at the best passages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Reranker(Protocol):
    """Judges passages one by one. Without one the stage is skipped."""

    @property
    def name(self) -> str: ...

    def score(self, query: str, passages: Sequence[str]) -> Sequence[float]:
        """0–1 per passage, in the order given."""
        ...
