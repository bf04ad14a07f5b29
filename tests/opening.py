"""How tests open stores and libraries: real ones, with nothing outside their folder."""

from __future__ import annotations

from pathlib import Path

from commonplace.settings import Settings
from commonplace.store import SqliteStore


def open_store(backend: str, folder: Path) -> SqliteStore:
    """A store of a backend. The contract in tests/store runs over every one of them."""
    assert backend == "sqlite"
    return SqliteStore(folder / "library.db")


def library_settings(folder: Path, **more: object) -> Settings:
    """Nothing outside the folder is read, and the model is the one that is shipped."""
    return Settings(**{"home": folder, "models": folder / "models", "model": "static", **more})
