"""Sections against the lines of the file they are of, and the ways to name a heading."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commonplace.kinds.documents.document_reader import match, normalized_heading
from commonplace.text.outline import outline
from commonplace.text.text_lines import split_lines

LINES = [
    "# A",
    "## B",
    "## A",
    "### C > D",
    "#",
    "Setext",
    "===",
    "---",
    "```",
    "- # x",
    "> # y",
    "words",
    "",
    " ",
    "# a",
]


@st.composite
def bodies(draw: st.DrawFn) -> str:
    end = draw(st.sampled_from(["\n", "\r\n"]))
    lines = draw(st.lists(st.sampled_from(LINES) | st.text(max_size=8).filter(lambda t: "\r" not in t), max_size=20))
    return end.join(lines) + draw(st.sampled_from(["", end]))


@settings(max_examples=100)
@given(bodies())
def test_sections_and_the_preamble_tile_the_document(body: str) -> None:
    headings = outline(body, "markdown")
    preamble = body[: headings[0].char_start] if headings else body
    assert preamble + "".join(body[one.char_start : one.own_char_end] for one in headings) == body
    lines = split_lines(body)
    for one in headings:
        for start, end, last in (
            (one.char_start, one.char_end, one.line_end),
            (one.char_start, one.own_char_end, one.own_line_end),
        ):
            assert split_lines(body[start:end]) == lines[one.line - 1 : last]


@settings(max_examples=100)
@given(bodies())
def test_every_heading_is_reachable(body: str) -> None:
    headings = outline(body, "markdown")
    for one in headings:
        asked = one.title if one.title.strip() else f"#{one.slug}"
        found = match(headings, asked)
        assert found is not None
        assert one in found.headings
        assert found.by == ("exact" if one.title.strip() else "slug")


@pytest.mark.parametrize(("depth", "found"), [(99, ["Before", "After"]), (100, ["Before"]), (300, ["Before"])])
def test_headings_end_with_a_list_nested_a_hundred_deep_as_the_page_says(depth: int, found: list[str]) -> None:
    nested = "".join("  " * level + "- x\n" for level in range(depth))
    assert [one.title for one in outline(f"# Before\n\n{nested}\n# After\n", "markdown")] == found


@pytest.mark.parametrize(
    ("written", "same"),
    [
        ("Install", "  ## INSTALL ##"),
        ("Install", "*Install*"),
        ("`--flag`", "flag"),
        ("Straße", "STRASSE"),
        ("ﬁle", "file"),
        ("What now?", "what   now"),
        ("C#", "c#"),
    ],
)
def test_names_that_only_look_different_are_the_same(written: str, same: str) -> None:
    assert normalized_heading(written) == normalized_heading(same) != ""


def test_a_name_keeps_what_is_part_of_it() -> None:
    assert len({normalized_heading(name) for name in ("C", "C#", "C++")}) == 3


def test_the_whole_text_wins_over_an_earlier_one_that_contains_it() -> None:
    headings = outline("# Installing from source\n\n# Install\n\n# install\n", "markdown")
    assert [(one.line, found.by) for found in [match(headings, "Install")] if found for one in found.headings] == [
        (3, "exact")
    ]
    found = match(headings, "INSTALL")
    assert found is not None
    assert (found.by, [one.line for one in found.headings]) == ("normalised", [3, 5])


@pytest.mark.parametrize(
    ("asked", "lines"),
    [("A > C", [3]), ("a > b > c", [3]), ("B > A", None), ("A > Z", None), ("> C", None), ("x > ", None)],
)
def test_a_path_allows_gaps_and_keeps_the_order(asked: str, lines: list[int] | None) -> None:
    found = match(outline("# A\n## B\n### C\n# D\n", "markdown"), asked)
    assert ([one.line for one in found.headings] if found else None) == lines
