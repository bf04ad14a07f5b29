"""The stand-in for turbopuffer answers the real SDK as the service does: what it takes and refuses, how it ranks."""

from __future__ import annotations

import base64
import struct
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import numpy as np
import pytest
import turbopuffer
from hypothesis import given, settings
from hypothesis import strategies as st

from support.turbopuffer_ranking import condition
from support.turbopuffer_server import TurbopufferServer


@pytest.fixture
def server() -> Iterator[TurbopufferServer]:
    with TurbopufferServer() as server:
        yield server


@pytest.fixture
def client(server: TurbopufferServer) -> Iterator[turbopuffer.Turbopuffer]:
    with turbopuffer.Turbopuffer(
        api_key=server.key, base_url=server.url, max_retries=0, _strict_response_validation=True
    ) as client:
        yield client


WORDS = {"type": "[]string", "full_text_search": {"tokenizer": "pre_tokenized_array"}, "filterable": True}


def write(client: turbopuffer.Turbopuffer, *rows: dict[str, Any], **more: Any) -> Any:
    return client.namespace("n").write(upsert_rows=rows, distance_metric="cosine_distance", **more)


def ids(client: turbopuffer.Turbopuffer, **asked: Any) -> list[Any]:
    return [row.id for row in client.namespace("n").query(top_k=10, **asked).rows or ()]


def test_vectors_come_as_lists_and_as_base64_and_are_ranked_by_cosine(client: turbopuffer.Turbopuffer) -> None:
    encoded = base64.b64encode(struct.pack("<2f", 0, 2)).decode()
    done = write(client, {"id": 1, "vector": [1.0, 0.0]}, {"id": 2, "vector": encoded}, {"id": 3, "vector": [1.0, 1.0]})
    assert (done.rows_affected, done.rows_upserted, done.status) == (3, 3, "OK")
    found = client.namespace("n").query(rank_by=("vector", "ANN", [1.0, 0.1]), top_k=3).rows or []
    assert [row.id for row in found] == [1, 3, 2]
    assert found[0]["$dist"] == pytest.approx(1 - 1 / np.sqrt(1.01), abs=1e-6)


def test_bm25_ranks_tokens_and_leaves_out_what_has_none(client: turbopuffer.Turbopuffer) -> None:
    write(
        client,
        {"id": 1, "words": ["tea", "tea", "pot"]},
        {"id": 2, "words": ["tea", "and", "much", "more"]},
        {"id": 3, "words": ["coffee"]},
        schema={"words": WORDS},
    )
    assert ids(client, rank_by=("words", "BM25", ["tea"])) == [1, 2]
    assert ids(client, rank_by=("words", "BM25", ["tea"]), filters=("words", "Contains", "more")) == [2]


def test_rows_come_in_the_order_of_an_attribute(client: turbopuffer.Turbopuffer) -> None:
    write(client, {"id": 1, "n": 3}, {"id": 2, "n": 1}, {"id": 3, "n": 2})
    assert ids(client, rank_by=("n", "asc")) == [2, 3, 1]
    assert ids(client, rank_by=("n", "desc"), filters=("n", "Gt", 1)) == [1, 3]


def test_many_queries_are_answered_from_one_moment_and_in_order(client: turbopuffer.Turbopuffer) -> None:
    write(client, {"id": 1, "vector": [1.0, 0.0], "n": 1}, {"id": 2, "vector": [0.0, 1.0], "n": 2})
    queries = [
        {"rank_by": ("vector", "ANN", [0.0, 1.0]), "top_k": 1, "include_attributes": ["n"]},
        {"rank_by": ("n", "asc"), "top_k": 5},
    ]
    first, second = client.namespace("n").multi_query(queries=queries).results
    assert [(row.id, row.n) for row in first.rows or ()] == [(2, 2)]
    assert [row.id for row in second.rows or ()] == [1, 2]
    with pytest.raises(turbopuffer.BadRequestError):
        client.namespace("n").multi_query(queries=queries * 9)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"upsert_rows": [{"id": 1}, {"id": 1}]}, "twice"),
        ({"upsert_rows": [{"id": 1}], "deletes": [1]}, "twice"),
        ({"upsert_rows": [{"id": "x" * 65}]}, "64 bytes"),
        ({"upsert_rows": [{"id": 9, "n": "text"}]}, "is int"),
        ({"upsert_rows": [{"id": 9, "vector": [1.0]}], "distance_metric": "cosine_distance"}, "dimensions"),
        ({"upsert_rows": [{"id": 9}]}, "needs a vector"),
        ({"upsert_rows": [{"id": 9, "vector": [1.0, 0.0]}], "schema": {"n": "string"}}, "cannot become"),
    ],
)
def test_what_the_service_refuses_is_refused_and_changes_nothing(
    server: TurbopufferServer, client: turbopuffer.Turbopuffer, body: dict[str, Any], said: str
) -> None:
    write(client, {"id": 1, "vector": [1.0, 0.0], "n": 1})
    before = server.rows()
    with pytest.raises(turbopuffer.BadRequestError, match=said):
        client.namespace("n").write(**body)
    assert server.rows() == before


