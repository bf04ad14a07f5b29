"""reStructuredText and org: titles and sections as their readers see them."""

from __future__ import annotations

import time

import pytest

from commonplace.text.chunk import ChunkRules, chunk
from commonplace.text.markup import org_blocks, org_title, rst_blocks, rst_title


@pytest.mark.parametrize(
    ("body", "title"),
    [
        ("#+TITLE: Garden\n* First\n", "Garden"),
        ("#+title: lower case\n", "lower case"),
        ("text\n\n* TODO [#A] Plant beans   :garden:spring:\n", "Plant beans"),
        ("#+BEGIN_SRC org\n* no headline\n#+END_SRC\n* Real\n", "Real"),
        ("#+BEGIN_SRC\nnever closed\n* Real\n", "Real"),
        ("** Second level first\n", "Second level first"),
        ("*bold* is no headline\n", ""),
    ],
)
def test_an_org_file_is_called_by_its_title_or_first_headline(body: str, title: str) -> None:
    assert org_title(body) == title


@pytest.mark.parametrize(
    ("body", "title"),
    [
        ("Garden\n======\n\ntext\n", "Garden"),
        ("======\nGarden\n======\n", "Garden"),
        ("庭の手入れ\n==========\n", "庭の手入れ"),
        ("too short\n===\n", ""),
        ("short of it, and forgiven\n====\n", "short of it, and forgiven"),
        ("if\n--\n", "if"),
        ("C\n=\n", "C"),
        ("==\nGo\n==\n", "Go"),
        ("a paragraph\nthat goes on\n============\n", ""),
        ("======  ======\na       b\n======  ======\n", ""),
        ("text\n\n    indented\n    ========\n", ""),
    ],
)
def test_an_rst_file_is_called_by_its_first_section(body: str, title: str) -> None:
    assert rst_title(body) == title


def test_a_headline_with_blanks_without_end_takes_no_time() -> None:
    started = time.process_time()
    assert org_title(f"* tea{' ' * 200_000}pot  :kitchen:\n") == "tea pot"
    assert time.process_time() - started < 5


def test_levels_of_rst_are_the_order_in_which_styles_occur() -> None:
    body = "A\n===\n\nB\n---\n\nC\n~~~\n\nD\n---\n\nE\n===\n"
    assert [(block.source, block.level) for block in rst_blocks(body)] == [
        ("A", 1),
        ("B", 2),
        ("C", 3),
        ("D", 2),
        ("E", 1),
    ]


def test_sections_are_where_org_and_rst_are_cut() -> None:
    org = "".join(f"* Head {n}\n" + "some words here\n" * 20 for n in range(6))
    rst = "".join(f"Head {n}\n======\n\n" + "some words here\n" * 20 + "\n" for n in range(6))
    rules = ChunkRules(target=100, overlap=10, window=50)
    for body, format in ((org, "org"), (rst, "rst")):
        spans = chunk(body, format, rules)
        assert [span.headings for span in spans] == [(f"Head {n}",) for n in range(6)]
    assert [block.level for block in org_blocks("* a\n*** b\n******** c\n")] == [1, 3, 6]
