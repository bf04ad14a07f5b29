"""The heading that a caller means: named by its text, its anchor, its path or a part of it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from commonplace.text.normal import normalized
from commonplace.text.outline import Heading

MatchedBy = Literal["exact", "normalised", "slug", "path", "substring"]
_CLOSING_MARKS = re.compile(r"\s#+\Z")
_MARKUP = "`~"
"""Markup characters that Unicode does not count as punctuation."""
_PART_OF_NAMES = "#%"
"""Punctuation that may end a name: C#, 50%."""


class Matched(NamedTuple):
    """The headings that a request may mean, in the order of the document, and the rule that matched them."""

    by: MatchedBy
    headings: list[Heading]


def match(headings: Sequence[Heading], wanted: str) -> Matched | None:
    """Return the headings that `wanted` names, or None.

    The rules of `_TIERS` are tried in order, and the first that matches any heading decides: the whole text wins over
    a part of it.
    """
    for by, find in _TIERS.items():
        if matches := find(headings, wanted):
            return Matched(by, matches)
    return None


def normalized_heading(text: str) -> str:
    """Return a heading in NFKC, case folded and blanks collapsed, without closing marks and punctuation around it."""
    text = " ".join(normalized("NFKC", text).casefold().split())
    text = _CLOSING_MARKS.sub("", text)
    start, end = 0, len(text)
    while start < end and _is_mark(text[start]):
        start += 1
    while end > start and _is_mark(text[end - 1]) and text[end - 1] not in _PART_OF_NAMES:
        end -= 1
    return text[start:end]


def _is_mark(character: str) -> bool:
    return character.isspace() or character in _MARKUP or unicodedata.category(character).startswith("P")


def _by_text(headings: Sequence[Heading], wanted: str) -> list[Heading]:
    return [heading for heading in headings if heading.title == wanted]


def _by_name(headings: Sequence[Heading], wanted: str) -> list[Heading]:
    name = normalized_heading(wanted)
    return [heading for heading in headings if normalized_heading(heading.title) == name] if name else []


def _by_slug(headings: Sequence[Heading], wanted: str) -> list[Heading]:
    slug = wanted.strip().removeprefix("#").casefold()
    return [heading for heading in headings if heading.slug.casefold() == slug]


def _by_path(headings: Sequence[Heading], wanted: str) -> list[Heading]:
    """Return the headings that a path `Parent > Child` names.

    The last part is the heading; the others stand above it in this order, and levels may be left out.
    """
    parts = [normalized_heading(part) for part in wanted.split(">")]
    if len(parts) < 2 or not all(parts):
        return []
    *above, last = parts
    return [
        heading
        for heading in headings
        if normalized_heading(heading.title) == last
        and _in_order(above, [normalized_heading(title) for title in heading.path[:-1]])
    ]


def _in_order(parts: Sequence[str], titles: Sequence[str]) -> bool:
    rest = iter(titles)
    return all(part in rest for part in parts)


def _by_part(headings: Sequence[Heading], wanted: str) -> list[Heading]:
    part = " ".join(wanted.split()).casefold()
    return [heading for heading in headings if part in heading.title.casefold()] if part else []


_TIERS: dict[MatchedBy, Callable[[Sequence[Heading], str], list[Heading]]] = {
    "exact": _by_text,
    "normalised": _by_name,
    "slug": _by_slug,
    "path": _by_path,
    "substring": _by_part,
}
