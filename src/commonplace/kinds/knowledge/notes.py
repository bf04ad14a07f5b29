"""Notes: a title, a body in Markdown, tags."""

from __future__ import annotations

from collections.abc import Mapping

from commonplace.kinds.knowledge.shape import Shaped, needed, string
from commonplace.model import JSON, Draft, Item

FIELDS: tuple[str, ...] = ()


def shape(record: Mapping[str, JSON]) -> Shaped:
    """Return the draft that a note's record describes. Raise InvalidInput."""
    title = needed(record, "title", "note")
    return Shaped(Draft("note", "0", title=title, body=string(record, "body"), format="markdown"))


def record(item: Item) -> dict[str, JSON]:
    """Return the fields of a note's record: it has none of its own."""
    return {}
