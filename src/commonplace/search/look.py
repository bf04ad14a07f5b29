"""One look at a library, for all searches of a call: what each would ask of store and indexes is asked once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np

from commonplace.errors import Unavailable
from commonplace.index.followers import WordReader
from commonplace.index.scope import Ids, Scope
from commonplace.model import Filter
from commonplace.search.hiding import hidden_items
from commonplace.search.request import Request
from commonplace.store.base import Store
from commonplace.store.filters import fold_tag, micros
from commonplace.store.items import Items
from commonplace.store.listing import Listing
from commonplace.store.outdated import Outdated
from commonplace.text.glob_patterns import folded_path

if TYPE_CHECKING:
    from commonplace.search.engine import Semantic, SemanticSource


class Scopes:
    """A source of scopes: the items that may answer.

    Only the ids that the last filter let through are kept, until the next change.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._let_through: tuple[int, str | None, Filter, Ids] | None = None
        self._unnamed: tuple[int, str | None, Ids] | None = None

    def of(self, filter: Filter, left_out: frozenset[int]) -> Scope:
        left_out = left_out.union(self.replaced(filter))
        without = np.array(sorted(left_out), dtype=np.int64) if left_out else None
        for hidden in (self._hidden(filter), self._unasked(filter)):
            if hidden is not None and len(hidden):
                without = hidden if without is None else np.union1d(without, hidden)
        if not filter:
            return Scope(without=without)
        items = self._store.drawer(Listing).select(filter) if filter.where or filter.entries or filter.paths else None
        if items is not None:  # the store has applied the whole filter, not only the part an index cannot
            return Scope(items=items, without=without)
        return replace(scope_of(filter), without=without)

    def items(self, filter: Filter, scope: Scope) -> Ids | None:
        """Return the item ids a vector index is held to: it keeps no fields, so the store evaluates the filter."""
        if scope.items is not None:
            return scope.items
        if not scope.by_fields:
            return None
        change, log, kept = self._store.last_change(), self._store.log, self._let_through
        if kept is None or kept[:3] != (change, log, filter):
            kept = self._let_through = (change, log, filter, self._store.drawer(Listing).select(filter))
        return kept[3]

    def replaced(self, filter: Filter) -> Sequence[int]:
        """Return the ids of memory entries that a newer one supersedes; none if the filter speaks of entries itself."""
        told = filter.entries is not None or (filter.kinds and "memory" not in filter.kinds)
        return () if told else self._store.drawer(Outdated).superseded()

    def _hidden(self, filter: Filter) -> Ids | None:
        """Return the items that only the searches of their own kind show."""
        return hidden_items(self._store, filter.kinds)

    def _unasked(self, filter: Filter) -> Ids | None:
        """Return the documents of folders that are searched only when named, if the filter does not name them."""
        if filter.parents or (filter.kinds and "document" not in filter.kinds):
            return None
        if filter.paths:
            return self._in_unasked(set(map(_front, filter.paths)))
        change, log, kept = self._store.last_change(), self._store.log, self._unnamed
        if kept is None or kept[:2] != (change, log):
            kept = self._unnamed = (change, log, self._in_unasked(set()))
        return kept[2]

    def _in_unasked(self, named: set[str]) -> Ids:
        """Return the documents of those folders but for the named ones."""
        folders = [
            folder for folder in self._store.drawer(Items).collections() if folder.fields.get("included") is False
        ]
        names = tuple(folder.key for folder in folders if folded_path(folder.key) not in named)
        return (
            self._store.drawer(Listing).select(Filter(kinds=("document",), parents=names))
            if names
            else np.empty(0, np.int64)
        )


class Look:
    """A commit of the lexical index, the vector side and the scopes of what is asked. It lives as long as a call."""

    def __init__(self, words: WordReader, semantic: SemanticSource, scopes: Scopes) -> None:
        self.words = words
        self._source, self._scopes = semantic, scopes
        self._semantic: Semantic | Unavailable | None = None
        # By identity, for requests outlive a look: what a filter compares with need not be hashable.
        self._known: dict[tuple[int, frozenset[int]], Scope] = {}
        self._items: dict[int, Ids | None] = {}

    def semantic(self) -> Semantic:
        """Return the vector side, level with the log. Raise Unavailable, the same to every search."""
        if self._semantic is None:
            try:
                self._semantic = self._source()
            except Unavailable as reason:
                self._semantic = reason
        if isinstance(self._semantic, Unavailable):
            raise self._semantic
        return self._semantic

    def scope(self, request: Request) -> Scope:
        key = id(request.filter), request.exclude
        if key not in self._known:
            self._known[key] = self._scopes.of(request.filter, request.exclude)
        return self._known[key]

    def items(self, request: Request) -> Ids | None:
        """Return the item ids a vector index is held to; None lets all of them."""
        key = id(request.filter)
        if key not in self._items:
            self._items[key] = self._scopes.items(request.filter, self.scope(request))
        return self._items[key]

    def replaced(self, request: Request) -> Sequence[int]:
        """Return the items that no search finds, whatever it leaves out."""
        return self._scopes.replaced(request.filter)


def scope_of(filter: Filter) -> Scope:
    """Return the part of a filter that an index can decide by the fields of items."""
    return Scope(
        kinds=filter.kinds,
        parents=filter.parents,
        tags=tuple(dict.fromkeys(map(fold_tag, filter.tags))),
        created=(_micros(filter.created_from), _micros(filter.created_to)),
        updated=(_micros(filter.updated_from), _micros(filter.updated_to)),
    )


def _front(path: str) -> str:
    """Return the first name in a path: a collection, where it has that in front."""
    return folded_path(path).lstrip("./").partition("/")[0]


def _micros(moment: datetime | None) -> int | None:
    return micros(moment) if moment else None
