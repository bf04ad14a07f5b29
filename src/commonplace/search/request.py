"""What a search is asked, and the stages that can be asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, get_args

from commonplace.errors import InvalidInput
from commonplace.model import Filter, Mode

MOST_HITS = 10_000


@dataclass(frozen=True, slots=True)
class Request:
    """One search. Everything is optional but the text."""

    text: str
    mode: Mode = "auto"
    filter: Filter = Filter()
    limit: int = 10
    offset: int = 0
    min_score: float = 0.0
    snippet_length: int = 300
    per_item: bool = True
    """One hit per item, at its best passage; otherwise one per passage."""
    explain: bool = False
    exclude: frozenset[int] = frozenset()
    """Ids of items to leave out, before the limit."""

    def __post_init__(self) -> None:
        if self.mode not in get_args(Mode):
            raise InvalidInput(f"mode must be one of {', '.join(get_args(Mode))}, not {self.mode!r}.")
        if not 1 <= self.limit <= MOST_HITS:
            raise InvalidInput(f"limit must be between 1 and {MOST_HITS}, not {self.limit}.")
        if not 0 <= self.offset <= MOST_HITS:
            raise InvalidInput(f"offset must be between 0 and {MOST_HITS}, not {self.offset}.")


class Reranker(Protocol):
    """A second, slower look at the best passages. The models room brings one; without it the stage is skipped."""

    name: str

    def score(self, query: str, passages: Sequence[str]) -> Sequence[float]:
        """0–1 per passage, in the order given."""
        ...
