"""The store on PostgreSQL: projects, tables, their tools, instances and bindings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from commonplace.store.postgres.items import reads, writes
from commonplace.store.postgres.table_data import PostgresTableData
from commonplace.store.shaping import json_text, now_micros
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

_TOOL_NAMES = TOOL_COLUMNS.split(", ")


class PostgresTableRows(PostgresTableData):
    """Everything about tables but what is in them. Each change of what can be listed raises `tables_state`."""

    @reads
    def tables_state(self) -> int:
        return int(self._one("select value from settings where name = %s", (TABLES_STATE,)) or 0)

    # projects

    @writes
    def add_project(self, project: ProjectRow) -> None:
        self._run(
            "insert into projects (id, name, description, created_at) values (%s, %s, %s, %s)",
            (project.id, project.name, project.description, project.created_at),
        )
        self._listed_anew()

    @reads
    def projects(self) -> list[ProjectRow]:
        rows = self._all("select id, name, description, created_at from projects order by name")
        return [ProjectRow(*row) for row in rows]

    @writes
    def drop_project(self, project: str) -> None:
        self._run("delete from projects where id = %s", (project,))
        self._listed_anew()

    # tables

    @writes
    def add_table(self, table: TableRow) -> TableRow:
        kept = replace(table, number=self._next_part())
        self._run(
            f"insert into tables ({TABLE_COLUMNS}) values ({', '.join(['%s'] * 14)})",
            (
                kept.number, kept.id, kept.project, kept.name, kept.description, kept.searchable, kept.version,
                kept.size, kept.generation, kept.building, kept.leaving, kept.basis, kept.created_at, kept.updated_at,
            ),
        )  # fmt: skip
        self._listed_anew()
        return kept

    @reads
    def tables(self, project: str | None = None) -> list[TableRow]:
        query = f"""select {TABLE_COLUMNS} from tables where %(project)s::text is null or project = %(project)s
                    order by name, id"""
        return [TableRow(*row) for row in self._all(query, {"project": project})]

    @reads
    def table(self, table: str) -> TableRow | None:
        rows = self._all(f"select {TABLE_COLUMNS} from tables where id = %s", (table,))
        return TableRow(*rows[0]) if rows else None

    @reads
    def numbered_table(self, number: int) -> TableRow | None:
        rows = self._all(f"select {TABLE_COLUMNS} from tables where number = %s", (number,))
        return TableRow(*rows[0]) if rows else None

    @writes
    def change_table(self, table: TableRow) -> None:
        self._run(
            """update tables set name = %s, description = %s, searchable = %s, version = %s, size = %s,
                 generation = %s, building = %s, leaving = %s, basis = %s, updated_at = %s where number = %s""",
            (
                table.name, table.description, table.searchable, table.version, table.size, table.generation,
                table.building, table.leaving, table.basis, table.updated_at, table.number,
            ),
        )  # fmt: skip
        self._listed_anew()

    @writes
    def table_written(self, number: int) -> TableRow:
        rows = self._all(
            f"""update tables set version = version + 1, updated_at = %(now)s,
                  size = (select size from fragments where parent = -%(number)s::bigint)
                where number = %(number)s returning {TABLE_COLUMNS}""",
            {"now": now_micros(), "number": number},
        )
        return TableRow(*rows[0])

    @writes
    def drop_table(self, number: int) -> None:
        for statement in (
            "delete from bindings where tool in (select id from tools where tbl = %s)",
            "delete from tools where tbl = %s",
            "delete from fragments where tbl = %s",
            "delete from dirty_places where tbl = %s",
            "delete from table_jobs where tbl = %s",
            "delete from tables where number = %s",
        ):
            self._run(statement, (number,))
        self._listed_anew()

    # tools

    @writes
    def put_tool(self, tool: ToolRow) -> None:
        changed = ", ".join(f"{name} = excluded.{name}" for name in _TOOL_NAMES[1:])
        self._run(
            f"""insert into tools ({TOOL_COLUMNS}) values ({", ".join(["%s"] * len(_TOOL_NAMES))})
                on conflict (space, id) do update set {changed}""",
            (
                tool.id, tool.table, tool.json_path.encode(), tool.type, tool.name, tool.description,
                json_text(tool.metadata), tool.created_at, tool.updated_at, tool.configured_at, tool.started_at,
                tool.indexed_at,
            ),
        )  # fmt: skip
        self._listed_anew()

    @reads
    def tools(self, table: int | None = None) -> list[ToolRow]:
        return self._tools("where %(tbl)s::bigint is null or tbl = %(tbl)s order by tools.name, id", {"tbl": table})

    @reads
    def search_tools(self, table: int) -> list[ToolRow]:
        return self._tools("where tbl = %s and type = 'search' order by id", (table,))

    @reads
    def tool(self, tool: str) -> ToolRow | None:
        return next(iter(self._tools("where id = %s", (tool,))), None)

    def tools_started(self, table: int, now: int) -> None:
        if any(tool.started_at is None for tool in self.search_tools(table)):
            self._start_tools(table, now)

    @writes
    def _start_tools(self, table: int, now: int) -> None:
        self._run("update tools set started_at = %s where tbl = %s and started_at is null", (now, table))

    @writes
    def tools_indexed(self, table: int, now: int) -> None:
        self._run(
            """update tools set indexed_at = %(now)s, started_at = coalesce(started_at, %(now)s)
               where tbl = %(tbl)s and type = 'search'""",
            {"now": now, "tbl": table},
        )

    @writes
    def drop_tool(self, tool: str) -> int:
        unbound = self._all("delete from bindings where tool = %s returning 1", (tool,))
        self._run("delete from tools where id = %s", (tool,))
        self._listed_anew()
        return len(unbound)

    # instances

    @writes
    def put_instance(self, instance: InstanceRow) -> None:
        self._run(
            f"""insert into instances ({INSTANCE_COLUMNS}) values (%s, %s, %s, %s, %s, %s, %s)
                on conflict (space, id) do update set name = excluded.name, description = excluded.description,
                  enabled = excluded.enabled, digest = excluded.digest, hint = excluded.hint""",
            (
                instance.id, instance.name, instance.description, instance.enabled, instance.digest, instance.hint,
                instance.created_at,
            ),
        )  # fmt: skip
        self._listed_anew()

    @reads
    def instances(self) -> list[InstanceRow]:
        return [InstanceRow(*row) for row in self._all(f"select {INSTANCE_COLUMNS} from instances order by name")]

    @reads
    def instance(self, instance: str) -> InstanceRow | None:
        rows = self._all(f"select {INSTANCE_COLUMNS} from instances where id = %s", (instance,))
        return InstanceRow(*rows[0]) if rows else None

    @reads
    def named_instance(self, name: str) -> InstanceRow | None:
        rows = self._all(f"select {INSTANCE_COLUMNS} from instances where name = %s", (name,))
        return InstanceRow(*rows[0]) if rows else None

    @writes
    def drop_instance(self, instance: str) -> None:
        self._run("delete from bindings where instance = %s", (instance,))
        self._run("delete from instances where id = %s", (instance,))
        self._listed_anew()

    # bindings

    @writes
    def bind_tools(self, instance: str, tools: Sequence[str], *, enabled: bool) -> None:
        self._run_all(
            """insert into bindings (instance, tool, enabled) values (%s, %s, %s)
               on conflict (space, instance, tool) do update set enabled = excluded.enabled""",
            [(instance, tool, enabled) for tool in tools],
        )
        self._listed_anew()

    @writes
    def unbind_tools(self, instance: str, tools: Sequence[str]) -> None:
        self._run("delete from bindings where instance = %s and tool = any(%s::text[])", (instance, list(tools)))
        self._listed_anew()

    @reads
    def bindings(self, instance: str | None = None) -> list[BindingRow]:
        query = """select instance, tool, enabled from bindings
                   where %(instance)s::text is null or instance = %(instance)s order by instance, tool"""
        return [BindingRow(*row) for row in self._all(query, {"instance": instance})]

    @reads
    def instances_with(self, tool: str) -> list[str]:
        query = "select instance from bindings where tool = %s order by instance"
        return [instance for (instance,) in self._all(query, (tool,))]

    @reads
    def bound_tools(self, instance: str, name: str | None = None) -> list[ToolRow]:
        return self._tools(
            """join bindings on bindings.tool = tools.id join instances on instances.id = bindings.instance
               where bindings.instance = %(instance)s and bindings.enabled and instances.enabled
               and (%(name)s::text is null or tools.name = %(name)s) order by tools.name""",
            {"instance": instance, "name": name},
        )

    def _tools(self, which: str, values: Any) -> list[ToolRow]:
        columns = ", ".join(f"tools.{column}" for column in _TOOL_NAMES)
        rows = self._all(f"select {columns} from tools {which}", values)
        return [tool_from((*row[:2], row[2].decode(), *row[3:])) for row in rows]

    def _listed_anew(self) -> None:
        self._run(
            """insert into settings (name, value) values (%s, '1')
               on conflict (space, name) do update set value = (settings.value::bigint + 1)::text""",
            (TABLES_STATE,),
        )
