"""Summaries of entries: when they are made, by whom, and that none is lost on the way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from commonplace.errors import Unavailable
from commonplace.kinds.memories import generation as room
from commonplace.kinds.memories.drawer import EntryRows
from commonplace.kinds.memories.entry import GenerationFailed, New, Revised, Revision, Stored
from commonplace.library import Library
from commonplace.models.providers import provider_line
from commonplace.store.job_queue import JobQueue
from opening import library_settings
from wire_server import Site, serving, silent, status

LONG = "Anna moves the payment service in May. " * 20
SHORT = "Anna moves it."


@pytest.fixture
def site() -> Iterator[Site]:
    with serving(Site(says="Anna moves the payment service.")) as found:
        yield found


@contextmanager
def opened(folder: Path, site: Site, **more: object) -> Iterator[Library]:
    settings = library_settings(
        folder, memory_summarizer="ollama:static", generator_url=site.url, generator_pause_ms=1, **more
    )
    with Library.open(folder, settings=settings) as library:
        yield library


def store(library: Library, text: str) -> Stored:
    (made,) = library.memories.store([New("t", "user", text)])
    assert isinstance(made, Stored)
    return made


def summary(library: Library, made: Stored | Revised) -> str | None:
    return library.memories.entries([made.number])[0].summary


def test_a_long_entry_is_summarised_by_whoever_works_on_the_queue(tmp_path: Path, site: Site) -> None:
    with opened(tmp_path, site) as library:
        long, short = store(library, LONG), store(library, SHORT)
        assert site.asked == []  # the write waits for nobody
        assert (summary(library, long), library.store.drawer(JobQueue).total()) == (None, 1)
        change = library.store.last_change()
        assert library.memories.summaries.work() is False
        assert summary(library, long) == "Anna moves the payment service."
        assert summary(library, short) is None
        entry = library.memories.entries([long.number])[0]
        assert (entry.item.version, library.store.last_change()) == (1, change)  # it is no other version of the entry
        assert LONG.strip() in site.asked[0].body["messages"][1]["content"]


@pytest.mark.parametrize(("least", "made"), [(len(LONG), 1), (len(LONG) + 1, 0), (0, 1)])
def test_only_what_is_long_enough_is_summarised(tmp_path: Path, site: Site, least: int, made: int) -> None:
    with opened(tmp_path, site, memory_summary_least=least) as library:
        store(library, LONG)
        assert library.store.drawer(JobQueue).total() == made


def test_another_text_gets_another_summary_and_the_old_one_is_never_shown_for_it(tmp_path: Path, site: Site) -> None:
    with opened(tmp_path, site) as library:
        made = store(library, LONG)
        library.memories.summaries.work()
        site.says = "Boris does."
        (revised,) = library.memories.revise([Revision(made.number, text=LONG.replace("Anna", "Boris"))])
        assert isinstance(revised, Revised)
        assert "summary" in revised.changed
        assert summary(library, made) is None
        library.memories.summaries.work()
        assert summary(library, made) == "Boris does."
        library.memories.revise([Revision(made.number, metadata={"a": 1})])
        assert summary(library, made) == "Boris does."
        again = store(library, LONG.replace("Anna", "Boris"))
        assert (again.deduplicated, again.summary_kept, library.store.drawer(JobQueue).total()) == (True, True, 0)


def test_a_summary_of_a_text_that_changed_meanwhile_is_dropped(tmp_path: Path, site: Site) -> None:
    with opened(tmp_path, site) as library:
        made = store(library, LONG)
        assert library.store.drawer(EntryRows).set_summary(made.item_id, LONG, "right")
        assert not library.store.drawer(EntryRows).set_summary(made.item_id, LONG + "!", "wrong")
        assert not library.store.drawer(EntryRows).set_summary(made.item_id, LONG, " ")
        assert not library.store.drawer(EntryRows).set_summary(99, LONG, "nobody's")
        assert summary(library, made) == "right"


def test_a_provider_that_fails_is_asked_again_later(
    tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path, site) as library:
        made = store(library, LONG)
        site.always = status(500)
        assert library.memories.summaries.work() is True
        count = len(site.asked)
        assert library.memories.summaries.work() is True  # not yet: it is left alone for a while
        assert len(site.asked) == count
        site.always = None
        provider_line.line_to.cache_clear()
    with opened(tmp_path, site) as library:
        later = time.time_ns() + 31 * 10**9
        monkeypatch.setattr(time, "time_ns", lambda: later)
        assert library.memories.summaries.work() is False
        assert summary(library, made) == "Anna moves the payment service."


def test_an_entry_that_nobody_can_summarise_is_given_up(
    tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "MOST_ATTEMPTS", 1)
    with opened(tmp_path, site) as library:
        site.always = status(400)
        store(library, LONG)
        assert library.memories.summaries.work() is False
        assert library.store.drawer(JobQueue).total() == 0


def test_embed_writes_what_is_missing_of_entries_from_before(tmp_path: Path, site: Site) -> None:
    with Library.open(tmp_path, settings=library_settings(tmp_path)) as library:
        made = store(library, LONG)
        assert library.store.drawer(JobQueue).total() == 0
    with opened(tmp_path, site) as library:
        library.embed()
        assert summary(library, made) == "Anna moves the payment service."
        library.embed()
        assert len(site.asked) == 1


def test_a_text_too_long_for_the_model_is_shortened_by_quotation(tmp_path: Path, site: Site) -> None:
    too_long = status(400, {"error": "the prompt exceeds the context length"})
    site.plan.extend([too_long, too_long])
    with opened(tmp_path, site) as library:
        text = " ".join(f"The payment service has part {n} and owner {n % 7}." for n in range(400))
        made = store(library, text)
        library.memories.summaries.work()
        sizes = [len(asked.body["messages"][1]["content"]) for asked in site.asked]
        assert sizes[0] > sizes[1] > sizes[2]
        assert summary(library, made) == "Anna moves the payment service."


def test_a_summary_keeps_to_its_tokens(tmp_path: Path, site: Site) -> None:
    site.says = "word " * 500
    with opened(tmp_path, site, memory_summary_tokens=50, memory_summary_prompt="Sum up.") as library:
        made = store(library, LONG)
        library.memories.summaries.work()
        assert 150 < len(summary(library, made) or "") <= 200
        assert site.asked[0].body["messages"][0] == {"role": "system", "content": "Sum up."}
        assert site.asked[0].body["options"]["num_predict"] == 50


def test_the_built_in_way_quotes_and_asks_nobody(tmp_path: Path) -> None:
    text = (
        "The payment service moves in May. "
        + "It was windy. " * 3
        + "Anna moves the payment service. " * 2
        + "x " * 300
    )
    with Library.open(tmp_path, settings=library_settings(tmp_path, memory_summarizer="extractive")) as library:
        made = store(library, text)
        library.memories.summaries.work()
        found = summary(library, made)
        assert found is not None
        assert "payment service" in found
        assert all(part in text for part in found.rstrip("…").split(". "))


def test_without_anyone_to_write_them_there_are_none(tmp_path: Path, site: Site) -> None:
    with Library.open(tmp_path, settings=library_settings(tmp_path)) as library:
        store(library, LONG)
        assert library.store.drawer(JobQueue).total() == 0
    with opened(tmp_path, site, memory_summaries=False) as library:
        store(library, LONG + "!")
        assert library.store.drawer(JobQueue).total() == 0


# strict mode


def test_strict_mode_summarises_before_it_stores(tmp_path: Path, site: Site) -> None:
    with opened(tmp_path, site, memory_generation="strict") as library:
        made = store(library, LONG)
        assert (made.summary_made, summary(library, made)) == (True, "Anna moves the payment service.")
        site.says = "Boris does."
        (revised,) = library.memories.revise([Revision(made.number, text=LONG + " Boris, too.")])
        assert isinstance(revised, Revised)
        assert "summary" in revised.changed
        assert summary(library, made) == "Boris does."
        assert library.store.drawer(JobQueue).total() == 0


def test_strict_mode_stores_nothing_where_a_summary_fails(tmp_path: Path, site: Site) -> None:
    with opened(tmp_path, site, memory_generation="strict") as library:
        made = store(library, LONG)
        site.always = status(503)
        change = library.store.last_change()
        with pytest.raises(GenerationFailed, match=r"^Generation failed .* retries: summary: ollama at .* 503"):
            store(library, LONG + "!")
        with pytest.raises(GenerationFailed, match=r"No data was saved\.$"):
            library.memories.store([New("t", "user", LONG + "?"), New("t", "user", "x")], batch=True)
        assert library.store.last_change() == change
        store(library, SHORT)  # too short to need anyone
        library.memories.revise([Revision(made.number, metadata={"a": 1})])


def test_strict_mode_names_everything_that_failed(tmp_path: Path, site: Site) -> None:
    site.always = status(404)
    settings = {"model": "ollama:static", "embedder_url": site.url, "memory_generation": "strict"}
    with opened(tmp_path, site, **settings) as library:
        with pytest.raises(GenerationFailed) as caught:
            store(library, LONG)
        said = str(caught.value)
        assert said.startswith("Generation failed after exhausting configured retries: embedding: ollama at ")
        assert "; summary: ollama at " in said


# a slow embedder


def test_a_slow_provider_never_keeps_a_store_waiting(
    tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("commonplace.kinds.memories.generation.MOST_S", 0.2)
    site.always = silent
    with opened(tmp_path, site, model="ollama:static", embedder_url=site.url) as library:
        begun = time.monotonic()
        assert store(library, LONG).embedding == "pending"
        assert store(library, SHORT).embedding == "pending"  # and it is left alone for a while
        assert time.monotonic() - begun < 5
        assert len(site.asked) == 1


# crashes

_WORKER = """
import sys
from commonplace.library import Library
from commonplace.kinds.memories.entry import New
with Library.open(sys.argv[1]) as library:
    library.memories.store([New("t", "user", sys.argv[2])])
    print("stored", flush=True)
    library.memories.summaries.work()
