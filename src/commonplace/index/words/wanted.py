"""What must be found in an entry: words, phrases and beginnings, joined by and, or and not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal, TypeVar

from commonplace.lazy_dataclass import dataclass

AtomKind = Literal["word", "phrase", "prefix"]
Join = Literal["and", "or", "not"]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Atom:
    """One thing to look for, as it was written."""

    kind: AtomKind
    text: str


@dataclass(frozen=True, slots=True)
class Group:
    """`not` has one part, the others two or more."""

    join: Join
    parts: tuple[Wanted, ...]


Wanted = Atom | Group


def joined(join: Literal["and", "or"], parts: Sequence[Wanted]) -> Wanted | None:
    """The parts under one join, each atom once, without groups of the same join inside; None where there is none."""
    flat: list[Wanted] = []
    seen: set[Atom] = set()
    for part in parts:
        for inner in part.parts if isinstance(part, Group) and part.join == join else (part,):
            if not isinstance(inner, Atom):
                flat.append(inner)
            elif inner not in seen:
                seen.add(inner)
                flat.append(inner)
    return Group(join, tuple(flat)) if len(flat) > 1 else next(iter(flat), None)


def fold(wanted: Wanted, atom: Callable[[Atom], T], join: Callable[[Join, list[T]], T]) -> T:
    """One value for the whole, made of the values of its parts. Without recursion: groups may nest in thousands."""
    work: list[tuple[Wanted, bool]] = [(wanted, False)]
    done: list[T] = []
    while work:
        node, parts_done = work.pop()
        if isinstance(node, Atom):
            done.append(atom(node))
        elif parts_done:
            first = len(done) - len(node.parts)
            done[first:] = [join(node.join, done[first:])]
        else:
            work.append((node, True))
            work.extend((part, False) for part in reversed(node.parts))
    return done[0]


def atoms(wanted: Wanted, *, sought: bool | None = None) -> Iterator[Atom]:
    """The atoms in order; only those that are looked for, or only those that are refused, where `sought` says so."""
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
    """The whole as a boolean query, with every operator written."""

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
