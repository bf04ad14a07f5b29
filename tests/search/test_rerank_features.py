"""What each feature says, on candidates made by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from commonplace.search.fuse import Weights
from commonplace.search.rerank_features import FEATURES, Candidate, Standing, features
from commonplace.search.rerank_text import pieces_of, read
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
