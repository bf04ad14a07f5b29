"""Drawers of what can be listed: projects, tables and their tools; and instances with the tools bound to them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from commonplace.kinds.tables import LISTED
from commonplace.kinds.tables.rows import (
    INSTANCE_COLUMNS,
    TABLE_COLUMNS,
    TOOL_COLUMNS,
    BindingRow,
    InstanceRow,
    ProjectRow,
    TableRow,
    ToolRow,
)
from commonplace.store.dialect import marks
from commonplace.store.session import Drawer, StoreSession, reads, writes
from commonplace.store.shaping import json_text, now_micros

_LISTED_ANEW = """insert into settings (name, value) values (:name, '1')
    on conflict key(name) do update set value = cast(cast(settings.value as bigint) + 1 as text)"""
_NAMES = TOOL_COLUMNS.split(", ")
_TOOLS = f"select {', '.join(f'tools.{name}' for name in _NAMES)} from tools"
_PUT_TOOL = f"""insert into tools ({TOOL_COLUMNS}) values ({marks(TOOL_COLUMNS)})
    on conflict key(id) do update set {", ".join(f"{name} = excluded.{name}" for name in _NAMES[1:])}"""
_TABLES = f"select {TABLE_COLUMNS} from tables"
_ADD_TABLE = f"insert into tables ({TABLE_COLUMNS}) values ({marks(TABLE_COLUMNS)})"
_CHANGE_TABLE = """update tables set name = :name, description = :description, searchable = :searchable,
    version = :version, size = :size, generation = :generation, building = :building, leaving = :leaving,
    basis = :basis, updated_at = :updated_at where number = :number"""
_COUNT_WRITE = f"""update tables set version = version + 1, updated_at = :now,
      size = (select size from fragments where parent = -cast(:number as bigint))
    where number = :number returning {TABLE_COLUMNS}"""
_INSTANCES = f"select {INSTANCE_COLUMNS} from instances"
_PUT_INSTANCE = f"""insert into instances ({INSTANCE_COLUMNS}) values ({marks(INSTANCE_COLUMNS)})
    on conflict key(id) do update set name = excluded.name, description = excluded.description,
      enabled = excluded.enabled, digest = excluded.digest, hint = excluded.hint"""
_BIND = """insert into bindings (instance, tool, enabled) values (:instance, :tool, :enabled)
    on conflict key(instance, tool) do update set enabled = excluded.enabled"""
_BINDINGS = "select instance, tool, enabled from bindings"
_SERVED = f"""{_TOOLS} join bindings on bindings.tool = tools.id join instances on instances.id = bindings.instance
    where bindings.instance = :instance and bindings.enabled and instances.enabled"""


class TableDrawer(Drawer):
    """Projects, tables and their tools. Each change of what can be listed raises `state`."""

    @reads
    def state(self) -> int:
        """Return a number that rises with every change of what can be listed."""
        row = self._db.row("select value from settings where name = :name", {"name": LISTED})
        return int(row[0]) if row else 0

    # projects

    @writes
    def add_project(self, project: ProjectRow) -> None:
        """Store a project."""
        self._db.run(
            "insert into projects (id, name, description, created_at) values (:id, :name, :description, :created_at)",
            _values(project, ("id", "name", "description", "created_at")),
        )
        count_change(self._db)

    @reads
    def projects(self) -> list[ProjectRow]:
        """Return the projects by name."""
        rows = self._db.all("select id, name, description, created_at from projects order by name")
        return [ProjectRow(*row) for row in rows]

    @writes
    def drop_project(self, project: str) -> None:
        """Remove a project, which has no tables."""
        self._db.run("delete from projects where id = :id", {"id": project})
        count_change(self._db)

    # tables

    @writes
    def add_table(self, table: TableRow) -> TableRow:
        """Store a table, without its data, and return it with its number."""
        numbered = replace(table, number=self._db.next("part"))
        self._db.run(_ADD_TABLE, _table_values(numbered))
        count_change(self._db)
        return numbered

    @reads
    def tables(self, project: str | None = None) -> list[TableRow]:
        """Return the tables, or those of a project, by name."""
        where = "" if project is None else "where project = :project"
        return [_table(row) for row in self._db.all(f"{_TABLES} {where} order by name, id", {"project": project})]

    @reads
    def table(self, table: str) -> TableRow | None:
        """Return the table of an id, or None."""
        row = self._db.row(f"{_TABLES} where id = :id", {"id": table})
        return _table(row) if row else None

    @reads
    def numbered_table(self, number: int) -> TableRow | None:
        """Return the table of a number, or None."""
        row = self._db.row(f"{_TABLES} where number = :number", {"number": number})
        return _table(row) if row else None

    @writes
    def change_table(self, table: TableRow) -> None:
        """Store what can change of a table."""
        self._db.run(_CHANGE_TABLE, _table_values(table))
        count_change(self._db)

    @writes
    def table_written(self, number: int) -> TableRow:
        """Count one change of a table's data, and return the table."""
        row: Any = self._db.row(_COUNT_WRITE, {"now": now_micros(), "number": number})
        return _table(row)

    @writes
    def drop_table(self, number: int) -> None:
        """Remove a table with its data and tools. Its items are the caller's to delete."""
        for statement in (
            "delete from bindings where tool in (select id from tools where tbl = :number)",
            "delete from tools where tbl = :number",
            "delete from fragments where tbl = :number",
            "delete from dirty_places where tbl = :number",
            "delete from table_jobs where tbl = :number",
            "delete from tables where number = :number",
        ):
            self._db.run(statement, {"number": number})
        count_change(self._db)

    # tools

    @writes
    def put_tool(self, tool: ToolRow) -> None:
        """Store a tool, or what has changed of it."""
        values = {**_values(tool, _NAMES[2:]), "id": tool.id, "tbl": tool.table}
        path = spelled(self._db, tool.json_path)
        self._db.run(_PUT_TOOL, {**values, "json_path": path, "metadata": json_text(tool.metadata)})
        count_change(self._db)

    @reads
    def tools(self, table: int | None = None) -> list[ToolRow]:
        """Return the tools, or those of a table, by name."""
        where = "" if table is None else "where tbl = :table"
        return _tools(self._db.all(f"{_TOOLS} {where} order by tools.name, id", {"table": table}))

    @reads
    def search_tools(self, table: int) -> list[ToolRow]:
        """Return the search tools of a table."""
        return _tools(self._db.all(f"{_TOOLS} where tbl = :table and type = 'search' order by id", {"table": table}))

    @reads
    def tool(self, tool: str) -> ToolRow | None:
        """Return the tool of an id, or None."""
        return next(iter(_tools(self._db.all(f"{_TOOLS} where id = :id", {"id": tool}))), None)

    @writes
    def tools_started(self, table: int, now: int) -> None:
        """Note that the index of search tools which were just set up is being made."""
        statement = "update tools set started_at = :now where tbl = :table and started_at is null"
        self._db.run(statement, {"now": now, "table": table})

    @writes
    def tools_indexed(self, table: int, now: int) -> None:
        """Note that the index of a table's search tools is level with its data."""
        self._db.run(
            """update tools set indexed_at = :now, started_at = coalesce(started_at, :now)
               where tbl = :table and type = 'search'""",
            {"now": now, "table": table},
        )

    @writes
    def drop_tool(self, tool: str) -> int:
        """Remove a tool and its bindings, and return how many of those there were."""
        unbound = self._db.all("delete from bindings where tool = :tool returning 1", {"tool": tool})
        self._db.run("delete from tools where id = :tool", {"tool": tool})
        count_change(self._db)
        return len(unbound)


