"""The language of what is indexed: told by a model where it is prose, by our own rules where it is a few words."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_languages import SENTENCES

from commonplace.text import told_language
from commonplace.text.languages import detect
from commonplace.text.told_language import language_of, language_version

UNTOLD = [
    ("no", "Kjelen står på kokeplaten, teen trekker noen minutter før den serveres rykende varm."),
    ("no", "Kjelen står på kokeplata, teen trekk nokre minutt før han blir servert rykande varm."),
    ("da", "Kedlen står på komfuret, teen trækker nogle minutter inden serveringen."),
    ("cs", "Čajová konvice stojí vedle kamen, voda začíná vřít, hrnky čekají připravené."),
    ("fi", "Teekannu seisoo hellalla, vesi kiehuu pian, kupit odottavat valmiina pöydällä."),
    ("et", "Teekann seisab pliidil ja vesi hakkab varsti keema, sest külalised jõuavad kohale õhtul."),
    ("lt", "Arbatinukas stovi ant viryklės, vanduo užverda, puodeliai laukia paruošti."),
    ("uk", "Чайник стоїть поруч з грубою, вода закипає, горнятка чекають готові."),
    ("sr", "Чајник стоји поред шпорета, вода почиње да кључа, шоље чекају."),
    ("fa", "کتری روی اجاق است و چای تا چند دقیقه دیگر آماده می‌شود"),
    ("vi", "Ấm nước đang ở trên bếp và trà sẽ sẵn sàng trong một phút nữa."),
]


@pytest.mark.parametrize(("language", "sentence"), [*SENTENCES, *UNTOLD])
def test_prose_tells_its_language(language: str, sentence: str) -> None:
    assert language_of(sentence) == language
    assert language_of(f"\n{sentence}\n\n{sentence}\r\n") == language


@pytest.mark.parametrize("text", ["", " \n", "Oolong", "tea pot", "El Niño 2016", "x = 1", "日本", "чай"])
def test_a_few_words_are_told_as_those_of_a_query(text: str) -> None:
    assert language_of(text) == detect(text)


def test_without_the_model_the_rules_for_queries_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    assert language_version() == "languages-2"
    language_version.cache_clear()
    monkeypatch.setattr(told_language, "_is_there", lambda: False)
    for _, sentence in UNTOLD:
        assert language_of(sentence) == detect(sentence)
    assert language_version() == "languages-1"
    language_version.cache_clear()


@given(st.text(max_size=300))
def test_any_text_has_a_language_or_none(text: str) -> None:
    assert language_of(text).isascii()


def test_many_threads_are_told_the_same() -> None:
    told: list[bool] = []

    def tell() -> None:
        told.extend(language_of(sentence) == language for language, sentence in UNTOLD * 50)

    threads = [threading.Thread(target=tell) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert told == [True] * 4 * 50 * len(UNTOLD)
