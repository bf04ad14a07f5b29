"""The sections of reStructuredText and org files, in the words of `structure.Block`, with true line numbers."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator

from commonplace.text.structure import Block
from commonplace.text.text_lines import split_lines

_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1*[ \t\r]*")
_LONG_ENOUGH = 4
"""Marks that make a title of the line beside them even where that is longer."""
_HEADLINE = re.compile(r"(\*+)[ \t]+(?:(?:TODO|DONE|NEXT|WAITING|CANCELLED)[ \t]+)?(?:\[#\w\][ \t]+)?(.*)")
_TAGS = re.compile(r"(?<![ \t])[ \t]+:[\w@#%:]+:[ \t\r]*\Z")
_KEYWORD_TITLE = re.compile(r"^[ \t]*\#\+TITLE:[ \t]*(.*)", re.IGNORECASE | re.MULTILINE)
_BEGIN = re.compile(r"[ \t]*\#\+BEGIN_(\S+)", re.IGNORECASE)
_END = re.compile(r"[ \t]*\#\+END_(\S+)", re.IGNORECASE)
_DEEPEST = 6


def org_title(body: str) -> str:
    """Return `#+TITLE:`, else the first headline, else ""."""
    return org_keyword_title(body) or _first(org_blocks(body))


def org_keyword_title(body: str) -> str:
    """Return `#+TITLE:`, or ""."""
    return " ".join(" ".join(_KEYWORD_TITLE.findall(body)).split())


def rst_title(body: str) -> str:
    """Return the first section's title, or ""."""
    return _first(rst_blocks(body))


def org_blocks(body: str) -> Iterator[Block]:
    """Yield headlines, and blocks between `#+BEGIN_…` and `#+END_…`, which hold none."""
    lines = split_lines(body)
    ends: dict[str, list[int]] = defaultdict(list)
    for number, line in enumerate(lines):
        if closed := _END.match(line):
            ends[closed[1].lower()].append(number)
    number = 0
    while number < len(lines):
        line = lines[number]
        if opened := _BEGIN.match(line):
            closing = ends[opened[1].lower()]
            place = bisect_right(closing, number)
            if place < len(closing):  # one that is never closed is a line like any other
                yield Block("fence", number, closing[place] + 1)
                number = closing[place]
        elif line.startswith("*") and (headline := _HEADLINE.match(line)):
            title = " ".join(_TAGS.sub("", headline[2]).split())
            yield Block("heading", number, number + 1, min(len(headline[1]), _DEEPEST), title)
        number += 1


def rst_blocks(body: str) -> Iterator[Block]:
    """Yield titles over, or between, lines of one punctuation mark.

    Levels are numbered in the order of their first styles.
    """
    lines = split_lines(body)
    styles: list[tuple[str, bool]] = []
    for number in range(1, len(lines)):
        title = lines[number - 1].strip()
        mark = _ADORNMENT.fullmatch(lines[number])
        if mark is None or not title or _ADORNMENT.fullmatch(title):
            continue
        if len(lines[number].strip()) < min(len(title), _LONG_ENOUGH):
            continue
        above = lines[number - 2] if number >= 2 else ""
        over = above.strip() == lines[number].strip()
        if not over and (above.strip() or lines[number - 1][0].isspace()):
            continue
        style = mark[1], over
        if style not in styles:
            styles.append(style)
        level = min(styles.index(style) + 1, _DEEPEST)
        yield Block("heading", number - 1 - over, number + 1, level, title)


def _first(blocks: Iterator[Block]) -> str:
    return next((block.source for block in blocks if block.kind == "heading" and block.source), "")
