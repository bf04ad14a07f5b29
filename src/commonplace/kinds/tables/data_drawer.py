"""The drawer of tables' data, in fragments. A place is read, and changed, without the rest."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from itertools import islice
from typing import Any

from commonplace.kinds.tables import postgres, shredding, sqlite
from commonplace.kinds.tables.drawer import read_back
from commonplace.kinds.tables.rows import FRAGMENT_COLUMNS, Fragment, Location, Missing, value_of
from commonplace.kinds.tables.shredding import (
    Branch,
    Leaf,
    Piece,
    PlacedPiece,
    count_rows,
    dumps,
    elements,
    fragment_rows,
    index_of,
    inside,
    key_size,
    pieces_in,
    shred,
    size_of,
    whole_text,
    with_change,
)
from commonplace.model import JSON
from commonplace.store.dialect import NO_LIMIT, marks
from commonplace.store.session import Drawer, reads, reads_together, writes

_BATCH = 500
"""Fragments that one statement stores."""

_COLUMNS = "id, tbl, parent, position, key, count, shape, size, text"
_INSERT = f"insert into fragments ({_COLUMNS}) values ({marks(_COLUMNS)})"
_INSERT_ROWS = f"""insert into fragments ({_COLUMNS}) select {_COLUMNS} from rows(:rows id int, tbl int, parent int,
    position int, key bytes, count int, shape text, size int, text text) as new"""
_FRAGMENTS = f"select {FRAGMENT_COLUMNS} from fragments"
_WHOLE = f"{_FRAGMENTS} where parent = :parent limit 1"
_ELEMENT = f"{_FRAGMENTS} where parent = :parent and position <= :index order by position desc limit 1"
_LAST = f"{_FRAGMENTS} where parent = :parent order by position desc limit 1"
_IN_ORDER = f"{_FRAGMENTS} where parent = :parent order by position"
_LEVEL = f"{_FRAGMENTS} where parent in each(:parents int) order by parent, position"
_PAGE = f"""{_FRAGMENTS} where parent = :parent and position >= coalesce(cast(:after as bigint) + 1,
      (select max(position) from fragments where parent = :parent and position <= :first), 0)
    order by position limit :limit"""
_DROP_INSIDE = """with recursive held (id) as (select id from fragments where parent in each(:ids int)
      union all select fragments.id from fragments join held on parent = held.id)
    delete from fragments where id in (select id from held)"""
_GROW = "update fragments set size = size + :bytes where id in each(:ids int)"
_MOVE = """update fragments set position = moved.position from rows(:moved position int, id int) as moved
    where fragments.id = moved.id"""


class DataDrawer(Drawer):
    """Values of tables by their places. A place is given by its tokens; writes belong in a transaction."""

    # reading

    @reads_together
    def text(self, table: int, tokens: Sequence[str] = ()) -> str | Missing:
        """Return the JSON at a place, or how much of the place there is."""
        location = self._locate(table, tokens)
        if isinstance(location, Missing):
            return location
        chain, rest = location
        if chain[-1].text is None:
            return self._whole(chain[-1])
        return dumps(inside(value_of(chain[-1]), rest)[0]) if rest else chain[-1].text

    @reads_together
    def value(self, table: int, tokens: Sequence[str] = ()) -> JSON | Missing:
        """Return the value at a place."""
        location = self._locate(table, tokens)
        if isinstance(location, Missing):
            return location
        chain, rest = location
        if chain[-1].text is None:
            return json.loads(self._whole(chain[-1]))
        return inside(value_of(chain[-1]), rest)[0]

    @reads_together
    def size(self, table: int, tokens: Sequence[str] = ()) -> int | Missing:
        """Return the bytes that the JSON at a place has."""
        location = self._locate(table, tokens)
        if isinstance(location, Missing):
            return location
        chain, rest = location
        return size_of(dumps(inside(value_of(chain[-1]), rest)[0])) if rest else chain[-1].size

    @reads_together
    def shape(self, table: int, tokens: Sequence[str] = ()) -> tuple[str, int] | Missing:
        """Return `object`, `list` or `value`, and how many members it has."""
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

    @reads_together
    def fragment_at(self, table: int, tokens: Sequence[str]) -> tuple[Fragment, list[str]] | Missing:
        """Return the fragment that holds a place, and where in it the place is."""
        location = self._locate(table, tokens)
        return location if isinstance(location, Missing) else (location[0][-1], location[1])

    @reads
    def fragments_in(self, fragment: int, first: int = 0, limit: int = -1, after: int | None = None) -> list[Fragment]:
        """Return members of a fragment in order, from the one that holds a position on, or from just after one."""
        most = limit if limit >= 0 else NO_LIMIT
        return self._fragments(_PAGE, {"parent": fragment, "first": first, "limit": most, "after": after})

    @reads
    def fragment_with(self, fragment: int, key: str) -> Fragment | None:
        """Return the member of an object's fragment with this key, or None."""
        return next(iter(self._members(fragment, [key])), None)

    # writing

    @writes
    def put(self, table: int, tokens: Sequence[str], value: JSON) -> None:
        """Replace what is at a place, which exists; for the whole value it need not."""
        location = self._locate(table, tokens)
        if isinstance(location, Missing):
            self._insert(table, [((-table, 0, None), shred(value))])
        else:
            self._put(table, location, value)

    @writes
    def add_members(self, table: int, tokens: Sequence[str], members: dict[str, JSON]) -> None:
        """Add members to an object that has none of these keys."""
        chain, rest = self._located(table, tokens)
        last = chain[-1]
        if last.text is not None:
            self._put(table, (chain, rest), {**inside(value_of(last), rest)[0], **members})
            return
        final = self._last(last)
        first = final.position + 1 if final else 0
        pieces = [(key, shred(value)) for key, value in members.items()]
        self._insert(
            table, [((last.id, position, key), piece) for position, (key, piece) in enumerate(pieces, start=first)]
        )
        commas = len(pieces) if final else len(pieces) - 1
        self._grow(chain, sum(key_size(key) + piece.size for key, piece in pieces) + commas)

    @writes
    def append(self, table: int, tokens: Sequence[str], values: Sequence[JSON]) -> int:
        """Add elements to the end of a list, and return how many it had."""
        chain, rest = self._located(table, tokens)
        last = chain[-1]
        if last.text is not None:
            old = inside(value_of(last), rest)[0]
            self._put(table, (chain, rest), [*old, *values])
            return len(old)
        final = self._last(last)
        count = 0 if final is None else final.position + final.held
        if final is not None and final.shape == "run" and final.size < shredding.FRAGMENT // 2:
            self._put_elements(table, chain, final, [*value_of(final), *values])
            return count
        runs = elements(values)
        self._insert_runs(table, last.id, count, runs)
        self._grow(chain, sum(run.size for run in runs) + len(runs) - (final is None))
        return count

    @writes
    def remove_members(self, table: int, tokens: Sequence[str], keys: Sequence[str]) -> None:
        """Remove members of an object that has all of these keys."""
        chain, rest = self._located(table, tokens)
        last = chain[-1]
        if last.text is not None:
            gone, old = set(keys), inside(value_of(last), rest)[0]
            self._put(table, (chain, rest), {key: value for key, value in old.items() if key not in gone})
            return
        members = self._members(last.id, keys)
        self._drop(members)
        shrunk = sum(key_size(member.key or "") + member.size + 1 for member in members)
        left = self._db.row("select 1 from fragments where parent = :parent limit 1", {"parent": last.id})
        self._grow(chain, -shrunk if left else 2 - last.size)

    @writes
    def remove_elements(self, table: int, tokens: Sequence[str], indices: Sequence[int]) -> None:
        """Remove elements of a list that has all of these."""
        chain, rest = self._located(table, tokens)
        last, gone = chain[-1], set(indices)
        if last.text is not None:
            old = inside(value_of(last), rest)[0]
            self._put(table, (chain, rest), [value for place, value in enumerate(old) if place not in gone])
            return
        position, size, kept = 0, 0, 0
        empty, moved, changed = list[Fragment](), list[tuple[int, int]](), list[tuple[Any, ...]]()
        for row in self._fragments(_IN_ORDER, {"parent": last.id}):
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
        self._db.run_all("update fragments set count = :count, size = :size, text = :text where id = :id", changed)
        if moved:
            self._db.run(_MOVE, {"moved": moved})
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

    def _located(self, table: int, tokens: Sequence[str]) -> Location:
        location = self._locate(table, tokens)
        if isinstance(location, Missing):
            raise LookupError(f"nothing is at {list(tokens)!r}")
        return location

    def _chain(self, table: int, tokens: Sequence[str]) -> list[Fragment]:
        """Return the fragments on the way to a place, as far as it leads; of a list the one that could hold it."""
        if self._db.dialect == "postgres" and tokens:
            keys = [token.encode() for token in tokens]
            heads = [key[: postgres.KEY_HEAD] for key in keys]
            indices = [index_of(token) for token in tokens]
            values = {"root": -table, "heads": heads, "keys": keys, "indices": indices, "depth": len(tokens)}
            return self._fragments(postgres.CHAIN, values)
        chain = self._fragments(_WHOLE, {"parent": -table})
        for token in tokens:
            if not chain or chain[-1].text is not None or not (child := self._child(chain[-1], token)):
                break
            chain.append(child)
        return chain

    def _child(self, parent: Fragment, token: str) -> Fragment | None:
        """Return the member of an object with a key, or the fragment of a list that could hold an element."""
        if parent.shape == "object":
            row = self._db.row(sqlite.MEMBER, {"parent": parent.id, "key": token})
        elif (index := index_of(token)) is not None:
            row = self._db.row(_ELEMENT, {"parent": parent.id, "index": index})
        else:
            row = None
        return Fragment._make(row) if row else None

    def _fragments(self, query: str, values: dict[str, Any]) -> list[Fragment]:
        make = Fragment._make if self._db.dialect == "sqlite" else _fragment
        return [make(row) for row in self._db.all(query, values)]

    def _members(self, parent: int, keys: Sequence[str]) -> list[Fragment]:
        """Return the members of an object with these keys."""
        if self._db.dialect == "sqlite":
            rows = (self._db.row(sqlite.MEMBER, {"parent": parent, "key": key}) for key in keys)
            return [Fragment._make(row) for row in rows if row]
        wanted = [key.encode() for key in keys]
        heads = [key[: postgres.KEY_HEAD] for key in wanted]
        return self._fragments(postgres.MEMBERS, {"parent": parent, "heads": heads, "keys": wanted})

    def _last(self, fragment: Fragment) -> Fragment | None:
        return next(iter(self._fragments(_LAST, {"parent": fragment.id})), None)

    def _count(self, fragment: Fragment) -> int:
        if fragment.shape == "object":
            row: Any = self._db.row("select count(*) from fragments where parent = :parent", {"parent": fragment.id})
            return int(row[0])
        last = self._last(fragment)
        return last.position + last.held if last else 0

    def _whole(self, fragment: Fragment) -> str:
        """Return the JSON of a fragment, whose pieces are fetched a level at a time."""
        members: dict[int, list[Fragment]] = defaultdict(list)
        level = [fragment.id]
        while level:
            rows = self._fragments(_LEVEL, {"parents": level})
            for row in rows:
                members[row.parent].append(row)
            level = [row.id for row in rows if row.is_branch]
        return whole_text(fragment, members)

    # changing

    def _put(self, table: int, location: Location, value: JSON) -> None:
        """Replace the value at a place."""
        chain, rest = location
        last = chain[-1]
        if last.shape == "run":
            self._put_elements(table, chain[:-1], last, with_change(value_of(last), rest, value))
        elif last.key is None and len(chain) > 1:  # a long element
            self._put_elements(table, chain[:-1], last, [value])
        else:
            self._put_piece(table, chain, shred(with_change(value_of(last), rest, value) if rest else value))

    def _put_piece(self, table: int, chain: Sequence[Fragment], piece: Piece) -> None:
        """Replace the value of a fragment."""
        last = chain[-1]
        if last.is_branch:
            self._db.run(_DROP_INSIDE, {"ids": [last.id]})
        shape, text = ("value", piece.text) if isinstance(piece, Leaf) else (piece.shape, None)
        self._db.run(
            "update fragments set shape = :shape, text = :text, size = :size where id = :id",
            {"shape": shape, "text": text, "size": piece.size, "id": last.id},
        )
        if isinstance(piece, Branch):
            self._insert(table, pieces_in(last.id, piece))
        self._grow(chain[:-1], piece.size - last.size)

    def _put_elements(self, table: int, chain: Sequence[Fragment], row: Fragment, values: Any) -> None:
        """Replace a fragment of a list with other elements. Those after them keep their positions."""
        self._drop([row])
        runs = elements(values)
        self._insert_runs(table, chain[-1].id, row.position, runs)
        self._grow(chain, sum(run.size for run in runs) + len(runs) - row.size - 1)

    def _insert_runs(self, table: int, parent: int, position: int, runs: Sequence[Piece]) -> None:
        places: list[PlacedPiece] = []
        for run in runs:
            places.append(((parent, position, None), run))
            position += run.count
        self._insert(table, places)

    def _insert(self, table: int, pieces: Sequence[PlacedPiece]) -> None:
        """Store pieces with all that they are made of."""
        total = sum(count_rows(piece) for _, piece in pieces)
        if not total:
            return
        rows = fragment_rows(table, pieces, self._db.next("part", total))
        if self._db.dialect == "sqlite":
            self._db.run_all(_INSERT, rows)
            return
        spelled_rows = ((*row[:4], None if row[4] is None else row[4].encode(), *row[5:]) for row in rows)
        while batch := list(islice(spelled_rows, _BATCH)):
            self._db.run(_INSERT_ROWS, {"rows": batch})

    def _grow(self, chain: Sequence[Fragment], bytes: int) -> None:
        """Raise the sizes of the fragments on the way to a change."""
        if bytes and chain:
            ids = [fragment.id for fragment in chain]
            self._db.run(_GROW, {"bytes": bytes, "ids": ids})

    def _drop(self, fragments: Sequence[Fragment]) -> None:
        """Remove fragments with all that they hold."""
        if branches := [fragment.id for fragment in fragments if fragment.is_branch]:
            self._db.run(_DROP_INSIDE, {"ids": branches})
        if ids := [fragment.id for fragment in fragments]:
            self._db.run("delete from fragments where id in each(:ids int)", {"ids": ids})


def _fragment(row: tuple[Any, ...]) -> Fragment:
    fragment = Fragment._make(row)
    return fragment if fragment.key is None else fragment._replace(key=read_back(fragment.key))


def _inside(chain: list[Fragment], rest: list[str], used: int) -> Location | Missing:
    _, depth = inside(value_of(chain[-1]), rest)
    return (chain, rest) if depth == len(rest) else Missing(used + depth)


def _without(row: Fragment, gone: set[int]) -> Fragment:
    """Return a fragment of a list without some of its elements, of which it has others."""
    left = [value for place, value in enumerate(value_of(row), start=row.position) if place not in gone]
    text = ",".join(map(dumps, left))
    return row._replace(held=len(left), size=size_of(text), text=f"[{text}]")
