"""Searching over turbopuffer.

1. One request asks for both legs, strongly consistent, and every condition of the scope is in both of its parts.
2. What is stale is never returned, and the search looks deeper for what is not.
3. Answers are those of the local index.
4. What goes wrong is one of a few codes with a sentence, in which, as in every log line, there is no key.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings

from commonplace.errors import Unavailable
from commonplace.index.followers import VectorQuery
from commonplace.index.scope import Scope
from commonplace.index.turbopuffer import remote_reader as turbopuffer_reader
from commonplace.index.turbopuffer import wire as turbopuffer_wire
from commonplace.index.turbopuffer.indexes import TurbopufferVectors
from commonplace.index.turbopuffer.remote_index import TurbopufferIndex
from commonplace.index.turbopuffer.service_settings import Naming, service
from commonplace.index.turbopuffer.wire import TurbopufferWire
from commonplace.index.words.lexical_query import LexicalQuery
from commonplace.kinds.knowledge.item_search import SearchRequest
from commonplace.library import Library
from commonplace.model import Change, Condition, Draft, Filter, IndexedItem, chunk_id
from commonplace.text.terms import Term
from opening import library_settings, serving_index
from strategies import corpora, field_filters, queries
from support.turbopuffer_server import TurbopufferServer

TEA = Draft("note", "tea", title="About tea", body="Oolong wants water just off the boil.")
DIMS = 4


@pytest.fixture
def server() -> Iterator[TurbopufferServer]:
    with serving_index("turbopuffer") as server:
        assert server is not None
        yield server


@pytest.fixture
def library(server: TurbopufferServer, tmp_path: Path) -> Iterator[Library]:
    with Library.open(tmp_path, settings=library_settings(tmp_path)) as library:
        yield library


def uris(library: Library, query: str, **more: Any) -> list[str]:
    return [hit.uri for hit in library.search(query, **more).hits]


# requests


def test_one_request_asks_for_both_legs(library: Library, server: TurbopufferServer) -> None:
    library.put(TEA)
    library.embed()
    library.lexical.catch_up()
    server.log.clear()
    assert uris(library, "hot oolong") == ["notes://tea"]
    (logged,) = server.log
    near, words = logged.body["queries"]
    assert (logged.kind, logged.body["consistency"]) == ("query", {"level": "strong"})
    assert (near["rank_by"][:2], near["filters"]) == (["vector", "ANN"], ["embedded", "Eq", True])
    assert (words["rank_by"][:2], "filters" in words) == (["content", "BM25"], False)
    assert min(near["top_k"], words["top_k"]) >= 50


def test_a_filter_is_a_condition_of_both_parts(library: Library, server: TurbopufferServer) -> None:
    library.put_many([TEA, replace(TEA, key="other", parent="shelf", tags=("hot",))])
    library.embed()
    library.lexical.catch_up()
    server.log.clear()
    found = uris(library, "oolong", filter=Filter(kinds=("note",), parents=("shelf",), tags=("Hot",)))
    assert len(found) == 1
    legs = server.requests("query")[0].body["queries"]  # what follows counts passages with all words, in any scope
    assert len(legs) == 2
    for part in legs:
        for asked in (["kind", "Eq", "note"], ["parent", "Eq", "shelf"], ["tags", "ContainsAny", ["hot"]]):
            assert asked in part["filters"][1]


def test_a_long_query_is_cut_for_the_service_and_answered(library: Library, server: TurbopufferServer) -> None:
    library.put_many(Draft("note", str(n), body=f"longword{n:05d} " * 3) for n in range(900))
    words = " ".join(f"longword{n:05d}" for n in range(900))
    assert library.search(words, mode="lexical").hits
    for logged in server.requests("query"):
        for part in logged.body["queries"]:
            if part["rank_by"][1] == "BM25":
                assert len(" ".join(part["rank_by"][2]).encode()) <= 8_192


# tables


class Nodes:
    """A log of a table's nodes, as the store would give it; all of them have vectors."""

    def __init__(self) -> None:
        self.items: dict[int, IndexedItem] = {}
        self.log: list[Change] = []

    def put(self, number: int, pointer: str, text: str, *, table: str = "t1", generation: int = 1) -> None:
        facets = ("project:p1", f"generation:{generation}", *(f"scope:{place}" for place in _around(pointer)))
        chunk = (chunk_id(number, 0), "", text)
        self.items[number] = IndexedItem(number, "table", table, pointer, "", "en", (), 0, 0, [chunk], "", facets)
        self.log.append(Change(len(self.log) + 1, "put", number, 1))

    def delete(self, number: int) -> None:
        del self.items[number]
        self.log.append(Change(len(self.log) + 1, "delete", number, 1))

    def last_change(self) -> int:
        return len(self.log)

    def changes(self, after: int, limit: int) -> list[Change]:
        return self.log[after : after + limit]

    def indexed(self, item_ids: Sequence[int]) -> list[IndexedItem]:
        return [self.items[number] for number in item_ids if number in self.items]

    def models(self) -> list[_Model]:
        return [_Model()]

    def vectors_of(self, *given: Any) -> tuple[Any, Any]:
        numbers = [number for number in given[-1] if number in self.items]
        vectors = np.eye(DIMS, dtype=np.float16)[[number % DIMS for number in numbers]]
        return np.array([chunk_id(number, 0) for number in numbers], np.int64), vectors.reshape(-1, DIMS)


