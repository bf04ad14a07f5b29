"""The few lines that show why a passage was found."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from commonplace.lazy_dataclass import dataclass
from commonplace.text.text_lines import split_lines
from commonplace.text.token_estimates import next_cut, safe_cut

Match = tuple[int, int, int]
"""A place of a query's word in a text: (start, end, number of the term)."""

ELLIPSIS = "…"
_SPACE = re.compile(r"\s")
_SELDOM = tuple(sign for sign in map(chr, range(0x3001)) if sign.isspace() and sign not in " \n\t\r")
_SELDOM_ASCII = tuple(filter(str.isascii, _SELDOM))
_MOST_GIVEN_UP = 36
"""Characters of the allowed length that a cut at a word boundary may cost: a snippet is never 40 short of it."""


@dataclass(frozen=True, slots=True)
class Snippet:
    """A window of a source.

    `text` is `source[start:end]` with white space collapsed and an ellipsis where text was left out.
    """

    text: str
    start: int
    end: int


class _Flat(NamedTuple):
    """A text with each run of white space as one space, and the way back to where its characters came from."""

    text: str
    gaps: list[int]
    """The places in the source where the text begins, and goes on after each run that was shortened."""
    landings: list[int]
    """The same here."""
    shifts: list[int]
    """Characters that the source is ahead: before the first of them, and after each."""

    def inward(self, char: int) -> int:
        place = char - self.shifts[bisect_right(self.gaps, char)]
        return place if 0 <= place <= len(self.text) else max(0, min(place, len(self.text)))

    def outward(self, char: int) -> int:
        return char + self.shifts[bisect_right(self.landings, char)]


def snippet(text: str, matches: Sequence[Match], length: int = 300) -> Snippet:
    """Return the window of at most `length` characters with the most distinct terms, centered on them.

    Of equals it is the earliest, and without a match the start of the text. Matches come sorted by their start.
    """
    flat = _flatten(text)
    if not flat.text:
        return Snippet("", 0, 0)
    if len(flat.text) <= length:
        low, high = 0, len(flat.text)
    else:
        inside = [(flat.inward(start), flat.inward(end), term) for start, end, term in matches]
        low, high = window(flat.text, inside, length)
    if low >= high:
        return Snippet(ELLIPSIS, flat.outward(low), flat.outward(low))
    return Snippet(_framed(flat.text, low, high), flat.outward(low), flat.outward(high - 1) + 1)


def window(text: str, matches: Sequence[Match], length: int) -> tuple[int, int]:
    """Return the part of a text to show, cut at words, ellipses counted: as `snippet` does, white space left alone."""
    if len(text) <= length:
        return 0, len(text)
    room = max(1, length - 2)
    first, last = densest(matches, room)
    low = (first + last - room) // 2
    if low <= 1:
        low = 0
    elif low + room >= len(text):
        low = _begin(text, len(text) - length + 1, first)
    else:
        low = _begin(text, low, first)
    if low and len(text) - low < length:
        return low, len(text)
    return low, _end(text, low, low + (length - 1 if low == 0 else room), last)


def best_line(text: str, matches: Sequence[Match], weights: Mapping[int, float] | None = None) -> int:
    """Return the line, from 0, with the most distinct terms (each counts 1 unless weighed), the first of equals.

    Without a match it is the first line that says something: neither blank nor a heading. Matches come sorted by their
    start.
    """
    if not matches:
        lines = enumerate(split_lines(text))
        numbers = (number for number, line in lines if line.strip() and not line.lstrip().startswith("#"))
        return next(numbers, 0)
    terms: dict[int, set[int]] = {}
    line = counted_to = 0
    for start, _, term in matches:
        line, counted_to = line + text.count("\n", counted_to, start), start
        terms.setdefault(line, set()).add(term)
    if not weights:
        return max(terms, key=lambda line: len(terms[line]))
    return max(terms, key=lambda line: sum(weights.get(term, 1.0) for term in terms[line]))


