"""A watch goes on when what it writes to is gone for a while: a store that is shared, the disk of its indexes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Queue

import pytest

from commonplace.kinds.documents.collection_files import CollectionFiles
from commonplace.library import Library
from commonplace.store.postgres import connection, migrate
from opening import library_settings, open_library
from postgres_server import postgres, start
from small_disk import Disk, mounted
from support.folder_files import build

PATIENCE_S = 30.0


@contextmanager
def watched(library: Library) -> Iterator[Queue[str]]:
    """What goes wrong while it is watched. It has to be there still when the block ends."""
    stop, failures = threading.Event(), Queue[str]()
    options = {"failed": lambda name, sentence: failures.put(sentence)}
    thread = threading.Thread(target=library.folders.watch, args=(stop,), kwargs=options)
    thread.start()
    try:
        yield failures
        assert thread.is_alive()
    finally:
        stop.set()
        thread.join(timeout=PATIENCE_S)
        assert not thread.is_alive()


def wait_for(found: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not found():
        assert time.monotonic() < deadline
        time.sleep(0.05)  # the bound of a wait for another thread, not a guess at its speed


@pytest.mark.timeout(150)
def test_a_store_that_is_away_for_a_while_ends_nothing(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "CONNECT_S", 1)
    monkeypatch.setattr(connection, "RETRY_S", (0.01,))
    postgres()  # which says why, where there is none
    server = start()
    try:
        migrate(server.owner, server.app)
        settings = library_settings(tmp_path / "home", store=server.app)
        build(root, {"a.md": b"# One"})
        with Library.open(settings.home, settings=settings) as library:
            library.folders.add(root)
            with watched(library) as failures:
                wait_for(lambda: len(library.store.drawer(CollectionFiles).versions("notes")) == 1)
                server.kill()
                assert "connection" in failures.get(timeout=PATIENCE_S)
                (root / "b.md").write_text("# Two", "utf-8")
                server = server.again()
                monkeypatch.setattr(connection, "CONNECT_S", 60)
                wait_for(lambda: len(library.store.drawer(CollectionFiles).versions("notes")) == 2)
                (root / "c.md").write_text("# Three", "utf-8")
                wait_for(lambda: len(library.store.drawer(CollectionFiles).versions("notes")) == 3)
    finally:
        server.stop()


def test_an_index_without_room_ends_nothing(tmp_path: Path, root: Path) -> None:
    build(root, {"a.md": b"# One"})
    with mounted(tmp_path / "disk", "size=32m") as place:
        disk = Disk(place)
        with open_library("postgres", place) as library:
            library.folders.add(root)
            with watched(library) as failures:
                wait_for(lambda: len(library.store.drawer(CollectionFiles).versions("notes")) == 1)
                library.search("one")
                disk.leave(0)
                build(root, {f"{number}.md": f"# Page{number}".encode() for number in range(50)})
                assert "no room" in failures.get(timeout=PATIENCE_S)
                disk.relieve()
                (root / "b.md").write_text("# Two", "utf-8")
                wait_for(lambda: len(library.store.drawer(CollectionFiles).versions("notes")) == 52)
            assert library.search("Page7", mode="lexical").hits
