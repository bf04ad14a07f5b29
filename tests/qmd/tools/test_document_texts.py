"""Reading documents.

1. `get` answers one embedded resource: a whole body unchanged, or lines, numbered where asked.
2. `multi_get` takes names, docids and globs; errors come first, then skips, then documents.
3. What people say about a folder stands before the text.
"""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.errors import CommonplaceError
from commonplace.kinds.documents.document_names import DocumentNames
from commonplace.library import Library
from commonplace.model import Draft
from commonplace.qmd.tools.document_texts import gather, shown, skipped
from commonplace.qmd.tools.file_names import find
from commonplace.text.glob_patterns import is_glob, matcher
from commonplace.tools.tool import Reply
from opening import open_library
from qmd_library import SPECIAL, Tools, failure, tools_over

EVERYTHING = "<!-- Context: Everything about the house. -->\n\n"


def only(reply: Reply) -> dict[str, Any]:
    (block,) = reply.content
    assert block["type"] == "resource"
    resource: dict[str, Any] = block["resource"]
    return resource


def body(reply: Reply) -> str:
    text = str(only(reply)["text"])
    assert text.startswith(EVERYTHING)
    return text.removeprefix(EVERYTHING)


def test_get_answers_one_resource_and_nothing_structured(call: Tools) -> None:
    reply = call("get", file="notes/numbers.md")
    assert reply.structured is None
    assert list(reply.content) == [
        {
            "type": "resource",
            "resource": {
                "uri": "qmd://notes/numbers.md",
                "name": "notes/numbers.md",
                "title": "numbers",
                "mimeType": "text/markdown",
                "text": EVERYTHING + SPECIAL["notes/numbers.md"],
            },
        }
    ]


def test_an_address_is_encoded_by_component(call: Tools) -> None:
    assert only(call("get", file="notes/2025/old plan.md"))["uri"] == "qmd://notes/2025/old%20plan.md"
    assert only(call("get", file="100% sure.md"))["uri"] == "qmd://notes/100%25%20sure.md"
    assert only(call("get", file="茶.md"))["uri"] == "qmd://docs/%E4%B8%AD%E6%96%87/%E8%8C%B6.md"


@pytest.mark.parametrize("name", ["notes/crlf.md", "docs/日本/東京.md", "notes/big.md"])
def test_a_whole_document_without_numbers_is_the_body_unchanged(call: Tools, name: str) -> None:
    assert body(call("get", file=name)) == SPECIAL[name]
    assert body(call("get", file=name, fromLine=-3)) == SPECIAL[name]


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        ({"file": "numbers.md:120", "maxLines": 20}, range(120, 140)),
        ({"file": "numbers.md", "fromLine": 120, "maxLines": 20}, range(120, 140)),
        ({"file": "numbers.md:120", "fromLine": 5, "maxLines": 1}, range(120, 121)),
        ({"file": "numbers.md:120:3", "maxLines": 20, "fromLine": 7}, range(120, 123)),
        ({"file": "numbers.md", "maxLines": 2.0}, range(1, 3)),
        ({"file": "numbers.md", "fromLine": 0, "maxLines": 1}, range(1, 2)),
        ({"file": "numbers.md:199:50"}, range(199, 201)),
    ],
)
def test_lines_are_counted_from_one_and_the_suffix_wins(call: Tools, arguments: dict[str, Any], lines: range) -> None:
    assert body(call("get", **arguments)) == "\n".join(f"line {number}" for number in lines)
    numbered = body(call("get", lineNumbers=True, **arguments))
    assert numbered == "\n".join(f"{number}: line {number}" for number in lines)


def test_a_start_past_the_end_says_how_many_lines_there_are(call: Tools) -> None:
    said = "[... no lines from 500: the document has 200 lines]"
    assert body(call("get", file="numbers.md:500")) == said
    assert body(call("get", file="numbers.md", fromLine=500, lineNumbers=True)) == said


def test_a_carriage_return_before_a_line_feed_is_not_shown(call: Tools) -> None:
    assert body(call("get", file="crlf.md", lineNumbers=True)) == "1: # Windows\n2: \n3: first line\n4: second line"
    assert body(call("get", file="crlf.md:3:1")) == "first line"


