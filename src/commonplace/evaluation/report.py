"""The results of an evaluation, per query, the comparison of two, and both as Markdown.

A table also reads well as plain text: its columns are padded to line up.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import numpy as np

from commonplace.errors import InvalidInput
from commonplace.evaluation.ranking_metrics import Interval, Paired, Values, bootstrap, paired
from commonplace.index.sealed_files import write_atomically
from commonplace.model import JSON

NDCG, RECALL, DEEP_RECALL, MRR = "ndcg@10", "recall@10", "recall@100", "mrr@10"
METRICS = (NDCG, RECALL, DEEP_RECALL, MRR)
CPU = "cpu_ms"
LEGS, HYBRID = ("lexical", "semantic"), "hybrid"
STAGES = ("expand", "rerank", "full")
"""The stages after fusion, and all of them together."""
FORMAT = 1


@dataclass(frozen=True, slots=True)
class ModeResult:
    """The result of one mode over one set: a column per metric and one of CPU time, in the order of the queries."""

    columns: Mapping[str, tuple[float, ...]]

    def mean(self, column: str) -> float:
        return float(np.mean(self.columns[column]))

    def interval(self, metric: str) -> Interval:
        return bootstrap(self.columns[metric])


@dataclass(frozen=True, slots=True)
class SetResult:
    """The results of one collection, asked in several modes."""

    name: str
    model: str
    documents: int
    queries: tuple[str, ...]
    modes: Mapping[str, ModeResult]

    def better_leg(self) -> str | None:
        """Return the leg that alone has the higher nDCG; None where no leg was asked alone."""
        legs = [leg for leg in LEGS if leg in self.modes]
        return max(legs, key=lambda leg: self.modes[leg].mean(NDCG), default=None)

    def gain(self) -> Paired | None:
        """Return what fusion adds to the better leg, in nDCG; None where either was not measured."""
        leg = self.better_leg()
        if leg is None or HYBRID not in self.modes:
            return None
        return paired(self.modes[leg].columns[NDCG], self.modes[HYBRID].columns[NDCG])

    def gain_of(self, mode: str) -> Paired | None:
        """Return what a stage after fusion adds to it, in nDCG; None where either was not measured."""
        if HYBRID not in self.modes or mode not in self.modes:
            return None
        return paired(self.modes[HYBRID].columns[NDCG], self.modes[mode].columns[NDCG])


@dataclass(frozen=True, slots=True)
class Run:
    """An evaluation: any number of sets, measured with one state of the engine."""

    sets: tuple[SetResult, ...]

    def to_json(self) -> dict[str, JSON]:
        return {"format": FORMAT, "sets": [_set_to_json(result) for result in self.sets]}

    @classmethod
    def from_json(cls, value: JSON) -> Run:
        if value["format"] != FORMAT:
            raise ValueError(f"its format is {value['format']}, not {FORMAT}")
        return cls(tuple(_set_from_json(entry) for entry in value["sets"]))


@dataclass(frozen=True, slots=True)
class Comparison:
    """A metric of one mode on one set, before and after."""

    name: str
    mode: str
    metric: str
    before: float
    after: float
    change: Paired
    queries: int


def compare(before: Run, after: Run) -> list[Comparison]:
    """Return paired tests of everything both runs measured, over the queries both asked."""
    earlier = {result.name: result for result in before.sets}
    return [
        _comparison(earlier[result.name], result, mode, metric)
        for result in after.sets
        if result.name in earlier and set(earlier[result.name].queries) & set(result.queries)
        for mode in result.modes
        if mode in earlier[result.name].modes
        for metric in METRICS
    ]


def save_run(run: Run, path: Path) -> None:
    """Store a run so that a later one can be compared with it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, json.dumps(run.to_json(), ensure_ascii=False).encode())


def load_run(path: Path) -> Run:
    """Return a stored run.

    Raise InvalidInput, which names the file, for one of another version or of something else.
    """
    try:
        return Run.from_json(json.loads(path.read_bytes()))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidInput(f"{path} is no stored evaluation: {error}. Run the evaluation again.") from error


def _comparison(before: SetResult, after: SetResult, mode: str, metric: str) -> Comparison:
    shared = set(before.queries) & set(after.queries)
    a, b = _column(before, mode, metric, shared), _column(after, mode, metric, shared)
    return Comparison(after.name, mode, metric, float(a.mean()), float(b.mean()), paired(a, b), len(shared))


