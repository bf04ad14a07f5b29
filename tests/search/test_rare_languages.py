"""Text in a language that few of a library's texts are in is found by its stems like any other.

1. A word that only a rare language knows is stemmed as that language does, alone and among others.
2. A word that common languages know too is found in every language, and counts the same in each.
3. The snippet is where it stands. Words of the common languages mean what they meant.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from commonplace.library import Library
from commonplace.model import Draft
from commonplace.search.plan import plan_lexical
from commonplace.search.request import parse
from commonplace.text.analyze import stems
from opening import library_settings

RUSSIAN = "Это книга о том, как она жила. " * 20 + "На столе сидел ёж. " + "И он не знал, что это было так. " * 20
ITALIAN = "Questa non è la casa che abbiamo visto, ma una di quelle che sono state fatte per lei."
FRENCH = "Il faut noter que nous ne sommes pas allés à Paris cette année, mais nous avons vu la mer avec les enfants."
GERMAN = "Das ist nicht alles, was wir über die Datenbank wissen, und sie ist auch nicht für uns."


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory, index: str) -> Iterator[Library]:
    folder = tmp_path_factory.mktemp("shelf")
    with Library.open(folder, settings=library_settings(folder)) as library:
        english = "The hedgehogs of the {} were running to what they have not seen before"
        library.put_many(Draft("note", str(n), body=english.format(n)) for n in range(60))
        library.put(Draft("note", "russian", body=RUSSIAN))
        library.put(Draft("note", "german", body=GERMAN))
        library.put(Draft("note", "italian", body=ITALIAN))
        library.put(Draft("note", "torn", body="The flag of the ship was torn by the wind"))
        library.put(Draft("note", "french", body=FRENCH))
        library.put(
            Draft("note", "trip", body="We have been to Paris, and it was not what they had told us of the city")
        )
        library.put(Draft("note", "minutes", body="The notes of the meeting were lost on the way to the boat"))
        yield library


@pytest.mark.parametrize(
    ("query", "key", "shown"),
    [
        ("ёж", "russian", "ёж"),
        ("столом", "russian", "столе"),
        ("столы ежи", "russian", "столе"),
        ("книги", "russian", "книга"),
        ("Datenbanken", "german", "Datenbank"),
        ("Datenbanken zzzz", "german", "Datenbank"),
    ],
)
def test_a_word_that_only_a_rare_language_knows_is_stemmed_as_it_does(
    shelf: Library, query: str, key: str, shown: str
) -> None:
    (hit,) = shelf.search(query, mode="lexical", snippet_length=100).hits
    assert (hit.uri, shown in hit.snippet) == (f"notes://{key}", True)


@pytest.mark.parametrize(("query", "first"), [("Paris", "trip"), ("paris city", "trip"), ("Paris mer", "french")])
def test_a_word_that_has_another_stem_in_each_language_is_found_in_both(shelf: Library, query: str, first: str) -> None:
    assert stems("Paris", "en") != stems("Paris", "fr")
    hits = shelf.search(query, mode="lexical", snippet_length=40).hits
    assert [hit.uri for hit in hits][:1] == [f"notes://{first}"]
    assert {hit.uri for hit in hits} == {"notes://trip", "notes://french"}
    assert all("Paris" in hit.snippet for hit in hits)


def test_it_counts_the_same_in_both(shelf: Library) -> None:
    one, other = (hit.score for hit in shelf.search("Paris", mode="lexical").hits)
    assert other == pytest.approx(one, abs=0.05)


def test_a_stem_that_several_rare_languages_have_counts_once(library: Library) -> None:
    library.put_many(Draft("note", str(n), body=f"The hedgehogs of the {n} were running to the sea") for n in range(80))
    library.put(Draft("note", "english", body="We have been to Paris, and it was not what they had told us of them"))
    library.put(Draft("note", "french", body="Nous ne sommes pas allés à Paris, mais nous avons vu la mer avec eux"))
    alone = {hit.uri: hit.score for hit in library.search("Paris", mode="lexical").hits}
    library.put(
        Draft("note", "spanish", body="No fuimos a Paris este año, pero vimos el mar con los niños y nos gustó")
    )
    plan = library.lexical.ask(lambda words: plan_lexical(parse("Paris"), words))
    forms = [form for term in plan.query.terms for form in term.forms]
    assert len(forms) == len(set(forms))
    assert {hit.uri for hit in library.search("Paris", mode="lexical").hits} == {*alone, "notes://spanish"}


def test_a_foreign_stem_that_is_another_word_here_is_not_looked_for(shelf: Library) -> None:
    assert stems("notes", "fr") == stems("not", "en")
    assert [hit.uri for hit in shelf.search("notes", mode="lexical").hits] == ["notes://minutes"]


def test_a_query_in_two_languages_finds_both(shelf: Library) -> None:
    found = {hit.uri for hit in shelf.search("run столом", mode="lexical", limit=100).hits}
    assert found == {"notes://russian", *(f"notes://{n}" for n in range(60))}


def test_a_stem_that_only_other_languages_have_is_none_of_a_rare_one(shelf: Library) -> None:
    assert stems("tornare", "it") == stems("torn", "en")
    assert shelf.search("tornare", mode="lexical").hits == ()
    assert shelf.search("case", mode="lexical").hits[0].uri == "notes://italian"


def test_every_form_of_a_word_scores_the_same(shelf: Library) -> None:
    scores = {hit.score for word in ("стол", "столе", "столом") for hit in shelf.search(word, mode="lexical").hits}
    assert len(scores) == 1