@pytest.mark.parametrize(
    ("text", "numbered"),
    [
        ("a\x0cb\u2028c\x85d\re\nf", "1: a\x0cb\u2028c\x85d\re\n2: f"),
        ("a\n", "1: a"),
        ("a\n\n", "1: a\n2: "),
        ("a\r", "1: a\r"),
        ("a\r\r\nb", "1: a\r\n2: b"),
    ],
)
def test_nothing_but_a_line_feed_ends_a_line(text: str, numbered: str) -> None:
    assert shown(text, numbered=True).text == numbered


def test_contexts_come_general_first_by_component_and_cannot_end_the_comment(call: Tools) -> None:
    text = only(call("get", file="notes/2025/plan.md"))["text"]
    assert text.startswith(
        "<!-- Context: Everything about the house.\n\nPlans of the year --&gt; and more. -->\n\n# Planning\n"
    )
    assert "Only folder a." in only(call("get", file="notes/a/c.md"))["text"]
    assert "Only folder a." not in only(call("get", file="notes/abc.md"))["text"]


def test_a_miss_is_an_error_with_its_code(call: Tools) -> None:
    code, said = failure(lambda: call("get", file="notes/plan.md"))
    assert code == "not_found"
    assert said == "Document not found: notes/plan.md\n\nDid you mean one of these?\n  - notes/2025/plan.md" + "".join(
        f"\n{line}" for line in said.split("\n")[4:]
    )
    assert failure(lambda: call("get", file="c.md"))[0] == "ambiguous"


# multi_get


def names(reply: Reply) -> list[str]:
    return [block["resource"]["name"] for block in reply.content if block["type"] == "resource"]


def texts(reply: Reply) -> list[str]:
    return [block["text"] for block in reply.content if block["type"] == "text"]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("notes/a/*.md", ["notes/a/c.md"]),
        ("a/*.md", ["notes/a/c.md"]),
        ("?/c.md", ["notes/a/c.md", "notes/b/c.md"]),
        ("**/c.md", ["notes/a/c.md", "notes/b/c.md"]),
        ("*.md", None),
        ("{b,a}/c.md", ["notes/a/c.md", "notes/b/c.md"]),
        ("[ab]/c.md", ["notes/a/c.md", "notes/b/c.md"]),
        ("b/c.md, a/*.md, notes/b/c.md", ["notes/b/c.md", "notes/a/c.md"]),
        ("comma, and more.md", ["notes/comma, and more.md"]),
        ("[draft] letter.md", ["notes/[draft] letter.md"]),
        (f"#{hashlib.sha256(b'notes/abc.md').hexdigest()[:6]}, plan.md", ["notes/abc.md", "notes/2025/plan.md"]),
        ("docs/日本/*", ["docs/日本/東京.md"]),
        ("A/*.md, abc.md", ["notes/abc.md"]),
        ("qmd://notes/a/*.md", ["notes/a/c.md"]),
        ("qmd://a/*.md, abc.md", ["notes/abc.md"]),
        ("notes//a/*.md", ["notes/a/c.md"]),
        ("docs/franc\u0327ais/re\u0301*.md", ["docs/français/résumé.md"]),
    ],
)
def test_a_pattern_is_names_docids_and_globs(call: Tools, pattern: str, expected: list[str] | None) -> None:
    got = names(call("multi_get", pattern=pattern, maxBytes=10**6))
    if expected is None:
        expected = sorted(name for name in SPECIAL if name.count("/") == 1 and name.endswith(".md"))
    assert got == expected


