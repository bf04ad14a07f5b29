"""A library and its tables."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from table_calls import Calls

from commonplace.library import Library
from opening import INDEXES, serving_index

_SEARCHED = ("test_table_search", "test_table_jobs")
"""Suites that hold for every index."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if metafunc.module.__name__ in _SEARCHED:
        metafunc.parametrize("index", INDEXES, indirect=True, scope="module")


@pytest.fixture(scope="module", autouse=True)
def index(request: pytest.FixtureRequest) -> Iterator[str]:
    index = getattr(request, "param", "local")
    with serving_index(index):
        yield index


@pytest.fixture
def calls(library: Library) -> Calls:
    return Calls(library)
