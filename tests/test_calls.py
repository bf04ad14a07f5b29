"""A search passes through no more than it has to: the counts of `tools/calls.py` grow past no limit.

A limit only ever goes down: whoever brings a count down lowers its limit in the same change.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from commonplace.batches import batches
from commonplace.text.token_estimates import estimate

MOST_MODULES, MOST_CALLS, MOST_ABOVE = 59, 654, 7


def calls() -> ModuleType:
    """Return `tools/calls.py` as a module: tools are no package."""
    path = Path(__file__).parents[1] / "tools" / "calls.py"
    spec = importlib.util.spec_from_file_location("calls", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["calls"] = module
    spec.loader.exec_module(module)
    return module


def test_a_warm_search_passes_through_few_modules_and_calls(tmp_path: Path) -> None:
    seen = calls().warm_search(tmp_path)
    assert len(seen.modules) <= MOST_MODULES, sorted(seen.modules)
    assert seen.calls.total() <= MOST_CALLS, seen.calls.most_common(40)
    assert seen.above.total() <= MOST_ABOVE, sorted(seen.above)


def test_a_call_from_a_room_into_one_above_it_is_counted() -> None:
    def work() -> None:
        assert list(batches(["tea"], estimate, most=1, most_size=9)) == [["tea"]]

    seen = calls().passage(work)
    assert dict(seen.above) == {("commonplace.batches.batches", "commonplace.text.token_estimates.estimate"): 1}
    assert seen.modules["commonplace.batches"] == 1
