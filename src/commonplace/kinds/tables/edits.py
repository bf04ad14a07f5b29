"""Changes of a table's data: a call is applied whole or not at all, as one version, and indexed or marked dirty.

A text is imported as one change: JSON, lines of JSON or CSV, replacing, appending or merging.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from commonplace.errors import AlreadyExists, CommonplaceError, InvalidInput, NotFound, TooLarge
from commonplace.kinds.tables.data_drawer import DataDrawer
from commonplace.kinds.tables.drawer import TableDrawer
from commonplace.kinds.tables.indexing import Indexer, PlaceChange
from commonplace.kinds.tables.nodes import Rules, node_key
from commonplace.kinds.tables.pointers import Tokens, render
from commonplace.kinds.tables.rows import Missing, TableRow
from commonplace.kinds.tables.shredding import INDEX, dumps, size_of
from commonplace.kinds.tables.values import LARGEST, check, read
from commonplace.model import JSON, Item
from commonplace.store.base import Store
from commonplace.store.items import Items

FORMATS = ("json", "jsonl", "csv")
MODES = ("replace", "append", "merge")


class TableChanged(CommonplaceError):
    """An error: somebody else changed the table after the caller read it."""

    code, status, exit_code = "version_conflict", 409, 1

    def __init__(self, table: TableRow, expected: int) -> None:
        super().__init__(
            f'expected_version is {expected}, and the table "{table.name}" is at version {table.version}. '
            "Read it and repeat the change.",
            argument="expected_version",
            current_version=table.version,
        )


class PathMissing(CommonplaceError):
    """An error: a place that does not exist."""

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
    """The changes of one call, gathered while it is applied."""

    table: TableRow
    rules: Rules
    changes: dict[PlaceChange, None] = field(default_factory=dict)
    size: int = 0
    """Bytes that are new or have moved."""

    def add(self, change: PlaceChange, size: int = 0) -> None:
        self.changes[change] = None
        self.size += size


class Writing:
    """A writer that applies changes to the newest data, one call after the other."""

    def __init__(self, store: Store, indexer: Indexer) -> None:
        self._store, self._indexer = store, indexer
        self._table_rows, self._data = store.drawer(TableDrawer), store.drawer(DataDrawer)

    def change(self, table: TableRow, expected: int | None, apply: Callable[[Edits], None]) -> TableRow:
        """Apply a change in one transaction and return the table after it. Raise TableChanged or TooLarge."""
        with self._store.transaction():
            current = self.current(table, expected)
            edits = Edits(current, self._indexer.rules(current)[0])
            apply(edits)
            written = self._table_rows.table_written(table.number)
            if written.size > LARGEST:
                raise TooLarge(
                    f"The table would have {written.size} bytes, and holds at most {LARGEST} (64 MiB). "
                    "Nothing was changed; split the data over several tables."
                )
            self._indexer.mark(written, list(edits.changes), size=edits.size)
            return written

    def current(self, table: TableRow, expected: int | None) -> TableRow:
        """Return the table as it is now. Raise NotFound, or TableChanged where it is not at the expected version."""
        current = self._table_rows.numbered_table(table.number)
        if current is None:
            raise NotFound(f'There is no table "{table.id}" any more. table_list shows them.', argument="table_id")
        if expected is not None and expected != current.version:
            raise TableChanged(current, expected)
        return current

    # one change each, inside `change`

    def replace(self, edits: Edits, place: Tokens, value: JSON) -> None:
        """Replace the value at a place. Raise PathMissing."""
        number = edits.table.number
        old = self._data.shape(number, place)
        if isinstance(old, Missing):
            raise PathMissing(place, old.found)
        size = self._data.size(number, place)
        old_scalar = self._data.value(number, place) if old[0] == "value" else None
        self._data.put(number, place, value)
        edits.add(PlaceChange(place), (size if isinstance(size, int) else 0) + size_of(dumps(value)))
        if place:
            grouped = (old[0] == "value" and edits.rules.is_grouped(old_scalar)) or edits.rules.is_grouped(value)
            self._touch(edits, place[:-1], grouped=grouped)

    def append(self, edits: Edits, place: Tokens, values: Sequence[JSON]) -> int:
        """Append to a list and return how many elements it had."""
        first = self._data.append(edits.table.number, place, values)
        edits.add(PlaceChange(place, first=first, had=first), size_of(dumps(list(values))))
        self._touch(edits, place, grouped=any(map(edits.rules.is_grouped, values)))
        return first

    def add_members(self, edits: Edits, place: Tokens, members: dict[str, JSON]) -> None:
        """Add members to an object."""
        self._data.add_members(edits.table.number, place, members)
        for key, value in members.items():
            edits.add(PlaceChange((*place, key)), size_of(dumps(value)))
        self._touch(edits, place, grouped=any(map(edits.rules.is_grouped, members.values())))

    def remove_members(self, edits: Edits, place: Tokens, keys: Sequence[str]) -> None:
        """Remove members of an object."""
        number, grouped = edits.table.number, False
        for key in keys:
            shape = self._data.shape(number, (*place, key))
            size = self._data.size(number, (*place, key))
            if not isinstance(shape, Missing) and shape[0] == "value":
                grouped |= edits.rules.is_grouped(self._data.value(number, (*place, key)))
            edits.add(PlaceChange((*place, key)), size if isinstance(size, int) else 0)
        self._data.remove_members(number, place, keys)
        self._touch(edits, place, grouped=grouped)

    def remove_elements(self, edits: Edits, place: Tokens, indices: Sequence[int]) -> None:
        """Remove elements of a list. All after the first of them move, so those are indexed anew."""
        number, first = edits.table.number, min(indices)
        size, (_, had) = self._data.size(number, place), self.shape(edits.table, place)
        self._data.remove_elements(number, place, indices)
        moved = size * (had - first) // had if isinstance(size, int) else 0  # about: long elements are rare
        edits.add(PlaceChange(place, first=first, had=had), moved)
        if self._record(edits, place) is not None:  # without one there are no short members
            edits.add(PlaceChange(place, alone=True))

    def _touch(self, edits: Edits, container: Tokens, *, grouped: bool) -> None:
        """Mark the record of a container where one of its own short members comes, goes or changes."""
        if not grouped:
            item = self._record(edits, container)
            grouped = item is not None and item.fields["node"] == "skipped"
        if grouped:
            edits.add(PlaceChange(container, alone=True))

    def _record(self, edits: Edits, container: Tokens) -> Item | None:
        """Return the item of a container's own record, or None."""
        return self._store.drawer(Items).find(
            "table", edits.table.id, node_key(container, edits.table.generation), body=False
        )

    # operations of the tool types

    def create(self, edits: Edits, place: Tokens, elements: Sequence[Mapping[str, JSON]]) -> list[dict[str, JSON]]:
        """Add elements for a tool of type `create`, and return their keys and pointers."""
        shape, _ = self.container(edits.table, place)
        for number, element in enumerate(elements):
            check(element["content"], f"elements[{number}].content", depth=len(place) + 1)
        if shape == "list":
            first = self.append(edits, place, [element["content"] for element in elements])
            return [_key_record(first + number) for number in range(len(elements))]
        members: dict[str, JSON] = {}
        for number, element in enumerate(elements):
            key = _object_key(element.get("key"), f"elements[{number}].key")
            shape_there = self._data.shape(edits.table.number, (*place, key))
            if key in members or not isinstance(shape_there, Missing):
                raise AlreadyExists(
                    f'elements[{number}].key "{key[:80]}" exists already. Use an update tool to replace it.',
                    argument=f"elements[{number}].key",
                )
            members[key] = element["content"]
        self.add_members(edits, place, members)
        return [_key_record(key) for key in members]

    def update(self, edits: Edits, place: Tokens, updates: Sequence[Mapping[str, JSON]]) -> list[dict[str, JSON]]:
        """Replace elements for a tool of type `update`, and return their keys and pointers."""
        shape, count = self.container(edits.table, place)
        for number, element in enumerate(updates):
            check(element["content"], f"updates[{number}].content", depth=len(place) + 1)
        results = []
        for number, element in enumerate(updates):
            key = self._existing(edits.table, place, shape, count, element.get("key"), f"updates[{number}].key")
            self.replace(edits, (*place, str(key)), element["content"])
            results.append(_key_record(key))
        return results

    def delete(self, edits: Edits, place: Tokens, keys: Sequence[JSON]) -> list[dict[str, JSON]]:
        """Remove elements for a tool of type `delete`, and return their keys and pointers."""
        shape, count = self.container(edits.table, place)
        unique_keys: dict[Any, None] = {}
        for number, key_given in enumerate(keys):
            key = self._existing(edits.table, place, shape, count, key_given, f"keys[{number}]")
            if key in unique_keys:
                raise InvalidInput(
                    f'keys[{number}] "{key}" is given twice. Name each once.', argument=f"keys[{number}]"
                )
            unique_keys[key] = None
        if shape == "list":
            self.remove_elements(edits, place, list(unique_keys))
        else:
            self.remove_members(edits, place, list(unique_keys))
        return [_key_record(key) for key in unique_keys]

    def container(self, table: TableRow, place: Tokens) -> tuple[str, int]:
        """Return `object` or `list`, and how many members it has. Raise InvalidInput for anything else."""
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
        """Return `object`, `list` or `value`, and how many members it has. Raise PathMissing where nothing is."""
        shape = self._data.shape(table.number, place)
        if isinstance(shape, Missing):
            raise PathMissing(place, shape.found)
        return shape

    def _existing(
        self, table: TableRow, place: Tokens, shape: str, count: int, member: JSON, argument: str
    ) -> str | int:
        """Return the key or index of a member that exists. Raise InvalidInput or NotFound."""
        if shape == "object":
            key = _object_key(member, argument)
            if isinstance(self._data.shape(table.number, (*place, key)), Missing):
                raise NotFound(f'{argument} "{key[:80]}" does not exist.', argument=argument)
            return key
        index = member if isinstance(member, int) and not isinstance(member, bool) else None
        if isinstance(member, str) and INDEX.fullmatch(member) and len(member) < 12:
            index = int(member)
        if index is None:
            raise InvalidInput(f"{argument} must be an index of the list, not {dumps(member)[:80]}.", argument=argument)
        if not 0 <= index < count:
            raise NotFound(f"{argument} is {index}, and the list has {count} elements.", argument=argument)
        return index


