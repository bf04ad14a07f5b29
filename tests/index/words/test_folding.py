"""Folding small segments.

1. A few writes never make tantivy merge what was there before them, however many there are of them.
2. What is folded answers as an index rebuilt from the store, removals and revisions included.
3. Few segments, or large ones, are left alone; what is chosen is bounded.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commonplace.index.words.snapshot import LAYER, MERGED, MOST_FOLDED, committed_segments, smallest
from commonplace.library import Library
from commonplace.model import Draft
from opening import library_settings


def segments(library: Library) -> dict[str, list[int]]:
    (folder,) = library.folder.glob("index-*/lexical")
    return committed_segments(folder)


def found(library: Library, query: str) -> list[tuple[str, float]]:
    return [(hit.uri, round(hit.score, 4)) for hit in library.search(query, mode="lexical", limit=200).hits]


def test_many_single_writes_leave_the_first_segment_as_it_was(tmp_path: Path) -> None:
    with Library.open(tmp_path, settings=library_settings(tmp_path)) as library:
        library.put_many(Draft("note", f"old{n}", body=f"tea number{n}") for n in range(700))
        library.search("tea")
        (first,) = segments(library)
        for number in range(60):
            library.put(Draft("note", f"new{number}", body=f"oolong number{number}"))
            assert [hit.uri for hit in library.search(f"oolong number{number}", limit=1).hits] == [
                f"notes://new{number}"
            ]
            assert first in segments(library)
            assert len(segments(library)) < MERGED
        assert len(found(library, "oolong")) == 60


writes = st.lists(st.tuples(st.integers(0, 12), st.booleans()), min_size=15, max_size=40)


@settings(max_examples=10)
@given(writes)
def test_what_is_folded_answers_as_an_index_rebuilt(
    tmp_path_factory: pytest.TempPathFactory, writes: list[tuple[int, bool]]
) -> None:
    folder = tmp_path_factory.mktemp("folding")
    with Library.open(folder, settings=library_settings(folder)) as library:
        library.put_many(Draft("note", f"old{n}", body=f"tea number{n}") for n in range(20))
        kept = {f"notes://old{n}" for n in range(20)}
        for turn, (key, put) in enumerate(writes):
            uri = f"notes://{key}"
            if put:
                library.put(Draft("note", str(key), body=f"tea turn{turn} " + "leaf " * key))
                kept.add(uri)
            elif uri in kept:
                library.delete(uri)
                kept.remove(uri)
            assert {uri for uri, _ in found(library, "tea")} == kept
        library.lexical.reset()
        assert {uri for uri, _ in found(library, "tea")} == kept


@pytest.mark.parametrize(
    ("sizes", "chosen"),
    [
        ([], []),
        ([5000, 1, 1, 1, 1, 1], []),
        ([5000, 1, 1, 1, 1, 1, 1], [1, 2, 3, 4, 5, 6]),
        ([5000, 90, 1, 1, 1, 1, 1], [2, 3, 4, 5, 6]),
        ([5000, 100, 40, 15, 7, 3, 1], [6, 5, 4, 3, 2, 1]),
        ([5000, 400, 400, 400, 400, 400, 1], []),
        ([LAYER, LAYER, LAYER, LAYER, LAYER, LAYER, 1, 1], []),
    ],
)
def test_the_smallest_are_chosen_before_there_are_too_many(sizes: list[int], chosen: list[int]) -> None:
    assert smallest(sizes) == chosen


@settings(deadline=None)
@given(st.lists(st.integers(1, 2 * LAYER), max_size=30))
def test_what_is_chosen_is_bounded_and_worth_it(sizes: list[int]) -> None:
    chosen = smallest(sizes)
    assert len(chosen) != 1
    assert sum(sizes[place] for place in chosen) <= MOST_FOLDED
    assert not chosen or max(sizes[place] for place in chosen) <= min(
        (size for place, size in enumerate(sizes) if place not in chosen), default=2 * LAYER
    )
