"""The scan over sign bits, which guesses from a sample how near a row has to be, finds what a plain sort finds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from commonplace.index.vector_scan import BLOCK, FEWEST_SAMPLED_BLOCKS, closest_codes

ROWS = BLOCK * FEWEST_SAMPLED_BLOCKS + 1_000
SAMPLED = BLOCK // (FEWEST_SAMPLED_BLOCKS + 1)
Codes = NDArray[np.uint64]


def blocks_of(codes: Codes) -> list[Codes]:
    blocks = []
    for start in range(0, len(codes), BLOCK):
        part = codes[start : start + BLOCK]
        block = np.zeros((codes.shape[1], BLOCK), np.uint64)
        block[:, : len(part)] = part.T
        blocks.append(block)
    return blocks


def by_sorting(
    codes: Codes, ids: NDArray[np.int64], code: Codes, count: int, allowed: NDArray[np.bool_] | None
) -> list[int]:
    distances = np.bitwise_count(codes ^ code).sum(axis=1)
    rows = np.arange(len(codes)) if allowed is None else np.flatnonzero(allowed)
    found: list[int] = rows[np.lexsort((ids[rows], distances[rows]))][:count].tolist()
    return sorted(found)


@given(seed=st.integers(0, 1000), count=st.integers(1, 5_000), share=st.sampled_from([None, 0.001, 0.1, 0.5, 0.99]))
@settings(deadline=None, max_examples=30)
def test_the_nearest_codes_are_found_whichever_rows_may_answer(seed: int, count: int, share: float | None) -> None:
    chance = np.random.default_rng(seed)
    codes = chance.integers(0, 1 << 63, (ROWS, 2), dtype=np.uint64)
    ids = chance.permutation(ROWS).astype(np.int64)
    allowed = None if share is None else chance.random(ROWS) < share
    found = closest_codes(blocks_of(codes), ids, codes[7], count, allowed)
    assert sorted(found.tolist()) == by_sorting(codes, ids, codes[7], count, allowed)


@pytest.mark.parametrize("near_in_sample", [True, False])
def test_a_sample_that_is_like_nothing_else_costs_no_row(near_in_sample: bool) -> None:
    chance = np.random.default_rng(3)
    codes = chance.integers(0, 1 << 63, (ROWS, 1), dtype=np.uint64)
    sampled = np.arange(ROWS) % BLOCK < SAMPLED
    near = sampled if near_in_sample else ~sampled
    codes[near] = np.uint64(1) << chance.integers(0, 63, (int(near.sum()), 1), dtype=np.uint64)
    code, ids = np.zeros(1, np.uint64), np.arange(ROWS)
    for count in (10, 3_000, 20_000):
        found = closest_codes(blocks_of(codes), ids, code, count, None)
        assert sorted(found.tolist()) == by_sorting(codes, ids, code, count, None)
