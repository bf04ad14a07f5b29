"""1. A snippet quotes, fits, wastes little. 2. It shows the most terms, earliest. 3. Numbered lines are the file's."""

from __future__ import annotations

import re
from itertools import count

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from commonplace.text.snippet import ELLIPSIS, Match, best_line, numbered, snippet

WORDS = st.lists(
    st.one_of(
        st.text("abc", min_size=1, max_size=9),
        st.sampled_from(["\n\n", "  ", "\t", "漢字漢字", "e\u0301👩🏽‍💻", "\u0301", "\u0600", "x" * 70]),
    ),
    max_size=60,
)
TEXTS = WORDS.map(" ".join)
LENGTHS = st.integers(20, 120)


def found(text: str, *terms: str) -> list[Match]:
    """Every place of every term, sorted as the engine hands them over."""
    places = zip(count(), terms, strict=False)
    return sorted((m.start(), m.end(), number) for number, term in places for m in re.finditer(re.escape(term), text))


@given(TEXTS, LENGTHS, st.lists(st.sampled_from(["a", "bc", "cab", "漢字", "x"]), max_size=3, unique=True))
def test_a_snippet_quotes_fits_and_wastes_little(text: str, length: int, terms: list[str]) -> None:
    flat = " ".join(text.split())
    shown = snippet(text, found(text, *terms), length)
    inner = shown.text.removeprefix(ELLIPSIS).removesuffix(ELLIPSIS)
    assert inner in flat
    assert len(shown.text) <= length
    assert " ".join(text[shown.start : shown.end].split()) == inner.strip()
    if len(flat) <= length:
        assert shown.text == flat
    else:
        assert len(shown.text) >= length - 40


@given(
    st.lists(st.sampled_from(["tea", "cup", "pot", " ", "  ", "\n\n", "\r\n", "\t", "\f", "\u3000"]), max_size=60),
    LENGTHS,
    st.lists(st.sampled_from(["tea", "up", "pot"]), max_size=3, unique=True),
)
def test_white_space_changes_nothing(parts: list[str], length: int, terms: list[str]) -> None:
    text = "".join(parts)
    flat = " ".join(text.split())
    shown, plain = (snippet(given, found(given, *terms), length) for given in (text, flat))
    assert shown.text == plain.text
    if shown.text:
        assert len(" ".join(text[: shown.start].split())) in (plain.start, max(0, plain.start - 1))
        assert len(" ".join(text[: shown.end].split())) in (plain.end, plain.end - 1)


@given(TEXTS, LENGTHS)
def test_a_snippet_tears_no_character(text: str, length: int) -> None:
    flat = " ".join(text.split())
    boundaries = {0, *(cluster.end() for cluster in regex.finditer(r"\X", flat))}
    shown = snippet(flat, found(flat, "b"), length)
    assert {shown.start, shown.end} <= boundaries


@given(TEXTS, LENGTHS)
def test_no_other_window_holds_more_terms(text: str, length: int) -> None:
    flat = " ".join(text.split())
    matches = found(flat, "a", "bc", "cab")
    room = length - 2
    windows = [{term for s, e, term in matches if s >= start and e <= start + room} for start, _, _ in matches]
    shown = snippet(flat, matches, length)
    held = {term for s, e, term in matches if s >= shown.start and e <= shown.end}
    assert len(held) >= max(map(len, windows), default=0)
    if len(held) == max(map(len, windows), default=0):
        assert held >= max(windows, key=len, default=set())  # the first of equals


@pytest.mark.parametrize(
    ("text", "terms", "shown"),
    [
        ("short  text\n\nhere", ["text"], "short text here"),
        ("", ["x"], ""),
        (" \n ", [], ""),
        ("one two three four five six seven eight", [], "one two three four five six…"),
        ("one two three four five six seven eight", ["eight"], "…four five six seven eight"),
        ("zero one two three four five six seven eight", ["four"], "…two three four five six…"),
        ("tea aa aa aa aa aa aa aa aa aa tea cup aa aa aa aa aa", ["tea", "cup"], "…aa aa aa tea cup aa aa aa…"),
        ("tea aa aa aa aa aa aa aa aa aa tea aa aa aa aa aa aa", ["tea"], "tea aa aa aa aa aa aa aa aa…"),
    ],
)
def test_the_window_shows_what_was_looked_for(text: str, terms: list[str], shown: str) -> None:
    assert snippet(text, found(text, *terms), 28).text == shown


@pytest.mark.parametrize(
    ("text", "terms", "line"),
    [
        ("# tea\n\nfirst\nsecond tea cup\ntea cup", ["tea", "cup"], 3),
        ("tea tea tea\ntea cup", ["tea", "cup"], 1),
        ("# heading\n\n  said", [], 2),
        ("# heading only", [], 0),
        ("", [], 0),
        ("a\r\nb\rc tea", ["tea"], 1),
    ],
)
def test_the_best_line_has_the_most_terms(text: str, terms: list[str], line: int) -> None:
    assert best_line(text, found(text, *terms)) == line


@given(
    st.lists(st.sampled_from(["tea", "cup", "pot", " ", "\n", "\r\n", "\u2028"]), max_size=40).map("".join),
    st.dictionaries(st.integers(0, 2), st.sampled_from([0.3, 0.5, 1.0])),
)
def test_the_best_line_is_the_one_that_counting_every_line_finds(text: str, weights: dict[int, float]) -> None:
    terms = ("tea", "cup", "pot")
    counts = [
        sum(weights.get(number, 1.0) for number, term in enumerate(terms) if term in line) for line in text.split("\n")
    ]
    if matches := found(text, *terms):
        assert best_line(text, matches, weights) == counts.index(max(counts))


def test_terms_of_an_intent_count_less() -> None:
    text = "query\nintent aim goal"
    matches = found(text, "query", "intent", "aim", "goal")
    assert best_line(text, matches) == 1
    assert best_line(text, matches, {1: 0.3, 2: 0.3, 3: 0.3}) == 0


@pytest.mark.parametrize(
    ("best", "limit", "shown"),
    [
        (2, 300, "11: b\r c\n12: best\n13: d\n14: e"),
        (0, 300, "10: a\n11: b\r c\n12: best"),
        (4, 300, "13: d\n14: e"),
        (2, 6, "12: best\n13: d"),
        (2, 4, "12: best"),
        (2, 3, "12: be…"),
    ],
)
def test_numbered_lines_are_whole_and_consecutive(best: int, limit: int, shown: str) -> None:
    assert numbered("a\nb\r c\r\nbest\r\nd\ne\n", 10, best, limit) == shown


def test_a_long_best_line_is_cut_around_its_match() -> None:
    text = "before\n" + "word " * 100 + "needle " + "word " * 100
    shown = numbered(text, 7, 1, 60, found(text, "needle"))
    assert shown.startswith("8: …word")
    assert "needle" in shown
    assert len(shown) <= 63


@given(TEXTS, st.integers(20, 80), st.data())
def test_numbered_lines_quote_the_text(text: str, limit: int, data: st.DataObject) -> None:
    lines = text.removesuffix("\n").split("\n")
    best = data.draw(st.integers(0, len(lines) - 1))
    shown = [row.split(": ", 1) for row in numbered(text, 1, best, limit, found(text, "a")).split("\n")]
    numbers = [int(number) for number, _ in shown]
    assert best + 1 in numbers
    assert numbers == list(range(numbers[0], numbers[-1] + 1))
    assert sum(len(line) for _, line in shown) <= limit
    assert all(line.strip(ELLIPSIS) in lines[int(number) - 1] for number, line in shown)
