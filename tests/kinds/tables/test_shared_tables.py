"""Tables in an organisation that is shared: with other servers, with strangers, by a key with few rights.

1. Only namespaces that carry the id of this log are touched, and what is newer in them stays.
2. A key that may not list namespaces is enough.
3. A namespace that is gone and cannot be sent again is not ready, and not empty.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from table_calls import Calls

from commonplace.index.turbopuffer import wire as turbopuffer_wire
from commonplace.library import Library
from commonplace.model import Draft, Filter
from opening import library_settings, serving_index
from support.turbopuffer_followers import second
from support.turbopuffer_server import TurbopufferServer

TEA = Draft("note", "tea", title="About tea", body="Oolong wants water just off the boil.")


@pytest.fixture
def server() -> Iterator[TurbopufferServer]:
    with serving_index("turbopuffer") as server:
        assert server is not None
        yield server


@pytest.fixture
def library(server: TurbopufferServer, tmp_path: Path) -> Iterator[Library]:
    with Library.open(tmp_path / "one", settings=library_settings(tmp_path / "one")) as library:
        yield library


def state(calls: Calls) -> str:
    """How ready the search tool says it is when nobody searches."""
    return str(calls("search_status", tool_id="find")["tools"][0]["search_index"]["status"])


def uris(library: Library, query: str) -> list[str]:
    return [hit.uri for hit in library.search(query, filter=Filter(kinds=("note",))).hits]


FOREIGN = ("items", "items_whole", "project_12_table_7", "default.0123456789ab.items", "default.x.project_1_table_2")


def test_foreign_namespaces_stay_as_they_are(server: TurbopufferServer, tmp_path: Path) -> None:
    for name in FOREIGN:
        server.answer("write", name, {"upsert_rows": [{"id": 7, "said": "kept"}]}, {}, stale=False)
    with Library.open(tmp_path, settings=library_settings(tmp_path, turbopuffer_prefix="")) as library:
        calls = Calls(library)
        library.put(TEA)
        calls.table({"a": "zebra words"})
        calls.tool("search", "", name="find")
        calls.settle()
        assert uris(library, "oolong") == ["notes://tea"]
        library.rebuild()
        assert calls("search_cleanup")["removed"] == 0
        calls("table_delete", table_id="t")
        library.lexical.catch_up()
        assert library.doctor() == []
        for path in library.folder.glob("index-*/turbopuffer-*/ledger.db*"):
            path.unlink()
        assert uris(library, "oolong") == ["notes://tea"]
    assert {name: len(server.rows()[name]) for name in FOREIGN} == dict.fromkeys(FOREIGN, 1)
    assert {logged.namespace for logged in server.log}.isdisjoint(FOREIGN)


def test_a_table_that_a_late_server_saw_emptied_keeps_its_newer_rows(
    library: Library, server: TurbopufferServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = Calls(library)
    calls.table({"a": "zebra words"})
    calls.tool("search", "", name="find")
    calls.settle()
    other = second(library, tmp_path / "two")
    other.catch_up()
    (name,) = (name for name, rows in server.rows().items() if "project_" in name and rows)
    ((identity, row),) = server.rows()[name].items()
    newer = {**row, "version": library.store.last_change() + 100}
    calls("table_delete", table_id="t")
    server.answer("write", name, {"upsert_rows": [newer]}, {}, stale=False)
    other.catch_up()
    assert list(server.rows()[name]) == [identity]


def test_a_key_that_may_not_list_is_enough(library: Library, server: TurbopufferServer) -> None:
    server.may_list = False
    calls = Calls(library)
    library.put(TEA)
    calls.table({"a": "zebra words"})
    calls.tool("search", "", name="find")
    calls.settle()
    assert uris(library, "oolong") == ["notes://tea"]
    assert library.doctor() == []
    assert calls("search_cleanup")["unreachable"] == 0
    library.rebuild()
    assert uris(library, "oolong") == ["notes://tea"]
    calls("table_delete", table_id="t")
    library.lexical.catch_up()
    assert not [name for name, rows in server.rows().items() if "project_" in name and rows]


def test_a_namespace_that_cannot_be_sent_again_is_not_ready(
    library: Library, server: TurbopufferServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turbopuffer_wire, "READY_S", 0.1)
    calls = Calls(library)
    calls.table({"a": "zebra words"})
    calls.tool("search", "", name="find")
    calls.settle()
    assert calls.run("find", query="zebra")["index"]["status"] == "ready"
    server.namespaces.clear()
    server.fail("write", "accepted", times=99)
    answer = calls.run("find", query="zebra")
    assert (answer["results"], answer["index"]["status"]) == ([], "indexing")
    assert state(calls) != "ready"
    server.forgive()
    answer = calls.run("find", query="zebra")
    assert (len(answer["results"]), answer["index"]["status"]) == (1, "ready")
    assert state(calls) == "ready"
