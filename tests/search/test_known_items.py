"""What alone holds the words of a query is the first hit, in every mode that looks at words, of every surface.

The items and the ways to ask are those of bench/known_items.py, which tries some hundred more.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

import pytest

from commonplace.library import Library
from commonplace.model import Draft
from commonplace.text.analyze import stems
from opening import ON_FILES

ITEMS, TEXTS, ENOUGH = 80, 240, 0.98


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    path = Path(__file__).parents[2] / "bench" / "known_items.py"
    spec = importlib.util.spec_from_file_location("known_items", path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["known_items"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Drafts:
    """What the bench would store: the words of every item and of what it is part of, by key."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def put(self, draft: Draft) -> None:
        self.texts[draft.key] = f"{draft.key} {draft.title} {draft.body} {self.texts.get(draft.parent or '', '')}"

    def put_many(self, drafts: Iterable[Draft]) -> None:
        for draft in drafts:
            self.put(draft)

    def embed(self) -> None:
        """Do nothing: only words are looked at."""


@pytest.mark.parametrize("index", ["local"])
def test_no_other_item_has_the_words_of_a_known_one_in_its_text_or_its_name(bench: ModuleType, index: str) -> None:
    shelf, drafts = bench.shelf(700), Drafts()
    bench.fill(drafts, shelf.texts)
    words = {key: frozenset(stems(text, "en").split()) for key, text in drafts.texts.items()}
    shared = {}
    for item in shelf.items:
        asked = frozenset(stems(item.query, "en").split())
        shared[item.query] = [key for key in words if key != item.key and asked <= words[key]]
    assert {query: keys for query, keys in shared.items() if keys} == {}


@pytest.mark.slow
@ON_FILES
@pytest.mark.parametrize("index", ["local"], indirect=True)
def test_what_alone_has_the_words_is_the_first_hit_and_scores_it(bench: ModuleType, library: Library) -> None:
    """A service is asked for passages with all words only where one of them is rare, so this is of the local index."""
    shelf = bench.shelf(ITEMS, texts=TEXTS)
    assert {item.kind for item in shelf.items} == set(bench.KINDS)
    bench.fill(library, shelf.texts)
    for name, (ask, kinds) in bench.asks(library).items():
        _check(bench, name, ask, [item for item in shelf.items if item.kind in kinds])
    ask = bench.tabled(library, {**shelf.texts["notes"], **shelf.texts["chats"]})
    # Each row says what a note says, too: two have all words.
    _check(bench, "tables", ask, [item for item in shelf.items if item.kind == "notes"], least=0.65)


def _check(bench: ModuleType, name: str, ask: object, items: list[object], least: float = 0.75) -> None:
    """hit@1, or hit@10 by meaning alone, and what is found alone scores 0.75 at least."""
    depth = 10 if "semantic" in name else 1
    found = [dict(ask(item.query, depth)).get(item.key) for item in items]  # type: ignore[operator, attr-defined]
    right = [score for score in found if score is not None]
    assert len(right) >= ENOUGH * len(items), name
    assert min(right) >= least, name
