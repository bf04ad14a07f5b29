"""A pgbouncer that pools transactions stands between: every transaction may come over another connection.

1. What is stored, found, claimed and migrated is the same as without.
2. Spaces stay apart though all share two connections, and nothing is left on them.
3. What it refuses is said in words, which are not the server's.
4. Connections that go behind it are as survivable as others.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import errors

from commonplace.errors import Unavailable
from commonplace.ingest.prepare import prepare
from commonplace.library import Library
from commonplace.model import Draft, Filter
from commonplace.settings import BadSetting
from commonplace.store.items import Items
from commonplace.store.job_queue import JobQueue
from commonplace.store.listing import Listing
from commonplace.store.postgres import PostgresStore, has_space, migrate, open_postgres
from commonplace.store.postgres.problems import Lost, explained
from needs import missing
from opening import library_settings, space_of
from postgres_server import APP, OWNER, Server, postgres
from unprivileged import NOBODY

START_S = 20
CONNECTIONS = 2
_INI = """[databases]
* = host=127.0.0.1 port={port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {own}
unix_socket_dir =
pool_mode = transaction
default_pool_size = {connections}
max_client_conn = 200
auth_type = scram-sha-256
auth_file = {folder}/users
"""


@dataclass(frozen=True, slots=True)
class Pooler:
    """A running pgbouncer, and how to reach a server through it."""

    server: Server
    port: int

    def url(self, role: str, database: str = "commonplace", password: str | None = None) -> str:
        return self.server.url(role, database, password).replace(f":{self.server.port}/", f":{self.port}/")


@pytest.fixture(scope="module")
def pooler() -> Iterator[Pooler]:
    found = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if found is None:
        missing("pgbouncer is not installed. Run `make packages`.")
    server = postgres()
    with tempfile.TemporaryDirectory(prefix="commonplace-bouncer-") as folder, socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        own = int(probe.getsockname()[1])
        probe.close()
        yield from _serving(found, Path(folder), server, own)


def _serving(found: str, folder: Path, server: Server, own: int) -> Iterator[Pooler]:
    users = "".join(f'"{role}" "{server.password}"\n' for role in (APP, OWNER, "postgres"))
    (folder / "users").write_text(users, encoding="ascii")
    ini = _INI.format(port=server.port, own=own, folder=folder, connections=CONNECTIONS)
    (folder / "ini").write_text(ini, encoding="ascii")
    folder.chmod(0o755)
    who: dict[str, Any] = {"user": NOBODY, "group": NOBODY} if os.geteuid() == 0 else {}
    with (folder / "log").open("wb") as log:
        command = [found, "-q", str(folder / "ini")]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **who)
    try:
        pooler = Pooler(server, own)
        _await(pooler, process)
        yield pooler
    finally:
        process.terminate()
        process.wait(START_S)


def _await(pooler: Pooler, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_S
    while True:
        try:
            psycopg.connect(pooler.url(APP), connect_timeout=5).close()
            return
        except psycopg.OperationalError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def note(name: str) -> Draft:
    return Draft("note", name, body=f"about {name}")


# 1


def test_a_library_is_filled_searched_and_backed_up_through_it(pooler: Pooler, tmp_path: Path) -> None:
    settings = library_settings(tmp_path, store=pooler.url(APP), store_connections=4)
    with Library.open(tmp_path, space_of(tmp_path), settings) as library:
        library.put_many(note(f"tea-{number}") for number in range(20))
        library.embed()
        assert library.search("tea-7").hits[0].uri == "notes://tea-7"
        library.backup(tmp_path / "backup.db")
        library.delete("notes://tea-7")
        library.store.restore(tmp_path / "backup.db")
        assert library.get("notes://tea-7").version == 1
        assert library.doctor() == []
    assert has_space(pooler.url(APP), space_of(tmp_path), CONNECTIONS)


def test_the_schema_is_made_through_it(pooler: Pooler, tmp_path: Path) -> None:
    name = f"b{space_of(tmp_path)}"
    pooler.server.create_database(name)
    store = open_postgres(pooler.url(APP, name), "s", owner=pooler.url(OWNER, name))
    store.drawer(Items).put([prepare(note("a"))])
    assert migrate(pooler.url(OWNER, name), pooler.url(APP, name)) > 1
    assert store.check() == []
    store.close()
    pooler.server.execute(f"drop database {name} with (force)")


# 2


def test_spaces_stay_apart_on_shared_connections(pooler: Pooler, tmp_path: Path) -> None:
    spaces = [f"{space_of(tmp_path)}{number}" for number in range(6)]
    stores = {space: PostgresStore(pooler.url(APP), space, 4) for space in spaces}

    def work(space: str) -> list[str]:
        store = stores[space]
        for number in range(10):
            with store.transaction():
                store.drawer(Items).put([prepare(note(f"{space}-{number}"))])
                store.drawer(Items).put([prepare(note(f"{space}-{number}-twin"))])
            store.drawer(JobQueue).enqueue("k", {"space": space})
            job = store.drawer(JobQueue).claim("k", 60)
            assert job
            assert job.payload == {"space": space}
            store.drawer(JobQueue).finish(job)
        assert [change.seq for change in store.changes(0, 99)] == list(range(1, 21))
        return [item.key for item in store.drawer(Listing).scan(Filter())]

    with ThreadPoolExecutor(len(spaces)) as pool:
        for space, keys in zip(spaces, pool.map(work, spaces), strict=True):
            assert len(keys) == 20
            assert all(key.startswith(f"{space}-") for key in keys)
    with psycopg.connect(pooler.url(APP), autocommit=True) as connection:
        for name in ("commonplace.space", "statement_timeout"):
            row = connection.execute("select current_setting(%s, true)", (name,)).fetchone()
            assert row
            assert not row[0].strip("0"), f"{name} was left behind"
    for store in stores.values():
        assert store.check() == []
        store.close()


# 3


def test_what_it_refuses_is_a_wrong_setting(pooler: Pooler) -> None:
    with pytest.raises(BadSetting, match="Check the user and the password"):
        open_postgres(pooler.url(APP, password="secret"), "s")
    with pytest.raises(BadSetting, match="Check the user and the password"):
        open_postgres(pooler.url("nobody"), "s")
    with pytest.raises(BadSetting, match="Create the database and its roles first"):
        open_postgres(pooler.url(APP, "nowhere"), "s")


# 4


def cut(pooler: Pooler, name: str) -> None:
    """End every connection that it has to a database."""
    pooler.server.execute(
        f"select pg_terminate_backend(pid, 5000) from pg_stat_activity where (datname, usename) = ('{name}', '{APP}')"
    )


def test_what_reads_goes_on_and_a_write_that_was_lost_says_so(pooler: Pooler, tmp_path: Path) -> None:
    name = f"c{space_of(tmp_path)}"
    pooler.server.create_database(name)
    store = open_postgres(pooler.url(APP, name), "s", owner=pooler.url(OWNER, name))

    def write() -> None:
        with store.transaction():
            store.drawer(Items).put([prepare(note("a"))])
            cut(pooler, name)
            store.drawer(Items).put([prepare(note("b"))])

    with pytest.raises(Unavailable, match=r"lost.*What was under way is not stored: repeat it"):
        write()
    assert store.drawer(Listing).counts() == {}
    store.drawer(Items).put([prepare(note("c"))])
    cut(pooler, name)
    assert store.drawer(Listing).counts() == {"note": 1}
    cut(pooler, name)
    assert store.drawer(Items).put([prepare(note("d"))])[0].id == 2
    assert store.check() == []
    store.close()
    pooler.server.execute(f"drop database {name} with (force)")


@pytest.mark.parametrize(
    ("said", "kind", "words"),
    [("server conn crashed?", Lost, "was lost"), ("query_wait_timeout", Unavailable, "gives no connection")],
)
def test_its_own_words_are_understood(said: str, kind: type[Unavailable], words: str) -> None:
    with pytest.raises(Unavailable, match=words) as caught, explained("it"):
        raise errors.ProtocolViolation(said)
    assert type(caught.value) is kind
