"""turbopuffer as a follower of the log.

1. What is sent is terms, vectors and coordinates: never a text, never the key.
2. Requests are bounded, no id is twice in one, and what is superseded goes with what takes its place.
3. Whatever goes wrong on the way, in the end the service has what a rebuild would send, and nothing twice.
4. A row that the service rejects stops no other, and `doctor` says so; so it does when rows are missing.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commonplace.errors import Unavailable
from commonplace.index.turbopuffer import send as turbopuffer_send
from commonplace.index.turbopuffer import wire as turbopuffer_wire
from commonplace.library import Library
from commonplace.model import Draft
from commonplace.store.items import Items
from commonplace.store.listing import Listing
from opening import library_settings, serving_index, space_of
from strategies import drafts
from support.turbopuffer_server import TurbopufferServer

TEA = Draft("note", "tea", title="About tea", body="Oolong wants water just off the boil.", tags=("hot",))


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
    """Small batches without pauses between them, and little patience."""
    monkeypatch.setattr(turbopuffer_send, "MOST_ROWS", 3)
    monkeypatch.setattr(turbopuffer_send, "PAUSE_S", 0.0)
    monkeypatch.setattr(turbopuffer_wire, "RETRIES", 0)
    monkeypatch.setattr(turbopuffer_wire, "READY_S", 0.2)


def rows(server: TurbopufferServer) -> dict[str, dict[str, Any]]:
    return {name: found for name, found in server.rows().items() if found}


def rebuilt(library: Library, server: TurbopufferServer) -> dict[str, dict[str, Any]]:
    """What the service has after everything was sent anew."""
    for name in rows(server):
        if name.startswith(space_of(library.settings.home)):
            del server.namespaces[name]
    library.rebuild()
    return plain(rows(server))


def plain(rows: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Rows without the version of the log that each was sent with."""
    return {
        name: {key: {field: row[field] for field in row if field != "version"} for key, row in found.items()}
        for name, found in rows.items()
    }


def uris(library: Library, query: str, **more: Any) -> list[str]:
    return [hit.uri for hit in library.search(query, **more).hits]


# what is sent


def test_neither_text_nor_key_is_sent(library: Library, server: TurbopufferServer) -> None:
    library.put(TEA)
    library.embed()
    library.search("what does oolong want")
    library.doctor()
    assert server.requests("write")
    for logged in server.log:
        assert b"water just" not in logged.raw
        assert b"About tea" not in logged.raw
        assert server.key.encode() not in logged.raw
    (row,) = next(iter(rows(server).values())).values()
    assert "oolong" in row["content"]
    assert all(" " not in term for term in row["content"])


def test_a_row_has_its_coordinates_and_a_fixed_vector_until_it_has_its_own(
    library: Library, server: TurbopufferServer
) -> None:
    library.put(replace(TEA, key="first", body="Trains run at night."))
    library.embed()
    library.put(TEA)
    library.lexical.catch_up()
    found = {row["item"]: row for row in next(iter(rows(server).values())).values()}
    first, second = found[1], found[2]
    assert (first["embedded"], second["embedded"]) == (True, False)
    assert second["vector"] == [1.0] + [0.0] * (len(second["vector"]) - 1)
    assert (second["kind"], second["parent"], second["tags"], second["chunk"]) == ("note", "", ["hot"], 2 << 20)
    assert (second["chunk_index"], second["total_chunks"], second["generation"]) == (0, 1, 0)
    before = second["id"]
    library.embed()
    (second,) = [row for row in next(iter(rows(server).values())).values() if row["item"] == 2]
    assert (second["embedded"], second["id"]) == (True, before)


def test_a_change_s_rows_and_what_they_supersede_are_in_one_request(
    library: Library, server: TurbopufferServer
) -> None:
    library.put(TEA)
    library.lexical.catch_up()
    (old,) = next(iter(rows(server).values()))
    library.put(replace(TEA, body="Espresso wants pressure."))
    library.lexical.catch_up()
    last = server.requests("write")[-1].body
    assert last["deletes"] == [old]
    assert [row["id"] for row in last["upsert_rows"]] == list(next(iter(rows(server).values())))
    library.delete("notes://tea")
    library.lexical.catch_up()
    assert rows(server) == {}


