"""The store on SQLite: the data of tables, in fragments. A place is read, and changed, without the rest."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import apsw

from commonplace.model import JSON
from commonplace.store.shredding import (
    FRAGMENT,
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
from commonplace.store.sqlite.items import SqliteItems, consistent, guarded
from commonplace.store.table_rows import FRAGMENT_COLUMNS, Fragment, Location, Missing, value_of


class SqliteTableData(SqliteItems):
    """Values of tables by their places. A place is given by its tokens; writes belong in a transaction."""

    # reading

    @consistent
    def table_text(self, table: int, tokens: Sequence[str] = ()) -> str | Missing:
        """Return the JSON at a place, or how much of the place there is."""
        db = self._database.reading()
        location = self._locate(db, table, tokens)
        if isinstance(location, Missing):
            return location
        chain, rest = location
        last = chain[-1]
        if last.text is None:
            return "".join(self._pieces(db, last))
        if not rest:
            return last.text
        value, _ = inside(value_of(last), rest)
        return dumps(value)

    @consistent
    def table_value(self, table: int, tokens: Sequence[str] = ()) -> JSON | Missing:
        """Return the value at a place."""
        db = self._database.reading()
        location = self._locate(db, table, tokens)
        if isinstance(location, Missing):
            return location
        chain, rest = location
        if chain[-1].text is None:
            return json.loads("".join(self._pieces(db, chain[-1])))
        return inside(value_of(chain[-1]), rest)[0]

    @consistent
    def table_size(self, table: int, tokens: Sequence[str] = ()) -> int | Missing:
        """Return the bytes that the JSON at a place has."""
        db = self._database.reading()
        location = self._locate(db, table, tokens)
        if isinstance(location, Missing):
            return location
        chain, rest = location
        if not rest:
            return chain[-1].size
        return len(dumps(inside(value_of(chain[-1]), rest)[0]).encode("utf-8"))

    @consistent
    def table_shape(self, table: int, tokens: Sequence[str] = ()) -> tuple[str, int] | Missing:
        """Return `object`, `list` or `value`, and the number of its members."""
        db = self._database.reading()
        location = self._locate(db, table, tokens)
        if isinstance(location, Missing):
            return location
        chain, rest = location
        last = chain[-1]
        if last.text is None:
            return last.shape, self._count(db, last)
        value, _ = inside(value_of(last), rest)
        shape = "object" if isinstance(value, dict) else "list" if isinstance(value, list) else "value"
        return shape, len(value) if shape != "value" else 0

    @consistent
    def fragment_at(self, table: int, tokens: Sequence[str]) -> tuple[Fragment, list[str]] | Missing:
        """Return the fragment that holds a place, and where in it the place is."""
        location = self._locate(self._database.reading(), table, tokens)
        return location if isinstance(location, Missing) else (location[0][-1], location[1])

    @guarded
    def fragments_in(self, fragment: int, first: int = 0, limit: int = -1, after: int | None = None) -> list[Fragment]:
        """Return members of a fragment in order, from the one that holds a position on, or from just after one."""
        rows: list[Any] = (
            self._database.reading()
            .execute(
                f"""select {FRAGMENT_COLUMNS} from fragments where parent = :parent and position >= coalesce(:after + 1,
                      (select max(position) from fragments where parent = :parent and position <= :first), 0)
                    order by position limit :limit""",
                {"parent": fragment, "first": first, "limit": limit, "after": after},
            )
            .fetchall()
        )
        return [Fragment(*row) for row in rows]

    @guarded
    def fragment_with(self, fragment: int, key: str) -> Fragment | None:
        """Return the member of an object's fragment with this key, or None."""
        return self._member(self._database.reading(), fragment, key)

    # writing

    @guarded
    def put_table_value(self, table: int, tokens: Sequence[str], value: JSON) -> None:
        """Replace what is at a place, which exists; for the whole value it need not."""
        with self._database.writing() as db:
            location = self._locate(db, table, tokens)
            if isinstance(location, Missing):
                self._insert_piece(db, table, (-table, 0, None), shred(value))
                return
            chain, rest = location
            last = chain[-1]
            if last.shape == "run":
                changed = with_change(value_of(last), rest, value)
                self._put_elements(db, table, chain[:-1], [last], changed)
            elif last.key is None and len(chain) > 1:  # a long element
                self._put_elements(db, table, chain[:-1], [last], [value])
            else:
                new = with_change(value_of(last), rest, value) if rest else value
                self._put_piece(db, table, chain, shred(new))

    @guarded
    def add_table_members(self, table: int, tokens: Sequence[str], members: dict[str, JSON]) -> None:
        """Add members to an object that has none of these keys."""
        with self._database.writing() as db:
            chain, rest = self._located(db, table, tokens)
            last = chain[-1]
            if last.text is not None:
                self._change_whole(table, tokens, {**inside(value_of(last), rest)[0], **members})
                return
            row: Any = db.execute("select max(position) from fragments where parent = ?", (last.id,)).fetchone()
            position, grown = (-1 if row[0] is None else row[0]), 0
            for key, value in members.items():
                piece = shred(value)
                grown += key_size(key) + piece.size + (position >= 0)
                position += 1
                self._insert_piece(db, table, (last.id, position, key), piece)
            self._grow(db, chain, grown)

    @guarded
    def append_table_elements(self, table: int, tokens: Sequence[str], values: Sequence[JSON]) -> int:
        """Add elements to the end of a list, and return how many it had."""
        with self._database.writing() as db:
            chain, rest = self._located(db, table, tokens)
            last = chain[-1]
            if last.text is not None:
                old = inside(value_of(last), rest)[0]
                self._change_whole(table, tokens, [*old, *values])
                return len(old)
            final = self._last_row(db, last)
            count = 0 if final is None else final.position + final.held
            if final is not None and final.shape == "run" and final.size < FRAGMENT // 2:
                self._put_elements(db, table, chain, [final], [*value_of(final), *values])
                return count
            runs, position = elements(values), count
            for run in runs:
                self._insert_piece(db, table, (last.id, position, None), run)
                position += run.count
            self._grow(db, chain, sum(run.size for run in runs) + len(runs) - (final is None))
            return count

    @guarded
    def remove_table_members(self, table: int, tokens: Sequence[str], keys: Sequence[str]) -> None:
        """Remove members of an object that has all of these keys."""
        with self._database.writing() as db:
            chain, rest = self._located(db, table, tokens)
            last = chain[-1]
            if last.text is not None:
                gone = set(keys)
                old = inside(value_of(last), rest)[0]
                self._change_whole(table, tokens, {key: value for key, value in old.items() if key not in gone})
                return
            shrunk = 0
            for key in keys:
                member = self._member(db, last.id, key)
                if member is not None:
                    shrunk += key_size(key) + member.size + 1
                    self._drop(db, member)
            left = db.execute("select 1 from fragments where parent = ? limit 1", (last.id,)).fetchone()
            self._grow(db, chain, -shrunk if left else 2 - last.size)

    @guarded
    def remove_table_elements(self, table: int, tokens: Sequence[str], indices: Sequence[int]) -> None:
        """Remove elements of a list that has all of these."""
        with self._database.writing() as db:
            chain, rest = self._located(db, table, tokens)
            last, gone = chain[-1], set(indices)
            if last.text is not None:
                old = inside(value_of(last), rest)[0]
                self._change_whole(table, tokens, [value for place, value in enumerate(old) if place not in gone])
                return
            rows, position, size = self.fragments_in(last.id), 0, 0
            kept: list[Fragment] = []
            for row in rows:
                held = gone.intersection(range(row.position, row.position + row.held))
                left = self._without(db, row, held) if held else row
                if left is not None:
                    if left.position != position:
                        db.execute("update fragments set position = ? where id = ?", (position, left.id))
                    position += left.held
                    size += left.size
                    kept.append(left)
            self._grow(db, chain, (1 + len(kept) + size if kept else 2) - last.size)

    # finding

    def _locate(self, db: apsw.Connection, table: int, tokens: Sequence[str]) -> Location | Missing:
        row = self._one(db, "parent = ?", (-table,))
        if row is None:
            return Missing(0)
        chain = [row]
        for used, token in enumerate(tokens):
            last = chain[-1]
            if last.text is not None:
                rest = list(tokens[used:])
                _, depth = inside(value_of(last), rest)
                return (chain, rest) if depth == len(rest) else Missing(used + depth)
            child = self._member(db, last.id, token) if last.shape == "object" else self._element(db, last.id, token)
            if child is None:
                return Missing(used)
            chain.append(child)
            if child.shape == "run":
                rest = [str(int(token) - child.position), *tokens[used + 1 :]]
                _, depth = inside(value_of(child), rest)
                return (chain, rest) if depth == len(rest) else Missing(used + depth)
        return chain, []

    def _located(self, db: apsw.Connection, table: int, tokens: Sequence[str]) -> Location:
        location = self._locate(db, table, tokens)
        if isinstance(location, Missing):
            raise LookupError(f"nothing is at {list(tokens)!r}")
        return location

    @staticmethod
    def _one(db: apsw.Connection, where: str, values: tuple[Any, ...]) -> Fragment | None:
        row: Any = db.execute(f"select {FRAGMENT_COLUMNS} from fragments where {where} limit 1", values).fetchone()
        return Fragment(*row) if row else None

    def _member(self, db: apsw.Connection, parent: int, key: str) -> Fragment | None:
        return self._one(db, "parent = ? and key = ?", (parent, key))

    def _element(self, db: apsw.Connection, parent: int, token: str) -> Fragment | None:
        if not INDEX.fullmatch(token) or len(token) > 9:
            return None
        row = self._one(db, "parent = ? and position <= ? order by position desc", (parent, int(token)))
        return row if row and int(token) < row.position + row.held else None

    def _last_row(self, db: apsw.Connection, fragment: Fragment) -> Fragment | None:
        return self._one(db, "parent = ? order by position desc", (fragment.id,))

    def _count(self, db: apsw.Connection, fragment: Fragment) -> int:
        if fragment.shape == "object":
            query = "select count(*) from fragments where parent = ?"
            return int(next(db.execute(query, (fragment.id,)))[0])
        last = self._last_row(db, fragment)
        return last.position + last.held if last else 0

    def _pieces(self, db: apsw.Connection, fragment: Fragment) -> Iterator[str]:
        """Yield the JSON of a fragment, piece by piece."""
        yield "{" if fragment.shape == "object" else "["
        rows: list[Any] = db.execute(
            f"select {FRAGMENT_COLUMNS} from fragments where parent = ? order by position", (fragment.id,)
        ).fetchall()
        for number, row in enumerate(rows):
            member = Fragment(*row)
            if number:
                yield ","
            if member.key is not None:
                yield f"{dumps(member.key)}:"
            if member.text is None:
                yield from self._pieces(db, member)
            else:
                yield member.text[1:-1] if member.shape == "run" else member.text  # elements, without their brackets
        yield "}" if fragment.shape == "object" else "]"

    # changing

    def _change_whole(self, table: int, tokens: Sequence[str], value: JSON) -> None:
        """Replace the value of a fragment that has no members of its own."""
        self.put_table_value(table, tokens, value)

    @staticmethod
    def _grow(db: apsw.Connection, chain: Sequence[Fragment], bytes: int) -> None:
        """Raise the sizes of the fragments on the way to a change."""
        if bytes:
            db.executemany(
                "update fragments set size = size + ? where id = ?", [(bytes, fragment.id) for fragment in chain]
            )

    def _put_piece(self, db: apsw.Connection, table: int, chain: Sequence[Fragment], piece: Piece) -> None:
        """Replace the value of a fragment."""
        last = chain[-1]
        self._drop_members(db, last)
        shape, text = ("value", piece.text) if isinstance(piece, Leaf) else (piece.shape, None)
        db.execute(
            "update fragments set shape = ?, text = ?, size = ? where id = ?", (shape, text, piece.size, last.id)
        )
        if isinstance(piece, Branch):
            self._insert_members(db, table, last.id, piece)
        self._grow(db, chain[:-1], piece.size - last.size)

    def _put_elements(
        self, db: apsw.Connection, table: int, chain: Sequence[Fragment], rows: Sequence[Fragment], values: Any
    ) -> None:
        """Replace fragments of a list with other elements. Those after them keep their positions."""
        for row in rows:
            self._drop(db, row)
        position, runs = rows[0].position, elements(values)
        for run in runs:
            self._insert_piece(db, table, (chain[-1].id, position, None), run)
            position += run.count
        self._grow(db, chain, sum(run.size for run in runs) + len(runs) - sum(row.size for row in rows) - len(rows))

    def _without(self, db: apsw.Connection, row: Fragment, gone: set[int]) -> Fragment | None:
        """A fragment of a list without some of its elements; None where none are left."""
        if len(gone) == row.held:
            self._drop(db, row)
            return None
        left = [value for place, value in enumerate(value_of(row), start=row.position) if place not in gone]
        text = ",".join(map(dumps, left))
        size = len(text.encode("utf-8"))
        db.execute(
            "update fragments set count = ?, size = ?, text = ? where id = ?", (len(left), size, f"[{text}]", row.id)
        )
        # What it held stays in what is after it: only the caller knows its new position.
        return row._replace(held=len(left), size=size, text=text)

    def _insert_piece(self, db: apsw.Connection, table: int, place: tuple[int, int, str | None], piece: Piece) -> None:
        parent, position, key = place
        row: tuple[Any, ...]
        if isinstance(piece, Branch):
            row = (table, parent, position, key, 1, piece.shape, piece.size, None)
        else:
            is_run = key is None and parent > 0
            shape, text = ("run", f"[{piece.text}]") if is_run else ("value", piece.text)
            row = (table, parent, position, key, piece.count, shape, piece.size, text)
        db.execute(
            "insert into fragments (tbl, parent, position, key, count, shape, size, text) values (?,?,?,?,?,?,?,?)", row
        )
        if isinstance(piece, Branch):
            self._insert_members(db, table, db.last_insert_rowid(), piece)

    def _insert_members(self, db: apsw.Connection, table: int, parent: int, branch: Branch) -> None:
        position = 0
        for key, piece in branch.members:
            self._insert_piece(db, table, (parent, position, key), piece)
            position += piece.count

    def _drop(self, db: apsw.Connection, fragment: Fragment) -> None:
        self._drop_members(db, fragment)
        db.execute("delete from fragments where id = ?", (fragment.id,))

    def _drop_members(self, db: apsw.Connection, fragment: Fragment) -> None:
        if fragment.text is None:
            db.execute(
                """with recursive held (id) as (select id from fragments where parent = :id
                     union all select fragments.id from fragments join held on parent = held.id)
                   delete from fragments where id in (select id from held)""",
                {"id": fragment.id},
            )
