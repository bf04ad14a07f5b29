"""Prompts from JSON, CSV and Markdown."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from typing import Any

from commonplace.ingest.imports.import_file import (
    ImportFile,
    Piece,
    Record,
    Remarks,
    Unknown,
    Unreadable,
    moment,
    tags_of,
    without_empty,
)
from commonplace.ingest.imports.json_stream import items, shape_of, whole
from commonplace.ingest.imports.markdown_fields import part, read_sections

SEPARATORS = ",;|"
_NAMES = {
    "name": ("name", "title"),
    "details": ("details", "description"),
    "system_prompt": ("system_prompt", "system"),
    "user_prompt": ("user_prompt", "user", "prompt", "content"),
    "author": ("author",),
    "tags": ("keywords", "tags"),
}
_TIMES = {"created_at": ("created_at", "created", "date"), "updated_at": ("updated_at", "updated", "modified")}
_SECTIONS = {"system": "system_prompt", "system prompt": "system_prompt"} | {
    "user": "user_prompt",
    "user prompt": "user_prompt",
}
_LARGEST_CELL = 1 << 30


def is_prompt(names: frozenset[str]) -> bool:
    return "prompts" in names or bool(names & set(_NAMES["name"]))


def read_prompts_json(source: ImportFile, remarks: Remarks) -> Iterator[Piece]:
    """Yield prompts from an object, a list of them, or `{"prompts": […]}`."""
    shape = shape_of(source)
    if shape.type == "array":
        entries = items(source)
    elif "prompts" in shape.names:
        entries = items(source, "prompts.item")
    elif shape.type == "object":
        entries = iter([whole(source, remarks)])
    else:
        raise Unknown
    for number, entry in enumerate(entries, start=1):
        if not isinstance(entry, Mapping):
            raise Unreadable(f"prompt {number} is no object")
        yield Piece(_prompt(entry, remarks, f"prompt {number}"))


def read_prompts_csv(source: ImportFile, remarks: Remarks) -> Iterator[Piece]:
    """Yield prompts from a header row, then a prompt a row."""
    rows = parse_csv(source.text(remarks))
    _, header = next(rows, (0, []))
    names = [name.strip().casefold().replace(" ", "_") for name in header]
    if not set(names) & set(_NAMES["name"]):
        raise Unreadable('the header row has no column "name" or "title"', 1)
    for line, row in rows:
        if len(row) > len(names):
            raise Unreadable(f"this row has {len(row)} cells, but the header has {len(names)}", line)
        values = {name: cell for name, cell in zip(names, row, strict=False) if name and cell.strip()}
        yield Piece(_prompt(values, remarks, "this row", line), line)


def read_prompt_markdown(source: ImportFile, remarks: Remarks) -> Iterator[Piece]:
    """Yield a prompt from front matter and the parts under `System` and `User`.

    Without them all of it is the user part.
    """
    parted = part(source.text(remarks), remarks)
    values: dict[str, Any] = dict(parted.fields)
    own_name = next((values[name] for name in _NAMES["name"] if values.get(name)), None)
    read = read_sections(parted.body, _SECTIONS, own_name, ended_by_equals=False)
    values |= read.fields if read.fields else {"user_prompt": parted.body.strip()}
    if read.fields and read.rest:
        if any(values.get(name) for name in _NAMES["details"]):
            remarks.warn("what stands outside of System and User was left out, since the front matter has the details")
        else:
            values["details"] = read.rest
    if not own_name:
        values["name"] = read.heading or source.stem
    yield Piece(_prompt(values, remarks, "this prompt"))


def parse_csv(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the (line, cells) of each row that is not blank, as RFC 4180 reads them."""
    csv.field_size_limit(_LARGEST_CELL)
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    line = 1
    try:
        for row in rows:
            if any(cell.strip() for cell in row):
                yield line, row
            line = rows.line_num + 1
    except csv.Error as error:
        raise Unreadable(f"this row is no CSV: {error}", line) from None


def _prompt(values: Mapping[str, Any], remarks: Remarks, place: str, line: int | None = None) -> Record:
    rest = dict(values)
    record: Record = {"kind": "prompt"}
    for field, names in _NAMES.items():
        found = next((name for name in names if rest.get(name) not in (None, "")), None)
        value = rest.pop(found) if found else None
        if field == "tags":
            record[field] = tags_of(value, remarks, SEPARATORS)
        elif isinstance(value, str):
            record[field] = value
        elif isinstance(value, int | float) and not isinstance(value, bool):
            record[field] = str(value)
        elif value is not None:
            raise Unreadable(f'"{found}" of {place} is no text', line)
    record["name"] = " ".join(record.get("name", "").split())
    if not record["name"]:
        raise Unreadable(f"{place} has no name", line)
    for field, names in _TIMES.items():
        name = next((name for name in names if moment(rest.get(name))), None)
        if name:
            record[field] = moment(rest.pop(name))
    record["metadata"] = {name: value for name, value in rest.items() if value not in (None, "")}
    return without_empty(record)
