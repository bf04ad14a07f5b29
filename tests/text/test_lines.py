"""A line ends at LF and at nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.text.text_lines import line_of, line_starts, lines_of, split_lines

BROKEN = st.text(st.sampled_from("a\n\r\f\x0b\u2028\u0085 "), max_size=30)


@pytest.mark.parametrize(
    ("text", "starts"),
    [("", [0]), ("a", [0]), ("a\n", [0]), ("a\nb", [0, 2]), ("\n\n", [0, 1]), ("a\r\nb\rc\fd\u2028e\n", [0, 3])],
)
def test_only_a_line_feed_ends_a_line(text: str, starts: list[int]) -> None:
    assert line_starts(text) == starts


@given(BROKEN, st.data())
def test_a_character_is_on_the_line_its_line_feeds_say(text: str, data: st.DataObject) -> None:
    char = data.draw(st.integers(0, max(0, len(text) - 1)))
    assert line_of(line_starts(text), char) == text.count("\n", 0, char) + 1


@given(BROKEN)
def test_lines_put_together_are_the_text(text: str) -> None:
    assert "\n".join(split_lines(text)) in (text, text.removesuffix("\n"))
    assert len(split_lines(text)) == len(line_starts(text))


@given(BROKEN)
def test_what_is_kept_of_a_text_is_what_it_is(text: str) -> None:
    measured(text)


def test_a_text_too_long_to_keep_is_measured_all_the_same() -> None:
    measured("a\n\nlonger\n" * 100_000)


def measured(text: str) -> None:
    texts, bounds = lines_of(text)
    assert list(texts) == split_lines(text)
    assert list(bounds) == [*line_starts(text), len(text)]