class InstanceDrawer(Drawer):
    """Instances, and the tools bound to each."""

    @writes
    def put_instance(self, instance: InstanceRow) -> None:
        """Store an instance, or what has changed of it."""
        self._db.run(_PUT_INSTANCE, _values(instance, INSTANCE_COLUMNS.split(", ")))
        count_change(self._db)

    @reads
    def instances(self) -> list[InstanceRow]:
        """Return the instances by name."""
        return [_instance(row) for row in self._db.all(f"{_INSTANCES} order by name")]

    @reads
    def instance(self, instance: str) -> InstanceRow | None:
        """Return the instance of an id, or None."""
        row = self._db.row(f"{_INSTANCES} where id = :id", {"id": instance})
        return _instance(row) if row else None

    @reads
    def named_instance(self, name: str) -> InstanceRow | None:
        """Return the instance of a name, or None."""
        row = self._db.row(f"{_INSTANCES} where name = :name", {"name": name})
        return _instance(row) if row else None

    @writes
    def drop_instance(self, instance: str) -> None:
        """Remove an instance with its bindings."""
        self._db.run("delete from bindings where instance = :id", {"id": instance})
        self._db.run("delete from instances where id = :id", {"id": instance})
        count_change(self._db)

    @writes
    def bind_tools(self, instance: str, tools: Sequence[str], *, enabled: bool) -> None:
        """Bind tools to an instance. A pair that is bound already gets the status."""
        self._db.run_all(_BIND, [(instance, tool, enabled) for tool in tools])
        count_change(self._db)

    @writes
    def unbind_tools(self, instance: str, tools: Sequence[str]) -> None:
        """Remove the bindings of tools to an instance."""
        self._db.run(
            "delete from bindings where instance = :instance and tool in each(:tools text)",
            {"instance": instance, "tools": tools},
        )
        count_change(self._db)

    @reads
    def bindings(self, instance: str | None = None) -> list[BindingRow]:
        """Return the bindings, or those of an instance."""
        where = "" if instance is None else "where instance = :instance"
        rows = self._db.all(f"{_BINDINGS} {where} order by instance, tool", {"instance": instance})
        return [BindingRow(owner, tool, bool(enabled)) for owner, tool, enabled in rows]

    @reads
    def instances_with(self, tool: str) -> list[str]:
        """Return the instances that a tool is bound to."""
        rows = self._db.all("select instance from bindings where tool = :tool order by instance", {"tool": tool})
        return [instance for (instance,) in rows]

    @reads
    def bound_tools(self, instance: str, name: str | None = None) -> list[ToolRow]:
        """Return the tools that an enabled instance serves, by name; only the one of a name where one is given."""
        only = "" if name is None else "and tools.name = :name"
        rows = self._db.all(f"{_SERVED} {only} order by tools.name", {"instance": instance, "name": name})
        return _tools(rows)


