"""The meaning of a Filter, the same for both databases: how values, tags, times and paths are compared."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from commonplace.errors import InvalidInput
from commonplace.model import JSON, Filter
from commonplace.text.glob_patterns import folded_path, place_matcher
from commonplace.text.normal import normalized

Compiled = tuple[str, dict[str, Any]]
ORDERINGS = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
_BEYOND_FLOAT = 1 << 1023


def micros(moment: datetime) -> int:
    """Return a time as microseconds since 1970. A naive one is UTC."""
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    delta = aware - datetime(1970, 1, 1, tzinfo=UTC)
    return (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds


def fold_value(text: str, case_sensitive: bool = False) -> str:
    """Return a string as filters compare it: in NFC, and with its case folded unless `case_sensitive`."""
    if text.isascii():
        return text if case_sensitive else text.lower()
    if case_sensitive:
        return normalized("NFC", text)
    return normalized("NFC", normalized("NFD", text).casefold())


def fold_tag(tag: str) -> str:
    """Return a tag as tags are compared."""
    return fold_value(tag.strip())


Fields = Mapping[tuple[str, ...], int]
"""The metadata paths whose values of memory entries are indexed, by what the index knows them by."""
CompileFilter = Callable[[Filter, Fields], Compiled]
"""A function that returns a filter as SQL of one database: a boolean expression over `items`, and its values."""


def in_place(pattern: str, path: str) -> bool:
    """Return whether a path is what a filter's path means."""
    return bool(place_matcher(pattern)(folded_path(path)))


# Indexed fields. Each value a field has is kept once, as a shape and a folded value, beside the items that hold it.

PRESENT = "shape in ('text', 'number', 'true', 'false', 'array', 'object')"


def shapes(metadata: JSON, path: tuple[str, ...]) -> set[tuple[str, Any]]:
    """Return what the index keeps of a value at a path: its shape and folded value, and those of a list's elements."""
    value = metadata
    for name in path:
        if not (type(value) is dict or isinstance(value, Mapping)) or name not in value:
            return set()
        value = value[name]
    pairs = {shape_of(value)}
    if isinstance(value, list | tuple):
        pairs |= {(f"[{shape}", folded) for shape, folded in map(shape_of, value)}
    return pairs


def shape_of(value: JSON) -> tuple[str, Any]:
    """Return the shape of a value, such as 'text', and the value as the index compares it."""
    match value:
        case str():  # first, as most are
            return "text", fold_value(value)
        case None:
            return "null", ""
        case bool():
            return ("true" if value else "false"), ""
        case int() | float():
            return "number", number(value)
        case list() | tuple():
            return "array", ""
        case _:
            return "object", ""


def number(value: float) -> int | float:
    """Return a number as SQLite can hold it: an integer within 64 bits exactly, any other as the nearest float."""
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return float(value) if abs(value) < _BEYOND_FLOAT else math.inf if value > 0 else -math.inf
    return value


def json_path(names: tuple[str, ...]) -> str:
    """Return a path into a JSON object as SQL has it. Names are quoted: a dot or a bracket is just a character.

    Raise InvalidInput for an empty path, or a name that is empty or contains U+0000.
    """
    if not names or not all(names) or any("\0" in name for name in names):
        raise InvalidInput("A metadata path names at least one member, and no name is empty or contains U+0000.")
    return "$" + "".join('."' + name.replace("\\", "\\\\").replace('"', '\\"') + '"' for name in names)


@lru_cache(1000)  # they are read with every write
def path_from(text: str) -> tuple[str, ...]:
    """Return a metadata path from its JSON text."""
    return tuple(json.loads(text))
