"""Windows on texts: the same whether a text is looked through in one go or in stretches, and no further than it takes.

1. A text in stretches has the matches of the whole, words at the seams included.
2. A long text is looked through until there are matches enough, and for earlier queries only where a window may be.
3. Earlier queries decide between windows that say equally much.
"""

from __future__ import annotations

from random import Random

import pytest

from commonplace.index.words.lexical_query import LexicalQuery
from commonplace.kinds.knowledge import item_snippets
from commonplace.kinds.knowledge.item_snippets import MOST_MATCHES, AnalyzedQuery, Snippets  # type: ignore[attr-defined]
from commonplace.text.matches import Matcher
from commonplace.text.terms import Term

TEA, HOT = Term(("tea",), 1.0, "word"), Term(("hot",), 1.0, "word")
KETTLE = Term(("kettl",), 1.0, "word")


def snippets(*terms: Term, recent: tuple[Term, ...] = ()) -> Snippets:
    return Snippets(AnalyzedQuery(LexicalQuery(terms), 0, ("en",), lambda strength, ceilings: strength), recent)


@pytest.fixture
def looked_through(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How long the texts were that were looked through."""
    lengths: list[int] = []
    find = Matcher.find

    def noting(matcher: Matcher, text: str) -> list[tuple[int, int, int]]:
        lengths.append(len(text))
        return find(matcher, text)

    monkeypatch.setattr(Matcher, "find", noting)
    return lengths


def test_a_text_in_stretches_has_the_matches_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(3)
    said = ["tea", "hot-tea", "Hot", "cold", "茶を飲む", "tea,", "x" * 70, "\n", "\u3000", "Tea's"]
    asked = snippets(TEA, HOT, Term(("茶を",), 1.0, "word"))
    for _ in range(50):
        text = " ".join(random.choices(said, k=random.randint(0, 80)))
        whole = asked.matches(text)
        assert whole == asked._content.find(text)
        for stretch in (1, 7, 40):
            monkeypatch.setattr(item_snippets, "STRETCH", stretch)
            assert asked.matches(text) == whole
        monkeypatch.undo()


def test_a_long_text_is_looked_through_until_there_are_matches_enough(looked_through: list[int]) -> None:
    text = "the tea is hot, " * 200_000
    found = snippets(TEA).matches(text)
    assert len(found) == MOST_MATCHES
    assert found[-1][0] == 16 * (MOST_MATCHES - 1) + 4
    assert sum(looked_through) < 200_000
    looked_through.clear()
    assert snippets(KETTLE).matches(text + "kettle") == [(len(text), len(text) + 6, 0)]
    assert sum(looked_through) == len(text) + 6


def test_earlier_queries_are_looked_for_only_where_a_window_may_be(looked_through: list[int]) -> None:
    text = "tea " + "the kettle is on " * 200_000 + "tea with a kettle"
    asked = snippets(TEA, recent=(KETTLE, HOT))
    assert asked.window(text, 60).text.startswith("tea the kettle")
    assert sum(looked_through) < len(text) + 10_000


def test_earlier_queries_decide_between_windows_that_say_equally_much() -> None:
    text = f"tea {'and more ' * 50}tea kettle {'and more ' * 50}tea hot kettle {'and more ' * 50}kettles tea"
    assert "tea hot kettle" in snippets(TEA, recent=(KETTLE, HOT)).window(text, 60).text
    assert "tea kettle" in snippets(TEA, recent=(KETTLE,)).window(text, 60).text
    assert snippets(TEA).window(text, 60).text.startswith("tea and more")
