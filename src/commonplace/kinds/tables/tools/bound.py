"""Tools for tools: creating them, binding them to instances, and the index of search tools."""

from __future__ import annotations

from collections.abc import Mapping

from commonplace.errors import InvalidInput
from commonplace.kinds.tables.json_tables import Tables
from commonplace.kinds.tables.names import find_project
from commonplace.kinds.tables.rows import TableRow, ToolRow
from commonplace.kinds.tables.table_catalog import TYPES
from commonplace.kinds.tables.tool_instances import DISABLED, ENABLED
from commonplace.kinds.tables.tools.data import (
    BINDING,
    DESCRIPTION,
    INSTANCE,
    LIMIT,
    OFFSET,
    POINTER,
    PROJECT_ID,
    TABLE_ID,
    TOOL,
    bindings_shown,
    instance_shown,
    listed,
    page,
    tool_shown,
)
from commonplace.model import JSON
from commonplace.tools.schema import INTEGER, OBJECT, STRING, Schema, answer, choice, flag, many, obj, text
from commonplace.tools.tool import ADDS, CHANGES, READ_ONLY, Answer, Call, Tool

TOOL_ID = text("The tool's id or name.", minLength=1)
INSTANCE_ID = text("The instance's id or name.", minLength=1)
TOOL_NAME = text("1 to 64 of A-Z, a-z, 0-9, _ and -.", minLength=1)
INSTANCE_NAME = text("1 to 63 of a-z, 0-9 and -: it is part of the address.", minLength=1)
TYPE: Schema = {"type": "string", "description": "What it does.", "enum": list(TYPES)}
TOOL_IDS: Schema = {
    "type": "array",
    "description": "Ids or names of tools.",
    "items": {"type": "string", "minLength": 1},
    "minItems": 1,
    "maxItems": 100,
}
METADATA: Schema = {"type": "object", "description": "Anything you want to keep with it."}


def tool_create(call: Call, args: Mapping[str, JSON]) -> Answer:
    tables = call.space.part(Tables)
    tool = tables.catalog.create_tool(tables.table(args["table_id"]), args["type"], args["name"], args)
    return {"tool": tool_shown(tables, tool)}


def tool_update(call: Call, args: Mapping[str, JSON]) -> Answer:
    tables = call.space.part(Tables)
    return {"tool": tool_shown(tables, tables.catalog.update_tool(tables.tool(args["tool_id"]), args))}


def tool_delete(call: Call, args: Mapping[str, JSON]) -> Answer:
    tables = call.space.part(Tables)
    tool = tables.tool(args["tool_id"])
    return {"deleted": tool.id, "bindings_deleted": tables.catalog.delete_tool(tool)}


def tool_list(call: Call, args: Mapping[str, JSON]) -> Answer:
    tables = call.space.part(Tables)
    table = tables.table(args["table_id"]) if "table_id" in args else None
    tools = tables.rows.tools(table.number if table else None)
    if "project_id" in args:
        table_numbers = {row.number for row in tables.rows.tables(find_project(tables.rows, args["project_id"]).id)}
        tools = [tool for tool in tools if tool.table in table_numbers]
    if "instance_id" in args:
        bound_ids = {tool.id for tool, _ in tables.instances.bound(tables.instances.find(args["instance_id"]))}
        tools = [tool for tool in tools if tool.id in bound_ids]
    if "type" in args:
        tools = [tool for tool in tools if tool.type == args["type"]]
    reply = page("tools", tools, args["limit"], args["offset"])
    return {**reply, "tools": [tool_shown(tables, tool) for tool in reply["tools"]]}


def instance_create(call: Call, args: Mapping[str, JSON]) -> Answer:
    tables = call.space.part(Tables)
    instance, key = tables.instances.create(args["name"], args.get("description", ""), args.get("tool_ids", ()))
    return {"instance": instance_shown(tables, instance), "api_key": key}


def instance_update(call: Call, args: Mapping[str, JSON]) -> Answer:
    tables = call.space.part(Tables)
    instance, key = tables.instances.update(tables.instances.find(args["instance_id"]), args)
    reply: dict[str, JSON] = {"instance": instance_shown(tables, instance)}
    return reply if key is None else {**reply, "api_key": key}


def instance_delete(call: Call, args: Mapping[str, JSON]) -> Answer:
    tables = call.space.part(Tables)
    instance = tables.instances.find(args["instance_id"])
    tables.instances.delete(instance)
    return {"deleted": instance.id}


