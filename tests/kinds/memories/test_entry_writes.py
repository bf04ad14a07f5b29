"""Entries that are stored together, beside the same entries stored one by one.

1. A batch leaves what the same calls one by one leave: entries, dedup, successors, history, images and the log.
2. What cannot be stored is told at its place, and where each stands alone the others are there.
3. What was said last is what has the latest time, also where that is yet to come.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commonplace.errors import CommonplaceError
from commonplace.kinds.memories.drawer import EntryRows
from commonplace.kinds.memories.entry import BatchFailed, Image, New, Stored
from commonplace.kinds.memories.entry_imports import IncomingEntry
from commonplace.library import Library
from commonplace.store.attachments import Attachments
from commonplace.store.chunks import Chunks
from opening import open_library

THREADS = ("one", "two")
IMAGES = (Image(b"x", "image/png"), Image(b"y", "image/gif", {"by": "us"}))


def entries(most: int) -> st.SearchStrategy[list[New]]:
    """Few threads, sources and texts, so that duplicates, answers and successors are common."""
    entry = st.builds(
        New,
        st.sampled_from(THREADS),
        st.sampled_from(("user", "agent")),
        st.sampled_from(("tea", " tea\n", "coffee", "Oolong wants water just off the boil.\n")),
        images=st.none() | st.lists(st.sampled_from(IMAGES), max_size=2).map(tuple),
        metadata=st.none() | st.dictionaries(st.sampled_from(("status", "n")), st.sampled_from(("Open", 7, None))),
        tags=st.none() | st.lists(st.sampled_from(("A", "b"))).map(tuple),
        supersedes=st.lists(st.integers(1, 12), max_size=2, unique=True).map(tuple) | st.just(()),
    )
    return st.lists(entry, max_size=most)


class Two:
    """Two libraries in which the same is done in different ways."""

    def __init__(self, together: Library, apart: Library) -> None:
        self.together, self.apart = together, apart

    def clear(self) -> None:
        for library in (self.together, self.apart):
            library.memories.delete(library.memories.find())

    def look_the_same(self) -> None:
        assert told(self.together) == told(self.apart)


@pytest.fixture
def two(backend: str, tmp_path: Path) -> Iterator[Two]:
    with (
        open_library(backend, tmp_path / "together", memory_embedding=False) as together,
        open_library(backend, tmp_path / "apart", memory_embedding=False) as apart,
    ):
        yield Two(together, apart)


def told(library: Library) -> list[Any]:
    """Everything but the times, and the log."""
    found = library.memories.entries(library.memories.find(), history=True)
    images = library.store.drawer(Attachments).of_many([entry.row.item_id for entry in found])
    return [
        [
            (
                replace(entry.row, created_at=0),
                (entry.item.body, entry.item.metadata, entry.item.tags, entry.item.fields, entry.item.version),
                [replace(past, updated_at=0) for past in entry.past],
                images.get(entry.row.item_id, []),
                library.store.drawer(Chunks).of(entry.row.item_id),
            )
            for entry in found
        ],
        [(change.op, change.item_id, change.version) for change in library.store.changes(0, 100_000)],
        library.store.drawer(EntryRows).next_number(),
    ]


def one_by_one(library: Library, new: Sequence[New]) -> list[Stored | CommonplaceError]:
    made: list[Stored | CommonplaceError] = []
    for entry in new:
        try:
            made += library.memories.store([entry])
        except CommonplaceError as error:
            made.append(error)
    return made


@settings(max_examples=40)
@given(new=entries(8))
def test_where_each_stands_alone_a_batch_leaves_what_its_entries_leave_one_by_one(two: Two, new: list[New]) -> None:
    two.clear()
    made = two.together.memories.store(new, atomic=False, batch=True)
    expected = one_by_one(two.apart, new)
    assert list(map(str, made)) == list(map(str, expected))
    two.look_the_same()


@settings(max_examples=40)
@given(before=entries(3), new=entries(8))
def test_an_atomic_batch_leaves_all_of_that_or_nothing(two: Two, before: list[New], new: list[New]) -> None:
    two.clear()
    for library in (two.together, two.apart):
        one_by_one(library, before)
    untouched, expected = told(two.together), one_by_one(two.apart, new)
    failed = next((place for place, made in enumerate(expected) if isinstance(made, CommonplaceError)), None)
    if failed is None:
        assert list(map(str, two.together.memories.store(new, batch=True))) == list(map(str, expected))
        two.look_the_same()
        return
    with pytest.raises(BatchFailed) as caught:
        two.together.memories.store(new, batch=True)
    assert (caught.value.place, str(caught.value)) == (failed, str(expected[failed]))
    assert told(two.together) == untouched
    assert list(map(str, one_by_one(two.together, new))) == list(map(str, expected))


def test_duplicates_of_an_entry_from_the_future_are_told_apart_as_ever(two: Two) -> None:
    later = datetime.now(UTC) + timedelta(days=1)
    kept = IncomingEntry(5, "one", "user", "later", {}, (), (), None, later, later)
    new = [New("one", "user", "tea"), New("one", "user", "later"), New("one", "user", "tea")]
    for library in (two.together, two.apart):
        library.memories.restore(lambda: [kept])
    two.together.memories.store(new, batch=True)
    one_by_one(two.apart, new)
    assert [entry.item.body for entry in two.together.memories.entries([5, 6, 7, 8])] == ["later", "tea", "tea"]
    two.look_the_same()


@pytest.mark.parametrize("earlier", [True, False])
def test_what_was_said_before_a_superseded_entry_is_what_was_said_last(two: Two, earlier: bool) -> None:
    before = [New("one", "user", "tea"), New("one", "user", "coffee")]
    new = [New("two", "agent", "no coffee", supersedes=(2,)), New("one", "user", "tea"), New("two", "agent", "water")]
    for library in (two.together, two.apart):
        one_by_one(library, [*before, *new[:earlier]])
    made = two.together.memories.store(new[earlier:], batch=True)
    one_by_one(two.apart, new[earlier:])
    assert [(stored.number, stored.deduplicated) for stored in made if isinstance(stored, Stored)][-2:] == [
        (1, True),
        (4, False),
    ]
    two.look_the_same()
