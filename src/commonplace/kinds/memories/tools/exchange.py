"""Entries as JSON Lines, as the tools show them: exported, and imported so that exporting again gives the same."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any

from commonplace.errors import InvalidInput
from commonplace.ingest.imports.import_file import refuse_others
from commonplace.kinds.memories import Image, normal_tags
from commonplace.kinds.memories.importing import Imported, IncomingEntry
from commonplace.kinds.memories.tools.dates import parse_date
from commonplace.kinds.memories.tools.entry import images_of, shown
from commonplace.store.filters import micros
from commonplace.store.rows import MOST_NUMBER
from commonplace.tools.tool import Call

if TYPE_CHECKING:
    from commonplace.library import Library

_BATCH = 100
_KINDS = {"id": int, "thread_id": str, "text_content": str, "metadata": dict, "tags": list, "version": int}


def export_lines(library: Library, thread: str | None = None) -> Iterator[str]:
    """Yield one JSON object for each entry, by id, with its whole text and its images."""
    memories = library.memories
    numbers = memories.find(threads=None if thread is None else [thread])
    for start in range(0, len(numbers), _BATCH):
        for entry in memories.entries(numbers[start : start + _BATCH]):
            images = images_of(Call(library), [entry])[entry.number]
            yield json.dumps(shown(entry, images=images), ensure_ascii=False, separators=(",", ":"))


def import_file(library: Library, file: IO[bytes], *, renumber: bool = False, dry_run: bool = False) -> Imported:
    """Store what `export_lines` wrote and return a report.

    Raise InvalidInput, with the number of the line, where a line is something else; then nothing is stored.
    """
    with _to_read_twice(file) as lines:
        return library.memories.restore(lambda: _entries(lines), renumber=renumber, dry_run=dry_run)


@contextmanager
def _to_read_twice(file: IO[bytes]) -> Iterator[IO[bytes]]:
    """Yield the file itself, or a copy of what comes through a pipe, which would be empty the second time."""
    if file.seekable():
        yield file
        return
    with TemporaryFile() as copy:
        shutil.copyfileobj(file, copy)
        yield copy


def _entries(lines: IO[bytes]) -> Iterator[IncomingEntry]:
    lines.seek(0)
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            entry = _read(line)
        except (ValueError, InvalidInput) as error:
            raise InvalidInput(f"Line {number} is no exported entry: {error}. Nothing was imported.") from error
        yield entry


def _read(line: bytes) -> IncomingEntry:
    """Return the entry of a line. Raise ValueError with half a sentence that says why it is none."""
    try:
        record = json.loads(line.decode("utf-8"))
        refuse_others(record, "memory")
        return _incoming(record)
    except UnicodeDecodeError as error:
        raise ValueError("it is not UTF-8") from error
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error
    except KeyError as error:
        raise ValueError(f"it has no {error}") from error
    except (TypeError, AttributeError) as error:
        raise ValueError("a field of it is of another kind") from error


def _incoming(record: dict[str, Any]) -> IncomingEntry:
    expires = record.get("expires_at")
    for name, kind in _KINDS.items():
        if type(record[name]) is not kind:
            raise ValueError(f"its {name} is none")
    if not record["thread_id"].strip() or record["source"] not in ("user", "agent"):
        raise ValueError("its thread_id or its source is none")
    numbers = (record["id"], record["version"], *record.get("supersedes", ()))
    if not all(type(number) is int and 1 <= number <= MOST_NUMBER for number in numbers):
        raise ValueError("its id, its version or what it supersedes is none")
    if not isinstance(record.get("summary"), str | None):
        raise ValueError("its summary is none")
    if not all(isinstance(image["mime_type"], str) for image in record.get("images", ())):
        raise ValueError("a mime_type of its images is none")
    return IncomingEntry(
        number=record["id"],
        thread=record["thread_id"].strip(),
        source=record["source"],
        text=record["text_content"],
        metadata=record["metadata"],
        tags=normal_tags(record["tags"]),
        images=tuple(
            Image(base64.b64decode(image["data"], validate=True), image["mime_type"], image.get("metadata"))
            for image in record.get("images", ())
        ),
        summary=record.get("summary") or None,
        created_at=parse_date(record["created_at"], "created_at"),
        updated_at=parse_date(record["updated_at"], "updated_at"),
        version=record["version"],
        expires_at=micros(parse_date(expires, "expires_at")) if expires else None,
        supersedes=tuple(record.get("supersedes", ())),
    )
