"""A check whether a value follows a schema, for the few keywords our tools use and for valid values only.

jsonschema knows all keywords and says what is wrong. It also takes 3 MB, and as long to load as twenty searches, so a
server loads it only for the first call whose arguments are wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from commonplace.model import JSON
from commonplace.tools.schema import Schema


def accepts(schema: Schema, value: JSON) -> bool:
    """Return True if the value is valid, False if it is not or a keyword is not known here: jsonschema decides then."""
    return all(keyword in _ANNOTATIONS or _follows(keyword, asked, value, schema) for keyword, asked in schema.items())


def _follows(keyword: str, asked: Any, value: Any, schema: Schema) -> bool:
    if keyword not in _CHECKS:
        return False
    kind, check = _CHECKS[keyword]
    return check(asked, value, schema) if _is(kind, value) else keyword != "enum"


def _is(kind: str, value: Any) -> bool:
    match kind:
        case "integer":
            return type(value) is int or (type(value) is float and value.is_integer())
        case "number":
            return type(value) in (int, float)
        case _:
            return kind == "any" or type(value) is _TYPES.get(kind)


def _is_one_of(kinds: str | list[str], value: Any, schema: Schema) -> bool:
    return any(_is(kind, value) for kind in ([kinds] if isinstance(kinds, str) else kinds))


def _holds(parts: Schema, value: dict[str, Any], schema: Schema) -> bool:
    return all(accepts(parts[name], part) for name, part in value.items() if name in parts)


def _holds_others(asked: bool | Schema, value: dict[str, Any], schema: Schema) -> bool:
    return asked is True or (asked is False and value.keys() <= schema.get("properties", {}).keys())


_ANNOTATIONS = frozenset({"title", "description", "default", "examples"})
_TYPES: dict[str, type] = {"string": str, "boolean": bool, "array": list, "object": dict, "null": type(None)}
_CHECKS: dict[str, tuple[str, Callable[[Any, Any, Schema], bool]]] = {
    "type": ("any", _is_one_of),
    "enum": ("string", lambda asked, value, schema: value in asked),
    "anyOf": ("any", lambda asked, value, schema: any(accepts(part, value) for part in asked)),
    "minimum": ("number", lambda asked, value, schema: value >= asked),
    "maximum": ("number", lambda asked, value, schema: value <= asked),
    "minLength": ("string", lambda asked, value, schema: len(value) >= asked),
    "maxLength": ("string", lambda asked, value, schema: len(value) <= asked),
    "minItems": ("array", lambda asked, value, schema: len(value) >= asked),
    "maxItems": ("array", lambda asked, value, schema: len(value) <= asked),
    "items": ("array", lambda asked, value, schema: all(accepts(asked, part) for part in value)),
    "required": ("object", lambda asked, value, schema: all(name in value for name in asked)),
    "properties": ("object", _holds),
    "additionalProperties": ("object", _holds_others),
}
"""Each keyword with the type it applies to; a value of another type passes, except for enums, which are of strings."""
