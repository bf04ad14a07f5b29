"""Going over to another model.

1. The old model answers until every vector of the new one is made; then the new one does, and the old vectors are gone.
2. Whoever is stopped or killed on the way, at any point, leaves a library that answers, and the next run goes on.
3. Vectors of two models never mix, whoever writes or searches meanwhile.
4. Other processes go over at their next call.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from commonplace.errors import NotFound, StorageFull, Unavailable
from commonplace.ingest import embed_lock
from commonplace.ingest.embed_lock import AlreadyEmbedding
from commonplace.ingest.switching import Cost
from commonplace.library import Library
from commonplace.model import Draft, Filter
from commonplace.store.chunks import Chunks
from commonplace.store.embeddings import Embeddings
from commonplace.store.listing import Listing
from kit.forked import forked
from opening import library_settings, open_library
from second_model import DIMS, second_model

WORDS = ("oolong", "bread", "pump", "engine", "harbour", "violin", "lichen", "comet")
MOST_S = 60


class Stopped(Exception):
    pass


def fill(library: Library, count: int = 60) -> None:
    library.put_many(
        Draft("note", str(number), title=f"{WORDS[number % len(WORDS)]} {number}", body=f"About {WORDS[number % 8]}.")
        for number in range(count)
    )


def answers(library: Library, query: str = "a violin") -> list[str]:
    return [hit.uri for hit in library.search(query, mode="semantic", limit=5).hits]


def dims_of(library: Library) -> list[int]:
    return [model.dims for model in library.store.drawer(Embeddings).models()]


@pytest.fixture
def other(tmp_path: Path) -> str:
    return second_model(tmp_path)


@pytest.fixture
def filled(library: Library) -> Library:
    fill(library)
    library.embed()
    return library


def stop_after(steps: int) -> object:
    def progress(done: int, total: int) -> None:
        nonlocal steps
        steps -= 1
        if not steps:
            raise Stopped

    return progress


def test_the_new_model_answers_when_it_is_done_and_the_old_vectors_are_gone(filled: Library, other: str) -> None:
    before = answers(filled)
    during: list[tuple[str | None, list[str]]] = []
    made = filled.switch(other).run(lambda done, total: during.append((filled.embedding.chosen, answers(filled))))
    assert made == 60
    assert during == [("static", before)] * len(during)
    assert during
    assert (filled.embedding.chosen, filled.embedding.next) == (other, None)
    assert dims_of(filled) == [DIMS]
    assert answers(filled)
    assert [folder.name for folder in filled.embedding.folder.glob("vectors-*")] == [
        f"vectors-{filled.store.drawer(Embeddings).models()[0].fingerprint[:8]}"
    ]
    assert filled.status().coverage.pending == 0
    assert filled.doctor() == []


def test_one_that_is_stopped_goes_on_where_it_was(filled: Library, other: str) -> None:
    with pytest.raises(Stopped):
        filled.switch(other).run(stop_after(1))  # type: ignore[arg-type]
    status = filled.status()
    assert status.coverage.model == "static"
    assert status.switching
    assert (status.switching.model, 0 < status.switching.embedded < 60) == (other, True)
    done = status.switching.embedded
    cost = filled.switch(other).cost()
    assert (cost.passages, cost.made) == (60 - done, done)
    assert filled.switch(other).run() == 60 - done
    assert (filled.embedding.chosen, filled.status().switching) == (other, None)


def test_what_is_made_for_the_old_model_meanwhile_costs_the_new_one_nothing(filled: Library, other: str) -> None:
    with pytest.raises(Stopped):
        filled.switch(other).run(stop_after(1))  # type: ignore[arg-type]
    filled.put(Draft("note", "fresh", body="A trombone."))
    assert answers(filled, "a trombone")[0] == "notes://fresh"
    filled.embed()
    moving = filled.status().switching
    assert moving
    assert moving.embedded > 0
    assert filled.switch(other).run() == 61 - moving.embedded
    assert answers(filled, "a trombone")[0] == "notes://fresh"


def test_going_back_to_the_model_in_use_ends_a_switch(filled: Library, other: str) -> None:
    before = answers(filled)
    with pytest.raises(Stopped):
        filled.switch(other).run(stop_after(1))  # type: ignore[arg-type]
    back = filled.switch("static")
    assert not back.is_needed
    assert back.run() == 0
    assert (dims_of(filled), filled.status().switching, answers(filled)) == ([256], None, before)


def test_a_third_model_takes_the_place_of_a_second_that_never_arrived(
    filled: Library, other: str, tmp_path: Path
) -> None:
    third = second_model(tmp_path, "third")
    with pytest.raises(Stopped):
        filled.switch(other).run(stop_after(1))  # type: ignore[arg-type]
    filled.switch(third).run()
    assert (filled.embedding.chosen, len(filled.store.drawer(Embeddings).models())) == (third, 1)


def test_what_is_written_during_a_switch_has_vectors_after_it(filled: Library, other: str) -> None:
    late = iter(range(3))

    def write(done: int, total: int) -> None:
        if (number := next(late, None)) is not None:
            filled.put(Draft("note", f"late{number}", body="A late violin."))

    filled.switch(other).run(write)
    assert filled.status().coverage.pending == 0


def test_another_process_goes_over_at_its_next_call(filled: Library, other: str, backend: str, tmp_path: Path) -> None:
    with open_library(backend, tmp_path) as neighbour:
        fill(neighbour, 3)
        assert answers(neighbour)
        assert not neighbour.embedding.lacks_some()
        filled.switch(other).run()
        filled.put(Draft("note", "after", body="A trombone."))
        assert answers(neighbour, "a trombone")[0] == "notes://after"
        assert neighbour.embedding.ready()[1].dims == DIMS
        assert neighbour.status().coverage.pending == 0
        assert not neighbour.embedding.lacks_some()


def test_vectors_of_a_model_that_is_no_longer_in_use_are_not_made_by_another(
    filled: Library, other: str, backend: str, tmp_path: Path
) -> None:
    model = filled.embedding.first_model()
    (chunk,) = filled.store.drawer(Chunks).of(filled.store.drawer(Listing).scan(Filter(), limit=1)[0].id)
    with open_library(backend, tmp_path) as neighbour:
        neighbour.switch(other).run()
    with open_library(backend, tmp_path) as third, pytest.raises(Unavailable, match="has switched from static to"):
        third.embedding.embed_chunks(model, [chunk])


def test_a_model_that_is_not_there_changes_nothing(filled: Library) -> None:
    for name, error in (("nonsense", NotFound), ("arctic-embed-s", Unavailable)):
        with pytest.raises(error):
            filled.switch(name)
    assert (filled.embedding.chosen, filled.embedding.next) == ("static", None)


def test_only_one_switches_at_a_time(filled: Library, other: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embed_lock, "PATIENCE_S", 0.1)
    with filled.embedding.exclusive(), pytest.raises(AlreadyEmbedding):
        filled.switch(other).run()
    assert filled.embedding.next is None


def test_a_library_without_vectors_has_nothing_to_switch_from(library: Library, other: str) -> None:
    fill(library, 5)
    switch = library.switch(other)
    assert not switch.is_needed
    assert switch.run() == 5
    assert library.embedding.chosen == other


def test_it_says_beforehand_what_it_takes(filled: Library, other: str) -> None:
    cost = filled.switch(other).cost()
    assert (cost.passages, cost.made) == (60, 0)
    assert 0 < cost.bytes_new < cost.bytes_old
    assert cost.bytes_free > 0
    with pytest.raises(StorageFull, match="need about 3 MB beside the old ones, and 1 MB are free"):
        Cost(1, 0, 2_000_001, 0, 1_000_000).require_room()


def environment(home: Path) -> dict[str, str]:
    own = {"COMMONPLACE_HOME": str(home), "COMMONPLACE_MODELS": str(home / "models"), "COMMONPLACE_MODEL": "static"}
    return os.environ | own | {"OPENBLAS_NUM_THREADS": "1"}


def start(home: Path, model: str) -> subprocess.Popen[str]:
    command = forked("embed", "--model", model, "--yes")
    return subprocess.Popen(command, env=environment(home), stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def kill_at(process: subprocess.Popen[str], share: float, number: int) -> None:
    """Once it says that so much is done, whatever it is at then."""
    assert process.stderr
    for line in process.stderr:
        said = re.search(r"Embedding: (\d+) of (\d+)", line)
        if said and int(said[1]) >= share * int(said[2]):
            process.send_signal(number)
            break
    process.communicate(timeout=MOST_S)


@pytest.mark.parametrize("share", [0.01, 0.5, 1.0])
@pytest.mark.timeout(240)
def test_killed_at_any_point_it_leaves_a_library_that_answers_and_goes_on(
    tmp_path: Path, other: str, share: float
) -> None:
    settings = library_settings(tmp_path)
    with Library.open(tmp_path, settings=settings) as library:
        fill(library, 1500)
        library.embed()
        before = answers(library)
    kill_at(start(tmp_path, other), share, signal.SIGKILL)
    with Library.open(tmp_path, settings=settings) as library:
        assert library.embedding.chosen in ("static", other)
        assert library.status().coverage.pending == 0
        assert answers(library) == before or library.embedding.chosen == other
        assert library.doctor() == []
    resumed = start(tmp_path, other)
    out, err = resumed.communicate(timeout=MOST_S)
    assert resumed.returncode == 0, err
    assert "which answers now" in out
    with Library.open(tmp_path, settings=settings) as library:
        assert (library.embedding.chosen, dims_of(library)) == (other, [DIMS])
        assert (library.status().coverage.pending, library.status().switching) == (0, None)
        assert answers(library)
        assert library.doctor() == []


@pytest.mark.timeout(240)
def test_an_interrupt_pauses_it_and_says_that_what_was_done_is_kept(tmp_path: Path, other: str) -> None:
    settings = library_settings(tmp_path)
    with Library.open(tmp_path, settings=settings) as library:
        fill(library, 1500)
        library.embed()
    process = start(tmp_path, other)
    kill_at(process, 0.1, signal.SIGINT)
    assert process.returncode == 130
    with Library.open(tmp_path, settings=settings) as library:
        moving = library.status().switching
        assert library.embedding.chosen == "static"
        assert moving
        assert 0 < moving.embedded < moving.total


def test_a_library_whose_model_is_gone_answers_by_words_and_can_take_another(tmp_path: Path) -> None:
    name = second_model(tmp_path)
    settings = replace(library_settings(tmp_path), model=name)
    with Library.open(tmp_path, settings=settings) as library:
        library.put(Draft("note", "tea", body="Oolong wants water."))
        library.embed()
    shutil.rmtree(name)
    with Library.open(tmp_path, settings=replace(settings, model="static")) as library:
        assert [hit.uri for hit in library.search("oolong").hits] == ["notes://tea"]
        assert library.status().coverage.embedded == 1
        switch = library.switch("static")
        assert switch.is_needed
        switch.run()
        assert library.embedding.chosen == "static"
