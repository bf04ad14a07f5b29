"""Says what scores mean and fits what makes them: how many hits of each band are relevant, for sets not fitted on.

    python tools/measure_scores.py FOLDER-OF-JUDGED-COLLECTIONS --work LIBRARIES --sample 150
    python tools/measure_scores.py FOLDER --work LIBRARIES --models static arctic-embed-s --documents 1400

The first ten hits of each question are looked at, by words, with meaning, and by meaning alone. Prints, for every model
and mode, the share of the hits at 0.8 and more and at 0.2 and less that is relevant: with the numbers that are shipped,
and with numbers fitted on all other kinds of text. The last line is `EVIDENCE` of search/scale.py, fitted on all kinds.

The fit is a logistic regression of "is relevant" on the evidence and on how many passages there are, in which every
kind, model and mode weighs the same. It is flattened so that 0.8 is where nine in ten are relevant and 0.2 where one in
ten is. Nearness alone has no numbers to fit: it never says 0.8.

A hit that nobody judged counts as not relevant. Sets with more than two relevant texts a question are set apart by that
rule alone: their questions name a topic, of which nobody marked all texts, so what is printed of them is the least.
"""

from __future__ import annotations

import argparse
import math
import pickle
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from commonplace.evaluation.judged import JudgedCollection, JudgedQuestion, find_judged, load_judged
from commonplace.evaluation.judged_run import fill, library_home
from commonplace.index.followers import WordReader
from commonplace.index.scope import Scope, among
from commonplace.library import Library
from commonplace.model import CHUNK_BITS, Filter, Mode
from commonplace.models import STATIC, open_embedder
from commonplace.search.legs import LexicalLeg, scale_of
from commonplace.search.request import Request
from commonplace.search.scale import EVIDENCE, Scale, chances, completed, least_of, pressed
from commonplace.settings import Settings
from commonplace.store.items import Items
from commonplace.text.languages import detect

Floats = NDArray[np.float64]

MODES: Mapping[Mode, str] = {"lexical": "words", "hybrid": "both", "semantic": "meaning"}
KINDS = {"scifact": "claims", "nfcorpus": "health", "cranfield": "aeronautics", "cosqa": "code", "locomo": "chats"}
ENCYCLOPEDIA = "encyclopedia"
"""The kind of all sets that are not named above: questions and the paragraphs that they were written from."""

SHOWN = 10
MARKED = 2.0
"""Relevant texts a question up to which a set is taken to mark all of them."""

SURE, UNSURE, NINE_IN_TEN = 0.8, 0.2, 0.9
FLATTENED = math.log(SURE / (1 - SURE)) / math.log(NINE_IN_TEN / (1 - NINE_IN_TEN))
RIDGE, ROUNDS = 1e-3, 50
COLUMNS = ("score", "relevant", "evidence", "chances", "most", "least", "complete")
"""What is kept of a hit: `least` is 0 where no passage has all words, `complete` whether this one has."""


@dataclass(frozen=True, slots=True)
class Hits:
    """The hits of a set's questions in one mode with one model, a row each."""

    name: str
    model: str
    mode: Mode
    marked: float
    rows: Floats

    @property
    def kind(self) -> str:
        return next((kind for name, kind in KINDS.items() if self.name.startswith(name)), ENCYCLOPEDIA)

    @property
    def is_whole(self) -> bool:
        return self.marked <= MARKED

    def column(self, name: str) -> Floats:
        return self.rows[:, COLUMNS.index(name)]

    def scores(self, constants: Sequence[float]) -> Floats:
        """Return the scores that other constants would give; those of meaning alone have none."""
        if self.mode == "semantic":
            return self.column("score")
        unit, chance, start = constants
        sure = self.column("most") * pressed(unit * self.column("evidence") + chance * self.column("chances") + start)
        least = self.column("least")
        bounded = completed(sure, self.column("complete") > 0, least)
        return np.where(least > 0, bounded, sure).round(4)


