"""A database whose disk is full: one clear sentence, nothing acknowledged is lost, and with room again it goes on."""

from __future__ import annotations

import os
import random
import re
import tempfile
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from commonplace.errors import StorageFull
from commonplace.ingest.prepare import prepare
from commonplace.model import Draft
from commonplace.store.items import Items
from commonplace.store.listing import Listing
from commonplace.store.postgres import PostgresStore, open_postgres
from postgres_server import APP, OWNER, postgres
from small_disk import Disk, mounted
from unprivileged import NOBODY

SIZE, ROOM = 64 << 20, 4 << 20
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789 "


@pytest.fixture
def disk() -> Iterator[Disk]:
    """One that the server may write to; its log of transactions is elsewhere, as its administrators would have it."""
    with tempfile.TemporaryDirectory(prefix="commonplace-full-") as folder:
        os.chmod(folder, 0o755)
        with mounted(Path(folder) / "disk", f"size={SIZE}") as place:
            os.mkdir(place / "data")
            os.chown(place / "data", NOBODY, NOBODY)
            yield Disk(place)


def note(number: int) -> Draft:
    """A quarter of a megabyte that no compression makes smaller by much."""
    text = random.Random(number).choices(LETTERS, k=250_000)
    return Draft("note", f"n{number}", body="".join(text))


def filled(store: PostgresStore) -> tuple[int, StorageFull]:
    """How many notes were stored before there was no room, and what was said then."""
    for number in range(200):
        try:
            store.drawer(Items).put([prepare(note(number))])
        except StorageFull as full:
            return number, full
    pytest.fail("the disk never was full")


def test_a_full_disk_loses_nothing_and_is_over_when_there_is_room(disk: Disk) -> None:
    server, name = postgres(), "full_disk"
    server.execute(f"create tablespace small location '{disk.root / 'data'}'")
    server.execute(f"create database {name} owner {OWNER} encoding 'UTF8' template template0 tablespace small")
    try:
        with closing(open_postgres(server.url(APP, name), "s", owner=server.url(OWNER, name))) as store:
            disk.leave(ROOM)
            stored, told = filled(store)
            assert re.search("has no room: .*No space left.* Free some of its disk", str(told))
            assert told.exit_code == 69
            with suppress(StorageFull):  # where the server has to write a page to read another, it says so again
                assert store.drawer(Listing).counts().get("note", 0) == stored
            disk.relieve()
            assert store.drawer(Listing).counts().get("note", 0) == stored
            assert store.drawer(Items).put([prepare(note(stored))])[0].version == 1
            assert store.drawer(Listing).counts() == {"note": stored + 1}
            assert [change.seq for change in store.changes(0, 1000)] == list(range(1, stored + 2))
            assert store.check() == []
    finally:
        server.execute(f"drop database {name} with (force)")
        server.execute("drop tablespace small")
