"""The nodes of a table's data in document order, read fragment by fragment and never all at once."""

from __future__ import annotations

import json
from collections.abc import Iterator

from commonplace.kinds.tables.nodes import Node, Rules
from commonplace.kinds.tables.pointers import Tokens
from commonplace.model import JSON
from commonplace.store.shredding import index_of, inside
from commonplace.store.table_base import TableStore
from commonplace.store.table_rows import Fragment, Missing

PAGE = 64
"""Fragments read at a time."""


class Walk:
    """A walk over the nodes of one table, by the rules of one generation."""

    def __init__(self, store: TableStore, table: int, rules: Rules) -> None:
        self._store, self._table, self._rules = store, table, rules

    def nodes(self, place: Tokens, first: int | None = None, after: Tokens | None = None) -> Iterator[Node]:
        """Yield the nodes inside a place.

        `after`: only those after this node. `first`: of a list, only elements from this index on, without the list's
        own record.
        """
        located = self._store.fragment_at(self._table, place)
        if isinstance(located, Missing):
            return
        fragment, rest = located
        start = after[len(place) :] if after is not None else None
        if fragment.is_branch:
            yield from self._branch(fragment, place, start, first)
            return
        value, _ = inside(json.loads(fragment.text or "null"), rest)
        if first is not None and start is None:
            for index in range(first, len(value) if isinstance(value, list) else 0):
                yield from self._rules.nodes((*place, str(index)), value[index])
        else:
            yield from self._rules.nodes(place, value, start)

    def node_at(self, place: Tokens) -> Node | None:
        """Return the node at a place itself, or None."""
        located = self._store.fragment_at(self._table, place)
        if isinstance(located, Missing):
            return None
        fragment, rest = located
        if fragment.is_branch:
            return self._record(fragment, place)
        value, _ = inside(json.loads(fragment.text or "null"), rest)
        return next((node for node in self._rules.nodes(place, value) if node.tokens == place), None)

    def _record(self, fragment: Fragment, place: Tokens) -> Node | None:
        return self._rules.record(place, self._members(fragment), of_list=fragment.shape == "list")

    def _members(self, fragment: Fragment) -> Iterator[tuple[str, JSON]]:
        """Yield every member with its value, long ones as None: only short scalars matter to a record."""
        for row in self._rows(fragment, 0):
            if row.shape == "run":
                for place, value in enumerate(json.loads(row.text or "[]"), start=row.position):
                    yield str(place), value if not isinstance(value, dict | list) else None
            else:
                key = row.key if row.key is not None else str(row.position)
                yield key, json.loads(row.text) if row.text and row.text[0] not in "{[" else None

    def _branch(self, fragment: Fragment, place: Tokens, start: Tokens | None, first: int | None) -> Iterator[Node]:
        if start and fragment.shape == "list" and index_of(start[0]) is None:
            start = None  # it was an object when the last node was made
        if start is None and first is None and (record := self._record(fragment, place)):
            yield record
        token = start[0] if start else None
        for row in self._rows(fragment, self._position(fragment, token, first)):
            if row.shape != "run":
                key = row.key if row.key is not None else str(row.position)
                if first is not None and row.key is None and row.position < first:
                    continue
                yield from self._row(row, (*place, key), start[1:] if start and key == token else None)
                continue
            for index, value in enumerate(json.loads(row.text or "[]"), start=row.position):
                if (first is not None and index < first) or (token is not None and index < int(token)):
                    continue
                resumed = start[1:] if start and str(index) == token else None
                yield from self._rules.nodes((*place, str(index)), value, resumed)

    def _row(self, row: Fragment, place: Tokens, start: Tokens | None) -> Iterator[Node]:
        if row.is_branch:
            yield from self._branch(row, place, start, None)
        else:
            yield from self._rules.nodes(place, json.loads(row.text or "null"), start)

    def _position(self, fragment: Fragment, token: str | None, first: int | None) -> int:
        if token is None:
            return first or 0
        if fragment.shape == "list":
            return index_of(token) or 0
        member = self._store.fragment_with(fragment.id, token)
        return member.position if member else 0

    def _rows(self, fragment: Fragment, position: int) -> Iterator[Fragment]:
        page = self._store.fragments_in(fragment.id, position, PAGE)
        while page:
            yield from page
            page = (
                self._store.fragments_in(fragment.id, limit=PAGE, after=page[-1].position) if page[PAGE - 1 :] else []
            )
