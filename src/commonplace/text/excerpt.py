"""As much of a long text as a model reads at once, taken from around what was looked for."""

from __future__ import annotations

from collections.abc import Sequence

from commonplace.text.highlight import GAP
from commonplace.text.snippet import Match, window
from commonplace.text.token_estimates import weight

MOST_STRETCHES = 4
MOST_MATCHES = 1000
"""Places that decide what is taken; a text with more says the same thing everywhere."""

Stretch = tuple[int, int]


def excerpt(text: str, matches: Sequence[Match], tokens: int) -> str:
    """Return a short text whole, else stretches around the matches, joined by ` … `, of at most `tokens`.

    There are as few stretches as hold every term, so that each is as long as can be: terms far apart are all kept.
    Without a match it is the beginning.
    """
    if len(text) <= tokens or weight(text) <= 4 * tokens:
        return text
    matches = matches[:MOST_MATCHES]
    terms = {term for _, _, term in matches}
    stretches: list[Stretch] = []
    for count in range(1, max(1, min(MOST_STRETCHES, len(terms))) + 1):
        stretches = _stretches(text, matches, count, (4 * tokens - len(GAP) * (count - 1)) // count)
        if _held(matches, stretches) == terms:
            break
    return GAP.join(text[low:high].strip() for low, high in _apart(stretches))


def _stretches(text: str, matches: Sequence[Match], count: int, room: int) -> list[Stretch]:
    """Return at most `count` stretches, each with the most of the terms that the ones before it lack."""
    stretches = [_fitting(text, matches, room)]
    while len(stretches) < count:
        terms = _held(matches, stretches)
        lacking = [match for match in matches if match[2] not in terms]
        if not lacking:
            break
        stretches.append(_fitting(text, lacking, room))
    return stretches


def _fitting(text: str, matches: Sequence[Match], room: int) -> Stretch:
    """Return the window around the matches that weighs no more than `room`, in quarters of a token."""
    length = room
    while True:
        clipped = [(start, min(end, start + max(1, length - 2)), term) for start, end, term in matches]
        low, high = window(text, clipped, length)
        over = weight(text[low:high])
        if over <= room or length <= 1:
            return low, high
        length = max(1, min(length - 1, length * room // over))


def _held(matches: Sequence[Match], stretches: Sequence[Stretch]) -> set[int]:
    return {term for start, end, term in matches if any(low <= start and end <= high for low, high in stretches)}


def _apart(stretches: Sequence[Stretch]) -> list[Stretch]:
    """Return the stretches in the order of the text. Two that overlap become one."""
    apart: list[Stretch] = []
    for low, high in sorted(stretches):
        if apart and low <= apart[-1][1]:
            apart[-1] = (apart[-1][0], max(high, apart[-1][1]))
        else:
            apart.append((low, high))
    return apart
