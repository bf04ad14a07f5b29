"""Work beside the calls: pending vectors and summaries are made while a server serves, and nobody waits for it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from commonplace.kinds.memories.entry import New, Stored
from commonplace.kinds.memories.tools.statistics import embedded_entries
from commonplace.library import Library
from commonplace.model import Draft
from commonplace.server import background as room
from commonplace.server.background import Background
from commonplace.server.libraries import Libraries
from commonplace.server.principal import OWNER
from commonplace.server.service import Service, Visitor
from commonplace.settings import Settings
from commonplace.store.job_queue import JobQueue
from opening import library_settings
from wire_server import Site, serving, silent, status

LONG = "Anna moves the payment service in May. " * 20


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "SETTLE_S", 0.0)
    monkeypatch.setattr(room, "AGAIN_S", 0.05)


@pytest.fixture
def site() -> Iterator[Site]:
    with serving(Site(says="Anna moves the payment service.")) as found:
        yield found


def settings_of(folder: Path, site: Site, **more: object) -> Settings:
    return library_settings(folder, memory_summarizer="ollama:static", generator_url=site.url, **more)


def until(so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not so():
        assert time.monotonic() < deadline
        time.sleep(0.01)  # the bound of a wait for another thread, not a guess at its speed


@pytest.fixture
def libraries(tmp_path: Path, site: Site) -> Iterator[Libraries]:
    found = Libraries(settings_of(tmp_path, site))
    yield found
    found.close()


@pytest.fixture
def worker(libraries: Libraries) -> Iterator[Background]:
    found = Background(libraries)
    yield found
    found.close()


def test_a_summary_is_written_after_the_call_that_stored_its_entry(libraries: Libraries, worker: Background) -> None:
    with libraries.borrow("default") as library:
        library.memories.store([New("t", "user", LONG)])
        worker.nudge("default", wrote=True)
        until(lambda: library.store.drawer(JobQueue).total() == 0)
        assert library.memories.entries([1])[0].summary == "Anna moves the payment service."


def test_a_call_is_no_worse_for_a_system_without_a_thread_to_give_and_a_later_one_has_it_done(
    libraries: Libraries, worker: Background, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with libraries.borrow("default") as library:
        library.memories.store([New("t", "user", LONG)])
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", refuse)
            worker.nudge("default", wrote=True)
        worker.nudge("default", wrote=True)
        until(lambda: library.store.drawer(JobQueue).total() == 0)


def test_a_summary_is_written_though_the_caller_went_away_while_the_entry_was_stored(
    tmp_path: Path, site: Site
) -> None:
    settings = settings_of(tmp_path, site)
    service = Service(settings)
    registry = service.registry("memory")
    tool = registry.find("store_context")
    assert tool is not None
    entry = {"thread_id": "t", "source": "user", "text": LONG}

    async def leave() -> None:
        call = asyncio.create_task(service.call(Visitor(OWNER), registry, tool, entry))
        while service.libraries.peek("default") is None:
            await asyncio.sleep(0.01)  # between the looks of a wait for another thread
        call.cancel()

    try:
        with Library.open(tmp_path, settings=settings) as library:
            with library.store.transaction():  # the entry has to wait until its caller has gone
                asyncio.run(leave())
            until(lambda: any(entry.summary for entry in library.memories.entries([1])))
    finally:
        service.close()


def test_vectors_are_made_without_asking_but_for_documents_that_nobody_has_asked_to_embed(
    libraries: Libraries, worker: Background
) -> None:
    with libraries.borrow("default") as library:
        library.put_many(Draft("document", f"{n}.md", parent="docs", body=f"page number {n}") for n in range(5))
        worker.nudge("default", wrote=True)
        until(lambda: not worker._due)
        assert library.embedding.chosen is None
        library.put_many(Draft("note", f"a{n}", body=f"note number {n}") for n in range(100))
        worker.nudge("default", wrote=True)
        until(lambda: library.embedding.coverage().embedded == 100)
        until(lambda: not worker._due)
        assert library.embedding.coverage().pending == 5
        library.embed()
        library.put_many(Draft("document", f"b{n}.md", parent="docs", body=f"other page {n}") for n in range(100))
        worker.nudge("default", wrote=True)
        until(lambda: library.embedding.coverage().pending == 0)


def test_vectors_are_made_for_what_another_process_wrote_while_this_one_only_reads(
    libraries: Libraries, worker: Background, tmp_path: Path, site: Site
) -> None:
    with Library.open(tmp_path, settings=settings_of(tmp_path, site)) as other:
        other.put(Draft("note", "a", body="the first note"))
        other.embed()
        with libraries.borrow("default"):
            worker.nudge("default", wrote=False)
            until(lambda: not worker._due)
            other.put_many(Draft("note", f"b{n}", body=f"other note {n}") for n in range(100))

            def read_and_look() -> bool:
                worker.nudge("default", wrote=False)
                return other.embedding.coverage().pending == 0

            until(read_and_look)


def test_memories_that_a_provider_failed_get_their_vectors_later(tmp_path: Path, site: Site) -> None:
    site.always = status(404)
    found = Libraries(settings_of(tmp_path, site, model="ollama:static", embedder_url=site.url))
    worker = Background(found)
    try:
        with found.borrow("default") as library:
            (made,) = library.memories.store([New("t", "user", "tea")])
            assert isinstance(made, Stored)
            assert made.embedding == "pending"
            site.always = None
            worker.nudge("default", wrote=True)
            until(lambda: embedded_entries(library) == (1, 1, 0))
    finally:
        worker.close()
        found.close()


def test_what_failed_is_tried_again_by_itself(libraries: Libraries, worker: Background, site: Site) -> None:
    site.plan.append(status(404))
    with libraries.borrow("default") as library:
        library.memories.store([New("t", "user", LONG)])
        job = library.store.drawer(JobQueue).claim("summary", 60)
        assert job is not None
        library.store.drawer(JobQueue).fail(job, "not now", 0.2)
        worker.nudge("default", wrote=True)
        site.plan.clear()
        until(lambda: library.store.drawer(JobQueue).total() == 0)
        assert library.memories.entries([1])[0].summary


def test_it_sleeps_when_there_is_nothing_to_do(
    libraries: Libraries, worker: Background, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "AGAIN_S", 30.0)
    with libraries.borrow("default"):
        worker.nudge("default", wrote=False)
        until(lambda: not worker._due)
        known = worker._thread
        worker.nudge("default", wrote=False)  # reading again is no reason to look again so soon
        assert worker._due == {}
        assert worker._thread is known


def test_a_library_that_was_closed_is_not_opened_for_it(libraries: Libraries, worker: Background) -> None:
    worker.nudge("default", wrote=True)
    until(lambda: not worker._due and "default" not in worker._looked)
    assert libraries.peek("default") is None


def test_it_ends_at_once_when_it_sleeps_and_soon_when_it_works(
    tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "PATIENCE_S", 0.2)
    site.always = silent
    found = Libraries(settings_of(tmp_path, site))
    worker = Background(found)
    with found.borrow("default") as library:
        library.memories.store([New("t", "user", LONG)])
    worker.nudge("default", wrote=True)
    until(lambda: bool(site.asked))
    begun = time.monotonic()
    worker.close()
    found.close()
    assert time.monotonic() - begun < 5
    site.released.set()
    assert worker._thread is not None
    worker._thread.join(20)
    assert not worker._thread.is_alive()
    with Library.open(tmp_path, settings=settings_of(tmp_path, site)) as library:
        assert library.store.drawer(JobQueue).total() == 1  # nothing is lost


def test_whatever_goes_wrong_does_not_end_it(
    libraries: Libraries, worker: Background, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with libraries.borrow("default") as library:
        library.memories.store([New("t", "user", LONG)])
        broken = threading.Event()

        def breaks(stopping: Callable[[], bool]) -> bool:
            broken.set()
            raise RuntimeError("the roof is leaking")

        with monkeypatch.context() as patch:
            patch.setattr(library, "tend", breaks)
            worker.nudge("default", wrote=True)
            assert broken.wait(20)
            until(lambda: "the roof is leaking" in caplog.text)
        until(lambda: library.store.drawer(JobQueue).total() == 0)
