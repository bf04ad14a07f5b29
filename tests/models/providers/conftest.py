"""Fixtures: a provider that can misbehave, an environment without keys of its own, and settings that are quick."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from commonplace.models.providers.endpoint import PROVIDERS
from commonplace.settings import Settings
from wire_server import Make, Site, serving


@pytest.fixture(autouse=True)
def nothing_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for provider in PROVIDERS.values():
        for name in filter(None, (provider.key_variable, provider.address_variable)):
            monkeypatch.delenv(name, raising=False)


@pytest.fixture
def site() -> Iterator[Site]:
    with serving() as found:
        yield found


@pytest.fixture
def make(tmp_path: Path, site: Site) -> Make:
    """Settings whose embedder, reranker and generator are at the site, with short pauses."""

    def made(**more: object) -> Settings:
        given = {
            "home": tmp_path,
            "models": tmp_path / "models",
            "keys": tmp_path / "keys.toml",
            "embedder_url": site.url,
            "reranker_url": site.url,
            "generator_url": site.url,
            "embedder_pause_ms": 1,
            "generator_pause_ms": 1,
            **more,
        }
        return Settings(**given)  # type: ignore[arg-type]

    return made
