"""Query documents: typed lines or plain text, never an error."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.search.question import MOST_SEARCHES, QueryDocument, Search, read_document, typed_lines, untyped_line


@pytest.mark.parametrize(
    ("text", "document"),
    [
        ("lex: tea", QueryDocument((Search("lex", "tea"),))),
        (
            "LEX:tea\n\n  Vec :  how hot  \nhyde: hot: very",
            QueryDocument((Search("lex", "tea"), Search("vec", "how hot"), Search("hyde", "hot: very"))),
        ),
        ("lex: tea\r\nintent: brewing\r\n", QueryDocument((Search("lex", "tea"),), "brewing")),
        ("intent: a\nlex: b", QueryDocument((Search("lex", "b"),), "a")),
        ("intent: alone", None),
        ("intent: a\nintent: b\nlex: c", None),
        ("lex: tea\nplain", None),
        ("lex:", None),
        ("lex:   \nvec: x", None),
        ("expand: tea", None),
        ("tea", None),
        ("", None),
        ("\n".join(["lex: a"] * 11), None),
        ("lexical: a", None),
    ],
)  # fmt: skip
def test_a_document_is_typed_to_the_last_line(text: str, document: QueryDocument | None) -> None:
    assert read_document(text) == document


lines = st.tuples(
    st.sampled_from(["lex", "vec", "hyde", "Lex", "HYDE"]),
    st.text(st.characters(exclude_characters="\n"), min_size=1, max_size=20).filter(str.strip),
)


@given(st.lists(lines, min_size=1, max_size=MOST_SEARCHES), st.booleans())
def test_what_is_written_as_a_document_is_read_as_one(typed: list[tuple[str, str]], spaced: bool) -> None:
    text = ("\n\n" if spaced else "\n").join(f"{kind}: {said}" for kind, said in typed)
    document = read_document(text)
    assert document is not None
    assert [search.kind for search in document.searches] == [kind.lower() for kind, _ in typed]
    assert [search.text for search in document.searches] == [said.strip() for _, said in typed]


@given(st.text(max_size=80))
def test_any_text_is_a_document_or_plain(text: str) -> None:
    document = read_document(text)
    assert document is None or document.searches


@pytest.mark.parametrize(
    ("text", "line"), [("lex: a\nb", 2), ("b\n\nlex: a", 1), ("lex: a\nvec: b", None), ("a\nb", None)]
)
def test_a_line_without_a_type_among_typed_ones_is_told(text: str, line: int | None) -> None:
    assert untyped_line(text) == line


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Here you are:\nlex: tea water\n\nvec: how hot", ["lex: tea water", "vec: how hot"]),
        ('- Lex: "tea"\n* `hyde: It boils.`', ["lex: tea", "hyde: It boils."]),
        ("intent: brewing\nlex:\nvec: ``", []),
        ("I cannot do that.", []),
    ],
)
def test_what_a_generator_wrote_is_taken_line_by_line(text: str, found: list[str]) -> None:
    assert list(map(str, typed_lines(text))) == found


@given(st.text(max_size=300))
def test_whatever_a_generator_writes_is_no_error(text: str) -> None:
    assert all(search.text.strip() and search.kind in ("lex", "vec", "hyde") for search in typed_lines(text))
