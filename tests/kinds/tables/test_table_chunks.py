"""Where strings are cut, and how records are rendered."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from commonplace.kinds.tables.nodes import ChunkSizes, RecordLine, record_of, text_spans, windows

SIZES = ChunkSizes()
pieces = st.lists(st.sampled_from(["word ", "line\n", "para.\n\n", "End. ", "x" * 400, "日本語。", "  "]), max_size=300)


@given(pieces.map("".join))
def test_windows_cover_the_string_overlap_and_advance(text: str) -> None:
    found = windows(text, SIZES)
    assert found == windows(text, SIZES)
    assert found[0][0] == 0
    assert found[-1][1] == len(text)
    if len(text) <= SIZES.threshold:
        assert found == [(0, len(text))]
    for (start, end), (following, _) in pairwise(found):
        assert 0 < end - start <= SIZES.size
        assert SIZES.overlap // 2 <= end - following <= 2 * SIZES.overlap
        assert following - start >= SIZES.size / 3
    for span in text_spans(text, SIZES):
        assert text[span.char_start : span.char_end] == span.text
        assert span.line_start == text.count("\n", 0, span.char_start) + 1


def test_a_window_ends_with_a_paragraph_where_one_ends_late_enough() -> None:
    text = "a" * 700 + "\n\n" + "b c " * 300
    assert windows(text, SIZES)[0] == (0, 702)
    assert windows("x" * 2500, SIZES)[0] == (0, 1000)


lines = st.lists(
    st.tuples(st.text(max_size=8), st.text(min_size=1, max_size=200)).map(lambda pair: RecordLine(*pair)), max_size=60
)


@given(lines.filter(bool))
def test_every_value_of_a_record_is_where_its_chunk_says(lines: list[RecordLine]) -> None:
    text, spans = record_of(lines, SIZES)
    assert text == "\n".join(f"{line.key}: {line.value}" for line in lines)
    shown = []
    for span in spans:
        assert text[span.char_start : span.char_end] == span.text
        assert span.anchor is not None
        for key, start, end in span.anchor["members"]:
            shown.append(RecordLine(key, span.text[start:end]))
        assert len(span.text) <= SIZES.size or len(span.anchor["members"]) == 1
    assert shown == lines
