"""What a model costs is measured in a process of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from commonplace.errors import Unavailable
from commonplace.evaluation.costs import measure
from opening import library_settings


@pytest.mark.timeout(120)
def test_a_model_is_timed_and_weighed(tmp_path: Path) -> None:
    costs = measure("static", library_settings(tmp_path), ["Water for tea. " * 50] * 20, ["how hot"] * 20)
    assert 0 < costs.query_cpu_ms < costs.passage_cpu_ms < 1000
    assert costs.load_ms > 0
    assert costs.memory_mb is None or 1 < costs.memory_mb < 500


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("name", "sentence"), [("nonsense", "There is no model called 'nonsense'"), ("arctic-embed-s", "models pull")]
)
def test_one_that_cannot_be_opened_says_why(tmp_path: Path, name: str, sentence: str) -> None:
    with pytest.raises(Unavailable, match=f"{name} could not be measured: .*{sentence}"):
        measure(name, library_settings(tmp_path), ["tea"], ["tea"])
