"""turbopuffer's limits and its refusals.

1. What is temporary, or about the request, rejects no passage for good; what is too large goes in parts.
2. A bad row costs few requests; an address that is none of turbopuffer's is said.
3. Long terms and values are found; queries stay within what a request may have.
4. The service's own counts prove nothing, and what it has still to index is waited for, or said.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from commonplace.errors import Unavailable
from commonplace.index.turbopuffer import remote_index as turbopuffer
from commonplace.index.turbopuffer import remote_reader as turbopuffer_reader
from commonplace.index.turbopuffer import rows as turbopuffer_scope
from commonplace.index.turbopuffer import send as turbopuffer_send
from commonplace.index.turbopuffer import wire as turbopuffer_wire
from commonplace.library import Library
from commonplace.model import Condition, Draft, Filter
from opening import library_settings, serving_index
from support.turbopuffer_server import TurbopufferServer

TEA = Draft("note", "tea", title="About tea", body="Oolong wants water just off the boil.")


@pytest.fixture
def server() -> Iterator[TurbopufferServer]:
    with serving_index("turbopuffer") as server:
        assert server is not None
        yield server


@pytest.fixture
def library(server: TurbopufferServer, tmp_path: Path) -> Iterator[Library]:
    with Library.open(tmp_path, settings=library_settings(tmp_path)) as library:
        yield library


@pytest.fixture
def brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pauses, and little patience."""
    monkeypatch.setattr(turbopuffer_send, "PAUSE_S", 0.0)
    monkeypatch.setattr(turbopuffer_wire, "RETRIES", 0)
    monkeypatch.setattr(turbopuffer_wire, "READY_S", 0.2)


def uris(library: Library, query: str, **more: Any) -> list[str]:
    return [hit.uri for hit in library.search(query, **more).hits]


def rows(server: TurbopufferServer) -> list[dict[str, Any]]:
    return [row for found in server.rows().values() for row in found.values()]


# what is temporary, or about the request


@pytest.mark.usefixtures("brisk")
@pytest.mark.parametrize(
    ("status", "said"),
    [(402, "asks for a payment"), (408, "408"), (409, "still working"), (413, "as large"), (429, "too busy")],
)
def test_what_is_not_a_passage_s_fault_rejects_none_for_good(
    library: Library, server: TurbopufferServer, status: int, said: str
) -> None:
    library.put_many(replace(TEA, key=str(n), body=f"Oolong number{n}") for n in range(5))
    server.fail("write", status=status, times=500)
    assert library.lexical.catch_up() == 0
    assert said in library.status().index_trouble
    (problem,) = library.doctor()
    assert said in problem
    with pytest.raises(Unavailable, match=said):
        library.search("oolong")
    server.forgive()
    assert len(uris(library, "oolong", mode="lexical", limit=50)) == 5
    assert library.doctor() == []


@pytest.mark.parametrize("status", [408, 409, 429, 500])
def test_what_is_temporary_is_tried_again(library: Library, server: TurbopufferServer, status: int) -> None:
    library.put(TEA)
    server.fail("write", status=status, times=2, headers={"retry-after-ms": "10"})
    assert library.lexical.catch_up() == library.store.last_change()
    assert len(rows(server)) == 1


@pytest.mark.usefixtures("brisk")
def test_a_request_that_is_too_large_goes_in_parts(library: Library, server: TurbopufferServer) -> None:
    server.most_bytes = 6_000
    library.put_many(Draft("note", str(n), body=f"tea number{n}") for n in range(60))
    assert library.lexical.catch_up() == library.store.last_change()
    assert len(rows(server)) == 60
    assert library.doctor() == []


# bad rows, and a wrong address


@pytest.mark.usefixtures("brisk")
@pytest.mark.parametrize("bad", [0, 1, 149, 150, 151, 298, 299])
def test_a_bad_row_among_three_hundred_costs_twelve_requests(
    library: Library, server: TurbopufferServer, bad: int
) -> None:
    server.refuses = lambda row: "badword" in row["content"]
    library.put_many(
        Draft("note", f"{n:03d}", body="badword here" if n == bad else f"tea number{n}") for n in range(300)
    )
    assert library.lexical.catch_up() == library.store.last_change()
    assert len(rows(server)) == 299
    assert len(server.requests("write")) <= 12
    (problem,) = library.doctor()
    assert problem.startswith("1 passages were rejected")


@pytest.mark.usefixtures("brisk")
def test_several_bad_rows_are_found_and_the_rest_is_sent(library: Library, server: TurbopufferServer) -> None:
    server.refuses = lambda row: "badword" in row["content"]
    library.put_many(
        Draft("note", f"{n:03d}", body="badword here" if n % 20 == 0 else f"tea number{n}") for n in range(100)
    )
    library.lexical.catch_up()
    assert len(rows(server)) == 95
    assert library.doctor()[0].startswith("5 passages were rejected")


