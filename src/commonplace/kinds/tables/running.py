"""Run a tool of each type with its arguments, at its place in its table."""

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
"""Seconds that a search works on pending jobs before it answers from what is indexed."""

Args = Mapping[str, Any]


class ToolRunner:
    """A runner of the tools of one library's tables."""

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
        self._types: dict[str, Callable[[TableRow, ToolRow, Tokens, Args], dict[str, JSON]]] = {
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

    def run(self, table: TableRow, tool: ToolRow, args: Args) -> dict[str, JSON]:
        """Return the answer of a tool. The arguments were checked against its type's schema already."""
        return self._types[tool.type](table, tool, tokens(tool.json_path), args)

    def text(self, table: TableRow, place: Tokens, *, most: int | None = LARGEST_ANSWER) -> str:
        """Return the JSON at a place. Raise TooLarge above `most` bytes, PathMissing where nothing is there."""
        if most is not None:
            size = self._store.table_size(table.number, place)
            if isinstance(size, int) and size > most:
                raise too_large(size)
        json_text = self._store.table_text(table.number, place)
        if isinstance(json_text, Missing):
            raise PathMissing(place, json_text.found)
        return json_text

    def _schema(self, table: TableRow, tool: ToolRow, place: Tokens, args: Args) -> dict[str, JSON]:
        return within_bounds(describe(json.loads(self.text(table, place, most=None))))

    def _all(self, table: TableRow, tool: ToolRow, place: Tokens, args: Args) -> dict[str, JSON]:
        version = self._version(table)
        return {"data": json.loads(self.text(table, place)), "version": version}

    def query(self, table: TableRow, place: Tokens, expression: str) -> JSON:
        """Return the value of a JMESPath expression over the data at a place. Raise InvalidInput."""
        if not expression.strip():
            raise InvalidInput("query must not be blank.", argument="query")
        return self._queries.run(expression, self.text(table, place, most=None))

    def _query(self, table: TableRow, tool: ToolRow, place: Tokens, args: Args) -> dict[str, JSON]:
        version = self._version(table)
        return {"data": self.query(table, place, args["query"]), "version": version}

    def _version(self, table: TableRow) -> int:
        """Return the current version.

        Read it before the data: a version newer than the data would let a lost update through.
        """
        current = self._store.numbered_table(table.number)
        return current.version if current else table.version

    def _create(self, table: TableRow, tool: ToolRow, place: Tokens, args: Args) -> dict[str, JSON]:
        return self._written("created", table, args, lambda edits: self._writing.create(edits, place, args["elements"]))

    def _update(self, table: TableRow, tool: ToolRow, place: Tokens, args: Args) -> dict[str, JSON]:
        return self._written("updated", table, args, lambda edits: self._writing.update(edits, place, args["updates"]))

    def _delete(self, table: TableRow, tool: ToolRow, place: Tokens, args: Args) -> dict[str, JSON]:
        return self._written("deleted", table, args, lambda edits: self._writing.delete(edits, place, args["keys"]))

    def _written(
        self, word: str, table: TableRow, args: Args, apply: Callable[[Edits], list[dict[str, JSON]]]
    ) -> dict[str, JSON]:
        results: list[dict[str, JSON]] = []
        written = self._writing.change(table, args.get("expected_version"), lambda edits: results.extend(apply(edits)))
        return {word: results, "version": written.version}

    def _preview(self, table: TableRow, tool: ToolRow, place: Tokens, args: Args) -> dict[str, JSON]:
        rows = rows_of(json.loads(self.text(table, place, most=None)), "preview")
        return within_bounds(preview(rows, args["keys"], args["limit"], args["offset"]))

    def _select(self, table: TableRow, tool: ToolRow, place: Tokens, args: Args) -> dict[str, JSON]:
        rows = rows_of(json.loads(self.text(table, place, most=None)), "select")
        return within_bounds(select(rows, args["field"], args["keys"], args["limit"], args["offset"]))

    def _catch_up(self, table: TableRow, tool: ToolRow) -> bool:
        """Work on pending jobs, unless only few vectors are left, which the search makes itself.

        Return whether it did.
        """
        jobs = self._store.table_jobs(table.number)
        has_work = tool.started_at is None or any("small" not in job.progress for job in jobs)
        if has_work:
            self._jobs.run(table.number, CATCHING_UP_S)
        return has_work

    def _find(self, table: TableRow, tool: ToolRow, place: Tokens, args: Args) -> dict[str, JSON]:
        query: str = args["query"]
        if not query.strip():
            raise InvalidInput("query must not be blank.", argument="query")
        refreshed = self._refresh(table)
        if self._catch_up(table, tool) or refreshed:
            table, tool = self._store.numbered_table(table.number) or table, self._store.tool(tool.id) or tool
        while True:
            results, dirty = self._search.find(table, place, query, args["top_k"])
            current = self._store.numbered_table(table.number) or table
            if current.generation == table.generation:
                break
            table = current  # a new generation took over meanwhile, and later writes are in that one alone
        index = self._states.index(current, tool, dirty)
        if results is None:
            results, index["status"] = [], "indexing"
        return {"query": query, "results": results, "index": index}


def within_bounds(answer: dict[str, JSON]) -> dict[str, JSON]:
    """Return the answer. Raise TooLarge where it is larger than one may be."""
    size = size_of(dumps(answer))
    if size > LARGEST_ANSWER:
        raise too_large(size)
    return answer


def too_large(size: int) -> TooLarge:
    """Return the error for an answer of so many bytes."""
    return TooLarge(
        f"The answer has {size} bytes, and at most {LARGEST_ANSWER} (1 MiB) are sent. "
        "Ask for less: a smaller limit, fewer fields, a query, or a tool bound to a smaller place.",
        size=size,
    )
