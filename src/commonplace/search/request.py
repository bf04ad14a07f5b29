"""What a search is asked, and the stages that can be asked for."""

from __future__ import annotations

from dataclasses import field
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from commonplace.errors import InvalidInput
from commonplace.lazy_dataclass import dataclass
from commonplace.model import Filter, Mode

MOST_HITS = 10_000
MOST_BEFORE = 1_000_000
"""How far a list can be paged through: whoever follows its cursors comes to its end."""


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
    shown: frozenset[int] = frozenset()
    """Ids of items that pages before had, passed over wherever they are now, like the first `offset`."""
    vector: NDArray[np.float32] | None = field(default=None, compare=False)
    """The vector of the text, where it is known already: then nothing is embedded."""
    least_cosine: float | None = None
    """Only passages whose vectors are this near to the query's; one that has none yet is left out."""
    most_per_item: int = 0
    """Of an item at most so many passages, 0 for all; where `per_item` is off."""
    by_name: bool = True
    """Whether a document answers that has a word of the query in its key alone."""
    rerank: bool = False
    """Whether the best are looked at a second time, more closely."""
    expand: bool = False
    """Whether what the best have in common is looked for, too."""

    @property
    def reach(self) -> int:
        """Return the number of items from the top of the list to the end of the page."""
        return self.offset + len(self.shown) + self.limit

    def __post_init__(self) -> None:
        if self.mode not in get_args(Mode):
            raise InvalidInput(f"mode must be one of {', '.join(get_args(Mode))}, not {self.mode!r}.")
        if not 1 <= self.limit <= MOST_HITS:
            raise InvalidInput(f"limit must be between 1 and {MOST_HITS}, not {self.limit}.")
        if not 0 <= self.offset <= MOST_BEFORE:
            raise InvalidInput(f"offset must be between 0 and {MOST_BEFORE}, not {self.offset}.")
