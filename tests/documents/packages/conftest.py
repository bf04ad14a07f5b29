"""A real library to sync into, in the folder of one test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from package_world import World

from commonplace.library import Library
from opening import library_settings


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    home = tmp_path / "home"
    with Library.open(home, settings=library_settings(home)) as library:
        yield World(library, tmp_path)
