"""What this side knows of the rows it sent: their ids, their terms, and how often each term occurs in all of them.

The service ranks candidates; what a passage scores is decided here, with counts of the whole library, so that a score
is the same on every page, under every filter and on every index. It is also what tells superseded rows apart: their
ids come from a text that is gone. One SQLite file, disposable: without it everything is sent anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

from commonplace.index.follower import IndexDamaged
from commonplace.index.turbopuffer.ledger_sql import CLEAR, EMPTIED, INSERT, SCHEMA, TALLIED
from commonplace.index.turbopuffer.parts import Hit
from commonplace.index.turbopuffer.rows import TABLE, Row
from commonplace.index.turbopuffer.settings import is_table
from commonplace.index.turbopuffer.tallies import FIELDS, Tallied, Tally, Terms, apart, tallied
from commonplace.lazy_dataclass import dataclass
from commonplace.model import CHUNK_BITS

FORMAT = 5
_DOUBT = "doubt:"
_BUSY_MS = 30_000


@dataclass(frozen=True, slots=True)
class Sent:
    """A row as it was acknowledged."""

    namespace: str
    id: str
    digest: bytes


class Ledger:
    """One connection. Everything it is asked between `begin` and `close` is of one moment."""

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
        self._db.close()

    def begin(self) -> None:
        """Hold on to this moment, whatever others commit."""
        self._db.execute("begin")
        self.position()  # a deferred transaction begins with its first read

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self._db.execute("begin immediate")
        try:
            yield
            self._db.execute("commit")
        except BaseException:
            if not self._db.get_autocommit():  # SQLite itself has undone what the disk had no room for
                self._db.execute("rollback")
            raise

    def clear(self, **facts: Any) -> None:
        """Forget all rows and the position, but not which model's vectors are wanted, and keep some facts."""
        with self.transaction():
            self._db.execute(CLEAR)
            for name, value in facts.items():
                self._set(name, value)

    def choose(self, fingerprint: str, dims: int) -> None:
        """Have the rows of a model's vectors from now on, and remember the namespaces that are left for it."""
        self._leave(model=fingerprint, dims=dims)

    def follow(self, log: str) -> None:
        """Have the rows of another log from now on, and remember the namespaces that are left for it."""
        self._leave(log=log)

    def _leave(self, **facts: Any) -> None:
        sending = {name for (name,) in self._db.execute("select distinct namespace from sending")}
        left = [(name,) for name in {*self.counts(), *sending}]
        self.clear(**facts)
        with self._db:
            self._db.executemany("insert or ignore into left values (?)", left)

    # facts

    def fact(self, name: str) -> Any:
        found = self._one("select value from facts where name = ?", (name,))
        return found[0] if found else None

    def note(self, **facts: Any) -> None:
        """Keep some facts; None forgets one."""
        with self._db:
            for name, value in facts.items():
                self._set(name, value)

    def _set(self, name: str, value: Any) -> None:
        if value is None:
            self._db.execute("delete from facts where name = ?", (name,))
        else:
            self._db.execute("insert or replace into facts values (?, ?)", (name, value))

    def position(self) -> int:
        return int(self.fact("position") or 0)

    # rows

    def sent(self, items: Sequence[int]) -> dict[int, Sent]:
        """What is known to be there of some items, by chunk."""
        found: dict[int, Sent] = {}
        for item in items:
            span = (item << CHUNK_BITS, (item + 1) << CHUNK_BITS)
            query = "select chunk, namespace, id, digest from rows where chunk >= ? and chunk < ?"
            for chunk, namespace, identity, digest in self._db.execute(query, span):
                found[chunk] = Sent(namespace, identity, digest)
        return found

    def terms(self, chunks: Iterable[int]) -> Iterator[Terms]:
        """The terms of chunks, in the order of their ids, without those that are not there."""
        query = """select chunk, created, title, body, words from rows
                   where chunk in (select value from json_each(?)) order by chunk"""
        for chunk, created, *fields in self._db.execute(query, (json.dumps(list(chunks)),)):
            yield Terms(chunk, created, *map(apart, fields))

    def chunks_of(self, items: Iterable[int]) -> list[int]:
        """The chunks of items, ascending."""
        query = """select rows.chunk from json_each(?) as wanted join rows
                   on rows.chunk >= wanted.value << :bits and rows.chunk < (wanted.value + 1) << :bits order by 1"""
        query = query.replace(":bits", str(CHUNK_BITS))
        return [chunk for (chunk,) in self._db.execute(query, (json.dumps(list(items)),))]

    def ids(self, chunks: Iterable[int]) -> dict[int, tuple[str, str]]:
        """Where chunks are: their namespaces and ids."""
        query = "select chunk, namespace, id from rows where chunk in (select value from json_each(?))"
        rows = self._db.execute(query, (json.dumps(list(chunks)),))
        return {chunk: (namespace, identity) for chunk, namespace, identity in rows}

    def counts(self) -> dict[str, int]:
        """How many rows each namespace has."""
        return dict(self._tallied("namespace:"))

    def generations(self, namespace: str) -> list[int]:
        """Which generations the rows of a namespace are of."""
        return [int(generation) for generation, _ in self._tallied(f"generation:{namespace}:")]

    def embedded(self) -> int:
        return self.tally("embedded")

    def namespaces(self, kinds: Sequence[str], parents: Sequence[str]) -> list[str]:
        """Where rows of these kinds and parents may be; of all where none is named."""
        if parents:
            query = "select distinct namespace from rows where parent in (select value from json_each(?))"
            return sorted(name for (name,) in self._db.execute(query, (json.dumps(list(parents)),)))
        if kinds and TABLE not in kinds:
            return [name for name in sorted(self.counts()) if not is_table(name)]
        return sorted(self.counts())

    def namespaces_of(self, items: Sequence[int]) -> list[str]:
        """Where the rows of some items are."""
        query = """select distinct namespace from json_each(?) as wanted join rows
                   on rows.chunk >= wanted.value << 20 and rows.chunk < (wanted.value + 1) << 20"""
        return sorted(name for (name,) in self._db.execute(query, (json.dumps(list(items)),)))

    def emptied(self) -> list[str]:
        """Namespaces that had rows and have none any more."""
        return [name for (name,) in self._db.execute("select namespace from emptied")]

    def forget(self, namespace: str) -> None:
        self._db.execute("delete from emptied where namespace = ?", (namespace,))

    def held(self, items: Iterable[int]) -> dict[str, dict[int, int]]:
        """How many rows there are of some items, by namespace and item."""
        query = """select namespace, wanted.value, count(*) from json_each(?) as wanted join rows
                   on rows.chunk >= wanted.value << 20 and rows.chunk < (wanted.value + 1) << 20 group by 1, 2"""
        found: dict[str, dict[int, int]] = {}
        for namespace, item, count in self._db.execute(query, (json.dumps(list(items)),)):
            found.setdefault(namespace, {})[item] = count
        return found

    def all_ids(self, namespace: str) -> dict[str, tuple[int, bytes]]:
        """The chunk and the digest of every row of a namespace, by the row's id."""
        rows = self._db.execute("select id, chunk, digest from rows where namespace = ?", (namespace,))
        return {identity: (chunk, digest) for identity, chunk, digest in rows}

    def left(self) -> list[str]:
        """Namespaces that had rows with the vectors of a model before this one."""
        return [name for (name,) in self._db.execute("select namespace from left")]

    def has_made(self, namespace: str) -> bool:
        """Whether nobody had a row there when this server came."""
        return self._one("select 1 from made where namespace = ?", (namespace,)) is not None

    def gone(self, namespace: str) -> None:
        """A namespace that was left is not there any more."""
        with self._db:
            self._db.execute("delete from left where namespace = ?", (namespace,))
            self._db.execute("delete from made where namespace = ?", (namespace,))

    # what others sent

    def has_looked(self, namespace: str) -> bool:
        return self._one("select 1 from looked where namespace = ?", (namespace,)) is not None

    def look(self, namespace: str, hits: Iterable[Hit]) -> None:
        """Keep what a namespace had when it was first seen."""
        with self.transaction():
            rows = ((namespace, hit.id, bytes.fromhex(hit.digest), hit.version) for hit in hits)
            self._db.executemany("insert or replace into found values (?, ?, ?, ?)", rows)
            self._db.execute("insert or ignore into looked values (?)", (namespace,))
            if self._one("select 1 from found where namespace = ?", (namespace,)) is None:
                self._db.execute("insert or ignore into made values (?)", (namespace,))

    def found(self, rows: Sequence[Row]) -> set[int]:
        """Those rows, by their chunks, that were there as they are when their namespace was first seen."""
        if not rows or self._one("select 1 from found", ()) is None:
            return set()
        query = "select 1 from found where namespace = ? and id = ? and digest = ?"
        return {row.chunk for row in rows if self._one(query, (row.namespace, row.id, row.digest)) is not None}

    def strays(self) -> dict[str, list[str]]:
        """What was there when it was first seen, and is neither a row nor of a later change, by namespace."""
        query = """select namespace, id from found where version <= ? and not exists
                   (select 1 from rows where rows.namespace = found.namespace and rows.id = found.id)"""
        strays: dict[str, list[str]] = {}
        for namespace, identity in self._db.execute(query, (self.position(),)):
            strays.setdefault(namespace, []).append(identity)
        return strays

    def settle(self) -> None:
        """What was there is known now, as rows or not at all."""
        with self.transaction():
            self._db.execute("delete from found; delete from looked")
            self._set("ready", 1)
            self._set("anew", None)

    # doubts

    def doubt(self, namespace: str) -> None:
        """What a namespace has is to be compared with what is known of it, by who writes next."""
        self.note(**{f"{_DOUBT}{namespace}": 1})

    def trust(self, namespace: str) -> None:
        self.note(**{f"{_DOUBT}{namespace}": None})

    def doubted(self) -> list[str]:
        query = "select substr(name, ?) from facts where name >= ? and name < ?"
        bounds = (len(_DOUBT) + 1, _DOUBT, f"{_DOUBT}\U0010ffff")
        return [name for (name,) in self._db.execute(query, bounds)]

    def lost(self, chunks: Iterable[int]) -> None:
        """Rows that were acknowledged and are not there: they are sent anew with their items."""
        query = "update rows set digest = x'' where chunk in (select value from json_each(?))"
        self._db.execute(query, (json.dumps(list(chunks)),))

    def refusals(self) -> list[tuple[int, str]]:
        return [(chunk, reason) for chunk, reason in self._db.execute("select chunk, reason from refused order by 1")]

    # sending

    def announce(self, ids: Iterable[tuple[str, str]]) -> None:
        """Before rows are sent: a crash must not leave one behind that nobody knows of."""
        with self._db:
            self._db.executemany("insert or ignore into sending values (?, ?)", ids)

    def withdraw(self, ids: Iterable[tuple[str, str]]) -> None:
        """What was announced and rejected was never there."""
        with self._db:
            self._db.executemany("delete from sending where namespace = ? and id = ?", ids)

    def orphans(self) -> list[tuple[str, str]]:
        """What was announced and may be there, though no row is known by it."""
        query = """select namespace, id from sending where not exists
                   (select 1 from rows where rows.namespace = sending.namespace and rows.id = sending.id)"""
        return [(namespace, identity) for namespace, identity in self._db.execute(query)]

    def acknowledge(self) -> None:
        """Nothing that was announced is in doubt any more."""
        if self.in_doubt():
            self._db.execute("delete from sending")

    def in_doubt(self) -> bool:
        """Whether a run that announced rows has not come to its end."""
        return self._one("select 1 from sending", ()) is not None

    def replace(
        self, items: Sequence[int], rows: Sequence[Row], refused: Mapping[int, str], position: int | None
    ) -> None:
        """After the acknowledgement: these items have these rows and no others, and the log is followed so far.

        Where there is no position, it is not followed further yet.
        """
        with self.transaction():
            changed = Tally()
            for item in items:
                span = (item << CHUNK_BITS, (item + 1) << CHUNK_BITS)
                old: list[Any] = self._db.execute(TALLIED, span).fetchall()
                for values in old:
                    changed.add(Tallied(*values), -1)
                self._db.execute("delete from rows where chunk >= ? and chunk < ?", span)
                self._db.execute("delete from refused where chunk >= ? and chunk < ?", span)
            for row in rows:
                self._insert(row)
                changed.add(tallied(row), 1)
            self._db.executemany("insert or replace into refused values (?, ?)", refused.items())
            self._count(changed)
            if position is not None:
                self._set("position", position)

    def _insert(self, row: Row) -> None:
        names = ("chunk", "namespace", "id", "digest", "kind", "parent", "language", "many", "created", "updated")
        values = {name: getattr(row, name) for name in (*names, "generation", *FIELDS)}
        self._db.execute(INSERT, {**values, "embedded": row.vector is not None})

    def _count(self, changed: Tally) -> None:
        self._db.executemany(
            "insert into terms values (?, ?, ?) on conflict (field, term) do update set count = count + excluded.count",
            [(field, term, count) for (field, term), count in changed.terms.items() if count],
        )
        self._db.executemany(
            "insert into tallies values (?, ?) on conflict (name) do update set count = count + excluded.count",
            [(name, count) for name, count in changed.tallies.items() if count],
        )
        gone = [key for key, count in changed.terms.items() if count < 0]
        self._db.executemany("delete from terms where field = ? and term = ? and count <= 0", gone)
        self._db.execute(EMPTIED)

    # counts

    def tally(self, name: str) -> int:
        found = self._one("select count from tallies where name = ?", (name,))
        return int(found[0]) if found else 0

    def _tallied(self, prefix: str) -> list[tuple[str, int]]:
        query = "select name, count from tallies where name >= ? and name < ? order by name"
        return [
            (name[len(prefix) :], count) for name, count in self._db.execute(query, (prefix, f"{prefix}\U0010ffff"))
        ]

    def languages(self) -> list[tuple[str, int]]:
        return self._tallied("language:")

    def says(self, language: str, term: str) -> bool:
        """Whether a row in a language has a term in its body."""
        query = "select 1 from rows where language = ? and instr(' ' || body || ' ', ?) limit 1"
        return self._one(query, (language, f" {term} ")) is not None

    def occurs(self, field: str, term: str) -> int:
        """How many rows have a term."""
        found = self._one("select count from terms where field = ? and term = ?", (field, term))
        return int(found[0]) if found else 0

    def beginning(self, prefix: str, limit: int) -> list[str]:
        """The words that begin so, in order."""
        query = """select term from terms where field = 'words' and term >= :low and term < :high
                   order by term limit :limit"""
        bounds: dict[str, str | int] = {"low": prefix, "high": f"{prefix}\U0010ffff", "limit": limit}
        return [term for (term,) in self._db.execute(query, bounds)]

    def words(self, shortest: int, longest: int) -> list[str]:
        """All words of some lengths, in characters."""
        query = "select term from terms where field = 'words' and length(term) between ? and ?"
        return [term for (term,) in self._db.execute(query, (shortest, longest))]

    def _one(self, query: str, values: tuple[Any, ...]) -> tuple[Any, ...] | None:
        found: tuple[Any, ...] | None = self._db.execute(query, values).fetchone()
        return found
