"""The store on PostgreSQL: a space as a SQLite file, and back. Either kind of store takes up the backups of the other.

The tables of both have the same names and columns, but for what is said here.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any

from psycopg import sql

from commonplace.model import CHUNK_BITS, MOST_CHUNKS, fingerprint
from commonplace.store.backups import check_target, make_private, partial_of
from commonplace.store.metadata_index import MetadataIndex
from commonplace.store.postgres.connection import SCHEMA
from commonplace.store.postgres.filters import compared
from commonplace.store.postgres.found_by import seat_and_label
from commonplace.store.postgres.items import PostgresItems, reads, writes
from commonplace.store.sqlite.connection import explained as explained_file
from commonplace.store.sqlite.file_side import DERIVED, insert_rows, set_numbers, table_shapes, without_triggers
from commonplace.store.sqlite.store import SqliteStore, copied
from commonplace.store.transfer import TableShape

_ROWS = 500
_COUNTED = "memory_threads"
"""What triggers count here."""
_KEPT = ("spaces", "users", "keys", "logins", "schema_versions")
"""What is not of a space's content."""
_HERE = {
    "chunks.id": f"item_id << {CHUNK_BITS} | ordinal",
    "session_lists.replayed": "replayed::integer",
    "tables.searchable": "searchable::integer",
    "instances.enabled": "enabled::integer",
    "bindings.enabled": "enabled::integer",
    "dirty_places.alone": "alone::integer",
}
"""What a column of SQLite is here."""
_TRUTHS = ("replayed", "searchable", "enabled", "alone")
_BYTES = {"fragments.key", "tools.json_path", "dirty_places.pointer", "dirty_places.cursor"}
"""What is bytes here and text in SQLite, which may hold U+0000 there."""

Row = dict[str, Any]


class Copies(PostgresItems):
    """Backups and restores."""

    def backup(self, target: Path) -> None:
        """Write a consistent copy while others write. It takes its name only when it is complete and on disk."""
        check_target(target)
        with explained_file(target):
            partial = partial_of(target)
            try:
                self._copy_to(partial)
                with partial.open("rb") as file:
                    os.fsync(file.fileno())
                partial.replace(target)
            finally:
                for path in partial.parent.glob(partial.name + "*"):
                    path.unlink(missing_ok=True)

    @reads
    def _copy_to(self, partial: Path) -> None:
        """Write the copy, from the beginning each time: what reads is repeated where its connection was lost."""
        partial.unlink(missing_ok=True)
        make_private(partial)
        self._run("set local statement_timeout = 0")  # a table may have to be sorted
        with closing(SqliteStore(partial)) as copy:
            with copy.transaction(), without_triggers(copy._database.reading()) as db:
                for shape in table_shapes(db):
                    if shape.table in self._tables():
                        insert_rows(db, shape, self._rows_of(shape))
                set_numbers(db, self._numbers())
            for path in self.drawer(MetadataIndex).fields():
                copy.drawer(MetadataIndex).add(path)

    def _rows_of(self, shape: TableShape, after: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a table as SQLite has them, in the order of its key, from just after one."""
        columns, key = (
            ", ".join(_HERE.get(f"{shape.table}.{name}", name) for name in names)
            for names in (shape.columns, shape.key)
        )
        beyond = sql.SQL(", ").join(map(sql.Literal, after)).as_string(self._db)
        where = f"where ({key}) > ({beyond})" if after else ""
        # a few rows at a time come over
        self._run(f"declare walk no scroll cursor for select {columns} from {shape.table} {where} order by {key}")
        spelt = [f"{shape.table}.{name}" in _BYTES for name in shape.columns]
        while rows := self._all(f"fetch {_ROWS} from walk"):
            for row in rows:
                yield tuple(_there(value, is_text) for value, is_text in zip(row, spelt, strict=True))
        self._run("close walk")

    def restore(self, source: Path) -> None:
        """Replace everything with a backup's content, in one transaction: others see the old or the new."""
        with copied(source) as copy:
            self._take_over(copy)

    @writes
    def _take_over(self, copy: SqliteStore) -> None:
        self._run("set local statement_timeout = 0")  # a space may take long to empty
        db = copy._database.reading()
        tables = list(table_shapes(db))
        self._clear(tables)
        for shape in tables:
            rows = db.execute(f"select {', '.join(shape.columns)} from {shape.table}")
            self._take(shape, rows)
        self._number(dict(db.execute("select name, seq from sqlite_sequence")))
        for path in copy.drawer(MetadataIndex).fields():
            self.drawer(MetadataIndex).add(path)

    def _clear(self, known: Sequence[TableShape]) -> None:
        """Remove everything, what refers to others first."""
        here = self._tables()
        for table in [*DERIVED, *(shape.table for shape in reversed(known))]:
            if table in here:
                self._run(f"delete from {table}")

    def _take(self, shape: TableShape, rows: Iterable[tuple[Any, ...]]) -> None:
        """Store rows of SQLite."""
        if shape.table in self._tables() and shape.table != _COUNTED:
            self._insert_rows(
                shape.table, (_here(shape.table, dict(zip(shape.columns, row, strict=True))) for row in rows)
            )

    def _numbers(self) -> dict[str, int]:
        """Return the numbers that were given out last, by table."""
        item, entry, part = self._all("select item, entry, part from spaces")[0]
        return {"items": item, "memories": entry, "tables": part}

    def _number(self, last: Mapping[str, int]) -> None:
        """Go on after the numbers that were given out last, by table."""
        current = self._database.current
        if current is not None:
            change = int(self._one("select coalesce(max(seq), 0) from changes"))
            fragment = int(self._one("select coalesce(max(id), 0) from fragments"))
            part = max(fragment, *(last.get(table, 0) for table in ("tables", "dirty_places", "table_jobs")))
            current.numbers = {
                "change": change,
                "item": last.get("items", 0),
                "entry": last.get("memories", 0),
                "part": part,
            }

    def _insert_rows(self, table: str, rows: Iterable[Row]) -> None:
        rows = iter(rows)
        while batch := list(islice(rows, _ROWS)):
            columns = ", ".join(batch[0])
            marks = ", ".join(f"%({name})s" for name in batch[0])
            self._run_all(f"insert into {table} ({columns}) values ({marks})", batch)

    def _tables(self) -> set[str]:
        """Return the tables of what a space holds."""
        rows = self._all("select tablename from pg_tables where schemaname = %s", (SCHEMA,))
        return {table for (table,) in rows} - set(_KEPT)


def _here(table: str, row: Row) -> Row:
    """Return a row of SQLite as it is stored here."""
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
    if table == "jobs":
        del row["id"]  # the server numbers them
    for name, value in row.items():
        if name in _TRUTHS:
            row[name] = bool(value)
        elif value is not None and f"{table}.{name}" in _BYTES:
            row[name] = value.encode()
    return row


def _there(value: Any, is_text: bool) -> Any:
    """Return a value as SQLite stores it."""
    if is_text and value is not None:
        return value.decode()
    return int(value) if isinstance(value, Decimal) else value
