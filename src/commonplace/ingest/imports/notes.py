"""Notes: Markdown and plain text, with what their front matter says of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from commonplace.ingest.imports.dates import moment
from commonplace.ingest.imports.front import part
from commonplace.ingest.imports.source import ImportFile, Piece, Record, Remarks, first_of, tags_of, text_or_none
from commonplace.ingest.imports.source import without_empty as filled
from commonplace.text.structure import blocks, plain

LONGEST_TITLE = 512
ID = re.compile(r"[A-Za-z0-9._~-]{1,128}")

_TAGS = ("tags", "keywords")
_CREATED = ("created", "created_at", "date")
_UPDATED = ("updated", "updated_at", "modified")


def read_note(source: ImportFile, remarks: Remarks) -> Iterator[Piece]:
    """Yield the one note of a file."""
    parted = part(source.text(remarks), remarks)
    record = front_record(parted.fields, remarks)
    title = record.pop("title", None) or first_heading(parted.body) or source.stem
    note: Record = {"kind": "note", **record, "title": title[:LONGEST_TITLE], "body": parted.body}
    yield Piece(filled(note) | {"body": parted.body})


def front_record(fields: Mapping[str, Any], remarks: Remarks) -> Record:
    """Return the fields of front matter that every kind has: id, title, tags, times; all else is metadata."""
    metadata = dict(fields)
    record: Record = {}
    id = first_of(fields, ("id",))
    if id is not None and ID.fullmatch(str(id)):
        record["id"] = str(metadata.pop("id"))
    elif id is not None:
        remarks.warn('the "id" may hold only letters, digits and . _ ~ - (at most 128); it was kept as metadata', 1)
    if title := text_or_none(fields.get("title")):
        record["title"] = " ".join(title.split())
        del metadata["title"]
    record["tags"] = tags_of([*_listed(fields, "tags"), *_listed(fields, "keywords")], remarks)
    for name in _TAGS:
        metadata.pop(name, None)
    for field, names in (("created_at", _CREATED), ("updated_at", _UPDATED)):
        date_field = next((name for name in names if fields.get(name) is not None), None)
        if date_field is None:
            continue
        if when := moment(fields[date_field]):
            record[field] = when
            del metadata[date_field]
        else:
            remarks.warn(f'"{date_field}" is no date; it was kept as metadata', 1)
    record["metadata"] = metadata
    return filled(record)


def first_heading(body: str) -> str:
    """Return the words of the first heading of level 1, or ""."""
    if "# " not in body and "==" not in body:
        return ""
    titles = (plain(block.source) for block in blocks(body) if block.kind == "heading" and block.level == 1)
    return next(filter(None, titles), "")


def _listed(fields: Mapping[str, Any], name: str) -> list[Any]:
    value = fields.get(name)
    return (
        value.split(",") if isinstance(value, str) else value if isinstance(value, list) else [value] if value else []
    )
