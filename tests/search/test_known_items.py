"""What alone holds the words of a query is the first hit, in every mode that looks at words, of every surface.

The items and the ways to ask are those of bench/known_items.py, which tries some hundred more.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from commonplace.library import Library
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
    assert sum(score >= least for score in right) >= ENOUGH * len(right), name
