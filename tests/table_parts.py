"""A table with everything that a store keeps of one, for tests of stores."""

from __future__ import annotations

from typing import Any

from commonplace.kinds.tables.data_drawer import DataDrawer
from commonplace.kinds.tables.drawer import InstanceDrawer, TableDrawer
from commonplace.kinds.tables.node_drawer import JobDrawer, NodeDrawer
from commonplace.kinds.tables.rows import InstanceRow, ProjectRow, TableRow, ToolRow

DATA = {"a\0b": {"rows": [{"n": n, "text": f"row {n} " * 40} for n in range(60)]}, "c": "\0é"}
"""In more than one fragment, with a character that PostgreSQL takes in no text."""


def fill_tables(store: Any, item_id: int) -> TableRow:
    """Store a project, a table, a tool, an instance it is bound to, and work that is left; the item is a node of it."""
    rows, instances = store.drawer(TableDrawer), store.drawer(InstanceDrawer)
    nodes = store.drawer(NodeDrawer)
    with store.transaction():
        rows.add_project(ProjectRow("p", "shop", "", 1))
        table: TableRow = rows.add_table(TableRow(0, "t", "p", "stock", "", False, 0, 0, 1, None, None, "basis", 1, 1))
        store.drawer(DataDrawer).put(table.number, (), DATA)
        table = rows.table_written(table.number)
        rows.put_tool(ToolRow("s", table.number, "/a\0b", "search", "find", "", {"k": "\0"}, 1, 1, 1))
        instances.put_instance(InstanceRow("i", "front", "", True, b"\0" * 32, "cafe", 1))
        instances.bind_tools("i", ["s"], enabled=False)
        nodes.place_nodes(table, 1, [(item_id, "/a~nb/rows")])
        nodes.add_dirty(table, 1, "/a\0b", first=3)
        nodes.change_dirty(nodes.dirty_of(table.number)[0]._replace(cursor="/a\0b/rows/7", swept=2))
        nodes.add_dirty(table, 1, "/c", alone=True)
        store.drawer(JobDrawer).want(table.number, "index", {"steps": 1})
    return table


def tables_told(store: Any) -> Any:
    """All of that, as a store tells it."""
    rows, data, instances = store.drawer(TableDrawer), store.drawer(DataDrawer), store.drawer(InstanceDrawer)
    (table,) = rows.tables()
    nodes = [store.drawer(NodeDrawer).nodes_at("t", 1, place) for place in ("", "/a~nb", "/a~nb/rows", "/c")]
    return (
        rows.state(), rows.projects(), table, data.text(table.number), rows.tools(),
        data.value(table.number, ("a\0b", "rows", "59")), instances.instances(), instances.bindings(),
        [(found.items.tolist(), found.chunks.tolist()) for found in nodes],
        store.drawer(NodeDrawer).dirty_of(table.number), store.drawer(JobDrawer).jobs(),
    )  # fmt: skip
