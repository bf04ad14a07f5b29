"""Tables as lines of JSON, out and in again: projects, tables with their data and tools, and instances.

Keys are no data: none is written, and an instance that is new where it comes in has none until one is made.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from commonplace.errors import InvalidInput, NotFound
from commonplace.kinds.tables.catalog import TYPES, Catalog
from commonplace.kinds.tables.instances import Instances
from commonplace.kinds.tables.keys import digest, new_key
from commonplace.kinds.tables.naming import check_description, check_instance_name, check_name, check_tool_name
from commonplace.kinds.tables.pointers import parse
from commonplace.kinds.tables.values import check, parsed
from commonplace.model import LAST_MOMENT
from commonplace.store.shredding import dumps
from commonplace.store.table_base import TableStore
from commonplace.store.table_rows import InstanceRow, Missing, ProjectRow, TableRow, ToolRow

_ID = re.compile(r"[a-z0-9]{1,26}")
_LARGEST = 10**18
_PROJECT = ("id", "name", "description", "created_at")
_TABLE = ("id", "project", "name", "description", "searchable", "version", "created_at", "updated_at")
_TOOL = ("id", "json_path", "type", "name", "description", "metadata", "created_at", "updated_at")
_INSTANCE = ("id", "name", "description", "enabled", "created_at")


class Exchange:
    """Made once per library. What a line brings is stored whole or not at all."""

    def __init__(self, store: TableStore, catalog: Catalog, instances: Instances) -> None:
        self._store, self._catalog, self._instances = store, catalog, instances

    # out

    def lines(self) -> Iterator[str]:
        """Each after what it needs: projects, their tables, instances. What others add meanwhile stays out, whole."""
        projects, written = self._store.projects(), set[str]()
        for project in projects:
            yield _line("project", project, _PROJECT)
        for table in [table for project in projects for table in self._store.tables(project.id)]:
            if settled := self._settled(table):
                table, text, tools = settled
                written.update(tool.id for tool in tools)
                told = json.dumps([_told(tool, _TOOL) for tool in tools], ensure_ascii=False)
                yield f'{_line("table", table, _TABLE)[:-1]}, "tools": {told}, "data": {text}}}'
        for instance in self._store.instances():
            bound = [[one.tool, one.enabled] for one in self._store.bindings(instance.id) if one.tool in written]
            told = json.dumps(sorted(bound))
            yield f'{_line("instance", instance, _INSTANCE)[:-1]}, "tools": {told}}}'

    def _settled(self, table: TableRow) -> tuple[TableRow, str, list[ToolRow]] | None:
        """A table at one version, whoever changes it meanwhile; None where it is gone by now."""
        while True:
            text, tools = self._store.table_text(table.number), self._store.tools(table.number)
            now = self._store.numbered_table(table.number)
            if now is None:
                return None
            if now == table and not isinstance(text, Missing):
                return table, text, tools
            table = now

    # in

    def keep(self, line: str) -> None:
        """Store what a line has. What is here by the same id is brought up to it; no other thing is written over."""
        record: Any = parsed(line, "It", within=())
        with self._store.transaction():
            ways = {"project": self._keep_project, "table": self._keep_table, "instance": self._keep_instance}
            ways[record["kind"]](record)

    def _keep_project(self, record: Mapping[str, Any]) -> None:
        new = ProjectRow(_id(record), _text(record, "name"), _description(record), _number(record, "created_at"))
        there = self._store.projects()
        check_name("project", new.name, there, new.id)
        if all(project.id != new.id for project in there):
            self._store.add_project(new)

    def _keep_table(self, record: Mapping[str, Any]) -> None:
        owner = _id(record, "project")
        if all(project.id != owner for project in self._store.projects()):
            raise NotFound(f'the project "{owner}" of its table is not here')
        name, description, searchable = _text(record, "name"), _description(record), _flag(record)
        table, data = self._store.table(_id(record)), record["data"]
        check(data, "its data")
        if table is None:
            version, (made, changed) = _number(record, "version", _LARGEST), _times(record)
            row = TableRow(
                0, _id(record), owner, name, description, searchable, 0, 0, 1, None, None, "", made, changed
            )  # fmt: skip
            table = self._catalog.add_table(row, data)
            self._store.change_table(replace(table, version=max(version, 1), updated_at=changed))
        else:
            told: dict[str, Any] = {"name": name, "description": description, "searchable": searchable}
            same = self._store.table_text(table.number) == dumps(data)
            table = self._catalog.update_table(table, told if same else {**told, "data": data})
        for tool in _list(record, "tools"):
            self._catalog.keep_tool(table, _tool(tool))

    def _keep_instance(self, record: Mapping[str, Any]) -> None:
        id, name = _id(record), _text(record, "name")
        check_instance_name(name, self._store.instances(), id)
        there = self._store.instance(id)
        secret, hint = (there.digest, there.hint) if there else (digest(new_key("nobody")), "")
        new = InstanceRow(
            id, name, _description(record), _flag(record, "enabled"), secret, hint, _number(record, "created_at")
        )
        self._store.put_instance(new)
        bound = [_binding(one) for one in _list(record, "tools")]
        for status in (True, False):
            if ids := [tool for tool, enabled in bound if enabled is status]:
                self._instances.bind(new, ids, enabled=status)


def _line(kind: str, row: Any, names: tuple[str, ...]) -> str:
    return json.dumps({"kind": kind, **_told(row, names)}, ensure_ascii=False)


def _told(row: Any, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: getattr(row, name) for name in names}


def _tool(record: Any) -> ToolRow:
    if not isinstance(record, dict):
        raise InvalidInput("a tool of it is no object")
    type, path = _text(record, "type"), _text(record, "json_path")
    if type not in TYPES:
        raise InvalidInput(f'"{type[:80]}" is no type of tool')
    parse(path)
    metadata = record.get("metadata", {})
    if not isinstance(metadata, dict):
        raise InvalidInput("the metadata of a tool is no object")
    name = check_tool_name(_text(record, "name"))
    return ToolRow(_id(record), 0, path, type, name, _description(record), metadata, *_times(record))


def _binding(one: Any) -> tuple[str, bool]:
    if not (isinstance(one, list) and len(one) == 2 and isinstance(one[0], str) and isinstance(one[1], bool)):
        raise InvalidInput("a tool that it is bound to is not told as its id and whether it is enabled")
    return one[0], one[1]


def _list(record: Mapping[str, Any], name: str) -> list[Any]:
    found = record.get(name, [])
    if not isinstance(found, list):
        raise InvalidInput(f"its {name} are no list")
    return found


def _id(record: Mapping[str, Any], name: str = "id") -> str:
    found = _text(record, name)
    if not _ID.fullmatch(found):
        raise InvalidInput(f"its {name} is none")
    return found


def _text(record: Mapping[str, Any], name: str) -> str:
    found = record[name]
    if not isinstance(found, str):
        raise InvalidInput(f"its {name} is no text")
    return found


def _description(record: Mapping[str, Any]) -> str:
    return check_description(_text(record, "description") if "description" in record else "")


def _flag(record: Mapping[str, Any], name: str = "searchable") -> bool:
    found = record.get(name, True)
    if not isinstance(found, bool):
        raise InvalidInput(f"its {name} is neither true nor false")
    return found


def _times(record: Mapping[str, Any]) -> tuple[int, int]:
    return _number(record, "created_at"), _number(record, "updated_at")


def _number(record: Mapping[str, Any], name: str, most: int = LAST_MOMENT) -> int:
    found = record.get(name, 0)
    if type(found) is not int or not 0 <= found <= most:
        raise InvalidInput(f"its {name} is no number that can be kept")
    return found
