"""Cut the nodes of a table into chunks: windows of a long string, lines of a record."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from commonplace.model import Span
from commonplace.settings import Settings

_SENTENCE_END = re.compile(r"(?:[.!?…]['\")\]]?\s|[。！？])")
_WORD_START = re.compile(r"(?<=\s)\S")
_WORD_END = re.compile(r"\s")


@dataclass(frozen=True, slots=True)
class ChunkSizes:
    """Sizes of chunks, in characters: see the settings of the same names."""

    short: int = 200
    threshold: int = 1000
    size: int = 1000
    overlap: int = 100

    @classmethod
    def of(cls, settings: Settings) -> ChunkSizes:
        """Return the sizes that the settings have."""
        return cls(
            settings.tables_short_string_chars,
            settings.tables_chunk_threshold_chars,
            settings.tables_chunk_size_chars,
            settings.tables_chunk_overlap_chars,
        )

    @property
    def name(self) -> str:
        """Return a text that tells these sizes from others."""
        return f"{self.short}.{self.threshold}.{self.size}.{self.overlap}"


class RecordLine(NamedTuple):
    """A member of a record: its key and its value as text."""

    key: str
    value: str


def windows(text: str, sizes: ChunkSizes) -> list[tuple[int, int]]:
    """Return where a string is cut, from 0 to its end; each window begins a little before the last one ended.

    A window ends at the last paragraph, line, sentence or word end in its final third, else where it is full.
    """
    if len(text) <= sizes.threshold or len(text) <= sizes.size:
        return [(0, len(text))]
    cuts: list[tuple[int, int]] = []
    start = 0
    while len(text) - start > sizes.size:
        end = _end(text, start + sizes.size - sizes.size // 3, start + sizes.size)
        cuts.append((start, end))
        start = max(_start(text, end, sizes.overlap), start + -(-sizes.size // 3))
    return [*cuts, (start, len(text))]


def _end(text: str, least: int, most: int) -> int:
    """Return where a window ends: at the last paragraph, line, sentence or word end from `least` on, else at `most`."""
    for mark in ("\n\n", "\n"):
        at = text.rfind(mark, least, most)
        if at >= 0:
            return at + len(mark)
    for pattern in (_SENTENCE_END, _WORD_END):
        ends = [match.end() for match in pattern.finditer(text, least, most)]
        if ends:
            return ends[-1]
    return most


def _start(text: str, end: int, overlap: int) -> int:
    """Return where the next window begins: at the word start nearest to the overlap, within half and twice of it."""
    if not overlap:
        return end
    wanted = end - overlap
    near = [match.start() for match in _WORD_START.finditer(text, max(0, end - 2 * overlap), end - overlap // 2 + 1)]
    return min(near, key=lambda at: abs(at - wanted), default=wanted)


def text_spans(text: str, sizes: ChunkSizes) -> list[Span]:
    """Return the passages of a string."""
    spans, line, counted = [], 1, 0
    for start, end in windows(text, sizes):
        line += text.count("\n", counted, start)
        counted = start
        spans.append(Span(text[start:end], start, end, line, line + text.count("\n", start, end)))
    return spans


def record_of(lines: Sequence[RecordLine], sizes: ChunkSizes) -> tuple[str, list[Span]]:
    """Return the text of a record, and its passages: as many whole lines as fit. Anchors say where each value is."""
    shown = [f"{line.key}: {line.value}" for line in lines]
    groups: list[list[int]] = []
    room = 0
    for number, text in enumerate(shown):
        if not groups or len(text) + 1 > room:
            groups.append([])
            room = sizes.size + 1
        groups[-1].append(number)
        room -= len(text) + 1
    spans, at, row = [], 0, 1
    for group in groups:
        text = "\n".join(shown[number] for number in group)
        members, offset = [], 0
        for number in group:
            value = len(lines[number].value)
            offset += len(shown[number])
            members.append([lines[number].key, offset - value, offset])
            offset += 1
        breaks = text.count("\n")
        spans.append(Span(text, at, at + len(text), row, row + breaks, anchor={"members": members}))
        at, row = at + len(text) + 1, row + breaks + 1
    return "\n".join(shown), spans