def instance_list(call: Call, args: Mapping[str, JSON]) -> Answer:
    tables = call.space.part(Tables)
    rows = [instance_shown(tables, instance) for instance in tables.instance_rows.instances()]
    return page("instances", rows, args["limit"], args["offset"])


def instance_bind(call: Call, args: Mapping[str, JSON]) -> Answer:
    tables = call.space.part(Tables)
    instance = tables.instances.find(args["instance_id"])
    tables.instances.bind(instance, args["tool_ids"], enabled=args["status"] == ENABLED)
    return {"instance_id": instance.id, "bindings": bindings_shown(tables, instance)}


def instance_unbind(call: Call, args: Mapping[str, JSON]) -> Answer:
    tables = call.space.part(Tables)
    instance = tables.instances.find(args["instance_id"])
    tables.instances.unbind(instance, args["tool_ids"])
    return {"instance_id": instance.id, "bindings": bindings_shown(tables, instance)}


def search_reindex(call: Call, args: Mapping[str, JSON]) -> Answer:
    tables = call.space.part(Tables)
    if ("tool_id" in args) == ("table_id" in args):
        raise InvalidInput("search_reindex needs either tool_id or table_id, and not both.", argument="tool_id")
    tools, table = _asked(tables, args)
    if table is None:
        table = tables.catalog.table_of(tools[0])
    job = tables.reindex(table, force=args["force"])
    tools = tables.rows.search_tools(table.number)
    jobs: list[JSON] = [{"job_id": str(job), "table_id": table.id, "status": "pending"}]
    return {"jobs": jobs, "tools": [_indexed(tables, tool) for tool in tools]}


def search_status(call: Call, args: Mapping[str, JSON]) -> Answer:
    tables = call.space.part(Tables)
    tools, _ = _asked(tables, args)
    if "table_id" in args:
        table = tables.table(args["table_id"])
        tools = [tool for tool in tools if tool.table == table.number]
    return {"tools": [_indexed(tables, tool) for tool in tools]}


def search_cleanup(call: Call, args: Mapping[str, JSON]) -> Answer:
    tables = call.space.part(Tables)
    chosen_tables = [tables.table(args["table_id"])] if "table_id" in args else tables.rows.tables()
    removed = kept = 0
    for table in chosen_tables:
        removed_here, kept_here = tables.cleanup(table, dry_run=args["dry_run"])
        removed, kept = removed + removed_here, kept + kept_here
    stray, unreachable = tables.clean_service(chosen_tables, others="table_id" not in args, dry_run=args["dry_run"])
    return {"removed": removed + stray, "kept": kept, "unreachable": unreachable}


def _asked(tables: Tables, args: Mapping[str, JSON]) -> tuple[list[ToolRow], TableRow | None]:
    """Return the search tools a call names, all where it names none, and the table it names."""
    if "tool_id" in args:
        return [search_tool(tables, args["tool_id"])], None
    if "table_id" in args:
        table = tables.table(args["table_id"])
        return tables.rows.search_tools(table.number), table
    return [tool for tool in tables.rows.tools() if tool.type == "search"], None


def search_tool(tables: Tables, wanted: str) -> ToolRow:
    """Return a search tool by its id or its name. Raise NotFound or InvalidInput."""
    tool = tables.tool(wanted)
    if tool.type != "search":
        raise InvalidInput(
            f'tool_id "{tool.name}" is a {tool.type} tool, and only search tools have an index.', argument="tool_id"
        )
    return tool


def _indexed(tables: Tables, tool: ToolRow) -> dict[str, JSON]:
    table = tables.catalog.table_of(tool)
    return {
        "tool_id": tool.id,
        "name": tool.name,
        "table_id": table.id,
        "json_path": tool.json_path,
        "search_index": tables.states.search_index(table, tool),
    }


