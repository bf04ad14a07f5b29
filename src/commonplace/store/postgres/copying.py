"""The store on PostgreSQL: a space as a SQLite file, and back. Either kind of store takes up the backups of the other.

The tables of both have the same names and columns, but for what is said here.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any

import apsw

from commonplace.errors import NotFound, StorageBroken
from commonplace.model import CHUNK_BITS, MOST_CHUNKS, fingerprint
from commonplace.store.connection import explained as explained_file
from commonplace.store.postgres.connection import SCHEMA
from commonplace.store.postgres.filters import compared
from commonplace.store.postgres.items import reads, seat_and_label, writes
from commonplace.store.postgres.memory import EntryRows
from commonplace.store.sqlite_extras import SqliteStore

_ROWS = 500
_DERIVED = ("metadata_fields", "metadata_values", "metadata_holders")
"""What is made anew from the rest."""
_COUNTED = "memory_threads"
"""What triggers count here."""
_KEPT = ("spaces", "users", "keys", "schema_versions")
"""What is not of a space's content."""
_HERE = {"chunks.id": f"item_id << {CHUNK_BITS} | ordinal", "session_lists.replayed": "replayed::integer"}
"""What a column of SQLite is here."""

Row = dict[str, Any]


class Copies(EntryRows):
    """Backups."""

    def backup(self, target: Path) -> None:
        """A consistent copy while others go on writing. It takes its name only when it is complete and on disk."""
        partial = target.with_name(target.name + ".partial")
        with explained_file(target):
            partial.unlink(missing_ok=True)
            try:
                with closing(SqliteStore(partial)) as copy:
                    self._copy_to(copy)
                with partial.open("rb") as file:
                    os.fsync(file.fileno())
                partial.replace(target)
            finally:
                for path in partial.parent.glob(partial.name + "*"):
                    path.unlink(missing_ok=True)

    @reads
    def _copy_to(self, copy: SqliteStore) -> None:
        numbers = self._all("select item, entry from spaces")[0]
        with copy.transaction():
            db = copy._database.reading()
            db.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)  # every row is copied, those that triggers made too
            for table, columns in _tables(db):
                if table in self._tables():
                    marks = ", ".join("?" * len(columns))
                    db.executemany(f"insert into {table} values ({marks})", self._rows_of(table, columns))
            for table, last in zip(("items", "memories"), numbers, strict=True):
                db.execute("delete from sqlite_sequence where name = ?", (table,))
                db.execute("insert into sqlite_sequence (name, seq) values (?, ?)", (table, last))
            db.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 1)
        for path in self._fields():
            copy.index_field(path)

    def _rows_of(self, table: str, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        named = ", ".join(_HERE.get(f"{table}.{name}", name) for name in columns)
        self._run(f"declare walk no scroll cursor for select {named} from {table}")  # a few rows at a time come over
        while rows := self._all(f"fetch {_ROWS} from walk"):
            for row in rows:
                yield tuple(int(value) if isinstance(value, Decimal) else value for value in row)
        self._run("close walk")

    def restore(self, source: Path) -> None:
        """Take over everything from a backup, in one transaction: others see the old content or the new."""
        if not source.is_file():
            raise NotFound(f"There is no backup at {source}.")
        with tempfile.TemporaryDirectory(prefix="commonplace-restore-") as folder, explained_file(source):
            path = Path(folder) / "copy.db"
            with closing(apsw.Connection(str(source), flags=apsw.SQLITE_OPEN_READONLY)) as original:
                original.execute("vacuum into ?", (str(path),))
            with closing(SqliteStore(path)) as copy:  # brings an older backup's schema up to date, in a copy
                if problems := copy.check():
                    raise StorageBroken(f"{source} is no sound backup: {problems[0]}. Nothing was changed.")
                self._take_over(copy)

    @writes
    def _take_over(self, copy: SqliteStore) -> None:
        db, here = copy._database.reading(), self._tables()
        for table in here:
            self._run(f"delete from {table}")
        for table, columns in _tables(db):
            if table in here and table != _COUNTED:
                found = db.execute(f"select {', '.join(columns)} from {table}")
                self._insert_rows(table, (_here(table, dict(zip(columns, row, strict=True))) for row in found))
        sequences: dict[str, int] = dict(db.execute("select name, seq from sqlite_sequence"))
        current = self._database.current
        if current is not None:
            change = int(self._one("select coalesce(max(seq), 0) from changes"))
            current.numbers = {
                "change": change,
                "item": sequences.get("items", 0),
                "entry": sequences.get("memories", 0),
            }
        for path in copy.indexed_fields():
            self.index_field(path)

    def _insert_rows(self, table: str, rows: Iterable[Row]) -> None:
        rows = iter(rows)
        while batch := list(islice(rows, _ROWS)):
            named = ", ".join(batch[0])
            marks = ", ".join(f"%({name})s" for name in batch[0])
            self._run_all(f"insert into {table} ({named}) values ({marks})", batch)

    def _tables(self) -> set[str]:
        """The tables of what a space holds."""
        rows = self._all("select tablename from pg_tables where schemaname = %s", (SCHEMA,))
        return {table for (table,) in rows} - set(_KEPT)


def _tables(db: apsw.Connection) -> Iterator[tuple[str, list[str]]]:
    """The tables of a SQLite store with their columns, attachments of items last: entries count them when they come."""
    query = """select name from sqlite_schema where type = 'table' and name not like 'sqlite%'
               order by name = 'item_attachments', name"""
    for (table,) in db.execute(query).fetchall():
        if table not in _DERIVED:
            yield (
                str(table),
                [str(column) for (column,) in db.execute("select name from pragma_table_info(?)", (table,))],
            )


def _here(table: str, row: Row) -> Row:
    """A row of SQLite as it is kept here."""
    if table == "items":
        metadata, fields = json.loads(row["metadata"]), json.loads(row["fields"])
        seat, label = seat_and_label(row["kind"], fields)
        row |= {"address": fingerprint(row["kind"], row["parent"], row["key"]), "seat": seat, "label": label}
        return row | {
            "exact": compared(metadata, case_sensitive=True),
            "folded": compared(metadata, case_sensitive=False),
        }
    if table == "chunks":
        identity = row.pop("id")
        return {"item_id": identity >> CHUNK_BITS, "ordinal": identity & (MOST_CHUNKS - 1), **row}
    if table == "memories":
        return row | {"images": 0}
    if table == "session_lists":
        return row | {"replayed": bool(row["replayed"])}
    if table == "jobs":
        del row["id"]  # the server numbers them
    return row
