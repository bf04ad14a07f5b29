"""Markdown whose headings say what stands under them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from commonplace.text.structure import blocks, plain


class Sections(NamedTuple):
    """A body taken apart. Nothing of it is in two of these, and only headings are in none."""

    heading: str
    """The first one that names no field."""
    fields: dict[str, str]
    """What stands under each heading that names one."""
    rest: str
    """What stands under none; without `heading` where that is the title."""


def read_sections(body: str, names: Mapping[str, str], title: object, *, ended_by_equals: bool) -> Sections:
    """`names`: fields by what a heading may say. `title`: what the whole is called, where that is known already.

    `ended_by_equals`: whether a section ends at any heading of its level, not just at one above it or of a field.
    """
    body = body.replace("\r\n", "\n").replace("\r", "\n")
    lines = body.split("\n")
    heads = [(block, plain(block.source)) for block in blocks(body) if block.kind == "heading"]
    named = [(block, names.get(text.casefold().rstrip(":").replace("_", " "))) for block, text in heads]
    found: dict[str, str] = {}
    first, rest, at = "", list[str](), 0
    for number, (block, field) in enumerate(named):
        if field:
            lowest = block.level if ended_by_equals else block.level - 1
            ends = (later.line for later, other in named[number + 1 :] if other or later.level <= lowest)
            rest += lines[at : block.line]
            at = next(ends, len(lines))
            said = "\n".join(lines[block.end : at]).strip()
            found[field] = f"{found.get(field, '')}\n\n{said}".strip()
        elif not first:
            first = heads[number][1]
            if block.line >= at and (not title or title == first):
                rest += lines[at : block.line]
                at = block.end
    return Sections(first, found, "\n".join((*rest, *lines[at:])).strip())
