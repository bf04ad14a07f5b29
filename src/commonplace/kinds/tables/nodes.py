"""The indexed nodes of a table: long strings, and the short members of each object or list together.

Each is cut into chunks: windows of a long string, lines of a record.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from commonplace.ingest.prepare import prepare
from commonplace.kinds.tables.pointers import Tokens, escaped, plain, render
from commonplace.kinds.tables.rows import TableRow
from commonplace.kinds.tables.shredding import INDEX, dumps, index_of
from commonplace.model import JSON, Draft, Span
from commonplace.settings import Settings
from commonplace.store.rows import Write

_SENTENCE_END = re.compile(r"(?:[.!?…]['\")\]]?\s|[。！？])")
_WORD_START = re.compile(r"(?<=\s)\S")
_WORD_END = re.compile(r"\s")
LONGEST_NODE = 5_000_000
MOST_NUMBERS = 64
"""Most numbers in a list of numbers alone that is indexed: a longer one is data to compute with, not to read."""
LONGEST_TITLE = 200
Kind = Literal["text", "record", "skipped"]


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


@dataclass(frozen=True, slots=True)
class Node:
    """An indexed part of a table, or a part that was skipped and why."""

    tokens: Tokens
    kind: Kind
    text: str = ""
    spans: Sequence[Span] = field(default_factory=tuple)
    reason: str = ""

    @property
    def content_hash(self) -> str:
        """Return the SHA-256 digest of the text, in hexadecimal."""
        return hashlib.sha256(self.text.encode("utf-8")).hexdigest()


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules for what becomes a node. `apart`: the places of search tools; a scalar there is a node of its own."""

    sizes: ChunkSizes
    apart: frozenset[Tokens] = frozenset()

    def is_grouped(self, value: JSON) -> bool:
        """Return whether a value belongs in the record of its container."""
        if isinstance(value, str):
            return 0 < len(value) <= self.sizes.short
        return isinstance(value, bool | int | float)

    def of_scalar(self, tokens: Tokens, value: JSON) -> Node | None:
        """Return the node that a scalar is by itself, or None."""
        if isinstance(value, str) and len(value) > self.sizes.short:
            return self._text(tokens, value)
        if tokens in self.apart and value is not None and value != "":
            return self._text(tokens, value if isinstance(value, str) else dumps(value))
        return None

    def _text(self, tokens: Tokens, text: str) -> Node:
        if len(text) > LONGEST_NODE:
            return Node(tokens, "skipped", reason=_too_long(tokens, len(text)))
        return Node(tokens, "text", text, text_spans(text, self.sizes))

    def record(self, tokens: Tokens, members: Iterable[tuple[str, JSON]], *, of_list: bool) -> Node | None:
        """Return the node of the short members of an object or list, or None."""
        lines, length, numbers, others = list[RecordLine](), 0, 0, 0
        for key, value in members:
            if isinstance(value, int | float) and not isinstance(value, bool):
                numbers += 1
            else:
                others += 1
            if self.is_grouped(value) and (*tokens, key) not in self.apart:
                lines.append(RecordLine(key, value if isinstance(value, str) else dumps(value)))
                length += len(lines[-1].key) + len(lines[-1].value) + 3
        if of_list and numbers > MOST_NUMBERS and not others:
            return Node(tokens, "skipped", reason=f"{render(tokens) or 'the whole value'} is a list of numbers.")
        if not lines:
            return None
        if length > LONGEST_NODE:
            return Node(tokens, "skipped", reason=_too_long(tokens, length))
        text, spans = record_of(lines, self.sizes)
        return Node(tokens, "record", text, spans)

    def nodes(self, tokens: Tokens, value: JSON, after: Tokens | None = None) -> Iterator[Node]:
        """Yield the nodes of a value, its own before those of its members; with `after`, those after that node."""
        if not isinstance(value, dict | list):
            node = self.of_scalar(tokens, value) if after is None else None
            if node is not None:
                yield node
            return
        if after is None and (record := self.record(tokens, members_of(value), of_list=isinstance(value, list))):
            yield record
        yield from self.inside(tokens, value, after)

    def inside(self, tokens: Tokens, value: dict[str, JSON] | list[JSON], after: Tokens | None) -> Iterator[Node]:
        """Yield the nodes of an object's or list's members; with `after`, those after that node."""
        is_past = not after or (after[0] not in value if isinstance(value, dict) else index_of(after[0]) is None)
        for key, member in members_of(value):
            if is_past:
                yield from self.nodes((*tokens, key), member)
            elif after and _reached(key, after[0], of_list=isinstance(value, list)):
                is_past = True
                yield from self.nodes((*tokens, key), member, after[1:] if key == after[0] else None)


def _reached(key: str, wanted: str, *, of_list: bool) -> bool:
    return int(key) >= int(wanted) if of_list else key == wanted


def members_of(value: dict[str, JSON] | list[JSON]) -> Iterator[tuple[str, JSON]]:
    """Yield the members of an object or list, with keys or indexes as text."""
    return iter(value.items()) if isinstance(value, dict) else ((str(place), each) for place, each in enumerate(value))


def _too_long(tokens: Tokens, length: int) -> str:
    place = render(tokens) or "the whole value"
    return f"{place[:200]} has {length} characters; at most {LONGEST_NODE} are indexed of one place."


# as items


def node_key(tokens: Tokens, generation: int) -> str:
    """Return the key of a node's item: its pointer, with the generation where it is not the first.

    No pointer has a tilde before anything but 0 and 1, so no two nodes share a key.
    """
    pointer = plain(render(tokens)) or "~"
    return pointer if generation == 1 else f"{pointer}~g{generation}"


def write_of(node: Node, table: TableRow, generation: int) -> Write:
    """Return a node as the store takes it."""
    fields: dict[str, Any] = {
        "pointer": plain(render(node.tokens)),
        "node": node.kind,
        "generation": generation,
        "project": table.project,
    }
    text, spans = node.text, tuple(node.spans)
    if "\0" in text:  # the store's texts cannot hold it; answers then read the data
        fields["hash"] = node.content_hash
        text = text.replace("\0", "\ufffd")
        spans = tuple(_without_nul(span) for span in spans)
    if node.reason:
        fields["reason"] = node.reason.replace("\0", "")
    names = " › ".join(token for token in node.tokens if token and not INDEX.fullmatch(token))
    title = " ".join(names.replace("\0", " ").split())[:LONGEST_TITLE]
    key = node_key(node.tokens, generation)
    return prepare(Draft("table", key, parent=table.id, title=title, body=text, fields=fields, spans=spans))


def _without_nul(span: Span) -> Span:
    """Return a span without U+0000. Its members are named as in a pointer, so that all keys stay distinct."""
    anchor: Any = span.anchor
    if anchor is not None:
        members = [[plain(escaped(str(key))), start, end] for key, start, end in anchor["members"]]
        anchor = {"members": members}
    return replace(span, text=span.text.replace("\0", "\ufffd"), anchor=anchor)
