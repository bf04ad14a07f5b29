"""The nine types of bound tools: the arguments and the answer of each, whatever table it is bound to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any

from commonplace.kinds.tables.json_tables import Tables
from commonplace.kinds.tables.rows import ToolRow
from commonplace.model import JSON
from commonplace.tools.arguments import Signature, check
from commonplace.tools.schema import INTEGER, OBJECT, STRING, STRINGS, Schema, answer, integer, many, obj, text
from commonplace.tools.tool import ADDS, CHANGES, READ_ONLY, Answer, Call, Tool

if TYPE_CHECKING:
    from commonplace.space import Space

_UPDATES = {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}
_ANY: Schema = {}
_VERSION = {"type": "integer", "description": "Refuse unless the table is at this version; answers tell it."}
_LIMIT = integer("How many rows.", default=100, least=1, most=1000)
_OFFSET = {"type": "integer", "description": "How many rows to pass over first.", "default": 0, "minimum": 0}
_KEYED = many(answer(key={"type": ["string", "integer"]}, json_path=STRING))
_ROWS = answer(rows=many(OBJECT), json_paths=STRINGS, total=INTEGER, has_more={"type": "boolean"})
INDEX = answer(status=STRING, generation=INTEGER, chunks_count=INTEGER, indexed_chunks_count=INTEGER)
_MEMBER = answer(json_pointer=STRING, start=INTEGER, end=INTEGER)
_CHUNK = answer(
    required=("id", "table_id", "json_pointer", "kind", "chunk_text", "char_start", "char_end", "content_hash"),
    id=STRING,
    table_id=STRING,
    json_pointer=STRING,
    kind={"type": "string", "enum": ["text", "record"]},
    chunk_text=STRING,
    char_start=INTEGER,
    char_end=INTEGER,
    chunk_index=INTEGER,
    total_chunks=INTEGER,
    content_hash=STRING,
    turbopuffer_namespace={"type": ["string", "null"]},
    turbopuffer_doc_id={"type": ["string", "null"]},
    members=many(_MEMBER),
)
_HIT = answer(score={"type": "number"}, json_path=STRING, chunk=_CHUNK)


def _elements(description: str, *, keyed: bool) -> Schema:
    key = {"type": ["string", "integer"] if keyed else ["string", "integer", "null"]}
    element = {
        "type": "object",
        "properties": {"key": key, "content": _ANY},
        "required": ["key", "content"] if keyed else ["content"],
        "additionalProperties": False,
    }
    return {"type": "array", "description": description, "items": element, "minItems": 1, "maxItems": 1000}


@dataclass(frozen=True, slots=True)
class ToolType:
    """The parts of a declaration that all tools of a type share."""

    title: str
    input: Schema
    output: Schema
    annotations: Mapping[str, bool]


_QUERY = text("What to look for, in words.", minLength=1, maxLength=2000)
TYPES: Mapping[str, ToolType] = {
    "get_data_schema": ToolType("Data schema", obj(), answer(schema=_ANY, meta=OBJECT), READ_ONLY),
    "get_all_data": ToolType("All data", obj(), answer(data=_ANY, version=INTEGER), READ_ONLY),
    "query_data": ToolType(
        "Query data",
        obj(required=("query",), query=text("A JMESPath expression.", minLength=1, maxLength=2000)),
        answer(data=_ANY, version=INTEGER),
        READ_ONLY,
    ),
    "create": ToolType(
        "Create elements",
        obj(
            required=("elements",),
            elements=_elements("What to add. A list appends, and needs no keys.", keyed=False),
            expected_version=_VERSION,
        ),
        answer(created=_KEYED, version=INTEGER),
        ADDS,
    ),
    "update": ToolType(
        "Update elements",
        obj(
            required=("updates",),
            updates=_elements("Whole values for keys that exist; of a list, its indices.", keyed=True),
            expected_version=_VERSION,
        ),
        answer(updated=_KEYED, version=INTEGER),
        _UPDATES,
    ),
    "delete": ToolType(
        "Delete elements",
        obj(
            required=("keys",),
            keys={
                "type": "array",
                "description": "Keys that exist; of a list, indices as they are before the call.",
                "items": {"type": ["string", "integer"]},
                "minItems": 1,
                "maxItems": 1000,
            },
            expected_version=_VERSION,
        ),
        answer(deleted=_KEYED, version=INTEGER),
        CHANGES,
    ),
    "preview": ToolType(
        "Preview rows",
        obj(
            required=("keys",),
            keys={
                "type": "array",
                "description": "The fields to show of each row.",
                "items": STRING,
                "minItems": 1,
                "maxItems": 100,
            },
            limit=_LIMIT,
            offset=_OFFSET,
        ),
        _ROWS,
        READ_ONLY,
    ),
    "select": ToolType(
        "Select rows",
        obj(
            required=("field", "keys"),
            field=text("The field to compare."),
            keys={
                "type": "array",
                "description": "The values it may have.",
                "items": {"type": ["string", "number", "boolean", "null"]},
                "minItems": 1,
                "maxItems": 1000,
            },
            limit=_LIMIT,
            offset=_OFFSET,
        ),
        _ROWS,
        READ_ONLY,
    ),
    "search": ToolType(
        "Search",
        obj(required=("query",), query=_QUERY, top_k=integer("How many passages.", default=5, least=1, most=20)),
        answer(query=STRING, results=many(_HIT), index=INDEX),
        READ_ONLY,
    ),
}


@cache
def _signature(type: str) -> Signature:
    return Signature(TYPES[type].input)


@dataclass(frozen=True)
class BoundTool(Tool):
    """A tool of a table as doors serve it. Its type's signature is made once for all tools of the type."""

    type: str = ""

    @cached_property
    def signature(self) -> Signature:
        return _signature(self.type)

    @property
    def counted_as(self) -> str:
        """Return its type for statistics: its name is its owner's, and there may be any number of names."""
        return f"instance.{self.type}"


def bound_tool(row: ToolRow) -> Tool:
    """Return a tool of a table as doors serve it."""
    kind = TYPES[row.type]
    declared = (row.name, kind.title, row.description, kind.input, kind.output, kind.annotations)
    return BoundTool(*declared, partial(_run, row), check=checked, type=row.type)


def _run(row: ToolRow, call: Call, args: Mapping[str, JSON]) -> Answer:
    return call.space.part(Tables).run(row, dict(args))


def run_tool(space: Space, row: ToolRow, arguments: Mapping[str, Any]) -> dict[str, JSON]:
    """Call a tool as its owner, without a binding, and return its answer. Raise InvalidInput."""
    tool = bound_tool(row)
    return space.part(Tables).run(row, tool.check(tool.name, tool.signature, arguments))


def checked(tool: str, signature: Signature, arguments: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return arguments with defaults filled in. Null is a value for `data`, and "not given" for all others."""
    args = check(tool, signature, arguments)
    if "data" in signature.properties and "data" in arguments and arguments["data"] is None:
        args["data"] = None
    return args
