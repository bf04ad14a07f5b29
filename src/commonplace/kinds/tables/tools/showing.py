"""Projects, tables, tools and instances as answers show them."""

from __future__ import annotations

from collections.abc import Sequence

from commonplace.kinds.tables import Tables
from commonplace.kinds.tables.instances import DISABLED, ENABLED
from commonplace.kinds.tables.states import moment
from commonplace.model import JSON
from commonplace.store.table_rows import InstanceRow, ProjectRow, TableRow, ToolRow
from commonplace.tools.schema import BOOLEAN, INTEGER, OBJECT, STRING, Schema, answer, many

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
