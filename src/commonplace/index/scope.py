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
    """A restriction of a search by the fields that every index keeps beside its text; an empty one admits all."""

    kinds: tuple[str, ...] = ()
    parents: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    """Case-folded; an item needs any of them."""
    created: Range = (None, None)
    updated: Range = (None, None)
    facets: tuple[str, ...] = ()
    """An item needs any of them; see `store.facets`."""
    must: tuple[str, ...] = ()
    """Facets of which an item needs all."""
    parts: tuple[str, ...] = ()
    """The fields of records whose chunks may answer; empty: all chunks."""
    items: Ids | None = None
    """Sorted ids of the only items that may answer, where the store had to evaluate the filter."""
    without: Ids | None = None
    """Sorted ids of items that may not answer, whatever else admits them."""
    known: Ids | None = None
    """Sorted ids of exactly the items that the fields admit, where the caller has them anyway."""

    @property
    def by_fields(self) -> bool:
        """Return True if any field of an item restricts the search."""
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
    """Return for each id whether it is in `known`, which is sorted and often far longer than `ids`."""
    if not len(known):
        return np.zeros(len(ids), dtype=np.bool_)
    mask: NDArray[np.bool_] = known[np.minimum(np.searchsorted(known, ids), len(known) - 1)] == ids
    return mask


def distinct(ids: Ids) -> Ids:
    """Return the ids ascending, each once. `np.unique` would load numpy's masked arrays, which take 10 MB."""
    ids = np.sort(ids)
    first = np.ones(len(ids), dtype=np.bool_)
    first[1:] = ids[1:] != ids[:-1]
    return ids[first]


def firsts(ids: Ids) -> tuple[Ids, Ids]:
    """Return the ids ascending, each once, and the index of each one's first place. Twice as fast as `np.unique`."""
    order = np.argsort(ids, kind="stable")
    ordered = ids[order]
    new = np.ones(len(ids), dtype=np.bool_)
    new[1:] = ordered[1:] != ordered[:-1]
    return ordered[new], order[new]
