"""Tables whose index a service holds.

1. What a hit says of the service is where its row is, and the row says what it is and where it belongs.
2. Every query names the table, the generation and the place.
3. What the service lacks or has too much is put right; what it does not say or take is told, and nobody's key with it.
4. Whatever is written and whatever fails, an answer is what the data says, inside the tool's place, or a refusal.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from table_calls import Calls, check_hit, code, refused
from test_table_search import LONG, keys_of, status, words_of, worlds, write

from commonplace.index.turbopuffer import send as turbopuffer_send
from commonplace.index.turbopuffer import wire as turbopuffer_wire
from commonplace.index.turbopuffer.service_settings import Naming
from commonplace.kinds.tables import jobs, states
from commonplace.kinds.tables.drawer import TableDrawer
from commonplace.library import Library
from commonplace.model import Draft, Filter
from commonplace.store.stored_settings import StoredSettings
from opening import library_settings, serving_index
from support.turbopuffer_server import TurbopufferServer

WORDS = {"a": [{"b": LONG, "name": "kettle"}], "c": "short words", "x\0y": LONG[:300]}


@pytest.fixture
def server() -> Iterator[TurbopufferServer]:
    with serving_index("turbopuffer") as server:
        assert server is not None
        yield server


@pytest.fixture
def calls(server: TurbopufferServer, tmp_path: Path) -> Iterator[Calls]:
    with Library.open(tmp_path, settings=library_settings(tmp_path)) as library:
        yield Calls(library)


@pytest.fixture
def brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pauses, and little patience."""
    monkeypatch.setattr(turbopuffer_send, "PAUSE_S", 0.0)
    monkeypatch.setattr(turbopuffer_wire, "RETRIES", 0)
    monkeypatch.setattr(turbopuffer_wire, "READY_S", 0.2)
    monkeypatch.setattr(turbopuffer_wire, "TIMEOUT_S", 2.0)
    monkeypatch.setattr(jobs, "PAUSES_S", (0.0, 0.0))


def name_of(calls: Calls, table: str = "t") -> str:
    """The namespace of a table."""
    row, library = calls.library.tables.table(table), calls.library
    naming = Naming(
        library.settings.turbopuffer_prefix,
        library.folder.name,
        str(library.store.drawer(StoredSettings).get("identity")),
    )
    model = library.embedding.serving()
    return naming.with_model(model.fingerprint if model else "").table(row.project, row.id)


def rows_of(server: TurbopufferServer, calls: Calls) -> dict[str, dict[str, Any]]:
    return server.rows().get(name_of(calls), {})


def ready(calls: Calls, data: Any = WORDS, at: str = "") -> None:
    """A table with a search tool, all of it sent."""
    calls.table(data)
    calls.tool("search", at)
    calls.settle()
    assert status(calls)["status"] == "ready"


# what is there


@pytest.mark.parametrize("force", [False, True], ids=["first", "next generation"])
def test_a_hit_names_its_row_and_the_row_says_what_it_is(calls: Calls, server: TurbopufferServer, force: bool) -> None:
    ready(calls)
    if force:
        calls("search_reindex", tool_id="search", force=True)
        calls.settle()
    generation = 2 if force else 1
    hits = calls.hits("boil kettle short words")
    assert {hit["chunk"]["kind"] for hit in hits} == {"text", "record"}
    rows = rows_of(server, calls)
    assert len(rows) == status(calls)["chunks_count"]
    for hit in hits:
        chunk = hit["chunk"]
        row = rows[chunk["turbopuffer_doc_id"]]
        assert chunk["turbopuffer_namespace"] == name_of(calls)
        for name in ("table_id", "json_pointer", "kind", "content_hash", "chunk_index", "total_chunks"):
            assert row[name] == chunk[name]
        assert row["generation"] == generation
        parts = (chunk["table_id"], quote(chunk["json_pointer"], safe=""), chunk["content_hash"][:12])
        told = f"{':'.join(parts)}:chunk_{chunk['chunk_index']}:{chunk['kind']}:{generation}"
        digest = bytearray(hashlib.sha256(told.encode()).digest()[:16])
        digest[6], digest[8] = digest[6] & 0x0F | 0x80, digest[8] & 0x3F | 0x80
        assert chunk["turbopuffer_doc_id"] == str(uuid.UUID(bytes=bytes(digest)))
    assert any("\0" in hit["chunk"]["json_pointer"] for hit in hits)
    schema = server.namespaces[name_of(calls)].schema
    assert not any(schema[name]["filterable"] for name in ("kind", "json_pointer", "content_hash", "chunk_index"))


