"""Which model a library gets: that of the language most of it is written in, where that model is here."""

from __future__ import annotations

from pathlib import Path

import pytest

from commonplace.ingest.suited import better_model, first_choice, languages, suited
from commonplace.library import Library
from commonplace.model import Draft
from commonplace.models import DEFAULT, MULTILINGUAL, STATIC
from commonplace.settings import Settings
from opening import pretend_pulled

ENGLISH = "The water for the tea should not be too hot, or it will be bitter."
GERMAN = "Das Wasser für den Tee soll nicht zu heiß sein, sonst wird er bitter."
CHINESE = "泡茶的水不要太热，否则茶会变苦。"
SWEDISH = "Vattnet till teet ska inte vara för varmt, annars blir det beskt."


def put(library: Library, **counts: int) -> None:
    texts = {"en": ENGLISH, "de": GERMAN, "zh": CHINESE, "sv": SWEDISH, "none": "0123 4567"}
    library.put_many(
        Draft("note", f"{language}{number}", body=texts[language])
        for language, count in counts.items()
        for number in range(count)
    )


@pytest.mark.parametrize(
    ("counts", "model"),
    [
        ({}, DEFAULT),
        ({"en": 5}, DEFAULT),
        ({"de": 5}, MULTILINGUAL),
        ({"zh": 3, "de": 3, "en": 5}, MULTILINGUAL),
        ({"de": 4, "en": 5}, DEFAULT),
        ({"sv": 9}, DEFAULT),
        ({"none": 9, "zh": 2}, MULTILINGUAL),
    ],
)
def test_the_language_of_most_passages_decides(library: Library, counts: dict[str, int], model: str) -> None:
    put(library, **counts)
    assert suited(languages(library.store)) == model


def test_a_large_library_is_looked_into_all_over(library: Library) -> None:
    put(library, en=300)
    put(library, zh=900)
    found = languages(library.store)
    assert found["zh"] > found["en"] > 0
    assert sum(found.values()) <= 200


@pytest.mark.parametrize(
    ("pulled", "chosen"),
    [((), STATIC), ((DEFAULT,), DEFAULT), ((MULTILINGUAL,), MULTILINGUAL), ((DEFAULT, MULTILINGUAL), MULTILINGUAL)],
)
def test_the_first_embedding_takes_the_best_that_is_here(
    library: Library, tmp_path: Path, pulled: tuple[str, ...], chosen: str
) -> None:
    put(library, zh=3)
    settings = pretend_pulled(tmp_path / "pulled", *pulled)
    assert first_choice(library.store, settings) == chosen
    assert better_model(None, settings, library.store) == (None if chosen == MULTILINGUAL else MULTILINGUAL)


def test_what_is_set_wins(library: Library, tmp_path: Path) -> None:
    put(library, zh=3)
    settings = Settings(models=tmp_path, model="ollama:bge-m3")
    assert first_choice(library.store, settings) == "ollama:bge-m3"
    assert better_model(None, settings, library.store) is None


@pytest.mark.parametrize(
    ("language", "chosen", "better"),
    [
        ("en", STATIC, DEFAULT),
        ("en", DEFAULT, None),
        ("en", MULTILINGUAL, DEFAULT),
        ("zh", STATIC, MULTILINGUAL),
        ("zh", DEFAULT, MULTILINGUAL),
        ("zh", "minilm-l6-v2", MULTILINGUAL),
        ("zh", MULTILINGUAL, None),
        ("zh", "ollama:bge-m3", None),
        ("zh", "/some/folder", None),
    ],
)
def test_status_knows_what_would_find_more(
    library: Library, tmp_path: Path, language: str, chosen: str, better: str | None
) -> None:
    put(library, **{language: 3})
    assert better_model(chosen, Settings(models=tmp_path), library.store) == better
