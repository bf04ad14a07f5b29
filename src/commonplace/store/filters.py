"""A Filter as SQL for SQLite: compiled once, the same meaning in every search, listing and count."""

from __future__ import annotations

import json
import math
import unicodedata
from datetime import UTC, datetime
from typing import Any

from commonplace.errors import InvalidInput
from commonplace.model import JSON, Condition, Filter

Compiled = tuple[str, dict[str, Any]]
_ORDERINGS = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
_NUMBER = "('integer', 'real')"
_BEYOND_FLOAT = 1 << 1023


def micros(moment: datetime) -> int:
    """Microseconds since 1970. A naive time is UTC."""
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    delta = aware - datetime(1970, 1, 1, tzinfo=UTC)
    return (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds


def fold_value(text: str, case_sensitive: bool = False) -> str:
    """How two strings of a filter are compared: canonical forms, and case too unless asked for."""
    if text.isascii():
        return text if case_sensitive else text.lower()
    if case_sensitive:
        return unicodedata.normalize("NFC", text)
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", text).casefold())


def fold_tag(tag: str) -> str:
    return fold_value(tag.strip())


class _Sql:
    """Conditions and their bound values, gathered in step so that no value ever becomes SQL text."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.values: dict[str, Any] = {}

    def bind(self, value: Any) -> str:
        name = f"f{len(self.values)}"
        self.values[name] = value
        return f":{name}"

    def bind_all(self, values: tuple[Any, ...]) -> str:
        return "(" + ", ".join(self.bind(value) for value in values) + ")"


def compile_filter(filter: Filter) -> Compiled:
    """A boolean SQL expression over `items`, and its values."""
    sql = _Sql()
    if filter.kinds:
        sql.parts.append(f"items.kind in {sql.bind_all(filter.kinds)}")
    if filter.parents:
        sql.parts.append(f"items.parent in {sql.bind_all(filter.parents)}")
    if filter.tags:
        folded = tuple(dict.fromkeys(map(fold_tag, filter.tags)))
        sql.parts.append(f"items.id in (select item_id from tags where folded in {sql.bind_all(folded)})")
    for column, bound, compare in (
        ("created_at", filter.created_from, ">="),
        ("created_at", filter.created_to, "<="),
        ("updated_at", filter.updated_from, ">="),
        ("updated_at", filter.updated_to, "<="),
    ):
        if bound is not None:
            sql.parts.append(f"items.{column} {compare} {sql.bind(micros(bound))}")
    sql.parts.extend(_condition(sql, condition) for condition in filter.where)
    return " and ".join(f"({part})" for part in sql.parts) or "1", sql.values


def _condition(sql: _Sql, condition: Condition) -> str:
    path = sql.bind(json_path(condition.path))
    kind = f"json_type(items.metadata, {path})"
    value = f"json_extract(items.metadata, {path})"
    present = f"coalesce({kind}, 'null') <> 'null'"
    op = condition.op
    if op in ("exists", "is_not_null"):
        return present
    if op == "not_exists":
        return f"not ({present})"
    if op == "is_null":
        return f"coalesce({kind}, '') = 'null'"
    if op in ("ne", "not_in"):
        members = (condition.value,) if op == "ne" else tuple(condition.value)
        hit = _among(sql, kind, value, members, condition.case_sensitive)
        missing = f"not ({present}) or " if condition.include_missing else f"{present} and "
        return f"{missing}not coalesce({hit}, 0)"
    if op == "eq":
        return _equals(sql, kind, value, condition.value, condition.case_sensitive)
    if op == "in":
        return _among(sql, kind, value, tuple(condition.value), condition.case_sensitive)
    if op == "array_contains":
        element = _equals(sql, "element.type", "element.value", condition.value, condition.case_sensitive)
        return (
            f"{kind} = 'array' and exists (select 1 from json_each(items.metadata, {path}) as element where {element})"
        )
    if op in _ORDERINGS:
        if isinstance(condition.value, str):
            wanted = sql.bind(fold_value(condition.value, condition.case_sensitive))
            return f"{kind} = 'text' and {_folded(value, condition)} {_ORDERINGS[op]} {wanted}"
        return f"{kind} in {_NUMBER} and {value} {_ORDERINGS[op]} {sql.bind(number(condition.value))}"
    if op in ("contains", "starts_with", "ends_with"):
        wanted = sql.bind(fold_value(condition.value, condition.case_sensitive))
        folded = _folded(value, condition)
        test = {
            "contains": f"instr({folded}, {wanted}) > 0",
            "starts_with": f"substr({folded}, 1, length({wanted})) = {wanted}",
            "ends_with": f"substr({folded}, -length({wanted})) = {wanted}",
        }[op]
        return f"{kind} = 'text' and {test}"
    raise InvalidInput(f'There is no filter operator "{op}".')


def _folded(value: str, condition: Condition) -> str:
    return f"fold_exact({value})" if condition.case_sensitive else f"fold({value})"


def _equals(sql: _Sql, kind: str, value: str, wanted: JSON, case_sensitive: bool) -> str:
    if isinstance(wanted, bool):
        return f"{kind} = '{'true' if wanted else 'false'}'"
    if isinstance(wanted, str):
        function = "fold_exact" if case_sensitive else "fold"
        return f"({kind} = 'text' and {function}({value}) = {sql.bind(fold_value(wanted, case_sensitive))})"
    if isinstance(wanted, int | float):
        return f"({kind} in {_NUMBER} and {value} = {sql.bind(number(wanted))})"
    raise InvalidInput("A filter compares with a string, a number or a boolean; use is_null or exists for the rest.")


def _among(sql: _Sql, kind: str, value: str, members: tuple[JSON, ...], case_sensitive: bool) -> str:
    """Equal to any member. Strings are one bound list and so are numbers: SQLite takes no thousand terms of `or`."""
    strings, numbers, parts = [], [], []
    for member in members:
        if isinstance(member, str):
            strings.append(fold_value(member, case_sensitive))
        elif isinstance(member, int | float) and not isinstance(member, bool):
            numbers.append(number(member))
        else:
            parts.append(_equals(sql, kind, value, member, case_sensitive))
    parts = list(dict.fromkeys(parts))
    if strings:
        folded = f"fold_exact({value})" if case_sensitive else f"fold({value})"
        parts.append(
            f"({kind} = 'text' and {folded} in (select value from json_each({sql.bind(json.dumps(strings))})))"
        )
    if numbers:
        listed = sql.bind(json.dumps([wanted for wanted in numbers if math.isfinite(wanted)]))
        parts.append(f"({kind} in {_NUMBER} and {value} in (select value from json_each({listed})))")
    return "(" + (" or ".join(parts) or "0") + ")"


def number(value: float) -> int | float:
    """A number SQLite can hold: integers exactly within 64 bits, others as the nearest float."""
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return float(value) if abs(value) < _BEYOND_FLOAT else math.inf if value > 0 else -math.inf
    return value


def json_path(names: tuple[str, ...]) -> str:
    """A path into a JSON object. Names are quoted, so a dot or a bracket in one is just a character."""
    if not names or not all(names):
        raise InvalidInput("A metadata path names at least one member, and none of its names is empty.")
    return "$" + "".join('."' + name.replace("\\", "\\\\").replace('"', '\\"') + '"' for name in names)
