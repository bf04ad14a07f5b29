"""Text into terms.

1. The same word is the same terms in a document and in a query, whatever stands around it.
2. A word gives its parts, their joins and the whole; text without spaces gives every pair of characters.
3. Terms never hold white space, are never empty, and are as many stemmed as unstemmed.
4. The memory of words is bounded, and what it remembers is what it would work out.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from commonplace.text import analyze
from commonplace.text.analyze import exact, exact_terms, fold, pairs, stems
from commonplace.text.languages import LANGUAGES
from strategies import WORDS

TEXT = st.text(max_size=40) | st.lists(st.sampled_from(WORDS) | st.text(max_size=6), max_size=8).map(" ".join)


@pytest.mark.parametrize(
    ("token", "terms"),
    [
        ("word", ["word"]),
        ("Word,", ["word"]),
        ("WORD", ["word"]),
        ("(word)", ["word"]),
        ("getUserName()", ["get", "user", "name", "getuser", "username", "getusername"]),
        ("HTTPServer", ["http", "server", "httpserver"]),
        ("snake_case", ["snake", "case", "snakecase"]),
        ("real-time", ["real", "time", "realtime"]),
        ("HTTP/2", ["http", "2", "http2"]),
        ("C++", ["c", "c++"]),
        ("F#", ["f", "f#"]),
        ("v2.3.1", ["v2", "3", "1", "v23", "31", "v231"]),
        ("it's", ["it"]),
        ("it’s", ["it"]),
        ("don't", ["dont"]),
        ("Zoë", ["zoe"]),
        ("Straße", ["strasse"]),
        ("東京都庁", ["東京", "京都", "都庁", "庁"]),
        ("庁", ["庁"]),
        ("ｶﾞ", ["ガ"]),
        ("🍵", ["🍵"]),
        ("👩‍👧", ["👩", "👧"]),
        ("🇩🇪🇫🇷", ["🇩🇪", "🇫🇷"]),
        ("Donau\xaddampf", ["donaudampf"]),
        ("کتاب\u200cها", ["کتاب", "ها", "کتابها"]),
        ("?!", []),
        ("__", []),
        ("ـ", []),
        ("й", ["й"]),
        ("x²", ["x2"]),
    ],
)
def test_a_token_gives_these_terms(token: str, terms: list[str]) -> None:
    assert list(exact_terms(token)) == terms


@given(TEXT)
@example("¨ ͺ ﷺ ½")
@example("İ ı ſ ß ŉ ǰ")
@example("a\u0345 \u0345 ᾳ")
def test_terms_are_whole_words_and_as_many_in_every_language(text: str) -> None:
    terms = exact(text).split(" ") if exact(text) else []
    assert all(term.split() == [term] for term in exact(text).split())
    count = len(exact(text).split())
    assert len([term for term in terms if term]) == count
    for language in ("en", "el", "tr", "zz"):
        assert len(stems(text, language).split()) == count


@given(st.sampled_from(sorted(LANGUAGES)), st.lists(st.sampled_from(WORDS), max_size=5))
def test_every_language_stems_every_word_to_something(language: str, words: list[str]) -> None:
    assert len(stems(" ".join(words), language).split()) == len(exact(" ".join(words)).split())


@given(before=TEXT, word=st.sampled_from(WORDS) | st.text(max_size=8), after=TEXT)
def test_a_word_s_terms_are_among_those_of_any_text_that_has_it(before: str, word: str, after: str) -> None:
    assert set(exact(word).split()) <= set(exact(f"{before} {word} {after}").split())
    assert set(stems(word, "en").split()) <= set(stems(f"{before}\n{word}\t{after}", "en").split())


@given(st.text("東京都庁大阪日本語かなカナ한국어ไทย", min_size=2, max_size=12), st.data())
def test_any_run_of_characters_is_found_in_text_without_spaces(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text) - 2))
    part = text[start : data.draw(st.integers(start + 2, len(text)))]
    if len(analyze._CLUSTER.findall(part)) > 1 and analyze._CLUSTER.findall(text) == list(text):
        assert set(pairs(part)[:-1]) <= set(pairs(text))


@given(TEXT)
def test_folding_twice_is_folding_once(text: str) -> None:
    assert fold(fold(text)) == fold(text)


@pytest.mark.parametrize(
    ("a", "b"), [("Zoë", "ZOE\u0308"), ("ﬁ", "FI"), ("Ⅳ", "iv"), ("ŁÓDŹ", "lodz"), ("ＡＢＣ", "abc")]
)
def test_what_differs_only_in_form_folds_to_the_same(a: str, b: str) -> None:
    assert fold(a) == fold(b)


@pytest.mark.parametrize(("a", "b"), [("й", "и"), ("が", "か"), ("ก", "กา")])
def test_marks_of_other_scripts_are_kept(a: str, b: str) -> None:
    assert fold(a) != fold(b)


def test_long_tokens_are_cut_and_many_parts_are_bounded() -> None:
    assert all(len(term) <= 100 for term in exact_terms("x" * 10_000))
    assert len(exact_terms("-".join("ab" for _ in range(1000)))) <= 1000


def test_the_memory_of_words_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(analyze._Memory, "most", 50)
    memory = analyze._Memory(str.upper, longest=100)
    for number in range(500):
        assert memory[f"w{number}"] == f"W{number}"
        assert len(memory) <= 50
    assert memory["x" * 200] == "X" * 200
    assert "x" * 200 not in memory


def test_many_threads_stem_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"running{n} houses{n} analyses{n}" for n in range(200)]
    expected = [stems(text, "en") for text in texts]
    monkeypatch.setattr(analyze._Memory, "most", 20)  # nothing is remembered for long, so that all of them work
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda text: stems(text, "en"), texts * 3)) == expected * 3


@given(st.text(alphabet="aAbBzZ019_'-./:@=&+#~\\()!?,;<>*|\"`[]{}$%^", max_size=14))
def test_the_quick_way_for_ascii_gives_what_the_other_gives(token: str) -> None:
    slow = [term for kind, piece in analyze.pieces(token) for term in analyze._word_terms(piece)]
    assert list(exact_terms(token)) == [term[:100] for term in slow if term]
    assert exact(token).split() == list(exact_terms(token))
    assert stems(token, "en").split() == analyze.stems_once(token, "en").split()


def test_more_is_remembered_of_many_texts_and_nothing_of_them_afterwards() -> None:
    words = [f"word{number}" for number in range(2 * analyze._Memory.most + 10)]
    with analyze.many_texts():
        analyze.analyze(" ".join(words), "en")
        assert len(analyze._words) >= len(words)
    assert len(analyze._words) == 0
    analyze.analyze(" ".join(words), "en")
    assert len(analyze._words) <= analyze._Memory.most