"""


def test_a_summary_under_way_when_its_process_is_killed_is_taken_up_by_another(
    tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.always = silent
    environment = {
        **os.environ,
        "COMMONPLACE_MODEL": "static",
        "COMMONPLACE_MEMORY_SUMMARIZER": "ollama:static",
        "COMMONPLACE_GENERATOR_URL": site.url,
    }
    command = [sys.executable, "-c", _WORKER, str(tmp_path), LONG]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "stored\n"
        deadline = time.monotonic() + 30
        while not site.asked:
            assert time.monotonic() < deadline
            time.sleep(0.01)  # the bound of a wait for another process, not a guess at its speed
        worker.send_signal(signal.SIGKILL)
    site.always = None
    with opened(tmp_path, site) as library:
        assert library.memories.summaries.work() is True  # its lease is not over yet
        later = time.time_ns() + 3600 * 10**9
        monkeypatch.setattr(time, "time_ns", lambda: later)
        assert library.memories.summaries.work() is False
        assert library.memories.entries([1])[0].summary == "Anna moves the payment service."


def test_a_wrong_setting_is_told_and_harms_nothing(tmp_path: Path, site: Site) -> None:
    with opened(tmp_path, site, keys=tmp_path / "keys.toml") as library:
        assert library.memories.summaries.problem == ""
    (tmp_path / "keys.toml").write_text("", encoding="utf-8")
    (tmp_path / "keys.toml").chmod(0o644)
    with opened(tmp_path, site, keys=tmp_path / "keys.toml") as library:
        store(library, LONG)
        assert "others can read it" in library.memories.summaries.problem
        with pytest.raises(Unavailable, match="others can read it"):
            library.memories.summaries.make(LONG)