class _Model:
    id, dims, fingerprint = 1, DIMS, "print"


def _around(pointer: str) -> list[str]:
    tokens = pointer.split("/")
    return ["/".join(tokens[:count]) for count in range(1, len(tokens) + 1)]


@pytest.fixture
def nodes() -> Nodes:
    return Nodes()


@pytest.fixture
def index(server: TurbopufferServer, nodes: Nodes, tmp_path: Path) -> Iterator[TurbopufferIndex]:
    wire = TurbopufferWire(service())
    yield TurbopufferIndex(
        tmp_path / "i", nodes, "en", wire=wire, naming=lambda: Naming("", "default", "log"), models=nodes
    )
    wire.close()


def _within(pointer: str, generation: int = 1) -> Scope:
    return Scope(parents=("t1",), facets=(f"scope:{pointer}",), must=(f"generation:{generation}",))


WORD = LexicalQuery((Term(("tea",), 1.0),))


def test_a_table_has_a_namespace_and_its_rows_their_place(
    server: TurbopufferServer, nodes: Nodes, index: TurbopufferIndex
) -> None:
    nodes.put(1, "/a/0", "green tea")
    nodes.put(2, "/b", "black tea", table="t2")
    assert index.catch_up() == 2
    naming = Naming("", "default", "log", model="print")
    first, second = naming.table("p1", "t1"), naming.table("p1", "t2")
    assert sorted(server.rows()) == [first, second]
    (row,) = server.rows()[first].values()
    assert (row["table_id"], row["json_pointer"], row["scopes"]) == ("t1", "/a/0", ["", "/a", "/a/0"])
    assert (row["generation"], row["chunk_index"]) == (1, 0)
    assert index.places([chunk_id(1, 0), 5]) == {chunk_id(1, 0): (first, row["id"])}
    nodes.delete(1)
    index.catch_up()
    assert [logged.namespace for logged in server.requests("delete")][-1] == first
    assert sorted(server.rows()) == [second]


