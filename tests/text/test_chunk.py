"""Passages: 1. quote exactly, 2. cover, 3. advance, 4. know their lines and headings, 5. keep their size, 6. keep
fences, formulas and characters whole, 7. end where a reader would pause.
"""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
import regex
from hypothesis import example, given
from hypothesis import strategies as st

from commonplace.text.chunk import ChunkRules, chunk
from commonplace.text.outline import outline
from commonplace.text.structure import blocks
from commonplace.text.text_lines import line_of, line_starts, split_lines
from commonplace.text.token_estimates import estimate, weight

SMALL = ChunkRules(target=20, overlap=5, window=8)
PIECES = st.sampled_from(
    [
        "A line of words.\n", "\n", "\n\n", "# One\n", "## Two\n\n", "Title\n===\n", "- item\n", "  - nested item\n",
        "```\ncode = 1\n\n# no heading\n```\n", "~~~~\n" + "a line of code\n" * 9 + "~~~~\n", "```\nunclosed\n",
        "$$\nx = y\n\n+ z\n$$\n", "| a | b |\n|---|---|\n| c | d |\n", "> quoted\n> text\n\n", "---\n", "***\n",
        "A sentence here. Another one there! " * 8 + "\n", "word " * 40 + "\n", "x" * 200 + "\n",
        "漢字の文章です。" * 9 + "\n",
        "ราคาสินค้า" * 5 + "\n", "👩🏽‍💻🇩🇪" * 12 + "\n", "e\u0301" * 60 + "\n", "\r\n", "a\rb\n", "\x0c\n",
        "   \n" * 30, "end",
    ]
)  # fmt: skip
DOCUMENTS = st.one_of(st.lists(PIECES, max_size=12).map("".join), st.text(max_size=400))
MATTER = st.sampled_from(["", "---\ntitle: T\n---\n"])
FORMATS = st.sampled_from(["markdown", "text"])
RULES = st.builds(
    lambda target, overlap, window, *rest: ChunkRules(target, min(overlap, target - 1), min(window, target), *rest),
    st.integers(1, 60), st.integers(0, 30), st.integers(1, 40), st.booleans(),
)  # fmt: skip


@given(MATTER, DOCUMENTS, FORMATS, RULES)
def test_passages_quote_cover_advance_and_know_their_lines(
    matter: str, text: str, format: str, rules: ChunkRules
) -> None:
    body = matter + text
    spans = chunk(body, format, rules)
    assert spans == chunk(body, format, rules)
    if not body.strip():
        assert spans == []
        return
    starts = line_starts(body)
    assert (spans[0].char_start, spans[-1].char_end) == (0, len(body))
    for span in spans:
        assert body[span.char_start : span.char_end] == span.text != ""
        assert span.line_start == line_of(starts, span.char_start)
        assert span.line_end == line_of(starts, span.char_end - 1)
    for one, other in pairwise(spans):
        assert one.char_start < other.char_start <= one.char_end < other.char_end


@given(DOCUMENTS, FORMATS, RULES)
def test_a_passage_stays_near_its_size(body: str, format: str, rules: ChunkRules) -> None:
    spans = chunk(body, format, rules)
    for span in spans:
        small = estimate(span.text) <= rules.target + rules.window
        assert small or len(regex.findall(r"\X", span.text)) == 1
    if body.strip() and estimate(body) <= rules.target:
        assert len(spans) == 1


@given(DOCUMENTS, FORMATS, RULES)
def test_an_overlap_is_short_and_begins_with_a_line(body: str, format: str, rules: ChunkRules) -> None:
    spans = chunk(body, format, rules)
    heads = {heading.char_start for heading in outline(body, format)}
    for one, other in pairwise(spans):
        overlap = body[other.char_start : one.char_end]
        assert estimate(overlap) <= rules.overlap
        assert rules.in_lines or not overlap or body[other.char_start - 1] == "\n"
        assert not overlap or one.char_end not in heads


@given(DOCUMENTS, RULES)
def test_a_fence_that_fits_is_never_cut(body: str, rules: ChunkRules) -> None:
    starts = [*line_starts(body), len(body)]
    edges = {edge for span in chunk(body, rules=rules) for edge in (span.char_start, span.char_end)}
    for block in blocks(body):
        first, last = starts[block.line], starts[block.end]
        if block.kind == "fence" and estimate(body[first:last]) <= rules.target:
            assert not any(first < edge < last for edge in edges)


@given(DOCUMENTS, FORMATS, RULES)
@example("e\u0301" * 90, "text", ChunkRules(1, 0, 1))
def test_no_character_is_torn(body: str, format: str, rules: ChunkRules) -> None:
    boundaries = {0, *(cluster.end() for cluster in regex.finditer(r"\X", body))}
    for span in chunk(body, format, rules):
        assert {span.char_start, span.char_end} <= boundaries


@given(DOCUMENTS, RULES)
def test_the_heading_path_is_the_one_in_force(body: str, rules: ChunkRules) -> None:
    lines, headings = split_lines(body), outline(body, "markdown")
    for span in chunk(body, rules=rules):
        first = span.line_start
        while first < len(lines) and not lines[first - 1].strip():
            first += 1
        above = [heading for heading in headings if heading.line <= first]
        assert span.headings == (tuple(filter(None, above[-1].path)) if above else ())


def words(count: int) -> str:
    """So many tokens of prose on one line, the line end included."""
    return "abc " * (count - 1) + "abc\n"


def cuts(body: str, rules: ChunkRules = SMALL) -> list[str]:
    """The first line of each passage after the first."""
    return [span.text.split("\n", 1)[0] for span in chunk(body, rules=rules)[1:]]


