"""A small library and one real server of it, for all the clients of a module: they only read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from commonplace.library import Library
from commonplace.model import Draft
from commonplace.settings import Settings
from needs import needs_node
from serving import process

_FOREIGN = ("COMMONPLACE_", "ANTHROPIC_", "CLAUDE", "MCP_", "XDG_")


@pytest.fixture(scope="module")
def bin() -> Path:
    """Where the clients' commands are."""
    return needs_node()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("library")
    with Library.open(home, settings=Settings(home=home, models=home / "models", model="static")) as library:
        library.put(Draft("note", "tea", title="Tea", body="Oolong wants water just off the boil."))
        library.put(Draft("note", "bread", title="Bread", body="Sourdough needs a long cold proof."))
        library.embed()
    return home


@pytest.fixture(scope="module")
def environment(home: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What a client is started with: a user's home of its own, and nothing of the user who runs the tests."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN)}
    own = {"HOME": str(tmp_path_factory.mktemp("user")), "COMMONPLACE_HOME": str(home), "COMMONPLACE_MODEL": "static"}
    return {**clean, **own, "DISABLE_TELEMETRY": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}


@pytest.fixture(scope="module")
def address(environment: dict[str, str], bin: Path) -> Iterator[str]:
    with process(environment) as server:
        yield server.address
