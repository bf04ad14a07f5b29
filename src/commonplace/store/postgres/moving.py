"""A space goes over from a file to a PostgreSQL database, or back: in steps that are taken up again, and compared.

What is read is one state of the source, whatever others write meanwhile. The target notes, with every batch, how far it
is and what it is a copy of: a later run goes on from there where the source is still that, and starts over where not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from commonplace.errors import AlreadyExists, InvalidInput, StorageBroken, Unavailable
from commonplace.store.postgres.problems import Lost
from commonplace.store.transfer import MIGRATION, Row, Side, TableShape

BATCH_ROWS = 1000
BATCH_BYTES = 8_000_000
"""How much one transaction holds: what a run that is stopped has to do again, at most."""

Progress = Callable[[int, int], None]
Watch = Callable[[str], AbstractContextManager[Progress]]
"""Begins to show a step, which has a name."""
Tally = tuple[int, str]
"""How many rows a table has, and the sum of their hashes: it is the same in whatever order they come."""

_OWN = ("identity", MIGRATION)
"""Settings that a store keeps to itself."""
_RENUMBERED = {"jobs": "id"}
"""What a server numbers by itself."""


@dataclass(frozen=True, slots=True)
class Moved:
    """The number of rows that each table has now. `before`: an earlier run had brought them."""

    rows: Mapping[str, int]
    before: bool = False


def move(source: Side, target: Side, watch: Watch) -> Moved:
    """Copy everything, or what is missing of it; compare it row by row; only then let others use it."""
    try:
        return source.read(lambda: _move(source, target, watch))
    except Lost as error:
        raise Unavailable(f"{error.why} What was copied stays: run this again, and it goes on where it was.") from error


def abandon(target: Side) -> bool:
    """Remove what an unfinished run has left, if one has."""
    mark = target.mark()
    if mark is None or mark["complete"]:
        return False
    target.clear(None)
    return True


def _move(source: Side, target: Side, watch: Watch) -> Moved:
    tables = source.shapes()
    tallies = _tallies(source, tables, watch, "reading")
    rows = {table: count for table, (count, _) in tallies.items()}
    mark = _begin(source, target, tallies)
    if mark["complete"]:
        return Moved(rows, before=True)
    with watch("copying") as progress:
        for shape in tables:
            for batch in _batches(source, shape, [_loaded(value) for value in mark["at"].get(shape.table, ())]):
                last = dict(zip(shape.columns, batch[-1], strict=True))
                mark["at"][shape.table] = [_noted(last[name]) for name in shape.key]
                mark["done"] += len(batch)
                _take(target, shape, batch, mark)
                progress(mark["done"], sum(rows.values()))
    target.finish(source.numbers(), source.fields())
    _compare(target, tables, tallies, watch)
    target.complete({**_fresh(tallies), "complete": True})
    return Moved(rows)


def _take(target: Side, shape: TableShape, batch: list[Row], mark: dict[str, Any]) -> None:
    try:
        target.take(shape, batch, mark)
    except InvalidInput as error:
        first = dict(zip(shape.columns, batch[0], strict=True))
        place = ", ".join(str(first[name]) for name in shape.key)
        raise InvalidInput(f"A row of {shape.table} cannot go over, {place} or one after it. {error}") from error


def _begin(source: Side, target: Side, found: dict[str, Tally]) -> dict[str, Any]:
    """Return the mark of the target, which is ours to fill. Raise AlreadyExists where it is not."""
    homeless = [table for table, (count, _) in found.items() if count and table not in _names(target)]
    if homeless:
        raise Unavailable(f"{target.name} cannot keep {homeless[0]} of {source.name}. Nothing was changed.")
    mark, fresh = target.mark(), _fresh(found)
    if mark is None and not target.is_empty():
        raise AlreadyExists(f"{target.name} holds something already. Only what is empty is filled: choose another.")
    if mark is not None and mark["complete"] and mark["rows"] != fresh["rows"]:
        raise AlreadyExists(
            f"{target.name} was filled before, and {source.name} has changed since or is another. Nothing was changed."
        )
    if mark is None or mark["rows"] != fresh["rows"]:
        target.clear(fresh)
        return fresh
    return mark


def _fresh(found: dict[str, Tally]) -> dict[str, Any]:
    """Return the mark of a target that has nothing yet."""
    return {"complete": False, "rows": {table: list(tally) for table, tally in found.items()}, "at": {}, "done": 0}


def _names(side: Side) -> set[str]:
    return {shape.table for shape in side.shapes()}


def _compare(target: Side, known: Sequence[TableShape], wanted: dict[str, Tally], watch: Watch) -> None:
    there = [shape for shape in known if shape.table in _names(target)]
    tallies = target.read(lambda: _tallies(target, there, watch, "comparing"))
    wrong = [table for table, tally in wanted.items() if tallies.get(table, _NOTHING) != tally]
    problems = [f"{table} differ" for table in wrong] or target.check()
    if problems:
        target.clear(_fresh({}))
        raise StorageBroken(f"{target.name} is not what was copied: {problems[0]}. Run this again: it starts over.")


def _tallies(side: Side, known: Sequence[TableShape], watch: Watch, step: str) -> dict[str, Tally]:
    tallies: dict[str, Tally] = {}
    with watch(step) as progress:
        for number, shape in enumerate(known, start=1):
            count = total = 0
            for row in _kept(side, shape):
                count, total = count + 1, total + _number(shape, row)
            tallies[shape.table] = count, _written(total)
            progress(number, len(known))
    return tallies


def _number(shape: TableShape, row: Row) -> int:
    """Return a hash of a row, each value with its length before it."""
    digest = hashlib.sha256()
    for name, value in zip(shape.columns, row, strict=True):
        if name != _RENUMBERED.get(shape.table):
            data = value if isinstance(value, bytes) else str(value).encode()
            digest.update(f"{type(value).__name__}{len(data)}:".encode() + data)
    return int.from_bytes(digest.digest(), "big")


def _written(total: int) -> str:
    return f"{total % 2**256:064x}"


_NOTHING: Tally = (0, _written(0))


def _kept(side: Side, shape: TableShape, after: Sequence[Any] = ()) -> Iterator[Row]:
    for row in side.rows(shape, after):
        if shape.table != "settings" or row[0] not in _OWN:
            yield row


def _batches(side: Side, shape: TableShape, after: Sequence[Any]) -> Iterator[list[Row]]:
    batch, size = list[Row](), 0
    for row in _kept(side, shape, after):
        batch.append(row)
        size += sum(len(value) for value in row if isinstance(value, str | bytes))
        if len(batch) >= BATCH_ROWS or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _noted(value: Any) -> Any:
    """Return a value of a key as JSON."""
    return {"bytes": value.hex()} if isinstance(value, bytes) else value


def _loaded(value: Any) -> Any:
    """Return a value of a key from JSON."""
    return bytes.fromhex(value["bytes"]) if isinstance(value, dict) else value
