"""JSON values in fragments: short ones whole, long ones by their members, so that a part is read and written alone."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from json.encoder import encode_basestring
from typing import Any, Literal

from commonplace.kinds.tables.rows import Fragment
from commonplace.model import JSON

FRAGMENT = 8192
"""Bytes up to which a value is kept in one piece."""

INDEX = re.compile(r"0|[1-9][0-9]*")
LONGEST_INDEX = 9
"""Digits: no list has more elements. Keys of objects may look like indices and be of any length."""
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False, check_circular=False).encode


def dumps(value: JSON) -> str:
    """Return the one spelling of a value as JSON: no blanks, every character as it is, keys in their order."""
    return encode_basestring(value) if type(value) is str else _encode(value)


def size_of(text: str) -> int:
    """Return the bytes of a text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8"))


def index_of(token: str) -> int | None:
    """Return the place in a list that a token names, or None where it can be none."""
    return int(token) if len(token) <= LONGEST_INDEX and INDEX.fullmatch(token) else None


def key_size(key: str) -> int:
    """Return the bytes that a member takes in its object beside its value: the key and a colon."""
    return size_of(encode_basestring(key)) + 1


@dataclass(frozen=True, slots=True)
class Leaf:
    """A value in one piece, or in a list some elements, their commas included, without the brackets."""

    text: str
    size: int
    count: int = 1


@dataclass(frozen=True, slots=True)
class Branch:
    """A value in pieces. Keys are None in a list."""

    shape: Literal["object", "list"]
    members: Sequence[tuple[str | None, Piece]]
    size: int

    @property
    def count(self) -> int:
        return 1


Piece = Leaf | Branch


def shred(value: JSON) -> Piece:
    """Return a value in pieces of at most `FRAGMENT` bytes, long strings apart."""
    if isinstance(value, dict):
        return _object(value)
    if isinstance(value, list):
        return _list(value)
    text = dumps(value)
    return Leaf(text, size_of(text))


def _object(value: dict[str, JSON]) -> Piece:
    members = [(key, shred(member)) for key, member in value.items()]
    size = 1 + len(members) + sum(key_size(key) + piece.size for key, piece in members) if members else 2
    if size > FRAGMENT or any(isinstance(piece, Branch) for _, piece in members):
        return Branch("object", members, size)
    inside = ",".join(f"{encode_basestring(key)}:{piece.text}" for key, piece in members if isinstance(piece, Leaf))
    return Leaf(f"{{{inside}}}", size)


def _list(value: Sequence[JSON]) -> Piece:
    runs = elements(value)
    size = 1 + len(runs) + sum(run.size for run in runs) if runs else 2
    if not runs:
        return Leaf("[]", 2)
    if len(runs) == 1 and isinstance(runs[0], Leaf) and runs[0].size <= FRAGMENT:
        return Leaf(f"[{runs[0].text}]", size)
    return Branch("list", [(None, run) for run in runs], size)


def elements(values: Iterable[JSON]) -> list[Piece]:
    """Return the elements of a list as runs of short ones and, between them, the long ones."""
    runs: list[Piece] = []
    texts: list[str] = []
    size = 0

    def flush() -> None:
        nonlocal size
        if texts:
            runs.append(Leaf(",".join(texts), size + len(texts) - 1, len(texts)))
            texts.clear()
            size = 0

    for value in values:
        piece = shred(value)
        if isinstance(piece, Branch):
            flush()
            runs.append(piece)
            continue
        if texts and size + piece.size + len(texts) > FRAGMENT:
            flush()
        texts.append(piece.text)
        size += piece.size
    flush()
    return runs


def inside(value: JSON, tokens: Sequence[str]) -> tuple[JSON, int]:
    """Return the value at a place inside another, and how many tokens lead somewhere: all of them where it is there."""
    for depth, token in enumerate(tokens):
        if isinstance(value, dict) and token in value:
            value = value[token]
        elif isinstance(value, list) and (index := index_of(token)) is not None and index < len(value):
            value = value[index]
        else:
            return None, depth
    return value, len(tokens)


def with_change(value: JSON, tokens: Sequence[str], new: JSON) -> JSON:
    """Return the value with another at a place that exists. It is changed, not copied."""
    if not tokens:
        return new
    holder, _ = inside(value, tokens[:-1])
    holder[tokens[-1] if isinstance(holder, dict) else int(tokens[-1])] = new
    return value


Place = tuple[int, int, str | None]
"""Where a fragment belongs: its parent, its position there, its key."""
PlacedPiece = tuple[Place, Piece]


def pieces_in(parent: int, branch: Branch) -> list[PlacedPiece]:
    """Return the members of a branch with their places in its fragment."""
    position, places = 0, list[PlacedPiece]()
    for key, piece in branch.members:
        places.append(((parent, position, key), piece))
        position += piece.count
    return places


def count_rows(piece: Piece) -> int:
    """Return how many fragments a piece is."""
    return 1 if isinstance(piece, Leaf) else 1 + sum(count_rows(member) for _, member in piece.members)


def fragment_rows(table: int, pieces: Sequence[PlacedPiece], first: int) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of pieces and of all that they are made of, numbered from `first` on, each after its holder.

    A row is id, table, parent, position, key, count, shape, size, text.
    """
    numbers = count(first)

    def rows_of(place: Place, piece: Piece) -> Iterator[tuple[Any, ...]]:
        identity = next(numbers)
        parent, position, key = place
        if isinstance(piece, Branch):
            yield identity, table, parent, position, key, 1, piece.shape, piece.size, None
            for inner, member in pieces_in(identity, piece):
                yield from rows_of(inner, member)
            return
        is_run = key is None and parent > 0
        shape, text = ("run", f"[{piece.text}]") if is_run else ("value", piece.text)
        yield identity, table, parent, position, key, piece.count, shape, piece.size, text

    for place, piece in pieces:
        yield from rows_of(place, piece)


def whole_text(fragment: Fragment, members: Mapping[int, Sequence[Fragment]]) -> str:
    """Return the JSON of a branch, put together of its members, by the id of what holds them."""
    return "".join(_texts(fragment, members))


def _texts(fragment: Fragment, members: Mapping[int, Sequence[Fragment]]) -> Iterator[str]:
    yield "{" if fragment.shape == "object" else "["
    for number, member in enumerate(members.get(fragment.id, ())):
        if number:
            yield ","
        if member.key is not None:
            yield f"{dumps(member.key)}:"
        if member.text is None:
            yield from _texts(member, members)
        else:
            yield member.text[1:-1] if member.shape == "run" else member.text  # elements, without their brackets
    yield "}" if fragment.shape == "object" else "]"
