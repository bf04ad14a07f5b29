"""The rules of memory, below the tools: what a write leaves, whole or not at all, and who sees it."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

from commonplace.errors import InvalidInput
from commonplace.kinds.memories.entry import BatchFailed, New, NoEntry, Revised, Revision, Stored
from commonplace.library import Library
from commonplace.model import Draft
from commonplace.store.chunks import Chunks
from opening import library_settings


def store(library: Library, text: str, **more: object) -> Stored:
    (stored,) = library.memories.store([New("t", "user", text, **more)])  # type: ignore[arg-type]
    assert isinstance(stored, Stored)
    return stored


def test_an_atomic_batch_that_fails_changes_nothing_and_no_index_knows_of_it(library: Library) -> None:
    kept = store(library, "oolong")
    before = library.store.last_change()
    new = [New("t", "user", "sencha"), New("t", "user", "matcha", supersedes=(99,))]
    with pytest.raises(BatchFailed) as caught:
        library.memories.store(new, batch=True)
    assert (caught.value.place, caught.value.code) == (1, "not_found")
    changes = [Revision(kept.number, text="assam"), Revision(99, text="x")]
    with pytest.raises(BatchFailed):
        library.memories.revise(changes, batch=True)
    assert library.store.last_change() == before
    assert library.search("sencha matcha assam", mode="lexical").hits == ()
    assert store(library, "next").number == kept.number + 1


def test_where_each_stands_alone_the_good_ones_are_kept(library: Library) -> None:
    new = [New("t", "user", "a"), New("t", "agent", "b", supersedes=(99,)), New("t", "user", "c")]
    first, second, third = library.memories.store(new, atomic=False, batch=True)
    assert isinstance(first, Stored)
    assert isinstance(second, NoEntry)
    assert isinstance(third, Stored)
    assert library.memories.find() == [first.number, third.number]
    assert library.doctor() == []


def test_a_single_failure_is_raised_as_what_it_is(library: Library) -> None:
    with pytest.raises(NoEntry, match="Context entry with ID 5 not found"):
        library.memories.revise([Revision(5, text="x")])


def test_what_has_expired_is_seen_by_nobody(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    store(library, "oolong", expires_at=datetime.now(UTC) + timedelta(minutes=1))
    assert library.search("oolong").hits
    later = time.time_ns() + 61 * 10**9
    monkeypatch.setattr(time, "time_ns", lambda: later)
    assert library.status().items == {}
    assert library.search("oolong").hits == ()


def test_the_first_memory_makes_its_own_vectors_and_leaves_the_rest_of_the_library_alone(library: Library) -> None:
    library.put_many(Draft("note", f"n{n}", body=f"note number {n}") for n in range(100))
    assert library.embedding.chosen is None
    assert store(library, "oolong").embedding == "generated"
    coverage = library.embedding.coverage()
    assert (coverage.embedded, coverage.pending) == (1, 100)


def test_long_texts_are_cut_as_the_settings_say(tmp_path: Path) -> None:
    text = "A sentence of some words. " * 200
    for settings, chunks in (
        ({"memory_chunk_size": 1000, "memory_chunk_overlap": 0}, 6),
        ({"memory_chunking": False}, 1),
    ):
        folder = tmp_path / str(chunks)
        with Library.open(folder, settings=library_settings(folder, **settings)) as library:
            stored = store(library, text)
            cut = library.store.drawer(Chunks).of(stored.item_id)
            assert chunks <= len(cut) <= chunks + 1
            assert all(text[chunk.char_start : chunk.char_end] == chunk.text for chunk in cut)


def test_threads_may_share_the_memories(library: Library) -> None:
    def work(name: int) -> None:
        for n in range(20):
            library.memories.store([New(f"t{name}", "user", f"text {n}")])

    workers = [threading.Thread(target=work, args=(name,)) for name in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert library.memories.find() == list(range(1, 81))
    assert library.doctor() == []


def test_versions_rise_by_one_with_each_write(library: Library) -> None:
    number = store(library, "a").number
    for version in range(2, 6):
        (revised,) = library.memories.revise([Revision(number, patch={})])
        assert isinstance(revised, Revised)
        assert revised.version == version


@pytest.mark.parametrize("value", [float("inf"), float("nan"), b"x", {1}, reduce(lambda a, _: [a], range(2000), [])])  # type: ignore[arg-type, return-value]
def test_a_patch_that_is_no_json_is_refused_in_a_sentence(library: Library, value: Any) -> None:
    library.memories.store([New("t", "agent", "tea", metadata={"k": 1})])
    with pytest.raises(InvalidInput, match=r"^The metadata of memory '1' "):
        library.memories.revise([Revision(1, patch={"k": value})])
    assert library.memories.entries([1])[0].item.metadata == {"k": 1}
