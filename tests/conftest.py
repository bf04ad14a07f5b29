"""What every test shares: hypothesis without deadlines on noisy machines, and libraries made of real parts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from commonplace.library import Library
from commonplace.store.base import Store
from opening import library_settings, open_store

_UNHURRIED = (HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large)
settings.register_profile("ci", deadline=None, max_examples=40, derandomize=True, suppress_health_check=_UNHURRIED)
settings.register_profile("dev", deadline=None, max_examples=40, suppress_health_check=_UNHURRIED)
settings.register_profile("hunt", deadline=None, max_examples=1000, suppress_health_check=_UNHURRIED)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "dev"))


@pytest.fixture(params=["sqlite"])
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def store(backend: str, tmp_path: Path) -> Iterator[Store]:
    store = open_store(backend, tmp_path)
    yield store
    store.close()


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    """An empty library. It has vectors once a test calls `embed`."""
    with Library.open(tmp_path, settings=library_settings(tmp_path)) as library:
        yield library
