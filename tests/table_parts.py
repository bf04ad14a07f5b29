"""A table with everything that a store keeps of one, for tests of stores."""

from __future__ import annotations

from typing import Any

from commonplace.store.table_rows import InstanceRow, ProjectRow, TableRow, ToolRow

DATA = {"a\0b": {"rows": [{"n": n, "text": f"row {n} " * 40} for n in range(60)]}, "c": "\0é"}
"""In more than one fragment, with a character that PostgreSQL takes in no text."""


def fill_tables(store: Any, item_id: int) -> TableRow:
    """Store a project, a table, a tool, an instance it is bound to, and work that is left; the item is a node of it."""
    with store.transaction():
        store.add_project(ProjectRow("p", "shop", "", 1))
        table: TableRow = store.add_table(TableRow(0, "t", "p", "stock", "", False, 0, 0, 1, None, None, "basis", 1, 1))
        store.put_table_value(table.number, (), DATA)
        table = store.table_written(table.number)
        store.put_tool(ToolRow("s", table.number, "/a\0b", "search", "find", "", {"k": "\0"}, 1, 1, 1))
        store.put_instance(InstanceRow("i", "front", "", True, b"\0" * 32, "cafe", 1))
        store.bind_tools("i", ["s"], enabled=False)
        store.place_nodes(table, 1, [(item_id, "/a~nb/rows")])
        store.add_dirty(table, 1, "/a\0b", first=3)
        store.change_dirty(store.dirty_of(table.number)[0]._replace(cursor="/a\0b/rows/7", swept=2))
        store.add_dirty(table, 1, "/c", alone=True)
        store.want_job(table.number, "index", {"steps": 1})
    return table


def tables_told(store: Any) -> Any:
    """All of that, as a store tells it."""
    (table,) = store.tables()
    nodes = [store.nodes_at("t", 1, place) for place in ("", "/a~nb", "/a~nb/rows", "/c")]
    return (
        store.tables_state(), store.projects(), table, store.table_text(table.number), store.tools(),
        store.table_value(table.number, ("a\0b", "rows", "59")), store.instances(), store.bindings(),
        [(found.items.tolist(), found.chunks.tolist()) for found in nodes], store.dirty_of(table.number),
        store.table_jobs(),
    )  # fmt: skip
