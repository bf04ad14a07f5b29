"""This suite holds for every index."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from opening import INDEXES, serving_index


@pytest.fixture(scope="module", autouse=True, params=INDEXES)
def index(request: pytest.FixtureRequest) -> Iterator[str]:
    with serving_index(request.param):
        yield str(request.param)
