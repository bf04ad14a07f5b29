"""A primary and its standby, both real.

1. A standby is refused with a sentence: by who opens it, and by who has it open already.
2. Where the address names both, whoever has it open goes on over the standby once that is promoted.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from commonplace.ingest.prepare import prepare
from commonplace.model import Draft
from commonplace.settings import BadSetting
from commonplace.store.items import Items
from commonplace.store.listing import Listing
from commonplace.store.postgres import PostgresStore, migrate, open_postgres
from postgres_server import START_S, Server, _await, _free_port, _launch, _run, postgres, start
from unprivileged import NOBODY

READERS = 4


@pytest.fixture
def pair() -> Iterator[tuple[Server, Server]]:
    """A primary in which a schema is made, and its standby."""
    if not (postgres().bin / "pg_basebackup").is_file():
        pytest.skip("There is no pg_basebackup here, which makes a standby.")
    primary = start()
    folder = Path(tempfile.mkdtemp(prefix="commonplace-standby-"))
    try:
        migrate(primary.owner, primary.app)
        with (primary.folder / "data" / "pg_hba.conf").open("a", encoding="ascii") as file:
            file.write("host replication all 127.0.0.1/32 scram-sha-256\n")
        primary.execute("select pg_reload_conf()")
        standby = _standby(primary, folder)
        yield primary, standby
        standby.kill()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        primary.stop()


def _standby(primary: Server, folder: Path) -> Server:
    if os.geteuid() == 0:
        os.chown(folder, NOBODY, NOBODY)
    source = primary.url("postgres", "postgres")
    command = [primary.bin / "pg_basebackup", "-D", folder / "data", "-R", "-c", "fast", "--no-sync", "-d", source]
    _run(command, timeout=START_S)  # type: ignore[arg-type]
    port = _free_port()
    standby = replace(primary, folder=folder, port=port, process=_launch(primary.bin, folder, port))
    _await(standby)
    return standby


def note(name: str) -> Draft:
    return Draft("note", name, body=f"about {name}")


@pytest.mark.timeout(110)
def test_a_standby_is_refused_and_taken_over_to_once_it_is_promoted(pair: tuple[Server, Server]) -> None:
    primary, standby = pair
    both = primary.app.replace(f":{primary.port}/", f":{primary.port},127.0.0.1:{standby.port}/")
    store = open_postgres(f"{both}?target_session_attrs=read-write", "s", connections=READERS)
    store.drawer(Items).put([prepare(note("a"))])
    _read_together(store)

    for attempt in (
        lambda: open_postgres(standby.app, "s"),
        lambda: open_postgres(standby.app, "s", owner=standby.owner),
        lambda: PostgresStore(standby.app, "s"),
    ):
        with pytest.raises(BadSetting, match=rf":{standby.port}/.* is read-only, a replica perhaps") as caught:
            attempt()
        assert caught.value.exit_code == 78

    _await_copy(primary, standby)
    primary.kill()
    standby.execute("select pg_promote()")
    assert store.drawer(Listing).counts() == {"note": 1}
    assert store.drawer(Items).put([prepare(note("b"))])[0].id == 2
    assert [change.seq for change in store.changes(0, 9)] == [1, 2]
    assert store.check() == []
    store.close()


def _read_together(store: PostgresStore) -> None:
    """So that the pool is full of connections that break when the primary goes."""
    together = threading.Barrier(READERS, timeout=30)

    def work() -> int:
        together.wait()
        return int(store._one("select count(*) from items"))

    with ThreadPoolExecutor(READERS) as threads:
        assert list(threads.map(lambda _: store._database.read(work), range(READERS))) == [1] * READERS


def _await_copy(primary: Server, standby: Server) -> None:
    """Until the standby has what the primary has."""
    with psycopg.connect(primary.admin) as there, psycopg.connect(standby.admin, autocommit=True) as here:
        (wanted,) = there.execute("select pg_current_wal_lsn()").fetchone() or ("",)
        deadline = time.monotonic() + START_S
        while here.execute("select pg_last_wal_replay_lsn() >= %s::pg_lsn", (wanted,)).fetchone() != (True,):
            assert time.monotonic() < deadline
            time.sleep(0.02)
