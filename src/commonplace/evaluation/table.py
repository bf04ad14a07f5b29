"""Results as Markdown that also reads well as plain text: columns are padded to line up."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from commonplace.evaluation.metrics import Paired
from commonplace.evaluation.results import (
    CPU,
    DEEP_RECALL,
    HYBRID,
    MRR,
    NDCG,
    RECALL,
    STAGES,
    Comparison,
    Run,
    SetResult,
)

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
