"""Run a tool of each type with its arguments, at its place in its table."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from commonplace.errors import InvalidInput, TooLarge
from commonplace.kinds.tables.data_drawer import DataDrawer
from commonplace.kinds.tables.drawer import TableDrawer
from commonplace.kinds.tables.edits import Edits, PathMissing, Writing
from commonplace.kinds.tables.jobs import Jobs
from commonplace.kinds.tables.node_drawer import JobDrawer
from commonplace.kinds.tables.pointers import Tokens, tokens
from commonplace.kinds.tables.queries import Queries
from commonplace.kinds.tables.query_worker import LARGEST as LARGEST_ANSWER
from commonplace.kinds.tables.rows import Missing, TableRow, ToolRow
from commonplace.kinds.tables.searching import TableSearch
from commonplace.kinds.tables.shredding import dumps, size_of
from commonplace.kinds.tables.states import States
from commonplace.model import JSON
from commonplace.store.base import Store

DEEPEST = 12
MOST_KEYS = 200
LOOKED_AT = 100
PREVIEWED = 20
_NAMES = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}
CATCHING_UP_S = 1.0
"""Seconds that a search works on pending jobs before it answers from what is indexed."""
Args = Mapping[str, Any]


def kind_of(value: JSON) -> str:
    """Return `object`, `array`, `string`, `integer`, `number`, `boolean` or `null`."""
    if isinstance(value, dict):
        return "object"
    return "array" if isinstance(value, list) else _NAMES[type(value)]


def describe(value: JSON) -> dict[str, JSON]:
    """Return the answer of `get_data_schema`."""
    cuts: dict[str, None] = {}
    schema = _shape(value, 0, cuts)
    keys = list(value)[:PREVIEWED] if isinstance(value, dict) else []
    if isinstance(value, list) and value and isinstance(value[0], dict):
        keys = list(value[0])[:PREVIEWED]
    count = len(value) if isinstance(value, dict | list | str) else 0
    meta: dict[str, JSON] = {"root_type": kind_of(value), "count": count, "keys_preview": keys}
    if cuts:
        meta["cut"] = f"The schema is cut: {' and '.join(cuts)}."
    return {"schema": schema, "meta": meta}


def _shape(value: JSON, depth: int, cuts: dict[str, None]) -> JSON:
    if not isinstance(value, dict | list):
        return f"<{kind_of(value)}>"
    if depth >= DEEPEST:
        cuts[f"it shows {DEEPEST} levels"] = None
        return f"<{kind_of(value)}>"
    if isinstance(value, list):
        return _merged([_shape(member, depth + 1, cuts) for member in value[:LOOKED_AT]], cuts) if value else []
    if len(value) > MOST_KEYS:
        cuts[f"it shows {MOST_KEYS} keys of an object"] = None
    return {key: _shape(value[key], depth + 1, cuts) for key in list(value)[:MOST_KEYS]}


def _merged(shapes: Sequence[Any], cuts: dict[str, None]) -> list[JSON]:
    return [_joined(shapes, cuts)]


def _joined(shapes: Sequence[Any], cuts: dict[str, None]) -> JSON:
    """Return one shape for several: keys of objects together, kinds that differ side by side."""
    if all(isinstance(shape, dict) for shape in shapes):
        keys: dict[str, list[Any]] = {}
        for shape in shapes:
            for key, member in shape.items():
                keys.setdefault(key, []).append(member)
        if len(keys) > MOST_KEYS:
            cuts[f"it shows {MOST_KEYS} keys of an object"] = None
        return {key: _joined(members, cuts) for key, members in list(keys.items())[:MOST_KEYS]}
    if all(isinstance(shape, list) for shape in shapes):
        inner = [shape[0] for shape in shapes if shape]
        return [_joined(inner, cuts)] if inner else []
    kinds: set[str] = set()
    for shape in shapes:
        kinds |= {"object"} if isinstance(shape, dict) else {"array"} if isinstance(shape, list) else _kinds(shape)
    return f"<{'|'.join(sorted(kinds))}>"


def _kinds(shape: str) -> set[str]:
    return set(shape[1:-1].split("|"))


def rows_of(value: JSON, tool_type: str) -> list[dict[str, JSON]]:
    """Return the value as a list of objects. Raise InvalidInput where it is none."""
    if not isinstance(value, list):
        raise InvalidInput(
            f"{tool_type} needs a list of objects, and there is {_article(kind_of(value))} {kind_of(value)} at "
            "json_path. Bind the tool to a list.",
            argument="json_path",
        )
    for place, row in enumerate(value):
        if not isinstance(row, dict):
            raise InvalidInput(
                f"{tool_type} needs a list of objects, and element {place} is {_article(kind_of(row))} "
                f"{kind_of(row)}. Use query_data or get_all_data.",
                argument="json_path",
            )
    return value


def _article(kind: str) -> str:
    return "an" if kind[0] in "aio" else "a"


def preview(rows: Sequence[dict[str, JSON]], keys: Sequence[str], limit: int, offset: int) -> dict[str, JSON]:
    """Return the named fields of each row, in the row's order."""
    fields = set(keys)
    shown = [{key: value for key, value in row.items() if key in fields} for row in rows[offset : offset + limit]]
    return _page(shown, range(offset, offset + len(shown)), len(rows), offset)


def select(
    rows: Sequence[dict[str, JSON]], field: str, keys: Sequence[JSON], limit: int, offset: int
) -> dict[str, JSON]:
    """Return whole rows whose field has one of these values, compared by their JSON text: 12 and "12" are the same."""
    texts = {text for key in keys if (text := _text(key)) is not None}
    matching = [place for place, row in enumerate(rows) if field in row and _text(row[field]) in texts]
    page_rows = matching[offset : offset + limit]
    return _page([rows[place] for place in page_rows], page_rows, len(matching), offset)


def _text(value: JSON) -> str | None:
    """Return a scalar as text, None for a container."""
    if isinstance(value, dict | list):
        return None
    return value if isinstance(value, str) else dumps(value)


def _page(rows: Sequence[Any], places: Sequence[int], total: int, offset: int) -> dict[str, JSON]:
    return {
        "rows": list(rows),
        "json_paths": [f"/{place}" for place in places],
        "total": total,
        "has_more": offset + len(rows) < total,
    }


class ToolRunner:
    """A runner of the tools of one library's tables."""

    def __init__(
        self,
        store: Store,
        writing: Writing,
        queries: Queries,
        search: TableSearch,
        states: States,
        jobs: Jobs,
        refresh: Callable[[TableRow], bool],
    ) -> None:
        self._writing, self._queries = writing, queries
        self._table_rows, self._data = store.drawer(TableDrawer), store.drawer(DataDrawer)
        self._job_rows = store.drawer(JobDrawer)
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
            size = self._data.size(table.number, place)
            if isinstance(size, int) and size > most:
                raise too_large(size)
        json_text = self._data.text(table.number, place)
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
        current = self._table_rows.numbered_table(table.number)
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
        jobs = self._job_rows.jobs(table.number)
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
            table, tool = self._table_rows.numbered_table(table.number) or table, self._table_rows.tool(tool.id) or tool
        while True:
            results, dirty = self._search.find(table, place, query, args["top_k"])
            current = self._table_rows.numbered_table(table.number) or table
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
