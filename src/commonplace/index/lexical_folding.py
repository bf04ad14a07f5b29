"""Keeping tantivy from merging a whole library because of a few writes.

Every commit makes a segment. With eight of them in its lowest layer tantivy merges all of that layer, and a library
under some seventeen thousand passages is nothing but lowest layer; it cannot be told otherwise from Python. So before
there are eight, the smallest are written again together with what is new: their documents leave them, and a segment
without documents is dropped.
"""

from __future__ import annotations

from collections.abc import Sequence

from tantivy import DocAddress

from commonplace.index.engine import Snapshot, engine

MERGED = 8
"""So many segments of a layer are merged."""
LAYER = 17_000
"""Documents from which on a segment is above the lowest layer: 10,000 · 2^0.75, rounded up."""
FEW = 64
"""Documents that are always written again rather than merged with everything."""
MOST_FOLDED = 500
"""Documents that are written again at a time. Beyond that a merge is cheap beside what was written."""


def to_fold(snapshot: Snapshot, sizes: Sequence[int]) -> list[int]:
    """The items to write again with the next ones. `sizes`: of the segments, in the order of the commit."""
    chosen = smallest(sizes)
    addresses = [DocAddress(place, document) for place in chosen for document in range(sizes[place])]
    found = engine(lambda: snapshot.searcher.fast_field_values("item", addresses)) if addresses else []
    return list(dict.fromkeys(int(item) for item in found if item is not None))  # the mark of a position is no item's


def smallest(sizes: Sequence[int]) -> list[int]:
    """Which segments to fold into one; none while there are few, or where the smallest are large.

    A few documents, then each segment that is no larger than twice those before it: so a document is written again
    about as often as the number of documents since the last merge has digits, not each time.
    """
    low = sorted((size, place) for place, size in enumerate(sizes) if size < LAYER)
    if len(low) + 1 < MERGED:
        return []
    chosen: list[int] = []
    total = 0
    for size, place in low:
        if total + size > (MOST_FOLDED if size <= 2 * total else FEW):
            break
        chosen.append(place)
        total += size
    return chosen if len(chosen) >= 2 else []
