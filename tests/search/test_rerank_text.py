"""What a second look reads: pieces of words, and passages as it compares them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.search.rerank_text import MOST_PIECES, pieces_of, read


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("Swim", (" swi", "swim")),
        ("of", (" of ",)),
        ("swim, swim!", (" swi", "swim")),
        ("梅雨とは", ("梅雨", "雨と", "とは")),
        ("東", ("東",)),
        ("ในการ", ("ในกา", "นการ")),
        ("Zoë", (" zoe ",)),
        ("… — !", ()),
        ("", ()),
    ],
)
def test_a_text_has_the_pieces_of_its_words(text: str, pieces: tuple[str, ...]) -> None:
    assert pieces_of(text) == pieces


def test_relatives_share_pieces_whatever_their_stems() -> None:
    assert set(pieces_of("Datenbank")) & set(pieces_of("Datenbanken")) == set(pieces_of("Datenbank"))


@given(st.lists(st.from_regex(r"[^\W_]{1,12}", fullmatch=True), max_size=8))
def test_a_text_holds_its_own_pieces(words: list[str]) -> None:
    text = " ".join(words)
    reading = read("", text, "en")
    held = " ".join(reading.sentences)
    assert all(piece in held for piece in pieces_of(text))


@given(st.text())
def test_any_text_can_be_read(text: str) -> None:
    assert len(pieces_of(text)) <= MOST_PIECES
    reading = read(text[:20], text, "en")
    assert all(sentence.startswith(" ") and sentence.endswith(" ") for sentence in reading.sentences)


def test_a_passage_is_read_sentence_by_sentence_with_what_stands_over_it() -> None:
    reading = read("Tea › Oolong", "Water just off the boil. Steep it!\nThree minutes", "en")
    assert reading.heading == " tea oolong "
    assert reading.sentences == (" water just off the boil ", " steep it ", " three minutes ")
    assert reading.counts["minut"] == reading.counts["oolong"] == 1


def test_a_long_question_is_cut() -> None:
    assert len(pieces_of(" ".join(f"word{number}" for number in range(5000)))) == MOST_PIECES
