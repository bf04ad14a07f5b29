"""A Filter as SQL for SQLite: compiled once, the same meaning in every search, listing and count."""

from __future__ import annotations

import json
import math
from types import MappingProxyType
from typing import Any

from commonplace.errors import InvalidInput
from commonplace.model import JSON, SCHEMES, Condition, Entries, Filter
from commonplace.store.filters import (
    ORDERINGS,
    PRESENT,
    Compiled,
    Fields,
    fold_tag,
    fold_value,
    json_path,
    micros,
    number,
    shape_of,
)
from commonplace.text.glob_patterns import place_matcher

HELD_BY = "items.id in (select item_id from metadata_holders"
_NUMBER = "('integer', 'real')"
_MOST_LIKE = 1000


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


def compile_filter(filter: Filter, fields: Fields = MappingProxyType({})) -> Compiled:
    """Return a boolean expression over `items`, and its values. Give `fields` only where entries alone are searched."""
    sql = _Sql()
    conditions = [_indexed(sql, condition, fields) for condition in filter.where]
    if filter.kinds:
        # The plus keeps SQLite from reading everything of a kind where an index names the few that can match.
        by_index = "+" if any(part.startswith(HELD_BY) for part in conditions) else ""
        sql.parts.append(f"{by_index}items.kind in {sql.bind_all(filter.kinds)}")
    if filter.parents:
        if not filter.kinds:
            sql.parts.append(f"items.kind in {sql.bind_all(tuple(SCHEMES))}")  # it leads in the index of addresses
        elif "memory" not in filter.kinds:
            sql.parts.append("items.kind <> 'memory'")  # says so to SQLite: the index by parent is of these alone
        sql.parts.append(f"items.parent in {sql.bind_all(filter.parents)}")
    if filter.tags:
        folded = tuple(dict.fromkeys(map(fold_tag, filter.tags)))
        sql.parts.append(f"items.id in (select item_id from tags where folded in {sql.bind_all(folded)})")
    if filter.paths:
        sql.parts.append(f"items.kind = 'document' and ({' or '.join(_place(sql, path) for path in filter.paths)})")
    for column, bound, compare in (
        ("created_at", filter.created_from, ">="),
        ("created_at", filter.created_to, "<="),
        ("updated_at", filter.updated_from, ">="),
        ("updated_at", filter.updated_to, "<="),
    ):
        if bound is not None:
            sql.parts.append(f"items.{column} {compare} {sql.bind(micros(bound))}")
    if filter.entries:
        sql.parts.extend(_entries(sql, filter.entries))
        if filter.kinds != ("memory",):
            sql.parts.append("items.kind = 'memory'")
    sql.parts.extend(conditions)
    if filter.entries and not filter.entries.superseded:
        # Last: of what few are left, nearly all pass.
        replaced = "select item_id from memories where id in (select older from supersessions)"
        sql.parts.append(f"items.id not in ({replaced})")
    return " and ".join(f"({part})" for part in sql.parts) or "1", sql.values


def _place(sql: _Sql, path: str) -> str:
    """Return the test of a path inside a collection, or with the collection in front; both where it can be both."""
    place_matcher(path)  # says what is wrong with it
    pattern = sql.bind(path)
    return f"in_place({pattern}, items.key) or in_place({pattern}, items.parent || '/' || items.key)"


def _entries(sql: _Sql, entries: Entries) -> list[str]:
    conditions = []
    if entries.source is not None:
        conditions.append(f"source = {sql.bind(entries.source)}")
    if entries.multimodal is not None:
        conditions.append("images > 0" if entries.multimodal else "images = 0")
    return [f"items.id in (select item_id from memories where {' and '.join(conditions)})"] if conditions else []


def _indexed(sql: _Sql, condition: Condition, fields: Fields) -> str:
    """Return a condition by the index of its field; by the metadata itself without one, or where it cannot tell."""
    field, op = fields.get(condition.path), condition.op
    if field is None:
        return _condition(sql, condition)
    among = f"field = {sql.bind(field)}"
    if op in ("exists", "is_not_null"):
        return _held(f"{among} and {PRESENT}")
    if op == "not_exists":
        return f"not {_held(f'{among} and {PRESENT}')}"
    if op == "is_null":
        return _held(f"{among} and shape = 'null'")
    exact = condition.case_sensitive and op not in ("eq", "in", "array_contains")
    hit = None if exact and not _is_number(condition.value) else _held_values(sql, condition)
    if hit is None:
        return _condition(sql, condition)
    if op in ("ne", "not_in"):
        if condition.include_missing:
            return f"not {_held(f'{among} and {hit}')}"
        return _held(f"{among} and {PRESENT} and not {hit}")
    held = _held(f"{among} and {hit}")
    # What is equal is equal when folded too, so the index narrows down what is then compared exactly.
    return f"{held} and {_condition(sql, condition)}" if condition.case_sensitive else held


def _held(values: str) -> str:
    return f"{HELD_BY} where value in (select id from metadata_values where {values}))"