def test_errors_come_first_then_skips_then_documents(call: Tools) -> None:
    reply = call("multi_get", pattern="abc.md, big.md, c.md, pln.md, zz*.md, drafts/*, drafts/hidden.md, deep.md")
    kinds = [block["type"] for block in reply.content]
    assert kinds == ["text", "text", "resource", "resource"]
    errors, skip = texts(reply)
    assert errors.split("\n") == [
        "Errors:",
        "Ambiguous path c.md: notes/a/c.md, notes/b/c.md. Use one of these paths.",
        "File not found: pln.md (did you mean: notes/2025/plan.md?)",
        "No files matched pattern: zz*.md",
        "No files matched pattern: drafts/*",
        "Document excluded by ignore rule: notes/drafts/hidden.md (rule drafts/**)",
    ]
    assert skip == (
        "[SKIPPED: notes/big.md - File too large (16KB). Use 'qmd get' with file=\"notes/big.md\" to retrieve.]"
    )
    assert names(reply) == ["notes/abc.md", "notes/x/a/b/deep.md"]


@pytest.mark.parametrize(("size", "kilobytes"), [(1, 1), (1023, 1), (1535, 1), (1536, 2), (10_752, 11), (10_751, 10)])
def test_kilobytes_are_rounded_half_up_and_at_least_one(size: int, kilobytes: int) -> None:
    assert f"({kilobytes}KB)" in skipped("a.md", size)


def test_sizes_are_bytes_not_characters(call: Tools) -> None:
    size = len(SPECIAL["docs/日本/東京.md"].encode())
    assert names(call("multi_get", pattern="東京.md", maxBytes=size)) == ["docs/日本/東京.md"]
    assert texts(call("multi_get", pattern="東京.md", maxBytes=size - 1))[0].startswith("[SKIPPED: docs/日本/東京.md")


def test_long_documents_are_cut_and_the_marker_is_not_numbered(call: Tools) -> None:
    (block,) = call("multi_get", pattern="numbers.md", maxLines=2, lineNumbers=True).content
    assert block["resource"]["text"] == EVERYTHING + "1: line 1\n2: line 2\n\n[... truncated 198 more lines]"
    (block,) = call("multi_get", pattern="numbers.md:199", maxLines=2).content
    assert block["resource"]["text"] == EVERYTHING + "line 199\nline 200"


@pytest.mark.parametrize(
    "pattern", ["zz*.md", "nothing.like-it", "zz*.md, qq?.txt", ",", "{", "[", "*[", "drafts/hidden.md"]
)
def test_nothing_at_all_is_a_failure(call: Tools, pattern: str) -> None:
    code, said = failure(lambda: call("multi_get", pattern=pattern))
    assert code == "no_match"
    assert said.split("\n")[0] == f"No files matched pattern: {pattern}"


def test_a_thousand_documents_are_the_most(backend: str, tmp_path: Path) -> None:
    with open_library(backend, tmp_path) as library:
        library.put_many(Draft("document", f"{number:04}.md", parent="n", body="x") for number in range(1003))
        reply = tools_over(library)("multi_get", pattern="*.md")
        assert texts(reply) == ["[LIMITED: 1000 of 1003 matching files shown. Narrow the pattern to see the rest.]"]
        assert names(reply) == [f"n/{number:04}.md" for number in range(1000)]


globs = st.lists(
    st.sampled_from(["*", "**", "?", "/", "a", "c", ".md", "notes", "b/", "[ab]", "{a,b}"]), min_size=1, max_size=8
)


@given(globs.map("".join))
def test_a_glob_finds_exactly_what_it_matches(words: Library, glob: str) -> None:
    matches = matcher(glob)
    _, files = words.store.drawer(DocumentNames).all()
    expected = sorted(file for file in files if matches(file) or matches(file.split("/", 1)[1]))
    if is_glob(glob) and expected and find(words, glob) is None:
        assert [one.name.file for one in gather(words, glob).documents] == expected


pieces = st.sampled_from(["*", "**", "?", "[", "]", "{", "}", ",", "/", "a", "c.md", "notes", "#", "\\", "-", "!", " "])


@given(st.lists(pieces, max_size=12).map("".join))
def test_any_pattern_gathers_documents_or_says_why_not(words: Library, pattern: str) -> None:
    with contextlib.suppress(CommonplaceError):
        gathered = gather(words, pattern)
        assert len({one.name.item_id for one in gathered.documents}) == len(gathered.documents)