def count_change(session: StoreSession) -> None:
    """Raise the number that tells one state of what can be listed from another."""
    session.run(_LISTED_ANEW, {"name": LISTED})


def spelled(session: StoreSession, text: str) -> str | bytes:
    """Return a key or a pointer as the database holds it: PostgreSQL takes U+0000 in no text, so they are bytes."""
    return text.encode() if session.dialect == "postgres" else text


def read_back(value: str | bytes) -> str:
    """Return a key or a pointer that the database holds."""
    return value.decode() if isinstance(value, bytes) else value


def _values(row: object, names: Sequence[str]) -> dict[str, Any]:
    return {name: getattr(row, name) for name in names}


def _table_values(table: TableRow) -> dict[str, Any]:
    return _values(table, TABLE_COLUMNS.split(", "))


def _table(row: tuple[Any, ...]) -> TableRow:
    number, identity, project, name, description, searchable, *rest = row
    return TableRow(number, identity, project, name, description, bool(searchable), *rest)


def _instance(row: tuple[Any, ...]) -> InstanceRow:
    identity, name, description, enabled, *rest = row
    return InstanceRow(identity, name, description, bool(enabled), *rest)


def _tools(rows: Iterable[tuple[Any, ...]]) -> list[ToolRow]:
    return [
        ToolRow(identity, table, read_back(path), type, name, description, json.loads(metadata), *times)
        for identity, table, path, type, name, description, metadata, *times in rows
    ]
