"""A query's words as terms: each once, weighed, in every language of the library."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.text.analyze import exact
from commonplace.text.terms import FUNCTION_WORD_WEIGHT, Term, beginning, query_terms
from strategies import WORDS


def weights(words: str, *languages: str) -> dict[str, float]:
    return {term.forms[0]: term.weight for term in query_terms(words, languages or ("en",))}


def test_a_function_word_weighs_little_unless_there_is_nothing_else() -> None:
    assert weights("the tea") == {"the": FUNCTION_WORD_WEIGHT, "tea": 1.0}
    assert weights("to be or not to be") == {"to": 1.0, "be": 1.0, "or": 1.0, "not": 1.0}


def test_a_word_said_twice_is_one_term() -> None:
    assert [term.forms for term in query_terms("Tea tea TEAS", ["en"])] == [("tea",)]


def test_every_language_adds_its_stem() -> None:
    (term,) = query_terms("Häuser", ["en", "de"])
    assert term.forms == ("hauser", "haus")
    assert term.written == "hauser"


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("東京都庁", [("東京", "word"), ("京都", "word"), ("都庁", "word")]),
        ("庁", [("庁", "prefix")]),
        ("C++", [("c", "word"), ("c++", "word")]),
        ("?!", []),
    ],
)
def test_a_word_becomes_these_terms(word: str, expected: list[tuple[str, str]]) -> None:
    assert [(term.forms[0], term.match) for term in query_terms(word, ["en"])] == expected


@pytest.mark.parametrize(
    ("word", "heavy", "light"), [("東京のは", "東京", "のは"), ("서울에서", "서울", "에서"), ("你的书", "", "的书")]
)
def test_grammar_weighs_little_in_text_without_spaces(word: str, heavy: str, light: str) -> None:
    found = weights(f"{word} tea")
    assert found[light] == FUNCTION_WORD_WEIGHT
    assert not heavy or found[heavy] == 1.0


@pytest.mark.parametrize(
    ("prefix", "form"), [("Get", "get"), ("get_us", "getus"), ("Zoë", "zoe"), ("東京都", None), ("__", None)]
)
def test_a_beginning_is_what_indexed_words_begin_with(prefix: str, form: str | None) -> None:
    assert beginning(prefix) == form


@given(st.lists(st.sampled_from(WORDS) | st.text(max_size=8), max_size=6).map(" ".join))
def test_any_words_are_terms_whatever_the_languages(words: str) -> None:
    for languages in (["en"], ["en", "de", "el"], ["zz"], ["tr", "ar"]):
        terms = query_terms(words, languages)
        assert all(isinstance(term, Term) and all(term.forms) and 0 < term.weight <= 1 for term in terms)
        assert len({term.forms for term in terms}) == len(terms)
        assert {term.written for term in terms} <= set(exact(words).split())
