"""Where a query's terms stand in a text."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import OSA

from commonplace.index.words.phrases import phrase as ways_of
from commonplace.text.matches import Matcher
from commonplace.text.terms import Term, query_terms
from strategies import WORDS


def marked(text: str, query: str, *languages: str) -> list[str]:
    terms = query_terms(query, languages or ("en",))
    places = dict.fromkeys((start, end) for start, end, _ in Matcher(terms, languages or ("en",)).find(text))
    return [text[start:end] for start, end in places]


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
        ("我用Python做机器学习，也用C++。", "python c++", ["Python", "C"]),
        ("ฉันรักGoogleมาก", "google", ["Google"]),
        ("我用e-mail和Ｐｙｔｈｏｎ。", "email python", ["e-mail", "Ｐｙｔｈｏｎ"]),
        ("これはﾃﾞｰﾀﾍﾞｰｽです", "データ", ["ﾃﾞｰ", "ｰﾀ"]),
        (unicodedata.normalize("NFD", "한국어 검색이"), "검색", [unicodedata.normalize("NFD", "검색")]),
        ("データ、ﾃﾞｰﾀ", "データ", ["デー", "ータ", "ﾃﾞｰ", "ｰﾀ"]),
        ("ฉันดื่มน้ำทุกวัน", "น้ำ", ["น้ำ"]),
        ("เขาทำงานหนัก", "ทำงาน", ["ทำ", "ำง", "งา", "าน"]),
        ("ດື່ມນ້ຳ", "ນ້ຳ", ["ນ້ຳ"]),
        ("10㌔走る、㍿", "キロ 会社", ["㌔", "㍿"]),
        ("웃겨 ㅋㅋ", "ㅋㅋ", ["ㅋㅋ"]),
        ('connection.execute(f"lock table")', "lock", ["lock"]),
        ("def lock_table(connection, name):", "lock_table", ["lock_table"]),
        ("set x = '{lock_timeout}s'", "lock timeout", ["lock_timeout"]),
        ("<b>Water</b>, [water](water.md)", "water", ["Water", "water", "water.md"]),
        ("std::vector<T>(size)", "std::vector", ["std::vector"]),
        ("(e-mail)", "email", ["e-mail"]),
        ("nothing here", "water", []),
        ("", "water", []),
    ],
)
def test_a_match_is_the_word_as_it_is_written(text: str, query: str, expected: list[str]) -> None:
    assert marked(text, query) == expected


@pytest.mark.parametrize(
    ("language", "text", "query"),
    [
        ("de", "Von Duesseldorf nach Rom", "Düsseldorf"),
        ("de", "Ein Daemon in Goettingen", "Daemon Goettingen"),
        ("de", "Die Hausmaedchen im Kuehlraum", "Hausmädchen Kühlraum"),
        ("tr", "Bir hashtag ve bir topic", "hashtag topic"),
        ("sr", "Ovaj subjekt i adjektiv", "subjekt adjektiv"),
    ],
)
def test_a_word_is_marked_that_its_stem_does_not_begin_like(language: str, text: str, query: str) -> None:
    found = Matcher(query_terms(query, (language,)), (language,)).find(text)
    assert len({number for *_, number in found}) == len(query.split())


def test_a_beginning_matches_the_whole_word() -> None:
    text = "boil boiling unboiled"
    found = Matcher([Term(("boil",), 1.0, "prefix")], ["en"]).find(text)
    assert [text[start:end] for start, end, _ in found] == ["boil", "boiling"]


@pytest.mark.parametrize(
    ("match", "written", "expected"),
    [
        ("typo", "zebra", ["zebar", "Zebras", "zebra", "zebra"]),
        ("typos", "zebrafosh", ["zebrafish", "zebrafishs"]),
    ],
)
def test_a_slip_matches_the_words_it_may_have_meant(
    match: Literal["typo", "typos"], written: str, expected: list[str]
) -> None:
    text = "A zebar, Zebras (zebra) zeal sea-zebra; zebrafish zebrafishs fish"
    found = Matcher([Term((written,), 0.5, match)], ["en"]).find(text)
    assert [text[start:end] for start, end, _ in found] == expected


@given(
    st.text("abc", min_size=1, max_size=9), st.text("abc", min_size=1, max_size=9), st.sampled_from(["typo", "typos"])
)
def test_slips_are_counted_as_the_index_counts_them(word: str, other: str, match: Literal["typo", "typos"]) -> None:
    found = Matcher([Term((word,), 0.5, match)], ["en"]).find(other)
    assert bool(found) == (OSA.distance(word, other) <= {"typo": 1, "typos": 2}[match])


@pytest.mark.parametrize(
    ("phrase", "places"),
    [
        ("green tea", ["green\nTea"]),
        ("tea is", ["tea is"]),
        ("the real-time tea", ["the real-time tea"]),
        ("of the real time tea", ["of the real-time tea"]),
        ("tea green", []),
        ("greens tea", []),
    ],
)
def test_a_phrase_counts_beside_its_words_where_it_stands(phrase: str, places: list[str]) -> None:
    text, terms = "tea is what is green, (green\nTea) of the real-time tea", query_terms(phrase, ["en"])
    ways = ways_of(phrase, lambda word: word == "realtime")
    wanted = ways[0]
    found = Matcher(terms, ["en"], [ways]).find(text)
    assert found == sorted(found)
    words = Matcher(terms, ["en"]).find(text)
    more = [place for place in found if place not in words]
    assert [text[start:end] for start, end, _ in more[:: len(wanted)]] == places
    assert {number for *_, number in more} == set(range(len(terms), len(terms) + len(wanted)) if places else ())


def test_a_match_says_which_term_it_is() -> None:
    text, terms = "tea water tea", query_terms("water tea", ["en"])
    assert [terms[number].forms[0] for _, _, number in Matcher(terms, ["en"]).find(text)] == ["tea", "water", "tea"]


def test_a_compound_has_as_many_terms_as_it_gives() -> None:
    terms = query_terms("getUserName", ["en"])
    assert Matcher(terms, ["en"]).find("call getUserName()") == [(5, 16, number) for number in range(len(terms))]
    assert len({number for *_, number in Matcher(terms, ["en"]).find("get the name of a user")}) == 3


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"name":"x","items":[' + '{"a":1},' * 20 + '"zebra"]}', ["zebra"]),
        ("a,b,c," * 20 + "Zebras," + "x,y," * 20, ["Zebras"]),
        ("https://example.org/" + "some/path/" * 10 + "zebra?x=1", ["zebra"]),
        ("x_" * 40 + "getZebraName" + "_y" * 40, ["getZebraName"]),
    ],
)
def test_of_a_long_token_only_the_part_matches(text: str, found: list[str]) -> None:
    assert marked(text, "zebra") == found


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


JOINTS = [*"-_'./:@=&+#~\\ ", "::", "->", "--", ".'"]


@given(
    st.lists(st.tuples(st.sampled_from(INFLECTED), st.integers(0, 9), st.sampled_from(JOINTS)), max_size=6),
    st.lists(st.sampled_from(INFLECTED), min_size=1, max_size=3),
    st.sampled_from(["%s", "(%s)", "x-%s", "%s_y", "Ein%s", "“%s”", "%s\u00a0z", "?%s", "--%s--"]),
    st.sampled_from([str, str.upper, str.title]),
)
def test_looking_at_likely_words_alone_misses_none_in_parts(
    words: list[tuple[str, int, str]], asked: list[str], around: str, write: Callable[[str], str]
) -> None:
    text = " ".join(
        around % write(f"{word[:at]}{joint}{word[at:]}".strip("".join(JOINTS))) for word, at, joint in words
    )
    terms = query_terms(" ".join(asked), ("en",))
    alone = Matcher(terms, ("en",))
    alone._hints = None  # then every word is looked at
    assert Matcher(terms, ("en",)).find(text) == alone.find(text)


def test_a_word_is_found_where_it_is_written_in_parts() -> None:
    text = "Send an e-mail, set keep_alive or a keep-alive header, and re-use it."
    assert marked(text, "email keepalive reuse") == ["e-mail", "keep_alive", "keep-alive", "re-use"]
    text = "TCP/IP in the U.S.A., 2.000 of O'Reilly's foo::bar, in 用U.K.的."
    query = "tcpip usa 2000 oreilly foobar uk"
    assert marked(text, query) == ["TCP/IP", "U.S.A", "2.000", "O'Reilly's", "foo::bar", "U.K"]
