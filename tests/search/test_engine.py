"""The stages that every search is made of."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.errors import Unavailable
from commonplace.models.hurry import time_left
from commonplace.search.engine import deepen, in_time, reciprocal

rankings = st.lists(st.lists(st.integers(0, 9), unique=True), min_size=1, max_size=4)


@given(rankings, st.integers(1, 100), st.data())
def test_lists_are_fused_by_the_sum_of_weight_over_k_plus_rank(
    lists: list[list[int]], k: int, data: st.DataObject
) -> None:
    weights = data.draw(st.lists(st.floats(0, 5), min_size=len(lists), max_size=len(lists)))
    fused = reciprocal([np.array(ids, np.int64) for ids in lists], weights, k=k)
    assert fused.ids.tolist() == sorted({member for ids in lists for member in ids})
    for place, member in enumerate(fused.ids.tolist()):
        worths = [
            weight / (k + ids.index(member) + 1) if member in ids else 0.0
            for ids, weight in zip(lists, weights, strict=True)
        ]
        assert [float(column[place]) for column in fused.worths] == worths
        assert float(fused.total[place]) == sum(worths)
        assert [int(ranks[place]) for ranks in fused.ranks] == [
            ids.index(member) + 1 if member in ids else 0 for ids in lists
        ]


def test_without_weights_each_list_counts_the_same() -> None:
    fused = reciprocal([np.array([7, 8]), np.array([8])])
    assert dict(zip(fused.ids.tolist(), fused.total.tolist(), strict=True)) == {7: 1 / 61, 8: 1 / 62 + 1 / 61}


def test_a_search_goes_four_times_deeper_until_there_is_enough() -> None:
    depths: list[int] = []

    def step(depth: int) -> int:
        depths.append(depth)
        return depth

    assert deepen(50, step, lambda depth: depth >= 800) == 800
    assert depths == [50, 200, 800]


def test_a_model_has_its_time_and_its_absence_is_an_answer() -> None:
    def absent() -> None:
        raise Unavailable("The model is away.")

    bound = in_time(time_left, 3.0)
    assert isinstance(bound, float)
    assert 2.0 < bound <= 3.0
    assert in_time(time_left, None) is None
    reason = in_time(absent)
    assert isinstance(reason, Unavailable)
    assert reason.reason
    with pytest.raises(ZeroDivisionError):
        in_time(lambda: 1 // 0)
