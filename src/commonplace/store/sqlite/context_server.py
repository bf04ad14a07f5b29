"""Read the SQLite file of an mcp-context-server: a copy of it, so that not even a lock touches the original."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw

from commonplace.errors import InvalidInput, NotFound
from commonplace.store.sqlite.connection import explained

_BATCH = 200
_UUID = re.compile("[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class ForeignEntry:
    """One of its entries. Metadata is as it was written, JSON or not."""

    id: int | str
    """A number, or since version 3 a UUID, of which only the hexadecimal digits are kept."""
    thread: str
    source: str
    text: str
    metadata: str | None
    summary: str | None
    created_at: datetime
    updated_at: datetime
    tags: tuple[str, ...]
    images: tuple[tuple[bytes, str, str | None], ...]
    """(data, media type, metadata as JSON)"""


class ForeignFile:
    """An open copy. Older files without some columns are read too."""

    def __init__(self, connection: apsw.Connection, path: Path) -> None:
        self._db, self._path = connection, path
        try:
            rows: Any = connection.execute("select name from pragma_table_info('context_entries')")
        except apsw.NotADBError as error:
            raise InvalidInput(f"{path} is no database of mcp-context-server: it is not an SQLite database.") from error
        columns = {name for (name,) in rows}
        if not {"id", "thread_id", "source", "text_content", "created_at"} <= columns:
            raise InvalidInput(f"{path} is no database of mcp-context-server: it has no such table of entries.")
        optional = ("metadata", "summary", "updated_at")
        self._columns = ", ".join(name if name in columns else f"null as {name}" for name in optional)
        self._tables = {name for (name,) in connection.execute("select name from sqlite_schema where type = 'table'")}

    def entries(self) -> Iterator[ForeignEntry]:
        """All of them, in the order they were stored in."""
        query = f"""select rowid, id, thread_id, source, coalesce(text_content, ''), created_at, {self._columns}
                    from context_entries where rowid > ? order by rowid limit {_BATCH}"""
        after = 0
        with self._readable():
            while rows := list(self._db.execute(query, (after,))):
                after = int(rows[-1][0])
                yield from [self._entry(row[1:]) for row in rows]

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """Raise one sentence for whatever else a file of that name holds."""
        try:
            yield
        except (apsw.Error, TypeError, ValueError, OverflowError) as error:
            sentence = (
                f"{self._path} is no database of mcp-context-server that can be read: {error}. Nothing was imported."
            )
            raise InvalidInput(sentence) from error

    def _entry(self, row: Any) -> ForeignEntry:
        number, thread, source, text, created, metadata, summary, updated = row
        created_at = _moment(created)
        return ForeignEntry(
            _id(number), str(thread), source, str(text), metadata, summary or None, created_at,
            _moment(updated) if updated else created_at, self._tags(number), self._images(number),
        )  # fmt: skip

    def _tags(self, number: int | str) -> tuple[str, ...]:
        if "tags" not in self._tables:
            return ()
        rows: Any = self._db.execute("select tag from tags where context_entry_id = ? order by id", (number,))
        return tuple(tag for (tag,) in rows)

    def _images(self, number: int | str) -> tuple[tuple[bytes, str, str | None], ...]:
        if "image_attachments" not in self._tables:
            return ()
        rows: Any = self._db.execute(
            """select image_data, mime_type, image_metadata from image_attachments
               where context_entry_id = ? order by position, id""",
            (number,),
        )
        return tuple((bytes(data), kind, metadata) for data, kind, metadata in rows)


@contextmanager
def open_foreign(path: Path) -> Iterator[ForeignFile]:
    """Yield the file as it is now, what its write-ahead log holds included."""
    if not path.is_file():
        raise NotFound(f"There is no file at {path}.")
    with tempfile.TemporaryDirectory(prefix="commonplace-import-") as folder, explained(path):
        copy = Path(folder) / "copy.db"
        shutil.copyfile(path, copy)
        log = path.with_name(path.name + "-wal")
        if log.is_file():
            shutil.copyfile(log, copy.with_name(copy.name + "-wal"))
        with closing(apsw.Connection(str(copy))) as connection:
            yield ForeignFile(connection, path)


def _id(value: Any) -> int | str:
    if isinstance(value, int):
        return value
    digits = str(value).strip().lower().replace("-", "")
    if not _UUID.fullmatch(digits):
        raise ValueError(f"{value!r} is no id of an entry")
    return digits


def _moment(value: Any) -> datetime:
    """Return a time of theirs, which is UTC with a blank between date and time."""
    try:
        moment = datetime.fromisoformat(str(value).strip().replace(" ", "T", 1))
    except ValueError as error:
        raise InvalidInput(f"{value!r} is no time of mcp-context-server.") from error
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
