"""Learns the weights of the built-in second look and says what they bring on sets they were not learned from.

    python tools/train_reranker.py FOLDER-OF-JUDGED-COLLECTIONS --work LIBRARIES --sample 500

Prints, for every set and model, nDCG@10 before and after with weights learned from all the other sets, and the 95 %
interval of the difference; then the weights learned from all sets, which are the table in `search/rerank.py`. They are
learned with all models at once, because what helps beside a strong model may harm beside a weak one. `--without`
leaves features out. The data stays where it is: what is learned are nine numbers.
"""

from __future__ import annotations

import argparse
import pickle
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from commonplace.evaluation.judged import JudgedCollection, find_judged, load_judged
from commonplace.evaluation.judged_run import fill, library_home
from commonplace.evaluation.ranking_metrics import paired
from commonplace.library import Library
from commonplace.model import CHUNK_BITS, Filter
from commonplace.models import DEFAULT, STATIC, open_embedder
from commonplace.search.request import Request
from commonplace.search.rerank import CANDIDATES, SecondLook
from commonplace.search.rerank_features import FEATURES
from commonplace.settings import Settings
from commonplace.store.items import Items

Floats = NDArray[np.float64]
STEPS = (-0.4, -0.2, -0.1, -0.05, 0.05, 0.1, 0.2, 0.4)
ROUNDS = 3
LOSS_WEIGHT = 1.0
"""A set that loses counts twice: never to be worse is worth more than to be a little better."""
_DISCOUNTS = 1 / np.log2(np.arange(10) + 2)


@dataclass(frozen=True, slots=True)
class Table:
    """The candidates of a set's questions: scores, features and gains, padded to the same length."""

    name: str
    model: str
    scores: Floats
    features: Floats
    gains: Floats
    ideals: Floats

    def measured(self, weights: Floats) -> Floats:
        """nDCG@10 of every question."""
        return self.ndcg(self.scores + self.features @ weights)

    def ndcg(self, scores: Floats) -> Floats:
        best = np.argsort(-scores, axis=1, kind="stable")[:, :10]
        return np.asarray((np.take_along_axis(self.gains, best, axis=1) * _DISCOUNTS).sum(axis=1) / self.ideals)


def tabulate(collection: JudgedCollection, settings: Settings, work: Path, *, expand: bool = False) -> Table:
    """Ask every question and keep what a second look would see."""
    model = open_embedder(settings.model or None, settings.models, threads=settings.threads)
    home = library_home(collection, model, work)
    fill(home, collection, settings)
    count = len(collection.questions)
    scores, gains = np.full((count, CANDIDATES), -1e9), np.zeros((count, CANDIDATES))
    matrix, ideals = np.zeros((count, CANDIDATES, len(FEATURES))), np.zeros(count)
    with Library.open(home, settings=settings) as library:
        look = SecondLook(library.store)
        for row, question in enumerate(collection.questions):
            keep = Filter(parents=(question.group,)) if question.group else Filter()
            asked, found = library.engine.candidates(Request(question.text, "hybrid", keep, expand=expand))
            rows, found = look.features(asked, found)
            keys = {
                item.id: item.key for item in library.store.drawer(Items).get((found.chunks >> CHUNK_BITS).tolist())
            }
            grades = [question.grades.get(keys[item], 0) for item in (found.chunks >> CHUNK_BITS).tolist()]
            scores[row, : len(rows)], matrix[row, : len(rows)] = found.scores, rows
            gains[row, : len(rows)] = np.maximum(grades, 0)
            best = sorted((grade for grade in question.grades.values() if grade > 0), reverse=True)[:10]
            ideals[row] = float(np.array(best) @ _DISCOUNTS[: len(best)])
    return Table(collection.name, model.name, scores, matrix, gains, ideals)


def learn(tables: Sequence[Table], open_features: Sequence[int]) -> Floats:
    """Coordinate ascent on the mean gain in nDCG@10 over the sets, in steps that grow smaller."""
    scores, weights = [table.scores for table in tables], np.zeros(len(FEATURES))
    before = np.array([table.ndcg(table.scores).mean() for table in tables])

    def worth(feature: int, step: float) -> float:
        pairs = zip(tables, scores, strict=True)
        gains = [table.ndcg(score + step * table.features[:, :, feature]).mean() for table, score in pairs] - before
        simple = np.abs(weights).sum() - abs(weights[feature]) + abs(weights[feature] + step)
        return float(gains.mean() + LOSS_WEIGHT * np.minimum(gains, 0).mean() - 1e-4 * simple)

    best = 0.0
    for number in range(ROUNDS):
        for feature in open_features:
            found, step = max((worth(feature, step), step) for step in np.array(STEPS) / 2 ** max(0, number - 1))
            if found > best + 1e-5:
                best = found
                weights[feature] += step
                scores = [
                    score + step * table.features[:, :, feature] for table, score in zip(tables, scores, strict=True)
                ]
    return weights


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--work", type=Path, required=True, help="where the measured libraries are kept")
    parser.add_argument("--sample", type=int, default=500, help="questions of each set, evenly spaced")
    parser.add_argument("--models", nargs="+", default=[DEFAULT, STATIC], help="models of the measured libraries")
    parser.add_argument("--expand", action="store_true", help="look at what an expanded query finds")
    parser.add_argument("--without", nargs="*", default=(), choices=[*FEATURES], help="features to leave out")
    parser.add_argument("--tables", type=Path, help="a file that keeps the candidates for the next time")
    options = parser.parse_args()
    if options.tables and options.tables.is_file():
        tables = pickle.loads(options.tables.read_bytes())  # noqa: S301  # a file of one's own
    else:
        collections = [load_judged(folder).sample(options.sample) for folder in find_judged(options.folder)]
        settings = [replace(Settings.load(), model=model) for model in options.models]
        tables = [
            tabulate(collection, chosen, options.work, expand=options.expand)
            for chosen in settings
            for collection in collections
        ]
        if options.tables:
            options.tables.write_bytes(pickle.dumps(tables))
    report(tables, [number for number, name in enumerate(FEATURES) if name not in options.without])


def report(tables: Sequence[Table], open_features: Sequence[int]) -> None:
    """Leave one set out, learn from the rest, measure on it."""
    print("| set | model | questions | before | after | change | 95 % | p |\n|---|---|---|---|---|---|---|---|")
    changes: dict[str, list[float]] = {}
    for name in dict.fromkeys(table.name for table in tables):
        weights = learn([other for other in tables if other.name != name], open_features)
        for table in (table for table in tables if table.name == name):
            before, after = table.measured(np.zeros(len(FEATURES))), table.measured(weights)
            change = paired(before, after)
            changes.setdefault(table.model, []).append(change.difference)
            print(
                f"| {name} | {table.model} | {len(before)} | {before.mean():.4f} | {after.mean():.4f} "
                f"| {change.difference:+.4f} | {change.low:+.3f} to {change.high:+.3f} | {change.p:.3f} |",
                flush=True,
            )
    for model, found in changes.items():
        print(f"\n{model}: mean of {len(found)} sets left out {np.mean(found):+.4f}, least {min(found):+.4f}")
    print()
    weights = learn(tables, open_features)
    for name, weight in zip(FEATURES, weights, strict=True):
        print(f'    "{name}": {weight:.3f},')


if __name__ == "__main__":
    main()
