"""What a second look reads of texts, what the best have in common, and what each feature says of candidates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.search.legs import Weights
from commonplace.search.rerank_features import (
    FEATURES,
    MOST_PIECES,
    MOST_WORDS,
    Candidate,
    Standing,
    belief,
    centre,
    features,
    pieces_of,
    read,
    shared_words,
)
from commonplace.text.terms import Term

TERMS = (Term(("rare",), 1.0), Term(("common",), 1.0))
SHARES = (6.0, 2.0)


def candidate(item: int, text: str, title: str = "", parent: str = "n") -> Candidate:
    return Candidate(item, ("note", parent), title, read(title, text, "en"))


def column(
    name: str,
    candidates: Sequence[Candidate],
    scores: Sequence[float],
    *,
    words: float = 1.0,
    query: str = "rare common",
) -> list[float]:
    standing = Standing(
        np.array(scores, np.float32), np.array(scores, np.float32), Weights(words, 1 - words), nearness=None
    )
    matrix = features(candidates, standing, TERMS, SHARES, pieces_of(query))
    return [round(float(value), 4) for value in matrix[:, list(FEATURES).index(name)]]


def test_a_rare_term_covers_more_than_a_common_one() -> None:
    found = [candidate(1, "rare"), candidate(2, "common"), candidate(3, "rare and common"), candidate(4, "neither")]
    assert column("coverage", found, [1, 1, 1, 1]) == [0.9, 0.1, 1.0, 0.0]


def test_pieces_that_every_candidate_has_tell_little() -> None:
    found = [candidate(1, "datenbanken sind"), candidate(2, "sind"), candidate(3, "sind")]
    share = column("pieces", found, [1, 1, 1], query="datenbank sind")
    assert share[0] > 0.9
    assert share[1] == share[2] < 0.1


def test_one_sentence_has_more_than_several_that_each_have_some() -> None:
    found = [candidate(1, "rare common. other."), candidate(2, "rare. common. other.")]
    one, several = column("sentence", found, [1, 1])
    assert one == 1.0
    assert several < 0.8


def test_the_words_of_the_best_speak_for_others_where_meaning_is_trusted() -> None:
    found = [candidate(1, "rare zebra stripes"), candidate(2, "common zebra stripes"), candidate(3, "common table")]
    shared = column("shared", found, [1.0, 0.5, 0.4], words=0.5)
    assert shared[1] > shared[2]
    assert column("shared", found, [1.0, 0.5, 0.4], words=1.0) == [0.0, 0.0, 0.0]


def _chat(items: Sequence[int]) -> list[Candidate]:
    return [candidate(item, f"turn {item}") for item in items]


def test_neighbours_support_each_other_where_neighbours_answer_together() -> None:
    items = [100, 101, 300, 301, 500, 501, 700]
    beside = column("beside", _chat(items), [0.9, 0.2, 0.8, 0.3, 0.7, 0.1, 0.6], words=0.5)
    assert beside[1] > 0
    assert beside[6] == 0  # it stands alone
    assert beside[1] / beside[3] == pytest.approx(0.8 / 0.7, abs=1e-3)


def test_neighbours_say_nothing_where_candidates_are_as_often_far_apart() -> None:
    """All ids of a range: two next to each other are no more than chance."""
    items = list(range(60))
    assert set(column("beside", _chat(items), list(np.linspace(1, 0.1, 60)), words=0.5)) == {0.0}


def test_a_neighbour_in_another_home_is_none() -> None:
    items = [100, 101, 300, 301]
    homes = [candidate(item, "turn", parent=str(item)) for item in items]
    assert set(column("beside", homes, [0.9, 0.8, 0.7, 0.6], words=0.5)) == {0.0}


def test_others_under_the_same_title_count_and_one_alone_does_not() -> None:
    found = [candidate(1, "a", "Trip"), candidate(2, "b", "Trip"), candidate(3, "c", "Home"), candidate(4, "d")]
    assert column("title", found, [0.9, 0.5, 0.4, 0.1]) == pytest.approx([0.4, 0.8, 0.0, 0.0], abs=1e-4)


def test_there_is_a_column_for_every_feature_and_a_row_for_every_candidate() -> None:
    standing = Standing(
        np.ones(1, np.float32), np.ones(1, np.float32), Weights(0.5, 0.5), np.full(1, np.nan, np.float32)
    )
    matrix = features([candidate(1, "x")], standing, (), (), ())
    assert matrix.shape == (1, len(FEATURES))
    assert np.all(np.isfinite(matrix))


# what is read of a text


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


# what the best have in common


def floats(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def test_the_first_is_believed_and_others_as_far_as_they_are_near_it() -> None:
    believed = belief(floats(0.9, 0.8, 0.1), 8.0)
    assert believed[0] == 1.0
    assert believed[0] > believed[1] > believed[2] > 0


def test_the_centre_is_the_direction_of_the_best_that_have_one() -> None:
    means = {1: floats(1, 0), 2: floats(0, 1), 3: None}
    found = centre([1, 2, 3], floats(1.0, 1.0, 1.0), means.__getitem__)
    assert found is not None
    assert found.tolist() == pytest.approx([0.7071, 0.7071], abs=1e-3)
    assert centre([3], floats(1.0), means.__getitem__) is None
    assert centre([], floats(), means.__getitem__) is None


def test_shared_words_set_the_best_apart_and_are_not_those_of_the_question() -> None:
    best = [Counter(asked=1, zebra=1, the=1), Counter(asked=1, zebra=1, the=1)]
    rest = [Counter(the=1, table=1) for _ in range(20)]
    shared = shared_words([*best, *rest], floats(1.0, 0.9, *[0.0] * 20), {"asked"})
    assert next(iter(shared)) == "zebra"
    assert "asked" not in shared
    assert shared["zebra"] > 10 * shared["the"]


def test_only_so_many_words_are_shared() -> None:
    many = Counter({f"word{number}": 1 for number in range(500)})
    assert len(shared_words([many], floats(1.0), ())) == MOST_WORDS
