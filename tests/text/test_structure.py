"""1. The two gaits agree with one CommonMark parse. 2. Lines are the file's. 3. Sections tile the text. 4. Titles."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from commonplace.text import structure
from commonplace.text.lines import split_lines
from commonplace.text.structure import Block, blocks, front_matter_title, opening_heading, outline, plain, title_of

REFERENCE = MarkdownIt("commonmark").enable("table")

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


def trimmed(found: list[Block], body: str) -> list[Block]:
    """Blocks without the blank lines after them, which parsers count in or out as they please."""
    lines = [line.strip(" \t\r") for line in split_lines(body)]
    shorter = []
    for block in found:
        end = min(block.end, len(lines))
        while end > block.line + 1 and not lines[end - 1]:
            end -= 1
        shorter.append(block._replace(end=end))
    return sorted(shorter)


def slow_blocks(body: str) -> list[Block]:
    """What markdown-it says of the whole text at once."""
    matter = [block for block in blocks(body) if block.kind == "front matter"]
    first = matter[0].end if matter else 0
    text = "\n".join(body.replace("\r\n", "\n").replace("\r", " ").split("\n")[first:])
    return matter + list(structure._from_tokens(REFERENCE.parse(text), first))


@settings(max_examples=600)
@given(markdown())
def test_the_fast_gait_sees_what_a_full_parse_sees(body: str) -> None:
    expected = [block._replace(source=block.source.replace("\0", "\ufffd")) for block in slow_blocks(body)]
    found = [block._replace(source=block.source.replace("\0", "\ufffd")) for block in blocks(body)]
    assert trimmed(found, body) == trimmed(expected, body)


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
        ("a <b>c</b>", "a c"),
    ],
)
def test_a_heading_is_its_words(source: str, words: str) -> None:
    assert plain(source) == words


@pytest.mark.parametrize(
    ("body", "title"),
    [
        ("---\ntitle: Given\n---\n# Other\n", "Given"),
        ('---\r\ntitle: "It\'s \\"so\\"" # why\r\n---\r\n# Other\r\n', 'It\'s "so"'),
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
