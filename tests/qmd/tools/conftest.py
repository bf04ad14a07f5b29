"""The libraries that all tests of this surface read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from commonplace.library import Library
from opening import BACKENDS, open_library
from qmd_library import Tools, fill, tools_over, write


@pytest.fixture(scope="session", params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("files")
    write(root)
    return root


@pytest.fixture(scope="session")
def words(backend: str, tmp_path_factory: pytest.TempPathFactory, files: Path) -> Iterator[Library]:
    """Without a vector index. Tests leave it as it is."""
    with open_library(backend, tmp_path_factory.mktemp("words")) as library:
        fill(library, files)
        yield library


@pytest.fixture(scope="session")
def vectors(backend: str, tmp_path_factory: pytest.TempPathFactory, files: Path) -> Iterator[Library]:
    """The same files with vectors of the static model."""
    with open_library(backend, tmp_path_factory.mktemp("vectors")) as library:
        fill(library, files)
        library.embed()
        yield library


@pytest.fixture
def call(words: Library) -> Tools:
    return tools_over(words)


@pytest.fixture
def vcall(vectors: Library) -> Tools:
    return tools_over(vectors)
