"""Questions made from a library's own passages: each has one right answer, which no longer holds the sentence asked."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.errors import InvalidInput
from commonplace.evaluation.probe import _harder, _sentences, known_items, sample_texts
from commonplace.library import Library
from commonplace.model import Draft, Filter

TOPICS = ("kettle", "harbour", "violin", "lichen", "comet", "bread", "engine", "glacier", "falcon", "loom")


def fill(library: Library, count: int) -> None:
    library.put_many(
        Draft(
            "note",
            str(number),
            title=f"On the {TOPICS[number % 10]}",
            body=f"Here is a word on the {TOPICS[number % 10]} number {number}. "
            f"Nobody who has seen the {TOPICS[number % 10]} at dawn{number} forgets what it looked like. It is late.",
        )
        for number in range(count)
    )


def test_each_question_has_one_answer_which_lost_its_sentence(library: Library) -> None:
    fill(library, 40)
    known = known_items(library.store, 40)
    texts = {document.id: document.text for document in known.documents}
    assert (len(known.documents), len(known.questions)) == (40, 40)
    for question in known.questions:
        assert question.grades == {question.id: 1}
        assert question.text not in texts[question.id]
        assert texts[question.id].strip()


def test_the_rarest_words_are_not_asked(library: Library) -> None:
    fill(library, 40)
    asked = [question.text for question in known_items(library.store, 40).questions]
    assert not any("dawn" in text for text in asked)
    assert all(len(text.split()) >= 4 for text in asked)


def test_a_sample_is_spread_over_items_and_over_long_ones(library: Library) -> None:
    fill(library, 100)
    assert len(sample_texts(library.store, 30)) == 30
    long = "\n\n".join(f"# Part {part}\n\n" + f"Sentence {part} of many words. " * 60 for part in range(40))
    library.put(Draft("document", "long.md", parent="docs", body=long, format="markdown"))
    library.delete_where(Filter(kinds=("note",)))
    assert len(set(sample_texts(library.store, 15))) == 15


def test_a_library_with_too_little_in_it_says_so(library: Library) -> None:
    with pytest.raises(InvalidInput, match="a comparison needs 20"):
        known_items(library.store, 100)
    library.put_many(Draft("note", str(number), body="One sentence only") for number in range(30))
    with pytest.raises(InvalidInput, match="Only 0 passages"):
        known_items(library.store, 100)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("One. Two! Three?", 3),
        ("茶很热。水不热。", 2),
        ("هل الماء ساخن؟ نعم.", 2),
        ("a line\nanother", 2),
        ("พรุ่งนี้ฝนจะตกหรือไม่ " * 20, 20),
    ],
)
def test_sentences_end_where_people_end_them(text: str, count: int) -> None:
    assert len(_sentences(text)) == count


@given(st.text(max_size=300))
def test_any_text_has_sentences_that_quote_it(text: str) -> None:
    for sentence in _sentences(text):
        assert 0 <= sentence.start < sentence.end <= len(text)
    assert isinstance(_harder(text, Counter()), str)
