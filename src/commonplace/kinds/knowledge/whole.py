"""The index of whole items: one entry for each, so that a query's words may stand anywhere in it.

It is a lexical index like the one of passages and follows the same log, but it is only made once somebody searches.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from commonplace.index.base import MakeWords, WordIndex
from commonplace.index.words.index import LexicalIndex
from commonplace.model import Change, IndexedItem
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


def whole_index(store: Store, indexes: Path, language: str, make: MakeWords | None = None) -> WordIndex:
    """Return the index of whole items in a folder of `indexes`.

    `make`: the maker of its index, where not the local one.
    """
    return (make or LexicalIndex)(indexes / FOLDER, _Whole(store), language)
