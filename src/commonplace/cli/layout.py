"""The width of texts on a terminal, and their breaking into rows."""

from __future__ import annotations

import os
import sys
import unicodedata
from collections.abc import Iterator

from commonplace.cli.terminal import harmless
from commonplace.text.token_estimates import CLUSTER

TAB = 4
_USUAL_WIDTH = 80
_AS_PICTURE = "\ufe0f"


def columns() -> int:
    """Return the number of columns: COLUMNS if set, else the terminal's, else 80."""
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given) > 0:
        return int(given)
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or _USUAL_WIDTH
    except (OSError, ValueError):
        return _USUAL_WIDTH


def cells(text: str) -> int:
    """Return the number of columns a text takes on a terminal, as `harmless` shows it. A tab takes four."""
    if _is_plain(text):
        return len(text)
    return sum(map(_cells_of, CLUSTER.findall(text)))


def rows(text: str, room: int, hang: int = 0) -> Iterator[tuple[int, int]]:
    """Yield where the rows of a line begin and end, broken between words to take at most `room` columns each.

    Rows after the first have `hang` columns fewer. A word wider than a row is broken inside.
    """
    low, width = 0, room
    while True:
        high = _reach(text, low, width)
        if high < len(text) and text[high] != " ":
            blank = text.rfind(" ", low, high)
            high = blank if text[low : max(low, blank)].strip() else high
        yield low, high
        low, width = high + (text[high : high + 1] == " "), room - hang
        if low >= len(text):
            return


def shortened(text: str, room: int) -> str:
    """Return a text that takes at most so many columns, with an ellipsis at its end where something was left out."""
    return text if cells(text) <= room else text[: _reach(text, 0, room - 1)].rstrip() + "…"


def _reach(text: str, low: int, room: int) -> int:
    """Return the furthest end that fits in `room` columns, after one cluster at least."""
    if _is_plain(text[low : low + room + 1]):
        return min(len(text), low + max(1, room))
    at = low
    for cluster in CLUSTER.finditer(text, low):
        room -= _cells_of(cluster[0])
        if room < 0 and at > low:
            return at
        at = cluster.end()
    return at


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable()


def _cells_of(cluster: str) -> int:
    if cluster == "\t":
        return TAB
    if (shown := harmless(cluster)) != cluster:
        return len(shown)
    if _AS_PICTURE in cluster or (len(cluster) > 1 and "\U0001f1e6" <= cluster[0] <= "\U0001f1ff"):
        return 2  # a sign drawn as a picture, or the two letters of a flag
    return max(map(_cells_of_sign, cluster))


def _cells_of_sign(sign: str) -> int:
    if unicodedata.category(sign) in ("Mn", "Me", "Cf", "Cc"):
        return 0
    return 2 if unicodedata.east_asian_width(sign) in "WF" else 1
