"""A Filter as SQL for PostgreSQL: compiled once, the same meaning in every search, listing and count.

Metadata is compared in two copies of it that are made when it is stored (`compared`): numbers written out in full, so
that comparing them is exact, and strings in NFC, in one copy with their case folded.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from commonplace.errors import InvalidInput
from commonplace.model import JSON, Condition, Entries, Filter
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
from commonplace.text.glob_patterns import place_regex

HEAD = 100
"""How many characters of a text are indexed."""

_BEYOND = Decimal("1e400")  # in the place of infinity, which JSON has not: larger than any float


def exact(value: float) -> Decimal:
    """Return a number as it is compared: an integer within 64 bits as it is, another as the nearest float, in full."""
    held = number(value)
    if held in (float("inf"), float("-inf")):
        return _BEYOND.copy_sign(Decimal(1 if held > 0 else -1))
    return Decimal(held)


def compared(value: JSON, *, case_sensitive: bool) -> str:
    """Return a value as JSON that means the same to PostgreSQL as the value does to a filter."""
    match value:
        case str():
            return json.dumps(fold_value(value, case_sensitive), ensure_ascii=False)
        case None | bool():
            return json.dumps(value)
        case int() | float():
            return str(exact(value))
        case Mapping():
            members = (
                f"{json.dumps(name, ensure_ascii=False)}:{compared(member, case_sensitive=case_sensitive)}"
                for name, member in value.items()
            )
            return "{" + ",".join(members) + "}"
        case _:
            return "[" + ",".join(compared(member, case_sensitive=case_sensitive) for member in value) + "]"


class _Sql:
    """Conditions and their bound values, gathered in step so that no value ever becomes SQL text."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.values: dict[str, Any] = {}

    def bind(self, value: Any, type: str = "text") -> str:
        name = f"f{len(self.values)}"
        self.values[name] = value
        return f":{name}::{type}"

    def among(self, column: str, values: tuple[str, ...]) -> str:
        """Return the test for any of these texts, which are found by their beginnings."""
        heads = self.bind([value[:HEAD] for value in values], "text[]")
        return f"{column}_head = any({heads}) and {column} = any({self.bind(list(values), 'text[]')})"


def compile_filter(filter: Filter, fields: Fields = MappingProxyType({})) -> Compiled:
    """Return a boolean expression over `items`, and its values. Give `fields` only where entries alone are searched."""
    sql = _Sql()
    if filter.kinds:
        sql.parts.append(f"items.kind = any({sql.bind(list(filter.kinds), 'text[]')})")
    if filter.parents:
        sql.parts.append(sql.among("items.parent", filter.parents))
    if filter.tags:
        named = sql.among("tags.folded", tuple(dict.fromkeys(map(fold_tag, filter.tags))))
        sql.parts.append(f"items.id in (select item_id from tags where {named})")
    if filter.paths:
        sql.parts.append(f"items.kind = 'document' and ({' or '.join(_place(sql, path) for path in filter.paths)})")
    for column, bound, compare in (
        ("created_at", filter.created_from, ">="),
        ("created_at", filter.created_to, "<="),
        ("updated_at", filter.updated_from, ">="),
        ("updated_at", filter.updated_to, "<="),
    ):
        if bound is not None:
            sql.parts.append(f"items.{column} {compare} {sql.bind(micros(bound), 'bigint')}")
    if filter.entries:
        sql.parts.extend(_entries(sql, filter.entries))
    sql.parts.extend(_indexed(sql, _without_nan(condition), fields) for condition in filter.where)
    return " and ".join(f"({part})" for part in sql.parts) or "true", sql.values


def _place(sql: _Sql, path: str) -> str:
    """Return the test of a path inside a collection, or with the collection in front; both where it can be both."""
    regex = sql.bind(place_regex(path))
    texts = ("items.key", "items.parent || '/' || items.key")
    return " or ".join(f"lower(normalize({text}, nfc)) ~ {regex}" for text in texts)


def _without_nan(condition: Condition) -> Condition:
    """Return a condition that compares with nothing where it compares with NaN, which no JSON value equals."""
    op, wanted = condition.op, condition.value
    if op in ("in", "not_in"):
        return replace(condition, value=tuple(member for member in wanted if not _is_nan(member)))
    return replace(condition, op="not_in" if op == "ne" else "in", value=()) if _is_nan(wanted) else condition


def _is_nan(value: JSON) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _entries(sql: _Sql, entries: Entries) -> list[str]:
    asked = []
    if entries.source is not None:
        asked.append(f"source = {sql.bind(entries.source)}")
    if entries.multimodal is not None:
        asked.append("images > 0" if entries.multimodal else "images = 0")
    parts = ["items.kind = 'memory'"]
    if asked:
        parts.append(f"items.id in (select item_id from memories where {' and '.join(asked)})")
    if not entries.superseded:
        parts.append(
            """not exists (select 1 from memories join supersessions on older = memories.id
               where memories.item_id = items.id)"""
        )
    return parts


# Indexed fields. Each value a field has is kept once, as a shape and a folded value, beside the items that hold it.


def _columns(shape: str, value: Any) -> tuple[str, str, Decimal]:
    return (shape, "", exact(value)) if shape.endswith("number") else (shape, value, Decimal(0))


