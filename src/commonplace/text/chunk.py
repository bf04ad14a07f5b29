"""Cutting a body into passages for embedding, reranking and snippets, where a reader would pause.

Sizes are weights, quarters of a token (`tokens.weight`), because those of neighboring lines add up exactly. For a text
without CJK or Thai a weight is a number of characters, and most of the arithmetic below is free.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from commonplace.model import Span
from commonplace.text.code import LANGUAGES, code_blocks
from commonplace.text.outline import levels_of, parents_of, structure_of
from commonplace.text.structure import Block, opening_heading, plain
from commonplace.text.text_lines import lines_of
from commonplace.text.token_estimates import is_narrow, next_cut, reach, safe_cut, weight

LONGEST_PATH = 4000
"""Characters of the headings that a passage carries. Every passage has its own, so a line of megabytes must be none."""


@dataclass(frozen=True, slots=True)
class ChunkRules:
    """The sizes of passages, in tokens. The best place to cut is looked for in the `window` before the target."""

    target: int = 900
    overlap: int = 135
    window: int = 200
    in_lines: bool = False
    """True: neighbors overlap around a cut inside a long line too, and not from the start of a line alone."""

    def __post_init__(self) -> None:
        if self.target < 1 or not 1 <= self.window <= self.target or not 0 <= self.overlap < self.target:
            raise ValueError(f"{self} cannot cut: keep the window within the target and the overlap under it.")

    @property
    def version(self) -> str:
        """Return the part of every embedding's fingerprint that says how text is cut.

        Raise its number whenever the same text would be cut elsewhere.
        """
        return f"chunks-2/{self.target}/{self.overlap}/{self.window}"


_HEADING_SCORES = (100, 90, 80, 70, 60, 50)
_FRONT_MATTER, _FENCE, _RULE, _TABLE, _AFTER_BLOCK, _BLANK, _ITEM, _LINE = 95, 80, 60, 40, 30, 20, 5, 1

_FREE, _RELUCTANT, _NEVER = 0, 1, 2
_GRADES = bytes([_RELUCTANT]), bytes([_NEVER])

_SENTENCE = re.compile(r"[.!?…][\"'”’)\]]*\s+|[。！？]+[」』”’）]*\s*")
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class _Terrain:
    """A body surveyed once: the places of its lines, the weight of each, and how good a cut before each would be."""

    body: str
    starts: Sequence[int]
    """Characters before each line, and before the end."""
    at: Sequence[int]
    """Weight before each line, and before the end."""
    text_at: list[int]
    """For each line the first one at or after it that is not blank, or the end."""
    scores: dict[int, int]
    grades: bytearray
    heads: list[Block]
    parents: list[int | None]
    head_lines: list[int]
    references: Mapping[str, Any]
    weighed: list[int] = field(default_factory=lambda: [0, 0])
    """A character and the weight before it, known from before: a long line is not weighed from its start each time."""

    @property
    def end(self) -> int:
        """Return the number of the line after the last one."""
        return len(self.starts) - 1

    def line(self, char: int) -> int:
        return min(bisect_right(self.starts, char), self.end) - 1

    def weight_at(self, char: int) -> int:
        if self.at is self.starts:
            return char  # every character weighs one
        line = self.line(char)
        known = (self.starts[line], self.at[line])
        start, before = max(known, tuple(self.weighed)) if self.weighed[0] <= char else known
        self.weighed[:] = char, before + weight(self.body[start:char])
        return self.weighed[1]


@dataclass(frozen=True, slots=True)
class _Reach:
    """The bounds of one passage: the lines before which it may end, and the weights between which it should."""

    first: int
    last: int
    least: int
    most: int


def chunk(body: str, format: str = "markdown", rules: ChunkRules = ChunkRules(), start: int = 0) -> list[Span]:
    """Return the passages of a body. They quote it exactly, cover it and begin ever later.

    A body within the target is one. `start` is the first character of the line on which they begin; what stands before
    it belongs to no passage.
    """
    text = body[start:]
    if not text or text.isspace():
        return []
    if len(text) <= 4 * rules.target and weight(text) <= 4 * rules.target:
        title = opening_heading(text) if format == "markdown" else None
        first, lines = body.count("\n", 0, start), text.count("\n") + (not text.endswith("\n"))
        return [Span(text, start, len(body), first + 1, first + lines, (title,) if title else ())]
    terrain = _survey(body, format, rules)
    titles: dict[int, str] = {}
    return [_span(terrain, first, end, titles) for first, end in _bounds(terrain, rules, start)]


def _bounds(terrain: _Terrain, rules: ChunkRules, start: int) -> list[tuple[int, int]]:
    bounds: list[tuple[int, int]] = []
    done = start
    while done < len(terrain.body):
        cut = _cut(terrain, start, done, rules)
        if cut is None:
            start, cut = done, _cut(terrain, done, done, rules) or len(terrain.body)
        bounds.append((start, cut))
        start, done = _resume(terrain, start, cut, rules), cut
    return bounds


def _span(terrain: _Terrain, start: int, end: int, titles: dict[int, str]) -> Span:
    first, last = terrain.line(start), terrain.line(end - 1)
    headings = _path(terrain, first, titles)
    return Span(terrain.body[start:end], start, end, first + 1, last + 1, headings)


def _path(terrain: _Terrain, line: int, titles: dict[int, str]) -> tuple[str, ...]:
    """Return the titles in force where the passage's text begins, from the root down.

    Too long a path keeps the nearest ones.
    """
    line = terrain.text_at[line]
    path: list[str] = []
    room = LONGEST_PATH
    index: int | None = bisect_right(terrain.head_lines, line) - 1
    while index is not None and index >= 0 and room > 0:
        head = terrain.heads[index]
        if index not in titles:
            titles[index] = plain(head.source, terrain.references) if head.kind == "heading" else head.source
        if titles[index] and (head.kind == "heading" or line < head.end):
            path.append(titles[index][:room])
            room -= len(path[-1])
        index = terrain.parents[index]
    return tuple(reversed(path))


def _survey(body: str, format: str, rules: ChunkRules) -> _Terrain:
    lines, starts = lines_of(body)
    at = starts if is_narrow(body) else _weights(lines, weight(body))
    blank = [number for number, line in enumerate(lines) if not line or line.isspace()]
    text_at = _text_lines(blank, len(lines))
    blocks, references = _blocks(body, format)
    heads = [block for block in blocks if block.kind in ("heading", "definition")]
    atoms = [block for block in blocks if block.kind in ("fence", "front matter")] + _formulas(body, lines, blocks)
    return _Terrain(
        body=body,
        starts=starts,
        at=at,
        text_at=text_at,
        scores=_scores(blocks, blank, text_at),
        grades=_grade(
            blocks, [atom for atom in atoms if at[atom.end] - at[atom.line] <= 4 * rules.target], blank, text_at
        ),
        heads=heads,
        parents=parents_of(levels_of(heads)),
        head_lines=[head.line for head in heads],
        references=references,
    )


def _blocks(body: str, format: str) -> tuple[Sequence[Block], Mapping[str, Any]]:
    return (code_blocks(body, format), {}) if format in LANGUAGES else structure_of(body, format)


def _weights(lines: Sequence[str], total: int) -> list[int]:
    return [*accumulate((weight(line) + 1 for line in lines[:-1]), initial=0), total]


def _text_lines(blank: Sequence[int], count: int) -> list[int]:
    text_at = list(range(count + 1))
    for number in reversed(blank):
        text_at[number] = text_at[number + 1]
    return text_at


def _scores(blocks: Sequence[Block], blank: Sequence[int], text_at: Sequence[int]) -> dict[int, int]:
    """Return how good a cut before each line is, for the lines that are better than any ordinary one.

    A cut asked for at a blank line is made after it, so that passages begin with text.
    """
    scores = dict.fromkeys([text_at[line] for line in blank], _BLANK)

    def mark(line: int, score: int) -> None:
        text = text_at[line]
        scores[text] = max(score, scores.get(text, 0))

    for block in blocks:
        match block.kind:
            case "heading":
                mark(block.line, _HEADING_SCORES[block.level - 1])
            case "front matter":
                mark(block.end, _FRONT_MATTER)
            case "fence":
                mark(block.line, _FENCE)
                mark(block.end, _FENCE)
            case "rule":
                mark(block.line, _RULE)
            case "table":
                mark(block.line, _TABLE)
                mark(block.end, _TABLE)
            case "list" | "quote":
                mark(block.end, _AFTER_BLOCK)
            case "item":
                mark(block.line, _ITEM)
            case "definition" | "import":
                mark(block.line, block.level)
    return scores


def _grade(blocks: Sequence[Block], atoms: Sequence[Block], blank: Sequence[int], text_at: Sequence[int]) -> bytearray:
    """Return a grade for each line: a cut before it is free, never made, or made only for want of others.

    The last kind is before blanks, between a heading and its text, and between a definition and what leads up to it.
    """
    grades = bytearray(len(text_at))
    reluctant, never = _GRADES
    for line in blank:
        grades[line] = _RELUCTANT
    for block in blocks:
        if block.kind == "heading":
            under = min(text_at[block.end], len(text_at) - 2)
            grades[block.line + 1 : under + 1] = reluctant * (under - block.line)
        elif block.kind == "lead":
            grades[block.line + 1 : block.end] = reluctant * (block.end - block.line - 1)
    for atom in atoms:
        grades[atom.line + 1 : atom.end] = never * (atom.end - atom.line - 1)
    return grades


def _formulas(body: str, lines: Sequence[str], blocks: Sequence[Block]) -> list[Block]:
    """Return the blocks between two `$$`, the first of which begins its line. CommonMark has no such blocks."""
    if "$$" not in body:
        return []
    fenced = {line for block in blocks if block.kind == "fence" for line in range(block.line, block.end)}
    formulas = []
    opened: int | None = None
    for number, line in enumerate(lines):
        if "$$" not in line or number in fenced:
            continue
        if opened is not None:
            formulas.append(Block("fence", opened, number + 1))
            opened = None
        elif line.lstrip().startswith("$$") and line.count("$$") == 1:
            opened = number
    return formulas


def _cut(terrain: _Terrain, start: int, done: int, rules: ChunkRules) -> int | None:
    """Return where the passage that begins at `start` ends, or None when it must give up its overlap for a good end.

    In turn: the best break in the window; a break before it that leaves the passage half full; a place inside a line
    that is over the target by itself; any earlier break; a break shortly after the target; an unloved break.
    """
    base, target, window = terrain.weight_at(start), 4 * rules.target, 4 * rules.window
    limit = base + target
    if terrain.at[-1] <= limit:
        return len(terrain.body)
    last = bisect_right(terrain.at, limit) - 1
    span = _Reach(terrain.line(done) + 1, last, limit - window, limit)
    long_line = terrain.at[last + 1] - terrain.at[last] > target
    latest = _latest(terrain, span, _FREE)

    best = _best(terrain, span, _FREE)
    if best is None and latest is not None and (not long_line or terrain.at[latest] - base >= target // 2):
        best = latest
    if best is None and long_line:
        return _cut_line(terrain.body, start, done, rules)
    if best is None and start < done:
        return None
    if best is None:
        best = _beyond(terrain, last, limit + window)
    if best is None:
        best = _best(terrain, span, _RELUCTANT)
    if best is None:
        best = _latest(terrain, span, _RELUCTANT)
    return terrain.starts[best] if best is not None else _cut_line(terrain.body, start, done, rules)


def _best(terrain: _Terrain, span: _Reach, grade: int) -> int | None:
    """Return the break with the highest `score × (1 − 0.7·(d/window)²)`, d its distance to the target.

    A tie goes to the later.
    """
    best, highest = None, -1.0
    window = span.most - span.least
    for line in range(max(span.first, bisect_left(terrain.at, span.least)), span.last + 1):
        if terrain.grades[line] <= grade:
            distance = (span.most - terrain.at[line]) / window
            value = terrain.scores.get(line, _LINE) * (1 - 0.7 * distance * distance)
            if value >= highest:
                best, highest = line, value
    return best


def _latest(terrain: _Terrain, span: _Reach, grade: int) -> int | None:
    return next((line for line in range(span.last, span.first - 1, -1) if terrain.grades[line] <= grade), None)


def _beyond(terrain: _Terrain, last: int, limit: int) -> int | None:
    """Return the first free break after the target, for a heading and a fence that fit each alone and not together."""
    line = last + 1
    while line <= terrain.end and terrain.at[line] <= limit:
        if terrain.grades[line] == _FREE:
            return line
        line += 1
    return None


def _cut_line(body: str, start: int, done: int, rules: ChunkRules) -> int:
    """Return a cut inside one long line: after a sentence, else at white space, else between graphemes."""
    least = max(done, reach(body, start, 4 * (rules.target - rules.window)))
    most = max(least, reach(body, start, 4 * rules.target))
    for find in (_last_of(_SENTENCE), _last_of(_SPACE)):
        cut = safe_cut(body, find(body, least, most), floor=done)
        if cut > least:
            return cut
    cut = safe_cut(body, most, floor=done)
    return cut if cut > done else next_cut(body, done + 1, floor=done)


def _last_of(pattern: re.Pattern[str]) -> Callable[[str, int, int], int]:
    def find(body: str, least: int, most: int) -> int:
        return max((match.end() for match in pattern.finditer(body, least, most)), default=0)

    return find


def _resume(terrain: _Terrain, start: int, cut: int, rules: ChunkRules) -> int:
    """Return where the next passage begins.

    That is a few lines back, unless it begins a section or the cut went through a line.
    """
    line = terrain.line(cut)
    section = bisect_right(terrain.head_lines, line) - 1
    head = terrain.head_lines[section] if section >= 0 else 0
    if terrain.starts[line] != cut:
        return _back_in_line(terrain, start, cut, rules)
    if section >= 0 and head == line:
        return cut
    first = max(head, terrain.line(start) + 1, bisect_left(terrain.at, terrain.at[line] - 4 * rules.overlap))
    return next((terrain.starts[back] for back in range(first, line) if terrain.grades[back] == _FREE), cut)


def _back_in_line(terrain: _Terrain, start: int, cut: int, rules: ChunkRules) -> int:
    """Return a place a few words before a cut inside a line, where the rules say so.

    Without words it is a few characters.
    """
    if not rules.in_lines:
        return cut
    body, chars = terrain.body, 4 * rules.overlap
    if not is_narrow(body[max(0, cut - chars) : cut]):
        chars = rules.overlap
    first = max(start + 1, terrain.starts[terrain.line(cut)], cut - chars)
    word = _SPACE.search(body, first, cut)
    return min(next_cut(body, word.end() if word else first, floor=start), cut)
