"""Changes of a table's data: all of a call or none, one version step, and what it changed is indexed or marked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

from commonplace.errors import AlreadyExists, CommonplaceError, InvalidInput, NotFound, TooLarge
from commonplace.kinds.tables.indexing import Change, Indexer
from commonplace.kinds.tables.nodes import Rules, node_key
from commonplace.kinds.tables.pointers import Tokens, render
from commonplace.kinds.tables.values import LARGEST, check
from commonplace.lazy_dataclass import dataclass
from commonplace.model import JSON, Item
from commonplace.store.shredding import INDEX, dumps, size_of
from commonplace.store.table_base import TableStore
from commonplace.store.table_rows import Missing, TableRow


class TableChanged(CommonplaceError):
    """Somebody else wrote first."""

    code, status, exit_code = "version_conflict", 409, 1

    def __init__(self, table: TableRow, expected: int) -> None:
        super().__init__(
            f'expected_version is {expected}, and the table "{table.name}" is at version {table.version}. '
            "Read it and repeat the change.",
            argument="expected_version",
            current_version=table.version,
        )


class PathMissing(CommonplaceError):
    """A place that does not exist."""

    code, status, exit_code = "path_missing", 404, 1

    def __init__(self, tokens: Tokens, found: int) -> None:
        prefix = render(tokens[:found])
        shown = f'"{prefix[:200]}"' if prefix else '"" (the whole value)'
        super().__init__(
            f'json_path "{render(tokens)[:200]}" does not exist. The longest part of it that does is {shown}.',
            argument="json_path",
            existing=prefix,
        )


@dataclass
class Edits:
    """What one call changes, gathered while it is being applied."""

    table: TableRow
    rules: Rules
    changes: dict[Change, None] = field(default_factory=dict)
    size: int = 0
    """Bytes of what is new or has moved."""

    def add(self, change: Change, size: int = 0) -> None:
        self.changes[change] = None
        self.size += size


class Writing:
    """Applies changes to the newest data, one call after the other."""

    def __init__(self, store: TableStore, indexer: Indexer) -> None:
        self._store, self._indexer = store, indexer

    def change(self, table: TableRow, expected: int | None, apply: Callable[[Edits], None]) -> TableRow:
        """Run a change in one transaction; returns the table after it."""
        with self._store.transaction():
            current = self.current(table, expected)
            edits = Edits(current, self._indexer.rules(current)[0])
            apply(edits)
            written = self._store.table_written(table.number)
            if written.size > LARGEST:
                raise TooLarge(
                    f"The table would have {written.size} bytes, and holds at most {LARGEST} (64 MiB). "
                    "Nothing was changed; split the data over several tables."
                )
            self._indexer.mark(written, list(edits.changes), size=edits.size)
            return written

    def current(self, table: TableRow, expected: int | None) -> TableRow:
        """The table as it is now, at the version that is expected."""
        current = self._store.numbered_table(table.number)
        if current is None:
            raise NotFound(f'There is no table "{table.id}" any more. table_list shows them.', argument="table_id")
        if expected is not None and expected != current.version:
            raise TableChanged(current, expected)
        return current

    # one change each, inside `change`

    def replace(self, edits: Edits, place: Tokens, value: JSON) -> None:
        """Put another value where one is."""
        number = edits.table.number
        old = self._store.table_shape(number, place)
        if isinstance(old, Missing):
            raise PathMissing(place, old.found)
        size = self._store.table_size(number, place)
        old_scalar = self._store.table_value(number, place) if old[0] == "value" else None
        self._store.put_table_value(number, place, value)
        edits.add(Change(place), (size if isinstance(size, int) else 0) + size_of(dumps(value)))
        if place:
            grouped = (old[0] == "value" and edits.rules.is_grouped(old_scalar)) or edits.rules.is_grouped(value)
            self._touch(edits, place[:-1], grouped=grouped)

    def append(self, edits: Edits, place: Tokens, values: Sequence[JSON]) -> int:
        """Add to the end of a list; returns how many elements it had."""
        first = self._store.append_table_elements(edits.table.number, place, values)
        edits.add(Change(place, first=first, had=first), size_of(dumps(list(values))))
        self._touch(edits, place, grouped=any(map(edits.rules.is_grouped, values)))
        return first

    def add_members(self, edits: Edits, place: Tokens, members: dict[str, JSON]) -> None:
        self._store.add_table_members(edits.table.number, place, members)
        for key, value in members.items():
            edits.add(Change((*place, key)), size_of(dumps(value)))
        self._touch(edits, place, grouped=any(map(edits.rules.is_grouped, members.values())))

    def remove_members(self, edits: Edits, place: Tokens, keys: Sequence[str]) -> None:
        number, grouped = edits.table.number, False
        for key in keys:
            shape = self._store.table_shape(number, (*place, key))
            size = self._store.table_size(number, (*place, key))
            if not isinstance(shape, Missing) and shape[0] == "value":
                grouped |= edits.rules.is_grouped(self._store.table_value(number, (*place, key)))
            edits.add(Change((*place, key)), size if isinstance(size, int) else 0)
        self._store.remove_table_members(number, place, keys)
        self._touch(edits, place, grouped=grouped)

    def remove_elements(self, edits: Edits, place: Tokens, indices: Sequence[int]) -> None:
        """All after the first of them move, so that all of those are made anew."""
        number, first = edits.table.number, min(indices)
        size, (_, had) = self._store.table_size(number, place), self.shape(edits.table, place)
        self._store.remove_table_elements(number, place, indices)
        moved = size * (had - first) // had if isinstance(size, int) else 0  # about: long elements are rare
        edits.add(Change(place, first=first, had=had), moved)
        if self._record(edits, place) is not None:  # of what has none, nothing that is left makes one
            edits.add(Change(place, alone=True))

    def _touch(self, edits: Edits, container: Tokens, *, grouped: bool) -> None:
        """The record of a container is made anew where one of its own members comes, goes or changes."""
        if not grouped:
            item = self._record(edits, container)
            grouped = item is not None and item.fields["node"] == "skipped"
        if grouped:
            edits.add(Change(container, alone=True))

    def _record(self, edits: Edits, container: Tokens) -> Item | None:
        """What is indexed of a container's own members."""
        return self._store.item("table", edits.table.id, node_key(container, edits.table.generation), body=False)

    # what the tool types ask for

    def create(self, edits: Edits, place: Tokens, elements: Sequence[Mapping[str, JSON]]) -> list[dict[str, JSON]]:
        shape, _ = self.container(edits.table, place)
        for number, element in enumerate(elements):
            check(element["content"], f"elements[{number}].content", depth=len(place) + 1)
        if shape == "list":
            first = self.append(edits, place, [element["content"] for element in elements])
            return [_told(first + number) for number in range(len(elements))]
        members: dict[str, JSON] = {}
        for number, element in enumerate(elements):
            key = _object_key(element.get("key"), f"elements[{number}].key")
            there = self._store.table_shape(edits.table.number, (*place, key))
            if key in members or not isinstance(there, Missing):
                raise AlreadyExists(
                    f'elements[{number}].key "{key[:80]}" exists already. Use an update tool to replace it.',
                    argument=f"elements[{number}].key",
                )
            members[key] = element["content"]
        self.add_members(edits, place, members)
        return [_told(key) for key in members]

    def update(self, edits: Edits, place: Tokens, updates: Sequence[Mapping[str, JSON]]) -> list[dict[str, JSON]]:
        shape, count = self.container(edits.table, place)
        for number, element in enumerate(updates):
            check(element["content"], f"updates[{number}].content", depth=len(place) + 1)
        told = []
        for number, element in enumerate(updates):
            key = self._existing(edits.table, place, shape, count, element.get("key"), f"updates[{number}].key")
            self.replace(edits, (*place, str(key)), element["content"])
            told.append(_told(key))
        return told

    def delete(self, edits: Edits, place: Tokens, keys: Sequence[JSON]) -> list[dict[str, JSON]]:
        shape, count = self.container(edits.table, place)
        found: dict[Any, None] = {}
        for number, given in enumerate(keys):
            key = self._existing(edits.table, place, shape, count, given, f"keys[{number}]")
            if key in found:
                raise InvalidInput(
                    f'keys[{number}] "{key}" is given twice. Name each once.', argument=f"keys[{number}]"
                )
            found[key] = None
        if shape == "list":
            self.remove_elements(edits, place, list(found))
        else:
            self.remove_members(edits, place, list(found))
        return [_told(key) for key in found]

    def container(self, table: TableRow, place: Tokens) -> tuple[str, int]:
        """`object` or `list`, and how many members it has; a refusal for anything else."""
        shape, count = self.shape(table, place)
        if shape == "value":
            parent = f'Bind the tool to its parent "{render(place[:-1])[:200]}".'
            raise InvalidInput(
                f'json_path "{render(place)[:200]}" is a single value, which has no members. '
                f"{parent if place else 'Make it an object or a list first.'}",
                argument="json_path",
            )
        return shape, count

    def shape(self, table: TableRow, place: Tokens) -> tuple[str, int]:
        """`object`, `list` or `value`, and how many members it has; a refusal where nothing is."""
        shape = self._store.table_shape(table.number, place)
        if isinstance(shape, Missing):
            raise PathMissing(place, shape.found)
        return shape

    def _existing(
        self, table: TableRow, place: Tokens, shape: str, count: int, given: JSON, argument: str
    ) -> str | int:
        if shape == "object":
            key = _object_key(given, argument)
            if isinstance(self._store.table_shape(table.number, (*place, key)), Missing):
                raise NotFound(f'{argument} "{key[:80]}" does not exist.', argument=argument)
            return key
        index = given if isinstance(given, int) and not isinstance(given, bool) else None
        if isinstance(given, str) and INDEX.fullmatch(given) and len(given) < 12:
            index = int(given)
        if index is None:
            raise InvalidInput(f"{argument} must be an index of the list, not {dumps(given)[:80]}.", argument=argument)
        if not 0 <= index < count:
            raise NotFound(f"{argument} is {index}, and the list has {count} elements.", argument=argument)
        return index


def _object_key(given: JSON, argument: str) -> str:
    if not isinstance(given, str):
        shown = "nothing" if given is None else dumps(given)[:80]
        raise InvalidInput(f"{argument} must be a string, the key of a member, not {shown}.", argument=argument)
    check(given, argument)
    return given


def _told(key: str | int) -> dict[str, JSON]:
    return {"key": key, "json_path": render([key])}
