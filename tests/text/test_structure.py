"""1. The two gaits agree with one CommonMark parse. 2. Lines are the file's. 3. Sections tile the text. 4. Titles."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from commonplace.text.outline import outline
from commonplace.text.structure import Block, blocks, front_matter_title, opening_heading, plain, title_of
from commonplace.text.text_lines import split_lines

REFERENCE = MarkdownIt("commonmark")

AWKWARD = [
    "", "", "", " ", "\t", "words here", "More words. And a sentence!", "3 apples", "12. twelve", "1. one", "1) one",
    "# One", "## Two ##", "### Three *bold* `x`", "#", "#no", "    # code", " # indented", "=====", "---", "- - -",
    "***",
    "```", "```py", "````", "~~~", "~~~~ x", "  ```", "    ```", "```a`b", "- item", "- [link]: x", "* item", "+ item",
    "  - nested", "    - deep", "      - deeper", "   continued", "  continued", "> quote", "> # quoted", ">",
    "- # in item",
    "- ```", "  - > x", "-", "- ", "*", "| a | b |",
    "|c|", "||", "|:-|", "1. [x]", "2. two", "10. ten", "|---|---|", "a | b", "--|--", ":-:", "<div>", "</div>",
    "<!-- open",
    "close -->", "<!-- both -->", "<!-->", "<script>", "</script>", "<?php", "?>", "<b>inline", "[ref]: /url", "'title",
    "end'", "[ref]: /url \"title\"", "$$", "$$ x", "x $$", "$$ y $$", "\r", "a\rb", "# a\rb", "漢字とかな。次の文。",
    "ราคา",
    "👩🏽‍💻 emoji 🇩🇪", "é\u0301\u0301", "\x0c", "\u2028", "\0", "**bold** start", "_em_", "`code`", "word " * 30,
    "x" * 90,
    "漢" * 40, "Sentence one. Sentence two. " * 6, "+++", "...", "title: A title", "    indented", "\tindented",
    "&amp; \\#",
]  # fmt: skip

lines = st.one_of(st.sampled_from(AWKWARD), st.text(max_size=12))


@st.composite
def markdown(draw: st.DrawFn, most: int = 25) -> str:
    """Lines in any order, with either line end, sometimes none at the last."""
    drawn = draw(st.lists(lines, max_size=most))
    end = draw(st.sampled_from(["\n", "\n", "\r\n"]))
    return end.join(drawn) + draw(st.sampled_from(["", end]))


bodies = st.one_of(markdown(), st.text(max_size=200))


def independent(body: str) -> list[tuple[int, int, str]]:
    """(level, line from 0, words) of every heading at the root, from a whole parse, inline rules and all."""
    matter = [block for block in blocks(body) if block.kind == "front matter"]
    first = matter[0].end if matter else 0
    text = "\n".join(body.replace("\r\n", "\n").replace("\r", " ").split("\n")[first:])
    tokens = REFERENCE.parse(text)
    found = []
    for token, inline in pairwise(tokens):
        if token.type == "heading_open" and not token.level and token.map:
            words = "".join(_words(child) for child in inline.children or [])
            found.append((int(token.tag[1]), token.map[0] + first, " ".join(words.split())))
    return found


def _words(token: Token) -> str:
    if token.children:
        return "".join(map(_words, token.children))
    if token.type in ("softbreak", "hardbreak"):
        return " "
    return "" if token.type == "html_inline" and token.content.startswith("<!--") else token.content


@settings(max_examples=100)
@given(markdown())
def test_the_outline_is_what_an_independent_commonmark_parse_says(body: str) -> None:
    assert [(h.level, h.line - 1, h.title) for h in outline(body, "markdown")] == independent(body)


@given(markdown())
def test_blocks_come_in_the_order_of_their_lines_and_stay_within_the_text(body: str) -> None:
    found = blocks(body)
    assert [block.line for block in found] == sorted(block.line for block in found)
    assert all(0 <= block.line < block.end <= len(split_lines(body)) for block in found)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("| a | b |\n|---|---|\n| 1 | 2 |\n\nwords\n", [Block("table", 0, 3)]),
        ("words\n\na | b\n--|--\n1 | 2\n", [Block("table", 2, 5)]),
        ("> a | b\n> --|--\n", [Block("quote", 0, 2), Block("table", 0, 2)]),
        ("| a |\n---\n", [Block("heading", 0, 2, 2, "| a |")]),  # CommonMark knows no tables
        ("a | b\nc\n", []),
    ],
)
def test_tables_are_found_where_commonmark_sees_words(body: str, expected: list[Block]) -> None:
    assert list(blocks(body)) == expected


def test_a_long_table_is_read_without_keeping_its_cells() -> None:
    body = "| a | b |\n|---|---|\n" + "| a cell | another |\n" * 20_000
    tracemalloc.start()
    try:
        assert blocks(body) == (Block("table", 0, 20_002),)
        assert tracemalloc.get_traced_memory()[1] < 40 * len(body)
    finally:
        tracemalloc.stop()


def test_headings_after_lists_of_any_depth_are_found() -> None:
    assert [h.line for h in outline("- " * 50 + "x\n\n# After\n", "markdown")] == [3]
    assert [h.title for h in outline(">" * 5000 + " x\n\n# After\n", "markdown")] == ["After"]


def test_a_heading_uses_the_links_that_are_defined_elsewhere() -> None:
    body = "# See [the *guide*][g]\n\ntext\n\n[g]: /guide\n"
    assert [h.title for h in outline(body, "markdown")] == ["See the guide"]
    assert title_of(body, "markdown", "file") == opening_heading(body) == "See the guide"


@given(bodies)
def test_own_texts_tile_the_document(body: str) -> None:
    headings = outline(body, "markdown")
    preamble = body[: headings[0].char_start] if headings else body
    assert preamble + "".join(body[h.char_start : h.own_char_end] for h in headings) == body


@given(bodies)
def test_a_heading_stands_on_the_line_it_says(body: str) -> None:
    for heading in outline(body, "markdown"):
        assert body.count("\n", 0, heading.char_start) + 1 == heading.line
        assert heading.char_start == 0 or body[heading.char_start - 1] == "\n"
        assert heading.line <= heading.own_line_end <= heading.line_end <= len(split_lines(body))
        assert heading.path[-1] == heading.title


@given(markdown())
def test_a_section_ends_where_one_of_its_rank_begins(body: str) -> None:
    headings = outline(body, "markdown")
    for index, heading in enumerate(headings):
        later = [other for other in headings[index + 1 :] if other.level <= heading.level]
        assert heading.char_end == (later[0].char_start if later else len(body))
    assert len({heading.slug for heading in headings}) == len(headings)


@given(markdown())
def test_a_glance_at_the_opening_agrees_with_the_parser(body: str) -> None:
    first = next((n for n, line in enumerate(split_lines(body)) if line.strip()), 0)
    heads = [block for block in blocks(body) if block.kind == "heading" and block.line <= first]
    assert opening_heading(body) == (plain(heads[-1].source) if heads else None)


def test_an_outline_knows_paths_lines_and_anchors() -> None:
    body = "intro\n# A\ntext\n## B *x*\n\n```\n# no\n```\n> # no\n\n- # no\n\nC\n===\n## B x\n"
    found = outline(body, "markdown")
    assert [(h.level, h.path, h.line, h.line_end, h.own_line_end, h.slug, h.occurrence) for h in found] == [
        (1, ("A",), 2, 12, 3, "a", 1),
        (2, ("A", "B x"), 4, 12, 12, "b-x", 1),
        (1, ("C",), 13, 15, 14, "c", 1),
        (2, ("C", "B x"), 15, 15, 15, "b-x-1", 2),
    ]
    assert outline(body, "text") == []


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("a *b* `c`", "a b c"),
        ("[x](u) ![y](v)", "x y"),
        ("a\nb", "a b"),
        ("1 \\* 2 &amp; 3", "1 * 2 & 3"),
        ("a <b>*c*</b>", "a <b>c</b>"),
        ("Map<String, List<Integer>>", "Map<String, List<Integer>>"),
        ("<details> tag", "<details> tag"),
        ("run `<name>` in **<folder>**", "run <name> in <folder>"),
        ("Contents <!-- omit in toc -->", "Contents"),
        ("<https://example.com>", "https://example.com"),
    ],
)
def test_a_heading_is_its_words(source: str, words: str) -> None:
    assert plain(source) == words


@pytest.mark.parametrize(
    ("body", "title"),
    [
        ("---\ntitle: Given\n---\n# Other\n", "Given"),
        ('---\r\ntitle: "It\'s \\"so\\"" # why\r\n---\r\n# Other\r\n', 'It\'s "so"'),
        ('---\ntitle: "Caf\\xE9 \\u8336 \\U0001F375 \\ud83c\\udf75\\tto\\\\go\\/"\n---\n', "Café 茶 🍵 🍵 to\\go/"),
        (
            '---\ntitle: "a line that was bro\\\n  ken,\\\n  \\ by a program"\n---\n',
            "a line that was broken, by a program",
        ),
        ('---\ntitle: "half \\ud83c, \\U00FFFFFF, \\x00"\n---\n', "half \ufffd, \ufffd, \ufffd"),
        ("---\na: 1\ntitle: plain text # comment\n...\n", "plain text"),
        ("---\ntitle: >-\n  folded\n  over\nb: 2\n---\n", "folded over"),
        ("---\ntitle:\n---\n# Heading\n", "Heading"),
        ("+++\ntitle = 'TOML'\n+++\n", "TOML"),
        ("---\n\n# After a rule\n\n---\n", "After a rule"),
        ("---\nbroken: yes\n# Heading\n", "Heading"),
        ("### Third\n## Second\n# First\n", "Second"),
        ("Title\n=====\n", "Title"),
        ("```\n# no\n```\n## Yes\n", "Yes"),
        ("# Notes\n### x\n# One\n## Real\n", "Real"),
        ("# 📝 Notes\n\ntext\n\n## Real", "Real"),
        ("## Notes\n", "Notes"),
        ("# \n## Named\n", "Named"),
        ("no heading", "file"),
        ("", "file"),
    ],
)
def test_a_title_is_found_where_it_is_given(body: str, title: str) -> None:
    assert title_of(body, "markdown", "file") == title


def test_only_markdown_has_a_title_of_its_own() -> None:
    assert title_of("# Heading", "text", "file") == "file"


@given(bodies)
def test_any_text_has_a_title(body: str) -> None:
    assert title_of(body, "markdown", "file")
    assert isinstance(front_matter_title("---\n" + body + "\n---\n"), str)
