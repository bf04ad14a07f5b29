"""Lines as every surface counts them: a line ends at LF and at nothing else."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from operator import add
from typing import NamedTuple

_MOST_KEPT = 1_000_000
"""Characters. A longer text is measured each time rather than held in memory twice."""


class Lines(NamedTuple):
    """A text's lines without their LF, where each begins, and after those where the text ends."""

    texts: tuple[str, ...]
    bounds: tuple[int, ...]


def split_lines(text: str) -> list[str]:
    """Return the lines without their LF.

    A final LF ends the last line and starts no other; there is always one line.
    """
    lines = text.split("\n")
    if len(lines) > 1 and not lines[-1]:
        lines.pop()
    return lines


def line_starts(text: str) -> list[int]:
    """Return where each line begins. Form feeds, U+2028 and lone CRs are characters like any other."""
    return starts_of(split_lines(text))


def starts_of(lines: Sequence[str]) -> list[int]:
    """Return where each line begins, for a text that is split already."""
    before = accumulate(map(len, lines), initial=0)
    return list(map(add, before, range(len(lines))))  # and an LF for each line before


def lines_of(text: str) -> Lines:
    """Return a text's lines, their starts and its end.

    The last text's are kept: structure, passages and outline ask in turn.
    """
    return _last(text) if len(text) <= _MOST_KEPT else _lines_of(text)


def _lines_of(text: str) -> Lines:
    lines = split_lines(text)
    return Lines(tuple(lines), (*starts_of(lines), len(text)))


_last = lru_cache(maxsize=1)(_lines_of)


def line_of(starts: Sequence[int], char: int) -> int:
    """Return the line, from 1, that holds a character. The end of the text belongs to the last line."""
    return bisect_right(starts, char)
