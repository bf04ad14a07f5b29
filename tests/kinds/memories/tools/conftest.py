"""A library and its memory tools."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from memory_calls import Tools

from commonplace.library import Library
from opening import open_library


@pytest.fixture
def tools(library: Library) -> Tools:
    return Tools(library)


@pytest.fixture
def open_tools(backend: str, tmp_path: Path) -> Iterator[Callable[..., Tools]]:
    """Makes tools over a library with settings of one's own."""
    opened: list[Library] = []

    def make(**settings: object) -> Tools:
        folder = tmp_path / f"home-{len(opened)}"
        opened.append(open_library(backend, folder, **settings))
        return Tools(opened[-1])

    yield make
    for library in opened:
        library.close()
