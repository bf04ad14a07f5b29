"""Entries as JSON Lines, as the tools show them: out, and in again so that they come out the same."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from commonplace.errors import InvalidInput
from commonplace.library import Library
from commonplace.memories import Image, normal_tags
from commonplace.memories.importing import Imported, Kept
from commonplace.store.filters import micros
from commonplace.surfaces.memory.dates import parse_date
from commonplace.surfaces.memory.entry import images_of, shown
from commonplace.surfaces.tool import Call

_BATCH = 100


def export_lines(library: Library, thread: str | None = None) -> Iterator[str]:
    """One JSON object per entry, by id, with its whole text and its images."""
    memories = library.memories
    numbers = memories.find(threads=None if thread is None else [thread])
    for start in range(0, len(numbers), _BATCH):
        for entry in memories.entries(numbers[start : start + _BATCH]):
            images = images_of(Call(library), [entry])[entry.number]
            yield json.dumps(shown(entry, images=images), ensure_ascii=False, separators=(",", ":"))


def import_file(library: Library, path: Path) -> Imported:
    """Store what `export_lines` wrote. A line that is something else is named, and nothing is stored then."""
    return library.memories.restore(lambda: _entries(path))


def _entries(path: Path) -> Iterator[Kept]:
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                kept = _kept(json.loads(line))
            except (ValueError, TypeError, KeyError, AttributeError, InvalidInput) as error:
                raise InvalidInput(f"Line {number} is no exported entry: {error}. Nothing was imported.") from error
            yield kept


def _kept(record: dict[str, Any]) -> Kept:
    expires = record.get("expires_at")
    if type(record["id"]) is not int or record["id"] < 1 or record["source"] not in ("user", "agent"):
        raise ValueError("its id or its source is none")
    return Kept(
        number=record["id"],
        thread=str(record["thread_id"]),
        source=record["source"],
        text=str(record["text_content"]),
        metadata=dict(record["metadata"]),
        tags=normal_tags(record["tags"]),
        images=tuple(
            Image(base64.b64decode(image["data"], validate=True), str(image["mime_type"]), image.get("metadata"))
            for image in record.get("images", ())
        ),
        summary=record.get("summary") or None,
        created_at=parse_date(record["created_at"], "created_at"),
        updated_at=parse_date(record["updated_at"], "updated_at"),
        version=int(record["version"]),
        expires_at=micros(parse_date(expires, "expires_at")) if expires else None,
        supersedes=tuple(map(int, record.get("supersedes", ()))),
    )
