"""Lists of whole entries.

1. A word matches as the contract says: case, diacritics, compounds, symbols, unspaced scripts.
2. All words are looked for in the whole entry, however many chunks it has; one row per entry.
3. The order is total: a longer list begins with the shorter one, ties newest first.
4. Filters are applied before the limit, whichever part of the engine decides them.
5. Any text can be looked for, in every mode.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commonplace.index.words.wanted import atoms
from commonplace.kinds.memories.drawer import EntryRows
from commonplace.kinds.memories.ranked_lists import RankedLists
from commonplace.kinds.memories.word_query import LexicalMode, read
from commonplace.library import Library
from commonplace.model import Condition, Draft, Entries, Filter
from commonplace.store.chunks import Chunks
from commonplace.store.items import Items

MEMORIES = Filter(kinds=("memory",), entries=Entries())
LONG = "\n\n".join(
    ["Alpha begins it. " + "Some filler text goes here. " * 120, "Omega ends it. " + "More filler text. " * 150]
)
START = datetime(2026, 1, 1, tzinfo=UTC)


def remember(library: Library, *texts: str, **more: object) -> None:
    library.memories.sweep()
    known = library.store.drawer(EntryRows).next_number()
    for number, text in enumerate(texts, start=known):
        moment = START + timedelta(minutes=number)
        fields = {"source": "user" if number % 2 else "agent"}
        draft = Draft("memory", str(number), parent="t", body=text, fields=fields, created_at=moment, **more)  # type: ignore[arg-type]
        library.put(draft)


def found(library: Library, query: str, mode: LexicalMode = "match", count: int = 10, **more: object) -> list[str]:
    """The bodies of what is found."""
    wanted = read(query, mode).wanted
    assert wanted is not None
    relax = None if mode == "match" else False
    filter = Filter(kinds=("memory",), entries=Entries(), **more)  # type: ignore[arg-type]
    listed = library.part(RankedLists).by_words(wanted, filter, count, language="en", loosely=relax)
    return [item.body or "" for item in library.store.drawer(Items).get(listed.found.items.tolist()[:count], body=True)]


@pytest.mark.parametrize(
    ("text", "query", "mode"),
    [
        ("Zoë came by", "zoe", "match"),
        ("zoe came by", "ZOË", "match"),
        ("it’s late", "it's", "match"),
        ("running late", "run", "match"),
        ("see main.rs there", "main.rs", "match"),
        ("the main rs file", "main.rs", "match"),
        ("set x=y now", "x=y", "match"),
        ("a real time system", "real-time", "match"),
        ("a real-time system", "real time", "phrase"),
        ("a real time system", "real-time system", "phrase"),
        ("get_user_name(12)", "getUserName", "match"),
        ("written in F#", "F#", "match"),
        ("the letter f", "F#", "match"),
        ("東京都庁に行った", "都庁", "match"),
        ("東京都庁に行った", "東京都", "phrase"),
        ("東京都庁に行った", "東京都 !", "phrase"),
        ("会议在5月举行", "5月", "phrase"),
        ("東・西の比較", "東・西", "phrase"),
        ("C++の本", "C++の", "phrase"),
        ("東京都庁に行った", "京", "match"),
        ("ไปเที่ยวเชียงใหม่", "เชียงใหม่", "match"),
        ("Die Häuser sind schön und groß, und wir wohnen gern darin", "Häuser", "match"),
        ("languages galore", "lang", "prefix"),
        ("languages galore", "gal* lang*", "prefix"),
        ("see main.rs there", "main.r", "prefix"),
        ("hot green tea", '"green tea" hot', "match"),
        ("hot green tea", "gre* NOT black", "boolean"),
    ],
)
def test_a_word_is_found_as_it_is_meant(library: Library, text: str, query: str, mode: LexicalMode) -> None:
    remember(library, "nothing of the kind", text, "something else again")
    assert found(library, query, mode) == [text]


@pytest.mark.parametrize(
    ("text", "query", "mode"),
    [
        ("running late", "run", "phrase"),
        ("running late", "late running", "phrase"),
        ("runner", "running", "prefix"),
        ("main is not rs", "main.rs", "phrase"),
        ("5 apples, 月亮", "5月", "phrase"),
        ("東京", "東・西", "phrase"),
        ("the words are apart here", "words apart", "phrase"),
        ("京都", "東京", "match"),
    ],
)
def test_what_only_resembles_it_is_not_found(library: Library, text: str, query: str, mode: LexicalMode) -> None:
    remember(library, text)
    assert found(library, query, mode) == []


def test_a_word_with_symbols_comes_before_its_letters(library: Library) -> None:
    remember(library, "f f f f f f", "a long text that at some point in it mentions F# and goes on after that", "f")
    assert found(library, "F#")[0].startswith("a long text")


def test_all_words_may_stand_anywhere_in_an_entry_of_many_chunks(library: Library) -> None:
    remember(library, LONG, "alpha alone", "omega alone")
    assert library.store.drawer(Chunks).total() > 3
    assert found(library, "alpha omega") == [LONG]
    assert found(library, "alpha NOT omega", "boolean") == ["alpha alone"]
    assert found(library, "NOT alpha", "boolean") == ["omega alone"]
    assert sorted(found(library, "alpha OR omega", "boolean")) == sorted([LONG, "alpha alone", "omega alone"])
    assert found(library, "filler") == [LONG]  # in every chunk of it, and still one row


def test_entries_with_some_of_the_words_come_when_none_has_all(library: Library) -> None:
    remember(library, "tea tea tea tea", "hot tea", LONG, "nothing")
    assert found(library, "hot tea unheard") == ["hot tea", "tea tea tea tea"]
    assert found(library, "alpha omega tea unheard")[0] == LONG
    assert found(library, "hot tea") == ["hot tea"]


def test_exclusions_alone_select_everything_else_newest_first(library: Library) -> None:
    remember(library, "one", "two", LONG, "three")
    assert found(library, "NOT two", "boolean") == ["three", LONG, "one"]


@pytest.mark.parametrize("query", ["tea OR NOT alpha", "NOT (alpha AND NOT tea)", "NOT alpha OR unheard*"])
def test_what_an_alternative_lets_through_is_found_without_a_word_that_is_sought(library: Library, query: str) -> None:
    other = LONG.replace("Alpha", "Gamma")
    remember(library, LONG, other, "alpha alone", "omega alone", "tea")
    assert sorted(found(library, query, "boolean")) == sorted([other, "omega alone", "tea"])


def test_equal_scores_fall_to_the_newest(library: Library) -> None:
    remember(library, *["same words here"] * 30)
    wanted = read("same words", "match").wanted
    assert wanted is not None
    listed = library.part(RankedLists).by_words(wanted, MEMORIES, 7, language="en").found
    assert listed.items.tolist() == sorted(listed.items.tolist(), reverse=True)
    assert len(set(listed.scores.tolist())) == 1


WORDS = st.sampled_from(["tea", "hot", "green", "water", "pot", "cup"])
TEXTS = st.lists(st.lists(WORDS, min_size=1, max_size=6).map(" ".join), min_size=1, max_size=25)
QUERIES = st.sampled_from(["tea", "hot tea", "tea OR cup", "NOT tea", "green NOT (hot OR pot)", "w*", '"hot tea"'])


@settings(max_examples=20)
@given(TEXTS, QUERIES, st.integers(1, 12), st.integers(1, 12))
def test_a_longer_list_begins_with_the_shorter_one(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], query: str, few: int, more: int
) -> None:
    with _fresh(tmp_path_factory) as library:
        remember(library, *texts)
        whole = found(library, query, "boolean", few + more)
        assert found(library, query, "boolean", few) == whole[:few]
        expected = [text for text in texts if _holds(text, query)]
        assert sorted(found(library, query, "boolean", 100)) == sorted(expected)


def _holds(text: str, query: str) -> bool:
    words = set(text.split())
    return {
        "tea": "tea" in words,
        "hot tea": {"hot", "tea"} <= words,
        "tea OR cup": bool(words & {"tea", "cup"}),
        "NOT tea": "tea" not in words,
        "green NOT (hot OR pot)": "green" in words and not words & {"hot", "pot"},
        "w*": "water" in words,
        '"hot tea"': "hot tea" in text,
    }[query]


@pytest.mark.parametrize("amount", [5, 700])
def test_a_filter_loses_nothing_however_deep_its_matches_lie(library: Library, amount: int) -> None:
    remember(library, *["tea tea tea"] * amount, metadata={"status": "open"})
    remember(library, "a cup of tea and many other words that make it rank last", metadata={"status": "done"})
    where = (Condition(("status",), "eq", "done"),)
    assert found(library, "tea", where=where) == ["a cup of tea and many other words that make it rank last"]
    assert found(library, "tea unheard", where=where)[0].startswith("a cup of tea")
    assert len(found(library, "tea", count=1000)) == amount + 1


def test_an_entry_is_as_far_as_its_nearest_chunk(library: Library) -> None:
    remember(library, LONG, "oolong tea wants hot water", "sourdough needs a cold proof")
    library.embed()
    listed = library.part(RankedLists).by_meaning("how hot for oolong", MEMORIES, 1000).found
    assert len(listed) == 3
    assert len(set(listed.items.tolist())) == 3
    assert library.store.drawer(Items).get([int(listed.items[0])], body=True)[0].body == "oolong tea wants hot water"
    assert np.all(np.diff(listed.scores) >= 0)
    assert listed.complete
    assert not library.part(RankedLists).by_meaning("how hot for oolong", MEMORIES, 2).found.complete


@settings(max_examples=40)
@given(st.text(max_size=60), st.sampled_from(["match", "prefix", "phrase", "boolean"]))
def test_any_text_can_be_looked_for(tmp_path_factory: pytest.TempPathFactory, text: str, mode: LexicalMode) -> None:
    with _fresh(tmp_path_factory) as library:
        remember(library, "green tea", LONG)
        reading = read(text, mode)
        if reading.wanted is None:
            return
        relax = None if mode == "match" else False
        listed = library.part(RankedLists).by_words(reading.wanted, MEMORIES, 10, language="en", loosely=relax)
        assert np.all(listed.found.scores >= 0)
        if not list(atoms(reading.wanted, sought=True)):
            assert not listed.found.scores.any()


@pytest.mark.parametrize("query", ["(tea OR NOT " * 800 + "cup", "tea " * 2500, "x" * 10_000, "'\"" * 500 + " tea"])
def test_long_and_deep_queries_are_answered(library: Library, query: str) -> None:
    remember(library, "green tea")
    for mode in ("match", "prefix", "phrase", "boolean"):
        reading = read(query, mode)
        if reading.wanted is not None:
            library.part(RankedLists).by_words(reading.wanted, MEMORIES, 10, language="en", loosely=None)


def _fresh(factory: pytest.TempPathFactory) -> Library:
    from opening import library_settings

    folder = factory.mktemp("ranked")
    return Library.open(folder, settings=library_settings(folder))