def test_a_table_s_queries_name_the_table_the_generation_and_the_place(
    server: TurbopufferServer, nodes: Nodes, index: TurbopufferIndex
) -> None:
    for number, pointer in enumerate(("/stock/3", "/stockroom", "/a/stock"), start=1):
        nodes.put(number, pointer, "green tea")
    nodes.put(4, "/stock", "green tea", table="t2")
    vectors, scope = TurbopufferVectors(index, nodes, DIMS, "print"), _within("/stock")
    items, towards = np.array([1], np.int64), np.ones(DIMS, np.float32)
    vectors.catch_up()
    server.log.clear()

    def both(reader: Any) -> tuple[list[int], list[int]]:
        reader.expect(WORD, 5, scope, VectorQuery(towards, items, None))
        return reader.search(WORD, 5, scope)[0].tolist(), vectors.search(towards, 5, items)[0].tolist()

    assert index.ask(both) == ([chunk_id(1, 0)], [chunk_id(1, 0)])
    (logged,) = server.log
    assert logged.namespace == Naming("", "default", "log", model="print").table("p1", "t1")
    assert len(logged.body["queries"]) == 2
    for part in logged.body["queries"]:
        for asked in (["scopes", "Contains", "/stock"], ["generation", "Eq", 1], ["table_id", "Eq", "t1"]):
            assert asked in part["filters"][1]


def test_a_row_of_another_generation_does_not_answer(nodes: Nodes, index: TurbopufferIndex) -> None:
    nodes.put(1, "/a", "green tea")
    nodes.put(2, "/b", "black tea", generation=2)
    assert index.search(WORD, 5, _within(""))[0].tolist() == [chunk_id(1, 0)]
    assert index.search(WORD, 5, _within("", 2))[0].tolist() == [chunk_id(2, 0)]


# what is stale


def test_what_is_stale_is_left_out(library: Library, server: TurbopufferServer) -> None:
    library.put_many(replace(TEA, key=str(n)) for n in range(3))
    library.search("oolong")
    library.delete("notes://1")
    library.put(replace(TEA, key="2", title="", body="Espresso wants pressure."))
    library.lexical.catch_up()
    server.fail("query", "stale")
    assert uris(library, "oolong", mode="lexical") == ["notes://0"]


def test_a_search_looks_deeper_where_much_of_what_it_finds_is_no_answer(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turbopuffer_reader, "LEAST_DEPTH", 5)
    monkeypatch.setattr(turbopuffer_reader, "MOST_LISTED", 1)
    library.put_many(Draft("note", f"{n:02d}", body="tea " * (30 - n), metadata={"n": n}) for n in range(30))
    last = Filter(where=(Condition(("n",), "gte", 27),))
    assert sorted(uris(library, "tea", filter=last, mode="lexical", limit=3)) == [f"notes://{n}" for n in (27, 28, 29)]


def test_an_index_that_is_not_ready_has_no_answers_yet(
    library: Library, server: TurbopufferServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turbopuffer_wire, "READY_S", 0.3)
    library.put(TEA)
    assert uris(library, "oolong", mode="lexical") == ["notes://tea"]
    server.fail("query", "accepted")
    assert uris(library, "oolong", mode="lexical") == ["notes://tea"]
    server.fail("query", "accepted", times=50)
    assert uris(library, "oolong", mode="lexical") == []
    server.forgive()
    assert uris(library, "oolong", mode="lexical") == ["notes://tea"]


# the same answers


@given(corpus=corpora(least=2, most=8), asked=queries, filter=field_filters)
@settings(max_examples=15)
@example([Draft("note", "0", body="tea"), Draft("note", "1", body="# tea - # oolong")], "tea", Filter())
@example(
    [Draft("document", "where.md", title="Shops", body="A list."), Draft("document", "1.md", body="tea and cake")],
    "where tea",
    Filter(),
)
def test_answers_are_those_of_the_local_index(
    server: TurbopufferServer, tmp_path_factory: pytest.TempPathFactory, corpus: list[Draft], asked: str, filter: Filter
) -> None:
    home = tmp_path_factory.mktemp("both")
    remote_settings = library_settings(home)
    local_settings = replace(remote_settings, index="local")
    with (
        Library.open(home, settings=remote_settings) as remote,
        Library.open(home, settings=local_settings) as local,
    ):
        remote.put_many(corpus)
        remote.embed()
        for mode in ("lexical", "semantic", "hybrid"):
            there = remote.search(asked, mode=mode, filter=filter, limit=50).hits
            here = local.search(asked, mode=mode, filter=filter, limit=50).hits
            assert {hit.uri for hit in there} == {hit.uri for hit in here}
            scores = {hit.uri: hit.score for hit in here}
            for hit in there:
                assert hit.score == pytest.approx(scores[hit.uri], abs=0.03)  # tantivy rounds lengths


