"""The source stays as tidy as it has become: no figure of `tools/house.py` grows past its limit.

A limit only ever goes down: whoever brings a figure down lowers its limit in the same change.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

LIMITS = {
    "longest_file": 400,
    "longest_function": 62,
    "largest_interface": 47,
    "most_bases": 2,
    "private_imports": 0,
    "repeated_classes": 0,
    "repeated_basenames": 7,
    "lazy_dataclass_importers": 27,
    "riddle_docstrings_percent": 0,
}


@cache
def house() -> ModuleType:
    """Return `tools/house.py` as a module: tools are no package."""
    path = Path(__file__).parents[1] / "tools" / "house.py"
    spec = importlib.util.spec_from_file_location("house", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["house"] = module
    spec.loader.exec_module(module)
    return module


@cache
def figures() -> dict[str, Any]:
    """Return every figure of the source, counted once."""
    counted: dict[str, Any] = house().figures(house().read_modules())
    return counted


@pytest.mark.parametrize("name", LIMITS)
def test_no_figure_grows(name: str) -> None:
    figure = figures()[name]
    assert figure.value <= LIMITS[name], "\n".join([f"{name} is {figure.value}:", *figure.items[:60]])


def test_each_figure_counts_what_it_says() -> None:
    first = '''
class Base:
    def one(self): ...
    def _hidden(self): ...


class Shape(Base):
    def two(self): ...


def f():
    """What it is."""


def g():
    """Return it."""
'''
    second = (
        "from commonplace.a import _private\nfrom commonplace.lazy_dataclass import dataclass\n\n\nclass Shape: ...\n"
    )
    modules = [
        house().Module(name, Path(f"{name.rpartition('.')[2]}.py"), text.count("\n"), ast.parse(text))
        for name, text in (("commonplace.a", first), ("commonplace.room.a", second))
    ]
    values = {name: figure.value for name, figure in house().figures(modules).items()}
    assert values == {
        "modules": 2, "lines": 21, "longest_file": 16, "longest_function": 2, "largest_interface": 2, "most_bases": 1,
        "private_imports": 1, "repeated_classes": 1, "repeated_basenames": 1, "lazy_dataclass_importers": 1,
        "riddle_docstrings_percent": 50.0,
    }  # fmt: skip


NAMES_QMD = {
    "commonplace.cli.evaluate",  # `--through qmd` measures that profile's search
    "commonplace.cli.install",  # `install qmd-command`
    "commonplace.cli.main",  # commands that are found by name
    "commonplace.cli.uninstall",
    "commonplace.cli.where",
    "commonplace.evaluation.judged_run",
    "commonplace.model",  # its scheme is read
    "commonplace.profiles.registry",  # a profile that is found by name
    "commonplace.server.http",  # endpoints that are found by name
}


def test_the_program_that_qmd_stands_in_for_is_named_by_who_finds_it_and_nobody_else() -> None:
    """A name of a competitor in the engine would be told to users of every other profile."""
    naming = {
        module.name
        for module in house().read_modules()
        if "qmd" in module.path.read_text("utf-8").lower()
        and not module.name.startswith(("commonplace.qmd", "commonplace.ingest.imports"))
    }
    assert naming <= NAMES_QMD, sorted(naming - NAMES_QMD)
