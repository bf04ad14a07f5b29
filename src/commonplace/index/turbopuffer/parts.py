"""What a request to turbopuffer is made of: conditions, parts of a query, hits, and values within its limits."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from commonplace.lazy_dataclass import dataclass

MOST_HITS = 10_000
LONGEST_TOKEN = 254
"""Bytes of a term that full-text search keeps, where the schema asks for the most there is."""
LONGEST_VALUE = 4_096
"""Bytes of a value, or of an element of an array, that may be filtered by."""

Filter = tuple[Any, ...]
"""As the service reads it: ("kind", "In", (…)), ("And", (…))."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A row of an answer."""

    id: str
    chunk: int = -1
    distance: float = 0.0
    """BM25: the score, higher is better. Vectors: lower is better."""
    digest: str = ""
    version: int = 0


@dataclass(frozen=True, slots=True)
class Part:
    """One query of a request: how to rank, what may answer, how many are wanted, and what is to be told of each."""

    rank_by: tuple[Any, ...]
    filter: Filter | None
    limit: int
    include: tuple[str, ...] = ("chunk",)

    def body(self) -> dict[str, Any]:
        asked: dict[str, Any] = {"rank_by": self.rank_by, "top_k": self.limit}
        if self.include:
            asked["include_attributes"] = list(self.include)
        return asked if self.filter is None else {**asked, "filters": self.filter}


def all_of(filters: Sequence[Filter]) -> Filter | None:
    """All of some conditions, side by side; None where there are none."""
    parts = [part for each in filters for part in (each[1] if each[0] == "And" else (each,))]
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else ("And", tuple(parts))


def one_of(name: str, values: Sequence[Any]) -> Filter:
    """An attribute that is one of some values."""
    known = tuple(map(value_of, values))
    return (name, "Eq", known[0]) if len(known) == 1 else (name, "In", known)


def any_of(filters: Sequence[Filter]) -> Filter:
    return filters[0] if len(filters) == 1 else ("Or", tuple(filters))


def token_of(term: str) -> str:
    """Return a term as full-text search keeps it: what is too long goes by its hash."""
    return _within(term, LONGEST_TOKEN)


def value_of(value: Any) -> Any:
    """Return a value as it may be filtered by: what is too long goes by its hash."""
    return _within(value, LONGEST_VALUE) if isinstance(value, str) else value


def _within(text: str, longest: int) -> str:
    if 4 * len(text) <= longest or len(text.encode()) <= longest:
        return text
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