def test_neither_the_data_nor_the_key_is_sent(calls: Calls, server: TurbopufferServer) -> None:
    ready(calls)
    calls.hits("off the boil")
    for logged in server.log:
        assert b"just off the boil" not in logged.raw
        assert b"short words" not in logged.raw
        assert server.key.encode() not in logged.raw


def test_other_searches_find_a_table_s_rows_by_its_kind(calls: Calls) -> None:
    ready(calls)
    calls.library.put(Draft("note", "n", body="A kettle of one's own."))
    assert {hit.kind for hit in calls.library.search("kettle").hits} == {"table", "note"}
    assert {hit.kind for hit in calls.library.search("kettle", filter=Filter(kinds=("table",))).hits} == {"table"}
    assert {hit.kind for hit in calls.library.search("kettle", filter=Filter(kinds=("note",))).hits} == {"note"}


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("query", ["off the boil", "gloves", "unheardof", '"just off the boil"', "kettle -heat"])
def test_every_query_names_the_table_the_generation_and_the_place(
    calls: Calls, server: TurbopufferServer, monkeypatch: pytest.MonkeyPatch, query: str, large: bool
) -> None:
    if large:
        monkeypatch.setattr(states, "LARGE", 0)
    calls.table({"other": LONG}, name="u")
    ready(calls, at="/a")
    server.log.clear()
    for hit in calls.hits(query):
        check_hit(WORDS, hit, "/a")
    place = hashlib.sha256(b"/a").hexdigest()[:24]
    asked = server.requests("query")
    assert asked
    assert len(asked) <= 2, "both legs in one request, and once more without the phrase"
    for logged in asked:
        assert logged.namespace == name_of(calls)
        assert logged.body["consistency"] == {"level": "strong"}
        for part in logged.body["queries"]:
            conditions = part["filters"][1]
            assert ["scopes", "Contains", place] in conditions
            assert ["generation", "Eq", 1] in conditions
            assert ["table_id", "Eq", calls.library.tables.table("t").id] in conditions
            assert (["embedded", "Eq", True] in conditions) == (part["rank_by"][1] == "ANN")
            assert part["top_k"] >= 100


def test_a_deleted_table_takes_its_namespace_along_in_one_request(calls: Calls, server: TurbopufferServer) -> None:
    ready(calls, [{"text": f"{number} {LONG[:300]}"} for number in range(40)])
    calls.table(WORDS, name="u")
    calls.library.lexical.catch_up()
    name = name_of(calls)
    server.log.clear()
    calls("table_delete", table_id="t")
    calls.library.lexical.catch_up()
    assert [logged.namespace for logged in server.requests("delete")] == [name]
    assert server.requests("write") == []
    assert list(server.rows()) == [name_of(calls, "u")]
    assert calls.library.doctor() == []


# what is not as it should be


def stray(server: TurbopufferServer, name: str, count: int) -> None:
    """Rows that nobody sent, as a restored backup leaves them."""
    (like, *_) = server.rows()[name].values()
    rows = [{**like, "id": str(uuid.UUID(int=number + 1, version=4))} for number in range(count)]
    vectors = {"distance_metric": "cosine_distance"} if "vector" in like else {}
    server.answer("write", name, {"upsert_rows": rows, **vectors}, {}, stale=False)


def test_rows_that_nothing_explains_are_counted_and_removed(calls: Calls, server: TurbopufferServer) -> None:
    ready(calls)
    calls.table(WORDS, name="u")
    calls.library.lexical.catch_up()
    before = server.rows()
    gone = name_of(calls).replace("_table_", "_table_gone")
    server.answer("write", gone, {"upsert_rows": [{"id": str(uuid.uuid4())}] * 1}, {}, stale=False)
    stray(server, name_of(calls), 3)
    kept = calls("search_cleanup", dry_run=True)["kept"]
    assert calls("search_cleanup", dry_run=True) == {"removed": 4, "kept": kept, "unreachable": 0}
    assert calls("search_cleanup", table_id="t", dry_run=True)["removed"] == 3
    assert calls("search_cleanup", table_id="u")["removed"] == 0
    assert gone in server.rows()
    assert calls("search_cleanup") == {"removed": 4, "kept": kept, "unreachable": 0}
    assert server.rows() == before
    assert calls("search_cleanup")["removed"] == 0


