"""The part of a filter that an index can apply by itself."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commonplace.lazy_dataclass import dataclass

Ids = NDArray[np.int64]
Range = tuple[int | None, int | None]
"""Microseconds since 1970, both ends included."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Which items may answer, in the fields every index keeps beside its text. Empty: everything."""

    kinds: tuple[str, ...] = ()
    parents: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    """Folded; any of them."""
    created: Range = (None, None)
    updated: Range = (None, None)
    facets: tuple[str, ...] = ()
    """Any of them; see `store.facets`."""
    must: tuple[str, ...] = ()
    """Facets, too, but all of these."""
    parts: tuple[str, ...] = ()
    """Only these fields of records may answer, where not all of their chunks may."""
    items: Ids | None = None
    """Sorted ids of the only items that may answer, where the store had to decide."""
    without: Ids | None = None
    """Sorted ids of items that may not answer, whatever else lets them."""
    known: Ids | None = None
    """Sorted ids of exactly the items that the fields let through, where somebody has them anyway."""

    @property
    def by_fields(self) -> bool:
        return bool(
            self.kinds
            or self.parents
            or self.tags
            or self.facets
            or self.must
            or self.parts
            or self.created != (None, None)
            or self.updated != (None, None)
        )


def among(ids: Ids, known: Ids) -> NDArray[np.bool_]:
    """Which of the ids are known. Those are sorted, and often very many more than are asked about."""
    if not len(known):
        return np.zeros(len(ids), dtype=np.bool_)
    found: NDArray[np.bool_] = known[np.minimum(np.searchsorted(known, ids), len(known) - 1)] == ids
    return found


def distinct(ids: Ids) -> Ids:
    """Ascending, each once. `np.unique` loads all of numpy's masked arrays for it, which take 10 MB."""
    ids = np.sort(ids)
    first = np.ones(len(ids), dtype=np.bool_)
    first[1:] = ids[1:] != ids[:-1]
    return ids[first]


def firsts(ids: Ids) -> tuple[Ids, Ids]:
    """Ids ascending, each once, and where each comes first. `np.unique` takes twice as long for so few."""
    order = np.argsort(ids, kind="stable")
    ordered = ids[order]
    new = np.ones(len(ids), dtype=np.bool_)
    new[1:] = ordered[1:] != ordered[:-1]
    return ordered[new], order[new]
