"""Outlines and sections against a CommonMark parser by other people, which shares no code with the one we use."""

from __future__ import annotations

import commonmark
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from commonplace.text.outline import outline
from commonplace.text.text_lines import split_lines

DEFINITION = "[a]: /x"
LINES = (
    "# One", "## Two ##", "###", "#### Four #4", "####### seven", "#word", "   # three in", "    # four in", "\\# no",
    "#\tTab", "Words", "Words", "  Words", "===", "=", "---", "-----", "- - -", "***", "--", "", "", " ", "\t", "```",
    "````", "``` python", "~~~", "    code", "\tcode", "- item", "- # in a list", "  # below an item", "1. one",
    "2. two", "10) ten", "> quote", "> # in a quote", ">", "> ```", "<div>", "</div>", "<!-- a", "-->", "<?php", "?>",
    "<pre>", "x</pre>", "<b>inline</b>", DEFINITION, "[a]", "`code`", "*em*", "&amp; &#35;", "a\\",
)  # fmt: skip
"""No tag alone on its line that HTML has no blocks for: the other parser lets one interrupt a lazy paragraph."""


@st.composite
def bodies(draw: st.DrawFn) -> str:
    end = draw(st.sampled_from(["\n", "\r\n"]))
    drawn = draw(st.lists(st.sampled_from(LINES), max_size=14))
    # A definition stands alone: the other parser begins the heading that follows one in the line of the definition.
    lines = [line for each in drawn for line in ((each, "") if each == DEFINITION else (each,))]
    return end.join(lines) + draw(st.sampled_from(["", end]))


def theirs(body: str) -> list[tuple[int, int, str]]:
    """Level, line and words of every heading that stands in no list and no quote."""
    found = []
    for node, entering in commonmark.Parser().parse(body).walker():
        if entering and node.t == "heading" and node.parent.t == "document":
            found.append((node.level, node.sourcepos[0][0], words(node)))
    return found


def words(node: commonmark.node.Node) -> str:
    parts = [" " if inner.t in ("softbreak", "linebreak") else inner.literal or "" for inner, _ in node.walker()]
    kinds = [inner.t for inner, _ in node.walker()]
    said = (
        part for part, kind in zip(parts, kinds, strict=True) if kind != "html_inline" or not part.startswith("<!--")
    )
    return " ".join("".join(said).split())


@settings(deadline=None, max_examples=100)
@example("Words\n===\n\n> # in a quote\nlazy\n---\n")
@example("[a]: /x\n===\n")
@example("- item\n\n      # deep\n# One\n")
@given(bodies())
def test_the_headings_of_any_text_are_those_another_parser_finds(body: str) -> None:
    assume(not body.startswith(("---", "+++")))  # which would be front matter, and that is ours
    assert [(one.level, one.line, one.title) for one in outline(body, "markdown")] == theirs(body)


@settings(deadline=None, max_examples=100)
@given(bodies())
def test_sections_are_the_lines_between_the_headings_another_parser_finds(body: str) -> None:
    assume(not body.startswith(("---", "+++")))
    headings, lines = theirs(body), split_lines(body)
    for place, (one, (level, line, _)) in enumerate(zip(outline(body, "markdown"), headings, strict=True)):
        rest = headings[place + 1 :]
        after = next((start for other, start, _ in rest if other <= level), len(lines) + 1)
        assert split_lines(body[one.char_start : one.char_end]) == lines[line - 1 : after - 1]
        own = rest[0][1] if rest else len(lines) + 1
        assert split_lines(body[one.char_start : one.own_char_end]) == lines[line - 1 : own - 1]
