"""The few lines that show why a passage was found."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence

from commonplace.lazy_dataclass import dataclass
from commonplace.text.lines import line_of, split_lines, starts_of
from commonplace.text.tokens import next_cut, safe_cut

Match = tuple[int, int, int]
"""Where a query's word stands in a text, and which word of the query it is: (start, end, term)."""

ELLIPSIS = "…"
_SPACE = re.compile(r"\s")
_SELDOM = tuple(sign for sign in map(chr, range(0x3001)) if sign.isspace() and sign not in " \n\t")
_MOST_GIVEN_UP = 36
"""How much of the allowed length a cut at a word boundary may cost, so that a snippet is never 40 short of it."""


@dataclass(frozen=True, slots=True)
class Snippet:
    """`text` is `source[start:end]` with white space collapsed and an ellipsis where something was left out."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Flat:
    """A text with each run of white space as one space, and the way back to where its characters came from."""

    text: str
    lead: int
    gaps: list[int]
    """Where the text goes on after each run that was shortened, in the source."""
    lost: list[int]
    """Characters lost before the first run, and after each of them."""

    def inward(self, char: int) -> int:
        place = char - self.lead - self.lost[bisect_right(self.gaps, char)]
        return max(0, min(place, len(self.text)))

    def outward(self, char: int) -> int:
        afters = [gap - self.lead - lost for gap, lost in zip(self.gaps, self.lost[1:], strict=True)]
        return char + self.lead + self.lost[bisect_right(afters, char)]


def snippet(text: str, matches: Sequence[Match], length: int = 300) -> Snippet:
    """The window of at most `length` characters with the most distinct terms, the earliest of equals, centred on them.

    Without a match it is the start of the text. Matches come sorted by their start.
    """
    flat = _flatten(text)
    if not flat.text:
        return Snippet("", 0, 0)
    inside = [(flat.inward(start), flat.inward(end), term) for start, end, term in matches]
    low, high = window(flat.text, inside, length)
    if low >= high:
        return Snippet(ELLIPSIS, flat.outward(low), flat.outward(low))
    return Snippet(_framed(flat.text, low, high), flat.outward(low), flat.outward(high - 1) + 1)


def window(text: str, matches: Sequence[Match], length: int) -> tuple[int, int]:
    """The part of a text to show, cut at words, ellipses counted: what `snippet` does, white space left alone."""
    if len(text) <= length:
        return 0, len(text)
    room = max(1, length - 2)
    first, last = _densest(matches, room)
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
    """The line, from 0, with the most distinct terms (each counts 1 unless weighed), the first of equals.

    Without a match it is the first line that says something: neither blank nor a heading.
    """
    lines = split_lines(text)
    if not matches:
        said = (number for number, line in enumerate(lines) if line.strip() and not line.lstrip().startswith("#"))
        return next(said, 0)
    starts = starts_of(lines)
    terms: dict[int, set[int]] = {}
    for start, _, term in matches:
        terms.setdefault(line_of(starts, start) - 1, set()).add(term)
    worth = weights or {}
    return min(terms, key=lambda line: (-sum(worth.get(term, 1.0) for term in terms[line]), line))


def numbered(text: str, first_line: int, best: int, limit: int = 300, matches: Sequence[Match] = ()) -> str:
    """`around` with every line as `{n}: {text}`. Numbers do not count towards the limit, line ends do."""
    shown = around(text, best, limit, matches)
    return "\n".join(f"{first_line + number}: {line}" for number, line in shown)


def around(text: str, best: int, limit: int = 300, matches: Sequence[Match] = ()) -> list[tuple[int, str]]:
    """The best line with one before and two after, as many as fit whole, each with its number from 0.

    Only the best line is ever cut, around its matches.
    """
    lines = split_lines(text)
    shown = {best: _fitted(lines[best], _within(lines, best, matches), limit)}
    room = limit - len(shown[best])
    for nearby in ([best - 1], [best + 1, best + 2]):
        for number in nearby:
            line = lines[number].removesuffix("\r") if 0 <= number < len(lines) else None
            if line is None or len(line) + 1 > room:
                break
            shown[number] = line
            room -= len(line) + 1
    return sorted(shown.items())


def _within(lines: Sequence[str], number: int, matches: Sequence[Match]) -> list[Match]:
    start = sum(len(line) + 1 for line in lines[:number])
    end = start + len(lines[number])
    return [(low - start, min(high, end) - start, term) for low, high, term in matches if start <= low < end]


def _fitted(line: str, matches: Sequence[Match], limit: int) -> str:
    line = line.removesuffix("\r")
    return _framed(line, *window(line, matches, limit))


def _framed(text: str, low: int, high: int) -> str:
    return ELLIPSIS * (low > 0) + text[low:high] + ELLIPSIS * (high < len(text))


def blanked(text: str) -> str:
    """A text with a space for every character of white space, as long as it was."""
    if any(map(text.__contains__, _SELDOM)):
        return _SPACE.sub(" ", text)
    return text.replace("\n", " ").replace("\t", " ")  # ten times quicker, and nearly always enough


def _flatten(text: str) -> _Flat:
    spaced = blanked(text)
    whole = spaced.strip(" ")
    lead = spaced.find(whole[:1])
    at = whole.find("  ")
    if at < 0:
        return _Flat(whole, lead, [], [0])  # every run was one character long: nothing moved
    pieces, gaps, lost, start = list[str](), list[int](), [0], 0
    while at >= 0:
        end = at + 2
        while whole[end] == " ":
            end += 1
        pieces.append(whole[start:at])
        gaps.append(lead + end)
        lost.append(lost[-1] + end - at - 1)
        start, at = end, whole.find("  ", end)
    return _Flat(" ".join((*pieces, whole[start:])), lead, gaps, lost)


def _densest(matches: Sequence[Match], room: int) -> tuple[int, int]:
    """The earliest stretch of at most `room` characters with the most distinct terms, from its first to its last."""
    best, span = 0, (0, 0)
    held: Counter[int] = Counter()
    right = 0
    for left, (start, end, term) in enumerate(matches):
        right = max(right, left)
        while right < len(matches) and matches[right][1] - start <= room:
            held[matches[right][2]] += 1
            right += 1
            if len(held) > best:
                best, span = len(held), (start, max(match[1] for match in matches[left:right]))
        if best == 0:
            best, span = 1, (start, min(end, start + room))
        if right > left:
            held[term] -= 1
            if not held[term]:
                del held[term]
    return span


def _begin(text: str, low: int, most: int) -> int:
    """The first word that begins at `low` or soon after, and before what must be shown."""
    space = text.find(" ", low - 1, min(most, low + _MOST_GIVEN_UP // 2))
    return next_cut(text, space + 1 if space >= 0 else low)


def _end(text: str, low: int, high: int, least: int) -> int:
    """The last word that ends at `high` or shortly before, and after what must be shown."""
    if high >= len(text):
        return len(text)
    space = text.rfind(" ", max(least, high - min(_MOST_GIVEN_UP, (high - low) // 2)), high + 1)
    return safe_cut(text, space if space > low else high, low)
