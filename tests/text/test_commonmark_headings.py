"""What CommonMark 0.31 calls a heading, and what it does not: facts of its sections 4.1 to 4.7, 5.1 and 5.2."""

from __future__ import annotations

import pytest

from commonplace.text.outline import outline, outline_of

Case = tuple[str, list[tuple[int, str, int]]]

ATX: list[Case] = [
    ("# foo\n## foo\n### foo\n#### foo\n##### foo\n###### foo", [(n, "foo", n) for n in range(1, 7)]),
    ("####### foo", []),
    ("#5 bolt\n\n#hashtag", []),
    ("\\## foo", []),
    ("# foo *bar* \\*baz\\*", [(1, "foo bar *baz*", 1)]),
    ("#                  foo                     ", [(1, "foo", 1)]),
    (" ### foo\n  ## foo\n   # foo", [(3, "foo", 1), (2, "foo", 2), (1, "foo", 3)]),
    ("    # foo", []),
    ("foo\n    # bar", []),
    ("## foo ##\n  ###   bar    ###", [(2, "foo", 1), (3, "bar", 2)]),
    ("# foo ##################################\n##### foo ##", [(1, "foo", 1), (5, "foo", 2)]),
    ("### foo ###     ", [(3, "foo", 1)]),
    ("### foo ### b", [(3, "foo ### b", 1)]),
    ("# foo#", [(1, "foo#", 1)]),
    ("### foo \\###\n## foo #\\##\n# foo \\#", [(3, "foo ###", 1), (2, "foo ###", 2), (1, "foo #", 3)]),
    ("****\n## foo\n****", [(2, "foo", 2)]),
    ("Foo bar\n# baz\nBar foo", [(1, "baz", 2)]),
    ("## \n#\n### ###", [(2, "", 1), (1, "", 2), (3, "", 3)]),
    ("#\tFoo", [(1, "Foo", 1)]),
]
SETEXT: list[Case] = [
    ("Foo *bar*\n=========\n\nFoo *bar*\n---------", [(1, "Foo bar", 1), (2, "Foo bar", 4)]),
    ("Foo *bar\nbaz*\n====", [(1, "Foo bar baz", 1)]),
    ("  Foo *bar\nbaz*\t\n====", [(1, "Foo bar baz", 1)]),
    ("Foo\n-------------------------\n\nFoo\n=", [(2, "Foo", 1), (1, "Foo", 4)]),
    ("   Foo\n---\n\n  Foo\n-----\n\n  Foo\n  ===", [(2, "Foo", 1), (2, "Foo", 4), (1, "Foo", 7)]),
    ("    Foo\n    ---\n\n    Foo\n---", []),
    ("Foo\n   ----      ", [(2, "Foo", 1)]),
    ("Foo\n    ---", []),
    ("Foo\n= =\n\nFoo\n--- -", []),
    ("Foo  \n-----", [(2, "Foo", 1)]),
    ("Foo\\\n----", [(2, "Foo\\", 1)]),
    ('`Foo\n----\n`\n\n<a title="a lot\n---\nof dashes"/>', [(2, "`Foo", 1), (2, '<a title="a lot', 5)]),
    ("> Foo\n---", []),
    ("> foo\nbar\n===", []),
    ("- Foo\n---", []),
    ("Foo\nBar\n---", [(2, "Foo Bar", 1)]),
    ("---\nFoo\n---\nBar\n---\nBaz", [(2, "Bar", 4)]),  # what stands first is front matter here
    ("\n====", []),
    ("***\n---", []),
    ("- foo\n-----", []),
    ("    foo\n---", []),
    ("> foo\n-----", []),
    ("\\> foo\n------", [(2, "> foo", 1)]),
    ("Foo\n\nbar\n---\nbaz", [(2, "bar", 3)]),
    ("Foo\nbar\n\n---\n\nbaz", []),
    ("Foo\nbar\n\\---\nbaz", []),
]
FENCES: list[Case] = [
    ("```\n# a\n```\n# b", [(1, "b", 4)]),
    ("~~~\n# a\n~~~\n# b", [(1, "b", 4)]),
    ("```\n# a\n~~~\n# b\n```\n# c", [(1, "c", 6)]),
    ("````\n```\n# a\n````\n# b", [(1, "b", 5)]),
    ("```\n# a", []),
    ("   ```\n# a\n   ```\n# b", [(1, "b", 4)]),
    ("    ```\n# a\n    ```", [(1, "a", 2)]),
    ("```\n# a\n    ```\n# b", []),
    ("``` a`b\n# c", [(1, "c", 2)]),
    ("~~~ a`b ~~~\n# c\n~~~\n# d", [(1, "d", 4)]),
    ("foo\n```\n# a\n```\nbar\n===", [(1, "bar", 5)]),
    ("```\n# a\n```` \n# b", [(1, "b", 4)]),
    ("```\n# a\n``` x\n# b", []),
]
CODE: list[Case] = [
    ("    # a\n\n# b", [(1, "b", 3)]),
    ("\t# a\n# b", [(1, "b", 2)]),
    ("a\n\n    # b\n    ===\n\nc\n===", [(1, "c", 6)]),
]
HTML: list[Case] = [
    ("<div>\n# a\n</div>\n\n# b", [(1, "b", 5)]),
    ("<div>\n\n# a\n\n</div>", [(1, "a", 3)]),
    ("<!-- # a\n\n# b -->\n# c", [(1, "c", 4)]),
    ("<pre>\n# a\n\n# b\n</pre>\n# c", [(1, "c", 6)]),
    ("<script>\n# a\n\n# b\n</script>\n\n# c", [(1, "c", 7)]),
    ("<?php\n\n# a\n?>\n# b", [(1, "b", 5)]),
    ("<!DOCTYPE html>\n# a", [(1, "a", 2)]),
    ("<![CDATA[\n\n# a\n]]>\n# b", [(1, "b", 5)]),
    ("<del>\n# a\n</del>", []),
    ("<del>*foo*</del>\n# a", [(1, "a", 2)]),
    ("foo\n<a>\n# b", [(1, "b", 3)]),
    ("<!-- never closed\n\n# a", []),
]
REFERENCES: list[Case] = [
    ("[foo]: /url\n===\n[foo]", []),
    ("# [Foo]\n[foo]: /url\n> bar", [(1, "Foo", 1)]),
    ("[foo]: /url\nbar\n===\n[foo]", [(1, "bar", 2)]),
    ("[foo]: /url 'title\nwith lines'\n# a", [(1, "a", 3)]),
    ("[foo]: /url\n\n# [text][foo] and ![picture][foo]", [(1, "text and picture", 3)]),
    ("[foo]:\n===\n\n[foo]", []),
    ("```\n[foo]: /url\n```\n# [foo]", [(1, "[foo]", 4)]),
]
CONTAINERS: list[Case] = [
    ("> # a\n> b\n\n# c", [(1, "c", 4)]),
    ("- # a\n- b\n  ===\n\n# c", [(1, "c", 5)]),
    ("1. a\n\n   # b\n\n# c", [(1, "c", 5)]),
    ("- a\n# b", [(1, "b", 2)]),
    ("> a\n# b", [(1, "b", 2)]),
]
FRONT_MATTER: list[Case] = [
    ("---\ntitle: x\n# comment\n---\n# a", [(1, "a", 5)]),
    ("+++\ntitle = 'x'\n# comment\n+++\n# a", [(1, "a", 5)]),
    ("---\n\n# a\n---\n", [(1, "a", 3)]),
    ("a\n\n---\n# b\n---", [(1, "b", 4)]),
]
TABLE = [
    pytest.param(body, expected, id=f"{name}-{number}")
    for name, cases in {
        "atx": ATX, "setext": SETEXT, "fences": FENCES, "code": CODE, "html": HTML, "references": REFERENCES,
        "containers": CONTAINERS, "front": FRONT_MATTER,
    }.items()
    for number, (body, expected) in enumerate(cases)
]  # fmt: skip


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize(("body", "expected"), TABLE)
def test_headings_are_those_of_the_specification(body: str, expected: list[tuple[int, str, int]], end: str) -> None:
    for last in ("", end):
        found = outline(body.replace("\n", end) + last, "markdown")
        assert [(heading.level, heading.title, heading.line) for heading in found] == expected


