"""What every test shares: hypothesis without deadlines on noisy machines, and libraries made of real parts."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from commonplace.library import Library
from commonplace.store import SqliteStore
from commonplace.store.base import Store
from opening import BACKENDS, open_library, open_store

_UNHURRIED = (HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large)
settings.register_profile("ci", deadline=None, max_examples=40, derandomize=True, suppress_health_check=_UNHURRIED)
settings.register_profile("dev", deadline=None, max_examples=40, suppress_health_check=_UNHURRIED)
settings.register_profile("hunt", deadline=None, max_examples=1000, suppress_health_check=_UNHURRIED)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "dev"))

# A shell's background jobs ignore it, and so would all that is interrupted here, children too.
signal.signal(signal.SIGINT, signal.default_int_handler)

_TESTS = Path(__file__).parent
_STORED = (
    "store/",
    "library/",
    "search/",
    "kinds/memories/",
    "kinds/knowledge/",
    "kinds/tables/",
    "kinds/documents/tools/",
    "kinds/documents/test_collection_files",
    "kinds/documents/test_document_names",
    "kinds/documents/test_document_plans",
    "kinds/documents/test_outlines",
    "kinds/documents/packages/test_package_folders",
    "kinds/documents/packages/test_package_declarations",
    "qmd/tools/",
    "tools/test_s",
    "test_s",
)
"""Suites that hold for every store."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """An index on a service follows one store as it follows another: it is held to the contract over one of them.

    And what is about files, indexes or doors, not about what is stored, is tried over SQLite alone.
    """
    chosen = [(item, getattr(getattr(item, "callspec", None), "params", {})) for item in items]
    items[:] = [
        item
        for item, params in chosen
        if params.get("backend", "sqlite") == "sqlite"
        or (params.get("index", "local") == "local" and item.path.relative_to(_TESTS).as_posix().startswith(_STORED))
    ]


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def store(backend: str, tmp_path: Path) -> Iterator[Store]:
    store = open_store(backend, tmp_path)
    yield store
    store.close()


@pytest.fixture(scope="module")
def index() -> str:
    """The index that libraries are opened over. Suites that hold for every one of them give it parameters."""
    return "local"


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[SqliteStore]:
    """For what is so of SQLite only."""
    store = SqliteStore(tmp_path / "library.db")
    yield store
    store.close()


@pytest.fixture
def library(backend: str, index: str, tmp_path: Path) -> Iterator[Library]:
    """An empty library. It has vectors once a test calls `embed`."""
    with open_library(backend, tmp_path) as library:
        yield library
