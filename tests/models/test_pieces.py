"""A SentencePiece vocabulary is read out of its file, and texts are cut by it as SentencePiece does."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_encoder import PIECES, field, sentence_pieces

from commonplace.errors import Unavailable
from commonplace.models.pieces import Pieces, Tokens, read_pieces

ID = {text: place for place, (text, _, _) in enumerate(PIECES)}


@pytest.fixture
def tokens(tmp_path: Path) -> Tokens:
    (tmp_path / "sp.model").write_bytes(sentence_pieces())
    return Tokens(tmp_path / "sp.model")


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("tea", ["▁tea"]),
        ("  tea   water ", ["▁tea", "▁water"]),
        ("water tea", ["▁water", "▁tea"]),
        ("茶", ["▁", "茶"]),
        ("tea茶", ["▁tea", "茶"]),
        ("", []),
        ("xyz", ["▁", "<unk>"]),
        ("<s>", ["▁", "<", "s", ">"]),
    ],
)
def test_a_text_is_cut_into_the_likeliest_pieces(tokens: Tokens, text: str, pieces: list[str]) -> None:
    assert tokens.plain(text) == [ID[piece] for piece in pieces]


def test_the_marks_are_around_a_text_and_never_in_it(tokens: Tokens) -> None:
    assert (tokens.head, tokens.tail) == ([1], [2])
    assert tokens.framed("tea") == [1, ID["▁tea"], 2]
    assert not {1, 2} & set(tokens.plain("<s> tea </s>  <s> \0<s>"))


def test_what_it_does_not_know_is_not_known(tokens: Tokens) -> None:
    assert ID["<unk>"] not in tokens.known("tea xyz")
    assert tokens.fertility("tea") < 2 < 6 < tokens.fertility("xyz")


def test_where_words_are_not_spaced_two_characters_count_as_one(tokens: Tokens) -> None:
    assert tokens.fertility("茶茶茶茶") == (1 + 4) / 2


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"not a model at all",
        sentence_pieces()[:-3],
        sentence_pieces(algorithm=2),
        field(1, field(1, b"\xff")),
        field(1, field(2, b"abc")),
        field(1, 7),
    ],
)
def test_another_file_is_refused_in_one_sentence(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "sp.model").write_bytes(data)
    with pytest.raises(Unavailable, match=r"sp\.model cannot be read .*pull the model again"):
        Tokens(tmp_path / "sp.model")


@given(st.binary(max_size=300) | st.binary(max_size=20).map(lambda noise: sentence_pieces()[:150] + noise))
def test_any_bytes_are_pieces_or_a_value_error(data: bytes) -> None:
    with suppress(ValueError):
        assert isinstance(read_pieces(data), Pieces)
