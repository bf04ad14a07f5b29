"""Tables as lines of JSON, exported and imported: projects, tables with their data and tools, and instances.

Keys are no data: none is exported, and an instance that is new where it is imported has none until one is made.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from commonplace.errors import InvalidInput, NotFound
from commonplace.kinds.tables.data_drawer import DataDrawer
from commonplace.kinds.tables.drawer import InstanceDrawer, TableDrawer
from commonplace.kinds.tables.names import check_description, check_instance_name, check_name, check_tool_name
from commonplace.kinds.tables.pointers import parse
from commonplace.kinds.tables.rows import InstanceRow, Missing, ProjectRow, TableRow, ToolRow
from commonplace.kinds.tables.shredding import dumps
from commonplace.kinds.tables.table_catalog import TYPES, Catalog
from commonplace.kinds.tables.tool_instances import Instances, digest, new_key
from commonplace.kinds.tables.values import check, parsed
from commonplace.model import LAST_MOMENT
from commonplace.store.base import Store

_ID = re.compile(r"[a-z0-9]{1,26}")
_LARGEST = 10**18
_PROJECT = ("id", "name", "description", "created_at")
_TABLE = ("id", "project", "name", "description", "searchable", "version", "created_at", "updated_at")
_TOOL = ("id", "json_path", "type", "name", "description", "metadata", "created_at", "updated_at")
_INSTANCE = ("id", "name", "description", "enabled", "created_at")


class Exchange:
    """Export and import of one library's tables. Each line is stored whole or not at all."""

    def __init__(self, store: Store, catalog: Catalog, instances: Instances) -> None:
        self._store, self._catalog, self._instances = store, catalog, instances
        self._table_rows, self._instance_rows = store.drawer(TableDrawer), store.drawer(InstanceDrawer)
        self._data = store.drawer(DataDrawer)

    # export

    def lines(self) -> Iterator[str]:
        """Yield projects, then their tables, then instances. Additions by others meanwhile are left out, whole."""
        projects, exported_tools = self._table_rows.projects(), set[str]()
        for project in projects:
            yield _line("project", project, _PROJECT)
        for table in [table for project in projects for table in self._table_rows.tables(project.id)]:
            if settled := self._settled(table):
                table, text, tools = settled
                exported_tools.update(tool.id for tool in tools)
                tools_json = json.dumps([_fields_of(tool, _TOOL) for tool in tools], ensure_ascii=False)
                yield f'{_line("table", table, _TABLE)[:-1]}, "tools": {tools_json}, "data": {text}}}'
        for instance in self._instance_rows.instances():
            bindings = self._instance_rows.bindings(instance.id)
            tools_json = json.dumps(sorted([one.tool, one.enabled] for one in bindings if one.tool in exported_tools))
            yield f'{_line("instance", instance, _INSTANCE)[:-1]}, "tools": {tools_json}}}'

    def _settled(self, table: TableRow) -> tuple[TableRow, str, list[ToolRow]] | None:
        """Return a table, its data and its tools, all at one version; None where the table is gone."""
        while True:
            text, tools = self._data.text(table.number), self._table_rows.tools(table.number)
            current = self._table_rows.numbered_table(table.number)
            if current is None:
                return None
            if current == table and not isinstance(text, Missing):
                return table, text, tools
            table = current

    # import

    def keep(self, line: str) -> None:
        """Store what a line has. What has its id here is updated; nothing else is overwritten.

        Raise InvalidInput, NotFound or AlreadyExists.
        """
        record: Any = parsed(line, "It", within=())
        with self._store.transaction():
            stores = {"project": self._keep_project, "table": self._keep_table, "instance": self._keep_instance}
            stores[record["kind"]](record)

    def _keep_project(self, record: Mapping[str, Any]) -> None:
        new = ProjectRow(_id(record), _text(record, "name"), _description(record), _number(record, "created_at"))
        projects = self._table_rows.projects()
        check_name("project", new.name, projects, new.id)
        if all(project.id != new.id for project in projects):
            self._table_rows.add_project(new)

    def _keep_table(self, record: Mapping[str, Any]) -> None:
        owner = _id(record, "project")
        if all(project.id != owner for project in self._table_rows.projects()):
            raise NotFound(f'the project "{owner}" of its table is not here')
        name, description, searchable = _text(record, "name"), _description(record), _flag(record)
        table, data = self._table_rows.table(_id(record)), record["data"]
        check(data, "its data")
        if table is None:
            version, (created_at, updated_at) = _number(record, "version", _LARGEST), _times(record)
            row = TableRow(
                0, _id(record), owner, name, description, searchable, 0, 0, 1, None, None, "", created_at, updated_at
            )  # fmt: skip
            table = self._catalog.add_table(row, data)
            self._table_rows.change_table(replace(table, version=max(version, 1), updated_at=updated_at))
        else:
            changes: dict[str, Any] = {"name": name, "description": description, "searchable": searchable}
            is_same_data = self._data.text(table.number) == dumps(data)
            table = self._catalog.update_table(table, changes if is_same_data else {**changes, "data": data})
        for tool in _list(record, "tools"):
            self._catalog.keep_tool(table, _tool(tool))

    def _keep_instance(self, record: Mapping[str, Any]) -> None:
        id, name = _id(record), _text(record, "name")
        check_instance_name(name, self._instance_rows.instances(), id)
        own_instance = self._instance_rows.instance(id)
        secret, hint = (own_instance.digest, own_instance.hint) if own_instance else (digest(new_key("nobody")), "")
        new = InstanceRow(
            id, name, _description(record), _flag(record, "enabled"), secret, hint, _number(record, "created_at")
        )
        self._instance_rows.put_instance(new)
        bound = [_binding(one) for one in _list(record, "tools")]
        for status in (True, False):
            if ids := [tool for tool, enabled in bound if enabled is status]:
                self._instances.bind(new, ids, enabled=status)


def _line(kind: str, row: Any, names: tuple[str, ...]) -> str:
    return json.dumps({"kind": kind, **_fields_of(row, names)}, ensure_ascii=False)


def _fields_of(row: Any, names: tuple[str, ...]) -> dict[str, Any]:
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
    """Return a list of a record, empty where it is absent. Raise InvalidInput."""
    value = record.get(name, [])
    if not isinstance(value, list):
        raise InvalidInput(f"its {name} are no list")
    return value


def _id(record: Mapping[str, Any], name: str = "id") -> str:
    id = _text(record, name)
    if not _ID.fullmatch(id):
        raise InvalidInput(f"its {name} is none")
    return id


def _text(record: Mapping[str, Any], name: str) -> str:
    value = record[name]
    if not isinstance(value, str):
        raise InvalidInput(f"its {name} is no text")
    return value


def _description(record: Mapping[str, Any]) -> str:
    return check_description(_text(record, "description") if "description" in record else "")


def _flag(record: Mapping[str, Any], name: str = "searchable") -> bool:
    value = record.get(name, True)
    if not isinstance(value, bool):
        raise InvalidInput(f"its {name} is neither true nor false")
    return value


def _times(record: Mapping[str, Any]) -> tuple[int, int]:
    return _number(record, "created_at"), _number(record, "updated_at")


def _number(record: Mapping[str, Any], name: str, most: int = LAST_MOMENT) -> int:
    """Return an integer of a record from 0 to `most`, 0 where it is absent. Raise InvalidInput."""
    value = record.get(name, 0)
    if type(value) is not int or not 0 <= value <= most:
        raise InvalidInput(f"its {name} is no number that can be kept")
    return value
