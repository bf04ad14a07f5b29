"""How a phrase may stand in an index: the sequences of exact terms that its words were kept as, compounds included."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from commonplace.text.analyze import compound_of, exact_terms, parts_of, pieces
from commonplace.text.terms import ends_in_beginning

Phrase = tuple[tuple[str, ...], ...]
"""What an index looks for: exact terms one after the other, in any of these ways."""

MOST_READINGS = 32
"""Ways in which the compounds of a phrase may have been written."""

_LONGEST_COMPOUND = 3
_LONGEST_FREE = 64  # words of a phrase that are tried as parts of compounds

Unit = tuple[str, ...]
"""Terms that stand one after the other; a single one may also be part of a compound."""

Occurs = Callable[[str], object]
"""Whether an exact term is anywhere in the index."""


def loose_phrase(text: str, occurs: Occurs) -> Phrase:
    """Any ways in which words may be joined: `real time` and `real-time` are both found by either."""
    return tuple(_readings(_units(text, loosely=True), occurs))


def phrase(text: str, occurs: Occurs) -> Phrase:
    """Words that may be joined, and compounds that are: `real time` finds `real-time`, `for_each` no `for each`."""
    return tuple(_readings(_units(text), occurs))


def phrases(text: str, occurs: Occurs) -> tuple[Phrase, ...]:
    """All that a text with the phrase has: itself, or two things where it ends in a compound.

    Inside of a longer one that has its parts and their joins, each adjacent, but not its own end: `docs.example.org` in
    an address. Words side by side have no joins.
    """
    units = _units(text)
    parts = parts_of(units[-1]) if units else None
    if parts is None:
        return (tuple(_readings(units, occurs)),) if units else ()
    joins = units[-1][len(parts) : -1] or units[-1][-1:]
    return tuple(_readings([*units[:-1], tuple(parts)], occurs)), (joins,)


def is_beginning(phrase: Phrase) -> bool:
    """Whether a phrase is one character of an unspaced script: it is the beginning of every pair that it is in."""
    return len(phrase) == 1 and len(phrase[0]) == 1 and ends_in_beginning(phrase[0])


def _units(text: str, *, loosely: bool = False) -> list[Unit]:
    """The terms of a phrase; `loosely`, a compound is its parts.

    Of a run of characters at its end the last need not stand alone: the run may go on.
    """
    kind, units = "", list[Unit]()
    for kind, terms in _terms(text):
        parts = parts_of(terms) if loosely and kind == "word" else None
        units += [(part,) for part in parts] if parts else [terms]
    if kind != "run":
        return units
    if len(units[-1]) > 1:
        return [*units[:-1], units[-1][:-1]]
    return units if len(units) == 1 or ends_in_beginning((*units[-2], *units[-1])) else units[:-1]


def _terms(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    for token in text.split():
        for kind, piece in pieces(token):
            if terms := exact_terms(piece):
                yield kind, terms


def _readings(units: Sequence[Unit], occurs: Occurs) -> list[Unit]:
    """The sequences of terms by which a phrase is indexed."""
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


def _length(compound: Unit) -> int:
    return 2 if len(compound) == 3 else len(compound) // 2
