"""A library and its tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from table_calls import Calls

from commonplace.library import Library
from opening import library_settings


@pytest.fixture
def calls(tmp_path: Path) -> Iterator[Calls]:
    with Library.open(tmp_path, settings=library_settings(tmp_path)) as library:
        yield Calls(library)
