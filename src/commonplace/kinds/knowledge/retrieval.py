"""Read an item: five modes on one implementation, for bodies of chunks and for conversations of messages.

    tokens(text) = ceil(len(text) / chars_per_token)

In the modes `chunk` and `chunk_with_siblings` the tokens of the content never pass `max_tokens`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from commonplace.errors import InvalidInput
from commonplace.kinds.knowledge.drawer import Place
from commonplace.model import JSON
from commonplace.text.snippet import Match, snippet

Mode = Literal["snippet", "chunk", "chunk_with_siblings", "full"]
AnchorBy = Literal["loc", "query", "session", "start"]

_SENTENCE = re.compile(r"[.!?…。！？]+[\"'”’)\]]*\s+|\n+|[。！？]")
_WORD = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class Budget:
    """A limit on the tokens of a reply."""

    max_tokens: int
    chars_per_token: float

    def tokens(self, text: str) -> int:
        """Return the tokens of a text."""
        return tokens(len(text), self.chars_per_token)

    def fits(self, length: int) -> bool:
        """Return whether a text of this many characters fits."""
        return tokens(length, self.chars_per_token) <= self.max_tokens

    @property
    def chars(self) -> int:
        """Return the most characters that fit."""
        most = math.floor(self.max_tokens * self.chars_per_token)
        while not self.fits(most):  # a product of floats may be a hair too large
            most -= 1
        return most


@dataclass(frozen=True, slots=True)
class Wish:
    """The way in which an item is to be read, every knob decided."""

    mode: Mode = "snippet"
    snippet_length: int = 300
    budget: Budget = Budget(5000, 4)
    sibling_window: int = 2
    chunk_chars: int | None = None
    """Most characters of the pieces the body is cut into on the fly; None: the stored chunks."""
    overlap_chars: int = 0
    loc: Mapping[str, JSON] | None = None
    query: str | None = None
    recent: tuple[str, ...] = ()
    """Queries of the session, newest first."""
    offset: int = 0
    full_chars: int = 80_000


@dataclass(frozen=True, slots=True)
class Anchor:
    """The place where reading begins: the chunk, the character where one is known, and how it was found."""

    index: int
    at: int | None
    by: AnchorBy
    until: int | None = None
    """End of the match that begins there; None: the end of the word there."""


@dataclass(frozen=True, slots=True)
class ReadPassage:
    """A passage that was read."""

    content: str
    truncated: bool
    next_offset: int | None = None
    chunks: range = range(0)
    """Indexes of the chunks it is made of."""


def tokens(length: int, chars_per_token: float) -> int:
    """Return the estimated tokens of so many characters."""
    return math.ceil(length / chars_per_token)


# bodies


def read_body(body: str, chunks: Sequence[Place], anchor: Anchor, wish: Wish, matches: Sequence[Match]) -> ReadPassage:
    """Read one body in the mode wished for. `matches` are those of the query that anchors it, if one does."""
    match wish.mode:
        case "full":
            return read_full(body, wish)
        case "snippet":
            return read_snippet(body, anchor, chunks, matches, wish.snippet_length)
        case "chunk":
            return _around(body, chunks, anchor, wish, window=0)
        case _:
            return _around(body, chunks, anchor, wish, window=wish.sibling_window)


def read_full(body: str, wish: Wish) -> ReadPassage:
    """Read from an offset as much as there is room for. The pages concatenate to the body."""
    end = min(len(body), wish.offset + wish.full_chars)
    more = end < len(body)
    return ReadPassage(body[wish.offset : end], more, end if more else None)


def read_snippet(
    body: str, anchor: Anchor, chunks: Sequence[Place], matches: Sequence[Match], length: int
) -> ReadPassage:
    """Read a snippet of at most `length` characters around the matches, or around the anchor."""
    if not matches and anchor.by != "start":
        at = anchor.at if anchor.at is not None else chunks[anchor.index].start if chunks else 0
        word = _WORD.search(body, at)
        matches = [(word.start(), min(word.end(), word.start() + length // 2), 0)] if word else []
    text = snippet(body, matches, length).text
    return ReadPassage(text, text != " ".join(body.split()))


def _around(body: str, chunks: Sequence[Place], anchor: Anchor, wish: Wish, window: int) -> ReadPassage:
    """Return one contiguous slice of the body: the anchor, and neighbors to the left and right while they fit."""
    if not chunks:
        return ReadPassage("", truncated=False)
    chosen = chunks[anchor.index]
    if not wish.budget.fits(chosen.end - chosen.start):
        low, high = trim(body, chosen, anchor, wish.budget.chars)
        return ReadPassage(body[low:high], truncated=True, chunks=range(anchor.index, anchor.index + 1))

    def fits(first: int, last: int) -> bool:
        start, end = bounds(chunks, first, last)
        return wish.budget.fits(end - start)

    first, last, cut = expand(anchor.index, len(chunks), window, fits)
    start, end = bounds(chunks, first, last)
    return ReadPassage(body[start:end], cut, chunks=range(first, last + 1))


def expand(anchor: int, count: int, window: int, fits: Callable[[int, int], bool]) -> tuple[int, int, bool]:
    """Return the first and the last neighbor that fit, and whether one within the window did not.

    Neighbors are tried by growing distance, left before right; a side that does not fit or ends is closed for good.
    """
    first = last = anchor
    left = right = True
    cut = False
    for distance in range(1, window + 1):
        if left:
            left = anchor - distance >= 0
            if left and not fits(anchor - distance, last):
                left, cut = False, True
            if left:
                first = anchor - distance
        if right:
            right = anchor + distance < count
            if right and not fits(first, anchor + distance):
                right, cut = False, True
            if right:
                last = anchor + distance
    return first, last, cut


def bounds(chunks: Sequence[Place], first: int, last: int) -> tuple[int, int]:
    """Return where chunks begin and end together. They may overlap, and one may lie inside another."""
    inside = chunks[first : last + 1]
    return min(place.start for place in inside), max(place.end for place in inside)


def trim(body: str, chunk: Place, anchor: Anchor, most: int) -> tuple[int, int]:
    """Return the part of a chunk that fits: around the match, which stays whole if it fits, or from the start."""
    at, start, end = anchor.at, chunk.start, chunk.end
    if at is None or not start <= at < end:
        return start, min(end, start + most)
    word = None if anchor.until is not None else _WORD.match(body, at)
    until = anchor.until if anchor.until is not None else word.end() if word else at
    spare = max(0, most - (min(until, end) - at))
    low = max(start, min(at - spare // 2, end - most))
    return low, min(end, low + most)


def cut(body: str, size: int, overlap: int) -> list[Place]:
    """Return pieces of at most `size` characters that end at a sentence where one does, and share `overlap`."""
    pieces: list[Place] = []
    start = 0
    while start < len(body):
        end = min(len(body), start + size)
        if end < len(body):
            least = start + overlap + 1
            ends = [match.end() for match in _SENTENCE.finditer(body, start, end) if match.end() >= least]
            space = body.rfind(" ", least, end) + 1
            end = ends[-1] if ends else space if space > least else end
        pieces.append(Place(start, end, {}))
        if end >= len(body):
            break
        start = end - overlap
    return pieces


# conversations


@dataclass(frozen=True, slots=True)
class MessageLine:
    """One message as it is read."""

    sender: str
    text: str

    @property
    def labeled(self) -> str:
        """Return the text after its sender's name."""
        return f"{self.sender}: {self.text}"