def hits_of(collection: JudgedCollection, settings: Settings, work: Path) -> list[Hits]:
    """Ask every question in every mode."""
    model = open_embedder(settings.model, settings.models, threads=settings.threads, settings=settings)
    home = library_home(collection, model, work)
    fill(home, collection, settings)
    marked = float(np.mean([sum(grade > 0 for grade in question.grades.values()) for question in collection.questions]))
    with Library.open(home, settings=settings) as library:
        return [
            Hits(
                collection.name,
                model.name,
                mode,
                marked,
                np.concatenate([_rows(library, q, mode) for q in collection.questions]),
            )
            for mode in MODES
        ]


def _rows(library: Library, question: JudgedQuestion, mode: Mode) -> Floats:
    keep = Filter(parents=(question.group,)) if question.group else Filter()
    query, found = library.engine.candidates(Request(question.text, mode, keep, limit=SHOWN))

    def facts(words: WordReader) -> tuple[Scale, int]:
        leg = LexicalLeg(words, query.plan, Scope())
        return scale_of(leg, query.near, found.weights, leg.complete()), words.passages()

    scale, passages = library.lexical.ask(facts)
    chunks, values, unknown = found.chunks[:SHOWN], found.scores[:SHOWN], np.isnan(found.vector[:SHOWN])
    sureness, (unit, chance, start) = scale.sureness(values, unknown), EVIDENCE
    keys = {item.id: item.key for item in library.store.drawer(Items).get((chunks >> CHUNK_BITS).tolist())}
    rows = np.zeros((len(chunks), len(COLUMNS)))
    rows[:, 0] = scale.scores(chunks, values, unknown).round(4)
    rows[:, 1] = [question.grades.get(keys[item], 0) > 0 for item in (chunks >> CHUNK_BITS).tolist()]
    rows[:, 2] = (sureness - chance * chances(passages) - start) / unit
    rows[:, 3], rows[:, 4] = chances(passages), scale.most
    if len(scale.complete):
        rows[:, 5], rows[:, 6] = least_of(scale.complete), among(chunks, scale.complete)
    return rows[np.isfinite(rows).all(axis=1)]


def fitted(sets: Sequence[Hits]) -> tuple[float, float, float]:
    """Return the constants fitted on these sets, flattened and rounded."""
    groups: dict[tuple[str, str, str], list[Hits]] = {}
    for hits in sets:
        if hits.mode != "semantic":
            groups.setdefault((hits.kind, hits.model, hits.mode), []).append(hits)
    rows = [np.concatenate([hits.rows for hits in group]) for group in groups.values()]
    table, weights = np.concatenate(rows), np.concatenate([np.full(len(part), 1.0 / len(part)) for part in rows])
    features = np.column_stack([table[:, 2], table[:, 3], np.ones(len(table))])
    found = FLATTENED * _regression(features, table[:, 1], weights * len(table) / len(rows))
    return round(float(found[0]), 2), round(float(found[1]), 2), round(float(found[2]), 2)


def _regression(features: Floats, relevant: Floats, weights: Floats) -> Floats:
    """Return the weights of a logistic regression, by Newton's method."""
    found = np.zeros(features.shape[1])
    for _ in range(ROUNDS):
        share = 1.0 / (1.0 + np.exp(-features @ found))
        slope = features.T @ (weights * (relevant - share)) - RIDGE * found
        bend = (features.T * (weights * share * (1.0 - share))) @ features + RIDGE * np.eye(len(found))
        found = found + np.linalg.solve(bend, slope)
    return found


def share(scores: Floats, relevant: Floats, low: float, high: float) -> str:
    inside = (scores >= low) & (scores <= high)
    return f"{relevant[inside].mean():.0%} of {inside.sum()}" if inside.any() else "–"


HEADS = ("0.8 and more", "0.6", "0.4", "above 0.2", "0.2 and less", "left out: 0.8 and more", "left out: 0.2 and less")
BANDS = ((SURE, 1.0), (0.6, 0.7999), (0.4, 0.5999), (UNSURE + 0.0001, 0.3999), (0.0, UNSURE))