@pytest.mark.parametrize("asked", ["kett*", "kettles*", "boil kett*", "kett* -tea", "茶", "茶 kett*"])
def test_items_score_as_in_the_local_index(library: Library, tmp_path: Path, asked: str) -> None:
    drafts = [("a", "Kettles", "They boil."), ("b", "Pots", "Kettles boil tea."), ("c", "茶", "boil"), ("d", "e", "茶")]
    library.put_many(Draft("note", key, title=title, body=body) for key, title, body in drafts)
    with Library.open(tmp_path, settings=replace(library.settings, index="local")) as local:
        there, here = (one.knowledge.finding.search(SearchRequest(asked, ("notes",))).hits for one in (library, local))
    assert [hit.item.key for hit in there] == [hit.item.key for hit in here] != []
    assert [hit.score for hit in there] == pytest.approx([hit.score for hit in here], abs=0.03)


# what goes wrong


@pytest.mark.parametrize(
    ("fault", "code", "said"),
    [
        ({"status": 401}, "index_auth", "TURBOPUFFER_API_KEY"),
        ({"status": 403}, "index_auth", "TURBOPUFFER_API_KEY"),
        ({"status": 429, "headers": {"retry-after-ms": "2500"}}, "index_busy", "in 2.5 s"),
        ({"status": 500}, "index_unavailable", "a fault of its own (500)"),
        ({"status": 400}, "index_rejected", "told to say 400"),
        ({"status": 402}, "index_unavailable", "asks for a payment"),
        ({"status": 408}, "index_unavailable", "a fault of its own (408)"),
        ({"status": 409, "headers": {"retry-after-ms": "2500"}}, "index_busy", "in 2.5 s"),
        ({"status": 413}, "index_rejected", "as large as this"),
        ({"status": 422}, "index_rejected", "told to say 422"),
        ({"trouble": "drop"}, "index_unreachable", "127.0.0.1"),
        ({"trouble": "delay", "seconds": 1.0}, "index_unreachable", "127.0.0.1"),
    ],
)
def test_a_search_that_fails_is_refused_with_a_sentence_and_no_key(
    library: Library,
    server: TurbopufferServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    fault: Mapping[str, Any],
    code: str,
    said: str,
) -> None:
    monkeypatch.setattr(turbopuffer_wire, "RETRIES", 0)
    monkeypatch.setattr(turbopuffer_wire, "TIMEOUT_S", 0.4)
    caplog.set_level(logging.DEBUG)
    library.put(TEA)
    library.lexical.catch_up()
    server.fail("query", **{"trouble": "status", **fault})
    with pytest.raises(Unavailable) as told:
        library.search("oolong")
    assert (told.value.code, said in str(told.value)) == (code, True)
    assert told.value.details.get("retry_after") == (2.5 if code == "index_busy" else None)
    seen = f"{told.value!r} {told.value.__cause__!r} {library.status()} {library.doctor()} {caplog.text}"
    assert server.key not in seen
    assert uris(library, "oolong") == ["notes://tea"]


def test_a_busy_service_is_asked_again(library: Library, server: TurbopufferServer) -> None:
    library.put(TEA)
    library.lexical.catch_up()
    server.fail("query", status=429, headers={"retry-after-ms": "10"}, times=3)
    assert uris(library, "oolong") == ["notes://tea"]


@pytest.mark.parametrize("mode", ["lexical", "semantic", "hybrid"])
def test_a_namespace_that_is_gone_is_sent_again_and_never_taken_for_an_empty_one(
    library: Library, server: TurbopufferServer, mode: str
) -> None:
    library.put(TEA)
    library.embed()
    assert uris(library, "oolong") == ["notes://tea"]
    server.namespaces.clear()
    assert uris(library, "oolong", mode=mode) == ["notes://tea"]
    assert library.doctor() == []
