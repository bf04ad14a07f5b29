"""The parts of an item that an index keeps beside its title and text: further words, and properties."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import lru_cache

from commonplace.model import JSON
from commonplace.store.filters import fold_value

_TAGGED = frozenset({"note", "media", "conversation"})
"""Kinds that are found by their tags. Characters and prompts have them in their text."""

PROPERTIES = "properties"
"""The field of a document that holds its front matter as it is written."""

LONGEST_HASH = 24
KEPT = 1_000
"""Places in tables whose hashes are kept at hand: what is indexed together is mostly inside the same ones."""

_FACETS = {"media": ("media_type",), "message": ("sender", "role")}


def facet(name: str, value: str) -> str:
    """Return a property as an index knows it. Values are compared as tags are."""
    return f"{name}:{fold_value(value.strip())}"


def facets_of(kind: str, fields: Mapping[str, JSON]) -> tuple[str, ...]:
    """Return the properties of an item that a search can ask for."""
    if kind == "table":
        return _places(fields)
    return tuple(facet(name, str(fields[name])) for name in _FACETS.get(kind, ()) if fields.get(name))


def _places(fields: Mapping[str, JSON]) -> tuple[str, ...]:
    """Return a node's project, generation and type, and every place it is inside of."""
    pointer = fields.get("pointer")
    if pointer is None:
        return ()
    scopes = (f"scope:{scope_hash(place)}" for place in around(str(pointer)))
    properties = (f"{name}:{fields[name]}" for name in ("project", "generation", "node"))
    return (*properties, *scopes)


def around(pointer: str) -> list[str]:
    """Return every place a pointer is inside of, the whole value first, itself last. The pointer is a valid one."""
    parts = pointer.split("/")
    return ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]


@lru_cache(KEPT)
def scope_hash(pointer: str) -> str:
    """Return a place in a table as indexes know it: hexadecimal digits, as keys may be long."""
    return hashlib.sha256(pointer.encode("utf-8")).hexdigest()[:LONGEST_HASH]


def words_of(kind: str, fields: Mapping[str, JSON], tags: Sequence[str]) -> str:
    """Return the words, other than its title and text, that an item is found by: tags and author, a line each."""
    if kind not in _TAGGED:
        return ""
    return "\n".join((*tags, *filter(None, [fields.get("author")])))


def with_properties(
    chunks: Sequence[tuple[int, str, str]], fields: Mapping[str, JSON]
) -> Sequence[tuple[int, str, str]]:
    """Return the passages of an item as an index reads them: the words of front matter are looked for in the first."""
    words = fields.get(PROPERTIES)
    if not words or not chunks:
        return chunks
    first, headings, text = chunks[0]
    return [(first, f"{headings}\n{words}", text), *chunks[1:]]