def table(sets: Sequence[Hits], left_out: Mapping[str, Sequence[float]]) -> None:
    """Print a row for each kind: the bands as shipped, and the outer ones with constants of the other kinds."""
    print(f"\n| {MODES[sets[0].mode]}, {sets[0].model} | {' | '.join(HEADS)} |\n|{'---|' * (len(HEADS) + 1)}")
    kinds = sorted({hits.kind for hits in sets}, key=lambda kind: (not _of(sets, kind)[0].is_whole, kind))
    rows = {kind + ("" if _of(sets, kind)[0].is_whole else " *"): _of(sets, kind) for kind in kinds}
    rows["all but *"] = [hits for hits in sets if hits.is_whole]
    rows["all"] = list(sets)
    for name, some in rows.items():
        if not some:
            continue
        relevant = np.concatenate([hits.column("relevant") for hits in some])
        shipped = np.concatenate([hits.column("score") for hits in some])
        fresh = np.concatenate([hits.scores(left_out[hits.kind]) for hits in some])
        cells = [share(shipped, relevant, *band) for band in BANDS]
        cells += [share(fresh, relevant, *band) for band in (BANDS[0], BANDS[-1])]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def _of(sets: Sequence[Hits], kind: str) -> list[Hits]:
    return [hits for hits in sets if hits.kind == kind]


def fewer(collection: JudgedCollection, documents: int | None) -> JudgedCollection:
    """Return a collection with at most so many documents, or the relevant ones where those are more."""
    if documents is None or len(collection.documents) <= documents:
        return collection
    needed = {key for question in collection.questions for key, grade in question.grades.items() if grade > 0}
    others = [document for document in collection.documents if document.id not in needed]
    random.Random(1).shuffle(others)  # noqa: S311  # the same every time
    kept = needed.union(document.id for document in others[: max(0, documents - len(needed))])
    return replace(collection, documents=tuple(document for document in collection.documents if document.id in kept))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collections", type=Path)
    parser.add_argument("--work", type=Path, required=True, help="where the measured libraries are kept")
    parser.add_argument("--sample", type=int, default=150, help="questions of each set, evenly spaced")
    parser.add_argument("--models", nargs="+", default=[STATIC])
    parser.add_argument("--documents", type=int, help="documents of each set for models other than the static one")
    parser.add_argument("--hits", type=Path, help="a file that keeps what was asked for the next time")
    options = parser.parse_args()
    if options.hits and options.hits.is_file():
        sets: list[Hits] = pickle.loads(options.hits.read_bytes())  # noqa: S301  # a file of one's own
    else:
        sets = collected(options)
    if options.hits:
        options.hits.write_bytes(pickle.dumps(sets))
    left_out = {kind: fitted([hits for hits in sets if hits.kind != kind]) for kind in {hits.kind for hits in sets}}
    for model in dict.fromkeys(hits.model for hits in sets):
        for mode in MODES:
            table([hits for hits in sets if (hits.model, hits.mode) == (model, mode)], left_out)
    print("\n* more than two relevant texts a question:", sorted({hits.name for hits in sets if not hits.is_whole}))
    print("fitted without:", {kind: left_out[kind] for kind in sorted(left_out)})
    print("fitted on all:", fitted(sets), "shipped:", EVIDENCE)


def collected(options: argparse.Namespace) -> list[Hits]:
    """Return the hits of all sets with the static model, and of sets in their languages with others."""
    sets: list[Hits] = []
    for model in options.models:
        settings = replace(Settings.load(), model=model, store="", store_owner="", index="local")
        languages = open_embedder(model, settings.models, threads=settings.threads, settings=settings).languages
        for folder in find_judged(options.collections):
            collection = load_judged(folder).sample(options.sample)
            if model != STATIC:
                if detect("\n".join(question.text for question in collection.questions[:50])) not in languages:
                    continue
                collection = fewer(collection, options.documents)
            sets += hits_of(collection, settings, options.work)
    return sets


if __name__ == "__main__":
    main()