def numbered(text: str, first_line: int, best: int, limit: int = 300, matches: Sequence[Match] = ()) -> str:
    """Return the lines of `around` as `{n}: {text}`. Numbers do not count towards the limit, line ends do."""
    shown = around(text, best, limit, matches)
    return "\n".join(f"{first_line + number}: {line}" for number, line in shown)


def around(text: str, best: int, limit: int = 300, matches: Sequence[Match] = ()) -> list[tuple[int, str]]:
    """Return the best line with one before and two after, as many as fit whole, each with its number from 0.

    Only the best line is ever cut, around its matches.
    """
    lines = split_lines(text)
    line_by_number = {best: _fitted(lines, best, matches, limit)}
    room = limit - len(line_by_number[best])
    for nearby in ([best - 1], [best + 1, best + 2]):
        for number in nearby:
            line = lines[number].removesuffix("\r") if 0 <= number < len(lines) else None
            if line is None or len(line) + 1 > room:
                break
            line_by_number[number] = line
            room -= len(line) + 1
    return sorted(line_by_number.items())


def _fitted(lines: Sequence[str], number: int, matches: Sequence[Match], limit: int) -> str:
    """Return a line, cut around its matches where it is too long."""
    line = lines[number].removesuffix("\r")
    if len(line) <= limit:
        return line
    start = sum(map(len, lines[:number])) + number
    end = start + len(lines[number])
    inside = [(low - start, min(high, end) - start, term) for low, high, term in matches if start <= low < end]
    return _framed(line, *window(line, inside, limit))


def _framed(text: str, low: int, high: int) -> str:
    return ELLIPSIS * (low > 0) + text[low:high] + ELLIPSIS * (high < len(text))


def blanked(text: str) -> str:
    """Return a text with a space for every character of white space, as long as it was."""
    if any(map(text.__contains__, _SELDOM_ASCII if text.isascii() else _SELDOM)):
        return _SPACE.sub(" ", text)
    return text.replace("\n", " ").replace("\t", " ").replace("\r", " ")  # ten times quicker, and nearly always enough


def _flatten(text: str) -> _Flat:
    spaced = blanked(text)
    whole = spaced.strip(" ")
    at, landing = spaced.find(whole[:1]), 0
    runs, gaps, landings, shifts = list[str](), list[int](), list[int](), [at]
    for piece in whole.split("  "):
        bare = piece.lstrip(" ")
        if bare:
            gap = at + len(piece) - len(bare)
            runs.append(bare)
            gaps.append(gap)
            landings.append(landing)
            shifts.append(gap - landing)
            landing += len(bare) + 1
        at += len(piece) + 2
    return _Flat(" ".join(runs), gaps, landings, shifts)


def densest(matches: Sequence[Match], room: int) -> tuple[int, int]:
    """Return the earliest stretch of at most `room` characters that holds the most distinct terms, first to last."""
    best, span = 0, (0, 0)
    count_by_term: dict[int, int] = {}
    right, all_terms = 0, len({term for _, _, term in matches})
    for left, (start, end, term) in enumerate(matches):
        right = max(right, left)
        while right < len(matches) and matches[right][1] - start <= room:
            added = matches[right][2]
            count_by_term[added] = count_by_term.get(added, 0) + 1
            right += 1
            if len(count_by_term) > best:
                best, span = len(count_by_term), (start, max(match[1] for match in matches[left:right]))
        if best == 0:
            best, span = 1, (start, min(end, start + room))
        if best == all_terms:
            break
        if right > left:
            count_by_term[term] -= 1
            if not count_by_term[term]:
                del count_by_term[term]
    return span


def _begin(text: str, low: int, most: int) -> int:
    """Return the first word that begins at `low` or soon after, and before what must be shown."""
    space = text.find(" ", low - 1, min(most, low + _MOST_GIVEN_UP // 2))
    return next_cut(text, space + 1 if space >= 0 else low)


def _end(text: str, low: int, high: int, least: int) -> int:
    """Return the last word that ends at `high` or shortly before, and after what must be shown."""
    if high >= len(text):
        return len(text)
    space = text.rfind(" ", max(least, high - min(_MOST_GIVEN_UP, (high - low) // 2)), high + 1)
    return safe_cut(text, space if space > low else high, low)
