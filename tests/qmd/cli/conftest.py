"""The `qmd` command line over a library of files in several scripts: in this process, and in processes of its own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from qmd_asking import Ask, Done, asked, environment_of

from commonplace.library import Library
from kit.forked import forked
from opening import library_settings
from qmd_library import fill, write


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with `files` and a `home` that knows them, in the environment; nobody writes to it."""
    folder = tmp_path_factory.mktemp("shelf")
    write(folder / "files")
    settings = library_settings(folder / "home")
    with Library.open(folder / "home", settings=settings) as library:
        fill(library, folder / "files")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment_of(folder).items():
            patch.setenv(name, value)
        yield folder


@pytest.fixture
def ask(shelf: Path) -> Ask:
    return asked


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home in the environment, beside a folder of two notes and a draft."""
    for name, value in environment_of(tmp_path).items():
        monkeypatch.setenv(name, value)
    notes = tmp_path / "notes"
    (notes / "drafts").mkdir(parents=True)
    (notes / "tea.md").write_text("# Tea\n\nOolong wants water just off the boil.\n", "utf-8")
    (notes / "茶.md").write_text("# 茶\n\n乌龙茶要用刚烧开的水冲泡三分钟。\n", "utf-8")
    (notes / "drafts" / "half.md").write_text("# Half\n\nNot finished.\n", "utf-8")
    return tmp_path


@pytest.fixture
def qmd(desk: Path) -> Ask:
    return asked


@pytest.fixture
def process(desk: Path) -> Ask:
    """A command line in a process of its own, at the desk."""

    def call(*arguments: str, **more: str) -> Done:
        done = subprocess.run(
            forked(*arguments, module="commonplace.qmd.cli"),
            env={**os.environ, **more}, capture_output=True, text=True, encoding="utf-8", timeout=60, check=False,
        )  # fmt: skip
        assert "Traceback" not in done.stderr
        return Done(done.returncode, done.stdout, done.stderr)

    return call
