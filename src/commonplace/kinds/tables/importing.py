"""Import text into a table (JSON, lines of JSON, or CSV): replacing, appending, or merging."""

from __future__ import annotations

import csv
import io

from commonplace.errors import InvalidInput
from commonplace.kinds.tables.pointers import Tokens, render
from commonplace.kinds.tables.values import LARGEST, check, read
from commonplace.kinds.tables.writing import Edits, Writing
from commonplace.model import JSON
from commonplace.store.table_base import TableStore
from commonplace.store.table_rows import Missing

FORMATS = ("json", "jsonl", "csv")
MODES = ("replace", "append", "merge")


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


def import_value(store: TableStore, writing: Writing, edits: Edits, place: Tokens, value: JSON, mode: str) -> int:
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
    merge(store, writing, edits, place, value)
    return len(value)


def merge(store: TableStore, writing: Writing, edits: Edits, place: Tokens, patch: dict[str, JSON]) -> None:
    """Apply a merge patch (RFC 7396): null removes, an object goes into an object, anything else replaces."""
    for key, value in patch.items():
        shape = store.table_shape(edits.table.number, (*place, key))
        if value is None:
            if not isinstance(shape, Missing):
                writing.remove_members(edits, place, [key])
        elif isinstance(value, dict) and not isinstance(shape, Missing) and shape[0] == "object":
            merge(store, writing, edits, (*place, key), value)
        elif isinstance(shape, Missing):
            writing.add_members(edits, place, {key: _merged(value)})
        else:
            writing.replace(edits, (*place, key), _merged(value))


def _merged(value: JSON) -> JSON:
    """Return a patch applied to nothing: without its nulls."""
    if not isinstance(value, dict):
        return value
    return {key: _merged(member) for key, member in value.items() if member is not None}
