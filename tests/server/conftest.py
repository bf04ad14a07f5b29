"""A small library, and a real server of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from serving import environment_of, fill, process


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return fill(tmp_path)


@pytest.fixture
def settings(request: pytest.FixtureRequest) -> dict[str, str]:
    """Environment variables for the server; a test gives its own by parametrising this."""
    return getattr(request, "param", {})


@pytest.fixture
def environment(home: Path, settings: dict[str, str]) -> dict[str, str]:
    return environment_of(home, **settings)


@pytest.fixture
def address(environment: dict[str, str]) -> Iterator[str]:
    """Where a real server of the home answers."""
    with process(environment) as server:
        yield server.address


@pytest.fixture
def second_address(environment: dict[str, str]) -> Iterator[str]:
    """Where another process serves the same home."""
    with process(environment) as server:
        yield server.address
