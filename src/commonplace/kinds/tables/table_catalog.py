"""Projects, tables and tools: created, listed, changed and removed, each together with what hangs on it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from commonplace.errors import AlreadyExists, InvalidInput, NotFound
from commonplace.ingest.embedding import Embedding
from commonplace.kinds.tables.data_drawer import DataDrawer
from commonplace.kinds.tables.drawer import InstanceDrawer, TableDrawer
from commonplace.kinds.tables.edits import Edits, PathMissing, Writing, import_value, read_content
from commonplace.kinds.tables.indexing import Indexer, PlaceChange
from commonplace.kinds.tables.names import check_description, check_name, check_tool_name, find_project, new_id
from commonplace.kinds.tables.node_drawer import JobDrawer, NodeDrawer
from commonplace.kinds.tables.nodes import ChunkSizes
from commonplace.kinds.tables.pointers import parse, tokens
from commonplace.kinds.tables.rows import Missing, ProjectRow, TableRow, ToolRow
from commonplace.kinds.tables.shredding import dumps
from commonplace.kinds.tables.values import check
from commonplace.model import JSON
from commonplace.store.base import Store
from commonplace.store.items import Items

TYPES = ("get_data_schema", "get_all_data", "query_data", "create", "update", "delete", "preview", "select", "search")
KEPT_BY_SERVER = "search_index"
LARGEST_METADATA = 64 * 1024
_DOES = {
    "get_data_schema": "The shape of",
    "get_all_data": "All of",
    "query_data": "Evaluates a JMESPath expression over",
    "create": "Adds elements to",
    "update": "Replaces elements of",
    "delete": "Removes elements of",
    "preview": "Some fields of the rows of",
    "select": "The rows with certain values of",
    "search": "Finds passages by words and meaning in",
}


class Catalog:
    """The projects, tables and tools of one library. Every call is one transaction."""

    def __init__(
        self, store: Store, embedding: Embedding, sizes: ChunkSizes, indexer: Indexer, writing: Writing
    ) -> None:
        self._store, self._embedding, self._sizes = store, embedding, sizes
        self._table_rows, self._instance_rows = store.drawer(TableDrawer), store.drawer(InstanceDrawer)
        self._node_rows, self._job_rows = store.drawer(NodeDrawer), store.drawer(JobDrawer)
        self._data = store.drawer(DataDrawer)
        self._indexer, self._writing = indexer, writing

    # projects

    def create_project(self, name: str, description: str = "") -> ProjectRow:
        """Create a project. Raise AlreadyExists or InvalidInput for its name."""
        with self._store.transaction():
            check_name("project", name, self._table_rows.projects())
            project = ProjectRow(new_id(), name, check_description(description), _now())
            self._table_rows.add_project(project)
            return project

    def delete_project(self, wanted: str, *, force: bool = False) -> tuple[ProjectRow, int]:
        """Delete a project and return it with the number of its tables. Raise InvalidInput unless empty or forced."""
        with self._store.transaction():
            project = find_project(self._table_rows, wanted)
            tables = self._table_rows.tables(project.id)
            if tables and not force:
                raise InvalidInput(
                    f'The project "{project.name}" is not empty. Set force to delete its tables with it.',
                    argument="force",
                )
            for table in tables:
                self.delete_table(table)
            self._table_rows.drop_project(project.id)
            return project, len(tables)

    # tables

    def create_table(
        self, project: str, name: str, description: str = "", data: JSON = None, *, searchable: bool = True
    ) -> TableRow:
        """Create a table with data and index it. Raise an error for data or a name that cannot be kept."""
        check(data, "data")
        with self._store.transaction():
            owner, now = find_project(self._table_rows, project), _now()
            checked_description = check_description(description)
            return self.add_table(
                TableRow(
                    0, new_id(), owner.id, name, checked_description, searchable, 0, 0, 1, None, None, "", now, now
                ),
                data,
            )

    def add_table(self, table: TableRow, data: JSON) -> TableRow:
        """Store a new table with data that was checked, and index it."""
        with self._store.transaction():
            check_name("table", table.name, self._table_rows.tables(table.project))
            table = self._table_rows.add_table(replace(table, basis=self.basis))
            self._data.put(table.number, (), data)
            written = self._table_rows.table_written(table.number)
            self._indexer.mark(written, [PlaceChange(())], size=written.size)
            return written

    @property
    def basis(self) -> str:
        """Return the chunk sizes and the model that a generation is made with now."""
        return f"{self._sizes.name};{self._embedding.chosen or ''}"

    def update_table(self, table: TableRow, changes: Mapping[str, Any]) -> TableRow:
        """Change what is given: `name`, `description`, `searchable`, `data` at `json_path`."""
        if "json_path" in changes and "data" not in changes:
            raise InvalidInput("json_path says where data goes, and there is no data. Give both.", argument="json_path")
        expected = changes.get("expected_version")
        place = parse(changes.get("json_path", ""))
        with self._store.transaction():
            if "data" in changes:
                check(changes["data"], "data", depth=len(place))
                table = self._writing.change(
                    table, expected, lambda edits: self._writing.replace(edits, place, changes["data"])
                )
                expected = None
            current = self._writing.current(table, expected)
            name = changes.get("name", current.name)
            if name != current.name:
                check_name("table", name, self._table_rows.tables(current.project), current.id)
            description = check_description(changes.get("description", current.description))
            searchable = bool(changes.get("searchable", current.searchable))
            new = replace(current, name=name, description=description, searchable=searchable)
            if new != current:
                new = replace(new, updated_at=_now())
                self._table_rows.change_table(new)
                self._describe_again(current, new)
            if searchable != current.searchable:
                self._cover_again(new)
            return new

    def import_text(
        self,
        table: TableRow,
        content: str,
        format: str,
        mode: str,
        json_path: str = "",
        expected_version: int | None = None,
    ) -> tuple[TableRow, int]:
        """Import a text and return the table after it and the number of elements or members that came."""
        value, place, imported = read_content(content, format), parse(json_path), 0

        def bring(edits: Edits) -> None:
            nonlocal imported
            imported = import_value(self._data, self._writing, edits, place, value, mode)

        return self._writing.change(table, expected_version, bring), imported

    def delete_table(self, table: TableRow) -> int:
        """Remove a table with its tools, chunks and index rows, and return how many tools it had."""
        with self._store.transaction():
            current = self._writing.current(table, None)
            tools = len(self._table_rows.tools(table.number))
            last = self._store.drawer(Items).last()
            for generation in current.kept_generations:
                ids = self._node_rows.node_ids(table.id, generation, "", after=0, upto=last, limit=-1)
                self._store.drawer(Items).delete(ids)
            self._table_rows.drop_table(table.number)
            return tools

    # tools

    def create_tool(self, table: TableRow, type: str, name: str, options: Mapping[str, Any]) -> ToolRow:
        """Create a tool at a place that exists. Raise PathMissing where it does not."""
        with self._store.transaction():
            table = self._writing.current(table, None)
            path = options.get("json_path", "")
            self._check_place(table, path)
            metadata = _metadata(options.get("metadata", {}))
            now = _now()
            description = check_description(options.get("description") or default_description(type, table.name, path))
            configured = now if type == "search" else None
            tool = ToolRow(
                new_id(), table.number, path, type, check_tool_name(name), description, metadata, now, now, configured
            )
            self._table_rows.put_tool(tool)
            if type == "search":
                self._covered(table, path)
            return tool

    def keep_tool(self, table: TableRow, tool: ToolRow) -> None:
        """Store a tool from elsewhere, or update the one with its id. Its place may be gone. Raise AlreadyExists."""
        own_tool = self._table_rows.tool(tool.id)
        if own_tool is None:
            configured = _now() if tool.type == "search" else None
            metadata = _metadata(tool.metadata)
            self._table_rows.put_tool(replace(tool, table=table.number, metadata=metadata, configured_at=configured))
            if configured:
                self._covered(table, tool.json_path)
        elif (own_tool.table, own_tool.type) != (table.number, tool.type):
            raise AlreadyExists(f'The tool "{tool.id}" is another one here.')
        else:
            imported = {name: getattr(tool, name) for name in ("name", "description", "json_path", "metadata")}
            if changes := {name: value for name, value in imported.items() if value != getattr(own_tool, name)}:
                self.update_tool(own_tool, changes, anywhere=True)

    def update_tool(self, tool: ToolRow, changes: Mapping[str, Any], *, anywhere: bool = False) -> ToolRow:
        """Change what is given of a tool. `anywhere`: its new place need not exist."""
        with self._store.transaction():
            tool = self._current_tool(tool)
            table = self.table_of(tool)
            path = changes.get("json_path", tool.json_path)
            if "json_path" in changes and not anywhere:
                self._check_place(table, path)
            new = replace(
                tool,
                name=check_tool_name(changes.get("name", tool.name)),
                description=check_description(changes.get("description", tool.description)),
                json_path=path,
                metadata=_metadata(changes.get("metadata", tool.metadata)),
                updated_at=_now(),
            )
            if new.description in ("", default_description(tool.type, table.name, tool.json_path)):
                new = replace(new, description=default_description(tool.type, table.name, path))
            self._check_free(new)
            moved = tool.type == "search" and path != tool.json_path
            if moved:
                new = replace(new, configured_at=_now(), started_at=None, indexed_at=None)
            self._table_rows.put_tool(new)
            if moved:
                self._covered(table, tool.json_path)
                self._covered(table, path)
            return new

    def _describe_again(self, before: TableRow, now: TableRow) -> None:
        """Put a table's new name into descriptions that were made for its tools."""
        for tool in self._table_rows.tools(now.number) if before.name != now.name else ():
            if tool.description == default_description(tool.type, before.name, tool.json_path):
                description = default_description(tool.type, now.name, tool.json_path)
                self._table_rows.put_tool(replace(tool, description=description, updated_at=_now()))

    def delete_tool(self, tool: ToolRow) -> int:
        """Remove a tool and return how many bindings went with it."""
        with self._store.transaction():
            tool = self._current_tool(tool)
            unbound = self._table_rows.drop_tool(tool.id)
            if tool.type == "search" and (table := self._table_rows.numbered_table(tool.table)):
                self._covered(table, tool.json_path)
            return unbound

    def _current_tool(self, tool: ToolRow) -> ToolRow:
        current = self._table_rows.tool(tool.id)
        if current is None:
            raise NotFound(f'There is no tool "{tool.name}" any more. tool_list shows them.', argument="tool_id")
        return current

    def table_of(self, tool: ToolRow) -> TableRow:
        """Return the table of a tool. Raise NotFound."""
        table = self._table_rows.numbered_table(tool.table)
        if table is None:
            raise NotFound(f'The table of the tool "{tool.name}" is gone.', argument="tool_id")
        return table

    def _check_place(self, table: TableRow, path: str) -> None:
        """Raise PathMissing where a table has nothing at this path."""
        place = parse(path)
        shape = self._data.shape(table.number, place)
        if isinstance(shape, Missing):
            raise PathMissing(place, shape.found)

    def _check_free(self, tool: ToolRow) -> None:
        """Raise AlreadyExists where another tool of an instance with this tool has its name."""
        for instance in self._instance_rows.instances_with(tool.id):
            for binding in self._instance_rows.bindings(instance):
                other = self._table_rows.tool(binding.tool)
                if other is not None and other.id != tool.id and other.name == tool.name:
                    raise AlreadyExists(
                        f'An instance that has this tool has another one called "{tool.name}". Choose another name.',
                        argument="name",
                    )

    # the index

    def _covered(self, table: TableRow, path: str) -> None:
        """Mark a place for indexing that has become the place of a search tool, or is no longer one."""
        place = tokens(path)
        shape = self._data.shape(table.number, place)
        scalar = isinstance(shape, Missing) or shape[0] == "value"
        if scalar or not table.searchable:
            self._indexer.note(table, PlaceChange(place))
        if scalar and place:
            self._indexer.note(
                table, PlaceChange(place[:-1], alone=True)
            )  # it leaves its container's record, or joins it
        self._job_rows.want(table.number, "index")

    def _cover_again(self, table: TableRow) -> None:
        """Mark the whole table for indexing."""
        self._indexer.note(table, PlaceChange(()))
        self._job_rows.want(table.number, "index")

    def reindex(self, table: TableRow, *, force: bool = False) -> int:
        """Repair what is indexed, or with `force` begin a new generation beside it. Return the job's id."""
        with self._store.transaction():
            current = self._writing.current(table, None)
            if force and current.building is None:
                building = max(current.generation, current.leaving or 0) + 1
                current = replace(current, building=building, basis=self.basis)
                self._table_rows.change_table(current)
                self._node_rows.add_dirty(current, building, "")
            elif not force:
                self._cover_again(current)
            return self._job_rows.want(table.number, "rebuild" if force else "index")

    def refresh(self, table: TableRow) -> bool:
        """Begin a new generation where chunk settings or the model differ from those of this one.

        Return whether the table's row has changed.
        """
        if table.basis == (now := self.basis):
            return False
        sizes, _, model = table.basis.partition(";")
        now_sizes, _, now_model = now.partition(";")
        if sizes != now_sizes or (model and model != now_model):
            self.reindex(table, force=True)
        elif now_model and not model:
            with self._store.transaction():
                current = self._table_rows.numbered_table(table.number)
                if current is not None and current.basis == table.basis:
                    self._table_rows.change_table(replace(current, basis=now))
        return True


def default_description(type: str, table: str, path: str) -> str:
    """Return the description of a tool that was given none. It never quotes the data."""
    shown = "".join(sign if sign.isprintable() else "\ufffd" for sign in path[:200])
    place = f" at {shown}" if shown else ""
    return f'{_DOES[type]} the table "{table}"{place}.'


def _metadata(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    check(dict(metadata), "metadata")
    if KEPT_BY_SERVER in metadata:
        raise InvalidInput(f"metadata.{KEPT_BY_SERVER} is kept by the server. Leave it out.", argument="metadata")
    if len(dumps(dict(metadata))) > LARGEST_METADATA:
        raise InvalidInput(f"metadata must have at most {LARGEST_METADATA} characters as JSON.", argument="metadata")
    return dict(metadata)


def _now() -> int:
    return time.time_ns() // 1000
