"""The ways in which a phrase may stand in an index."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.index.words.phrases import MOST_READINGS, Phrase, loose_phrase, phrase, phrases
from commonplace.text.analyze import UNSPACED, exact
from strategies import WORDS


def everywhere(word: str) -> bool:
    return True


def nowhere(word: str) -> bool:
    return False


@pytest.mark.parametrize(
    ("text", "ways"),
    [
        ("off the Boil", [("off", "the", "boil")]),
        ("東京都", [("東京", "京都")]),
        ("東京都 !", [("東京", "京都")]),
        ("庁", [("庁",)]),
        ("5月", [("5", "月")]),
        ("นา น", [("นา", "า")]),
        ("C++ code", [("c", "c++", "code")]),
        ("real-time clock", [("real", "time", "realtime", "clock")]),
        ("?!", []),
    ],
)
def test_a_phrase_is_its_exact_terms(text: str, ways: list[tuple[str, ...]]) -> None:
    assert list(phrase(text, nowhere)) == ways


def test_words_side_by_side_may_be_joined_where_the_index_has_them_so() -> None:
    plain, joined = ("real", "time", "clock"), ("real", "time", "realtime", "clock")
    assert phrase("real time clock", {"realtime"}.__contains__) == (plain, joined)
    assert phrase("real time clock", nowhere) == (plain,)
    assert phrase("real-time clock", everywhere) == (joined,)
    assert set(loose_phrase("real-time clock", {"realtime"}.__contains__)) == {plain, joined}


def test_a_compound_at_the_end_may_stand_in_a_longer_one() -> None:
    parts, joins = ("see", "docs", "example", "org"), ("docsexample", "exampleorg")
    assert phrases("see docs.example.org", nowhere) == ((parts,), (joins,))
    assert phrases("at 9:30", nowhere) == ((("at", "9", "30"),), (("930",),))
    assert phrases("?!", everywhere) == ()


@given(st.lists(st.sampled_from(WORDS) | st.text(max_size=8), max_size=8).map(" ".join))
def test_the_first_way_is_how_the_words_themselves_are_kept(text: str) -> None:
    terms = tuple(exact(text).split())
    told: Phrase = phrase(text, everywhere)
    assert len(told) <= MOST_READINGS
    if not told:
        assert not terms
        return
    if told[0] != terms:  # a run of characters at the end may go on
        assert told[0] == terms[:-1]
        assert UNSPACED.match(terms[-1])
    assert phrase(text, nowhere) == told[:1]