def _held_values(sql: _Sql, condition: Condition) -> str | None:
    op, wanted = condition.op, condition.value
    if op in ("eq", "ne", "array_contains", "in", "not_in"):
        members = list(wanted) if op in ("in", "not_in") else [wanted]
        if not all(isinstance(member, str | int | float) for member in members):
            return None
        bracket = "[" if op == "array_contains" else ""
        pairs = sql.bind(json.dumps([[f"{bracket}{shape}", value] for shape, value in map(_finite, members)]))
        return f"(shape, value) in (select value ->> 0, value ->> 1 from json_each({pairs}))"
    if op in ORDERINGS:
        shape, value = shape_of(wanted)
        return f"shape = '{shape}' and value {ORDERINGS[op]} {sql.bind(value)}"
    bound = sql.bind(fold_value(wanted))
    test = _part(op, "value", bound)
    return f"shape = 'text' and {test}"


def _finite(member: JSON) -> tuple[str, Any]:
    """Return the shape and value of a member; a number that no float holds equals none that is stored."""
    shape, value = shape_of(member)
    return (shape, value) if shape != "number" or math.isfinite(value) else ("none", "")


def _is_number(value: JSON) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


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
        maybe = _maybe(sql, condition.value)
        return maybe + _equals(sql, kind, value, condition.value, condition.case_sensitive)
    if op == "in":
        return _among(sql, kind, value, tuple(condition.value), condition.case_sensitive)
    if op == "array_contains":
        element = _equals(sql, "element.type", "element.value", condition.value, condition.case_sensitive)
        any_element = f"exists (select 1 from json_each(items.metadata, {path}) as element where {element})"
        return f"{_maybe(sql, condition.value)}{kind} = 'array' and {any_element}"
    if op in ORDERINGS:
        if isinstance(condition.value, str):
            wanted = sql.bind(fold_value(condition.value, condition.case_sensitive))
            return f"{kind} = 'text' and {_folded(value, condition.case_sensitive)} {ORDERINGS[op]} {wanted}"
        return f"{value} {ORDERINGS[op]} {sql.bind(number(condition.value))} and {kind} in {_NUMBER}"
    if op in ("contains", "starts_with", "ends_with"):
        wanted = sql.bind(fold_value(condition.value, condition.case_sensitive))
        test = _part(op, _folded(value, condition.case_sensitive), wanted)
        return f"{_maybe(sql, condition.value)}{kind} = 'text' and {test}"
    raise InvalidInput(f'There is no filter operator "{op}".')


def _maybe(sql: _Sql, wanted: JSON) -> str:
    """Return a quick test of metadata as a whole, which spares most of it from being parsed; '' where it tells nothing.

    Metadata of ASCII alone that nowhere has the wanted letters has them in no value. JSON escapes none of these.
    """
    folded = fold_value(wanted) if isinstance(wanted, str) else ""
    if not (folded.isascii() and folded.isprintable() and 0 < len(folded) <= _MOST_LIKE) or set('"\\') & set(folded):
        return ""
    pattern = folded.replace("%", "\\%").replace("_", "\\_")
    ascii_only = "length(items.metadata) = octet_length(items.metadata)"
    return f"(items.metadata like {sql.bind(f'%{pattern}%')} escape '\\' or not {ascii_only}) and "


def _part(op: str, text: str, wanted: str) -> str:
    if op == "contains":
        return f"instr({text}, {wanted}) > 0"
    if op == "starts_with":
        return f"substr({text}, 1, length({wanted})) = {wanted}"
    return f"substr({text}, -length({wanted})) = {wanted}"


def _folded(value: str, case_sensitive: bool) -> str:
    """Return a string as `fold_value` makes it. ASCII is folded by SQLite itself, which spares a call of Python's."""
    plain, other = (value, "fold_exact") if case_sensitive else (f"lower({value})", "fold")
    return f"iif(length({value}) = octet_length({value}), {plain}, {other}({value}))"


def _equals(sql: _Sql, kind: str, value: str, wanted: JSON, case_sensitive: bool) -> str:
    if isinstance(wanted, bool):
        return f"{kind} = '{'true' if wanted else 'false'}'"
    if isinstance(wanted, str):
        folded = _folded(value, case_sensitive)
        return f"({kind} = 'text' and {folded} = {sql.bind(fold_value(wanted, case_sensitive))})"
    if isinstance(wanted, int | float):
        return f"({value} = {sql.bind(number(wanted))} and {kind} in {_NUMBER})"
    raise InvalidInput("A filter compares with a string, a number or a boolean; use is_null or exists for the rest.")


def _among(sql: _Sql, kind: str, value: str, members: tuple[JSON, ...], case_sensitive: bool) -> str:
    """Return the test for any of some members. Strings are one bound list, as are numbers: SQLite takes few `or`."""
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
        listed = sql.bind(json.dumps(strings))
        parts.append(
            f"({kind} = 'text' and {_folded(value, case_sensitive)} in (select value from json_each({listed})))"
        )
    if numbers:
        listed = sql.bind(json.dumps([wanted for wanted in numbers if math.isfinite(wanted)]))
        parts.append(f"({kind} in {_NUMBER} and {value} in (select value from json_each({listed})))")
    return "(" + (" or ".join(parts) or "0") + ")"
