"""Phrases as sequences of exact terms, in every way that an index may hold them, compounds included."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from commonplace.text.analyze import compound_of, exact_terms, parts_of, pieces
from commonplace.text.terms import ends_in_beginning

Phrase = tuple[tuple[str, ...], ...]
"""Alternatives, each a sequence of exact terms that stand one after the other."""

MOST_READINGS = 32
"""Alternatives of a phrase that are looked for: ways to write its compounds."""

_LONGEST_COMPOUND = 3
_LONGEST_FREE = 64  # words of a phrase that are tried as parts of compounds

Unit = tuple[str, ...]
"""Adjacent terms; a single one may also be part of a compound."""

Occurs = Callable[[str], object]
"""A predicate, true if an exact term is anywhere in the index."""


def loose_phrase(text: str, occurs: Occurs) -> Phrase:
    """Return a phrase with any joins between its words: `real time` and `real-time` each find both."""
    return tuple(_readings(_units(text, loosely=True), occurs))


def phrase(text: str, occurs: Occurs) -> Phrase:
    """Return a phrase whose words may be joined and whose compounds stay joined.

    `real time` finds `real-time`; `for_each` does not find `for each`.
    """
    return tuple(_readings(_units(text), occurs))


def phrases(text: str, occurs: Occurs) -> tuple[Phrase, ...]:
    """Return all phrases that a text with this one has: one, or two where it ends in a compound.

    A longer compound around it (an address with `docs.example.org`) has its parts and their joins, each adjacent, but
    not the term that joins all of them. So the parts are one phrase and the joins another; words apart have no joins.
    """
    units = _units(text)
    parts = parts_of(units[-1]) if units else None
    if parts is None:
        return (tuple(_readings(units, occurs)),) if units else ()
    joins = units[-1][len(parts) : -1] or units[-1][-1:]
    return tuple(_readings([*units[:-1], tuple(parts)], occurs)), (joins,)


def is_beginning(phrase: Phrase) -> bool:
    """Return True if a phrase is one character of an unspaced script, which begins every pair that it is in."""
    return len(phrase) == 1 and len(phrase[0]) == 1 and ends_in_beginning(phrase[0])


def _units(text: str, *, loosely: bool = False) -> list[Unit]:
    """Return the terms of a phrase; `loosely`, a compound is its parts.

    The last term of a run at its end, which is one character alone, is left out: the run may go on in the text.
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
    """Return the sequences of terms by which a phrase may be indexed, at most `MOST_READINGS`."""
    readings: list[list[Unit]] = [[] for _ in units] + [[()]]  # from each unit to the end
    for start in reversed(range(len(units))):
        here = [units[start]]
        if len(units) <= _LONGEST_FREE:
            here += list(_compounds(units[start : start + _LONGEST_COMPOUND], occurs))
        for terms, length in [(here[0], 1), *((unit, _length(unit)) for unit in here[1:])]:
            readings[start] += [(*terms, *rest) for rest in readings[start + length]]
        del readings[start][MOST_READINGS:]
    return readings[0] if units else []


def _compounds(following: Sequence[Unit], occurs: Occurs) -> Iterator[Unit]:
    """Yield the compounds in the index that the first two or more of some single terms make."""
    for count in range(2, len(following) + 1):
        parts = [unit[0] for unit in following[:count] if len(unit) == 1]
        if len(parts) < count:
            return
        if occurs("".join(parts)):
            yield compound_of(parts)


def _length(compound: Unit) -> int:
    """Return the number of words in a compound, from the number of its terms."""
    return 2 if len(compound) == 3 else len(compound) // 2
