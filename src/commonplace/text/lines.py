"""Lines as every surface counts them: a line ends at LF and at nothing else."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate


def split_lines(text: str) -> list[str]:
    """The lines without their LF. A final LF ends the last line and starts no other; there is always one line."""
    lines = text.split("\n")
    if len(lines) > 1 and not lines[-1]:
        lines.pop()
    return lines


def line_starts(text: str) -> list[int]:
    """Where each line begins. Form feeds, U+2028 and lone CRs are characters like any other."""
    return starts_of(split_lines(text))


def starts_of(lines: Sequence[str]) -> list[int]:
    """The same for a text that is split already."""
    ends = accumulate((len(line) + 1 for line in lines), initial=0)
    return [start for start, _ in zip(ends, lines, strict=False)]


def line_of(starts: Sequence[int], char: int) -> int:
    """The line, from 1, that holds a character. The end of the text belongs to the last line."""
    return bisect_right(starts, char)
