"""The ledger of the rows that were sent: their ids, their terms, and how often each term occurs in all of them.

The service ranks candidates; a passage is scored here, with counts of the whole library, so that a score is the same on
every page, under every filter and on every index. The ledger also shows which rows are superseded: their ids come from
a text that is gone. It is one SQLite file, and disposable: without it everything is sent anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw

from commonplace.index.followers import IndexDamaged
from commonplace.index.turbopuffer.ledger_sql import CLEAR, COUNTED_ROWS, EMPTIED, INSERT, SCHEMA
from commonplace.index.turbopuffer.parts import ServiceHit
from commonplace.index.turbopuffer.rows import TABLE, Row
from commonplace.index.turbopuffer.service_settings import is_table
from commonplace.index.turbopuffer.tallies import FIELDS, CountChanges, CountedRow, Terms, apart, counted_row
from commonplace.model import CHUNK_BITS

FORMAT = 5
_DOUBT = "doubt:"
_BUSY_MS = 30_000


@dataclass(frozen=True, slots=True)
class Sent:
    """A row as the service acknowledged it."""

    namespace: str
    id: str
    digest: bytes


class Ledger:
    """One connection to the ledger. All reads between `begin` and `close` see one moment."""

    def __init__(self, path: Path, *, create: bool = False) -> None:
        try:
            flags = apsw.SQLITE_OPEN_READWRITE | (apsw.SQLITE_OPEN_CREATE if create else 0)
            self._db = apsw.Connection(str(path), flags=flags)
            self._db.set_busy_timeout(_BUSY_MS)
            self._db.execute("pragma journal_mode = wal; pragma synchronous = full; pragma secure_delete = on")
            if create:
                self._make()
            elif self.fact("format") != FORMAT:
                raise IndexDamaged(f"{path} is of another version")
        except apsw.Error as error:
            raise IndexDamaged(f"{path}: {error}") from error

    def _make(self) -> None:
        with self._db:
            self._db.execute(SCHEMA)
            self._set("format", FORMAT)

    def close(self) -> None:
        """Close the connection."""
        self._db.close()

    def begin(self) -> None:
        """Begin a read transaction: later reads see this moment, whatever others commit."""
        self._db.execute("begin")
        self.position()  # a deferred transaction begins with its first read

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit what the block writes, or undo all of it if the block raises."""
        self._db.execute("begin immediate")
        try:
            yield
            self._db.execute("commit")
        except BaseException:
            if not self._db.get_autocommit():  # SQLite itself has undone what the disk had no room for
                self._db.execute("rollback")
            raise

    def clear(self, **facts: Any) -> None:
        """Remove all rows and the position, but not the chosen model and the log; then store some facts."""
        with self.transaction():
            self._db.execute(CLEAR)
            for name, value in facts.items():
                self._set(name, value)

    def choose(self, fingerprint: str, dims: int) -> None:
        """Start over with the vectors of a model; the namespaces so far become leftovers."""
        self._leave(model=fingerprint, dims=dims)

    def follow(self, log: str) -> None:
        """Start over with the rows of another log; the namespaces so far become leftovers."""
        self._leave(log=log)

    def _leave(self, **facts: Any) -> None:
        sending = {name for (name,) in self._db.execute("select distinct namespace from sending")}
        leftovers = [(name,) for name in {*self.counts(), *sending}]
        self.clear(**facts)
        with self._db:
            self._db.executemany("insert or ignore into left values (?)", leftovers)

    # facts

    def fact(self, name: str) -> Any:
        """Return a named value; None if it is not stored."""
        row = self._one("select value from facts where name = ?", (name,))
        return row[0] if row else None

    def note(self, **facts: Any) -> None:
        """Store some facts; the value None removes one."""
        with self._db:
            for name, value in facts.items():
                self._set(name, value)

    def _set(self, name: str, value: Any) -> None:
        if value is None:
            self._db.execute("delete from facts where name = ?", (name,))
        else:
            self._db.execute("insert or replace into facts values (?, ?)", (name, value))

    def position(self) -> int:
        """Return the last change that the rows are of; 0 when empty."""
        return int(self.fact("position") or 0)

    # rows

    def sent(self, items: Sequence[int]) -> dict[int, Sent]:
        """Return the acknowledged rows of some items, by chunk."""
        rows: dict[int, Sent] = {}
        for item in items:
            span = (item << CHUNK_BITS, (item + 1) << CHUNK_BITS)
            query = "select chunk, namespace, id, digest from rows where chunk >= ? and chunk < ?"
            for chunk, namespace, identity, digest in self._db.execute(query, span):
                rows[chunk] = Sent(namespace, identity, digest)
        return rows

    def terms(self, chunks: Iterable[int]) -> Iterator[Terms]:
        """Yield the terms of chunks, in the order of their ids, without chunks that have no row."""
        query = """select chunk, created, title, body, words from rows
                   where chunk in (select value from json_each(?)) order by chunk"""
        for chunk, created, *fields in self._db.execute(query, (json.dumps(list(chunks)),)):
            yield Terms(chunk, created, *map(apart, fields))

    def chunks_of(self, items: Iterable[int]) -> list[int]:
        """Return the chunks of items, ascending."""
        query = """select rows.chunk from json_each(?) as wanted join rows
                   on rows.chunk >= wanted.value << :bits and rows.chunk < (wanted.value + 1) << :bits order by 1"""
        query = query.replace(":bits", str(CHUNK_BITS))
        return [chunk for (chunk,) in self._db.execute(query, (json.dumps(list(items)),))]

    def ids(self, chunks: Iterable[int]) -> dict[int, tuple[str, str]]:
        """Return the namespace and the row's id of each chunk that has a row, by chunk."""
        query = "select chunk, namespace, id from rows where chunk in (select value from json_each(?))"
        rows = self._db.execute(query, (json.dumps(list(chunks)),))
        return {chunk: (namespace, identity) for chunk, namespace, identity in rows}

    def counts(self) -> dict[str, int]:
        """Return the number of rows by namespace."""
        return dict(self._tallied("namespace:"))

    def generations(self, namespace: str) -> list[int]:
        """Return the generations that the rows of a namespace are of."""
        return [int(generation) for generation, _ in self._tallied(f"generation:{namespace}:")]

    def embedded(self) -> int:
        """Return the number of rows with a vector."""
        return self.tally("embedded")

    def namespaces(self, kinds: Sequence[str], parents: Sequence[str]) -> list[str]:
        """Return the namespaces where rows of these kinds and parents may be; empty sequences admit all."""
        if parents:
            query = "select distinct namespace from rows where parent in (select value from json_each(?))"
            return sorted(name for (name,) in self._db.execute(query, (json.dumps(list(parents)),)))
        if kinds and TABLE not in kinds:
            return [name for name in sorted(self.counts()) if not is_table(name)]
        return sorted(self.counts())

    def namespaces_of(self, items: Sequence[int]) -> list[str]:
        """Return the namespaces with rows of some items."""
        query = """select distinct namespace from json_each(?) as wanted join rows
                   on rows.chunk >= wanted.value << 20 and rows.chunk < (wanted.value + 1) << 20"""
        return sorted(name for (name,) in self._db.execute(query, (json.dumps(list(items)),)))

    def emptied(self) -> list[str]:
        """Return the namespaces that had rows and have none any more."""
        return [name for (name,) in self._db.execute("select namespace from emptied")]

    def forget(self, namespace: str) -> None:
        """Take a namespace off the list of emptied ones."""
        self._db.execute("delete from emptied where namespace = ?", (namespace,))

    def held(self, items: Iterable[int]) -> dict[str, dict[int, int]]:
        """Return the number of rows of some items, by namespace and item."""
        query = """select namespace, wanted.value, count(*) from json_each(?) as wanted join rows
                   on rows.chunk >= wanted.value << 20 and rows.chunk < (wanted.value + 1) << 20 group by 1, 2"""
        counts: dict[str, dict[int, int]] = {}
        for namespace, item, count in self._db.execute(query, (json.dumps(list(items)),)):
            counts.setdefault(namespace, {})[item] = count
        return counts

    def all_ids(self, namespace: str) -> dict[str, tuple[int, bytes]]:
        """Return the chunk and the digest of every row of a namespace, by the row's id."""
        rows = self._db.execute("select id, chunk, digest from rows where namespace = ?", (namespace,))
        return {identity: (chunk, digest) for identity, chunk, digest in rows}

    def left(self) -> list[str]:
        """Return the leftover namespaces: their rows are of an earlier model or log."""
        return [name for (name,) in self._db.execute("select namespace from left")]

    def has_made(self, namespace: str) -> bool:
        """Return True if a namespace had no row when this server first wrote there."""
        return self._one("select 1 from made where namespace = ?", (namespace,)) is not None

    def gone(self, namespace: str) -> None:
        """Remove a namespace, which no longer exists, from the leftovers."""
        with self._db:
            self._db.execute("delete from left where namespace = ?", (namespace,))
            self._db.execute("delete from made where namespace = ?", (namespace,))

    # what others sent

    def has_looked(self, namespace: str) -> bool:
        """Return True if the rows that a namespace held at first are stored."""
        return self._one("select 1 from looked where namespace = ?", (namespace,)) is not None

    def look(self, namespace: str, hits: Iterable[ServiceHit]) -> None:
        """Store the rows that a namespace held when it was first seen."""
        with self.transaction():
            rows = ((namespace, hit.id, bytes.fromhex(hit.digest), hit.version) for hit in hits)
            self._db.executemany("insert or replace into found values (?, ?, ?, ?)", rows)
            self._db.execute("insert or ignore into looked values (?)", (namespace,))
            if self._one("select 1 from found where namespace = ?", (namespace,)) is None:
                self._db.execute("insert or ignore into made values (?)", (namespace,))

    def found(self, rows: Sequence[Row]) -> set[int]:
        """Return the chunks of those rows that their namespace already held, unchanged, when it was first seen."""
        if not rows or self._one("select 1 from found", ()) is None:
            return set()
        query = "select 1 from found where namespace = ? and id = ? and digest = ?"
        return {row.chunk for row in rows if self._one(query, (row.namespace, row.id, row.digest)) is not None}

    def strays(self) -> dict[str, list[str]]:
        """Return the ids of rows found at first that are neither rows of ours nor of a later change, by namespace."""
        query = """select namespace, id from found where version <= ? and not exists
                   (select 1 from rows where rows.namespace = found.namespace and rows.id = found.id)"""
        strays: dict[str, list[str]] = {}
        for namespace, identity in self._db.execute(query, (self.position(),)):
            strays.setdefault(namespace, []).append(identity)
        return strays

    def settle(self) -> None:
        """Drop the rows found at first: all that should be there was sent, and the rest removed."""
        with self.transaction():
            self._db.execute("delete from found; delete from looked")
            self._set("ready", 1)
            self._set("anew", None)

    # doubts

    def doubt(self, namespace: str) -> None:
        """Mark a namespace as in doubt: the next writer compares it with the ledger."""
        self.note(**{f"{_DOUBT}{namespace}": 1})

    def trust(self, namespace: str) -> None:
        """Remove the mark of doubt from a namespace."""
        self.note(**{f"{_DOUBT}{namespace}": None})

    def doubted(self) -> list[str]:
        """Return the namespaces that are in doubt."""
        query = "select substr(name, ?) from facts where name >= ? and name < ?"
        bounds = (len(_DOUBT) + 1, _DOUBT, f"{_DOUBT}\U0010ffff")
        return [name for (name,) in self._db.execute(query, bounds)]

    def lost(self, chunks: Iterable[int]) -> None:
        """Mark acknowledged rows as missing: they are sent anew with their items."""
        query = "update rows set digest = x'' where chunk in (select value from json_each(?))"
        self._db.execute(query, (json.dumps(list(chunks)),))

    def refusals(self) -> list[tuple[int, str]]:
        """Return the chunks that the service rejected, and why."""
        return [(chunk, reason) for chunk, reason in self._db.execute("select chunk, reason from refused order by 1")]

    # sending

    def announce(self, ids: Iterable[tuple[str, str]]) -> None:
        """Store the ids of rows before they are sent: a crash must not leave an unknown row behind."""
        with self._db:
            self._db.executemany("insert or ignore into sending values (?, ?)", ids)

    def withdraw(self, ids: Iterable[tuple[str, str]]) -> None:
        """Remove the announcement of rows that the service rejected."""
        with self._db:
            self._db.executemany("delete from sending where namespace = ? and id = ?", ids)

    def orphans(self) -> list[tuple[str, str]]:
        """Return (namespace, id) of rows that were announced and may be there, but were never acknowledged."""
        query = """select namespace, id from sending where not exists
                   (select 1 from rows where rows.namespace = sending.namespace and rows.id = sending.id)"""
        return [(namespace, identity) for namespace, identity in self._db.execute(query)]

    def acknowledge(self) -> None:
        """Remove all announcements."""
        if self.in_doubt():
            self._db.execute("delete from sending")

    def in_doubt(self) -> bool:
        """Return True if a run that announced rows has not ended."""
        return self._one("select 1 from sending", ()) is not None

    def replace(
        self, items: Sequence[int], rows: Sequence[Row], refused: Mapping[int, str], position: int | None
    ) -> None:
        """Store that the service acknowledged just these rows of these items, and the position unless it is None."""
        with self.transaction():
            changes = CountChanges()
            for item in items:
                span = (item << CHUNK_BITS, (item + 1) << CHUNK_BITS)
                old: list[Any] = self._db.execute(COUNTED_ROWS, span).fetchall()
                for values in old:
                    changes.add(CountedRow(*values), -1)
                self._db.execute("delete from rows where chunk >= ? and chunk < ?", span)
                self._db.execute("delete from refused where chunk >= ? and chunk < ?", span)
            for row in rows:
                self._insert(row)
                changes.add(counted_row(row), 1)
            self._db.executemany("insert or replace into refused values (?, ?)", refused.items())
            self._count(changes)
            if position is not None:
                self._set("position", position)

    def _insert(self, row: Row) -> None:
        names = ("chunk", "namespace", "id", "digest", "kind", "parent", "language", "many", "created", "updated")
        values = {name: getattr(row, name) for name in (*names, "generation", *FIELDS)}
        self._db.execute(INSERT, {**values, "embedded": row.vector is not None})

    def _count(self, changes: CountChanges) -> None:
        self._db.executemany(
            "insert into terms values (?, ?, ?) on conflict (field, term) do update set count = count + excluded.count",
            [(field, term, count) for (field, term), count in changes.terms.items() if count],
        )
        self._db.executemany(
            "insert into tallies values (?, ?) on conflict (name) do update set count = count + excluded.count",
            [(name, count) for name, count in changes.tallies.items() if count],
        )
        lowered = [key for key, count in changes.terms.items() if count < 0]
        self._db.executemany("delete from terms where field = ? and term = ? and count <= 0", lowered)
        self._db.execute(EMPTIED)

    # counts

    def tally(self, name: str) -> int:
        """Return a named count; 0 if it is not stored."""
        row = self._one("select count from tallies where name = ?", (name,))
        return int(row[0]) if row else 0

    def _tallied(self, prefix: str) -> list[tuple[str, int]]:
        query = "select name, count from tallies where name >= ? and name < ? order by name"
        return [
            (name[len(prefix) :], count) for name, count in self._db.execute(query, (prefix, f"{prefix}\U0010ffff"))
        ]

    def languages(self) -> list[tuple[str, int]]:
        """Return the languages and the number of rows in each."""
        return self._tallied("language:")

    def says(self, language: str, term: str) -> bool:
        """Return True if a row in a language has a term in its body."""
        query = "select 1 from rows where language = ? and instr(' ' || body || ' ', ?) limit 1"
        return self._one(query, (language, f" {term} ")) is not None

    def occurs(self, field: str, term: str) -> int:
        """Return the number of rows that have a term in a field."""
        row = self._one("select count from terms where field = ? and term = ?", (field, term))
        return int(row[0]) if row else 0

    def beginning(self, prefix: str, limit: int) -> list[str]:
        """Return the first `limit` words that begin with `prefix`, in order."""
        query = """select term from terms where field = 'words' and term >= :low and term < :high
                   order by term limit :limit"""
        bounds: dict[str, str | int] = {"low": prefix, "high": f"{prefix}\U0010ffff", "limit": limit}
        return [term for (term,) in self._db.execute(query, bounds)]

    def words(self, shortest: int, longest: int) -> list[str]:
        """Return all words whose length in characters is within both bounds."""
        query = "select term from terms where field = 'words' and length(term) between ? and ?"
        return [term for (term,) in self._db.execute(query, (shortest, longest))]

    def _one(self, query: str, values: tuple[Any, ...]) -> tuple[Any, ...] | None:
        row: tuple[Any, ...] | None = self._db.execute(query, values).fetchone()
        return row
