"""Says what scores mean: how many hits of each band are relevant, for every judged set, and over kinds of text.

    python tools/measure_scores.py FOLDER-OF-JUDGED-COLLECTIONS --work LIBRARIES --sample 150 --model static

The first ten hits of each question are looked at, in three modes. A hit that nobody judged counts as not relevant,
which is too strict on sets that mark few of their relevant texts. The table in docs/search.md is what it prints.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from commonplace.evaluation.judged import JudgedCollection, find_judged, load_judged
from commonplace.evaluation.judged_run import fill, library_home
from commonplace.library import Library
from commonplace.model import Filter, Mode
from commonplace.models import STATIC, open_embedder
from commonplace.settings import Settings

MODES: tuple[Mode, ...] = ("lexical", "hybrid", "semantic")
BANDS = ((0.8, 1.01), (0.6, 0.8), (0.4, 0.6), (0.2, 0.4), (0.0, 0.2))
SHOWN = 10

Hits = NDArray[np.float64]
"""A row for each hit: its score, and whether it is relevant."""


def measured(collection: JudgedCollection, settings: Settings, work: Path) -> dict[Mode, Hits]:
    """Ask every question in every mode."""
    model = open_embedder(settings.model, settings.models, threads=settings.threads, settings=settings)
    home = library_home(collection, model, work)
    fill(home, collection, settings)
    with Library.open(home, settings=settings) as library:
        return {mode: _asked(library, collection, mode) for mode in MODES}


def _asked(library: Library, collection: JudgedCollection, mode: Mode) -> Hits:
    rows = []
    for question in collection.questions:
        keep = Filter(parents=(question.group,)) if question.group else Filter()
        hits = library.search(question.text, mode=mode, filter=keep, limit=SHOWN, snippet_length=1).hits
        rows += [(hit.score, question.grades.get(hit.item.key, 0) > 0) for hit in hits]
    return np.array(rows, np.float64).reshape(-1, 2)


def bands(hits: Hits) -> str:
    """How many hits each band has, and the share that is relevant."""
    cells = []
    for low, high in BANDS:
        inside = hits[(hits[:, 0] >= low) & (hits[:, 0] < high)]
        cells.append(f"{inside[:, 1].mean():.0%} of {len(inside)}" if len(inside) else "–")
    return " | ".join(cells)


def table(mode: Mode, sets: Sequence[tuple[str, Hits]]) -> None:
    print(f"\n| {mode} | 0.8 and more | 0.6 | 0.4 | 0.2 | below 0.2 |\n|---|---|---|---|---|---|")
    for name, hits in sets:
        print(f"| {name} | {bands(hits)} |")
    print(f"| all | {bands(np.concatenate([hits for _, hits in sets]))} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collections", type=Path)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--sample", type=int, default=150)
    parser.add_argument("--model", default=STATIC)
    given = parser.parse_args()
    settings = replace(Settings.load(), model=given.model, store="", store_owner="", index="local")
    collections = [load_judged(folder).sample(given.sample) for folder in find_judged(given.collections)]
    found = [(collection.name, measured(collection, settings, given.work)) for collection in collections]
    for mode in MODES:
        table(mode, [(name, hits[mode]) for name, hits in found])


if __name__ == "__main__":
    main()
