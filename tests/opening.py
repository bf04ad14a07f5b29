"""How tests open stores and libraries: real ones, with nothing outside their folder."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from commonplace.library import Library
from commonplace.models import catalog
from commonplace.settings import Settings
from commonplace.store import SqliteStore
from support.turbopuffer_server import TurbopufferServer

BACKENDS = ("sqlite", "postgres")
INDEXES = ("local", "turbopuffer")
ON_FILES = pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
"""For a test, of a suite that holds for every store, that is dear and about something else than what is stored."""


def pretend_pulled(models: Path, *names: str) -> Settings:
    """Files of the right lengths are all that is looked at before a model is opened."""
    for name in names:
        entry = catalog()[name]
        for member in entry.files.values():
            path = models / entry.folder / member.name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as file:
                file.truncate(member.bytes)
    return Settings(models=models)


def open_store(backend: str, folder: Path) -> Any:
    """A store of a backend. The contract in tests/store runs over every one of them."""
    if backend == "sqlite":
        return SqliteStore(folder / "library.db")
    from commonplace.store.postgres import PostgresStore
    from postgres_server import postgres

    return PostgresStore(postgres().app, space_of(folder))


OPENED = """
def opened(place):
    from pathlib import Path

    if not place.startswith("postgresql:"):
        from commonplace.store import SqliteStore

        return SqliteStore(Path(place))
    from commonplace.store.postgres import open_postgres

    url, owner, space = place.split(" ")
    return open_postgres(url, space, owner=owner)
"""
"""A function for processes of their own: it opens the store at a place, and makes what is not there yet."""


def place_of(backend: str, folder: Path, *, empty: bool = False) -> str:
    """What `opened` opens. `empty`: nobody has made a schema there yet."""
    if backend == "sqlite":
        return str(folder / "library.db")
    from postgres_server import APP, OWNER, postgres

    server, name = postgres(), "commonplace"
    if empty:
        name = f"d{space_of(folder)}"
        server.create_database(name)
    return f"{server.url(APP, name)} {server.url(OWNER, name)} {space_of(folder)}"


def open_place(place: str) -> Any:
    known: dict[str, Any] = {}
    exec(OPENED, known)
    return known["opened"](place)


def rows(store: Any, query: str) -> list[tuple[Any, ...]]:
    """What a query finds, for tests that look beneath the store."""
    if isinstance(store, SqliteStore):
        return list(store._database.reading().execute(query))
    found: list[tuple[Any, ...]] = store._database.read(lambda: store._all(query))
    return found


def alter(store: Any, statement: str) -> None:
    """Change something beneath the store."""
    if isinstance(store, SqliteStore):
        store._database.reading().execute(statement)
        return
    with store._database.changing():
        store._run(statement)


def space_of(folder: Path) -> str:
    """A space that no other folder has, so that no test sees what another has stored."""
    return hashlib.sha256(str(folder).encode()).hexdigest()[:20]


def open_library(backend: str, folder: Path, **more: object) -> Library:
    """A library in a folder of its own, on a backend."""
    if backend == "sqlite":
        return Library.open(folder, settings=library_settings(folder, **more))
    from postgres_server import LIBRARY_CONNECTIONS, postgres

    given = {"store": postgres().app, "store_connections": LIBRARY_CONNECTIONS, **more}
    settings = library_settings(folder, **given)
    return Library.open(folder, space_of(folder), settings)


def library_settings(folder: Path, **more: object) -> Settings:
    """Nothing outside the folder is read, and the model is the one that is shipped.

    The index is the one the test runs on (`index` in conftest.py); on a service each folder has names of its own.
    """
    given = {"index": os.environ.get("COMMONPLACE_INDEX") or "local", "turbopuffer_prefix": space_of(folder)}
    options: dict[str, Any] = {"home": folder, "models": folder / "models", "model": "static", **given, **more}
    return Settings(**options)


@contextmanager
def serving_index(index: str) -> Iterator[TurbopufferServer | None]:
    """What is opened inside is over this index."""
    if index == "local":
        yield None
        return
    with TurbopufferServer() as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("COMMONPLACE_INDEX", index)
        patch.setenv("TURBOPUFFER_API_KEY", server.key)
        patch.setenv("TURBOPUFFER_BASE_URL", server.url)
        patch.delenv("TURBOPUFFER_REGION", raising=False)
        yield server
