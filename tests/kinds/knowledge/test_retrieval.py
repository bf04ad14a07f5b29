"""Reading within a budget.

1. A window never passes its tokens, is one contiguous slice, and holds the anchor.
2. The pages of `full` concatenate to the body.
3. Text cut on the fly is covered, in pieces that are not too large.
"""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from commonplace.kinds.knowledge.drawer import Place
from commonplace.kinds.knowledge.retrieval import (
    Anchor,
    Budget,
    MessageLine,
    Wish,
    cut,
    expand,
    read_body,
    read_full,
    read_lines,
    trim,
)

BODIES = st.text("ab .!?\n。", max_size=300)
BUDGETS = st.builds(Budget, st.integers(1, 60), st.floats(1, 20) | st.integers(1, 20))


@st.composite
def chunked(draw: st.DrawFn) -> tuple[str, list[Place]]:
    """A body and chunks of it that may overlap or leave gaps."""
    body = draw(BODIES.filter(bool))
    starts = sorted(draw(st.lists(st.integers(0, len(body) - 1), min_size=1, max_size=8)))
    return body, [Place(start, draw(st.integers(start + 1, len(body))), {}) for start in starts]


@given(chunked(), BUDGETS, st.integers(0, 10), st.sampled_from(["chunk", "chunk_with_siblings"]), st.data())
def test_a_window_never_passes_its_budget_and_is_a_slice(
    given: tuple[str, list[Place]], budget: Budget, window: int, mode: str, data: st.DataObject
) -> None:
    body, chunks = given
    index = data.draw(st.integers(0, len(chunks) - 1))
    at = data.draw(st.none() | st.integers(0, len(body)))
    wish = Wish(mode=mode, budget=budget, sibling_window=window)  # type: ignore[arg-type]
    read = read_body(body, chunks, Anchor(index, at, "loc"), wish, ())
    assert math.ceil(len(read.content) / budget.chars_per_token) <= budget.max_tokens
    assert read.content in body
    anchor = body[chunks[index].start : chunks[index].end]
    if math.ceil(len(anchor) / budget.chars_per_token) <= budget.max_tokens:
        assert anchor in read.content
        assert index in read.chunks
        if mode == "chunk":
            assert (read.content, read.truncated) == (anchor, False)
    else:
        assert read.truncated
        assert len(read.content) == budget.chars
        assert read.content in anchor
        if at is not None and chunks[index].start <= at < chunks[index].end:
            low, high = trim(body, chunks[index], Anchor(index, at, "loc"), budget.chars)
            assert low <= at < high


@given(st.lists(st.tuples(st.text(max_size=5), st.text(max_size=40)), min_size=1, max_size=9), BUDGETS, st.data())
def test_messages_never_pass_their_budget_labels_included(
    said: list[tuple[str, str]], budget: Budget, data: st.DataObject
) -> None:
    index = data.draw(st.integers(0, len(said) - 1))
    wish = Wish(mode="chunk_with_siblings", budget=budget, sibling_window=data.draw(st.integers(0, 10)))
    read = read_lines(len(said), lambda place: MessageLine(*said[place]), Anchor(index, None, "loc"), wish)
    assert budget.tokens(read.content) <= budget.max_tokens
    assert index in read.chunks
    if not (read.truncated and len(read.chunks) == 1):
        assert read.content == "\n\n".join(": ".join(said[place]) for place in read.chunks)


@given(st.text(max_size=300), st.integers(1, 50))
def test_pages_of_full_concatenate_to_the_body(body: str, room: int) -> None:
    whole, offset = "", 0
    for _ in range(len(body) + 1):
        page = read_full(body, Wish(mode="full", offset=offset, full_chars=room))
        whole += page.content
        assert page.truncated == (page.next_offset is not None)
        if page.next_offset is None:
            break
        offset = page.next_offset
    assert whole == body


@given(BODIES, st.integers(2, 60), st.data())
def test_text_cut_on_the_fly_is_covered_by_small_pieces(body: str, size: int, data: st.DataObject) -> None:
    overlap = data.draw(st.integers(0, size // 2))
    pieces = cut(body, size, overlap)
    assert all(0 < piece.end - piece.start <= size for piece in pieces)
    assert [piece.start for piece in pieces] == sorted({piece.start for piece in pieces})
    assert (
        "".join(
            body[max(piece.start, before.end) : piece.end]
            for before, piece in zip([Place(0, 0, {}), *pieces], pieces, strict=False)
        )
        == body
    )


def test_pieces_end_where_sentences_do() -> None:
    body = "One is here. Two is there. Three is gone."
    assert [body[piece.start : piece.end] for piece in cut(body, 30, 0)] == [
        "One is here. Two is there. ", "Three is gone.",
    ]  # fmt: skip


def test_neighbours_are_taken_left_before_right_and_a_closed_side_stays_closed() -> None:
    sizes = [1, 9, 1, 1, 1, 1]

    def fits(first: int, last: int) -> bool:
        return sum(sizes[first : last + 1]) <= 4

    assert expand(2, len(sizes), 5, fits) == (2, 5, True)
    assert expand(2, len(sizes), 1, lambda first, last: True) == (1, 3, False)
    assert expand(0, 2, 9, lambda first, last: True) == (0, 1, False)
