"""Libraries of two collections of files, with vectors and without."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from documents_calls import GUIDE, MANUAL, Tools, write

from commonplace.library import Library
from opening import library_settings


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    """An empty library."""
    with Library.open(tmp_path, settings=library_settings(tmp_path)) as library:
        yield library


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tools]:
    """With vectors of the static model. Tests leave it as it is."""
    yield from _filled(tmp_path_factory.mktemp("documents"), embed=True)


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tools]:
    """The same without vectors."""
    yield from _filled(tmp_path_factory.mktemp("documents"), embed=False)


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Tools]:
    """The same with vectors, for tests that change it."""
    yield from _filled(tmp_path, embed=True)


def _filled(folder: Path, *, embed: bool) -> Iterator[Tools]:
    with Library.open(folder / "home", settings=library_settings(folder / "home")) as library:
        library.add_folder(write(folder / "guide", GUIDE), "guide")
        library.add_folder(write(folder / "manual", MANUAL), "manual")
        library.folders.set_context("manual", "", "How the machines work.")
        if embed:
            library.embed()
        yield Tools(library)
