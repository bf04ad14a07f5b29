"""Which words find which texts.

1. A word is found whole, in parts, in another case, form or spelling; scripts without spaces by any run of characters.
2. Phrases bind, exclusions exclude, beginnings begin, and slips are forgiven where nothing else is found.
3. Any text at all is a query: it raises nothing, and finds whatever has one of its words.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from commonplace.library import Library
from commonplace.model import Draft, Filter, Mode, Span
from commonplace.search.request import Request
from commonplace.text.analyze import exact
from opening import library_settings
from strategies import WORDS

FOUND = [
    ("getUserName()", "user name"),
    ("getUserName()", "getusername"),
    ("getUserName()", "GetUserName"),
    ("snake_case_name", "case"),
    ("snake_case_name", "snake_case_name"),
    ("HTTP/2", "http"),
    ("HTTP/2", "HTTP/2"),
    ("uses real-time data", "realtime"),
    ("uses real-time data", "real time"),
    ("released v2.3.1 today", "v2.3.1"),
    ("released v2.3.1 today", "2.3.1"),
    ("written in C++", "c++"),
    ("written in C++", "C"),
    ("written in F#", "f#"),
    ("mail user@example.org", "example.org"),
    ("open src/main.rs", "main.rs"),
    ("東京都庁", "都庁"),
    ("東京都庁", "庁"),
    ("東京都庁", "東"),
    ("東京都庁", "東京都庁"),
    ("東京都庁へ行く", "京都"),
    ("データベースを使う", "ベース"),
    ("Zoë", "zoe"),
    ("zoe", "Zoë"),
    ("Zoe\u0308", "zoë"),
    ("it’s fine", "it's"),
    ("it's fine", "it’s"),
    ("don’t", "don't"),
    ("ภาษาไทยง่าย", "ไทย"),
    ("ภาษาไทยง่าย", "ภาษา"),
    ("서울에서 만나요", "서울"),
    ("한국어를 배워요", "한국어"),
    ("كِتَاب", "كتاب"),
    ("שָׁלוֹם לעולם", "שלום"),
    ("שלום לעולם", "שָׁלוֹם"),
    ("Donau\u00addampf\u00adschiff", "donaudampfschiff"),
    ("Donaudampfschiff", "donau\u00addampfschiff"),
    ("fly the 🇩🇪 here", "🇩🇪"),
    ("کتاب\u200cها را خواندم", "کتاب"),
    ("کتاب\u200cها را خواندم", "کتابها"),
    ("کتاب\u200cها را خواندم", "کتاب ها"),
    ("ശ്രീ ന്\u200d", "ന്"),
    ("Die Häuser der Stadt sind nicht alt und wir mögen sie", "Haus"),
    ("Die Häuser der Stadt sind nicht alt und wir mögen sie", "hauser"),
    ("The runners were running for the train", "run"),
    ("Straße", "strasse"),
    ("ﬁnance", "finance"),
    ("Ｆｕｌｌ", "full"),
    ("Ærø", "aero"),
    ("a 🍵 for you", "🍵"),
    ("Go and AI", "ai"),
    ("ΣΑΣ", "σας"),
    ("ικα", "ικα"),
    ("NAÏVE café", "naive cafe"),
    ("x=y", "x=y"),
    ("O'Brien said", "obrien"),
    ("rock'n'roll", "rock"),
    ("50% off", "50%"),
    ("e.g. U.S.A.", "usa"),
]


@pytest.mark.parametrize(("body", "query"), FOUND)
def test_a_word_is_found_whole_and_in_parts(library: Library, body: str, query: str) -> None:
    library.put(Draft("note", "it", body=body))
    library.put_many(Draft("note", str(n), body="Nothing of the kind is said here.") for n in range(3))
    assert [hit.uri for hit in library.search(query, mode="lexical").hits][:1] == ["notes://it"]


@pytest.mark.parametrize(
    ("whole", "part", "query"),
    [("C++ code", "C code", "C++"), ("F# code", "F code", "F#"), ("getUserName", "user of some name", "getUserName")],
)
def test_a_word_with_symbols_ranks_what_holds_it_whole_first(
    library: Library, whole: str, part: str, query: str
) -> None:
    library.put(Draft("note", "part", body=part))
    library.put(Draft("note", "whole", body=whole))
    assert [hit.uri for hit in library.search(query).hits] == ["notes://whole", "notes://part"]


@pytest.mark.parametrize(
    ("body", "query"),
    [
        ("用Python做machine learning的笔记", "machine learning"),
        ("東京都庁 running", "running"),
        ("ภาษาไทย windows", "window"),
    ],
)
def test_an_english_word_is_found_in_text_that_has_no_stems_of_its_own(library: Library, body: str, query: str) -> None:
    library.put_many(Draft("note", str(n), body=f"The machines of the {n} windows run and learn") for n in range(4))
    library.put(Draft("note", "it", body=body))
    assert "notes://it" in [hit.uri for hit in library.search(query, mode="lexical").hits]


def test_what_only_removed_texts_had_is_looked_for_as_what_nobody_has(library: Library) -> None:
    library.put_many(Draft("note", str(n), body=f"fish {n}") for n in range(30))
    library.put(Draft("note", "zoo", body="a zebra"))
    library.put(Draft("note", "tank", body="a zebrafish"))
    assert [hit.uri for hit in library.search("zebra").hits] == ["notes://zoo"]
    library.put(Draft("note", "zoo", body="a lion"))
    library.put(Draft("note", "typo", body="a zebro"))
    assert [hit.uri for hit in library.search("zebra").hits] == ["notes://tank"]
    library.put(Draft("note", "tank", body="a shark"))
    assert [hit.uri for hit in library.search("zebra").hits] == ["notes://typo"]


def test_a_word_that_is_nowhere_is_told_from_a_query_without_words(library: Library) -> None:
    library.put(Draft("note", "tea", body="oolong"))
    (said,) = library.search("qqqq", mode="lexical").notes
    assert said == 'No text has "qqqq", so words spelled much like that were looked for.'
    assert library.search("qq", mode="lexical").notes == ("No text has a word of the query, nor one like it.",)


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory, index: str) -> Iterator[Library]:
    folder = tmp_path_factory.mktemp("shelf")
    with Library.open(folder, settings=library_settings(folder)) as library:
        texts = {
            "oolong": "Oolong wants water just off the boil. Please receive the organization.",
            "green": "Green tea wants cooler water.",
            "black": "Black tea likes boiling water, and generalization.",
            "code": "call getUserName and snake_case_name in real time",
            "tokyo": "東京都庁に行く",
            "words": " ".join(WORDS),
        }
        library.put_many(Draft("note", key, body=body) for key, body in texts.items())
        library.put(Draft("document", "reports/quarterly-forecast.md", parent="work", title="Q3", body="numbers"))
        library.embed()
        yield library


def found(library: Library, query: str, mode: Mode = "lexical") -> set[str]:
    return {hit.uri.rpartition("/")[2] for hit in library.search(query, mode=mode, limit=100).hits}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ('"off the boil"', {"oolong"}),
        ('"OFF the Boil" water', {"oolong"}),
        ('"tea wants"', {"green"}),
        ("“tea wants”", {"green"}),
        ("„off the boil“ water", {"oolong"}),
        ("« off the boil »", {"oolong"}),
        ("water -“tea wants” -oolong", {"black"}),
        ("“off the boil", {"oolong", "black", "words"}),
        ("water -boil -words", {"oolong", "green", "black"} - {"oolong"}),
        ('water -"tea wants" -oolong', {"black"}),
        ("tea -green -oolong", {"black"}),
        ("gree*", {"green"}),
        ("getUs*", {"code", "words"}),
        ("get_us*", {"code", "words"}),
        ("東京都*", {"tokyo", "words"}),
        ("boilin", {"black"}),
        ("recieve", {"oolong"}),
        ("organizaton", {"oolong"}),
        ("organisation", {"oolong"}),
        ("genaralization", {"black"}),
        ("gren", {"green"}),
        ("quarterly", {"quarterly-forecast.md"}),
        ("forecast", {"quarterly-forecast.md"}),
        ("-oolongx", {"oolong", "words"}),
        ("qqqqqqqq", set()),
        ("?!", set()),
        ("", set()),
    ],
)
def test_what_a_query_means(shelf: Library, query: str, expected: set[str]) -> None:
    assert found(shelf, query) == expected


def test_a_name_alone_is_no_answer_where_names_do_not_count(shelf: Library) -> None:
    def found(text: str, *, by_name: bool) -> list[str]:
        asked = Request(text, mode="lexical", filter=Filter(kinds=("document",)), by_name=by_name)
        return [hit.uri for hit in shelf.engine.search(asked).hits]

    report = "docs://work/reports/quarterly-forecast.md"
    assert found("forecast", by_name=True) == [report]
    assert found("forecast", by_name=False) == []
    assert found("numbers", by_name=False) == found("Q3", by_name=False) == [report]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("where", {"where-to.md"}),
        ("where to", {"where-to.md"}),
        ("where qqqqqqqq", {"where-to.md"}),
        ("where oolong", {"pots.md"}),
    ],
)
def test_a_function_word_in_a_name_answers_only_where_nothing_else_does(
    library: Library, asked: str, expected: set[str]
) -> None:
    library.put_many(
        [
            Draft("document", "where-to.md", parent="tea", title="Shops", body="A list of shops, by city."),
            Draft("document", "pots.md", parent="tea", title="Pots", body="Oolong wants a small pot."),
        ]
    )
    assert found(library, asked) == expected


def test_a_phrase_found_nowhere_is_looked_for_by_its_words_and_says_so(shelf: Library) -> None:
    page = shelf.search('"boil the oolong"', mode="lexical")
    assert page.hits
    assert any("phrase" in note for note in page.notes)
    assert not shelf.search('"off the boil"').notes


@pytest.mark.parametrize("mode", ["lexical", "hybrid", "auto", "semantic"])
def test_what_is_excluded_stays_away_in_every_mode(shelf: Library, mode: Mode) -> None:
    assert "green" in found(shelf, "tea water", mode)
    assert "green" not in found(shelf, "tea water -green", mode)


def test_a_query_without_a_word_says_so(shelf: Library) -> None:
    page = shelf.search("?!", mode="lexical")
    assert (page.hits, page.notes) == ((), ("The query has no word that can be looked for.",))


ANYTHING = st.text(max_size=60) | st.lists(
    st.sampled_from([*WORDS, *'"-*()[]:^~/+|', "\\", "AND", "NOT", "\0", "\ud800", "🏳️‍🌈", "\u200d"]),
    max_size=8,
).map("".join) | st.lists(st.sampled_from(WORDS) | st.text(max_size=8), max_size=6).map(" ".join)  # fmt: skip


@given(query=ANYTHING | st.text(st.characters(), max_size=20))
@settings(max_examples=150)
@example('"\ud800"')
@example("-\ud800 tea")
@example("\0" * 100)
@example("a" * 5000)
@example("\u0301" * 3000)
@example("e" + "\u0301" * 3000)
@example("東" * 3000)
@example("[[:alpha:]]* ab* (?i)*")
@example("__ __* \u00a8 \u037a ـ ـ* ا*")
def test_any_text_is_a_query(shelf: Library, query: str) -> None:
    terms = set(exact(query).split())
    known = {term for key in ("words", "green") for term in exact(shelf.get(f"notes://{key}").body or "").split()}
    for mode in ("lexical", "hybrid", "semantic"):
        page = shelf.search(query, mode=mode)
        assert all(0 <= hit.score <= 1 for hit in page.hits)
        if terms & known and mode == "lexical" and not set('"-*') & set(query):  # a prefix asks for what begins so
            assert page.hits


def test_a_query_of_a_megabyte_is_answered(shelf: Library) -> None:
    assert found(shelf, "green " + "".join(f"word{n} " for n in range(100_000)))
    assert found(shelf, "x" * 1_000_000 + " green") == set()
    assert found(shelf, "green " + "東京" * 250_000)


def test_two_languages_are_stemmed_in_one_library(library: Library) -> None:
    german = "Die Häuser in der Stadt sind alt, aber wir mögen sie und die Gärten mit den Bäumen."
    english = "The houses in the city are old, but we like them and the gardens with their trees."
    library.put_many([Draft("note", "de", body=german), Draft("note", "en", body=english)])
    for query, key in [
        ("Haus", "de"),
        ("Garten", "de"),
        ("Baum", "de"),
        ("house", "en"),
        ("tree", "en"),
        ("gardening", "en"),
    ]:
        assert [hit.uri for hit in library.search(query).hits][:1] == [f"notes://{key}"], query


def test_a_word_of_a_language_that_is_rare_here_is_found_as_it_is_written(library: Library) -> None:
    library.put_many(
        Draft("note", str(n), body=f"This is the note of the day and it is about number {n}.") for n in range(60)
    )
    library.put(Draft("note", "fi", body="Hän oli se joka että mutta myös kuin kun ovat talossani taloissanne."))
    for word in ("talossani", "taloissanne", "myös"):
        assert [hit.uri for hit in library.search(word).hits][:1] == ["notes://fi"], word


@pytest.mark.parametrize("mode", ["lexical", "hybrid"])
@pytest.mark.parametrize(
    ("char", "having", "lacking"),
    [
        ("茶", ("お茶を飲む", "綠茶", "茶道"), "水を飲む"),
        ("น", ("น้ำ", "กินข้าว"), "ชา"),
        ("차", ("차를", "자동차"), "물"),
    ],
)
def test_one_character_of_an_unspaced_script_binds_and_excludes_wherever_it_stands(
    mode: Mode, char: str, having: tuple[str, ...], lacking: str, library: Library
) -> None:
    for text in (*having, lacking):
        library.put(Draft("note", text, body=f"{text} tea"))
    library.embed()
    quoted = library.search(f'"{char}" tea', mode=mode)
    assert {hit.item.key for hit in quoted.hits} == set(having)
    assert quoted.notes == ()
    assert [hit.item.key for hit in library.search(f"-{char} tea", mode=mode).hits] == [lacking]


@pytest.mark.parametrize("mode", ["lexical", "hybrid"])
@pytest.mark.parametrize(
    ("phrase", "having", "lacking"),
    [
        ("5月", ("5月", "会议在5月举行", "共5月"), ("5 apples", "6月", "5 x 月")),
        ("2014년", ("2014년에 갔다", "2014년"), ("2014 was", "2015년")),
        ("C++の", ("C++の本",), ("C++ book", "Cの本")),
        ("東・西", ("東・西の比較", "東と東・西"), ("東京", "西")),
    ],
)
def test_one_character_at_the_end_of_a_phrase_belongs_to_it(
    mode: Mode, phrase: str, having: tuple[str, ...], lacking: tuple[str, ...], library: Library
) -> None:
    for text in (*having, *lacking):
        library.put(Draft("note", text, body=f"{text} tea"))
    library.embed()
    quoted = library.search(f'"{phrase}" tea', mode=mode)
    assert {hit.item.key for hit in quoted.hits} == set(having)
    assert quoted.notes == ()
    assert {hit.item.key for hit in library.search(f"-{phrase} tea", mode=mode).hits} == set(lacking)


@pytest.mark.parametrize(
    ("phrase", "having", "lacking"),
    [
        (
            "docs.example.org",
            ("see https://docs.example.org/a?x=1", "docs.example.org"),
            ("docs example org", "docs.org"),
        ),
        ("example.org", ("ada+x@mail.example.org", "example.org"), ("example of org", "an example, org")),
        ("v1.2.3", ("released v1.2.3-rc.1", "v1.2.3"), ("v1.2", "v1.2.4.3")),
        ("at 09:30", ("at 09:30:15 sharp", "at 09:30"), ("at 09 30", "by 09:30", "at 0930")),
        ("for_each", ("parallel_for_each()", "forEach"), ("for each", "for x, each of them")),
    ],
)
def test_a_quoted_compound_stands_in_a_longer_one_too(
    library: Library, phrase: str, having: tuple[str, ...], lacking: tuple[str, ...]
) -> None:
    for text in (*having, *lacking):
        library.put(Draft("note", text, body=text))
    page = library.search(f'"{phrase}"', mode="lexical")
    assert {hit.item.key for hit in page.hits} == set(having)
    assert page.notes == ()


@pytest.mark.parametrize("mode", ["lexical", "hybrid"])
@pytest.mark.parametrize("phrase", ["real time clock", "the real time", "real time"])
def test_quoted_words_are_found_joined_too(library: Library, phrase: str, mode: Mode) -> None:
    having = ("set the real-time clock", "set the real time clock", "set the – real – time – # clock")
    lacking = ("real clock time", "the real, in time")
    for text in (*having, *lacking):
        library.put(Draft("note", text, body=text))
    library.embed()
    page = library.search(f'"{phrase}"', mode=mode)
    assert {hit.item.key for hit in page.hits} == set(having)
    assert page.notes == ()
    assert {hit.item.key for hit in library.search(f'real -"{phrase}"', mode=mode).hits} == set(lacking)


@pytest.mark.parametrize("query", ["수(受", "東・西", "東/西", "受"])
def test_a_word_of_single_characters_of_unspaced_scripts_is_looked_for(library: Library, query: str) -> None:
    library.put(Draft("note", "it", body="그것은 수(受)이다, 東と西"))
    library.put(Draft("note", "other", body="Nothing of the kind is said here."))
    page = library.search(query, mode="lexical")
    assert [hit.item.key for hit in page.hits] == ["it"]
    assert page.notes == ()


def test_a_quoted_sign_is_looked_for(library: Library) -> None:
    library.put(Draft("note", "half", body="take ½ of it"))
    library.put(Draft("note", "whole", body="take all of it"))
    assert [hit.item.key for hit in library.search('"½"', mode="lexical").hits] == ["half"]


def test_the_words_of_front_matter_find_a_document_though_they_are_no_passage(library: Library) -> None:
    body = "---\nalias: zebra\n---\nKelp in the pool.\n"
    start = body.index("Kelp")
    span = Span(body[start:], start, len(body), 4, 4)
    library.put(Draft("document", "a.md", parent="n", body=body, fields={"properties": "alias: zebra"}, spans=(span,)))
    (hit,) = library.search("zebra").hits
    assert (hit.uri, hit.line) == ("docs://n/a.md", 4)
    assert "zebra" not in hit.snippet
