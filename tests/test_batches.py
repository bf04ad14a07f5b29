"""Batches: 1. all in order, each once, 2. bounded, 3. no smaller than they need be."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from commonplace.batches import batches


@given(st.lists(st.integers(0, 30), max_size=40), st.integers(1, 8), st.integers(0, 60))
def test_batches_hold_everything_and_no_more_than_they_may(sizes: list[int], most: int, most_size: int) -> None:
    found = list(batches(sizes, lambda size: size, most=most, most_size=most_size))
    assert [size for batch in found for size in batch] == sizes
    for batch in found:
        assert 1 <= len(batch) <= most
        assert len(batch) == 1 or sum(batch) <= most_size
    for batch, following in pairwise(found):
        assert len(batch) == most or sum(batch) + following[0] > most_size
