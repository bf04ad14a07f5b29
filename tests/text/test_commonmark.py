"""The fast reading of blocks says what markdown-it says: on awkward lines, on CommonMark's own cases, on real pages.

1. Every token that opens or is a block is there, with its level, its lines and a heading's words. 2. So are the
definitions. 3. So are paragraphs that may hold a table. 4. No rule is on that the fast reading does not know.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token
from test_commonmark_headings import TABLE

from commonplace.text.commonmark import DEEPEST, block_tokens

PLAIN = MarkdownIt("commonmark", {"maxNesting": DEEPEST})
Seen = tuple[str, str, int, list[int] | None, str]

OPENINGS = [
    "", "", "", "", " ", "  ", "   ", "    ", "     ", "\t", " \t", "  \t", "> ", ">", ">\t", " > ", "- ", "-\t",
    "-    ", "-     ", "1. ", "1)", "1.\t", "12. ", "* ", "+ ", "  - ", "    - ",
]  # fmt: skip
PIECES = [
    "", "", "", "a", "words here", "a | b", "|a|b|", "|-|-|", "--|--", ":-:", "|", "=", "==", "=== ", "= =", "-", "--",
    "---", "- - -", "---\t", "--- a", "***", "* * *", "**bold**", "___", "_ _ _", "_em_", "__", "+", "+ a", "+++", "*",
    "# a", "## a ##", "#", "#\ta", "####### a", "#a", "\\# a", "```", "```py", "````", "```a`b", "``", "~~~", "~~~ a`b",
    "~~~~", "~~", "1", "1.", "1. a", "2. a", "1)", "0) a", "123456789. a", "1234567890. a", "1990 was", "١. a",
    "[a]: /u", "[a]:", "/u", "[b]: <u v> 't", "t'", "[c]: /u \"t\" x", "[a]", "[a](u)", "[", "[\\]: x", "[a\\", "]: /u",
    "[^1]: note", "<div>", "</div>", "<div", "<b>", "</b>", "<b> a", "<b a='", "<!-- a", "-->", "<!-- a -->", "<!-->",
    "<?php", "?>", "<!A", ">", "<![CDATA[", "]]>", "<script>", "</script>", "<pre", "<http://a>", "<", "<1", "a <div>",
    "> a", ">", ">a", "\\> a", "\xa0", "\x0c", "\x0b| a", "\u2028", "\0", "漢字", "é", "`a", "a\\", "a  ", "&amp;",
]  # fmt: skip


@st.composite
def markdown(draw: st.DrawFn) -> str:
    """Awkward pieces behind up to three openings of containers or blanks."""
    openings = st.lists(st.sampled_from(OPENINGS), max_size=3).map("".join)
    pieces = st.one_of(st.sampled_from(PIECES), st.sampled_from(PIECES), st.text(max_size=6))
    lines = draw(st.lists(st.tuples(openings, pieces).map("".join), min_size=1, max_size=20))
    return "".join(f"{line}\n" for line in lines)


def plain(text: str) -> tuple[list[Seen], dict[str, Any]]:
    """What markdown-it says itself."""
    tokens: list[Token] = []
    environment: dict[str, Any] = {}
    PLAIN.block.parse(text, PLAIN, environment, tokens)
    return seen(tokens), environment


def seen(tokens: list[Token]) -> list[Seen]:
    """All that opens or is a block, but of paragraphs only the words, where they may be a table."""
    found: list[Seen] = []
    for before, token in pairwise([None, *tokens]):
        assert token is not None
        if token.type.endswith("_close") or token.type == "paragraph_open":
            continue
        content = token.content if token.type == "inline" else ""
        in_heading = before is not None and before.type == "heading_open"
        if token.type == "inline" and not in_heading and not ("|" in content and "\n" in content):
            continue
        found.append((token.type, token.tag, token.level, token.map, content))
    return found


def agree(text: str) -> None:
    tokens, environment = block_tokens(text)
    assert (seen(tokens), environment) == plain(text)


@settings(max_examples=100, deadline=None)
@given(markdown())
def test_awkward_lines_are_the_blocks_that_markdown_it_sees(text: str) -> None:
    agree(text)


@settings(max_examples=100, deadline=None)
@given(st.text("ab \t\n>-*+_=#`~|:[]()<!1.\\\"'/", max_size=60))
def test_any_marks_in_any_order_are_the_blocks_that_markdown_it_sees(text: str) -> None:
    agree(text + "\n")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "> " * 300 + "a\n",
        "- " * 150 + "a\n" + "  " * 150 + "b\n",
        "- a\n" * 3 + "\n- b\n\n\n\n- c\n",
        "-\n\n\n  a\n",
        "> a\nb\n===\n\n> a\n---\n",
        "> - a\nb\n> c\n",
        "- a\n > b\n- c\n---\n",
        "a\n\t---\n---\n",
        "[a]: /u\n'title\n# no'\n[b]: /v\n> x\n",
        "1. a\n2. b\n\n   ```\n   c\n  d\n",
    ],
)
def test_a_known_trap_is_the_blocks_that_markdown_it_sees(text: str) -> None:
    agree(text)


@pytest.mark.parametrize("body", [str(case.values[0]) for case in TABLE])
def test_a_case_of_the_specification_is_the_blocks_that_markdown_it_sees(body: str) -> None:
    agree(body + "\n")


def test_the_pages_of_this_project_are_the_blocks_that_markdown_it_sees() -> None:
    pages = sorted((Path(__file__).parents[2] / "docs").glob("*.md"))
    assert len(pages) > 5
    for page in pages:
        agree(page.read_text(encoding="utf-8") + "\n")


def test_every_rule_that_commonmark_turns_on_is_known() -> None:
    known = ["blockquote", "code", "fence", "heading", "hr", "html_block", "lheading", "list", "paragraph", "reference"]
    assert sorted(PLAIN.get_active_rules()["block"]) == known
