"""The headings of a text and the sections under them: Markdown's, reStructuredText's and org's alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import regex

from commonplace.text.markup import org_blocks, org_keyword_title, rst_blocks
from commonplace.text.structure import Block, front_matter_title, plain, read
from commonplace.text.text_lines import lines_of

_NOT_IN_ANCHORS = regex.compile(r"[^\p{L}\p{M}\p{N}\p{Pc}\- ]")


class Heading(NamedTuple):
    """A heading and its section, which runs to the next heading of the same or a higher level. Lines count from 1.

    A tuple, for speed: a document has many.
    """

    level: int
    title: str
    path: tuple[str, ...]
    """The titles from the root to this heading, itself included."""
    line: int
    line_end: int
    char_start: int
    char_end: int
    own_line_end: int
    """The end of the section's own text, without the sections under it."""
    own_char_end: int
    slug: str
    """The usual web anchor, `-1`, `-2` … for repeats."""
    occurrence: int
    """Its number among the headings with this title, from 1."""


@dataclass(frozen=True, slots=True)
class Outline:
    """A document's structure as the store keeps it, so that nobody has to read the document for it."""

    title: str
    """The first heading of level 1, else the title in the front matter, else nothing."""
    size: int
    """Characters of the document."""
    headings: tuple[Heading, ...]


def outline_of(body: str, format: str) -> Outline:
    """Return the outline of a document as the store keeps it."""
    headings = outline(body, format)
    title = next((heading.title for heading in headings if heading.level == 1 and heading.title), "")
    return Outline(title or _given_title(body, format), len(body), tuple(headings))


def outline(body: str, format: str) -> list[Heading]:
    """Return the headings of a text with the sections under them. Only Markdown, reStructuredText and org have any."""
    blocks, references = structure_of(body, format)
    blocks_of_headings = [block for block in blocks if block.kind == "heading"]
    if not blocks_of_headings:
        return []
    starts = lines_of(body).bounds
    titles = [plain(block.source, references) for block in blocks_of_headings]
    parents, ends = _nesting([block.level for block in blocks_of_headings])
    lines = [*(block.line for block in blocks_of_headings), len(starts) - 1]
    return _sections(starts, blocks_of_headings, titles, parents, [lines[end] for end in ends], lines[1:])


def contents(body: str, format: str) -> list[Heading]:
    """Return the headings of a text or, of code, its classes and functions, each with what leads up to it."""
    from commonplace.text.code import LANGUAGES, code_blocks  # not loaded by those who only search

    if format not in LANGUAGES:
        return outline(body, format)
    definitions = [block for block in code_blocks(body, format) if block.kind == "definition" and block.source]
    starts, levels = lines_of(body).bounds, levels_of(definitions)
    definitions = [block._replace(level=level) for block, level in zip(definitions, levels, strict=True)]
    ends = [min(block.end, len(starts) - 1) for block in definitions]  # a definition may own the end of the last line
    own_ends = [*(min(end, block.line) for end, block in zip(ends, definitions[1:], strict=False)), *ends[-1:]]
    return _sections(starts, definitions, [block.source for block in definitions], parents_of(levels), ends, own_ends)


def _sections(
    starts: Sequence[int],
    blocks: Sequence[Block],
    titles: Sequence[str],
    parents: Sequence[int | None],
    ends: Sequence[int],
    own_ends: Sequence[int],
) -> list[Heading]:
    """Return headings with what is under each, up to a line, and with no more than its own text, up to another."""
    counts, paths, headings = Counter[str](), list[tuple[str, ...]](), list[Heading]()
    for block, title, parent, end, own_end, slug in zip(
        blocks, titles, parents, ends, own_ends, _anchors(titles), strict=True
    ):
        counts[title] += 1
        path = (*(paths[parent] if parent is not None else ()), title)
        paths.append(path)
        headings.append(
            Heading(
                level=block.level,
                title=title,
                path=path,
                line=block.line + 1,
                line_end=end,
                char_start=starts[block.line],
                char_end=starts[end],
                own_line_end=own_end,
                own_char_end=starts[own_end],
                slug=slug,
                occurrence=counts[title],
            )
        )
    return headings


def structure_of(body: str, format: str) -> tuple[Sequence[Block], Mapping[str, Any]]:
    """Return the blocks of a text in a markup language, and what its headings may refer to. Any other text has none."""
    if format == "markdown":
        return read(body)
    if format == "rst":
        return list(rst_blocks(body)), {}
    return (list(org_blocks(body)), {}) if format == "org" else ((), {})


def levels_of(heads: Sequence[Block]) -> list[int]:
    """Return the depth of each.

    A heading has its level; a definition is as deep as the definitions around it are many.
    """
    levels: list[int] = []
    open_: list[int] = []
    for head in heads:
        open_ = [end for end in open_ if end > head.line]
        open_.append(head.end)
        levels.append(head.level if head.kind == "heading" else len(open_))
    return levels


def parents_of(levels: Sequence[int]) -> list[int | None]:
    """Return for each heading the index of the one it stands under, or None."""
    return _nesting(levels)[0]


def _given_title(body: str, format: str) -> str:
    if format == "org":
        return org_keyword_title(body)
    return front_matter_title(body) if format == "markdown" else ""


def _nesting(levels: Sequence[int]) -> tuple[list[int | None], list[int]]:
    """Return for each heading its parent, and the one that ends its section (or how many there are, for the end)."""
    parents: list[int | None] = []
    ends = [len(levels)] * len(levels)
    open_: list[int] = []
    for index, level in enumerate(levels):
        while open_ and levels[open_[-1]] >= level:
            ends[open_.pop()] = index
        parents.append(open_[-1] if open_ else None)
        open_.append(index)
    return parents, ends


def _anchors(titles: Sequence[str]) -> list[str]:
    """Return web anchors, unique even where a heading is itself called `intro-1`."""
    taken: dict[str, int] = {}
    anchors = []
    for title in titles:
        base = anchor = _NOT_IN_ANCHORS.sub("", title.lower()).replace(" ", "-")
        while anchor in taken:
            taken[base] += 1
            anchor = f"{base}-{taken[base]}"
        taken[anchor] = 0
        anchors.append(anchor)
    return anchors
