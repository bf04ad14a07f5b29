"""The shape of a value, for a reader who has not seen it: its keys and kinds, none of its content."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from commonplace.model import JSON

DEEPEST = 12
MOST_KEYS = 200
LOOKED_AT = 100
PREVIEWED = 20
_NAMES = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


def kind_of(value: JSON) -> str:
    """Return `object`, `array`, `string`, `integer`, `number`, `boolean` or `null`."""
    if isinstance(value, dict):
        return "object"
    return "array" if isinstance(value, list) else _NAMES[type(value)]


def describe(value: JSON) -> dict[str, JSON]:
    """Return the answer of `get_data_schema`."""
    cuts: dict[str, None] = {}
    schema = _shape(value, 0, cuts)
    keys = list(value)[:PREVIEWED] if isinstance(value, dict) else []
    if isinstance(value, list) and value and isinstance(value[0], dict):
        keys = list(value[0])[:PREVIEWED]
    count = len(value) if isinstance(value, dict | list | str) else 0
    meta: dict[str, JSON] = {"root_type": kind_of(value), "count": count, "keys_preview": keys}
    if cuts:
        meta["cut"] = f"The schema is cut: {' and '.join(cuts)}."
    return {"schema": schema, "meta": meta}


def _shape(value: JSON, depth: int, cuts: dict[str, None]) -> JSON:
    if not isinstance(value, dict | list):
        return f"<{kind_of(value)}>"
    if depth >= DEEPEST:
        cuts[f"it shows {DEEPEST} levels"] = None
        return f"<{kind_of(value)}>"
    if isinstance(value, list):
        return _merged([_shape(member, depth + 1, cuts) for member in value[:LOOKED_AT]], cuts) if value else []
    if len(value) > MOST_KEYS:
        cuts[f"it shows {MOST_KEYS} keys of an object"] = None
    return {key: _shape(value[key], depth + 1, cuts) for key in list(value)[:MOST_KEYS]}


def _merged(shapes: Sequence[Any], cuts: dict[str, None]) -> list[JSON]:
    return [_joined(shapes, cuts)]


def _joined(shapes: Sequence[Any], cuts: dict[str, None]) -> JSON:
    """Return one shape for several: keys of objects together, kinds that differ side by side."""
    if all(isinstance(shape, dict) for shape in shapes):
        keys: dict[str, list[Any]] = {}
        for shape in shapes:
            for key, member in shape.items():
                keys.setdefault(key, []).append(member)
        if len(keys) > MOST_KEYS:
            cuts[f"it shows {MOST_KEYS} keys of an object"] = None
        return {key: _joined(members, cuts) for key, members in list(keys.items())[:MOST_KEYS]}
    if all(isinstance(shape, list) for shape in shapes):
        inner = [shape[0] for shape in shapes if shape]
        return [_joined(inner, cuts)] if inner else []
    kinds: set[str] = set()
    for shape in shapes:
        kinds |= {"object"} if isinstance(shape, dict) else {"array"} if isinstance(shape, list) else _kinds(shape)
    return f"<{'|'.join(sorted(kinds))}>"


def _kinds(shape: str) -> set[str]:
    return set(shape[1:-1].split("|"))
