"""1. The estimate is a plain count. 2. Weights add up. 3. `reach` is the furthest. 4. Cuts tear no character."""

from __future__ import annotations

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from commonplace.text.token_estimates import estimate, is_narrow, next_cut, reach, safe_cut, weight

WIDE = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}ーｰ]")
ASSIGNED = regex.compile(r"\P{Cn}")
MIXED = st.text(st.one_of(st.characters(), st.sampled_from("a \r\n漢かカ한ก\u0301\u200d👩🏽🇩🇪\u0600क्षि")), max_size=60)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("a", 1),
        ("abcd", 1),
        ("abcde", 2),
        ("漢字", 2),
        ("ราคา", 4),
        ("한국어 text", 5),
        ("カー", 2),
        ("é" * 5, 2),
    ],
)
def test_a_wide_character_is_a_token_and_four_others_are_one(text: str, tokens: int) -> None:
    assert estimate(text) == tokens


def test_the_ranges_are_the_scripts() -> None:
    wrong = [char for char in map(chr, range(0x110000)) if ASSIGNED.match(char)]
    assert [char for char in wrong if is_narrow(char) == bool(WIDE.match(char))] == []


@given(MIXED, MIXED)
def test_weights_add_up_and_tell_the_estimate(one: str, other: str) -> None:
    assert weight(one + other) == weight(one) + weight(other)
    assert is_narrow(one) == (weight(one) == len(one))
    assert estimate(one) == sum(weight(char) == 4 for char in one) + -(-sum(weight(char) == 1 for char in one) // 4)


@given(MIXED, st.data())
def test_reach_is_the_furthest_end_within_the_budget(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    budget = data.draw(st.integers(0, 40))
    end = reach(text, start, budget)
    assert weight(text[start:end]) <= budget
    assert end == len(text) or weight(text[start : end + 1]) > budget


@given(MIXED, st.data())
def test_a_safe_cut_is_the_nearest_boundary(text: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(text)))
    boundaries = [0, *(cluster.end() for cluster in regex.finditer(r"\X", text))]
    assert safe_cut(text, at) == max(place for place in boundaries if place <= at)
    assert next_cut(text, at) == min(place for place in boundaries if place >= at)
    floor = data.draw(st.sampled_from(boundaries))
    assert safe_cut(text, at, floor) == max(floor, safe_cut(text, at))