def kept_value(field: int, shape: str, value: Any) -> tuple[int, str, str, str]:
    """Return the columns by which the index of a field knows a value: field, shape, text, number."""
    shape, text, amount = _columns(shape, value)
    return field, shape, text, str(amount)


def _indexed(sql: _Sql, condition: Condition, fields: Fields) -> str:
    """Return a condition by the index of its field; by the metadata itself without one, or where it cannot tell."""
    field, op = fields.get(condition.path), condition.op
    if field is None:
        return _condition(sql, condition)
    among = f"field = {sql.bind(field, 'bigint')}"
    if op in ("exists", "is_not_null"):
        return _held(f"{among} and {PRESENT}")
    if op == "not_exists":
        return f"not {_held(f'{among} and {PRESENT}')}"
    if op == "is_null":
        return _held(f"{among} and shape = 'null'")
    if condition.case_sensitive and op not in ("eq", "in", "array_contains"):
        return _condition(sql, condition)
    hit = _held_values(sql, condition)
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
    return (
        "items.id in (select item_id from metadata_holders "
        f"where value in (select id from metadata_values where {values}))"
    )


def _held_values(sql: _Sql, condition: Condition) -> str | None:
    op, wanted = condition.op, condition.value
    if op in ("eq", "ne", "array_contains", "in", "not_in"):
        members = list(wanted) if op in ("in", "not_in") else [wanted]
        if not all(isinstance(member, str | int | float) for member in members):
            return None
        bracket = "[" if op == "array_contains" else ""
        rows = [_columns(*shape_of(member)) for member in members]
        shape, text, amount = zip(*rows, strict=True) if rows else ((), (), ())
        lists = (
            sql.bind([bracket + one for one in shape], "text[]"),
            sql.bind([one[:HEAD] for one in text], "text[]"),
            sql.bind(list(text), "text[]"),
            sql.bind(list(amount), "numeric[]"),
        )
        return f"(shape, value_head, value, number) in (select * from unnest({', '.join(lists)}))"
    if op in ORDERINGS:
        if isinstance(wanted, str):
            return f"(shape = 'text' and value {ORDERINGS[op]} {sql.bind(fold_value(wanted))})"
        return f"(shape = 'number' and number {ORDERINGS[op]} {sql.bind(exact(wanted), 'numeric')})"
    return f"(shape = 'text' and {_part(op, 'value', sql.bind(fold_value(wanted)))})"


def _condition(sql: _Sql, condition: Condition) -> str:
    json_path(condition.path)  # refuses a path that names nothing
    op, exactly = condition.op, condition.case_sensitive
    names = "".join(f" -> {sql.bind(name)}" for name in condition.path)  # arrows: a number names no element of a list
    value = f"(items.{'exact' if exactly else 'folded'}{names})"
    present = f"coalesce({value} <> 'null'::jsonb, false)"
    if op in ("exists", "is_not_null"):
        return present
    if op == "not_exists":
        return f"not {present}"
    if op == "is_null":
        return f"coalesce({value} = 'null'::jsonb, false)"
    if op in ("ne", "not_in"):
        members = (condition.value,) if op == "ne" else tuple(condition.value)
        hit = f"coalesce({value} = any({_wanted(sql, members, exactly)}), false)"
        return f"not {present} or not {hit}" if condition.include_missing else f"{present} and not {hit}"
    if op in ("eq", "in"):
        members = (condition.value,) if op == "eq" else tuple(condition.value)
        return f"{value} = any({_wanted(sql, members, exactly)})"
    if op == "array_contains":
        element = sql.bind(_comparable(condition.value, exactly), "jsonb")
        return f"jsonb_typeof({value}) = 'array' and {value} @> {element}"
    if op in ORDERINGS and not isinstance(condition.value, str):
        wanted = sql.bind(str(exact(condition.value)), "jsonb")
        return f"jsonb_typeof({value}) = 'number' and {value} {ORDERINGS[op]} {wanted}"
    if op in ORDERINGS or op in ("contains", "starts_with", "ends_with"):
        text = f"({value} #>> '{{}}') collate \"C\""
        wanted = sql.bind(fold_value(condition.value, exactly))
        test = f"{text} {ORDERINGS[op]} {wanted}" if op in ORDERINGS else _part(op, text, wanted)
        return f"jsonb_typeof({value}) = 'string' and {test}"
    raise InvalidInput(f'There is no filter operator "{op}".')


def _part(op: str, text: str, wanted: str) -> str:
    if op == "contains":
        return f"strpos({text}, {wanted}) > 0"
    if op == "starts_with":
        return f"starts_with({text}, {wanted})"
    return f"right({text}, length({wanted})) = {wanted}"


def _wanted(sql: _Sql, members: tuple[JSON, ...], exactly: bool) -> str:
    return sql.bind([_comparable(member, exactly) for member in members], "text[]") + "::jsonb[]"


def _comparable(wanted: JSON, exactly: bool) -> str:
    if not isinstance(wanted, str | int | float):
        raise InvalidInput(
            "A filter compares with a string, a number or a boolean; use is_null or exists for the rest."
        )
    return compared(wanted, case_sensitive=exactly)
