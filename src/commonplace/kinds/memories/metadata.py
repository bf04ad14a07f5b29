"""Metadata of entries: paths into it as people write them, the indexes on them, and conditions of searches."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast, get_args

from commonplace.model import JSON, Condition, Operator
from commonplace.settings import BadSetting, Settings
from commonplace.store.metadata_index import MetadataIndex

log = logging.getLogger(__name__)

TYPES = ("string", "integer", "float", "boolean", "array", "object")
_PIECE = re.compile(r"\\(?P<escaped>.?)|(?P<dot>\.)|(?P<plain>[^\\.]+)", re.DOTALL)
_REFUSED = re.compile(r"[\x00-\x1f\x7f-\x9f\[\]]")


def parse_path(text: str) -> tuple[str, ...]:
    """Return the names on a path. Dots separate them; `\\.` is a dot inside a name, `\\\\` a backslash.

    Raise ValueError, with the reason, where the path is malformed.
    """
    names = [""]
    for piece in _PIECE.finditer(text):
        if piece["dot"]:
            names.append("")
        elif piece["plain"] is not None:
            names[-1] += piece["plain"]
        elif piece["escaped"] and piece["escaped"] in ".\\":
            names[-1] += piece["escaped"]
        else:
            raise ValueError("a backslash stands only before a dot or a backslash")
    if not text:
        raise ValueError("a path cannot be empty")
    if not all(names):
        raise ValueError("a path has no empty segment")
    if _REFUSED.search(text):
        raise ValueError("a path has no control characters or square brackets")
    return tuple(names)


def typed_fields(setting: str, name: str = "memory_indexed_fields") -> list[tuple[tuple[str, ...], str]]:
    """Return the (path, type) pairs of a list such as `status,references:object`.

    Raise BadSetting where a path is malformed; `name` is what the error calls the list.
    """
    pairs = []
    for part in filter(None, map(str.strip, setting.split(","))):
        before, colon, kind = part.rpartition(":")
        path = before.strip() if colon else part
        try:
            pairs.append((parse_path(path), kind.strip() if colon else "string"))
        except ValueError as problem:
            raise BadSetting(f"{name} names {path!r}: {problem}.") from None
    return pairs


def wanted_fields(setting: str) -> list[tuple[str, ...]]:
    """Return the paths of such a list, each once. Log a type that does not exist and read it as string."""
    pairs = typed_fields(setting)
    for path, kind in pairs:
        if kind.lower() not in TYPES:
            log.warning("%r is no type of an indexed metadata field; %s is read as string", kind, ".".join(path))
    return list(dict.fromkeys(path for path, _ in pairs))


def sync_fields(index: MetadataIndex, settings: Settings) -> None:
    """Index the metadata fields that the settings name, as far as `memory_index_sync` allows.

    Raise BadSetting where that is `strict` and other fields are indexed.
    """
    wanted_paths, indexed_paths = wanted_fields(settings.memory_indexed_fields), index.fields()
    mode = settings.memory_index_sync
    missing = [path for path in wanted_paths if path not in indexed_paths]
    extra = [path for path in indexed_paths if path not in wanted_paths]
    if not missing and not extra:
        return
    if mode == "strict" and indexed_paths:
        raise BadSetting(f"memory_indexed_fields differs from what is indexed: {_difference(missing, extra)}.")
    if mode == "warn" and indexed_paths:
        log.warning("The indexed metadata fields differ from the setting: %s", _difference(missing, extra))
        return
    for path in missing:
        index.add(path)
    for path in extra if mode == "auto" else ():
        index.drop(path)


def _difference(missing: list[tuple[str, ...]], extra: list[tuple[str, ...]]) -> str:
    parts = [("not indexed: ", missing), ("indexed beyond it: ", extra)]
    return "; ".join(label + ", ".join(".".join(path) for path in paths) for label, paths in parts if paths)


# conditions


OPERATORS: tuple[str, ...] = get_args(Operator)
MOST_MEMBERS = 1000
MOST_NAMES = 500
"""Most names in `metadata` of a search: SQLite joins no more than a thousand conditions."""
_FIELDS = ("key", "operator", "value", "case_sensitive", "include_missing")
_NO_VALUE = ("exists", "is_not_null", "not_exists", "is_null")
_ORDERINGS = ("gt", "gte", "lt", "lte")
_TEXTS = ("contains", "starts_with", "ends_with")
_NUMBER = "a number that is not finite"


@dataclass(frozen=True, slots=True)
class Malformed:
    """Metadata filters that are malformed. They never run; the searches answer with this instead of results."""

    problems: tuple[str, ...]

    def record(self) -> dict[str, JSON]:
        """Return the answer of a search with these filters."""
        return {
            "results": [],
            "count": 0,
            "error": "Metadata filter validation failed",
            "validation_errors": list(self.problems),
        }


def conditions(metadata: Mapping[str, JSON], filters: JSON) -> tuple[Condition, ...] | Malformed:
    """Return both ways of filtering on metadata as one list of conditions, or everything that is wrong with them."""
    problems: list[str] = []
    if len(metadata) > MOST_NAMES:
        return Malformed((f"metadata: takes at most {MOST_NAMES} names, not {len(metadata)}",))
    parsed = [_pair(name, value, problems) for name, value in metadata.items()]
    parsed += [_condition(f"metadata_filters[{place}]", one, problems) for place, one in enumerate(filters)]
    if problems:
        return Malformed(tuple(problems))
    return tuple(condition for condition in parsed if condition is not None)


def _pair(name: str, value: JSON, problems: list[str]) -> Condition | None:
    place = f"metadata.{name}"
    path = _path(place, name, problems)
    problem = _scalar(value)
    if problem:
        problems.append(f"{place}: {problem}")
    return Condition(path, "eq", value) if path and not problem else None


def _condition(place: str, record: JSON, problems: list[str]) -> Condition | None:
    if not isinstance(record, Mapping):
        problems.append(f"{place}: must be an object with key, operator and value")
        return None
    before = len(problems)
    problems += [f'{place}: unknown field "{name}"' for name in record if name not in _FIELDS]
    key, operator = record.get("key"), record.get("operator")
    path: tuple[str, ...] | None = None
    if key is None:
        problems.append(f"{place}.key: is required")
    elif not isinstance(key, str):
        problems.append(f"{place}.key: must be a string")
    else:
        path = _path(f"{place}.key", key, problems)
    operator = "eq" if operator is None else operator
    if operator not in OPERATORS:
        quoted = f'"{operator}"' if isinstance(operator, str) else "of that kind"
        problems.append(f"{place}.operator: unknown operator {quoted}; use one of {', '.join(OPERATORS)}")
    elif problem := _value(operator, record):
        problems.append(f"{place}.value: {problem}")
    flags = {name: _flag(place, name, operator, record, problems) for name in ("case_sensitive", "include_missing")}
    if len(problems) > before or path is None:
        return None
    return Condition(path, cast(Operator, operator), record.get("value"), **flags)


def _path(place: str, text: str, problems: list[str]) -> tuple[str, ...] | None:
    try:
        return parse_path(text)
    except ValueError as problem:
        problems.append(f"{place}: {problem}")
        return None


def _flag(place: str, name: str, operator: JSON, record: Mapping[str, JSON], problems: list[str]) -> bool:
    value = record.get(name)
    if value is None:
        return False
    if not isinstance(value, bool):
        problems.append(f"{place}.{name}: must be true or false")
    elif name == "include_missing" and operator in OPERATORS and operator not in ("ne", "not_in"):
        problems.append(f"{place}.{name}: goes with ne and not_in only, not with {operator}")
    elif name == "case_sensitive" and value and operator in _NO_VALUE:  # clients send false by default
        problems.append(f"{place}.{name}: {operator} compares nothing")
    return value is True


def _value(operator: str, record: Mapping[str, JSON]) -> str:
    """Return what is wrong with the value of a condition, "" where nothing is."""
    value = record.get("value")
    if operator in _NO_VALUE:
        return "" if value is None or value is True else f"{operator} takes no value"
    if "value" not in record:
        return f"{operator} needs a value"
    if operator in ("in", "not_in"):
        return _members(operator, value)
    if operator in _TEXTS:
        return "" if isinstance(value, str) and value else f"{operator} needs a non-empty string"
    if operator in _ORDERINGS and (value is None or isinstance(value, bool | list | dict)):
        return f"{operator} compares numbers and strings, not {_called(value)}"
    return _scalar(value)


def _members(operator: str, value: JSON) -> str:
    """Return what is wrong with a list of values, "" where nothing is."""
    if not isinstance(value, list) or not value:
        return f"{operator} needs a non-empty list"
    if len(value) > MOST_MEMBERS:
        return f"{operator} takes at most {MOST_MEMBERS} members, not {len(value)}"
    return next((f"{operator} takes scalars: {problem}" for problem in map(_scalar, value) if problem), "")


def _scalar(value: JSON) -> str:
    """Return what is wrong with a value to compare with, "" where nothing is."""
    if value is None:
        return "null cannot be compared; use the is_null operator"
    if isinstance(value, list):
        return "a list cannot be compared; use the in or array_contains operator"
    if isinstance(value, Mapping):
        return "an object cannot be compared; name one of its members with a dot"
    if isinstance(value, float) and not math.isfinite(value):
        return f"{_NUMBER} cannot be compared"
    return ""


def _called(value: JSON) -> str:
    """Return what an error calls the type of a value."""
    if value is None:
        return "null"
    return "booleans" if isinstance(value, bool) else "lists" if isinstance(value, list) else "objects"
