"""The scan over sign bits, which guesses from a sample how near a row has to be, finds what a plain sort finds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from commonplace.index.followers import IndexDamaged
from commonplace.index.vectors import scan as vector_scan
from commonplace.index.vectors.scan import BLOCK, NORM_TOLERANCE, SAMPLED, VectorRows, closest_codes, codes_of

ROWS = 8 * SAMPLED + 1_000
APART = 16 * (ROWS // SAMPLED)
DIMS = 32
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
    sampled = np.arange(ROWS) % APART < 16
    near = sampled if near_in_sample else ~sampled
    codes[near] = np.uint64(1) << chance.integers(0, 63, (int(near.sum()), 1), dtype=np.uint64)
    code, ids = np.zeros(1, np.uint64), np.arange(ROWS)
    for count in (10, 3_000, 20_000):
        found = closest_codes(blocks_of(codes), ids, code, count, None)
        assert sorted(found.tolist()) == by_sorting(codes, ids, code, count, None)


def rows_of(vectors: NDArray[np.float32]) -> VectorRows:
    kept, direction = vectors.astype(np.float16), np.zeros(vectors.shape[1], np.float32)
    codes = codes_of(kept.astype(np.float32), direction)
    return VectorRows(np.arange(len(kept)), blocks_of(codes), kept, None, direction)


def uneven(count: int, chance: np.random.Generator) -> NDArray[np.float32]:
    """Vectors as long as the index takes them to be, give or take what it puts up with."""
    rows = chance.standard_normal((count, DIMS)).astype(np.float32)
    lengths = np.sqrt(1 + chance.uniform(-0.9, 0.9, (count, 1)) * NORM_TOLERANCE)
    made: NDArray[np.float32] = (rows / np.linalg.norm(rows, axis=1, keepdims=True) * lengths).astype(np.float32)
    return made


@given(seed=st.integers(0, 1000), count=st.integers(1, 1_500), k=st.integers(1, 60), side=st.sampled_from([1, -1, 0]))
@settings(deadline=None, max_examples=60)
def test_the_nearest_are_those_by_cosine_though_no_row_is_quite_of_length_one(
    seed: int, count: int, k: int, side: int
) -> None:
    chance = np.random.default_rng(seed)
    vectors = uneven(count, chance)
    query = chance.standard_normal(DIMS).astype(np.float32)
    if side:  # all rows on one side of the query: every cosine is above zero, or every one below
        vectors[np.sign(vectors @ query) == -side] *= -1
    rows = rows_of(vectors)
    ids, scores = rows.search(query, k)
    assert scores.tobytes() == rows.scores(query, ids).tobytes()
    every = rows.scores(query, rows.ids)
    assert ids.tolist() == np.lexsort((rows.ids, -every))[:k].tolist()


def test_a_row_that_was_wiped_out_is_noticed_by_a_search_that_looks_at_it() -> None:
    chance = np.random.default_rng(5)
    rows = rows_of(uneven(1_000, chance))
    query = rows.vectors[7].astype(np.float32)
    assert rows.search(query, 5)[0][0] == 7
    rows.vectors[7] = 0
    with pytest.raises(IndexDamaged, match="length one"):
        rows.search(query, 5)


def test_rows_that_come_in_fives_are_told_apart_by_the_sample() -> None:
    """Every fifth row is far away, and a sample of such rows alone would let every other one through."""
    count, chance = 15 * SAMPLED, np.random.default_rng(11)
    distances = chance.integers(40, 80, count).astype(np.uint16)
    distances[::5] += 100
    limit = vector_scan._likely_limit(distances, 1_000, None)
    assert 1_000 <= np.count_nonzero(distances <= limit) < 10_000
