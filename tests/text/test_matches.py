"""Where a query's terms stand in a text."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.text.matches import Matcher
from commonplace.text.terms import Term, query_terms
from strategies import WORDS


def marked(text: str, query: str, *languages: str) -> list[str]:
    terms = query_terms(query, languages or ("en",))
    return [text[start:end] for start, end, _ in Matcher(terms, languages or ("en",)).find(text)]


@pytest.mark.parametrize(
    ("text", "query", "expected"),
    [
        ("Oolong wants water.", "water oolong", ["Oolong", "water"]),
        ("(Water), WATERS!", "water", ["Water", "WATERS"]),
        ("call getUserName() now", "user name", ["getUserName"]),
        ("Zoë and zoe", "zoe", ["Zoë", "zoe"]),
        ("東京都庁へ", "都庁", ["都庁"]),
        ("東京都庁へ", "庁", ["庁"]),
        ("it’s fine", "it's", ["it’s"]),
        ("a 🍵 for you", "🍵", ["🍵"]),
        ("nothing here", "water", []),
        ("", "water", []),
    ],
)
def test_a_match_is_the_word_as_it_is_written(text: str, query: str, expected: list[str]) -> None:
    assert marked(text, query) == expected


def test_a_beginning_matches_the_whole_word() -> None:
    text = "boil boiling unboiled"
    found = Matcher([Term(("boil",), 1.0, "prefix")], ["en"]).find(text)
    assert [text[start:end] for start, end, _ in found] == ["boil", "boiling"]


def test_a_match_says_which_term_it_is() -> None:
    text, terms = "tea water tea", query_terms("water tea", ["en"])
    assert [terms[number].forms[0] for _, _, number in Matcher(terms, ["en"]).find(text)] == ["tea", "water", "tea"]


@given(
    st.lists(st.sampled_from(WORDS) | st.text(max_size=6), max_size=10).map(" ".join),
    st.lists(st.sampled_from(WORDS) | st.text(max_size=6), max_size=4).map(" ".join),
)
def test_matches_lie_within_the_text_in_order_and_are_not_empty(text: str, query: str) -> None:
    terms = query_terms(query, ["en", "de"])
    found = Matcher(terms, ["en", "de"]).find(text)
    assert found == sorted(found)
    for start, end, number in found:
        assert 0 <= start < end <= len(text)
        assert 0 <= number < len(terms)
        assert text[start:end].strip() == text[start:end]


@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=8), st.data())
def test_a_word_of_the_text_is_always_marked(words: list[str], data: st.DataObject) -> None:
    word = data.draw(st.sampled_from(words))
    assert marked(" ".join(words), word)


INFLECTED = (
    "dying",
    "die",
    "dies",
    "tie",
    "tying",
    "skies",
    "sky",
    "hoping",
    "hopped",
    "happily",
    "possibility",
    "tries",
)


@given(
    st.lists(st.sampled_from((*WORDS, *INFLECTED)) | st.text(max_size=6), max_size=10),
    st.lists(st.sampled_from((*WORDS, *INFLECTED)) | st.text(max_size=6), max_size=4).map(" ".join),
    st.sampled_from([("en",), ("de", "en"), ("nl",)]),
    st.sampled_from([" ", "\n", "\r\n", "\u3000", " (", "  "]),
)
def test_looking_at_likely_words_alone_misses_none(
    words: list[str], query: str, languages: tuple[str, ...], gap: str
) -> None:
    text, terms = gap.join(words), query_terms(query, languages)
    found = Matcher(terms, languages).find(text)
    alone = Matcher(terms, languages)
    alone._hints = None  # then every word is looked at
    assert found == alone.find(text)


@given(
    st.lists(st.tuples(st.sampled_from(INFLECTED), st.integers(0, 9), st.sampled_from("-_ ")), max_size=6),
    st.lists(st.sampled_from(INFLECTED), min_size=1, max_size=3),
    st.sampled_from(["%s", "(%s)", "x-%s", "%s_y", "Ein%s", "“%s”", "%s\u00a0z", "?%s", "--%s--"]),
    st.sampled_from([str, str.upper, str.title]),
)
def test_looking_at_likely_words_alone_misses_none_in_parts(
    words: list[tuple[str, int, str]], asked: list[str], around: str, write: Callable[[str], str]
) -> None:
    text = " ".join(around % write(f"{word[:at]}{joint}{word[at:]}".strip("-_ ")) for word, at, joint in words)
    terms = query_terms(" ".join(asked), ("en",))
    alone = Matcher(terms, ("en",))
    alone._hints = None  # then every word is looked at
    assert Matcher(terms, ("en",)).find(text) == alone.find(text)


def test_a_word_is_found_where_it_is_written_in_parts() -> None:
    text = "Send an e-mail, set keep_alive or a keep-alive header, and re-use it."
    found = Matcher(query_terms("email keepalive reuse", ("en",)), ("en",)).find(text)
    assert [text[start:end] for start, end, _ in found] == ["e-mail", "keep_alive", "keep-alive", "re-use"]