def _object_key(value: JSON, argument: str) -> str:
    if not isinstance(value, str):
        shown = "nothing" if value is None else dumps(value)[:80]
        raise InvalidInput(f"{argument} must be a string, the key of a member, not {shown}.", argument=argument)
    check(value, argument)
    return value


def _key_record(key: str | int) -> dict[str, JSON]:
    return {"key": key, "json_path": render([key])}


def read_content(content: str, format: str) -> JSON:
    """Return the value of a text. Raise InvalidInput, with the line, where it is malformed."""
    content = content.removeprefix("\ufeff")  # spreadsheets and some editors begin every text with this mark
    if format == "json":
        return read(content)
    return _lines(content) if format == "jsonl" else _rows(content)


def _lines(content: str) -> list[JSON]:
    values = []
    for number, line in enumerate(content.split("\n"), start=1):
        if line.strip():
            values.append(read(line.strip(), line=number))
    return values


def _rows(content: str) -> list[dict[str, str]]:
    reader = csv.reader(io.StringIO(content, newline=""), strict=True)
    csv.field_size_limit(LARGEST)  # a long text is a field like any other
    try:
        header = next(reader, None)
        if header is None:
            raise InvalidInput("content is empty. CSV begins with a row of names.", argument="content")
        if len(set(header)) != len(header):
            twice = next(name for number, name in enumerate(header) if name in header[:number])
            raise InvalidInput(f'content has the column "{twice[:80]}" twice in line 1.', argument="content")
        rows = []
        for row in reader:
            if len(row) > len(header):
                raise InvalidInput(
                    f"content has {len(row)} fields in line {reader.line_num}, and the header {len(header)}.",
                    argument="content",
                )
            if row:
                rows.append(dict(zip(header, row, strict=False)))
        return rows
    except csv.Error as error:
        raise InvalidInput(f"content is not CSV: {error} in line {reader.line_num}.", argument="content") from None


