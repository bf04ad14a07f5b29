"""Jobs: killed at any point they are taken up by another and end ready; what fails three times says so."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from table_calls import Calls

import opening
from commonplace.errors import Unavailable
from commonplace.kinds.tables.jobs import is_gone
from commonplace.kinds.tables.node_drawer import JobDrawer, NodeDrawer
from commonplace.library import Library
from commonplace.model import Filter
from commonplace.store import dialect
from commonplace.store.chunks import Chunks
from commonplace.store.items import Items
from commonplace.store.listing import Listing
from opening import library_settings

ROWS = [{"id": n, "text": f"row{n} wants water just off the boil and more of it. " * 6} for n in range(400)]

WORKER = """
import sys
from pathlib import Path
from commonplace.library import Library
from commonplace.model import Filter
from commonplace.kinds.tables import indexing
from commonplace.kinds.tables import jobs
sys.path.insert(0, sys.argv[2])
from opening import library_settings
indexing.BATCH, jobs.STEP_S, jobs.EMBEDDED = 40, 0.001, 80
home = Path(sys.argv[1])
with Library.open(home, settings=library_settings(home)) as library:
    while library.tables.jobs.step():
        print("step", flush=True)
    print("done", flush=True)
"""


def prepared(folder: Path, *, force: bool) -> Library:
    """A table with work left to do."""
    library = Library.open(folder, settings=library_settings(folder))
    calls = Calls(library)
    calls.table(ROWS, searchable=force)
    calls.tool("search")
    if force:
        calls.settle()
        calls("search_reindex", table_id="t", force=True)
    return library


def named(library: Library) -> set[tuple[str, str, str]]:
    """Every chunk of the current generation: where, what, and of what."""
    table = library.tables.table("t")
    ids = library.store.drawer(NodeDrawer).nodes_at(table.id, table.generation, "").items.tolist()
    return {
        (item.fields["pointer"], item.content_hash, chunk.text)
        for item in library.store.drawer(Items).get(ids)
        for chunk in library.store.drawer(Chunks).of(item.id)
    }


@pytest.mark.slow
@pytest.mark.parametrize("force", [False, True], ids=["indexing", "generation"])
def test_killed_at_any_point_it_ends_ready_with_the_same_chunks(tmp_path: Path, force: bool) -> None:
    (tmp_path / "calm").mkdir()
    with prepared(tmp_path / "calm", force=force) as library:
        Calls(library).settle()
        expected = named(library)
    home = tmp_path / "killed"
    home.mkdir()
    prepared(home, force=force).close()
    kills = 0
    for steps in (1, 3, 6, 10, 15, 25, 10_000):
        if run_until(home, steps):
            break
        kills += 1
    assert kills >= 3
    with Library.open(home, settings=library_settings(home)) as library:
        calls = Calls(library)
        calls.settle()
        assert named(library) == expected
        index = calls.run("search", query="row17")["index"]
        assert index["status"] == "ready"
        assert index["generation"] == (2 if force else 1)
        assert index["chunks_count"] == index["indexed_chunks_count"] == len(expected)
        assert calls.hits("row17")[0]["json_path"] == "/17/text"
        assert library.store.drawer(JobDrawer).jobs() == []
        assert library.doctor() == []


def run_until(home: Path, steps: int) -> bool:
    """Let a worker do so many steps, then kill it where it is; True where it was done before."""
    given = [str(home), str(Path(opening.__file__).parent)]
    worker = subprocess.Popen([sys.executable, "-c", WORKER, *given], stdout=subprocess.PIPE, text=True)
    assert worker.stdout is not None
    try:
        for number, line in enumerate(worker.stdout):
            if line.strip() == "done":
                return True
            if number >= steps:
                worker.kill()
                return False
        return False
    finally:
        worker.stdout.close()
        worker.kill()
        worker.wait(20)


def test_a_job_is_taken_from_a_process_that_is_gone_at_once_and_from_others_when_their_lease_ends(calls: Calls) -> None:
    calls.table([{"x": "words"}], searchable=False)
    calls.tool("search")
    store = calls.library.store
    (job,) = store.drawer(JobDrawer).jobs()
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait(20)
    host = calls.library.tables.jobs._holder.rpartition(":")[0].rpartition(":")[0]
    assert is_gone(f"{host}:{gone.pid}:1")
    assert not is_gone(f"{host}:{os.getpid()}:{calls.library.tables.jobs._holder.rpartition(':')[2]}")
    assert not is_gone(f"elsewhere:{gone.pid}:1")
    held = store.drawer(JobDrawer).claim(job, "elsewhere:1:1", 10.0)
    assert held is not None
    assert not calls.library.tables.jobs.step(), "another machine's lease is respected"
    assert store.drawer(JobDrawer).claim(job, "another:1:1", 10.0) is None, "it has changed since it was seen"
    released = store.drawer(JobDrawer).claim(held, f"{host}:{gone.pid}:1", 10.0)
    assert released is not None
    assert calls.library.tables.jobs.step()
    calls.settle()
    assert store.drawer(JobDrawer).jobs() == []


def test_a_job_of_a_clock_that_was_ahead_is_done_when_it_is_right_again(
    calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    ahead = time.time_ns() + 365 * 86_400 * 10**9
    store = calls.library.store
    with monkeypatch.context() as patch:
        patch.setattr(time, "time_ns", lambda: ahead)
        patch.setattr(dialect, "CLOCK", str(ahead // 1000))
        dialect.for_postgres.cache_clear()
        calls.table([{"x": "words"}], searchable=False)
        calls.tool("search")
        assert store.drawer(JobDrawer).claim(store.drawer(JobDrawer).jobs()[0], "elsewhere:1:1", 10.0)
    dialect.for_postgres.cache_clear()
    assert calls.library.tables.jobs.step()
    calls.settle()
    assert store.drawer(JobDrawer).jobs() == []


@pytest.mark.parametrize("backend", ["postgres"], indirect=True)
@pytest.mark.parametrize("apart_s", [-3600, 3600])
def test_a_lease_holds_however_far_apart_the_clocks_of_two_servers_are(
    calls: Calls, apart_s: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, here = calls.library.store, time.time_ns
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(time, "time_ns", lambda: here() + apart_s * 10**9)
        calls.table([{"x": "words"}], searchable=False)
        calls.tool("search")
        held = store.drawer(JobDrawer).claim(store.drawer(JobDrawer).jobs()[0], "elsewhere:1:1", 10.0)
    assert held
    assert not calls.library.tables.jobs.step(), "it is held"
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(time, "time_ns", lambda: here() + apart_s * 10**9)
        store.drawer(JobDrawer).fail(held, "no model", 0)
    assert calls.library.tables.jobs.step(), "and it is due when it is free"


def test_what_fails_three_times_is_an_error_until_the_next_write(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    from commonplace.kinds.tables import jobs

    calls.table([{"x": "words"}], searchable=False)
    calls.tool("search")
    calls.tool("create")
    embedding = calls.library.embedding
    monkeypatch.setattr(jobs, "PAUSES_S", (0.0, 0.0))

    def broken(*args: Any, **kwargs: Any) -> set[int]:
        raise Unavailable("the model is not there; pull it with `commonplace models pull`")

    with monkeypatch.context() as patch:
        patch.setattr(type(embedding), "embed_items", broken)
        calls.settle()
    (job,) = calls.library.store.drawer(JobDrawer).jobs()
    assert job.attempts == 3
    found = calls("search_status")["tools"][0]["search_index"]
    assert found["status"] == "error"
    assert found["last_error"] == "the model is not there; pull it with `commonplace models pull`"
    assert calls.hits("words")[0]["json_path"] == "/0", "words are found all the same"
    calls("search_reindex", tool_id="search")
    calls.settle()
    assert calls("search_status")["tools"][0]["search_index"]["status"] == "ready"


def test_writes_while_a_generation_is_built_are_in_both(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    from commonplace.kinds.tables import indexing, jobs, running

    monkeypatch.setattr(running, "CATCHING_UP_S", 0.0)
    calls.table(ROWS[:60])
    calls.tool("search")
    for kind in ("create", "delete"):
        calls.tool(kind)
    calls.settle()
    monkeypatch.setattr(indexing, "BATCH", 10)
    monkeypatch.setattr(jobs, "STEP_S", 0.0001)
    calls("search_reindex", table_id="t", force=True)
    store = calls.library.store
    for step in range(200):
        if step in (1, 3, 5):
            calls.run("create", elements=[{"content": {"text": f"fresh{step} words"}}])
            calls.run("delete", keys=[0])
            assert calls.hits(f"fresh{step}")[0]["chunk"]["chunk_text"].endswith(f"fresh{step} words")
        if not calls.library.tables.jobs.step():
            break
    assert store.drawer(JobDrawer).jobs() == []
    table = calls.library.tables.table("t")
    assert (table.generation, table.building, table.leaving) == (2, None, None)
    data = calls.data()
    held = store.drawer(NodeDrawer).nodes_at(table.id, 2, "").items.tolist()
    assert len(held) == sum(2 if "id" in row else 1 for row in data)
    assert {item.fields["generation"] for item in calls.library.store.drawer(Items).get(held)} == {2}
    assert sum("id" not in row for row in data) == 3


def test_a_generation_begun_while_an_older_one_is_leaving_leaves_nothing_of_it(calls: Calls) -> None:
    calls.table({"a": "kettle words"})
    calls.tool("search")
    calls.settle()
    calls("search_reindex", table_id="t", force=True)
    while calls.library.tables.table("t").leaving is None:
        assert calls.library.tables.jobs.step()
    calls("search_reindex", table_id="t", force=True)
    calls.settle()
    table = calls.library.tables.table("t")
    assert (table.generation, table.building, table.leaving) == (3, None, None)
    assert {
        item.fields["generation"] for item in calls.library.store.drawer(Listing).scan(Filter(kinds=("table",)))
    } == {3}
    calls("table_update", table_id="t", data={"a": "oolong words"})
    assert not calls.library.search("kettle", mode="lexical").hits
    calls("table_delete", table_id="t")
    assert calls.library.store.drawer(Listing).scan(Filter(kinds=("table",))) == []


def test_replaying_the_whole_log_changes_no_answer(calls: Calls) -> None:
    calls.table(ROWS[:20])
    calls.tool("search")
    before = calls.hits("row7 water")
    calls.library.rebuild()
    assert calls.hits("row7 water") == before


def test_times_are_told_in_order(calls: Calls) -> None:
    calls.table([{"x": "words"}])
    calls.tool("search")
    started = time.time_ns() // 1000
    calls.settle()
    tool = calls.library.tables.tool("search")
    assert tool.started_at is not None
    assert started <= tool.started_at <= (tool.indexed_at or 0)


def test_what_is_ready_before_its_job_ends_was_not_indexed_before_it_began(calls: Calls) -> None:
    calls.table(ROWS[:20], searchable=False)
    calls.tool("search")
    calls("search_reindex", table_id="t", force=True)
    told = []
    while calls.library.tables.jobs.step():
        told.append(calls("search_status", tool_id="search")["tools"][0]["search_index"])
    ready = [index for index in told if index["status"] == "ready"]
    assert ready
    assert all(index["started_at"] <= index["indexed_at"] for index in ready)