def test_what_did_not_change_is_not_sent_again(library: Library, server: TurbopufferServer) -> None:
    library.put_many(replace(TEA, key=str(n)) for n in range(5))
    library.embed()
    library.lexical.catch_up()
    server.log.clear()
    library.put(replace(TEA, key="3", tags=("cold",)))
    library.lexical.catch_up()
    assert [[row["item"] for row in logged.body["upsert_rows"]] for logged in server.requests("write")] == [[4]]


def test_requests_are_bounded(library: Library, server: TurbopufferServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turbopuffer_send, "PAUSE_S", 0.0)
    library.put_many(Draft("note", str(n), body=f"tea number{n} " * 3) for n in range(2300))
    library.lexical.catch_up()
    sizes = [len(logged.body["upsert_rows"]) for logged in server.requests("write")]
    assert sum(sizes) == 2300
    assert max(sizes) == 1000
    assert len(sizes) == 3
    monkeypatch.setattr(turbopuffer_send, "MOST_BYTES", 40_000)
    server.log.clear()
    library.rebuild()
    assert max(len(logged.raw) for logged in server.requests("write")) <= 40_000


def test_requests_are_bounded_by_all_that_is_sent_of_a_row(
    library: Library, server: TurbopufferServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turbopuffer_send, "PAUSE_S", 0.0)
    monkeypatch.setattr(turbopuffer_send, "MOST_BYTES", 60_000)
    tags = tuple(f"étiquette-{number}-日本語" for number in range(50))
    library.put_many(Draft("note", str(n), body="日本語 の 茶", tags=tags) for n in range(60))
    tables, deep = library.tables, {"é" * 300: {"日本" * 300: [f"tea {n}" for n in range(3)]}}
    tables.catalog.create_project("p")
    tables.catalog.create_table("p", "t", data=[deep] * 40)
    library.lexical.catch_up()
    written = server.requests("write")
    assert len(written) > 4
    assert max(len(logged.raw) for logged in written) <= 60_000


def test_batches_of_one_run_keep_their_distance(
    library: Library, server: TurbopufferServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turbopuffer_send, "MOST_ROWS", 2)
    monkeypatch.setattr(turbopuffer_send, "PAUSE_S", 0.15)
    library.put_many(replace(TEA, key=str(n)) for n in range(6))
    begun = time.monotonic()
    library.lexical.catch_up()
    assert len(server.requests("write")) == 3
    assert time.monotonic() - begun >= 0.3


def test_an_item_put_in_the_place_of_a_deleted_one_keeps_its_row(library: Library, server: TurbopufferServer) -> None:
    library.put(TEA)
    library.lexical.catch_up()
    library.delete("notes://tea")
    library.put(TEA)
    assert uris(library, "oolong") == ["notes://tea"]
    assert len(next(iter(rows(server).values()))) == 1
    for logged in server.requests("write"):
        sent = [row["id"] for row in logged.body.get("upsert_rows", ())] + logged.body.get("deletes", [])
        assert len(sent) == len(set(sent))


# what goes wrong


FAULTS: dict[str, Callable[[TurbopufferServer], None]] = {
    "the connection ends before": lambda server: server.fail("write", "drop"),
    "the connection ends after": lambda server: server.fail("write", "drop after"),
    "429": lambda server: server.fail("write", status=429, headers={"retry-after-ms": "50"}),
    "500": lambda server: server.fail("write", status=500),
    "accepted, and no more": lambda server: server.fail("write", "accepted", times=3),
    "the third is lost": lambda server: server.fail("write", "drop after", after=2),
    "the second fails": lambda server: server.fail("write", status=503, after=1),
}


