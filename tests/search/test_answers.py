"""What comes with an answer.

1. A search sees every write that returned before it, and nothing that is gone.
2. A score is 0–1 and depends on the query and the library alone: not on the limit, the filter or the page.
3. Every reply says which stages ran, which did not, and why. A missing model degrades; asked for, it is an error.
4. A hit says where it is: title, headings, the true line, a snippet with the match.
5. What is like an item comes from its words and its vectors, and is never the item itself.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from commonplace.errors import InvalidInput, Unavailable
from commonplace.library import Library
from commonplace.model import Draft, Filter, Mode
from commonplace.search.legs import Weights, combine, trust_in_model, weigh
from commonplace.search.request import LONGEST, Parsed, parse
from opening import library_settings, open_library

TEA = Draft("note", "tea", title="Tea", body="Oolong wants water just off the boil.")


def uris(library: Library, query: str, **more: object) -> list[str]:
    return [hit.uri for hit in library.search(query, **more).hits]  # type: ignore[arg-type]


# freshness


@pytest.mark.parametrize("mode", ["lexical", "hybrid", "semantic"])
def test_a_search_sees_every_write_before_it(library: Library, mode: Mode) -> None:
    library.put(Draft("note", "other", body="Trains run at night."))
    library.embed()
    library.put(TEA)
    assert uris(library, "oolong", mode=mode)[0] == "notes://tea"
    library.put(replace(TEA, title="", body="Espresso wants pressure."))
    assert uris(library, "espresso", mode=mode)[0] == "notes://tea"
    assert uris(library, "oolong", mode="lexical") == []
    library.delete("notes://tea")
    assert "notes://tea" not in uris(library, "espresso", mode=mode)


def test_a_change_of_tags_or_metadata_is_seen_too(library: Library) -> None:
    library.put(TEA)
    assert uris(library, "oolong", filter=Filter(tags=("Hot",))) == []
    library.put(replace(TEA, tags=("hot",)))
    assert uris(library, "oolong", filter=Filter(tags=("HOT ",))) == ["notes://tea"]


def test_another_library_object_sees_it_as_well(library: Library, backend: str, tmp_path: Path) -> None:
    with open_library(backend, tmp_path) as other:
        for number in range(3):
            library.put(Draft("note", str(number), body=f"unique{number}"))
            assert uris(other, f"unique{number}") == [f"notes://{number}"]


def test_a_word_stays_known_when_most_notes_that_had_it_are_gone(library: Library) -> None:
    library.put_many(Draft("note", str(n), body="AI notes") for n in range(10))
    assert len(uris(library, "AI")) == 10
    for number in range(9):
        library.delete(f"notes://{number}")
    assert uris(library, "AI") == ["notes://9"]
    for number in range(12):
        library.put(Draft("note", "9", body=f"AI notes {number}"))
        assert uris(library, "AI") == ["notes://9"]


# scores


def test_a_score_depends_on_the_query_and_the_library_alone(library: Library) -> None:
    library.put_many(
        Draft("note", str(n), parent=f"p{n % 3}", body="tea " * (1 + n % 5) + f"and word{n} " * (n % 7))
        for n in range(80)
    )
    library.embed()
    for mode in ("lexical", "hybrid", "semantic"):
        scores = {hit.uri: hit.score for hit in library.search("tea word3", mode=mode, limit=1000).hits}
        assert all(0 <= score <= 1 for score in scores.values())
        for some in (
            library.search("tea word3", mode=mode, limit=5),
            library.search("tea word3", mode=mode, limit=5, offset=20),
            library.search("tea word3", mode=mode, filter=Filter(parents=("p1",))),
        ):
            assert some.hits
            for hit in some.hits:
                assert hit.score == pytest.approx(scores[hit.uri], abs=1e-4)


def test_a_least_score_cuts_the_end_off(library: Library) -> None:
    library.put_many(Draft("note", str(n), body="tea " + "and so on " * n) for n in range(10))
    whole = library.search("tea").hits
    for last in whole:
        kept = library.search("tea", min_score=last.score).hits
        assert [hit.uri for hit in kept] == [hit.uri for hit in whole if hit.score >= last.score]


@pytest.mark.parametrize("bounds", [{"limit": 0}, {"limit": 10_001}, {"offset": -1}, {"offset": 1_000_001}])
def test_a_page_that_cannot_be_is_refused(library: Library, bounds: dict[str, int]) -> None:
    with pytest.raises(InvalidInput, match="must be between"):
        library.search("tea", **bounds)  # type: ignore[arg-type]


def test_explain_says_what_each_leg_thought(library: Library) -> None:
    library.put_many([TEA, Draft("note", "x", body="Trains run at night.")])
    library.embed()
    hits = library.search("oolong", mode="hybrid", explain=True).hits
    assert [hit.explain and hit.explain["rank"] for hit in hits] == [1, 2]
    for hit in hits:
        assert hit.explain is not None
        assert hit.explain["lexical_weight"] + hit.explain["vector_weight"] == pytest.approx(1)
    assert hits[0].explain["lexical"] > hits[1].explain["lexical"] == 0  # type: ignore[index]
    assert [hit.explain and hit.explain["words"] for hit in hits] == [["Oolong"], []]
    assert library.search("oolong").hits[0].explain is None


# stages


def test_every_stage_says_whether_it_ran(library: Library) -> None:
    library.put(TEA)
    library.embed()
    stages = {
        mode: {s.name: s for s in library.search("tea", mode=mode).stages} for mode in ("lexical", "semantic", "hybrid")
    }
    assert stages["lexical"]["vector"].reason == "only words were asked for"
    assert stages["semantic"]["lexical"].reason == "only meaning was asked for"
    assert {name for name, stage in stages["hybrid"].items() if stage.status == "ran"} >= {"lexical", "vector", "fuse"}
    for by_name in stages.values():
        assert by_name["rerank"].status == "skipped"
        assert all(stage.reason for stage in by_name.values() if stage.status == "skipped")
        assert all(stage.ms >= 0 for stage in by_name.values())


def test_without_vectors_auto_degrades_and_semantic_says_why(library: Library) -> None:
    library.put(TEA)
    for mode in ("auto", "hybrid"):
        page = library.search("oolong", mode=mode)
        assert [hit.uri for hit in page.hits] == ["notes://tea"]
        assert any(s.name == "vector" and s.status == "skipped" and "no vectors yet" in s.reason for s in page.stages)
    with pytest.raises(Unavailable, match="commonplace embed"):
        library.search("oolong", mode="semantic")


def test_an_empty_library_answers_with_nothing(library: Library) -> None:
    assert library.search("tea").hits == ()
    library.embed()
    assert library.search("tea", mode="hybrid").hits == ()


def test_a_few_new_passages_are_embedded_by_the_search_and_many_are_not(tmp_path: Path) -> None:
    with Library.open(tmp_path, settings=library_settings(tmp_path, embed_on_search=3)) as library:
        library.put(TEA)
        library.embed()
        library.put_many(Draft("note", f"few{n}", body=f"kettle {n}") for n in range(3))
        library.search("kettle")
        assert library.status().coverage.pending == 0
        library.put_many(Draft("note", f"many{n}", body=f"train {n}") for n in range(4))
        hits = library.search("train", mode="hybrid", explain=True).hits
        assert library.status().coverage.pending == 4
        trains = [hit for hit in hits if "many" in hit.uri]
        assert len(trains) == 4
        assert all(hit.explain is not None and hit.explain["vector"] is None for hit in trains)
        assert hits[0].uri.startswith("notes://many"), "a passage without a vector is judged by its words"
        assert library.embed() == 4
        assert library.status().coverage.pending == 0


# hits


def test_a_hit_says_where_it_is(library: Library) -> None:
    body = "# Tea\n\nIntro.\n\n## Oolong\n\nFirst line.\nWater just off the boil.\n"
    library.put(Draft("document", "tea/guide.md", parent="docs", title="Guide", body=body, format="markdown"))
    (hit,) = library.search("boil").hits
    assert (hit.uri, hit.kind, hit.parent, hit.title) == ("docs://docs/tea/guide.md", "document", "docs", "Guide")
    assert body.splitlines()[hit.line - 1] == "Water just off the boil."
    assert "boil" in hit.snippet
    assert body[hit.chunk.char_start : hit.chunk.char_end] == hit.chunk.text


def test_a_snippet_shows_both_words_however_often_one_of_them_came_before(library: Library) -> None:
    library.put(Draft("note", "tea", body=f"{'tea ' * 150}\n\nThe lantern lights the tea."))
    (hit,) = library.search("lantern tea", mode="lexical", snippet_length=80).hits
    assert ("lantern" in hit.snippet, hit.line) == (True, 3)


def test_a_snippet_is_as_long_as_asked_and_shows_the_match(library: Library) -> None:
    library.put(Draft("note", "x", body="filler words go here " * 30 + "oolong " + "and more of them " * 30))
    (hit,) = library.search("oolong", snippet_length=60).hits
    assert "oolong" in hit.snippet
    assert len(hit.snippet) <= 60


MANUAL = (
    "---\nalias: pots\n---\n# Manual\n\nIntro.\n\n## Water\n\nJust off the boil.\n\n"
    "## Leaves\n\n1. Weigh them.\n   Three grams do.\n2. Steep.\n\n## Cups\n\nTwo.\n"
)


@pytest.mark.parametrize(("kind", "parent"), [("document", "docs"), ("note", "")])
def test_a_snippet_is_lines_of_its_source_and_headings_are_those_of_the_match(
    library: Library, kind: str, parent: str
) -> None:
    library.put(Draft(kind, "manual.md", parent=parent, title="Manual", body=MANUAL, format="markdown"))
    (hit,) = library.search("grams weigh", mode="lexical").hits
    assert (hit.line, hit.headings) == (14, ("Manual", "Leaves"))
    assert hit.snippet == "1. Weigh them.\n   Three grams do.\n2. Steep."
    assert [hit.snippet[low:high] for low, high in hit.marks] == ["Weigh", "grams"]
    (hit,) = library.search("boil", mode="lexical").hits
    assert (hit.line, hit.headings, hit.snippet) == (10, ("Manual", "Water"), "Just off the boil.")
    (hit,) = library.search("alias", mode="lexical").hits
    assert (hit.line, hit.snippet) == (6, "Intro.")


def test_code_is_shown_as_code_under_the_definition_of_its_match(library: Library) -> None:
    body = "class Pot:\n    def fill(self):\n        pass\n\n    def pour(self, cups):\n\t\treturn cups  \n"
    library.put(Draft("document", "pot.py", parent="src", title="pot", body=body, format="python"))
    (hit,) = library.search("pour cups", mode="lexical").hits
    assert (hit.line, hit.headings) == (5, ("Pot", "pour"))
    assert hit.snippet == "    def pour(self, cups):\n\t\treturn cups"


FILLER = "Nothing of the sort is said on this line, which is but filler text.\n"
BLANK = "这是一行没有什么意义的填充文字，只是为了让段落变得更长一些而已。\n"


@pytest.mark.parametrize(
    ("around", "line", "query"),
    [
        (FILLER, "A zebrafish swims.", "zebrafosh"),
        (BLANK, "我用Python做机器学习的笔记。", "Python"),
        (f"{FILLER}tea is green\n", "some green tea", '"green tea"'),
        (f"{FILLER}get the name of a user\n", "call getUserName now", "getUserName"),
        (f"{FILLER}tea is green\n", "some green tea", '"green tea" text'),
        (FILLER, "TCP/IP in the U.S.A.", "usa"),
        (FILLER, "TCP/IP of O'Reilly", "oreilly"),
    ],
)
def test_a_hit_is_at_the_line_it_was_found_by(library: Library, around: str, line: str, query: str) -> None:
    body = f"{around * 4}{line}\n{around * 3}"
    library.put(Draft("note", "it", body=body))
    (hit,) = library.search(query, mode="lexical", snippet_length=100).hits
    assert body.split("\n")[hit.line - 1] == line
    assert line.strip(".。") in hit.snippet


@pytest.mark.parametrize("query", ["text zebrafosh", "text zebra*"])
def test_a_snippet_shows_what_was_guessed_or_begun_beside_a_common_word(library: Library, query: str) -> None:
    library.put(Draft("note", "it", body=f"{FILLER * 4}A zebrafish swims.\n{FILLER * 3}"))
    (hit,) = library.search(query, mode="lexical", snippet_length=100).hits
    assert "zebrafish" in hit.snippet


def test_a_query_of_nothing_but_exclusions_says_that_they_were_looked_for(library: Library) -> None:
    library.put(TEA)
    page = library.search('-oolong -"off the boil"')
    assert [hit.uri for hit in page.hits] == ["notes://tea"]
    assert page.notes == ("The query has nothing but exclusions, so their words were looked for.",)
    assert library.search("water -espresso").notes == ()


# related


def test_related_is_what_shares_its_telling_words(library: Library) -> None:
    library.put(Draft("note", "a", body="The databases of the releases and their responses."))
    library.put(Draft("note", "b", body="A few databases for the responses."))
    library.put(Draft("note", "c", body="Trains run at night and the moon is up."))
    assert library.related("notes://a").hits[0].uri == "notes://b"
    library.embed()
    hits = library.related("notes://a").hits
    assert [hit.uri for hit in hits][:1] == ["notes://b"]
    assert "notes://a" not in [hit.uri for hit in hits]
    assert [hit.uri for hit in library.related("notes://a", filter=Filter(kinds=("memory",))).hits] == []
    assert len(library.related("notes://a", limit=1).hits) == 1
    every, first = library.related("notes://a"), library.related("notes://a", limit=1)
    assert (every.found, every.more) == (len(every.hits), False)
    assert first.more
    assert 1 < first.found <= every.found


def test_related_finds_words_of_another_language_as_they_are_stemmed_there(library: Library) -> None:
    library.put_many(
        Draft("note", str(n), body=f"This is the note of the day, and it has number {n}.") for n in range(30)
    )
    library.put(Draft("note", "de", body="Die Häuser in der Stadt sind nicht neu und die Gärten auch nicht."))
    library.put(Draft("note", "de2", body="Wir haben die Häuser und die Gärten in der Stadt gesehen."))
    assert library.related("notes://de").hits[0].uri == "notes://de2"


def test_related_of_an_item_without_text_is_empty_and_no_error(library: Library) -> None:
    library.put_many([Draft("note", "empty"), TEA])
    assert "notes://empty" not in [hit.uri for hit in library.related("notes://empty").hits]
    library.embed()
    stages = library.related("notes://empty").stages
    assert any(stage.name == "vector" and stage.status == "skipped" for stage in stages)


# parse, fuse: pure functions


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain words", Parsed("plain words")),
        ('a "b c" d', Parsed("a b c d", ("b c",))),
        ("a -b", Parsed("a", excluded=("b",))),
        ('a -"b c"', Parsed("a", excluded=("b c",))),
        ("pre* fix", Parsed("fix", prefixes=("pre",))),
        ("(pre*) bee*, sea*!", Parsed("", prefixes=("pre", "bee", "sea"))),
        ("-only -these", Parsed("only these")),
        ('an "open quote', Parsed('an "open quote')),
        ("a - b * c", Parsed("a - b * c")),
        ("well-known e-mail", Parsed("well-known e-mail")),
        ("NOT (a AND b): c~2^3", Parsed("NOT (a AND b): c~2^3")),
        ('""', Parsed('""')),
        ("a\0b", Parsed("a b")),
        ("  ", Parsed("")),
    ],
)
def test_a_query_is_read_as_a_person_means_it(text: str, expected: Parsed) -> None:
    assert parse(text) == expected


def test_a_query_of_any_length_is_cut_where_it_has_said_enough() -> None:
    assert len(parse("x" * 10 * LONGEST).words) == LONGEST


def test_a_passage_without_a_vector_is_judged_by_its_words() -> None:
    both = combine(np.array([1, 1], np.float32), np.array([0, np.nan], np.float32), Weights(0.25, 0.75))
    assert both.tolist() == [0.25, 1]


def test_weights_add_up_and_trust_falls_with_the_language() -> None:
    assert sum((lambda w: (w.lexical, w.vector))(weigh(9, 0.3))) == pytest.approx(1)
    assert weigh(0, 0.3).lexical == 0
    english = frozenset({"en"})
    trusts = [
        trust_in_model("en", english, latin=True, fertility=1.2),
        trust_in_model("en", english, latin=True, fertility=8),
        trust_in_model("de", english, latin=True, fertility=1.2),
        trust_in_model("ja", english, latin=False, fertility=1.2),
    ]
    assert trusts == sorted(trusts, reverse=True)
    assert len(set(trusts)) == 4
