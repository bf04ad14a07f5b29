"""What each type of tool does with its arguments, at its place in its table."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from commonplace.errors import InvalidInput, TooLarge
from commonplace.kinds.tables.jobs import Jobs
from commonplace.kinds.tables.pointers import Tokens, tokens
from commonplace.kinds.tables.queries import Queries
from commonplace.kinds.tables.query_worker import LARGEST as LARGEST_ANSWER
from commonplace.kinds.tables.searching import TableSearch
from commonplace.kinds.tables.selecting import preview, rows_of, select
from commonplace.kinds.tables.shapes import describe
from commonplace.kinds.tables.states import States
from commonplace.kinds.tables.writing import Edits, PathMissing, Writing
from commonplace.model import JSON
from commonplace.store.shredding import dumps, size_of
from commonplace.store.table_base import TableStore
from commonplace.store.table_rows import Missing, TableRow, ToolRow

CATCHING_UP_S = 1.0
"""How long a search works on what is left to index before it answers from what is there."""

Given = Mapping[str, Any]


class Running:
    """Made once per library."""

    def __init__(
        self,
        store: TableStore,
        writing: Writing,
        queries: Queries,
        search: TableSearch,
        states: States,
        jobs: Jobs,
        refresh: Callable[[TableRow], bool],
    ) -> None:
        self._store, self._writing, self._queries = store, writing, queries
        self._search, self._states, self._jobs, self._refresh = search, states, jobs, refresh
        self._types: dict[str, Callable[[TableRow, ToolRow, Tokens, Given], dict[str, JSON]]] = {
            "get_data_schema": self._schema,
            "get_all_data": self._all,
            "query_data": self._query,
            "create": self._create,
            "update": self._update,
            "delete": self._delete,
            "preview": self._preview,
            "select": self._select,
            "search": self._find,
        }

    def run(self, table: TableRow, tool: ToolRow, given: Given) -> dict[str, JSON]:
        """The answer of a tool. The arguments are checked against its type's schema already."""
        return self._types[tool.type](table, tool, tokens(tool.json_path), given)

    def text(self, table: TableRow, place: Tokens, *, most: int | None = LARGEST_ANSWER) -> str:
        """The JSON at a place, if it is not larger than that."""
        if most is not None:
            size = self._store.table_size(table.number, place)
            if isinstance(size, int) and size > most:
                raise too_large(size)
        found = self._store.table_text(table.number, place)
        if isinstance(found, Missing):
            raise PathMissing(place, found.found)
        return found

    def _schema(self, table: TableRow, tool: ToolRow, place: Tokens, given: Given) -> dict[str, JSON]:
        return within_bounds(describe(json.loads(self.text(table, place, most=None))))

    def _all(self, table: TableRow, tool: ToolRow, place: Tokens, given: Given) -> dict[str, JSON]:
        version = self._version(table)
        return {"data": json.loads(self.text(table, place)), "version": version}

    def query(self, table: TableRow, place: Tokens, expression: str) -> JSON:
        """The value of a JMESPath expression over what is at a place."""
        if not expression.strip():
            raise InvalidInput("query must not be blank.", argument="query")
        return self._queries.run(expression, self.text(table, place, most=None))

    def _query(self, table: TableRow, tool: ToolRow, place: Tokens, given: Given) -> dict[str, JSON]:
        version = self._version(table)
        return {"data": self.query(table, place, given["query"]), "version": version}

    def _version(self, table: TableRow) -> int:
        """Asked before the data is read: a version that is newer than the data would let a lost update through."""
        current = self._store.numbered_table(table.number)
        return current.version if current else table.version

    def _create(self, table: TableRow, tool: ToolRow, place: Tokens, given: Given) -> dict[str, JSON]:
        return self._written(
            "created", table, given, lambda edits: self._writing.create(edits, place, given["elements"])
        )

    def _update(self, table: TableRow, tool: ToolRow, place: Tokens, given: Given) -> dict[str, JSON]:
        return self._written(
            "updated", table, given, lambda edits: self._writing.update(edits, place, given["updates"])
        )

    def _delete(self, table: TableRow, tool: ToolRow, place: Tokens, given: Given) -> dict[str, JSON]:
        return self._written("deleted", table, given, lambda edits: self._writing.delete(edits, place, given["keys"]))

    def _written(
        self, word: str, table: TableRow, given: Given, apply: Callable[[Edits], list[dict[str, JSON]]]
    ) -> dict[str, JSON]:
        told: list[dict[str, JSON]] = []
        written = self._writing.change(table, given.get("expected_version"), lambda edits: told.extend(apply(edits)))
        return {word: told, "version": written.version}

    def _preview(self, table: TableRow, tool: ToolRow, place: Tokens, given: Given) -> dict[str, JSON]:
        rows = rows_of(json.loads(self.text(table, place, most=None)), "preview")
        return within_bounds(preview(rows, given["keys"], given["limit"], given["offset"]))

    def _select(self, table: TableRow, tool: ToolRow, place: Tokens, given: Given) -> dict[str, JSON]:
        rows = rows_of(json.loads(self.text(table, place, most=None)), "select")
        return within_bounds(select(rows, given["field"], given["keys"], given["limit"], given["offset"]))

    def _catch_up(self, table: TableRow, tool: ToolRow) -> bool:
        """Work on what is left, unless that is only the few vectors that the search makes itself; whether it did."""
        jobs = self._store.table_jobs(table.number)
        left = tool.started_at is None or any("small" not in job.progress for job in jobs)
        if left:
            self._jobs.run(table.number, CATCHING_UP_S)
        return left

    def _find(self, table: TableRow, tool: ToolRow, place: Tokens, given: Given) -> dict[str, JSON]:
        query: str = given["query"]
        if not query.strip():
            raise InvalidInput("query must not be blank.", argument="query")
        refreshed = self._refresh(table)
        if self._catch_up(table, tool) or refreshed:
            table, tool = self._store.numbered_table(table.number) or table, self._store.tool(tool.id) or tool
        while True:
            results, dirty = self._search.find(table, place, query, given["top_k"])
            now = self._store.numbered_table(table.number) or table
            if now.generation == table.generation:
                break
            table = now  # another took its place meanwhile, and what was written since is in that one alone
        index = self._states.index(now, tool, dirty)
        if results is None:
            results, index["status"] = [], "indexing"
        return {"query": query, "results": results, "index": index}


def within_bounds(answer: dict[str, JSON]) -> dict[str, JSON]:
    """The answer, if it is not larger than one may be."""
    size = size_of(dumps(answer))
    if size > LARGEST_ANSWER:
        raise too_large(size)
    return answer


def too_large(size: int) -> TooLarge:
    return TooLarge(
        f"The answer has {size} bytes, and at most {LARGEST_ANSWER} (1 MiB) are sent. "
        "Ask for less: a smaller limit, fewer fields, a query, or a tool bound to a smaller place.",
        size=size,
    )
