"""Libraries of two collections of files, with vectors and without."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from documents_calls import GUIDE, MANUAL, Tools, write

from opening import BACKENDS, open_library


@pytest.fixture(scope="module", params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def vectors(backend: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tools]:
    """With vectors of the static model. Tests leave it as it is."""
    yield from _filled(backend, tmp_path_factory.mktemp("documents"), embed=True)


@pytest.fixture(scope="module")
def words(backend: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tools]:
    """The same without vectors."""
    yield from _filled(backend, tmp_path_factory.mktemp("documents"), embed=False)


@pytest.fixture
def fresh(backend: str, tmp_path: Path) -> Iterator[Tools]:
    """The same with vectors, for tests that change it."""
    yield from _filled(backend, tmp_path, embed=True)


def _filled(backend: str, folder: Path, *, embed: bool) -> Iterator[Tools]:
    with open_library(backend, folder / "home") as library:
        library.add_folder(write(folder / "guide", GUIDE), "guide")
        library.add_folder(write(folder / "manual", MANUAL), "manual")
        library.folders.set_context("manual", "", "How the machines work.")
        if embed:
            library.embed()
        yield Tools(library)
