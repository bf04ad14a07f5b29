"""Statements written once, and rendered for each of the two databases.

A statement is written as SQLite reads it, with named values (`:name`), and with these forms, which are SQL of neither:

| written                              | SQLite                                     | PostgreSQL                       |
|--------------------------------------|--------------------------------------------|----------------------------------|
| `in each(:ids int)`, `not in each(…)`| `in (select value from json_each(:ids))`   | `= any(…::bigint[])`, `<> all(…)`|
| `rows(:at item int, line int) as p`  | a JSON list, with columns `item` and `line`| `unnest(…) with ordinality as p` |
| `on conflict key(a, b)`              | `on conflict (a, b)`                       | `on conflict (space, a, b)`      |
| `greatest(a, b)`, `least(a, b)`      | `max(a, b)`, `min(a, b)`                   | the same                         |
| `clock()`                            | microseconds by this machine's clock       | … by the server's clock          |

The value of `each` is a sequence, that of `rows` a sequence of tuples, whose number, from 1, is the column `nr`. Their
types are `int`, `text`, `bytes` and `bool`. What both databases read alike needs no form: `returning`, `cast`,
`coalesce`, `octet_length`, `string_agg(… order by …)`, `using (…)`. Nothing given to `greatest` or `least` may be null.
A limit of -1 is SQLite's alone: bind `NO_LIMIT`. A value that may be null is written `cast(:name as bigint)`, since
PostgreSQL wants to know its type.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

NO_LIMIT = 1 << 62
"""A number of rows that no table has."""
MOST_TEXTS = 1024
"""How many rendered statements are kept for each database: filters make new ones without end."""
CLOCK = "(extract(epoch from statement_timestamp()) * 1000000)::bigint"
"""Microseconds by a PostgreSQL server's clock. Leases go by it: those of the machines that share it may be apart."""
CLOCK_NAME = "clock__"

_encoded = json.JSONEncoder(ensure_ascii=False, check_circular=False).encode  # made once: it takes as long as a list

Values: TypeAlias = Mapping[str, Any]
Arrange: TypeAlias = Callable[[Any], dict[str, Any]]


class Tuned(NamedTuple):
    """A statement, or a part of one, that has to say something else to each database."""

    sqlite: str
    postgres: str


class Rendered(NamedTuple):
    """A statement as one database reads it. `names` are those of its values, in the order of their first appearance."""

    text: str
    names: tuple[str, ...]
    lists: tuple[Arrange, ...]
    """Functions that each make the bound values of one list from all values."""
    has_clock: bool = False

    def bound(self, values: Values) -> Values:
        """Return the values with its lists as the database takes them."""
        if not self.lists:
            return values
        arranged = dict(values)
        for arrange in self.lists:
            arranged |= arrange(values)
        return arranged


_FORMS = re.compile(
    r"""(?P<literal>'[^']*'|--[^\n]*)
      | \b(?P<absent>not\s+)?in\s+each\(\s*:(?P<each>\w+)\s+(?P<type>\w+)\s*\)
      | \brows\(\s*:(?P<rows>\w+)\s+(?P<columns>[^()]+)\)\s+as\s+(?P<alias>\w+)
      | \bon\s+conflict\s+key\s*\((?P<key>[^()]+)\)
      | \b(?P<extreme>greatest|least)\(
      | \b(?P<clock>clock)\(\)
      | ::|(?<![\w:]):(?P<name>[A-Za-z_]\w*)
      | (?P<percent>%)""",
    re.VERBOSE | re.IGNORECASE,
)
_POSTGRES_TYPES = {"int": "bigint", "text": "text", "bytes": "bytea", "bool": "boolean"}
_EXTREMES = {"greatest": "max", "least": "min"}


def marks(columns: str) -> str:
    """Return named values for columns: `:a, :b` for `a, b`."""
    return ", ".join(f":{name.strip()}" for name in columns.split(","))


