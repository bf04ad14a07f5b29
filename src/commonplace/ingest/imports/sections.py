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
    """The text under each heading that names a field."""
    rest: str
    """The text under none; without `heading` where that is the title."""


def read_sections(body: str, names: Mapping[str, str], title: object, *, ended_by_equals: bool) -> Sections:
    """Return a body taken apart. `names`: fields by what a heading may say.

    `title`: the title of the whole, where known. `ended_by_equals`: whether a section ends at any heading of its level,
    not just at one above it or of a field.
    """
    body = body.replace("\r\n", "\n").replace("\r", "\n")
    lines = body.split("\n")
    heads = [(block, plain(block.source)) for block in blocks(body) if block.kind == "heading"]
    fields = [(block, names.get(text.casefold().rstrip(":").replace("_", " "))) for block, text in heads]
    text_by_field: dict[str, str] = {}
    first, rest, at = "", list[str](), 0
    for number, (block, field) in enumerate(fields):
        if field:
            lowest = block.level if ended_by_equals else block.level - 1
            ends = (later.line for later, other in fields[number + 1 :] if other or later.level <= lowest)
            rest += lines[at : block.line]
            at = next(ends, len(lines))
            section_text = "\n".join(lines[block.end : at]).strip()
            text_by_field[field] = f"{text_by_field.get(field, '')}\n\n{section_text}".strip()
        elif not first:
            first = heads[number][1]
            if block.line >= at and (not title or title == first):
                rest += lines[at : block.line]
                at = block.end
    return Sections(first, text_by_field, "\n".join((*rest, *lines[at:])).strip())
