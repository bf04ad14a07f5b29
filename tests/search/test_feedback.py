"""What the best of a first retrieval have in common."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from commonplace.search.feedback import MOST_WORDS, belief, centre, shared_words


def floats(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def test_the_first_is_believed_and_others_as_far_as_they_are_near_it() -> None:
    believed = belief(floats(0.9, 0.8, 0.1), 8.0)
    assert believed[0] == 1.0
    assert believed[0] > believed[1] > believed[2] > 0


def test_the_centre_is_the_direction_of_the_best_that_have_one() -> None:
    means = {1: floats(1, 0), 2: floats(0, 1), 3: None}
    found = centre([1, 2, 3], floats(1.0, 1.0, 1.0), means.__getitem__)
    assert found is not None
    assert found.tolist() == pytest.approx([0.7071, 0.7071], abs=1e-3)
    assert centre([3], floats(1.0), means.__getitem__) is None
    assert centre([], floats(), means.__getitem__) is None


def test_shared_words_set_the_best_apart_and_are_not_those_of_the_question() -> None:
    best = [Counter(asked=1, zebra=1, the=1), Counter(asked=1, zebra=1, the=1)]
    rest = [Counter(the=1, table=1) for _ in range(20)]
    shared = shared_words([*best, *rest], floats(1.0, 0.9, *[0.0] * 20), {"asked"})
    assert next(iter(shared)) == "zebra"
    assert "asked" not in shared
    assert shared["zebra"] > 10 * shared["the"]


def test_only_so_many_words_are_shared() -> None:
    many = Counter({f"word{number}": 1 for number in range(500)})
    assert len(shared_words([many], floats(1.0), ())) == MOST_WORDS