def test_a_vector_needs_a_metric_and_a_namespace_a_plain_name(client: turbopuffer.Turbopuffer) -> None:
    with pytest.raises(turbopuffer.BadRequestError, match="distance_metric"):
        client.namespace("new").write(upsert_rows=[{"id": 1, "vector": [1.0]}])
    with pytest.raises(turbopuffer.BadRequestError, match="no name"):
        client.namespace("a b").write(upsert_rows=[{"id": 1}])


def test_what_cannot_be_filtered_or_reranked_is_refused(client: turbopuffer.Turbopuffer) -> None:
    write(client, {"id": 1, "n": 1}, schema={"n": {"type": "int", "filterable": False}})
    with pytest.raises(turbopuffer.BadRequestError, match="not filterable"):
        ids(client, rank_by=("id", "asc"), filters=("n", "Eq", 1))
    with pytest.raises(turbopuffer.BadRequestError, match="rerank_by"):
        client.namespace("n").multi_query(
            queries=[{"rank_by": ("id", "asc"), "top_k": 1}], rerank_by=("RRF", {}), limit=1
        )


def test_columns_patches_and_deletes_do_what_they_say(
    server: TurbopufferServer, client: turbopuffer.Turbopuffer
) -> None:
    namespace = client.namespace("n")
    namespace.write(upsert_columns={"id": [1, 2, 3], "n": [1, 2, 3]})
    namespace.write(patch_rows=[{"id": 2, "m": 5}])
    done = namespace.write(delete_by_filter=("n", "Gte", 3), deletes=[1])
    assert (done.rows_deleted, server.rows()["n"]) == (2, {2: {"id": 2, "n": 2, "m": 5}})
    found = namespace.metadata()
    assert (found.approx_row_count != 1, found.index.status) == (True, "up-to-date")
    assert namespace.query(aggregate_by={"rows": ("Count",)}).aggregations == {"rows": 1}
    assert namespace.schema()["n"].type == "int"
    assert namespace.hint_cache_warm().status == "ACCEPTED"
    namespace.delete_all()
    with pytest.raises(turbopuffer.NotFoundError):
        namespace.metadata()


def test_namespaces_are_listed_by_prefix_over_pages(client: turbopuffer.Turbopuffer) -> None:
    for number in range(5):
        client.namespace(f"a{number}").write(upsert_rows=[{"id": 1}])
    client.namespace("b").write(upsert_rows=[{"id": 1}])
    assert [found.id for found in client.namespaces(prefix="a", page_size=2)] == [f"a{n}" for n in range(5)]


def test_a_wrong_key_is_refused_and_a_zipped_request_is_read(server: TurbopufferServer) -> None:
    with (
        turbopuffer.Turbopuffer(api_key="other", base_url=server.url, max_retries=0) as wrong,
        pytest.raises(turbopuffer.AuthenticationError),
    ):
        wrong.namespace("n").metadata()
    with turbopuffer.Turbopuffer(api_key=server.key, base_url=server.url, compression=True) as zipping:
        zipping.namespace("n").write(upsert_rows=[{"id": 1, "text": "long " * 800}])
    (logged,) = server.requests("write")
    assert logged.headers["Content-Encoding"] == "gzip"
    assert len(server.rows()["n"]) == 1


REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("4096 bytes", {"upsert_rows": [{"id": 5, "tags": ["x" * 4097]}]}),
    ("4096 bytes", {"upsert_rows": [{"id": 5, "said": "é" * 2049}]}),
    ("8388608 bytes", {"upsert_rows": [{"id": 5, "raw": "x" * (8 * 1024 * 1024 + 1)}]}),
    ("cannot be patched", {"patch_rows": [{"id": 1, "vector": [1.0, 1.0]}]}),
    ("cannot be added", {"schema": {"second": {"type": "[2]f32", "ann": True}}}),
    ("is int", {"upsert_rows": [{"id": 1, "n": "one"}]}),
    ("unknown fields", {"upserts": []}),
    ("max_token_length", {"schema": {"w": {"type": "[]string", "full_text_search": {"max_token_length": 255}}}}),
    ("not in the schema", {"deletes": [1], "delete_condition": ("nothing", "Eq", 1)}),
    ("cannot become", {"schema": {"n": "uint"}}),
]


@pytest.mark.parametrize(("said", "body"), REFUSED)
def test_limits_and_types_are_those_of_the_documentation(
    server: TurbopufferServer, client: turbopuffer.Turbopuffer, said: str, body: dict[str, Any]
) -> None:
    first = {"id": 1, "vector": [1.0, 0.0], "n": 1, "tags": ["a"], "said": "x", "raw": "y"}
    write(client, first, schema={"raw": {"type": "string", "filterable": False}, "words": WORDS})
    rows = [row | {"vector": [1.0, 0.0]} for row in body.get("upsert_rows", ())]
    before = server.rows()
    with pytest.raises(turbopuffer.BadRequestError, match=said):
        client.post("/v2/namespaces/n", cast_to=object, body=body | ({"upsert_rows": rows} if rows else {}))
    assert server.rows() == before


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("not in the schema", {"rank_by": ("id", "asc"), "include_attributes": ["nothing"]}),
        ("not in the schema", {"rank_by": ("id", "asc"), "filters": ("nothing", "Eq", 1)}),
        ("not in the schema", {"rank_by": ("nothing", "asc")}),
        ("cannot be compared", {"rank_by": ("id", "asc"), "filters": ("n", "Eq", "one")}),
        ("kNN needs filters", {"rank_by": ("vector", "kNN", [1.0, 0.0])}),
        ("8192 bytes", {"rank_by": ("words", "BM25", ["é" * 100] * 50)}),
        ("array of tokens", {"rank_by": ("words", "BM25", "tea")}),
    ],
)
def test_a_query_that_the_documentation_rules_out_is_refused(
    client: turbopuffer.Turbopuffer, said: str, asked: dict[str, Any]
) -> None:
    write(client, {"id": 1, "vector": [1.0, 0.0], "n": 1, "words": ["tea"]}, schema={"words": WORDS})
    with pytest.raises(turbopuffer.BadRequestError, match=said):
        ids(client, **asked)


def test_a_token_that_is_too_long_is_found_by_a_filter_and_by_no_ranking(client: turbopuffer.Turbopuffer) -> None:
    write(client, {"id": 1, "words": ["x" * 39, "y" * 40]}, schema={"words": WORDS})
    assert ids(client, rank_by=("words", "BM25", ["x" * 39])) == [1]
    assert ids(client, rank_by=("words", "BM25", ["y" * 40])) == []
    assert ids(client, rank_by=("id", "asc"), filters=("words", "Contains", "y" * 40)) == [1]


def test_a_condition_is_asked_of_what_is_there(server: TurbopufferServer, client: turbopuffer.Turbopuffer) -> None:
    write(client, {"id": 1, "v": 5}, {"id": 2, "v": 5})
    newer = ("v", "Lte", {"$ref_new": "v"})
    done = client.namespace("n").write(
        upsert_rows=[{"id": 1, "v": 4}, {"id": 2, "v": 6}, {"id": 3, "v": 1}], upsert_condition=newer
    )
    assert done.rows_upserted == 2
    assert {key: row["v"] for key, row in server.rows()["n"].items()} == {1: 5, 2: 6, 3: 1}
    assert client.namespace("n").write(deletes=[1, 2, 9], delete_condition=("v", "Lte", 5)).rows_deleted == 1


