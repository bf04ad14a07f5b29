"""The scores of given chunks: what a search for the same words gives them, however common those are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commonplace.index.scope import Scope
from commonplace.index.words.lexical_query import MOST_APART
from commonplace.index.words.lexical_reader import LexicalReader
from commonplace.library import Library
from commonplace.model import Draft
from commonplace.search.plan import plan_lexical
from commonplace.search.request import parse
from opening import library_settings

WORDS = ["the", "of", "and", "tea", "pot", "harbour", "lamp", "lamps", "oak", "elm", "rook"]
FILL = [f"fill{number}" for number in range(2 * MOST_APART)]
ALL = 400


def passage(number: int) -> str:
    """The first words are everywhere, the last ones nearly nowhere."""
    drawn = np.random.default_rng(number).random(len(WORDS)) < 1.5 / np.arange(1, len(WORDS) + 1)
    return " ".join([word for word, taken in zip(WORDS, drawn, strict=True) if taken] * (1 + number % 3) + FILL)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    folder: Path = tmp_path_factory.mktemp("scores")
    with Library.open(folder, settings=library_settings(folder)) as library:
        library.put_many(Draft("note", str(n), title=WORDS[n % 7], body=passage(n)) for n in range(ALL))
        library.search("tea")
        library.put_many(Draft("note", f"more {n}", body=passage(n)) for n in range(9))  # another segment
        yield library


@settings(deadline=None, max_examples=60)
@given(
    words=st.lists(
        st.sampled_from([*WORDS, "nowhere", "ha*", '"the of"', "-oak", '-"pot harbour"', *FILL]), max_size=40
    ),
    by_name=st.booleans(),
)
def test_a_chunk_scores_the_same_asked_about_or_found(library: Library, words: list[str], by_name: bool) -> None:
    def compare(reader: LexicalReader) -> None:
        query = replace(plan_lexical(parse(" ".join(words)), reader).query, by_name=by_name)
        chunks, expected = reader.search(query, 2 * ALL, Scope())
        np.testing.assert_allclose(reader.scores(query, chunks), expected, rtol=1e-5)
        everywhere = plan_lexical(parse(FILL[0]), reader).query
        others = np.setdiff1d(reader.search(everywhere, 2 * ALL, Scope())[0], chunks)
        assert not reader.scores(query, others).any()

    library.lexical.ask(compare)  # type: ignore[arg-type]  # the local index, whose reader this is
