"""What the leg by words asks of its index, and what it knows without asking."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from commonplace.index.followers import WordReader
from commonplace.index.scope import Scope
from commonplace.library import Library
from commonplace.model import CHUNK_BITS, Draft, Filter
from commonplace.search.engine import with_complete
from commonplace.search.legs import LexicalLeg
from commonplace.search.plan import plan_lexical
from commonplace.search.request import parse
from commonplace.store.listing import Listing

KEYS = ("one", "two", "three", "four")


@pytest.fixture
def filled(library: Library) -> Library:
    bodies = ("fencing tokens", "fencing tokens", "fencing alone", "tokens alone")
    library.put_many(
        Draft("document", key, parent="ab"[place % 2], title=key, body=body)
        for place, (key, body) in enumerate(zip(KEYS, bodies, strict=True))
    )
    return library


def leg(words: WordReader, text: str, scope: Scope) -> LexicalLeg:
    return LexicalLeg(words, plan_lexical(parse(text), words), scope)


def searches(library: Library, text: str, scope: Scope, monkeypatch: pytest.MonkeyPatch) -> tuple[list[int], int]:
    """The items with all words that a leg lets through, and how often it asked the index for passages."""
    asked: list[object] = []

    def work(words: WordReader) -> list[int]:
        search, one = type(words).search, leg(words, text, scope)
        complete = replace(one, plan=plan_lexical(parse("fencing tokens"), words)).complete()
        assert len(complete) == 2
        monkeypatch.setattr(type(words), "search", lambda *args: asked.append(args) or search(*args))  # type: ignore[func-returns-value]
        inside = one.inside(complete) >> CHUNK_BITS
        monkeypatch.undo()
        return inside.tolist()

    return library.lexical.ask(work), len(asked)


def test_passages_with_all_words_are_told_by_their_items_where_these_are_known(
    filled: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = filled.store.drawer(Listing).select(Filter(parents=("a",)))
    everywhere = [item.id for item in map(filled.get, ("qmd://a/one", "qmd://b/two"))]
    assert searches(filled, "fencing tokens", Scope(), monkeypatch) == (everywhere, 0)
    assert searches(filled, "fencing tokens", Scope(without=ids), monkeypatch) == (everywhere[1:], 0)
    assert searches(filled, "fencing tokens", Scope(items=ids), monkeypatch) == (everywhere[:1], 0)
    assert searches(filled, "fencing tokens", Scope(parents=("a",), known=ids), monkeypatch) == (everywhere[:1], 0)


def test_the_index_is_asked_for_what_their_items_do_not_tell(filled: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    everywhere = [item.id for item in map(filled.get, ("qmd://a/one", "qmd://b/two"))]
    assert searches(filled, "fencing tokens", Scope(parents=("a",)), monkeypatch) == (everywhere[:1], 1)
    assert searches(filled, '"tokens fencing" fencing tokens', Scope(), monkeypatch) == ([], 1)
    assert searches(filled, "fencing tokens -fencing", Scope(), monkeypatch) == ([], 1)


def test_a_list_with_fewer_passages_than_it_may_have_lacks_none(filled: Library) -> None:
    def work(words: WordReader) -> None:
        one = leg(words, "fencing tokens", Scope())
        found = one.candidates(50)
        nothing = np.array([1 << CHUNK_BITS, 99 << CHUNK_BITS])
        assert with_complete(one, found, nothing, 50) is found
        first = found[0][:1], found[1][:1]
        assert set(with_complete(one, first, one.complete(), 1)[0].tolist()) == set(found[0][:2].tolist())

    filled.lexical.ask(work)