@lru_cache(MOST_TEXTS)
def for_sqlite(query: str | Tuned) -> Rendered:
    """Return a statement as SQLite reads it."""
    return _render(query if isinstance(query, str) else query.sqlite, _sqlite_form)


@lru_cache(MOST_TEXTS)
def for_postgres(query: str | Tuned) -> Rendered:
    """Return a statement as psycopg reads it: every percent sign that names no value is doubled."""
    return _render(query if isinstance(query, str) else query.postgres, _postgres_form)


Form: TypeAlias = "Callable[[re.Match[str], list[Arrange]], str]"


def _render(query: str, form: Form) -> Rendered:
    lists: list[Arrange] = []
    text = _FORMS.sub(lambda match: form(match, lists), query)
    forms = list(_FORMS.finditer(query))
    names = dict.fromkeys(match["name"] for match in forms if match["name"])
    return Rendered(text, tuple(names), tuple(lists), any(match["clock"] for match in forms))


def _sqlite_form(match: re.Match[str], lists: list[Arrange]) -> str:
    if name := match["each"]:
        member = _sqlite_member("value", match["type"])
        lists.append(_json_list(name, match["type"]))
        return f"{match['absent'] or ''}in (select {member} from json_each(:{name}))"
    if name := match["rows"]:
        columns = _columns(match["columns"])
        members = (_sqlite_member(f"value ->> {at}", type) + f" as {column}" for at, (column, type) in columns)
        lists.append(_json_rows(name, [type for _, (_, type) in columns]))
        return f"(select {', '.join(members)}, key + 1 as nr from json_each(:{name})) as {match['alias']}"
    if match["key"]:
        return f"on conflict ({match['key']})"
    if match["extreme"]:
        return f"{_EXTREMES[match['extreme'].lower()]}("
    if match["clock"]:
        return f":{CLOCK_NAME}"
    return match[0]


def _postgres_form(match: re.Match[str], lists: list[Arrange]) -> str:
    if name := match["each"]:
        lists.append(_plain_list(name))
        return f"{'<> all' if match['absent'] else '= any'}(%({name})s::{_POSTGRES_TYPES[match['type']]}[])"
    if name := match["rows"]:
        columns = _columns(match["columns"])
        arrays = ", ".join(f"%({name}__{at})s::{_POSTGRES_TYPES[type]}[]" for at, (_, type) in columns)
        lists.append(_plain_columns(name, len(columns)))
        heads = ", ".join(column for _, (column, _) in columns)
        return f"unnest({arrays}) with ordinality as {match['alias']} ({heads}, nr)"
    if match["key"]:
        return f"on conflict (space, {match['key']})"
    if match["clock"]:
        return CLOCK
    if match["name"]:
        return f"%({match['name']})s"
    return match[0].replace("%", "%%")


def _columns(text: str) -> list[tuple[int, tuple[str, str]]]:
    pairs = [part.split() for part in text.split(",")]
    return list(enumerate((name, type) for name, type in pairs))


def _sqlite_member(value: str, type: str) -> str:
    return f"unhex({value})" if type == "bytes" else value


def _json_list(name: str, type: str) -> Arrange:
    if type == "bytes":
        return lambda values: {name: _encoded([value.hex() for value in values[name]])}
    return lambda values: {name: _encoded(list(values[name]))}


def _json_rows(name: str, types: Sequence[str]) -> Arrange:
    if "bytes" not in types:
        return lambda values: {name: _encoded(list(values[name]))}
    return lambda values: {name: _encoded([_hexed(row) for row in values[name]])}


def _hexed(row: Iterable[Any]) -> list[Any]:
    return [value.hex() if isinstance(value, bytes) else value for value in row]


def _plain_list(name: str) -> Arrange:
    return lambda values: {name: list(values[name])}


def _plain_columns(name: str, width: int) -> Arrange:
    def arrange(values: Values) -> dict[str, Any]:
        columns = list(zip(*values[name], strict=True)) or [()] * width
        return {f"{name}__{at}": list(column) for at, column in enumerate(columns)}

    return arrange
