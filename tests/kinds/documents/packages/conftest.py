"""A real library to sync into, in the folder of one test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from package_world import World

from opening import open_library


@pytest.fixture
def world(backend: str, tmp_path: Path) -> Iterator[World]:
    with open_library(backend, tmp_path / "home") as library:
        yield World(library, tmp_path)