@pytest.mark.usefixtures("brisk")
def test_an_address_that_is_none_of_turbopuffer_s_is_said(
    server: TurbopufferServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TURBOPUFFER_BASE_URL", f"{server.url}/elsewhere")
    with Library.open(tmp_path, settings=library_settings(tmp_path)) as library:
        library.put(TEA)
        assert library.lexical.catch_up() == 0
        assert "Check TURBOPUFFER_REGION or TURBOPUFFER_BASE_URL" in library.status().index_trouble
        with pytest.raises(Unavailable, match="answered 404") as told:
            library.search("oolong")
        assert told.value.code == "index_unreachable"
    monkeypatch.setenv("TURBOPUFFER_BASE_URL", server.url)
    with Library.open(tmp_path, settings=library_settings(tmp_path)) as library:
        assert uris(library, "oolong", mode="lexical") == ["notes://tea"]


@pytest.mark.usefixtures("brisk")
def test_a_write_that_is_not_found_is_no_success(library: Library, server: TurbopufferServer) -> None:
    library.put(TEA)
    server.fail("write", status=404, times=20)
    assert library.lexical.catch_up() == 0
    assert library.status().index_trouble
    server.forgive()
    assert uris(library, "oolong", mode="lexical") == ["notes://tea"]


# lengths


@pytest.mark.parametrize("length", [39, 40, 254, 255, 5_000])
@pytest.mark.parametrize("letter", ["x", "я"])
def test_long_words_are_found(library: Library, server: TurbopufferServer, letter: str, length: int) -> None:
    word = letter * (length // len(letter.encode()))
    library.put_many([Draft("note", "long", body=f"A {word} stands here."), TEA])
    for query in (word, f'"{word}"', f"{word} here"):
        assert uris(library, query, mode="lexical") == ["notes://long"]
    assert library.doctor() == []


def test_long_parents_and_tags_filter(library: Library, server: TurbopufferServer) -> None:
    parent, tag = "p" * 5_000, "ü" * 3_000
    library.put_many([replace(TEA, parent=parent, tags=(tag,)), replace(TEA, key="other", parent="shelf")])
    found = uris(library, "oolong", filter=Filter(parents=(parent,)))
    assert len(found) == 1
    assert uris(library, "oolong", filter=Filter(tags=(tag,))) == found
    assert library.doctor() == []


def test_a_query_is_cut_in_bytes(library: Library, server: TurbopufferServer) -> None:
    words = [f"длинноедлинноеслово{n:05d}" for n in range(900)]
    library.put_many(Draft("note", str(n), body=f"{word} {word}") for n, word in enumerate(words))
    assert library.search(" ".join(words), mode="lexical").hits


@pytest.mark.parametrize("mode", ["lexical", "semantic", "hybrid"])
def test_a_request_takes_a_quarter_of_what_a_namespace_allows_at_once(
    library: Library, server: TurbopufferServer, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    monkeypatch.setattr(turbopuffer_scope, "LISTED", 1)
    monkeypatch.setattr(turbopuffer_reader, "LISTED", 1)
    library.put_many(Draft("note", f"{n:02d}", body="tea", metadata={"n": n}) for n in range(20))
    library.embed()
    found = uris(library, "tea", filter=Filter(where=(Condition(("n",), "gte", 7),)), mode=mode, limit=50)
    assert len(found) == 13
    assert max(len(logged.body.get("queries", ())) for logged in server.requests("query")) <= 4


# counts, and what is not indexed yet


@pytest.mark.parametrize("drift", [-2, 0, 1, 50])
def test_an_approximate_count_proves_no_loss(library: Library, server: TurbopufferServer, drift: int) -> None:
    library.put_many(replace(TEA, key=str(n)) for n in range(3))
    library.embed()
    library.search("oolong")
    for namespace in server.namespaces.values():
        namespace.drift = drift
    server.log.clear()
    assert library.doctor() == []
    assert len(uris(library, "oolong")) == 3
    assert server.requests("write") == []


def test_what_the_service_has_still_to_index_is_waited_for_and_said(
    library: Library, server: TurbopufferServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turbopuffer, "INDEXING_S", 0.1)
    monkeypatch.setattr(turbopuffer_send, "PAUSE_S", 0.0)
    monkeypatch.setattr(turbopuffer_send, "LOOK_BYTES", 1)
    library.put(TEA)
    library.lexical.catch_up()
    (namespace,) = server.namespaces.values()
    namespace.unindexed = 123
    (problem,) = library.doctor()
    assert "has 123 bytes of" in problem
    monkeypatch.setattr(turbopuffer_send, "MOST_UNINDEXED", 100)
    monkeypatch.setattr(turbopuffer_send, "INDEX_WAIT_S", 0.05)
    library.put(replace(TEA, key="second"))
    began = time.monotonic()
    with pytest.raises(Unavailable, match="to index before it takes more") as told:
        library.search("oolong", mode="lexical")
    assert (told.value.code, time.monotonic() - began >= 0.05) == ("index_busy", True)
    assert "to index before it takes more" in library.status().index_trouble
    namespace.unindexed = 0
    assert len(uris(library, "oolong", mode="lexical")) == 2
    assert library.doctor() == []