def _column(result: SetResult, mode: str, metric: str, queries: set[str]) -> Values:
    """Return the values of these queries, by query id: two runs may have asked them in another order."""
    values = dict(zip(result.queries, result.modes[mode].columns[metric], strict=True))
    return np.array([values[query] for query in sorted(queries)], dtype=np.float64)


def _set_to_json(result: SetResult) -> dict[str, JSON]:
    return {
        "name": result.name,
        "model": result.model,
        "documents": result.documents,
        "queries": list(result.queries),
        "modes": {
            mode: {column: [round(value, 6) for value in values] for column, values in measured.columns.items()}
            for mode, measured in result.modes.items()
        },
    }


def _set_from_json(entry: JSON) -> SetResult:
    modes = {
        mode: ModeResult({column: tuple(values) for column, values in columns.items()})
        for mode, columns in entry["modes"].items()
    }
    return SetResult(entry["name"], entry["model"], entry["documents"], tuple(entry["queries"]), modes)


_RESULT_HEAD = ("set", "queries", "mode", "nDCG@10", "95 %", "recall@10", "recall@100", "MRR@10", "CPU ms/query")
_COMPARISON_HEAD = ("set", "mode", "metric", "before", "after", "change", "95 %", "p", "queries")
_TEXT_COLUMNS = frozenset({"set", "mode", "metric"})


def render_run(run: Run) -> str:
    """Return the table of a run and, where legs and hybrid were measured, what fusion adds."""
    rows = [_result_row(result, mode) for result in run.sets for mode in result.modes]
    summary = summarize(run)
    return "\n".join([*_table(_RESULT_HEAD, rows), *(["", *summary] if summary else [])])


def render_comparison(comparisons: Sequence[Comparison]) -> str:
    """Return the table of before and after, with the p-value of every change."""
    if not comparisons:
        return "The two runs have no query in common."
    return "\n".join(_table(_COMPARISON_HEAD, [_comparison_row(comparison) for comparison in comparisons]))


def summarize(run: Run) -> list[str]:
    """Return a line per set: hybrid minus the better leg in nDCG@10, then later stages minus hybrid; and the means."""
    fused = [(result, HYBRID, f"{result.better_leg()}", gain) for result in run.sets if (gain := result.gain())]
    lines = _gain_lines(fused)
    for mode in STAGES:
        lines += _gain_lines([(one, mode, HYBRID, gain) for one in run.sets if (gain := one.gain_of(mode))])
    return lines


def _gain_lines(gains: Sequence[tuple[SetResult, str, str, Paired]]) -> list[str]:
    lines = [
        f"{result.name}: {mode} {gain.difference:+.4f} over {other} "
        f"({gain.low:+.4f} to {gain.high:+.4f}, p {gain.p:.3f})"
        for result, mode, other, gain in gains
    ]
    if len(gains) > 1:
        mean = fmean(gain.difference for *_, gain in gains)
        worst, *_, least = min(gains, key=lambda entry: entry[-1].difference)
        lines.append(f"mean of {len(gains)} sets: {mean:+.4f}; least: {least.difference:+.4f} on {worst.name}")
    return lines


def _result_row(result: SetResult, mode: str) -> tuple[str, ...]:
    measured = result.modes[mode]
    mean, low, high = measured.interval(NDCG)
    others = (f"{measured.mean(metric):.4f}" for metric in (RECALL, DEEP_RECALL, MRR))
    interval = f"{low:.3f}–{high:.3f}"
    return (result.name, str(len(result.queries)), mode, f"{mean:.4f}", interval, *others, f"{measured.mean(CPU):.1f}")


def _comparison_row(comparison: Comparison) -> tuple[str, ...]:
    change = comparison.change
    return (
        comparison.name,
        comparison.mode,
        comparison.metric,
        f"{comparison.before:.4f}",
        f"{comparison.after:.4f}",
        f"{change.difference:+.4f}",
        f"{change.low:+.3f} to {change.high:+.3f}",
        f"{change.p:.3f}",
        str(comparison.queries),
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    left = [name in _TEXT_COLUMNS for name in head]
    rule = ["-" * width if text else "-" * (width - 1) + ":" for width, text in zip(widths, left, strict=True)]
    return [_line(row, widths, left) for row in (head, rule, *rows)]


def _line(cells: Sequence[str], widths: Sequence[int], left: Sequence[bool]) -> str:
    padded = (
        cell.ljust(width) if text else cell.rjust(width) for cell, width, text in zip(cells, widths, left, strict=True)
    )
    return f"| {' | '.join(padded)} |"
