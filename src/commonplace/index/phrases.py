"""How a phrase may stand in an index: the sequences of exact terms that its words were kept as, compounds included."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from commonplace.text.analyze import compound_of, exact_terms, parts_of, pieces

MOST_READINGS = 32
"""Ways in which the compounds of a phrase may have been written."""

_LONGEST_COMPOUND = 3
_LONGEST_FREE = 64  # words of a phrase that are tried as parts of compounds

Unit = tuple[str, ...]
"""Terms that stand one after the other; a single one may also be part of a compound."""

Occurs = Callable[[str], object]
"""Whether an exact term is anywhere in the index."""


def units_of(text: str) -> list[Unit]:
    """The terms of a phrase. Of a run of characters at its end the last need not stand alone: the run may go on."""
    units = list(_units(text))
    if units and len(units[-1]) > 1 and pieces(text.split()[-1])[-1][0] == "run":
        units[-1] = units[-1][:-1]
    return units


def is_beginning(text: str, units: Sequence[Unit]) -> bool:
    """Whether the phrase is one character of an unspaced script: it is the beginning of every pair that it is in."""
    return len(units) == 1 and len(units[0]) == 1 and pieces(text)[-1][0] == "run"


def readings(units: Sequence[Unit], occurs: Occurs) -> list[Unit]:
    """The sequences of terms by which a phrase is indexed: `real time` and `real-time` are both found by either."""
    found: list[list[Unit]] = [[] for _ in units] + [[()]]
    for start in reversed(range(len(units))):
        here = [units[start]]
        if len(units) <= _LONGEST_FREE:
            here += list(_compounds(units[start : start + _LONGEST_COMPOUND], occurs))
        for terms, length in [(here[0], 1), *((unit, _length(unit)) for unit in here[1:])]:
            found[start] += [(*terms, *rest) for rest in found[start + length]]
        del found[start][MOST_READINGS:]
    return found[0] if units else []


def _compounds(following: Sequence[Unit], occurs: Occurs) -> Iterator[Unit]:
    for count in range(2, len(following) + 1):
        parts = [unit[0] for unit in following[:count] if len(unit) == 1]
        if len(parts) < count:
            return
        if occurs("".join(parts)):
            yield compound_of(parts)


def _units(text: str) -> Iterator[Unit]:
    """A compound as its parts, what cannot be part of one as it is indexed."""
    for token in text.split():
        for kind, piece in pieces(token):
            terms = exact_terms(piece)
            parts = parts_of(terms) if kind == "word" else None
            if parts:
                yield from ((part,) for part in parts)
            elif terms:
                yield terms


def _length(compound: Unit) -> int:
    return 2 if len(compound) == 3 else len(compound) // 2