@pytest.mark.parametrize(
    ("middle", "first"),
    [
        ("\n# One\nthen\n\nx\n", "# One"),
        ("\nTwo\n---\nthen\n\nx\n", "Two"),
        ("y\n```\ncode\n```\nz\n", "z"),
        ("y\n```\n" + "code\n" * 8 + "```\n", "```"),
        ("y\n| a |\n|---|\n| b |\n" + "| c |\n" * 5, "| a |"),
        ("y\n\nz\nx\n", "z"),
        ("\ny\n***\nz\n", "***"),
        ("y\nz\n- item\n- item\n", "- item"),
        ("> q\n\nz\ny\n", "z"),
    ],
)
def test_the_cut_is_where_a_reader_would_pause(middle: str, first: str) -> None:
    rules = ChunkRules(target=20, overlap=0, window=8)
    assert cuts(words(14) + middle + words(18), rules)[0] == first


def test_of_equal_breaks_the_one_nearest_the_target_wins() -> None:
    body = words(8) + "".join(f"line {number}\n" for number in range(30))
    assert chunk(body, rules=ChunkRules(20, 0, 8))[0].text.endswith("line 5\n")


def test_a_heading_is_not_left_behind() -> None:
    body = words(14) + "# Head\n\n" + words(16)
    assert cuts(body) == ["# Head"]
    assert chunk(body, rules=SMALL)[1].headings == ("Head",)


def test_a_heading_keeps_the_start_of_a_line_that_is_cut_anyway() -> None:
    spans = chunk("# Head\n\n" + "One sentence here. " * 20 + "\n", rules=SMALL)
    assert spans[0].text.startswith("# Head\n\nOne sentence")
    assert all(span.text.endswith("here. ") for span in spans[:-1])
    assert {span.headings for span in spans} == {("Head",)}


def test_a_heading_and_a_fence_that_nearly_fit_together_stay_together() -> None:
    fence = "```\n" + "code\n" * 14 + "```\n"
    spans = chunk("# A heading\n" + fence + words(10), rules=SMALL)
    assert spans[0].text == "# A heading\n" + fence


def test_a_fence_over_the_target_is_cut_at_its_blank_lines() -> None:
    fence = "```\n" + ("code\n" * 11 + "\n") * 4 + "```\n"
    spans = chunk(fence, rules=ChunkRules(20, 0, 8))
    assert all(span.text.endswith("\n\n") for span in spans[:-1])


def test_a_long_line_is_cut_at_white_space_else_between_characters() -> None:
    assert all(span.text.endswith(" ") for span in chunk("word " * 200, rules=SMALL)[:-1])
    assert [len(span.text) for span in chunk("x" * 200, rules=SMALL)] == [80, 80, 40]
    assert [weight(span.text) for span in chunk("漢" * 50, rules=SMALL)] == [80, 80, 40]


def test_passages_of_a_long_line_share_words_where_rules_say_so() -> None:
    sharing = ChunkRules(target=20, overlap=5, window=8, in_lines=True)
    for text, least in (("word " * 200, 10), ("x" * 200, 20), ("漢" * 50, 5)):
        shared = [text[other.char_start : one.char_end] for one, other in pairwise(chunk(text, rules=sharing))]
        assert all(least <= len(overlap) and estimate(overlap) <= 5 for overlap in shared)


def test_a_section_begins_clean_and_other_passages_overlap() -> None:
    lines = "".join(f"line {number}\n" for number in range(30))
    plain = chunk(lines, rules=SMALL)
    assert all(other.char_start < one.char_end for one, other in pairwise(plain))
    one, other = chunk("".join(f"line {number}\n" for number in range(10)) + "# Head\n" + words(10), rules=SMALL)
    assert one.char_end == other.char_start


def test_front_matter_and_formulas_stay_whole() -> None:
    formula = "$$\na\n\nb\n\nc\n$$\n"
    body = "---\na: 1\nb: 2\n---\n" + words(12) + formula + words(18)
    edges = {span.char_start for span in chunk(body, rules=SMALL)}
    start = body.index("$$")
    assert not any(0 < edge < 18 or start < edge < start + len(formula) for edge in edges)


@pytest.mark.parametrize(
    ("body", "headings"),
    [
        ("# A *b*\n\ntext", ("A b",)),
        ("\n\nA\n===\nx", ("A",)),
        ("text\n# A", ()),
        ("#\nx", ()),
        ("---\nt: 1\n---\n# A", ()),
    ],
)
def test_a_short_body_is_one_passage_under_its_opening_heading(body: str, headings: tuple[str, ...]) -> None:
    (span,) = chunk(body)
    assert (span.text, span.headings, span.line_start) == (body, headings, 1)


@pytest.mark.parametrize("rules", [(0, 0, 1), (10, 10, 5), (10, 2, 0), (10, 2, 11)])
def test_rules_that_cannot_cut_are_refused(rules: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="cannot cut"):
        ChunkRules(*rules)


def test_the_version_names_the_numbers() -> None:
    assert ChunkRules().version == "chunks-2/900/135/200"


@pytest.mark.parametrize("sentence", ["words and more words ", "東京の空はとても青い。"])
def test_one_endless_line_costs_what_its_length_does(sentence: str) -> None:
    def seconds(length: int) -> float:
        text = sentence * (length // len(sentence))
        started = time.process_time()
        assert chunk(text, "text", ChunkRules())
        return time.process_time() - started

    seconds(100_000)
    assert seconds(8_000_000) < 32 * max(seconds(1_000_000), seconds(1_000_000))  # squared, it would be 64
