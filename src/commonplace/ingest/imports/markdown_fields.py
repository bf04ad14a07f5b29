"""The fields of a Markdown file: front matter, and sections whose headings name a field.

Front matter is the YAML between `---` lines, or the TOML between `+++` lines, at the head of a text.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, time
from typing import Any, NamedTuple

import yaml

from commonplace.ingest.imports.import_file import Remarks, Unreadable, moment, plain_json
from commonplace.text.structure import blocks, plain

LONGEST = 65_536
"""Front matter beyond so many characters is none: it is data, and what it says would not fit an item's metadata."""
MOST_VALUES = 10_000
MOST_FAST, MOST_BRACKETS = 8_192, 100

_OPENING = re.compile(r"(---|\+\+\+)[ \t]*(?:\r\n|\r|\n)")
_CLOSING = {
    "---": re.compile(r"^(?:---|\.\.\.)[ \t]*(?:\r\n|\r|\n|\Z)", re.MULTILINE),
    "+++": re.compile(r"^\+\+\+[ \t]*(?:\r\n|\r|\n|\Z)", re.MULTILINE),
}
_COMPACT = re.compile(r"(?:[-?:][ \t]+){3}")
_BLANK_LINES = re.compile(r"(?:[ \t]*(?:\r\n|\r|\n))*")


class NoNames(Unreadable):
    """A text or a list between the lines, which is no front matter."""


@dataclass(frozen=True, slots=True)
class Parted:
    """A text and its front matter."""

    fields: dict[str, Any]
    body: str


def part(text: str, remarks: Remarks) -> Parted:
    """Return the front matter and what follows it. Where it is broken the whole text is the body, with a warning."""
    opened = _OPENING.match(text)
    if opened is None:
        return Parted({}, text)
    fence = opened[1]
    closed = _CLOSING[fence].search(text, opened.end(), opened.end() + LONGEST)
    if closed is None:
        long = _CLOSING[fence].search(text, opened.end()) is not None
        why = f"has more than {LONGEST:,} characters" if long else f"is never closed by {fence}"
        remarks.warn(f"the front matter {why}; the whole file was taken as text", 1)
        return Parted({}, text)
    source = text[opened.end() : closed.start()]
    try:
        fields = _yaml(source) if fence == "---" else _toml(source)
    except Unreadable as error:
        remarks.warn(f"the front matter cannot be read ({error}); the whole file was taken as text", error.line or 1)
        return Parted({}, text)
    after = _BLANK_LINES.match(text, closed.end())
    return Parted(fields, text[after.end() if after else closed.end() :])


def fields_of(matter: str) -> dict[str, Any]:
    """Return the names and values of front matter, which is given with its fences. Raise Unreadable, and say why."""
    opened = _OPENING.match(matter)
    closed = _CLOSING[opened[1]].search(matter, opened.end()) if opened else None
    if opened is None or closed is None:
        raise NoNames("it is not between two fences")
    if closed.start() - opened.end() > LONGEST:
        raise Unreadable(f"it has more than {LONGEST:,} characters")
    source = matter[opened.end() : closed.start()]
    return _yaml(source) if opened[1] == "---" else _toml(source)


def _yaml(source: str) -> dict[str, Any]:
    try:
        fields = _loaded(source)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 2 if error.problem_mark else None
        raise Unreadable(error.problem or "it is no YAML", line) from None
    except RecursionError:
        raise Unreadable("it is nested too deeply") from None
    except (yaml.YAMLError, ValueError, TypeError, AttributeError, KeyError, OverflowError) as error:
        # Its constructors fail in many ways: a 13th month, a key that is a list, `!!timestamp x`.
        raise Unreadable(" ".join(str(error).split())[:100] or "it is no YAML") from None
    if fields is None:
        return {}
    if not isinstance(fields, dict):
        raise NoNames("it holds no names and values")
    return _values(fields)


def _loaded(source: str) -> Any:
    """Return the value, by the fast loader where nothing is nested so deep that it would end the process.

    That one takes an eighth of the time. What it refuses the other reads again, and says in its own words what is
    wrong.
    """
    fast = getattr(yaml, "CSafeLoader", None)
    shallow = len(source) <= MOST_FAST and source.count("[") + source.count("{") <= MOST_BRACKETS
    if fast is not None and shallow and not _COMPACT.search(source):
        with suppress(Exception):
            return yaml.load(source, fast)  # noqa: S506 - a safe one, too
    return yaml.safe_load(source)


def _toml(source: str) -> dict[str, Any]:
    try:
        return _values(tomllib.loads(source))
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"at line (\d+)", str(error))
        raise Unreadable(str(error), int(line[1]) + 1 if line else None) from None
    except RecursionError:
        raise Unreadable("it is nested too deeply") from None


def _values(fields: dict[Any, Any]) -> dict[str, Any]:
    """Return only what JSON has: a moment becomes text. Refuse aliases that multiply, or bite their tail."""
    allowance = MOST_VALUES

    def value(member_value: Any, depth: int) -> Any:
        nonlocal allowance
        allowance -= 1
        if allowance < 0 or depth > 20:
            raise Unreadable("it holds too much")
        if isinstance(member_value, dict):
            return {name(key): value(member, depth + 1) for key, member in member_value.items()}
        if isinstance(member_value, list):
            return [value(member, depth + 1) for member in member_value]
        if isinstance(member_value, datetime):
            return moment(member_value) or member_value.isoformat()
        if isinstance(member_value, date | time):
            return member_value.isoformat()
        return plain_json(member_value)

    def name(key: Any) -> str:
        if isinstance(key, str | int | float | date) or key is None:
            return str(plain_json(str(key)))
        raise Unreadable("a name in it is no text")

    return {name(key): value(member, 1) for key, member in fields.items()}


class Sections(NamedTuple):
    """A body taken apart. Nothing of it is in two of these, and only headings are in none."""

    heading: str
    """The first one that names no field."""
    fields: dict[str, str]
    """The text under each heading that names a field."""
    rest: str
    """The text under none; without `heading` where that is the title."""


def read_sections(body: str, names: Mapping[str, str], title: object, *, ended_by_equals: bool) -> Sections:
    """Return a body taken apart. `names`: fields by what a heading may say.

    `title`: the title of the whole, where known. `ended_by_equals`: whether a section ends at any heading of its level,
    not just at one above it or of a field.
    """
    body = body.replace("\r\n", "\n").replace("\r", "\n")
    lines = body.split("\n")
    heads = [(block, plain(block.source)) for block in blocks(body) if block.kind == "heading"]
    fields = [(block, names.get(text.casefold().rstrip(":").replace("_", " "))) for block, text in heads]
    text_by_field: dict[str, str] = {}
    first, rest, at = "", list[str](), 0
    for number, (block, field) in enumerate(fields):
        if field:
            lowest = block.level if ended_by_equals else block.level - 1
            ends = (later.line for later, other in fields[number + 1 :] if other or later.level <= lowest)
            rest += lines[at : block.line]
            at = next(ends, len(lines))
            section_text = "\n".join(lines[block.end : at]).strip()
            text_by_field[field] = f"{text_by_field.get(field, '')}\n\n{section_text}".strip()
        elif not first:
            first = heads[number][1]
            if block.line >= at and (not title or title == first):
                rest += lines[at : block.line]
                at = block.end
    return Sections(first, text_by_field, "\n".join((*rest, *lines[at:])).strip())
