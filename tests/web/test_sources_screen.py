"""Sources and health: folders are added, read as jobs, described; what was left out is named; everything is checked."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from visiting import get, html, post

from commonplace.errors import Denied, NotFound
from commonplace.library import Library
from commonplace.model import Draft
from commonplace.server.libraries import Libraries
from commonplace.settings import Settings
from commonplace.web.frame import Redirect
from commonplace.web.page_jobs import PageJob, PageJobs
from commonplace.web.wording import duration, size, when


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    home = tmp_path / "home"
    return Settings(home=home, models=home / "models", model="static")


@pytest.fixture
def libraries(settings: Settings) -> Iterator[Libraries]:
    libraries = Libraries(settings)
    yield libraries
    libraries.close()


@pytest.fixture
def jobs(libraries: Libraries) -> PageJobs:
    return PageJobs(libraries, lambda space: None)


@pytest.fixture
def library(libraries: Libraries) -> Iterator[Library]:
    with libraries.borrow("default") as library:
        yield library


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "vault"
    folder.mkdir()
    (folder / "tea.md").write_text("# Tea\n\nOolong.")
    (folder / "empty.md").write_text("")
    (folder / "odd.md").write_bytes(b"a\0b")
    return folder


def finish(jobs: PageJobs, name: str) -> PageJob:
    deadline = time.monotonic() + 30
    while (job := jobs.find("default", name)) is None or job.ended is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)  # the bound of a wait for another thread, not a guess at its speed
    return job


def test_a_folder_is_added_and_read_as_a_job(library: Library, jobs: PageJobs, folder: Path) -> None:
    assert "A folder of files becomes searchable" in html(library, "/sources")
    done = post(library, "/sources", root=str(folder), name="", jobs=jobs)
    assert done == Redirect("/sources/one?name=vault")
    job = finish(jobs, "sync vault")
    assert (job.problem, job.result) == ("", "1 new, 0 updated, 0 unchanged, 0 removed, 2 skipped.")
    (one,) = get(library, "/sources", jobs=jobs).record["folders"]
    assert (one["name"], one["documents"], one["root"]) == ("vault", 1, str(folder))
    assert one["looked_at"]
    record = get(library, "/sources/one?name=vault", jobs=jobs).record
    assert [(left["code"], left["files"]) for left in record["skipped"]] == [
        ("BINARY", ["odd.md"]),
        ("EMPTY", ["empty.md"]),
    ]
    assert (record["documents"], record["embedded"]) == (1, 0)
    library.embed()
    assert get(library, "/sources/one?name=vault").record["embedded"] == 1


def test_a_sync_takes_what_changed(library: Library, jobs: PageJobs, folder: Path) -> None:
    library.add_folder(folder, "vault")
    (folder / "bread.md").write_text("# Bread")
    assert post(library, "/sources/sync", name="vault", jobs=jobs) == Redirect("/sources/one?name=vault")
    assert finish(jobs, "sync vault").result.startswith("1 new")


@pytest.mark.parametrize(
    ("form", "sentence"),
    [
        ({"root": ""}, "Name a folder"),
        ({"root": "/nonexistent/x"}, "There is no folder"),
        ({"root": "{}", "name": "a/b"}, "no slash"),
    ],
)
def test_a_folder_that_cannot_be_added_is_told_beside_the_form(
    form: dict[str, str], sentence: str, library: Library, folder: Path
) -> None:
    given = {name: value.format(folder) for name, value in form.items()}
    shown = post(library, "/sources", **given)
    assert shown.status in (400, 404)
    assert sentence in shown.beside["problem"]
    assert shown.beside["typed"]["root"] == given["root"]
    assert library.folders.all() == []


def test_only_the_owner_at_this_machine_adds_folders(library: Library, folder: Path) -> None:
    with pytest.raises(Denied):
        post(library, "/sources", root=str(folder), is_owner=False)
    assert library.folders.all() == []
    assert 'action="/sources"' not in html(library, "/sources", is_owner=False)


def test_a_folder_is_described_for_agents_and_the_words_removed(library: Library, folder: Path) -> None:
    library.add_folder(folder, "vault")
    done = post(library, "/sources/context", name="vault", place="", text="Notes on tea.")
    assert done == Redirect("/sources/one?name=vault")
    assert "Notes on tea." in html(library, "/sources/one?name=vault")
    assert library.folders.context_of("vault", "tea.md") == "Notes on tea."
    wrong = post(library, "/sources/context", name="vault", place="../x", text="x")
    assert (wrong.status, "inside its collection" in wrong.beside["problem"]) == (400, True)
    post(library, "/sources/context", name="vault", place="", remove="1")
    assert library.folders.contexts() == []


def test_a_folder_that_is_not_there_is_told(library: Library, folder: Path) -> None:
    library.add_folder(folder, "vault")
    folder.rename(folder.parent / "elsewhere")
    assert "The folder is not there now" in html(library, "/sources/one?name=vault")
    with pytest.raises(NotFound, match='no folder called "x"'):
        get(library, "/sources/one?name=x")


def test_health_tells_what_is_here_and_how_large_it_is(library: Library) -> None:
    library.put(Draft("note", "tea", title="Tea", body="Oolong."))
    before = get(library, "/health")
    assert before.record["troubles"]
    assert before.refresh == 2
    library.embed()
    record = get(library, "/health").record
    assert (record["items"], record["passages"], record["embedded"], record["model"]) == ({"note": 1}, 1, 1, "static")
    assert record["troubles"] == []
    assert all(one["bytes"] > 0 for one in record["sizes"])
    assert "All is well" in html(library, "/health")


def test_the_place_on_disk_is_told_to_its_owner_alone(library: Library) -> None:
    assert get(library, "/health").record["place"] == str(library.folder)
    assert get(library, "/health", is_owner=False).record["place"] is None


def test_a_check_reads_everything_and_says_what_is_wrong(library: Library, jobs: PageJobs) -> None:
    library.put(Draft("note", "tea", title="Tea", body="Oolong."))
    assert post(library, "/health/check", jobs=jobs) == Redirect("/health")
    assert finish(jobs, "doctor").result == "Every byte was read, and everything is in order."
    page = html(library, "/health", jobs=jobs)
    assert "everything is in order" in page


def test_a_job_that_fails_says_why_and_a_name_runs_once(jobs: PageJobs, library: Library) -> None:
    def fail(library: Library, progress: Any) -> str:
        raise NotFound("The disk went away.")

    def break_down(library: Library, progress: Any) -> str:
        raise ZeroDivisionError

    jobs.start("default", "a", "A", fail)
    assert finish(jobs, "a").problem == "The disk went away."
    jobs.start("default", "b", "B", break_down)
    assert "failed unexpectedly" in finish(jobs, "b").problem
    waiting = jobs.start("default", "c", "C", lambda library, progress: str(time.sleep(0.2)))  # type: ignore[func-returns-value]
    assert jobs.start("default", "c", "C", fail) is waiting
    finish(jobs, "c")
    assert [job.name for job in jobs.of("default")] == ["c", "b", "a"]
    assert jobs.of("other") == []


def test_a_job_tells_its_rate_and_the_time_left() -> None:
    job = PageJob("a", "A", started=time.time() - 10)
    job.tell(100, 1000)
    record = job.record()
    assert record["running"]
    assert 9 < record["rate"] < 11
    assert record["left"] == "90 s"


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (size(3), "3 B"),
        (size(1_250_000), "1.2 MB"),
        (size(510_000), "510 kB"),
        (duration(300), "5 min"),
        (duration(9000), "2 h"),
    ],
)
def test_sizes_and_spans_are_told_in_words(told: str, words: str) -> None:
    assert told == words


def test_times_are_told_as_people_say_them() -> None:
    from datetime import UTC, datetime, timedelta

    now = datetime(2026, 6, 15, 12, tzinfo=UTC)
    spans = [timedelta(seconds=5), timedelta(minutes=3), timedelta(hours=2), timedelta(days=1), timedelta(days=4)]
    assert [when(now - span, now) for span in spans] == [
        "just now", "3 minutes ago", "2 hours ago", "yesterday", "4 days ago",
    ]  # fmt: skip
    assert when(now - timedelta(days=40), now) == "6 May"
    assert when(now - timedelta(days=400), now) == "11 May 2025"
    assert when(now + timedelta(days=5, hours=1), now) == "in 5 days"
