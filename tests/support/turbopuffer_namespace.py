"""One namespace of the stand-in for turbopuffer: a schema, rows in memory, and what may be done with them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from support.turbopuffer_ranking import BadRequest, Row, bm25, condition, nearest, resolved, vector_of
from support.turbopuffer_schema import checked_attribute, checked_filter, declared, is_uuid, type_of

NAME = re.compile(r"[A-Za-z0-9\-_.]{1,128}")
MOST_QUERIES, MOST_HITS, LONGEST_QUERY = 16, 10_000, 8_192
MOST_UNINDEXED = 2_000_000_000
_VECTOR = re.compile(r"\[(\d+)\]f(16|32)")
_WRITES = {
    "upsert_rows", "upsert_columns", "patch_rows", "deletes", "delete_by_filter", "delete_by_filter_allow_partial",
    "upsert_condition", "patch_condition", "delete_condition", "schema", "distance_metric", "create_namespace",
    "disable_backpressure", "return_affected_ids",
}  # fmt: skip
_QUERY = {"rank_by", "filters", "top_k", "limit", "include_attributes", "exclude_attributes", "aggregate_by"}
_QUERIES = {"queries", "consistency", "vector_encoding", "rerank_by", "limit"}


class Namespace:
    """Rows are never changed in place, so a list of them is a snapshot."""

    def __init__(self) -> None:
        self.schema: dict[str, dict[str, Any]] = {}
        self.rows: dict[Any, Row] = {}
        self.before: dict[Any, Row] = {}
        self.metric: str | None = None
        self.created = self.updated = datetime.now(UTC).isoformat()
        self.unindexed = 0
        """Bytes that are written and not indexed yet, as a test says."""
        self.drift = 1
        """How far its own approximate count of rows is off."""

    # writing

    def write(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """All of a request or nothing. Deletes by filter come first, then rows, then patches, then deletes by id."""
        if unknown := set(body) - _WRITES:
            raise BadRequest(f"unknown fields: {', '.join(sorted(unknown))}")
        before = (self.schema, self.metric)
        try:
            done = self._written(body)
        except BaseException:
            self.schema, self.metric = before
            raise
        self.updated = datetime.now(UTC).isoformat()
        return done

    def _written(self, body: Mapping[str, Any]) -> dict[str, Any]:
        self.schema = declared(self.schema, body.get("schema") or {}, fresh=not self.schema)
        self.metric = self.metric or body.get("distance_metric")
        rows, counts, seen = dict(self.rows), dict[str, int](), set[Any]()
        if "delete_by_filter" in body:
            matches = condition(body["delete_by_filter"], self._filters)
            gone = [key for key, row in rows.items() if matches(row)]
            counts["rows_deleted"] = len(gone)
            for key in gone:
                del rows[key]
        if "upsert_rows" in body or "upsert_columns" in body:
            counts["rows_upserted"] = sum(self._upserted(rows, row, body, seen) for row in _rows(body))
        if "patch_rows" in body:
            counts["rows_patched"] = sum(self._patched(rows, patch, body, seen) for patch in body["patch_rows"])
        if "deletes" in body:
            gone = [key for key in body["deletes"] if self._deleted(rows, key, body, seen)]
            counts["rows_deleted"] = counts.get("rows_deleted", 0) + len(gone)
        if "vector" in self.schema and any("vector" not in row for row in rows.values()):
            raise BadRequest("every row needs a vector, since the namespace has a vector index")
        self.before, self.rows = self.rows, rows
        return {"rows_affected": sum(counts.values()), **counts, "billing": {"billable_logical_bytes_written": 1}}

    def _upserted(self, rows: dict[Any, Row], given: Row, body: Mapping[str, Any], seen: set[Any]) -> bool:
        row = self._checked(given, seen)
        if not self._allowed(rows, given["id"], body.get("upsert_condition"), given, missing=True):
            return False
        rows[given["id"]] = row
        return True

    def _patched(self, rows: dict[Any, Row], patch: Row, body: Mapping[str, Any], seen: set[Any]) -> bool:
        self._once(patch.get("id"), seen)
        if any(_VECTOR.fullmatch(self.schema.get(name, {}).get("type", "")) or name == "vector" for name in patch):
            raise BadRequest("vector attributes cannot be patched")
        for name, value in patch.items():
            self.schema = checked_attribute(self.schema, name, value)
        if not self._allowed(rows, patch["id"], body.get("patch_condition"), patch, missing=False):
            return False
        rows[patch["id"]] = {**rows[patch["id"]], **patch}
        return True

    def _deleted(self, rows: dict[Any, Row], key: Any, body: Mapping[str, Any], seen: set[Any]) -> bool:
        self._once(key, seen)
        allowed = self._allowed(rows, key, body.get("delete_condition"), {}, missing=False)
        return allowed and rows.pop(key, None) is not None

    def _allowed(self, rows: Mapping[Any, Row], key: Any, asked: object, new: Row, *, missing: bool) -> bool:
        """Whether a condition lets a row be written; what is not there is up to the kind of write."""
        matches = condition(resolved(asked, new), self._filters)
        return matches(rows[key]) if key in rows else missing

    def _checked(self, given: Row, seen: set[Any]) -> Row:
        self._once(given.get("id"), seen)
        kind = "uint" if isinstance(given["id"], int) else "string"
        if "id" not in self.schema:
            self.schema = {**self.schema, "id": {"type": kind}}
        if self.schema["id"]["type"] == "uuid" and not is_uuid(given["id"]):
            raise BadRequest(f"{given['id']!r} is not a uuid")
        if self.schema["id"]["type"] != "uuid" and self.schema["id"]["type"] != kind:
            raise BadRequest("the ids of a namespace are of one type")
        row = dict(given)
        for name, value in given.items():
            if name in ("id", "vector"):
                continue
            self.schema = checked_attribute(self.schema, name, value)
        if given.get("vector") is not None:
            row["vector"] = self._vector(given["vector"])
        return row

    def _vector(self, value: object) -> Any:
        vector = vector_of(value)
        if self.metric is None:
            raise BadRequest("vectors need a distance_metric")
        if "vector" not in self.schema:
            if self.rows or self.before:
                raise BadRequest("a vector column cannot be added to a namespace that has none")
            self.schema = {**self.schema, "vector": {"type": f"[{len(vector)}]f32", "ann": True}}
        known = _VECTOR.fullmatch(self.schema["vector"]["type"])
        if known is None or int(known[1]) != len(vector):
            raise BadRequest(f"a vector has {len(vector)} dimensions, the namespace {self.schema['vector']['type']}")
        return vector

    @staticmethod
    def _once(identity: Any, seen: set[Any]) -> None:
        if identity is None or (isinstance(identity, str) and not 0 < len(identity.encode()) <= 64):
            raise BadRequest(f"an id has 1 to 64 bytes, not {identity!r}")
        if identity in seen:
            raise BadRequest(f"id {identity} is there twice")
        seen.add(identity)

    def declare(self, schema: Mapping[str, Any]) -> None:
        self.schema = declared(self.schema, schema, fresh=False)

    def metadata(self) -> dict[str, Any]:
        index: dict[str, Any] = {"status": "up-to-date"}
        if self.unindexed:
            index = {"status": "updating", "unindexed_bytes": self.unindexed, "unindexed_rows": 1}
        return {
            "approx_row_count": len(self.rows) + self.drift,
            "approx_logical_bytes": 1,
            "created_at": self.created,
            "updated_at": self.updated,
            "encryption": {"mode": "default"},
            "index": index,
            "schema": self.schema,
        }

    # reading

    def query(self, body: Mapping[str, Any], *, stale: bool = False) -> dict[str, Any]:
        snapshot = list((self.before if stale else self.rows).values())
        if "rerank_by" in body:
            raise BadRequest("rerank_by is not served here")
        if "queries" not in body:
            return self._answered({name: body[name] for name in body if name != "consistency"}, snapshot)
        if unknown := set(body) - _QUERIES:
            raise BadRequest(f"unknown fields beside queries: {', '.join(sorted(unknown))}")
        queries = body["queries"]
        if not 1 <= len(queries) <= MOST_QUERIES:
            raise BadRequest(f"a request has 1 to {MOST_QUERIES} queries, not {len(queries)}")
        return {"results": [self._answered(one, snapshot) for one in queries]}

    def _answered(self, asked: Mapping[str, Any], snapshot: list[Row]) -> dict[str, Any]:
        if unknown := set(asked) - _QUERY - {"vector_encoding"}:
            raise BadRequest(f"unknown fields of a query: {', '.join(sorted(unknown))}")
        matches = condition(asked.get("filters"), self._filters)
        rows = [row for row in snapshot if matches(row)]
        if "aggregate_by" in asked:
            return {"aggregations": {label: _aggregated(what, rows) for label, what in asked["aggregate_by"].items()}}
        limit = asked.get("top_k", asked.get("limit"))
        limit = limit.get("total") if isinstance(limit, dict) else limit
        if not isinstance(limit, int) or not 1 <= limit <= MOST_HITS:
            raise BadRequest(f"top_k must be 1 to {MOST_HITS}, not {limit!r}")
        found = self._ordered(asked, rows, snapshot)[:limit]
        included = asked.get("include_attributes")
        for name in included if isinstance(included, list) else ():
            self._known(name)
        return {"rows": [_shown(row, distance, included) for row, distance in found]}

    def _ordered(
        self, asked: Mapping[str, Any], rows: list[Row], snapshot: list[Row]
    ) -> list[tuple[Row, float | None]]:
        rank_by = asked.get("rank_by")
        if not isinstance(rank_by, list) or len(rank_by) not in (2, 3):
            raise BadRequest(f"cannot rank by {rank_by!r}")
        name = rank_by[0]
        self._known(name)
        if len(rank_by) == 2 and rank_by[1] in ("asc", "desc"):
            if name != "id" and not self.schema[name].get("filterable"):
                raise BadRequest(f"attribute {name} is not filterable")
            ordered = sorted(rows, key=lambda row: row[name], reverse=rank_by[1] == "desc")
            return [(row, None) for row in ordered]
        if rank_by[1] in ("ANN", "kNN"):
            if rank_by[1] == "kNN" and not asked.get("filters"):
                raise BadRequest("kNN needs filters")
            dims = _VECTOR.fullmatch(self.schema[name]["type"])
            return [*nearest([row for row in rows if name in row], rank_by[2], int(dims[1]) if dims else None)]
        settings = self.schema[name].get("full_text_search")
        if rank_by[1] != "BM25" or not settings:
            raise BadRequest(f"cannot rank by {rank_by!r}: attribute {name} has no full text search")
        return [*bm25(rows, snapshot, name, _query_text(rank_by[2], settings), settings)]

    def _known(self, name: str) -> dict[str, Any]:
        if name not in self.schema:
            raise BadRequest(f"attribute {name} is not in the schema")
        return self.schema[name]

    def _filters(self, name: str, operator: str, value: Any) -> None:
        checked_filter(name, self._known(name), operator, value)


def _rows(body: Mapping[str, Any]) -> Iterator[Row]:
    yield from body.get("upsert_rows") or ()
    columns = body.get("upsert_columns") or {}
    if len({len(values) for values in columns.values()}) > 1:
        raise BadRequest("columns are of one length")
    for place in range(len(columns.get("id", ()))):
        yield {name: values[place] for name, values in columns.items()}


def _query_text(query: Any, settings: Mapping[str, Any]) -> Any:
    tokens = settings.get("tokenizer") == "pre_tokenized_array"
    if not isinstance(query, list if tokens else str):
        raise BadRequest(f"a query of this attribute is {'an array of tokens' if tokens else 'a string'}")
    text = " ".join(query) if tokens else query
    if len(text.encode()) > LONGEST_QUERY:  # type: ignore[union-attr]
        raise BadRequest(f"a full-text query has at most {LONGEST_QUERY} bytes")
    return query


def _aggregated(asked: Any, rows: list[Row]) -> int:
    if asked != ["Count"]:
        raise BadRequest(f"{type_of(asked)} aggregations are not served here")
    return len(rows)


def _shown(row: Row, distance: float | None, included: Any) -> dict[str, Any]:
    names = [name for name in row if name != "vector"] if included is True else included or []
    shown = {"id": row["id"], **{name: row[name] for name in names if name in row}}
    if "vector" in shown:
        shown["vector"] = shown["vector"].tolist()
    return shown if distance is None else {**shown, "$dist": distance}
