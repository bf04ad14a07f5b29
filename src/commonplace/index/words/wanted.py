"""The tree of a boolean query: words, phrases and beginnings, joined by and, or and not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal, TypeVar

from commonplace.lazy_dataclass import dataclass

AtomKind = Literal["word", "phrase", "prefix"]
Join = Literal["and", "or", "not"]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Atom:
    """A word, phrase or beginning to look for, as it was written."""

    kind: AtomKind
    text: str


@dataclass(frozen=True, slots=True)
class Group:
    """A join of parts: `not` has one, the others two or more."""

    join: Join
    parts: tuple[Wanted, ...]


Wanted = Atom | Group


def joined(join: Literal["and", "or"], parts: Sequence[Wanted]) -> Wanted | None:
    """Return the parts under one join, each atom once, without groups of the same join inside; None for no parts."""
    flat: list[Wanted] = []
    seen_atoms: set[Atom] = set()
    for part in parts:
        for inner in part.parts if isinstance(part, Group) and part.join == join else (part,):
            if not isinstance(inner, Atom):
                flat.append(inner)
            elif inner not in seen_atoms:
                seen_atoms.add(inner)
                flat.append(inner)
    return Group(join, tuple(flat)) if len(flat) > 1 else next(iter(flat), None)


def fold(wanted: Wanted, atom: Callable[[Atom], T], join: Callable[[Join, list[T]], T]) -> T:
    """Return one value for the tree, made from the values of its parts. No recursion: groups may nest in thousands."""
    work: list[tuple[Wanted, bool]] = [(wanted, False)]
    values: list[T] = []
    while work:
        node, parts_done = work.pop()
        if isinstance(node, Atom):
            values.append(atom(node))
        elif parts_done:
            first = len(values) - len(node.parts)
            values[first:] = [join(node.join, values[first:])]
        else:
            work.append((node, True))
            work.extend((part, False) for part in reversed(node.parts))
    return values[0]


def atoms(wanted: Wanted, *, sought: bool | None = None) -> Iterator[Atom]:
    """Yield the atoms in order. `sought`: True only those to look for, False only those refused, None all."""
    work: list[tuple[Wanted, bool]] = [(wanted, True)]
    while work:
        node, positive = work.pop()
        if isinstance(node, Atom):
            if sought is None or sought is positive:
                yield node
        else:
            inside = positive != (node.join == "not")
            work.extend((part, inside) for part in reversed(node.parts))


def shown(wanted: Wanted) -> str:
    """Return the tree as the text of a boolean query, with every operator written."""

    def of_atom(atom: Atom) -> tuple[str, str]:
        text = {"word": atom.text, "phrase": f'"{atom.text}"', "prefix": f"{atom.text}*"}[atom.kind]
        return text, ""

    def of_group(join: Join, parts: list[tuple[str, str]]) -> tuple[str, str]:
        if join == "not":
            text, inner = parts[0]
            return f"NOT ({text})" if inner else f"NOT {text}", "not"
        loose = {"or"} if join == "and" else set()
        texts = [f"({text})" if inner in loose else text for text, inner in parts]
        return f" {join.upper()} ".join(texts), join

    return fold(wanted, of_atom, of_group)[0]