def test_a_namespace_is_made_by_rows_alone(client: turbopuffer.Turbopuffer) -> None:
    for write in ({"deletes": [1]}, {"schema": {"n": "int"}}):
        with pytest.raises(turbopuffer.NotFoundError):
            client.namespace("n").write(**write)


def test_a_key_may_lack_the_right_to_list(server: TurbopufferServer, client: turbopuffer.Turbopuffer) -> None:
    server.may_list = False
    with pytest.raises(turbopuffer.PermissionDeniedError):
        list(client.namespaces())


def test_a_request_and_what_is_not_indexed_have_their_limits(
    server: TurbopufferServer, client: turbopuffer.Turbopuffer
) -> None:
    write(client, {"id": 1})
    server.namespaces["n"].unindexed = 3_000_000_000
    index = client.namespace("n").metadata().index
    assert (index.status, getattr(index, "unindexed_bytes", 0)) == ("updating", 3_000_000_000)
    with pytest.raises(turbopuffer.RateLimitError):
        write(client, {"id": 2})
    server.most_bytes = 1_000
    with pytest.raises(turbopuffer.APIStatusError) as told:
        write(client, {"id": 3, "text": "x" * 1_000})
    assert told.value.status_code == 413


def test_more_than_sixteen_queries_at_once_wait_and_are_refused(
    server: TurbopufferServer, client: turbopuffer.Turbopuffer
) -> None:
    write(client, {"id": 1})
    query: Any = {"rank_by": ("id", "asc"), "top_k": 1}
    server.fail("query", "delay", seconds=2.0)
    with ThreadPoolExecutor(1) as others:
        slow = others.submit(client.namespace("n").multi_query, queries=[query] * 13)
        while not server.requests("query"):
            time.sleep(0.005)
        assert len(client.namespace("n").multi_query(queries=[query] * 3).results) == 3
        with pytest.raises(turbopuffer.RateLimitError):
            client.namespace("n").query(aggregate_by={"rows": ("Count",)})
        assert len(slow.result().results) == 13


def test_errors_have_one_shape(server: TurbopufferServer) -> None:
    answer = httpx.get(f"{server.url}/v2/namespaces/none/metadata", headers={"Authorization": f"Bearer {server.key}"})
    assert (answer.status_code, answer.json()["status"]) == (404, "error")


def test_an_operation_that_takes_longer_is_followed(server: TurbopufferServer, client: turbopuffer.Turbopuffer) -> None:
    server.fail("write", "async")
    assert write(client, {"id": 1}).rows_affected == 1
    assert [logged.kind for logged in server.log] == ["write", "poll", "poll"]


VALUES = st.integers(-2, 2)
ROWS = st.fixed_dictionaries({"n": VALUES, "tags": st.lists(st.sampled_from("abc"), max_size=3)})
LEAVES = st.one_of(
    st.tuples(st.just("n"), st.sampled_from(["Eq", "NotEq", "Lt", "Lte", "Gt", "Gte"]), VALUES),
    st.tuples(st.just("n"), st.sampled_from(["In", "NotIn"]), st.lists(VALUES, max_size=3)),
    st.tuples(st.just("tags"), st.just("Contains"), st.sampled_from("abc")),
    st.tuples(st.just("tags"), st.just("ContainsAny"), st.lists(st.sampled_from("abc"), max_size=2)),
).map(list)
FILTERS = st.recursive(
    LEAVES,
    lambda inner: (
        st.tuples(st.sampled_from(["And", "Or"]), st.lists(inner, min_size=1, max_size=3)).map(list)
        | inner.map(lambda part: ["Not", part])
    ),
    max_leaves=5,
)


@given(row=ROWS, filter=FILTERS)
@settings(max_examples=100)
def test_a_filter_and_its_negation_divide_all_rows(row: dict[str, Any], filter: list[Any]) -> None:
    def allows(asked: list[Any]) -> bool:
        return condition(asked, lambda *_: None)(row)

    assert allows(filter) is not allows(["Not", filter])
    assert allows(["And", [filter, filter]]) is allows(["Or", [filter, filter]]) is allows(filter)
