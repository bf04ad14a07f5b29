"""Tools for projects and tables; and how projects, tables, tools and instances look in answers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from commonplace.kinds.tables.edits import FORMATS, MODES
from commonplace.kinds.tables.json_tables import Tables
from commonplace.kinds.tables.names import find_project
from commonplace.kinds.tables.pointers import parse
from commonplace.kinds.tables.rows import InstanceRow, ProjectRow, TableRow, ToolRow
from commonplace.kinds.tables.states import moment
from commonplace.kinds.tables.tool_instances import DISABLED, ENABLED
from commonplace.kinds.tables.tools.types import checked
from commonplace.model import JSON
from commonplace.tools.schema import (
    BOOLEAN,
    INTEGER,
    OBJECT,
    STRING,
    Schema,
    answer,
    choice,
    flag,
    integer,
    many,
    obj,
    text,
)
from commonplace.tools.tool import ADDS, CHANGES, READ_ONLY, Answer, Call, Tool

PROJECT = answer(project_id=STRING, name=STRING, description=STRING, created_at=STRING)
TABLE = answer(
    table_id=STRING,
    project_id=STRING,
    name=STRING,
    description=STRING,
    searchable=BOOLEAN,
    version=INTEGER,
    size_bytes=INTEGER,
    created_at=STRING,
    updated_at=STRING,
)
TOOL = answer(
    tool_id=STRING,
    table_id=STRING,
    project_id=STRING,
    json_path=STRING,
    type=STRING,
    name=STRING,
    description=STRING,
    metadata=OBJECT,
    created_at=STRING,
    updated_at=STRING,
)
BINDING = answer(tool_id=STRING, name=STRING, type=STRING, status=STRING)
INSTANCE = answer(
    instance_id=STRING, name=STRING, description=STRING, status=STRING, key_hint=STRING, bindings=many(BINDING)
)


def page(noun: str, rows: Sequence[JSON], limit: int, offset: int) -> dict[str, JSON]:
    """Return a part of a list, its total, and whether there is more."""
    shown = list(rows[offset : offset + limit])
    return {noun: shown, "total": len(rows), "has_more": offset + len(shown) < len(rows)}


def listed(noun: str, schema: Schema) -> Schema:
    """Return the schema of a part of a list."""
    properties: dict[str, JSON] = {noun: many(schema), "total": INTEGER, "has_more": BOOLEAN}
    return answer(**properties)


def project_shown(project: ProjectRow) -> dict[str, JSON]:
    """Return a project as answers show it."""
    return {
        "project_id": project.id,
        "name": project.name,
        "description": project.description,
        "created_at": moment(project.created_at),
    }


def table_shown(table: TableRow) -> dict[str, JSON]:
    """Return a table as answers show it."""
    return {
        "table_id": table.id,
        "project_id": table.project,
        "name": table.name,
        "description": table.description,
        "searchable": table.searchable,
        "version": table.version,
        "size_bytes": table.size,
        "created_at": moment(table.created_at),
        "updated_at": moment(table.updated_at),
    }


def tool_shown(tables: Tables, tool: ToolRow) -> dict[str, JSON]:
    """Return a tool as answers show it; a search tool with the state of its index."""
    table = tables.catalog.table_of(tool)
    metadata = dict(tool.metadata)
    if tool.type == "search":
        metadata["search_index"] = tables.states.search_index(table, tool)
    return {
        "tool_id": tool.id,
        "table_id": table.id,
        "project_id": table.project,
        "json_path": tool.json_path,
        "type": tool.type,
        "name": tool.name,
        "description": tool.description,
        "metadata": metadata,
        "created_at": moment(tool.created_at),
        "updated_at": moment(tool.updated_at),
    }


def bindings_shown(tables: Tables, instance: InstanceRow) -> list[JSON]:
    """Return the bindings of an instance as answers show them."""
    return [
        {"tool_id": tool.id, "name": tool.name, "type": tool.type, "status": ENABLED if binding.enabled else DISABLED}
        for tool, binding in tables.instances.bound(instance)
    ]


def instance_shown(tables: Tables, instance: InstanceRow) -> dict[str, JSON]:
    """Return an instance as answers show it, without its key."""
    return {
        "instance_id": instance.id,
        "name": instance.name,
        "description": instance.description,
        "status": ENABLED if instance.enabled else DISABLED,
        "key_hint": instance.hint,
        "bindings": bindings_shown(tables, instance),
    }


LIMIT = integer("How many.", default=100, least=1, most=1000)
OFFSET: Schema = {"type": "integer", "description": "How many to pass over first.", "default": 0, "minimum": 0}
NAME = text("Its name.", minLength=1)
DESCRIPTION = text("What it is for.")
PROJECT_ID = text("The project's id or name.", minLength=1)
TABLE_ID = text("The table's id or name.", minLength=1)
POINTER = text('Where in the data: a JSON Pointer; "" is the whole value.')
EXPECTED: Schema = {"type": "integer", "description": "Refuse unless the table is at this version."}
DATA: Schema = {"description": "Any JSON value."}


def project_create(call: Call, args: Mapping[str, JSON]) -> Answer:
    project = call.space.part(Tables).catalog.create_project(args["name"], args.get("description", ""))
    return {"project": project_shown(project)}


def project_list(call: Call, args: Mapping[str, JSON]) -> Answer:
    rows = [project_shown(project) for project in call.space.part(Tables).rows.projects()]
    return page("projects", rows, args["limit"], args["offset"])


def project_delete(call: Call, args: Mapping[str, JSON]) -> Answer:
    project, tables = call.space.part(Tables).catalog.delete_project(args["project_id"], force=args["force"])
    return {"deleted": project.id, "tables_deleted": tables}


def table_create(call: Call, args: Mapping[str, JSON]) -> Answer:
    table = call.space.part(Tables).catalog.create_table(
        args["project_id"],
        args["name"],
        args.get("description", ""),
        args.get("data", {}),
        searchable=args["searchable"],
    )
    return {"table": table_shown(table)}


def table_get(call: Call, args: Mapping[str, JSON]) -> Answer:
    tables = call.space.part(Tables)
    table, place = tables.table(args["table_id"]), parse(args["json_path"])
    data = json.loads(tables.running.text(table, place))  # it may be newer than the version, never older
    return {"table": table_shown(table), "json_path": args["json_path"], "data": data, "version": table.version}


def table_list(call: Call, args: Mapping[str, JSON]) -> Answer:
    rows = call.space.part(Tables).rows
    project = find_project(rows, args["project_id"]).id if "project_id" in args else None
    shown = [table_shown(table) for table in rows.tables(project)]
    return page("tables", shown, args["limit"], args["offset"])


def table_update(call: Call, args: Mapping[str, JSON]) -> Answer:
    tables = call.space.part(Tables)
    return {"table": table_shown(tables.catalog.update_table(tables.table(args["table_id"]), args))}


def table_import(call: Call, args: Mapping[str, JSON]) -> Answer:
    tables = call.space.part(Tables)
    table, imported = tables.catalog.import_text(
        tables.table(args["table_id"]),
        args["content"],
        args["format"],
        args["mode"],
        args["json_path"],
        args.get("expected_version"),
    )
    return {"table": table_shown(table), "imported": imported}


def table_delete(call: Call, args: Mapping[str, JSON]) -> Answer:
    tables = call.space.part(Tables)
    table = tables.table(args["table_id"])
    return {"deleted": table.id, "tools_deleted": tables.catalog.delete_table(table)}


PROJECT_CREATE = Tool(
    "project_create",
    "Create a project",
    "Create a project, which holds tables.",
    obj(required=("name",), name=NAME, description=DESCRIPTION),
    answer(project=PROJECT),
    ADDS,
    project_create,
)
PROJECT_LIST = Tool(
    "project_list",
    "List projects",
    "The projects, by name.",
    obj(limit=LIMIT, offset=OFFSET),
    listed("projects", PROJECT),
    READ_ONLY,
    project_list,
)
PROJECT_DELETE = Tool(
    "project_delete",
    "Delete a project",
    "Delete a project; with force also its tables, their tools and everything indexed of them.",
    obj(required=("project_id",), project_id=PROJECT_ID, force=flag("Delete its tables, too.")),
    answer(deleted=STRING, tables_deleted=INTEGER),
    CHANGES,
    project_delete,
)
TABLE_CREATE = Tool(
    "table_create",
    "Create a table",
    "Create a table: one JSON value of any shape, kept exactly. A searchable one is found by every search.",
    obj(
        required=("project_id", "name"),
        project_id=PROJECT_ID,
        name=NAME,
        description=DESCRIPTION,
        data=DATA,
        searchable=flag("Whether the general search finds what is in it.", default=True),
    ),
    answer(table=TABLE),
    ADDS,
    table_create,
    check=checked,
)
TABLE_GET = Tool(
    "table_get",
    "Read a table",
    "A table and its data, or the part of it at a JSON Pointer.",
    obj(required=("table_id",), table_id=TABLE_ID, json_path={**POINTER, "default": ""}),
    answer(table=TABLE, json_path=STRING, data={}, version=INTEGER),
    READ_ONLY,
    table_get,
)
TABLE_LIST = Tool(
    "table_list",
    "List tables",
    "The tables, by name, without their data.",
    obj(project_id=PROJECT_ID, limit=LIMIT, offset=OFFSET),
    listed("tables", TABLE),
    READ_ONLY,
    table_list,
)
TABLE_UPDATE = Tool(
    "table_update",
    "Change a table",
    "Change a table's name, description or searchability, or replace the value at a JSON Pointer.",
    obj(
        required=("table_id",),
        table_id=TABLE_ID,
        name=NAME,
        description=DESCRIPTION,
        searchable=BOOLEAN,
        data=DATA,
        json_path=POINTER,
        expected_version=EXPECTED,
    ),
    answer(table=TABLE),
    CHANGES,
    table_update,
    check=checked,
)
TABLE_IMPORT = Tool(
    "table_import",
    "Import into a table",
    "Bring text in as JSON, lines of JSON, or CSV (a list of objects keyed by the header row): in the place of what "
    "is there, at the end of a list, or merged into an object (RFC 7396).",
    obj(
        required=("table_id", "content"),
        table_id=TABLE_ID,
        content=text("The text itself, not a path."),
        format=choice("What the text is.", *FORMATS),
        mode=choice("What happens with it.", *MODES),
        json_path={**POINTER, "default": ""},
        expected_version=EXPECTED,
    ),
    answer(table=TABLE, imported=INTEGER),
    CHANGES,
    table_import,
)
TABLE_DELETE = Tool(
    "table_delete",
    "Delete a table",
    "Delete a table with its data, its tools and everything indexed of it.",
    obj(required=("table_id",), table_id=TABLE_ID),
    answer(deleted=STRING, tools_deleted=INTEGER),
    CHANGES,
    table_delete,
)
TOOLS = (
    PROJECT_CREATE,
    PROJECT_LIST,
    PROJECT_DELETE,
    TABLE_CREATE,
    TABLE_GET,
    TABLE_LIST,
    TABLE_UPDATE,
    TABLE_IMPORT,
    TABLE_DELETE,
)
