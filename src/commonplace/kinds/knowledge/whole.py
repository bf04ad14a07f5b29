"""The index of whole items: one entry for each, so that a query's words may stand anywhere in it.

It is a lexical index like the one of passages and follows the same log, but it is only made once somebody searches.
"""

from __future__ import annotations

from collections.abc import Sequence

from commonplace.index.base import WordIndex
from commonplace.model import Change, IndexedItem
from commonplace.space import Space
from commonplace.store.base import Store

FOLDER = "whole"


class _Whole:
    """The log as this index reads it: whole items in place of chunks."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def last_change(self) -> int:
        return self._store.last_change()

    def changes(self, after: int, limit: int) -> list[Change]:
        return self._store.changes(after, limit)

    def indexed(self, item_ids: Sequence[int]) -> list[IndexedItem]:
        return self._store.whole(item_ids)


def whole_index(space: Space) -> WordIndex:
    """Return the space's index of whole items, kept where its index of passages is."""
    return space.make_words(space.indexes / FOLDER, _Whole(space.store), space.settings.language)