_INDEXED = answer(tool_id=STRING, name=STRING, table_id=STRING, json_path=STRING, search_index=OBJECT)
_BOUND = answer(instance_id=STRING, bindings=many(BINDING))
TOOLS = (
    Tool(
        "tool_create",
        "Create a tool",
        "Create a tool: one operation on one place of one table. Bind it to an instance to serve it to agents.",
        obj(
            required=("table_id", "type", "name"),
            table_id=TABLE_ID,
            type=TYPE,
            name=TOOL_NAME,
            json_path={**POINTER, "default": ""},
            description=DESCRIPTION,
            metadata=METADATA,
        ),
        answer(tool=TOOL),
        ADDS,
        tool_create,
    ),
    Tool(
        "tool_update",
        "Change a tool",
        "Change a tool's name, description, place or metadata. Its type and table stay.",
        obj(
            required=("tool_id",),
            tool_id=TOOL_ID,
            name=TOOL_NAME,
            description=DESCRIPTION,
            json_path=POINTER,
            metadata=METADATA,
        ),
        answer(tool=TOOL),
        CHANGES,
        tool_update,
    ),
    Tool(
        "tool_delete",
        "Delete a tool",
        "Delete a tool and its bindings.",
        obj(required=("tool_id",), tool_id=TOOL_ID),
        answer(deleted=STRING, bindings_deleted=INTEGER),
        CHANGES,
        tool_delete,
    ),
    Tool(
        "tool_list",
        "List tools",
        "The tools of a project, a table, an instance or a type; all of them where none is named.",
        obj(project_id=PROJECT_ID, table_id=TABLE_ID, instance_id=INSTANCE_ID, type=TYPE, limit=LIMIT, offset=OFFSET),
        listed("tools", TOOL),
        READ_ONLY,
        tool_list,
    ),
    Tool(
        "instance_create",
        "Create an instance",
        "Create an endpoint with a key of its own. The key is shown this once.",
        obj(required=("name",), name=INSTANCE_NAME, description=DESCRIPTION, tool_ids={**TOOL_IDS, "minItems": 0}),
        answer(instance=INSTANCE, api_key=STRING),
        ADDS,
        instance_create,
    ),
    Tool(
        "instance_update",
        "Change an instance",
        "Change an instance's name, description or status, or give it a new key, which ends the old one at once.",
        obj(
            required=("instance_id",),
            instance_id=INSTANCE_ID,
            name=INSTANCE_NAME,
            description=DESCRIPTION,
            status={"type": "string", "enum": [ENABLED, DISABLED]},
            rotate_key=flag("Make a new key."),
        ),
        answer(required=("instance",), instance=INSTANCE, api_key=STRING),
        CHANGES,
        instance_update,
    ),
    Tool(
        "instance_delete",
        "Delete an instance",
        "Delete an instance and its bindings. Its tools stay.",
        obj(required=("instance_id",), instance_id=INSTANCE_ID),
        answer(deleted=STRING),
        CHANGES,
        instance_delete,
    ),
    Tool(
        "instance_list",
        "List instances",
        "The instances with their bindings, without their keys.",
        obj(limit=LIMIT, offset=OFFSET),
        listed("instances", INSTANCE),
        READ_ONLY,
        instance_list,
    ),
    Tool(
        "instance_bind",
        "Bind tools",
        "Serve tools at an instance, or set the status of tools that are bound. All of them or none.",
        obj(
            required=("instance_id", "tool_ids"),
            instance_id=INSTANCE_ID,
            tool_ids=TOOL_IDS,
            status=choice("Whether they are served.", ENABLED, DISABLED),
        ),
        _BOUND,
        CHANGES,
        instance_bind,
    ),
    Tool(
        "instance_unbind",
        "Unbind tools",
        "Serve tools at an instance no longer.",
        obj(required=("instance_id", "tool_ids"), instance_id=INSTANCE_ID, tool_ids=TOOL_IDS),
        _BOUND,
        CHANGES,
        instance_unbind,
    ),
    Tool(
        "search_reindex",
        "Index again",
        "Repair the index of a tool's table; with force make all of it anew while the old one answers.",
        obj(tool_id=TOOL_ID, table_id=TABLE_ID, force=flag("A new generation.")),
        answer(jobs=many(answer(job_id=STRING, table_id=STRING, status=STRING)), tools=many(_INDEXED)),
        ADDS,
        search_reindex,
    ),
    Tool(
        "search_status",
        "State of search tools",
        "How ready search tools are: of one, of a table's, or of all.",
        obj(tool_id=TOOL_ID, table_id=TABLE_ID),
        answer(tools=many(_INDEXED)),
        READ_ONLY,
        search_status,
    ),
    Tool(
        "search_cleanup",
        "Clean up the index",
        "Remove index rows that nothing explains, as crashes and restored backups leave them.",
        obj(table_id=TABLE_ID, dry_run=flag("Only count them.")),
        answer(removed=INTEGER, kept=INTEGER, unreachable=INTEGER),
        CHANGES,
        search_cleanup,
    ),
)
