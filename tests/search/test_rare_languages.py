"""Text in a language that few of a library's texts are in is found by its stems like any other.

1. A word that only a rare language knows is stemmed as that language does, alone and among others.
2. The snippet is where it stands. Words of the common languages mean what they meant.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from commonplace.library import Library
from commonplace.model import Draft
from commonplace.text.analyze import stems
from opening import library_settings

RUSSIAN = "Это книга о том, как она жила. " * 20 + "На столе сидел ёж. " + "И он не знал, что это было так. " * 20
ITALIAN = "Questa non è la casa che abbiamo visto, ma una di quelle che sono state fatte per lei."
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