@pytest.mark.usefixtures("brisk")
def test_what_cannot_be_looked_at_is_counted(calls: Calls, server: TurbopufferServer) -> None:
    ready(calls)
    calls.table(WORDS, name="u")
    calls.library.lexical.catch_up()
    stray(server, name_of(calls), 2)
    server.die()
    for dry_run in (True, False):
        answer = calls("search_cleanup", dry_run=dry_run)
        assert (answer["removed"], answer["unreachable"]) == (0, 2)
    server.revive()
    server.fail("query", "accepted", times=20)
    assert calls("search_cleanup", table_id="t")["unreachable"] == 1
    server.forgive()
    assert calls("search_cleanup")["removed"] == 2


@pytest.mark.parametrize("lost", ["some", "all"])
def test_reindexing_sends_what_is_missing_and_removes_what_is_too_much(
    calls: Calls, server: TurbopufferServer, lost: str
) -> None:
    ready(calls)
    before, vectors = rows_of(server, calls), sorted(keys_of(calls))
    missing = list(before)[:2] if lost == "some" else list(before)
    stray(server, name_of(calls), 2)
    if lost == "all":
        del server.namespaces[name_of(calls)]
    else:
        server.answer("write", name_of(calls), {"deletes": missing}, {}, stale=False)
    server.log.clear()
    calls("search_reindex", tool_id="search")
    calls.settle()
    assert rows_of(server, calls) == before
    assert sorted(keys_of(calls)) == vectors
    sent = [row["id"] for logged in server.requests("write") for row in logged.body.get("upsert_rows", ())]
    assert sorted(sent) == sorted(missing)
    assert status(calls)["status"] == "ready"
    server.log.clear()
    calls.hits("boil")
    assert server.requests("write") == []


def test_a_new_generation_is_sent_beside_the_old_and_takes_its_place(calls: Calls, server: TurbopufferServer) -> None:
    ready(calls)
    before = rows_of(server, calls)
    calls("search_reindex", tool_id="search", force=True)
    assert {row["generation"] for row in rows_of(server, calls).values()} == {1}
    calls.settle()
    after = rows_of(server, calls)
    assert {row["generation"] for row in after.values()} == {2}
    assert len(after) == len(before)
    assert not set(after) & set(before)
    assert {hit["chunk"]["turbopuffer_doc_id"] for hit in calls.hits("boil kettle words")} <= set(after)


# what goes wrong


@pytest.mark.usefixtures("brisk")
@pytest.mark.parametrize(
    ("fault", "wanted", "said"),
    [
        ({"status": 401}, "index_auth", "TURBOPUFFER_API_KEY"),
        ({"status": 403}, "index_auth", "TURBOPUFFER_API_KEY"),
        ({"status": 429, "headers": {"retry-after-ms": "2500"}}, "index_busy", "in 2.5 s"),
        ({"status": 500}, "index_unavailable", "fault of its own"),
        ({"status": 400}, "index_rejected", "told to say 400"),
        ({"trouble": "drop"}, "index_unreachable", "127.0.0.1"),
    ],
)
def test_a_search_that_fails_is_refused_and_a_write_that_fails_is_told_by_the_status(
    calls: Calls, server: TurbopufferServer, fault: Mapping[str, Any], wanted: str, said: str
) -> None:
    ready(calls)
    calls.tool("create", "/a")
    server.fail("query", **{"trouble": "status", "times": 3, **fault})
    answer = calls.run("search", query="boil")
    assert (code(answer), said in refused(answer)) == (wanted, True)
    assert answer["error"].get("retry_after") == (2.5 if wanted == "index_busy" else None)
    server.forgive()
    server.fail("write", **{"trouble": "status", "times": 99, **fault})
    assert calls.run("create", elements=[{"content": {"d": "zebra"}}, {"content": {"d": "quagga"}}])["version"] == 2
    found = status(calls)
    assert (found["status"], found["indexed_chunks_count"]) == ("indexing", found["chunks_count"] - 2)
    calls.settle()
    found = status(calls)
    assert (found["status"], said in found["last_error"]) == ("error", True)
    assert code(calls.run("search", query="zebra")) == wanted
    assert server.key not in f"{answer} {found} {calls.run('search', query='zebra')}"
    server.forgive()
    assert calls.hits("zebra")[0]["json_path"] == "/a/1"
    found = status(calls)
    assert (found["status"], found["last_error"]) == ("ready", None)


