"""Tables: every measured mode on a line, what fusion adds below, and comparisons with their p-values."""

from __future__ import annotations

import re

from commonplace.evaluation.report import (
    CPU,
    METRICS,
    ModeResult,
    Run,
    SetResult,
    compare,
    render_comparison,
    render_run,
)


def mode(value: float) -> ModeResult:
    return ModeResult({**dict.fromkeys(METRICS, (value, value)), CPU: (2.0, 3.0)})


def one_set(name: str, **modes: float) -> SetResult:
    return SetResult(name, "static", 5, ("a", "b"), {name: mode(value) for name, value in modes.items()})


def test_a_run_is_a_table_with_what_fusion_adds() -> None:
    run = Run((one_set("tea", lexical=0.5, semantic=0.25, hybrid=0.75), one_set("rope", lexical=1, hybrid=0.875)))
    assert re.sub(r"p 0\.\d{3}", "p …", render_run(run)) == (
        "| set  | queries | mode     | nDCG@10 |        95 % | recall@10 | recall@100 | MRR@10 | CPU ms/query |\n"
        "| ---- | ------: | -------- | ------: | ----------: | --------: | ---------: | -----: | -----------: |\n"
        "| tea  |       2 | lexical  |  0.5000 | 0.500–0.500 |    0.5000 |     0.5000 | 0.5000 |          2.5 |\n"
        "| tea  |       2 | semantic |  0.2500 | 0.250–0.250 |    0.2500 |     0.2500 | 0.2500 |          2.5 |\n"
        "| tea  |       2 | hybrid   |  0.7500 | 0.750–0.750 |    0.7500 |     0.7500 | 0.7500 |          2.5 |\n"
        "| rope |       2 | lexical  |  1.0000 | 1.000–1.000 |    1.0000 |     1.0000 | 1.0000 |          2.5 |\n"
        "| rope |       2 | hybrid   |  0.8750 | 0.875–0.875 |    0.8750 |     0.8750 | 0.8750 |          2.5 |\n"
        "\n"
        "tea: hybrid +0.2500 over lexical (+0.2500 to +0.2500, p …)\n"
        "rope: hybrid -0.1250 over lexical (-0.1250 to -0.1250, p …)\n"
        "mean of 2 sets: +0.0625; least: -0.1250 on rope"
    )


def test_what_a_second_look_adds_is_told_beside_what_fusion_does() -> None:
    run = Run((one_set("tea", hybrid=0.5, rerank=0.75), one_set("rope", hybrid=0.5, rerank=0.5)))
    *_, tea, rope, mean = render_run(run).splitlines()
    assert tea.startswith("tea: rerank +0.2500 over hybrid (+0.2500 to +0.2500, p ")
    assert rope.startswith("rope: rerank +0.0000 over hybrid ")
    assert mean == "mean of 2 sets: +0.1250; least: +0.0000 on rope"


def test_what_each_stage_adds_to_fusion_is_told_apart() -> None:
    run = Run((one_set("tea", hybrid=0.5, expand=0.625, rerank=0.75, full=0.875),))
    expand, rerank, full = render_run(run).splitlines()[-3:]
    assert expand.startswith("tea: expand +0.1250 over hybrid ")
    assert rerank.startswith("tea: rerank +0.2500 over hybrid ")
    assert full.startswith("tea: full +0.3750 over hybrid ")


def test_a_run_of_one_mode_has_no_summary() -> None:
    assert len(render_run(Run((one_set("tea", lexical=0.5),))).splitlines()) == 3


def test_a_comparison_shows_before_after_and_chance() -> None:
    before, after = Run((one_set("tea", lexical=0.5),)), Run((one_set("tea", lexical=0.75),))
    head, _, first, *rest = render_comparison(compare(before, after)).splitlines()
    assert [cell.strip() for cell in head.split("|")[1:-1]] == [
        "set", "mode", "metric", "before", "after", "change", "95 %", "p", "queries",
    ]  # fmt: skip
    assert [cell.strip() for cell in first.split("|")[1:-3]] == [
        "tea", "lexical", "ndcg@10", "0.5000", "0.7500", "+0.2500", "+0.250 to +0.250",
    ]  # fmt: skip
    assert 0.4 < float(first.split("|")[-3]) < 0.6
    assert len(rest) == 3


def test_runs_with_nothing_in_common_say_so() -> None:
    assert render_comparison([]) == "The two runs have no query in common."
