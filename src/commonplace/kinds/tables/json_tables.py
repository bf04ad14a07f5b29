"""The tables of a space: JSON by place, tools bound to places, instances that serve them, and their search."""

from __future__ import annotations

from collections.abc import Sequence

from commonplace.kinds.tables.drawer import InstanceDrawer, TableDrawer
from commonplace.kinds.tables.edits import Writing
from commonplace.kinds.tables.indexing import Indexer
from commonplace.kinds.tables.jobs import Jobs, Remote
from commonplace.kinds.tables.names import find_table, find_tool
from commonplace.kinds.tables.node_drawer import JobDrawer, NodeDrawer
from commonplace.kinds.tables.nodes import ChunkSizes
from commonplace.kinds.tables.queries import Queries
from commonplace.kinds.tables.rows import TableRow, ToolRow
from commonplace.kinds.tables.running import ToolRunner
from commonplace.kinds.tables.searching import TableSearch
from commonplace.kinds.tables.states import NodeScopes, States
from commonplace.kinds.tables.table_catalog import Catalog
from commonplace.kinds.tables.table_lines import Exchange
from commonplace.kinds.tables.tool_instances import Instances
from commonplace.model import JSON, Filter
from commonplace.space import Space
from commonplace.store.items import Items
from commonplace.store.listing import Listing


class Tables:
    """The tables of one library."""

    def __init__(self, space: Space) -> None:
        store, embedding, service = space.store, space.embedding, space.service
        sizes = ChunkSizes.of(space.settings)
        indexer = Indexer(store, sizes)
        scopes = NodeScopes(store, embedding)
        self._store = store
        self.rows, self.instance_rows = store.drawer(TableDrawer), store.drawer(InstanceDrawer)
        self._nodes, self.job_rows = store.drawer(NodeDrawer), store.drawer(JobDrawer)
        self._queries = Queries()
        self._writing = Writing(store, indexer)
        self.catalog = Catalog(store, embedding, sizes, indexer, self._writing)
        self.instances = Instances(store, space.folder.name)
        self.exchange = Exchange(store, self.catalog, self.instances)
        remote = Remote(store, service, embedding) if service else None
        self._service = service
        self.jobs = Jobs(store, embedding, indexer, remote)
        self.states = States(store, scopes, remote)
        search = TableSearch(store, space.lexical, space.semantic, scopes, indexer, service)
        self.running = ToolRunner(
            store, self._writing, self._queries, search, self.states, self.jobs, self.catalog.refresh
        )

    def table(self, wanted: str) -> TableRow:
        """Return a table by its id or its name. Raise NotFound."""
        return find_table(self.rows, wanted)

    def tool(self, wanted: str) -> ToolRow:
        """Return a tool by its id or its name. Raise NotFound."""
        return find_tool(self.rows, wanted)

    def run(self, tool: ToolRow, args: dict[str, JSON]) -> dict[str, JSON]:
        """Return the answer of a tool to arguments that were checked against its type's schema."""
        return self.running.run(self.catalog.table_of(tool), tool, args)

    def reindex(self, table: TableRow, *, force: bool = False) -> int:
        """Repair what is indexed of a table, here and at a service, or with `force` make it anew.

        Return the job's id.
        """
        if self._service and not force:
            self._service.doubt(table.project, table.id)
        return self.catalog.reindex(table, force=force)

    def clean_service(self, tables: Sequence[TableRow], *, others: bool, dry_run: bool) -> tuple[int, int]:
        """Remove rows of a service that no chunk explains; with `others` also those of tables that are gone.

        Return how many, and how many tables could not be checked.
        """
        if self._service is None:
            return 0, 0
        return self._service.clean([(table.project, table.id) for table in tables], others=others, dry_run=dry_run)

    def cleanup(self, table: TableRow, *, dry_run: bool = False) -> tuple[int, int]:
        """Remove indexed nodes that no current place explains. Return how many, and how many stay."""
        with self._store.transaction():
            current = self.rows.numbered_table(table.number)
            current_items = self._known(current) if current else set()
            stray = [item for item in self._all(table) if item not in current_items]
            if not dry_run:
                self._store.drawer(Items).delete(stray)
            return len(stray), len(current_items)

    def _known(self, table: TableRow) -> set[int]:
        """Return the indexed nodes of all generations in use."""
        items, last = set[int](), self._store.drawer(Items).last()
        for generation in table.kept_generations:
            items.update(self._nodes.node_ids(table.id, generation, "", after=0, upto=last, limit=-1))
        return items

    def _all(self, table: TableRow) -> list[int]:
        """Return all indexed nodes of a table."""
        items: list[int] = self._store.drawer(Listing).select(Filter(kinds=("table",), parents=(table.id,))).tolist()
        return items

    def close(self) -> None:
        """Stop the processes that run queries."""
        self._queries.close()
