"""What the stand-in for turbopuffer knows of attributes: their types, their limits, and what may be asked of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from support.turbopuffer_ranking import BadRequest, longest_token

MOST_ATTRIBUTES, LONGEST_NAME = 1_024, 128
LARGEST_VALUE, LARGEST_FILTERABLE = 8 * 1024 * 1024, 4 * 1024
LONGEST_TOKEN_EVER = 254
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TYPE = re.compile(r"(\[\])?(string|int|uint|float|uuid|datetime|bool)|\[\d+\]f(16|32)")
_SETTINGS = {"type", "ann", "filterable", "full_text_search", "fuzzy", "glob", "regex", "embed", "sparse_knn"}
_SEARCH = {
    "tokenizer", "case_sensitive", "language", "stemming", "remove_stopwords", "ascii_folding", "max_token_length",
    "k1", "b", "k3",
}  # fmt: skip
_OF_ARRAYS = ("Contains", "NotContains", "ContainsAny", "NotContainsAny")


def declared(known: Mapping[str, Any], given: Mapping[str, Any], *, fresh: bool) -> dict[str, dict[str, Any]]:
    """Return a schema with what a request declares. `fresh`: the namespace is being made, and may get vectors."""
    schema = {name: dict(settings) for name, settings in known.items()}
    for name, one in given.items():
        settings = {"type": one} if isinstance(one, str) else dict(one)
        _check_settings(name, settings)
        old = schema.get(name)
        if old and old["type"] != settings["type"]:
            raise BadRequest(f"attribute {name} is {old['type']} and cannot become {settings['type']}")
        if not old and settings["type"][0] == "[" and settings["type"][1] != "]" and not fresh:
            raise BadRequest(f"vector column {name} cannot be added to a namespace that is there")
        if name != "id" and not _is_vector(settings["type"]):
            settings.setdefault("filterable", not settings.get("full_text_search"))
        schema[name] = settings
    if len(schema) > MOST_ATTRIBUTES:
        raise BadRequest(f"a namespace has at most {MOST_ATTRIBUTES} attributes")
    return schema


def checked_attribute(schema: Mapping[str, Any], name: str, value: Any) -> dict[str, dict[str, Any]]:
    """Return the schema that a value fits, which an attribute seen for the first time is added to."""
    known = dict(schema)
    if value is None or name == "id":
        return known
    if name not in known:
        known = declared(known, {name: type_of(value)}, fresh=False)
    settings = known[name]
    if not fits(settings["type"], value):
        raise BadRequest(f"attribute {name} is {settings['type']}, not {type_of(value)}")
    values = value if isinstance(value, list) else [value]
    sizes = [len(one.encode()) for one in values if isinstance(one, str)]
    if sum(sizes) > LARGEST_VALUE:
        raise BadRequest(f"attribute {name} has at most {LARGEST_VALUE} bytes")
    if settings.get("filterable") and max(sizes, default=0) > LARGEST_FILTERABLE:
        raise BadRequest(f"attribute {name} is filterable: a value of it has at most {LARGEST_FILTERABLE} bytes")
    return known


def checked_filter(name: str, settings: Mapping[str, Any], operator: str, value: Any) -> None:
    """Refuse a condition on an attribute that is not indexed for it, and one with a value of another type."""
    if name != "id" and not settings.get("filterable"):
        raise BadRequest(f"attribute {name} is not filterable")
    kind: str = settings["type"]
    if kind.startswith("[]") is not (operator in _OF_ARRAYS) and operator not in ("Eq", "NotEq"):
        raise BadRequest(f"{operator} is not for attribute {name}, which is {kind}")
    element = kind.removeprefix("[]") if operator in _OF_ARRAYS else kind
    several = operator in ("In", "NotIn", "ContainsAny", "NotContainsAny")
    for one in value if several and isinstance(value, list) else [value]:
        if one is not None and not fits(element, one):
            raise BadRequest(f"attribute {name} is {kind}: {one!r} cannot be compared with it")


def type_of(value: Any) -> str:
    if isinstance(value, list):
        return f"[]{type_of(value[0])}" if value else "[]string"
    names = {bool: "bool", int: "int", float: "float", str: "string"}
    return names.get(type(value), type(value).__name__)


def fits(kind: str, value: Any) -> bool:
    if kind.startswith("[]"):
        return isinstance(value, list) and all(fits(kind[2:], one) for one in value)
    if kind in ("int", "uint"):
        return isinstance(value, int) and not isinstance(value, bool) and (kind == "int" or value >= 0)
    if kind == "uuid":
        return is_uuid(value)
    return isinstance(value, {"bool": bool, "float": (int, float)}.get(kind, str))  # type: ignore[arg-type]


def is_uuid(value: object) -> bool:
    return UUID.fullmatch(str(value)) is not None


def _check_settings(name: str, settings: Mapping[str, Any]) -> None:
    if name.startswith("$") or not 0 < len(name.encode()) <= LONGEST_NAME:
        raise BadRequest(f"{name!r} is no name of an attribute")
    if "type" not in settings or not _TYPE.fullmatch(str(settings["type"])):
        raise BadRequest(f"attribute {name} needs a type")
    if unknown := set(settings) - _SETTINGS:
        raise BadRequest(f"attribute {name} has unknown settings: {', '.join(sorted(unknown))}")
    if _is_vector(settings["type"]) and settings.get("ann") is not True:
        raise BadRequest(f"vector attribute {name} needs ann")
    search = settings.get("full_text_search")
    if search and settings["type"] not in ("string", "[]string"):
        raise BadRequest(f"attribute {name} cannot be searched: it is {settings['type']}")
    if isinstance(search, dict):
        if unknown := set(search) - _SEARCH:
            raise BadRequest(f"the search of {name} has unknown settings: {', '.join(sorted(unknown))}")
        if not 1 <= longest_token(search) <= LONGEST_TOKEN_EVER:
            raise BadRequest(f"max_token_length is 1 to {LONGEST_TOKEN_EVER}")


def _is_vector(kind: str) -> bool:
    return kind.startswith("[") and not kind.startswith("[]")