BETWEEN = "\n\n"


def read_lines(count: int, line: Callable[[int], MessageLine], anchor: Anchor, wish: Wish) -> ReadPassage:
    """Read the messages around one, each with its sender, as many as fit. A trimmed anchor has no label."""
    if not count:
        return ReadPassage("", truncated=False)
    said = line(anchor.index)
    if not wish.budget.fits(len(said.labeled)):
        low, high = trim(said.text, Place(0, len(said.text), {}), anchor, wish.budget.chars)
        return ReadPassage(said.text[low:high], truncated=True, chunks=range(anchor.index, anchor.index + 1))

    def length(first: int, last: int) -> int:
        lines = [len(line(place).labeled) for place in range(first, last + 1)]
        return sum(lines) + len(BETWEEN) * (len(lines) - 1)

    window = wish.sibling_window if wish.mode == "chunk_with_siblings" else 0
    first, last, left_out = expand(
        anchor.index, count, window, lambda first, last: wish.budget.fits(length(first, last))
    )
    content = BETWEEN.join(line(place).labeled for place in range(first, last + 1))
    return ReadPassage(content, left_out, chunks=range(first, last + 1))


def out_of_range(name: str, value: JSON, count: int) -> InvalidInput:
    """Return the error for a place that does not exist."""
    bounds_text = f"between 0 and {count - 1}" if count else "left out: there is nothing to point at"
    return InvalidInput(f"retrieval.loc.{name} must be {bounds_text}, not {value}.", argument=f"retrieval.loc.{name}")
