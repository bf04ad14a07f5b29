"""The names most like one that nothing has."""

from __future__ import annotations

from collections.abc import Sequence

_FURTHEST_SHARE = 0.4
"""The slips that a last component may have, as a share of its length."""


def nearest(asked: str, names: Sequence[str], *, most: int, furthest: int) -> list[str]:
    """Return the names most like `asked`, nearest first, whatever their case.

    A whole name may have `furthest` slips, its last component fewer than half its letters, with its ending or without.
    """
    from rapidfuzz.distance import OSA  # only a miss needs it
    from rapidfuzz.process import extract

    wanted = asked.casefold()
    last = wanted.rsplit("/", 1)[-1]
    wholes = [name.casefold() for name in names]
    lasts = [name.rsplit("/", 1)[-1] for name in wholes]
    slips = max(1, int(_FURTHEST_SHARE * len(last)))
    near = ((wholes, wanted, furthest), (lasts, last, slips), ([_stem(name) for name in lasts], _stem(last), slips))
    distances: dict[int, int] = {}
    for choices, text, bound in near:
        for _, distance, place in extract(text, choices, scorer=OSA.distance, score_cutoff=bound, limit=10 * most):
            distances[place] = min(int(distance), distances.get(place, bound))
    worth = {
        place: (distance, OSA.distance(wanted, wholes[place]), names[place]) for place, distance in distances.items()
    }
    return [names[place] for place in sorted(worth, key=worth.__getitem__)[:most]]


def or_of(names: Sequence[str]) -> str:
    """Return names in words: `a`, `a or b`, `a, b or c`."""
    return " or ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def _stem(name: str) -> str:
    stem, dot, _ = name.rpartition(".")
    return stem if dot and stem else name