@pytest.mark.usefixtures("brisk")
@pytest.mark.parametrize("fault", FAULTS)
def test_after_a_fault_the_service_has_what_a_rebuild_would_send(
    library: Library, server: TurbopufferServer, fault: str
) -> None:
    library.put_many(replace(TEA, key=str(n), body=f"Oolong number{n}") for n in range(8))
    library.lexical.catch_up()
    library.embed()
    FAULTS[fault](server)
    for number in (1, 4, 7):
        library.put(replace(TEA, key=str(number), body=f"Espresso number{number}"))
    library.delete("notes://0")
    library.put_many(replace(TEA, key=str(n), body=f"Cocoa number{n}") for n in range(8, 12))
    behind = library.lexical.catch_up()
    server.forgive()
    if behind < library.store.last_change():
        library.put(replace(TEA, key="4", body="Changed again in the meantime"))  # its lost row must not stay behind
    assert sorted(uris(library, "espresso", mode="lexical")) in (
        ["notes://1", "notes://4", "notes://7"],
        ["notes://1", "notes://7"],
    )
    after = plain(rows(server))
    assert after == rebuilt(library, server)
    assert library.doctor() == []


@pytest.mark.usefixtures("brisk")
def test_a_server_that_dies_in_the_middle_of_a_batch_gets_the_rest_when_it_is_back(
    library: Library, server: TurbopufferServer
) -> None:
    library.put_many(replace(TEA, key=str(n), body=f"Oolong number{n}") for n in range(10))
    server.fail("write", "drop after", after=1)
    library.lexical.catch_up()
    server.die()
    library.put(replace(TEA, key="0", body="Not oolong"))
    with pytest.raises(Unavailable, match="cannot be reached") as told:
        library.search("oolong")
    assert told.value.code == "index_unreachable"
    assert any("cannot be reached" in problem for problem in library.doctor())
    server.revive()
    assert len(uris(library, "number9 oolong", limit=50)) == 10
    after = plain(rows(server))
    assert after == rebuilt(library, server)


@pytest.mark.usefixtures("brisk")
def test_a_failed_write_changes_nothing_for_who_made_it_and_is_told_by_doctor(
    library: Library, server: TurbopufferServer
) -> None:
    server.fail("write", status=403, times=100)
    library.put(TEA)
    assert library.lexical.catch_up() == 0
    assert "refused the key" in library.status().index_trouble
    assert library.get("notes://tea").body == TEA.body
    assert any("refused the key" in problem for problem in library.doctor())
    with pytest.raises(Unavailable) as told:
        library.search("oolong")
    assert told.value.code == "index_auth"
    server.forgive()
    assert uris(library, "oolong") == ["notes://tea"]
    assert (library.doctor(), library.status().index_trouble) == ([], "")


@pytest.mark.usefixtures("brisk")
def test_a_row_that_is_rejected_stops_no_other(library: Library, server: TurbopufferServer) -> None:
    library.put_many(replace(TEA, key=str(n), body=f"Oolong number{n}") for n in range(3))
    server.fail("write", status=400)  # the batch
    server.fail("write", status=422, after=1)  # its second row
    library.lexical.catch_up()
    assert sorted(uris(library, "oolong")) == ["notes://0", "notes://2"]
    (problem,) = library.doctor()
    assert problem.startswith("1 passages were rejected")
    library.put(replace(TEA, key="1", body="Oolong once more"))
    assert len(uris(library, "oolong")) == 3
    assert library.doctor() == []


@pytest.mark.usefixtures("brisk")
def test_a_request_that_is_wrong_as_a_whole_leaves_everything_pending(
    library: Library, server: TurbopufferServer
) -> None:
    library.put_many(replace(TEA, key=str(n)) for n in range(3))
    server.fail("write", status=400, times=50)
    with pytest.raises(Unavailable, match="rejected the request: told to say 400"):
        library.search("oolong")
    server.forgive()
    assert len(uris(library, "oolong")) == 3