@pytest.mark.usefixtures("brisk")
@pytest.mark.parametrize("kind", ["query", "write"])
def test_an_index_that_is_not_ready_has_an_empty_list_and_is_indexing(
    calls: Calls, server: TurbopufferServer, kind: Any
) -> None:
    ready(calls)
    calls.tool("create", "/a")
    calls.run("create", elements=[{"content": {"d": "zebra words"}}])
    server.fail(kind, "accepted")
    assert calls.hits("zebra")[0]["json_path"] == "/a/1"
    calls.run("create", elements=[{"content": {"d": "quagga words"}}])
    server.fail(kind, "accepted", times=99)
    answer = calls.run("search", query="quagga")
    assert (answer["results"], answer["index"]["status"]) == ([], "indexing")
    server.forgive()
    answer = calls.run("search", query="quagga")
    assert (answer["results"][0]["json_path"], answer["index"]["status"]) == ("/a/2", "ready")
    assert rows_of(server, calls).keys() == {
        hit["chunk"]["turbopuffer_doc_id"] for hit in calls.hits("quagga zebra boil kettle short words")
    }


@pytest.mark.usefixtures("brisk")
def test_an_index_that_is_not_ready_is_waited_for_once(
    calls: Calls, server: TurbopufferServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready(calls)
    monkeypatch.setattr(turbopuffer_wire, "READY_S", 0.0)
    server.fail("query", "accepted", times=99)
    server.log.clear()
    assert calls.run("search", query='"off the boil" kettle')["index"]["status"] == "indexing"
    assert len(server.requests("query")) == 1


@pytest.mark.usefixtures("brisk")
def test_a_row_that_is_rejected_is_an_error_of_the_tools_that_have_it_and_tried_again_on_request(
    calls: Calls, server: TurbopufferServer
) -> None:
    calls.table({"a": {"x": "zebra"}, "b": {"x": "quagga"}})
    calls.tool("search", "/a", name="first")
    calls.tool("search", "/b", name="second")
    server.fail("write", status=400)
    server.fail("write", status=422, after=1)
    calls.settle()
    states = {name: status(calls, name) for name in ("first", "second")}
    bad, good = sorted(states, key=lambda name: states[name]["status"])
    assert (states[good]["status"], states[good]["last_error"]) == ("ready", None)
    assert (states[bad]["status"], states[bad]["indexed_chunks_count"]) == ("error", 0)
    assert "told to say 422" in states[bad]["last_error"]
    calls("search_reindex", tool_id=bad)
    calls.settle()
    assert status(calls, bad)["status"] == "ready"
    assert calls.hits("zebra", "first")
    assert calls.hits("quagga", "second")


# properties


def unversioned(found: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Rows without the version of the log that each was sent with."""
    return {
        name: {key: {field: row[field] for field in row if field != "version"} for key, row in rows.items()}
        for name, rows in found.items()
    }


FAULTS: list[dict[str, Any]] = [
    {"kind": "write", "trouble": "drop"},
    {"kind": "write", "trouble": "drop after"},
    {"kind": "write", "status": 503},
    {"kind": "write", "status": 429, "headers": {"retry-after-ms": "1"}},
    {"kind": "write", "trouble": "accepted", "times": 5},
    {"kind": "query", "trouble": "stale", "times": 3},
    {"kind": "query", "trouble": "accepted", "times": 5},
    {"kind": "query", "trouble": "async"},
    {"kind": "query", "status": 500},
    {"kind": "delete", "trouble": "drop"},
]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.usefixtures("brisk")
@settings(max_examples=12, deadline=None)
@given(world=worlds(), faults=st.lists(st.sampled_from(FAULTS), max_size=4))
def test_whatever_is_written_and_whatever_fails_an_answer_is_what_the_data_says_inside_the_place(
    calls: Calls, server: TurbopufferServer, world: Any, faults: list[dict[str, Any]]
) -> None:
    data, path, searchable, steps = world
    server.forgive()
    if calls.library.store.drawer(TableDrawer).tables():
        calls("table_delete", table_id="t")
    calls.table(data, searchable=searchable)
    calls.tool("search", path)
    for number, step in enumerate(steps):
        if number < len(faults):
            server.fail(**faults[number])
        write(calls, *step)
        current = calls.data()
        for wanted in words_of(current)[:2]:
            answer = calls.run("search", query=wanted, top_k=20)
            for hit in answer.get("results", ()):
                check_hit(current, hit, path)
            assert "results" in answer or code(answer).startswith("index_")
    server.forgive()
    calls.settle()
    current = calls.data()
    found = {wanted: calls.hits(wanted) for wanted in words_of(current)[:4]}
    for hits in found.values():
        for hit in hits:
            check_hit(current, hit, path)
    after = unversioned(server.rows())
    calls.library.rebuild()
    assert {wanted: calls.hits(wanted) for wanted in found} == found
    assert {name: rows for name, rows in after.items() if rows} == unversioned(server.rows())
    assert calls("search_cleanup")["removed"] == 0
