"""The store on SQLite: projects, tables, their tools, instances and bindings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import apsw

from commonplace.store.shaping import json_text, now_micros
from commonplace.store.sqlite.items import consistent, guarded
from commonplace.store.sqlite.table_data import SqliteTableData
from commonplace.store.table_rows import (
    INSTANCE_COLUMNS,
    TABLE_COLUMNS,
    TABLES_STATE,
    TOOL_COLUMNS,
    BindingRow,
    InstanceRow,
    ProjectRow,
    TableRow,
    ToolRow,
    tool_from,
)


class SqliteTableRows(SqliteTableData):
    """Everything about tables but what is in them. Each change of what can be listed raises `tables_state`."""

    @guarded
    def tables_state(self) -> int:
        row: Any = (
            self._database.reading().execute("select value from settings where name = ?", (TABLES_STATE,)).fetchone()
        )
        return int(row[0]) if row else 0

    # projects

    @guarded
    def add_project(self, project: ProjectRow) -> None:
        with self._database.writing() as db:
            db.execute(
                "insert into projects values (?, ?, ?, ?)",
                (project.id, project.name, project.description, project.created_at),
            )
            _touch(db)

    @guarded
    def projects(self) -> list[ProjectRow]:
        query = "select id, name, description, created_at from projects order by name"
        return [ProjectRow(*row) for row in self._database.reading().execute(query)]

    @guarded
    def drop_project(self, project: str) -> None:
        with self._database.writing() as db:
            db.execute("delete from projects where id = ?", (project,))
            _touch(db)

    # tables

    @guarded
    def add_table(self, table: TableRow) -> TableRow:
        """Store a table, without its data, and return it with its number."""
        with self._database.writing() as db:
            db.execute(
                f"insert into tables ({TABLE_COLUMNS}) values (null, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    table.id, table.project, table.name, table.description, int(table.searchable), table.version,
                    table.size, table.generation, table.building, table.leaving, table.basis, table.created_at,
                    table.updated_at,
                ),
            )  # fmt: skip
            number = db.last_insert_rowid()
            _touch(db)
        return replace(table, number=number)

    @guarded
    def tables(self, project: str | None = None) -> list[TableRow]:
        query = f"select {TABLE_COLUMNS} from tables where :project is null or project = :project order by name, id"
        return [_table(row) for row in self._database.reading().execute(query, {"project": project})]

    @guarded
    def table(self, table: str) -> TableRow | None:
        """Return the table of an id, or None."""
        row: Any = (
            self._database.reading().execute(f"select {TABLE_COLUMNS} from tables where id = ?", (table,)).fetchone()
        )
        return _table(row) if row else None

    @guarded
    def numbered_table(self, number: int) -> TableRow | None:
        query = f"select {TABLE_COLUMNS} from tables where number = ?"
        row: Any = self._database.reading().execute(query, (number,)).fetchone()
        return _table(row) if row else None

    @guarded
    def change_table(self, table: TableRow) -> None:
        """Store what can change of a table."""
        with self._database.writing() as db:
            db.execute(
                """update tables set name = ?, description = ?, searchable = ?, version = ?, size = ?, generation = ?,
                     building = ?, leaving = ?, basis = ?, updated_at = ? where number = ?""",
                (
                    table.name, table.description, int(table.searchable), table.version, table.size, table.generation,
                    table.building, table.leaving, table.basis, table.updated_at, table.number,
                ),
            )  # fmt: skip
            _touch(db)

    @guarded
    def table_written(self, number: int) -> TableRow:
        """Count one change of a table's data, and return the table."""
        with self._database.writing() as db:
            row: Any = db.execute(
                f"""update tables set version = version + 1, updated_at = :now,
                      size = (select size from fragments where parent = -:number)
                    where number = :number returning {TABLE_COLUMNS}""",
                {"now": now_micros(), "number": number},
            ).fetchone()
            return _table(row)

    @guarded
    def drop_table(self, number: int) -> None:
        """Remove a table with its data and tools. Its items are the caller's to delete."""
        with self._database.writing() as db:
            tools = "select id from tools where tbl = :number"
            for statement in (
                f"delete from bindings where tool in ({tools})",
                "delete from tools where tbl = :number",
                "delete from fragments where tbl = :number",
                "delete from dirty_places where tbl = :number",
                "delete from table_jobs where tbl = :number",
                "delete from tables where number = :number",
            ):
                db.execute(statement, {"number": number})
            _touch(db)

    # tools

    @guarded
    def put_tool(self, tool: ToolRow) -> None:
        """Store a tool, or what has changed of it."""
        with self._database.writing() as db:
            db.execute(
                f"insert or replace into tools ({TOOL_COLUMNS}) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    tool.id, tool.table, tool.json_path, tool.type, tool.name, tool.description,
                    json_text(tool.metadata), tool.created_at, tool.updated_at,
                    tool.configured_at, tool.started_at, tool.indexed_at,
                ),
            )  # fmt: skip
            _touch(db)

    @guarded
    def tools(self, table: int | None = None) -> list[ToolRow]:
        query = f"select {TOOL_COLUMNS} from tools where :tbl is null or tbl = :tbl order by name, id"
        return [tool_from(row) for row in self._database.reading().execute(query, {"tbl": table})]

    @guarded
    def search_tools(self, table: int) -> list[ToolRow]:
        query = f"select {TOOL_COLUMNS} from tools where tbl = ? and type = 'search' order by id"
        return [tool_from(row) for row in self._database.reading().execute(query, (table,))]

    @guarded
    def tool(self, tool: str) -> ToolRow | None:
        row: Any = (
            self._database.reading().execute(f"select {TOOL_COLUMNS} from tools where id = ?", (tool,)).fetchone()
        )
        return tool_from(row) if row else None

    @guarded
    def tools_started(self, table: int, now: int) -> None:
        """Note that the index of search tools which were just set up is being made."""
        query = "select 1 from tools where tbl = ? and started_at is null and type = 'search' limit 1"
        if not self._database.reading().execute(query, (table,)).fetchone():
            return
        with self._database.writing() as db:
            db.execute("update tools set started_at = ? where tbl = ? and started_at is null", (now, table))

    @guarded
    def tools_indexed(self, table: int, now: int) -> None:
        with self._database.writing() as db:
            db.execute(
                """update tools set indexed_at = :now, started_at = coalesce(started_at, :now)
                   where tbl = :tbl and type = 'search'""",
                {"now": now, "tbl": table},
            )

    @guarded
    def drop_tool(self, tool: str) -> int:
        """Remove a tool and its bindings, and return how many of those there were."""
        with self._database.writing() as db:
            db.execute("delete from bindings where tool = ?", (tool,))
            unbound = db.changes()
            db.execute("delete from tools where id = ?", (tool,))
            _touch(db)
            return unbound

    # instances

    @guarded
    def put_instance(self, instance: InstanceRow) -> None:
        with self._database.writing() as db:
            db.execute(
                f"""insert into instances ({INSTANCE_COLUMNS}) values (?, ?, ?, ?, ?, ?, ?)
                    on conflict (id) do update set name = excluded.name, description = excluded.description,
                      enabled = excluded.enabled, digest = excluded.digest, hint = excluded.hint""",
                (
                    instance.id, instance.name, instance.description, int(instance.enabled), instance.digest,
                    instance.hint, instance.created_at,
                ),
            )  # fmt: skip
            _touch(db)

    @guarded
    def instances(self) -> list[InstanceRow]:
        query = f"select {INSTANCE_COLUMNS} from instances order by name"
        return [_instance(row) for row in self._database.reading().execute(query)]

    @guarded
    def instance(self, instance: str) -> InstanceRow | None:
        query = f"select {INSTANCE_COLUMNS} from instances where id = ?"
        row: Any = self._database.reading().execute(query, (instance,)).fetchone()
        return _instance(row) if row else None

    @guarded
    def named_instance(self, name: str) -> InstanceRow | None:
        query = f"select {INSTANCE_COLUMNS} from instances where name = ?"
        row: Any = self._database.reading().execute(query, (name,)).fetchone()
        return _instance(row) if row else None

    @guarded
    def drop_instance(self, instance: str) -> None:
        with self._database.writing() as db:
            db.execute("delete from bindings where instance = ?", (instance,))
            db.execute("delete from instances where id = ?", (instance,))
            _touch(db)

    # bindings

    @guarded
    def bind_tools(self, instance: str, tools: Sequence[str], *, enabled: bool) -> None:
        with self._database.writing() as db:
            db.executemany(
                "insert or replace into bindings values (?, ?, ?)", [(instance, tool, int(enabled)) for tool in tools]
            )
            _touch(db)

    @guarded
    def unbind_tools(self, instance: str, tools: Sequence[str]) -> None:
        with self._database.writing() as db:
            db.executemany("delete from bindings where instance = ? and tool = ?", [(instance, tool) for tool in tools])
            _touch(db)

    @guarded
    def bindings(self, instance: str | None = None) -> list[BindingRow]:
        query = "select instance, tool, enabled from bindings where :instance is null or instance = :instance"
        rows = self._database.reading().execute(query, {"instance": instance})
        return [BindingRow(found, tool, bool(enabled)) for found, tool, enabled in rows]

    @guarded
    def instances_with(self, tool: str) -> list[str]:
        """Return the instances that a tool is bound to."""
        query = "select instance from bindings where tool = ?"
        return [instance for (instance,) in self._database.reading().execute(query, (tool,))]

    @consistent
    def bound_tools(self, instance: str, name: str | None = None) -> list[ToolRow]:
        """Return the tools that an enabled instance serves, by name; only the one of a name where one is given."""
        columns = ", ".join(f"tools.{column}" for column in TOOL_COLUMNS.split(", "))
        rows = self._database.reading().execute(
            f"""select {columns} from bindings join instances on instances.id = instance join tools on tools.id = tool
                where instance = :instance and bindings.enabled and instances.enabled
                and (:name is null or tools.name = :name) order by tools.name""",
            {"instance": instance, "name": name},
        )
        return [tool_from(row) for row in rows]


def _touch(db: apsw.Connection) -> None:
    db.execute(
        "insert into settings values (?, '1') on conflict do update set value = cast(value + 1 as text)",
        (TABLES_STATE,),
    )


def _table(row: Any) -> TableRow:
    table = TableRow(*row)
    return replace(table, searchable=bool(table.searchable))


def _instance(row: Any) -> InstanceRow:
    instance = InstanceRow(*row)
    return replace(instance, enabled=bool(instance.enabled))
