"""1. A quote is lines of its source, from the line it names. 2. It fits, cut at words. 3. Its marks are matches."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from commonplace.text.quote import MOST_LINES, Quote, quote
from commonplace.text.snippet import ELLIPSIS, Match

WORDS = st.sampled_from(
    ["tea", "kettle", "a", "po\u0301t", "漢字漢字", "# ", "    ", "\n", "\n\n", "\t", "\r\n", "x" * 70, "end. "]
)
TEXTS = st.lists(WORDS, max_size=60).map(" ".join)
LENGTHS = st.integers(20, 300)


def found(text: str, *terms: str) -> list[Match]:
    return sorted((m.start(), m.end(), number) for number, term in enumerate(terms) for m in re.finditer(term, text))


@given(TEXTS, LENGTHS)
@example("漢字 tea " + "x" * 70 + " kettle", 20)
def test_a_quote_is_lines_of_its_source_from_the_line_it_names(text: str, length: int) -> None:
    matches = found(text, "tea", "kettle")
    shown = quote(text, matches, length)
    lines, source = shown.text.split("\n"), text.split("\n")[shown.line :]
    assert len(shown.text) <= length
    assert len(lines) <= MOST_LINES
    for line, whole in zip(lines, source, strict=False):
        assert line.removeprefix(ELLIPSIS).removesuffix(ELLIPSIS) in whole
        if not line.endswith(ELLIPSIS):
            assert whole.rstrip().endswith(line.removeprefix(ELLIPSIS))
        if not line.startswith(ELLIPSIS):
            assert whole.startswith(line.removesuffix(ELLIPSIS))
    if matches:
        assert shown.marks
        assert {shown.text[low:high] for low, high in shown.marks} <= {"tea", "kettle"}
        assert shown.marks[0][1] <= len(lines[0])  # the line named is shown, with a match


@given(
    st.lists(st.sampled_from(["tea", "kettle", "whistles.", "in", "Ada's", "kitchen"]), min_size=1, max_size=99),
    LENGTHS,
)
def test_no_word_is_cut(words: list[str], length: int) -> None:
    shown = quote(" ".join(words), found(" ".join(words), "whistles"), length)
    assert set(shown.text.replace(ELLIPSIS, " ").split()) <= set(words)


def test_a_quote_begins_where_the_most_terms_are_shown_and_of_equals_where_one_line_has_the_most() -> None:
    text = "Tea is warm.\n\nA kettle whistles.\n\nA pot waits.\n\nTea in a pot.\n"
    assert quote(text, found(text, "Tea", "kettle", "pot")).line == 0
    assert quote(text, found(text, "Tea", "pot"), lines=3).line == 6
    assert quote(text, found(text, "Tea")).line == 0
    headed = "# Tea\n\nTea is warm.\n\n# Pots\n\nNone.\n"
    assert quote(headed, found(headed, "Tea")).text == "Tea is warm."
    assert quote(headed, found(headed, "Pots")).text == "# Pots\n\nNone."
    apart = f"A pot.\n\nTea.\n{'So it goes. ' * 3}\n{'So it goes. ' * 3}pot.\n"
    assert quote(apart, found(apart, "Tea", "pot"), 60).line == 0
    long = f"A pot. {'So it goes. ' * 40}Tea in a pot.\nTea.\n"
    assert quote(long, found(long, "Tea", "pot"), 60).text == "…Tea in a pot.\nTea."


def test_indentation_line_breaks_and_blank_lines_stay() -> None:
    code = "import tea\n\ndef boil(pot):\n\tif pot:\n\n\t\treturn 100  \r\n\n\n"
    shown = quote(code, found(code, "boil"))
    assert (shown.text, shown.line) == ("def boil(pot):\n\tif pot:\n\n\t\treturn 100", 2)


def test_a_quote_ends_with_its_section_and_with_a_line_that_says_something() -> None:
    text = "Tea.\n\n## Next\n\n\nMore."
    assert quote(text, found(text, "Tea"), lines=4).text == "Tea."
    assert quote(text, found(text, "Tea"), sections=False).text == text
    roomy = f"Tea.\n\nPot.\n\n{'x' * 400}"
    assert quote(roomy, found(roomy, "Tea")).text == "Tea.\n\nPot."
    assert quote(text, found(text, "Next")).text == "## Next\n\n\nMore."


@pytest.mark.parametrize("matter", ["---\nalias: tea\n---\n", '+++\nalias = "tea"\n+++\n'])
def test_front_matter_is_never_shown(matter: str) -> None:
    text = f"{matter}# Pots\n\nA pot of tea.\n"
    for word in ("tea", "alias"):
        shown = quote(text, found(text, word))
        assert (shown.text, shown.line) == ("A pot of tea.", 5)
    assert quote(matter, found(matter, "alias")).text == ""
    rule = "---\n\nA pot of tea.\n"
    assert quote(rule, found(rule, "tea")).line == 2


def test_a_long_line_is_shown_from_the_sentence_of_its_match() -> None:
    text = "One thing is said. " * 20 + "The tea is warm. " + "Another is not. " * 30
    shown = quote(text, found(text, "warm"), 80)
    assert shown.text == "…The tea is warm. Another is not. Another is not. Another is not. Another is…"
    assert [shown.text[low:high] for low, high in shown.marks] == ["warm"]
    assert quote("x " * 99 + "tea", [(198, 201, 0)], 40).text.endswith("x tea")


def test_a_word_with_no_room_at_all_is_cut_where_a_reader_would_cut_it() -> None:
    assert quote("e\u0301" * 60, [], 40).text == "e\u0301" * 19 + ELLIPSIS
    assert quote("漢字" * 60, [], 41).text == "漢字" * 20 + ELLIPSIS
    assert quote("한국어 문장입니다 " * 6, [], 18).text == "한국어 문장입니다 한국어…"
    assert quote(f"Tea.\n{'x' * 400}", []).text == "Tea."


def test_a_later_line_is_cut_only_where_little_is_shown_without_it() -> None:
    assert quote(f"Tea.\n\n{'It is warm. ' * 30}", [], 60).text == f"Tea.\n\n{'It is warm. ' * 4}It is…"
    assert quote(f"{'Tea. ' * 7}\n{'It is warm. ' * 30}", [], 60).text == ("Tea. " * 7).rstrip()


def test_matches_that_overlap_are_one_mark() -> None:
    assert quote("green teapot", [(0, 5, 0), (6, 9, 1), (6, 12, 2), (8, 12, 3)]).marks == ((0, 5), (6, 12))
    assert quote("", []) == Quote("", 0)
    assert quote("tea", found("tea", "tea"), 0) == Quote("", 0)
