"""A folder with files for every test of this room."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.folder_files import build


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    return folder


@pytest.fixture
def world(root: Path) -> Path:
    return build(root)