@pytest.mark.parametrize(
    ("body", "format", "title"),
    [
        ("## Second\n\nFirst\n=====\n", "markdown", "First"),
        ("---\ntitle: Given\n---\n# Heading\n", "markdown", "Heading"),
        ("---\ntitle: Given\n---\n## Second\n", "markdown", "Given"),
        ("#\n\n# Named\n", "markdown", "Named"),
        ("words\n", "markdown", ""),
        ("# words\n", "text", ""),
        ("Title\n=====\n\nSub\n---\n", "rst", "Title"),
        ("#+TITLE: Given\n\n** Second\n", "org", "Given"),
        ("* First\n** Second\n", "org", "First"),
    ],
)
def test_a_title_is_the_first_heading_of_level_one_or_what_was_given(body: str, format: str, title: str) -> None:
    kept = outline_of(body, format)
    assert (kept.title, kept.size) == (title, len(body))


def test_headings_of_other_markup_have_sections_too() -> None:
    rst = "Top\n===\n\nintro\n\nFirst\n-----\n\ntext\n\nSecond\n------\n\nmore\n"
    assert [(h.level, h.title, h.line, h.line_end) for h in outline(rst, "rst")] == [
        (1, "Top", 1, 14),
        (2, "First", 6, 10),
        (2, "Second", 11, 14),
    ]
    org = "* Top\nintro\n** First\ntext\n#+BEGIN_SRC\n* no\n#+END_SRC\n* Next\n"
    assert [(h.level, h.title, h.line, h.line_end) for h in outline(org, "org")] == [
        (1, "Top", 1, 7),
        (2, "First", 3, 7),
        (1, "Next", 8, 8),
    ]
