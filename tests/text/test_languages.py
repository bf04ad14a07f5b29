"""Languages: told by script and by common words, or not at all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.text.languages import LANGUAGES, UNKNOWN, detect, stemmer

SENTENCES = [
    ("en", "The kettle is on the stove and the tea will be ready when you are."),
    ("de", "Der Kessel steht auf dem Herd, und der Tee ist gleich für dich fertig."),
    ("fr", "La bouilloire est sur le feu et le thé sera prêt dans une minute pour vous."),
    ("es", "La tetera está en el fuego y el té estará listo para todos en un minuto."),
    ("it", "Il bollitore è sul fuoco e il tè sarà pronto per tutti in un minuto."),
    ("pt", "A chaleira está no fogo e o chá não vai demorar mais do que um minuto."),
    ("nl", "De ketel staat op het fornuis en de thee is zo klaar voor iedereen."),
    ("sv", "Kitteln står på spisen och teet är snart klart för alla som vill ha det."),
    ("fi", "Kattila on liedellä ja tee on pian valmista, mutta se ei ole vielä kuumaa."),
    ("pl", "Czajnik jest na kuchence, a herbata nie jest jeszcze gotowa, ale to się zmieni."),
    ("tr", "Çaydanlık ocakta ve çay bir dakika sonra herkes için hazır olacak, ama daha değil."),
    ("cs", "Konvice je na plotně a čaj bude za chvíli, ale když se nevaří, je to špatně."),
    ("ru", "Чайник стоит на плите, и чай будет готов через минуту, но не для всех."),
    ("uk", "Чайник стоїть на плиті, та чай буде за хвилину, але це не для всіх."),
    ("ja", "やかんは火にかけてあり、お茶はすぐに用意できます。"),
    ("zh", "水壶在炉子上，茶马上就好了。"),
    ("ko", "주전자는 불 위에 있고 차는 곧 준비됩니다."),
    ("ar", "الغلاية على النار والشاي سيكون جاهزا خلال دقيقة."),
    ("he", "הקומקום על האש והתה יהיה מוכן בעוד דקה."),
    ("el", "Ο βραστήρας είναι στη φωτιά και το τσάι θα είναι έτοιμο."),
    ("th", "กาน้ำอยู่บนเตาและชาจะพร้อมในไม่ช้า"),
    ("hi", "केतली चूल्हे पर है और चाय जल्द तैयार होगी।"),
]


@pytest.mark.parametrize(("language", "sentence"), SENTENCES)
def test_a_sentence_tells_its_language(language: str, sentence: str) -> None:
    assert detect(sentence) == language


@pytest.mark.parametrize("text", ["", "   ", "1234 5678", "xyzzy plugh", "🍵🍵", "→ 42 €", "def f(x): return x + 1"])
def test_what_has_no_language_has_none(text: str) -> None:
    assert detect(text) == UNKNOWN


@pytest.mark.parametrize(
    "text", ["The 東京 office is in the city and it is old.", "We wrote об этом in the notes of the day."]
)
def test_a_few_foreign_words_do_not_change_the_language(text: str) -> None:
    assert detect(text) == "en"


@given(st.text(max_size=200))
def test_any_text_has_a_language_or_none(text: str) -> None:
    assert len(detect(text)) in (2, 3)
    assert detect(text) == detect(text)


@pytest.mark.parametrize(
    ("language", "word", "other"),
    [
        ("en", "running", "runs"),
        ("de", "Häuser", "Hauses"),
        ("fr", "chevaux", "cheval"),
        ("ru", "книги", "книга"),
        ("es", "libros", "libro"),
    ],
)
def test_a_stemmer_joins_the_forms_of_a_word(language: str, word: str, other: str) -> None:
    snowball = stemmer(language)
    assert snowball is not None
    a, b = snowball.stemWords([word.lower(), other.lower()])
    assert a == b or a[:4] == b[:4]


def test_a_language_without_a_stemmer_has_none() -> None:
    assert stemmer("zh") is None
    assert stemmer(UNKNOWN) is None
    assert all(stemmer(language) is not None for language in LANGUAGES)
