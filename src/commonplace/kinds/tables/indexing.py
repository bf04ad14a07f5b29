"""Keep the index of a table level with its data: note which places changed, and make their nodes anew.

The data is read fragment by fragment in document order, never all at once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from commonplace.kinds.tables.data_drawer import DataDrawer
from commonplace.kinds.tables.drawer import TableDrawer
from commonplace.kinds.tables.node_drawer import JobDrawer, NodeDrawer
from commonplace.kinds.tables.nodes import ChunkSizes, Node, Rules, node_key, write_of
from commonplace.kinds.tables.pointers import Tokens, is_inside, is_stale, plain, plain_tokens, render, tokens
from commonplace.kinds.tables.rows import DirtyRow, Fragment, Missing, TableRow, ToolRow
from commonplace.kinds.tables.shredding import index_of, inside
from commonplace.model import JSON, Item
from commonplace.store.base import Store
from commonplace.store.items import Items

PAGE = 64
"""Fragments read at a time."""
AT_ONCE_BYTES = 256 * 1024
AT_ONCE_NODES = 500
"""Most of a change that is indexed in the transaction that makes it. More is left to a job."""
BATCH = 200
"""Nodes that are put in one transaction of a job."""


class Walk:
    """A walk over the nodes of one table, by the rules of one generation."""

    def __init__(self, data: DataDrawer, table: int, rules: Rules) -> None:
        self._data, self._table, self._rules = data, table, rules

    def nodes(self, place: Tokens, first: int | None = None, after: Tokens | None = None) -> Iterator[Node]:
        """Yield the nodes inside a place.

        `after`: only those after this node. `first`: of a list, only elements from this index on, without the list's
        own record.
        """
        located = self._data.fragment_at(self._table, place)
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
        located = self._data.fragment_at(self._table, place)
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
        member = self._data.fragment_with(fragment.id, token)
        return member.position if member else 0

    def _rows(self, fragment: Fragment, position: int) -> Iterator[Fragment]:
        page = self._data.fragments_in(fragment.id, position, PAGE)
        while page:
            yield from page
            page = self._data.fragments_in(fragment.id, limit=PAGE, after=page[-1].position) if page[PAGE - 1 :] else []


@dataclass(frozen=True, slots=True)
class PlaceChange:
    """A place whose value changed. `first`: only elements of a list from there on; `alone`: only its own record."""

    place: Tokens
    first: int | None = None
    alone: bool = False
    had: int = 0
    """With `first`: the number of elements the list had."""

    def pointers(self) -> list[str]:
        """Return the pointers of what changed, as items have them."""
        if self.first is None:
            return [plain(render(self.place))]
        return [plain(render((*self.place, str(index)))) for index in range(self.first, self.had)]


def tokens_of(item: Item) -> Tokens:
    """Return the place in its table of an indexed node."""
    return plain_tokens(str(item.fields["pointer"]))


class TableCoverage:
    """The indexed places of a table: all of a searchable one, else those of its search tools."""

    def __init__(self, table: TableRow, tools: Sequence[ToolRow]) -> None:
        self._everything = table.searchable
        self.paths = frozenset(tokens(tool.json_path) for tool in tools)

    def holds(self, place: Tokens) -> bool:
        """Return whether a place is indexed."""
        return self._everything or any(is_inside(place, path) for path in self.paths)

    def within(self, place: Tokens) -> list[Tokens]:
        """Return the places that together are all that is indexed inside a place, in the order of their tokens."""
        if self.holds(place):
            return [place]
        inner = sorted(path for path in self.paths if is_inside(path, place))
        return [path for path in inner if not any(is_inside(path, other) for other in inner if other != path)]


class Indexer:
    """A maker of nodes of dirty places. Everything it writes belongs in one transaction of its caller."""

    def __init__(self, store: Store, sizes: ChunkSizes) -> None:
        self._store, self._sizes = store, sizes
        self._table_rows, self._data = store.drawer(TableDrawer), store.drawer(DataDrawer)
        self._node_rows, self._job_rows = store.drawer(NodeDrawer), store.drawer(JobDrawer)

    def rules(self, table: TableRow) -> tuple[Rules, TableCoverage]:
        """Return the rules of a table's nodes, and its coverage."""
        coverage = TableCoverage(table, self._table_rows.search_tools(table.number))
        return Rules(self._sizes, coverage.paths), coverage

    def walk(self, table: TableRow) -> Walk:
        """Return a walk over the nodes of a table as they are now."""
        return Walk(self._data, table.number, self.rules(table)[0])

    def mark(self, table: TableRow, changes: Sequence[PlaceChange], *, size: int) -> None:
        """Index a small change now and note a large one; either way queue a job for what remains.

        `size` is the bytes that are new or have moved.
        """
        before, last = self._store.last_change(), self._store.drawer(Items).last()
        pairs = [(change, generation) for generation in table.generations for change in changes]
        if size > AT_ONCE_BYTES or not all(self._is_small(table, *each, last) for each in pairs):
            for change in changes:
                self.note(table, change)
            self._job_rows.want(table.number, "index")
            return
        rules, coverage = self.rules(table)
        walk = Walk(self._data, table.number, rules)
        for change, generation in pairs:
            place, old = render(change.place), self._old(table, change, generation, last)
            row = DirtyRow(0, table.number, generation, place, change.first, change.alone, None, 0, last)
            new_items = self._put(table, generation, list(self._nodes(walk, coverage, row)))
            self._store.drawer(Items).delete([item for item in old if item not in new_items])
        if self._store.last_change() != before:
            progress = {f"embedded {generation}": last for generation in table.generations}
            self._job_rows.want(table.number, "index", {"small": True, "since": before, **progress})

    def note(self, table: TableRow, change: PlaceChange) -> None:
        """Mark a place as dirty, unless a dirty place around it has not been begun."""
        for generation in table.generations:
            waiting = self._node_rows.dirty_of(table.number, generation, limit=20)
            if not any(_will_be_made(row, change.place) for row in waiting):
                place = render(change.place)
                self._node_rows.add_dirty(table, generation, place, first=change.first, alone=change.alone)

    def _is_small(self, table: TableRow, change: PlaceChange, generation: int, upto: int) -> bool:
        """Return whether a change touches few enough nodes to be indexed at once."""
        most = AT_ONCE_NODES
        if change.first is not None and change.had - change.first > most:
            return False
        return change.alone or len(self._old(table, change, generation, upto, most + 1)) <= most

    def _old(self, table: TableRow, change: PlaceChange, generation: int, upto: int, most: int = -1) -> list[int]:
        """Return the items that were indexed of a place before a change."""
        if change.alone:
            return self._at(table, generation, change.place)
        items: list[int] = []
        for pointer in change.pointers():
            items += self._node_rows.node_ids(table.id, generation, pointer, after=0, upto=upto, limit=most)
            if 0 <= most <= len(items):
                break
        return items

    def step(self, table: TableRow, dirty: DirtyRow) -> None:
        """Do one bounded step of a dirty place: put the next nodes, or remove the next superfluous ones."""
        rules, coverage = self.rules(table)
        walk = Walk(self._data, table.number, rules)
        if dirty.cursor is None and not dirty.swept:
            dirty = dirty._replace(
                upto=self._store.drawer(Items).last()
            )  # what was made while it waited may be superfluous too
        nodes = []
        for node in self._nodes(walk, coverage, dirty):
            nodes.append(node)
            if len(nodes) == BATCH:
                break
        self._put(table, dirty.generation, nodes)
        if len(nodes) == BATCH:
            self._node_rows.change_dirty(dirty._replace(cursor=render(nodes[-1].tokens)))
            return
        cursor = render(nodes[-1].tokens) if nodes else dirty.cursor
        self._sweep(table, dirty._replace(cursor=cursor), walk, coverage)

    def _sweep(self, table: TableRow, dirty: DirtyRow, walk: Walk, coverage: TableCoverage) -> None:
        """Remove the next items of a dirty place that its data no longer explains."""
        if dirty.alone:
            ids = self._at(table, dirty.generation, tokens(dirty.pointer))
        else:
            ids = self._node_rows.node_ids(
                table.id, dirty.generation, plain(dirty.pointer), after=dirty.swept, upto=dirty.upto, limit=BATCH
            )
        superfluous = [
            item.id
            for item in self._store.drawer(Items).get(ids)
            if is_stale(str(item.fields["pointer"]), dirty)
            and (not coverage.holds(tokens_of(item)) or walk.node_at(tokens_of(item)) is None)
        ]
        self._store.drawer(Items).delete(superfluous)
        if len(ids) < BATCH or dirty.alone:
            self._node_rows.drop_dirty([dirty.id])
        else:
            self._node_rows.change_dirty(dirty._replace(swept=ids[-1]))

    def _nodes(self, walk: Walk, coverage: TableCoverage, dirty: DirtyRow) -> Iterator[Node]:
        """Yield the nodes of a dirty place from its cursor on."""
        place = tokens(dirty.pointer)
        if dirty.alone:
            node = walk.node_at(place) if coverage.holds(place) else None
            yield from [node] if node else []
            return
        after = tokens(dirty.cursor) if dirty.cursor is not None else None
        targets = coverage.within(place)
        if after is not None:
            resumed_at = next((number for number, target in enumerate(targets) if is_inside(after, target)), None)
            if resumed_at is None:
                after = None
            else:
                targets = targets[resumed_at:]
        for number, target in enumerate(targets):
            first = dirty.first if target == place else None
            yield from walk.nodes(target, first, after if number == 0 else None)

    def _put(self, table: TableRow, generation: int, nodes: Sequence[Node]) -> set[int]:
        """Store nodes and return their item ids."""
        if not nodes:
            return set()
        items = self._store.drawer(Items).put([write_of(node, table, generation) for node in nodes])
        pointers = [plain(render(node.tokens)) for node in nodes]
        self._node_rows.place_nodes(
            table, generation, [(item.id, pointer) for item, pointer in zip(items, pointers, strict=True)]
        )
        return {item.id for item in items}

    def _at(self, table: TableRow, generation: int, place: Tokens) -> list[int]:
        item = self._store.drawer(Items).find("table", table.id, node_key(place, generation), body=False)
        return [item.id] if item else []


def _will_be_made(dirty: DirtyRow, place: Tokens) -> bool:
    """Return whether a dirty place around this one has not been begun, so that it makes this place anew too."""
    has_begun = dirty.cursor is not None or dirty.swept or dirty.alone or dirty.first is not None
    return not has_begun and is_inside(place, tokens(dirty.pointer))
