"""One namespace of the stand-in for turbopuffer: a schema, rows in memory, and what may be done with them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from support.turbopuffer_ranking import BadRequest, Row, bm25, condition, nearest, vector_of

NAME = re.compile(r"[A-Za-z0-9\-_.]{1,128}")
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
MOST_QUERIES, MOST_HITS = 16, 10_000
_VECTOR = re.compile(r"\[(\d+)\]f(16|32)")


class Namespace:
    """Rows are never changed in place, so a list of them is a snapshot."""

    def __init__(self) -> None:
        self.schema: dict[str, dict[str, Any]] = {"id": {"type": "uint"}}
        self.rows: dict[Any, Row] = {}
        self.before: dict[Any, Row] = {}
        self.dims: int | None = None

    # writing

    def write(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """All of a request or nothing. Deletes by filter come first, then rows, then deletes by id."""
        schema, dims = dict(self.schema), self.dims
        for name, given in (body.get("schema") or {}).items():
            self._declare(schema, name, {"type": given} if isinstance(given, str) else dict(given))
        rows = dict(self.rows)
        counts = {"rows_upserted": 0, "rows_patched": 0, "rows_deleted": 0}
        if "delete_by_filter" in body:
            matches = condition(body["delete_by_filter"], self._filterable)
            gone = [key for key, row in rows.items() if matches(row)]
            counts["rows_deleted"] += len(gone)
            for key in gone:
                del rows[key]
        seen: set[Any] = set()
        for given in _rows(body):
            dims = self._checked(schema, dims, given, body, seen)
            row = {**given, "vector": vector_of(given["vector"])} if given.get("vector") is not None else dict(given)
            rows[given["id"]] = row
            counts["rows_upserted"] += 1
        for patch in body.get("patch_rows") or ():
            self._once(patch["id"], seen)
            if patch["id"] in rows:
                rows[patch["id"]] = {**rows[patch["id"]], **patch}
                counts["rows_patched"] += 1
        for key in body.get("deletes") or ():
            self._once(key, seen)
            counts["rows_deleted"] += rows.pop(key, None) is not None
        if dims is not None and any("vector" not in row for row in rows.values()):
            raise BadRequest("every row needs a vector, since some have one")
        self.schema, self.before, self.rows, self.dims = schema, self.rows, rows, dims
        return {"rows_affected": sum(counts.values()), **counts, "billing": {"billable_logical_bytes_written": 1}}

    def declare(self, schema: Mapping[str, Any]) -> None:
        known = dict(self.schema)
        for name, given in schema.items():
            self._declare(known, name, {"type": given} if isinstance(given, str) else dict(given))
        self.schema = known

    def _checked(
        self, schema: dict[str, dict[str, Any]], dims: int | None, row: Row, body: Mapping[str, Any], seen: set[Any]
    ) -> int | None:
        self._once(row.get("id"), seen)
        if schema["id"]["type"] == "uuid" and not UUID.fullmatch(str(row["id"])):
            raise BadRequest(f"{row['id']!r} is not a uuid")
        for name, value in row.items():
            if name in ("id", "vector") or value is None:
                continue
            if name not in schema:
                schema[name] = {"type": _type_of(value), "filterable": True}
            if not _fits(schema[name]["type"], value):
                raise BadRequest(f"attribute {name} is {schema[name]['type']}, not {_type_of(value)}")
        if row.get("vector") is None:
            return dims
        if "distance_metric" not in body and not self.rows and self.dims is None:
            raise BadRequest("vectors need a distance_metric")
        length = len(vector_of(row["vector"]))
        declared = _VECTOR.fullmatch(schema.get("vector", {}).get("type", ""))
        if (dims or length) != length or (declared and int(declared[1]) != length):
            raise BadRequest(f"a vector has {length} dimensions, the namespace {dims or (declared and declared[1])}")
        return length

    @staticmethod
    def _once(identity: Any, seen: set[Any]) -> None:
        if identity is None or (isinstance(identity, str) and not 0 < len(identity.encode()) <= 64):
            raise BadRequest(f"an id has 1 to 64 bytes, not {identity!r}")
        if identity in seen:
            raise BadRequest(f"id {identity} is there twice")
        seen.add(identity)

    def _declare(self, schema: dict[str, dict[str, Any]], name: str, given: dict[str, Any]) -> None:
        if "type" not in given:
            given["type"] = schema.get(name, {}).get("type", "string")
        known = schema.get(name)
        if known and known["type"] != given["type"] and self.rows:
            raise BadRequest(f"attribute {name} is {known['type']} and cannot become {given['type']}")
        given.setdefault("filterable", not given.get("full_text_search"))
        schema[name] = given

    # reading

    def query(self, body: Mapping[str, Any], *, stale: bool = False) -> dict[str, Any]:
        snapshot = list((self.before if stale else self.rows).values())
        if "rerank_by" in body:
            raise BadRequest("rerank_by is not served here")
        if "queries" not in body:
            return {"rows": self._ranked(body, snapshot)}
        queries = body["queries"]
        if not 1 <= len(queries) <= MOST_QUERIES:
            raise BadRequest(f"a request has 1 to {MOST_QUERIES} queries, not {len(queries)}")
        return {"results": [{"rows": self._ranked(one, snapshot)} for one in queries]}

    def _ranked(self, asked: Mapping[str, Any], snapshot: list[Row]) -> list[dict[str, Any]]:
        limit = asked.get("top_k", asked.get("limit"))
        if isinstance(limit, dict):
            limit = limit.get("total")
        if not isinstance(limit, int) or not 1 <= limit <= MOST_HITS:
            raise BadRequest(f"top_k must be 1 to {MOST_HITS}, not {limit!r}")
        matches = condition(asked.get("filters"), self._filterable)
        rows = [row for row in snapshot if matches(row)]
        found = self._ordered(asked.get("rank_by"), rows, snapshot)[:limit]
        return [self._shown(row, distance, asked.get("include_attributes")) for row, distance in found]

    def _ordered(self, rank_by: Any, rows: list[Row], snapshot: list[Row]) -> list[tuple[Row, float | None]]:
        if not isinstance(rank_by, list) or len(rank_by) not in (2, 3):
            raise BadRequest(f"cannot rank by {rank_by!r}")
        name = rank_by[0]
        if len(rank_by) == 2 and rank_by[1] in ("asc", "desc"):
            if not self._filterable(name):
                raise BadRequest(f"attribute {name} is not filterable")
            ordered = sorted(rows, key=lambda row: row[name], reverse=rank_by[1] == "desc")
            return [(row, None) for row in ordered]
        if rank_by[1] in ("ANN", "kNN"):
            return [*nearest([row for row in rows if "vector" in row], rank_by[2], self.dims)]
        if rank_by[1] == "BM25":
            if not self.schema.get(name, {}).get("full_text_search"):
                raise BadRequest(f"attribute {name} has no full text search")
            return [*bm25(rows, snapshot, name, rank_by[2])]
        raise BadRequest(f"cannot rank by {rank_by!r}")

    @staticmethod
    def _shown(row: Row, distance: float | None, included: Any) -> dict[str, Any]:
        names = [name for name in row if name != "vector"] if included is True else included or []
        shown = {"id": row["id"], **{name: row[name] for name in names if name in row}}
        if "vector" in shown:
            shown["vector"] = shown["vector"].tolist()
        return shown if distance is None else {**shown, "$dist": distance}

    def _filterable(self, name: str) -> bool:
        return name == "id" or bool(self.schema.get(name, {"filterable": True}).get("filterable"))


def _rows(body: Mapping[str, Any]) -> Iterator[Row]:
    yield from body.get("upsert_rows") or ()
    columns = body.get("upsert_columns") or {}
    for place in range(len(columns.get("id", ()))):
        yield {name: values[place] for name, values in columns.items()}


def _type_of(value: Any) -> str:
    if isinstance(value, list):
        return f"[]{_type_of(value[0])}" if value else "[]string"
    names = {bool: "bool", int: "int", float: "float", str: "string"}
    return names.get(type(value), type(value).__name__)


def _fits(kind: str, value: Any) -> bool:
    if kind.startswith("[]"):
        return isinstance(value, list) and all(_fits(kind[2:], one) for one in value)
    if kind in ("int", "uint"):
        return isinstance(value, int) and not isinstance(value, bool) and (kind == "int" or value >= 0)
    return isinstance(value, {"bool": bool, "float": (int, float)}.get(kind, str))
