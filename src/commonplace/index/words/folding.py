"""Folding: small segments are written again with what is new, so that segments stay few and fast to search.

A few writes must not make tantivy merge a whole library.

Every commit makes a segment. With eight of them in its lowest layer tantivy merges all of that layer, and a library
under some seventeen thousand passages is nothing but lowest layer; it cannot be told otherwise from Python. So before
there are eight, the smallest are written again together with what is new: their documents leave them, and a segment
without documents is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tantivy import DocAddress

from commonplace.index.words.engine import Snapshot, engine
from commonplace.model import IndexedItem

MERGED = 8
"""Segments of one layer that tantivy merges."""
LAYER = 17_000
"""Documents from which on a segment is above the lowest layer: 10,000 · 2^0.75, rounded up."""
FEW = 64
"""Documents that are always folded rather than merged with everything."""
MOST_LOOKED_AT = 16 * FEW
"""Documents of a segment that are read in search of one that was not deleted."""
FROM = 1_000
"""Documents of a library from which on `company` pays. In fewer, deleted documents distort term counts too much."""
MOST_FOLDED = 500
"""Documents that are folded at a time. Beyond that a merge is cheap beside what was written."""


def to_fold(snapshot: Snapshot) -> list[int]:
    """Return the items to write again with the next ones."""
    sizes = snapshot.sizes
    return _items_at(snapshot, [(place, document) for place in smallest(sizes) for document in range(sizes[place])])


def company(snapshot: Snapshot, read: Callable[[list[int]], list[IndexedItem]]) -> list[int]:
    """Return items to write again together with a position, where nothing else is written.

    A segment of the position alone has no text, and every look-up of a term opens its empty dictionary, which took 2 %
    of a hybrid search of 10,000 passages. Items that kept the last position company move along with it, and their old
    segment is dropped.
    """
    if snapshot.counted < FROM:
        return []
    for size, place in sorted((size, place) for place, size in enumerate(snapshot.sizes)):
        for start in range(0, min(size, MOST_LOOKED_AT), FEW):
            documents = range(start, min(start + FEW, size))
            items = [item for item in read(_items_at(snapshot, [(place, one) for one in documents])) if item.chunks]
            if items:  # else they were all deleted, or have no text any more
                shortest = sorted(items, key=lambda item: len(item.chunks))
                return [item.id for item in (items if size <= FEW else shortest[:1])]
    return []


def _items_at(snapshot: Snapshot, places: Sequence[tuple[int, int]]) -> list[int]:
    addresses = [DocAddress(*place) for place in places]
    values = engine(lambda: snapshot.searcher.fast_field_values("item", addresses)) if addresses else []
    return list(dict.fromkeys(int(item) for item in values if item is not None))  # the marker document has no item


def smallest(sizes: Sequence[int]) -> list[int]:
    """Return the places of the segments to fold into one; none while there are few, or if the smallest are large.

    They are segments with a few documents in all, then each that is no larger than twice those before it. So a
    document is written again about log10(documents since the last merge) times, not with every commit.
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
