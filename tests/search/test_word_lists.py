"""What is counted of whole items, compared with counting it passage by passage."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.index.words.lexical_query import LexicalQuery
from commonplace.index.words.lexical_reader import MOST_MARKS
from commonplace.model import chunk_id
from commonplace.search.lists import _deep, _RankedPassages, _Tally
from commonplace.search.plan import LexicalPlan
from commonplace.text.terms import Term

CHUNKS = st.builds(chunk_id, st.integers(1, 6), st.integers(0, 4))


def ranking(chunks: list[int]) -> Any:
    """A leg that has these chunks to offer, best first."""
    ids, scores = np.array(chunks, dtype=np.int64), np.arange(len(chunks), 0, -1, dtype=np.float32)
    return lambda depth: (ids[:depth], scores[:depth])


@given(st.lists(CHUNKS, unique=True, max_size=25), st.integers(1, 7))
def test_the_first_items_of_a_ranking_are_found_however_deep_they_lie(chunks: list[int], wanted: int) -> None:
    found = _deep(ranking(chunks), wanted)
    firsts: dict[int, int] = {}
    for place, chunk in enumerate(chunks):
        firsts.setdefault(chunk >> 20, place)
    expected = dict(sorted(firsts.items(), key=lambda pair: pair[1])[:wanted])
    assert dict(zip(found.items.tolist(), found.first.tolist(), strict=True)) == expected
    assert found.items.tolist() == sorted(expected)
    assert found.exhausted or len(expected) == wanted
    assert found.best.tolist() == [len(chunks) - expected[item] for item in found.items.tolist()]


@pytest.mark.parametrize("count", [3, MOST_MARKS + 3])
@given(data=st.data())
def test_an_item_has_what_any_of_its_passages_has(count: int, data: st.DataObject) -> None:
    ranked = data.draw(st.lists(CHUNKS, unique=True, min_size=1, max_size=12))
    found = _deep(ranking(ranked), 6)
    places = st.integers(0, count) | st.integers(count - 2, count)
    inside = CHUNKS.filter(lambda chunk: chunk >> 20 in found.items)
    held: dict[int, set[int]] = data.draw(st.dictionaries(inside, st.sets(places, min_size=1), max_size=12))
    terms = tuple(Term((f"t{n}",), 0.2 if n == 1 else 1.0) for n in range(count))  # the second is a function word
    shares = tuple(0.2 if n == 1 else 1.0 + n / 4 for n in range(count))
    tally = _Tally(LexicalPlan(LexicalQuery(terms), sum(shares), shares), found, 1)  # and one term of an intent
    for first in range(0, count + 1, MOST_MARKS):
        marks = {chunk: sum(1 << n - first for n in has if 0 <= n - first < MOST_MARKS) for chunk, has in held.items()}
        marked = [(chunk, mark) for chunk, mark in marks.items() if mark]
        tally.add(
            np.array([chunk for chunk, _ in marked], np.int64), np.array([mark for _, mark in marked], np.int64), first
        )

    items = found.items.tolist()
    whole = [set[int]().union(*(has for chunk, has in held.items() if chunk >> 20 == item)) for item in items]
    assert tally.seen == sum(1 << n for n in set[int]().union(*whole))
    covered = [sum(shares[n] for n in has if n < count) / sum(shares) for has in whole]
    assert tally.covered().tolist() == pytest.approx(covered)
    assert tally.complete().tolist() == [{*range(count)} - {1} <= has for has in whole]
    assert tally.passages().tolist() == [best_passage(item, held, ranked, count) for item in items]


def best_passage(item: int, held: dict[int, set[int]], ranked: list[int], count: int) -> int:
    """The most content, an intent for half; then the one ranked best; then the first."""
    chunks = [chunk for chunk in held if chunk >> 20 == item]
    if not chunks:
        return next(chunk for chunk in ranked if chunk >> 20 == item)

    def order(chunk: int) -> tuple[float, int, int]:
        worth = sum(0.5 if n == count else float(n != 1) for n in held[chunk])
        return -worth, ranked.index(chunk) if chunk in ranked else len(ranked), chunk

    return min(chunks, key=order)


def test_some_items_of_a_ranking_keep_their_places() -> None:
    found = _deep(ranking([chunk_id(3, 0), chunk_id(1, 1), chunk_id(3, 2), chunk_id(2, 0)]), 3)
    few: _RankedPassages = found.only(found.first < 3)
    assert (few.items.tolist(), few.first.tolist(), few.best.tolist()) == ([1, 3], [1, 0], [3.0, 4.0])