def test_doctor_notices_missing_rows_and_the_next_search_sends_them_anew(
    library: Library, server: TurbopufferServer
) -> None:
    library.put_many(replace(TEA, key=str(n)) for n in range(3))
    library.search("oolong")
    (name,) = rows(server)
    server.namespaces[name].rows.popitem()
    (problem,) = library.doctor()
    assert problem == f"The namespace {name} lacks 1 of 3 rows. The next search puts that right."
    assert len(uris(library, "oolong")) == 3
    assert library.doctor() == []


def test_a_ledger_that_is_gone_or_damaged_is_made_anew(library: Library, server: TurbopufferServer) -> None:
    library.put_many(replace(TEA, key=str(n)) for n in range(3))
    library.search("oolong")
    before = rows(server)
    (ledger,) = library.folder.glob("index-*/turbopuffer-lexical/ledger.db")
    for harm in (lambda: ledger.unlink(), lambda: ledger.write_bytes(b"no database at all" * 500)):
        for beside in ledger.parent.glob("ledger.db-*"):
            beside.unlink()
        harm()
        assert len(uris(library, "oolong")) == 3
        assert rows(server) == before


def test_rows_that_nobody_knows_of_go_with_the_first_write(library: Library, server: TurbopufferServer) -> None:
    library.put(TEA)
    library.search("oolong")
    for ledger in library.folder.glob("index-*/turbopuffer-lexical/ledger.db*"):
        ledger.unlink()
    library.put(replace(TEA, body="Espresso."))
    assert uris(library, "oolong", mode="lexical") == []
    assert len(next(iter(rows(server).values()))) == 1


def test_a_process_killed_while_it_sends_leaves_nothing_wrong(library: Library, server: TurbopufferServer) -> None:
    library.put_many(replace(TEA, key=str(n), body=f"Oolong number{n}") for n in range(40))
    code = (
        "import sys; from pathlib import Path\n"
        "from commonplace.index.turbopuffer import send\n"
        "from commonplace.library import Library; from opening import library_settings\n"
        "send.MOST_ROWS, send.PAUSE_S, home = 4, 0.05, Path(sys.argv[1])\n"
        "with Library.open(home, settings=library_settings(home)) as library: library.lexical.catch_up()\n"
    )
    for least in (1, 3, 6):
        server.log.clear()
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(library.settings.home)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        deadline = time.monotonic() + 60
        while len(server.requests("write")) < least and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        assert process.wait(30) in (0, -signal.SIGKILL)
        library.put(replace(TEA, key=str(least), body=f"Espresso number{least}"))
    assert len(uris(library, "espresso", mode="lexical")) == 3
    after = plain(rows(server))
    assert after == rebuilt(library, server)
    assert sum(map(len, after.values())) == 40


KEYS = st.sampled_from("abcde")
STEPS = st.one_of(
    KEYS.flatmap(drafts).map(lambda draft: ("put", draft)),
    KEYS.map(lambda key: ("delete", key)),
    st.just(("embed", None)),
    st.just(("search", None)),
    st.sampled_from(["drop", "drop after", "status"]).map(lambda trouble: ("fault", trouble)),
)


@pytest.mark.usefixtures("brisk")
@given(steps=st.lists(STEPS, max_size=12))
@settings(max_examples=30)
def test_after_any_writes_and_faults_the_service_has_what_a_rebuild_would_send(
    server: TurbopufferServer, tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, Any]]
) -> None:
    folder = tmp_path_factory.mktemp("any")
    with Library.open(folder, settings=library_settings(folder)) as library:
        for step, given in steps:
            if step == "put":
                library.put(replace(given, kind="note", parent=""))
            elif step == "delete":
                library.store.drawer(Items).delete(library.store.drawer(Listing).ids_of([("note", "", given)]))
            elif step == "embed":
                library.embed()
            elif step == "fault":
                server.fail("write", given)
            else:
                library.lexical.catch_up()
        server.forgive()
        library.search("tea")
        mine = {name: found for name, found in plain(rows(server)).items() if name.startswith(space_of(folder))}
        again = rebuilt(library, server)
        assert mine == {name: found for name, found in again.items() if name.startswith(space_of(folder))}
        assert library.doctor() == []
