"""The store on PostgreSQL: the data of tables, in fragments. A place is read, and changed, without the rest."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from commonplace.model import JSON
from commonplace.store import shredding
from commonplace.store.postgres.items import PostgresItems, reads, writes
from commonplace.store.shredding import (
    INDEX,
    Branch,
    Leaf,
    Piece,
    dumps,
    elements,
    inside,
    key_size,
    shred,
    with_change,
)
from commonplace.store.table_rows import FRAGMENT_COLUMNS, Fragment, Location, Missing, value_of

KEY_HEAD = 100
"""How many bytes of a key are indexed."""

_ROWS = 500
_INSERT = """insert into fragments (id, tbl, parent, position, key, count, shape, size, text)
    select * from unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bytea[], %s::bigint[],
      %s::text[], %s::bigint[], %s::text[])"""
_INSIDE = """with recursive held (id) as (select id from fragments where parent = any(%s::bigint[])
      union all select fragments.id from fragments join held on parent = held.id)"""
_CHAIN = f"""with recursive chain as (
      select 0 as depth, {FRAGMENT_COLUMNS} from fragments where parent = %(root)s
      union all
      select chain.depth + 1, child.* from chain, lateral (
        (select {FRAGMENT_COLUMNS} from fragments where chain.shape = 'object' and parent = chain.id
           and key_head = (%(heads)s::bytea[])[chain.depth + 1] and key = (%(keys)s::bytea[])[chain.depth + 1] limit 1)
        union all
        (select {FRAGMENT_COLUMNS} from fragments where chain.shape = 'list' and parent = chain.id
           and position <= (%(indices)s::bigint[])[chain.depth + 1] order by position desc limit 1)
      ) as child where chain.text is null and chain.depth < %(depth)s
    ) select {FRAGMENT_COLUMNS} from chain order by depth"""
"""The fragments on the way to a place, in one look: of a list the one that could hold the element."""
_Place = tuple[int, int, str | None]
"""Where a fragment belongs: its parent, its position there, its key."""


class PostgresTableData(PostgresItems):
    """Values of tables by their places. A place is given by its tokens; writes belong in a transaction."""

    # reading

    @reads
    def table_text(self, table: int, tokens: Sequence[str] = ()) -> str | Missing:
        location = self._locate(table, tokens)
        if isinstance(location, Missing):
            return location
        chain, rest = location
        if chain[-1].text is None:
            return self._whole(chain[-1])
        return dumps(inside(value_of(chain[-1]), rest)[0]) if rest else chain[-1].text

    @reads
    def table_value(self, table: int, tokens: Sequence[str] = ()) -> JSON | Missing:
        location = self._locate(table, tokens)
        if isinstance(location, Missing):
            return location
        chain, rest = location
        if chain[-1].text is None:
            return json.loads(self._whole(chain[-1]))
        return inside(value_of(chain[-1]), rest)[0]

    @reads
    def table_size(self, table: int, tokens: Sequence[str] = ()) -> int | Missing:
        location = self._locate(table, tokens)
        if isinstance(location, Missing):
            return location
        chain, rest = location
        return shredding.size_of(dumps(inside(value_of(chain[-1]), rest)[0])) if rest else chain[-1].size

    @reads
    def table_shape(self, table: int, tokens: Sequence[str] = ()) -> tuple[str, int] | Missing:
        location = self._locate(table, tokens)
        if isinstance(location, Missing):
            return location
        chain, rest = location
        last = chain[-1]
        if last.text is None:
            return last.shape, self._count(last)
        value, _ = inside(value_of(last), rest)
        shape = "object" if isinstance(value, dict) else "list" if isinstance(value, list) else "value"
        return shape, len(value) if shape != "value" else 0

    @reads
    def fragment_at(self, table: int, tokens: Sequence[str]) -> tuple[Fragment, list[str]] | Missing:
        location = self._locate(table, tokens)
        return location if isinstance(location, Missing) else (location[0][-1], location[1])

    @reads
    def fragments_in(self, fragment: int, first: int = 0, limit: int = -1, after: int | None = None) -> list[Fragment]:
        return self._fragments(
            """parent = %(parent)s and position >= coalesce(%(after)s::bigint + 1,
                 (select max(position) from fragments where parent = %(parent)s and position <= %(first)s), 0)
               order by position limit %(limit)s""",
            {"parent": fragment, "first": first, "limit": limit if limit >= 0 else None, "after": after},
        )

    @reads
    def fragment_with(self, fragment: int, key: str) -> Fragment | None:
        return next(iter(self._members(fragment, [key])), None)

    # writing

    @writes
    def put_table_value(self, table: int, tokens: Sequence[str], value: JSON) -> None:
        location = self._locate(table, tokens)
        if isinstance(location, Missing):
            self._insert_pieces(table, [((-table, 0, None), shred(value))])
            return
        chain, rest = location
        last = chain[-1]
        if last.shape == "run":
            self._put_elements(table, chain[:-1], last, with_change(value_of(last), rest, value))
        elif last.key is None and len(chain) > 1:  # a long element
            self._put_elements(table, chain[:-1], last, [value])
        else:
            self._put_piece(table, chain, shred(with_change(value_of(last), rest, value) if rest else value))

    @writes
    def add_table_members(self, table: int, tokens: Sequence[str], members: dict[str, JSON]) -> None:
        chain, rest = self._located(table, tokens)
        last = chain[-1]
        if last.text is not None:
            self.put_table_value(table, tokens, {**inside(value_of(last), rest)[0], **members})
            return
        final = self._one("select max(position) from fragments where parent = %s", (last.id,))
        first = 0 if final is None else int(final) + 1
        pieces = [(key, shred(value)) for key, value in members.items()]
        self._insert_pieces(
            table, [((last.id, position, key), piece) for position, (key, piece) in enumerate(pieces, start=first)]
        )
        commas = len(pieces) if final is not None else len(pieces) - 1
        self._grow(chain, sum(key_size(key) + piece.size for key, piece in pieces) + commas)

    @writes
    def append_table_elements(self, table: int, tokens: Sequence[str], values: Sequence[JSON]) -> int:
        chain, rest = self._located(table, tokens)
        last = chain[-1]
        if last.text is not None:
            old = inside(value_of(last), rest)[0]
            self.put_table_value(table, tokens, [*old, *values])
            return len(old)
        final = self._last_row(last)
        count = 0 if final is None else final.position + final.held
        if final is not None and final.shape == "run" and final.size < shredding.FRAGMENT // 2:
            self._put_elements(table, chain, final, [*value_of(final), *values])
            return count
        runs = elements(values)
        self._insert_runs(table, last.id, count, runs)
        self._grow(chain, sum(run.size for run in runs) + len(runs) - (final is None))
        return count

    @writes
    def remove_table_members(self, table: int, tokens: Sequence[str], keys: Sequence[str]) -> None:
        chain, rest = self._located(table, tokens)
        last = chain[-1]
        if last.text is not None:
            gone, old = set(keys), inside(value_of(last), rest)[0]
            self.put_table_value(table, tokens, {key: value for key, value in old.items() if key not in gone})
            return
        members = self._members(last.id, keys)
        self._drop(members)
        shrunk = sum(key_size(member.key or "") + member.size + 1 for member in members)
        left = self._one("select 1 from fragments where parent = %s limit 1", (last.id,))
        self._grow(chain, -shrunk if left else 2 - last.size)

    @writes
    def remove_table_elements(self, table: int, tokens: Sequence[str], indices: Sequence[int]) -> None:
        chain, rest = self._located(table, tokens)
        last, gone = chain[-1], set(indices)
        if last.text is not None:
            old = inside(value_of(last), rest)[0]
            self.put_table_value(table, tokens, [value for place, value in enumerate(old) if place not in gone])
            return
        position, size, kept = 0, 0, 0
        empty, moved, changed = list[Fragment](), list[tuple[int, int]](), list[tuple[Any, ...]]()
        for row in self._fragments("parent = %s order by position", (last.id,)):
            held = gone.intersection(range(row.position, row.position + row.held))
            if len(held) == row.held:
                empty.append(row)
                continue
            left = _without(row, held) if held else row
            if held:
                changed.append((left.held, left.size, left.text, row.id))
            if row.position != position:
                moved.append((position, row.id))
            position, size, kept = position + left.held, size + left.size, kept + 1
        self._drop(empty)
        self._run_all("update fragments set count = %s, size = %s, text = %s where id = %s", changed)
        self._move(moved)
        self._grow(chain, (1 + kept + size if kept else 2) - last.size)

    # finding

    def _locate(self, table: int, tokens: Sequence[str]) -> Location | Missing:
        chain = self._chain(table, tokens)
        if not chain:
            return Missing(0)
        for used, token in enumerate(tokens):
            if chain[used].text is not None:
                return _inside(chain[: used + 1], list(tokens[used:]), used)
            if len(chain) < used + 2:
                return Missing(used)
            child = chain[used + 1]
            if child.key is None and int(token) >= child.position + child.held:
                return Missing(used)
            if child.shape == "run":
                return _inside(chain[: used + 2], [str(int(token) - child.position), *tokens[used + 1 :]], used)
        return chain, []

    def _chain(self, table: int, tokens: Sequence[str]) -> list[Fragment]:
        if not tokens:
            return self._fragments("parent = %s limit 1", (-table,))
        keys = [token.encode() for token in tokens]
        indices = [int(token) if len(token) < 10 and INDEX.fullmatch(token) else None for token in tokens]
        rows = self._all(
            _CHAIN,
            {
                "root": -table, "heads": [key[:KEY_HEAD] for key in keys], "keys": keys, "indices": indices,
                "depth": len(tokens),
            },
        )  # fmt: skip
        return [_fragment(row) for row in rows]

    def _located(self, table: int, tokens: Sequence[str]) -> Location:
        location = self._locate(table, tokens)
        if isinstance(location, Missing):
            raise LookupError(f"nothing is at {list(tokens)!r}")
        return location

    def _fragments(self, where: str, values: Any) -> list[Fragment]:
        rows = self._all(f"select {FRAGMENT_COLUMNS} from fragments where {where}", values)
        return [_fragment(row) for row in rows]

    def _members(self, parent: int, keys: Sequence[str]) -> list[Fragment]:
        """Return the members of an object with these keys."""
        wanted = [key.encode() for key in keys]
        return self._fragments(
            "parent = %s and key_head = any(%s::bytea[]) and key = any(%s::bytea[])",
            (parent, [key[:KEY_HEAD] for key in wanted], wanted),
        )

    def _last_row(self, fragment: Fragment) -> Fragment | None:
        return next(iter(self._fragments("parent = %s order by position desc limit 1", (fragment.id,))), None)

    def _count(self, fragment: Fragment) -> int:
        if fragment.shape == "object":
            return int(self._one("select count(*) from fragments where parent = %s", (fragment.id,)))
        last = self._last_row(fragment)
        return last.position + last.held if last else 0

    def _whole(self, fragment: Fragment) -> str:
        """Return the JSON of a fragment, whose pieces are fetched a level at a time."""
        members: dict[int, list[Fragment]] = defaultdict(list)
        level = [fragment.id]
        while level:
            rows = self._fragments("parent = any(%s::bigint[]) order by parent, position", (level,))
            for row in rows:
                members[row.parent].append(row)
            level = [row.id for row in rows if row.is_branch]
        return "".join(_pieces(fragment, members))

    # changing

    def _grow(self, chain: Sequence[Fragment], bytes: int) -> None:
        """Raise the sizes of the fragments on the way to a change."""
        if bytes and chain:
            ids = [fragment.id for fragment in chain]
            self._run("update fragments set size = size + %s where id = any(%s::bigint[])", (bytes, ids))

    def _move(self, moved: Sequence[tuple[int, int]]) -> None:
        """Give fragments other positions: (position, fragment)."""
        if moved:
            positions, ids = zip(*moved, strict=True)
            self._run(
                """update fragments set position = moved.position
                   from unnest(%s::bigint[], %s::bigint[]) as moved (position, id) where fragments.id = moved.id""",
                (list(positions), list(ids)),
            )

    def _put_piece(self, table: int, chain: Sequence[Fragment], piece: Piece) -> None:
        """Replace the value of a fragment."""
        last = chain[-1]
        if last.is_branch:
            self._run(f"{_INSIDE} delete from fragments where id in (select id from held)", ([last.id],))
        shape, text = ("value", piece.text) if isinstance(piece, Leaf) else (piece.shape, None)
        self._run(
            "update fragments set shape = %s, text = %s, size = %s where id = %s", (shape, text, piece.size, last.id)
        )
        if isinstance(piece, Branch):
            self._insert_pieces(table, _places_in(last.id, piece))
        self._grow(chain[:-1], piece.size - last.size)

    def _put_elements(self, table: int, chain: Sequence[Fragment], row: Fragment, values: Any) -> None:
        """Replace a fragment of a list with other elements. Those after them keep their positions."""
        self._drop([row])
        runs = elements(values)
        self._insert_runs(table, chain[-1].id, row.position, runs)
        self._grow(chain, sum(run.size for run in runs) + len(runs) - row.size - 1)

    def _insert_runs(self, table: int, parent: int, position: int, runs: Sequence[Piece]) -> None:
        places: list[tuple[_Place, Piece]] = []
        for run in runs:
            places.append(((parent, position, None), run))
            position += run.count
        self._insert_pieces(table, places)

    def _insert_pieces(self, table: int, pieces: Sequence[tuple[_Place, Piece]]) -> None:
        rows = (row for place, piece in pieces for row in self._rows(table, place, piece))
        while batch := list(islice(rows, _ROWS)):
            self._run(_INSERT, [list(column) for column in zip(*batch, strict=True)])

    def _rows(self, table: int, place: _Place, piece: Piece) -> Iterator[tuple[Any, ...]]:
        """Return the rows of a piece and of all that it is made of. They are numbered before they are stored."""
        identity = self._next_part()
        parent, position, key = place
        spelt = None if key is None else key.encode()
        if isinstance(piece, Branch):
            yield identity, table, parent, position, spelt, 1, piece.shape, piece.size, None
            for inner, member in _places_in(identity, piece):
                yield from self._rows(table, inner, member)
            return
        is_run = key is None and parent > 0
        shape, text = ("run", f"[{piece.text}]") if is_run else ("value", piece.text)
        yield identity, table, parent, position, spelt, piece.count, shape, piece.size, text

    def _next_part(self) -> int:
        """Return the number of whatever is stored next about tables."""
        transaction = self._database.current
        return transaction.next("part") if transaction else 0

    def _drop(self, fragments: Sequence[Fragment]) -> None:
        ids = [fragment.id for fragment in fragments]
        if branches := [fragment.id for fragment in fragments if fragment.is_branch]:
            self._run(f"{_INSIDE} delete from fragments where id in (select id from held)", (branches,))
        if ids:
            self._run("delete from fragments where id = any(%s::bigint[])", (ids,))


def _fragment(row: tuple[Any, ...]) -> Fragment:
    found = Fragment._make(row)
    return found if row[3] is None else found._replace(key=row[3].decode())


def _inside(chain: list[Fragment], rest: list[str], used: int) -> Location | Missing:
    _, found = inside(value_of(chain[-1]), rest)
    return (chain, rest) if found == len(rest) else Missing(used + found)


def _without(row: Fragment, gone: set[int]) -> Fragment:
    """Return a fragment of a list without some of its elements, of which it has others."""
    left = [value for place, value in enumerate(value_of(row), start=row.position) if place not in gone]
    text = ",".join(map(dumps, left))
    return row._replace(held=len(left), size=shredding.size_of(text), text=f"[{text}]")


def _places_in(parent: int, branch: Branch) -> list[tuple[_Place, Piece]]:
    position, places = 0, []
    for key, piece in branch.members:
        places.append(((parent, position, key), piece))
        position += piece.count
    return places


def _pieces(fragment: Fragment, members: dict[int, list[Fragment]]) -> Iterator[str]:
    yield "{" if fragment.shape == "object" else "["
    for number, member in enumerate(members[fragment.id]):
        if number:
            yield ","
        if member.key is not None:
            yield f"{dumps(member.key)}:"
        if member.text is None:
            yield from _pieces(member, members)
        else:
            yield member.text[1:-1] if member.shape == "run" else member.text  # elements, without their brackets
    yield "}" if fragment.shape == "object" else "]"
