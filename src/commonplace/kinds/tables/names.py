"""Find projects, tables, tools and instances by id or name, and check new names."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from typing import Protocol, TypeVar

from commonplace.errors import AlreadyExists, InvalidInput, NotFound
from commonplace.kinds.tables.drawer import InstanceDrawer, TableDrawer
from commonplace.kinds.tables.rows import InstanceRow, ProjectRow, TableRow, ToolRow

TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
INSTANCE_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
LONGEST_NAME = 200
LONGEST_DESCRIPTION = 4000
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_DIGITS = "0123456789"


class Named(Protocol):
    """A row with an id and a name."""

    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...


N = TypeVar("N", bound=Named)


def new_id() -> str:
    """Return an opaque id: a letter, then eleven letters and digits."""
    return secrets.choice(_LETTERS) + "".join(secrets.choice(_LETTERS + _DIGITS) for _ in range(11))


def find_project(rows: TableDrawer, wanted: str) -> ProjectRow:
    """Return a project by id or name. Raise NotFound, or InvalidInput where several have the name."""
    return _one("project", wanted, rows.projects(), "project_id")


def find_table(rows: TableDrawer, wanted: str, argument: str = "table_id") -> TableRow:
    """Return a table by id or name. Raise NotFound, or InvalidInput where several have the name."""
    return rows.table(wanted) or _one("table", wanted, rows.tables(), argument)


def find_tool(rows: TableDrawer, wanted: str, argument: str = "tool_id") -> ToolRow:
    """Return a tool by id or name. Raise NotFound, or InvalidInput where several have the name."""
    return rows.tool(wanted) or _one("tool", wanted, rows.tools(), argument)


def find_instance(rows: InstanceDrawer, wanted: str) -> InstanceRow:
    """Return an instance by id or name. Raise NotFound."""
    return rows.instance(wanted) or _one("instance", wanted, rows.instances(), "instance_id")


def _one(noun: str, wanted: str, among: Sequence[N], argument: str) -> N:
    for row in among:
        if row.id == wanted:
            return row
    namesakes = [row for row in among if row.name == wanted]
    if len(namesakes) == 1:
        return namesakes[0]
    shown = wanted if len(wanted) <= 60 else f"{wanted[:60]}…"
    if namesakes:
        ids = ", ".join(row.id for row in namesakes[:10])
        raise InvalidInput(f'More than one {noun} is called "{shown}". Use an id: {ids}.', argument=argument)
    raise NotFound(f'There is no {noun} "{shown}". {noun}_list shows them.', argument=argument)


def check_name(noun: str, name: str, taken: Sequence[Named], own: str = "") -> str:
    """Return a name for a project or table that no other has. Raise InvalidInput or AlreadyExists."""
    if not name.strip() or len(name) > LONGEST_NAME or not name.isprintable():
        raise InvalidInput(
            f"name must be 1 to {LONGEST_NAME} printable characters, not blank, not {len(name)} characters like that.",
            argument="name",
        )
    return _free(noun, name, taken, own)


def check_tool_name(name: str) -> str:
    """Return a name that a tool can have. Raise InvalidInput."""
    if not TOOL_NAME.fullmatch(name):
        raise InvalidInput(f'name must be 1 to 64 of A-Z, a-z, 0-9, _ and -, not "{name[:80]}".', argument="name")
    return name


def check_instance_name(name: str, taken: Sequence[Named], own: str = "") -> str:
    """Return a name for an instance that no other has. Raise InvalidInput or AlreadyExists."""
    if not INSTANCE_NAME.fullmatch(name):
        raise InvalidInput(
            f'name must be 1 to 63 of a-z, 0-9 and -, first a letter or digit, not "{name[:80]}".', argument="name"
        )
    return _free("instance", name, taken, own)


def _free(noun: str, name: str, taken: Sequence[Named], own: str) -> str:
    if any(row.name == name and row.id != own for row in taken):
        article = "an" if noun == "instance" else "a"
        raise AlreadyExists(f'There is already {article} {noun} "{name}". Choose another name.', argument="name")
    return name


def check_description(text: str) -> str:
    """Return a description that can be stored. Raise InvalidInput."""
    if "\0" in text:
        raise InvalidInput("description must not have U+0000. Remove it.", argument="description")
    if len(text) > LONGEST_DESCRIPTION:
        raise InvalidInput(
            f"description must have at most {LONGEST_DESCRIPTION} characters, not {len(text)}.", argument="description"
        )
    return text
