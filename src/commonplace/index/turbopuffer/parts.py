"""The parts of a request to turbopuffer and of its answer: filters, subqueries, hits, and values within its limits."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

MOST_HITS = 10_000
LONGEST_TOKEN = 254
"""Bytes of a term that full-text search keeps: the most that a schema may set."""
LONGEST_VALUE = 4_096
"""Bytes of a value, or of an element of an array, that may be filtered by."""

Filter = tuple[Any, ...]
"""A condition in the service's syntax: ("kind", "In", (…)), ("And", (…))."""


@dataclass(frozen=True, slots=True)
class ServiceHit:
    """A row of an answer."""

    id: str
    chunk: int = -1
    distance: float = 0.0
    """BM25: the score, higher is better. Vectors: lower is better."""
    digest: str = ""
    version: int = 0


@dataclass(frozen=True, slots=True)
class Subquery:
    """One query of a request: the ranking, the filter, the number of hits, and the attributes to return of each."""

    rank_by: tuple[Any, ...]
    filter: Filter | None
    limit: int
    include: tuple[str, ...] = ("chunk",)

    def body(self) -> dict[str, Any]:
        """Return the query as the SDK takes it."""
        body: dict[str, Any] = {"rank_by": self.rank_by, "top_k": self.limit}
        if self.include:
            body["include_attributes"] = list(self.include)
        return body if self.filter is None else {**body, "filters": self.filter}


def all_of(filters: Sequence[Filter]) -> Filter | None:
    """Return the conjunction of filters, without nesting; None if there are none."""
    parts = [part for each in filters for part in (each[1] if each[0] == "And" else (each,))]
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else ("And", tuple(parts))


def one_of(name: str, values: Sequence[Any]) -> Filter:
    """Return the filter for rows whose attribute is one of some values."""
    sent_values = tuple(map(value_of, values))
    return (name, "Eq", sent_values[0]) if len(sent_values) == 1 else (name, "In", sent_values)


def any_of(filters: Sequence[Filter]) -> Filter:
    """Return the disjunction of one or more filters."""
    return filters[0] if len(filters) == 1 else ("Or", tuple(filters))


def token_of(term: str) -> str:
    """Return a term as full-text search keeps it: its hash, if it is too long."""
    return _within(term, LONGEST_TOKEN)


def value_of(value: Any) -> Any:
    """Return a value as it may be filtered by: its hash, if it is too long."""
    return _within(value, LONGEST_VALUE) if isinstance(value, str) else value


def _within(text: str, longest: int) -> str:
    if 4 * len(text) <= longest or len(text.encode()) <= longest:
        return text
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