def import_value(data: DataDrawer, writing: Writing, edits: Edits, place: Tokens, value: JSON, mode: str) -> int:
    """Import a value at a place and return how many elements or members it has. Raise InvalidInput."""
    alone = mode == "append" and not isinstance(value, list)
    check(value, "content", depth=len(place) + alone)
    if mode == "replace":
        writing.replace(edits, place, value)
        return len(value) if isinstance(value, dict | list) else 1
    shape, _ = writing.shape(edits.table, place)
    if mode == "append":
        if shape != "list":
            noun = "an object" if shape == "object" else "a single value"
            raise InvalidInput(f'mode append needs a list at "{render(place)[:200]}", not {noun}.', argument="mode")
        values = value if isinstance(value, list) else [value]
        if values:
            writing.append(edits, place, values)
        return len(values)
    if shape != "object" or not isinstance(value, dict):
        raise InvalidInput("mode merge needs an object at json_path and an object as content.", argument="mode")
    merge(data, writing, edits, place, value)
    return len(value)


def merge(data: DataDrawer, writing: Writing, edits: Edits, place: Tokens, patch: dict[str, JSON]) -> None:
    """Apply a merge patch (RFC 7396): null removes, an object goes into an object, anything else replaces."""
    for key, value in patch.items():
        shape = data.shape(edits.table.number, (*place, key))
        if value is None:
            if not isinstance(shape, Missing):
                writing.remove_members(edits, place, [key])
        elif isinstance(value, dict) and not isinstance(shape, Missing) and shape[0] == "object":
            merge(data, writing, edits, (*place, key), value)
        elif isinstance(shape, Missing):
            writing.add_members(edits, place, {key: _merged(value)})
        else:
            writing.replace(edits, (*place, key), _merged(value))


def _merged(value: JSON) -> JSON:
    """Return a patch applied to nothing: without its nulls."""
    if not isinstance(value, dict):
        return value
    return {key: _merged(member) for key, member in value.items() if member is not None}
