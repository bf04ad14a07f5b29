"""Connections and servers that go away.

1. What reads, or has not begun to write, goes on over another connection.
2. A write whose connection goes before it is stored is not stored, and says so; one that goes at that very moment says
   that nobody knows.
3. A server that crashes and comes back has everything that was acknowledged, and is used again without a restart.
4. A writer that is killed leaves nothing behind but what it had stored, and nobody waiting.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from commonplace.errors import Busy, Unavailable
from commonplace.ingest.prepare import prepare
from commonplace.model import Draft, Filter
from commonplace.store import SqliteStore
from commonplace.store.items import Items
from commonplace.store.job_queue import JobQueue
from commonplace.store.listing import Listing
from commonplace.store.metadata_index import MetadataIndex
from commonplace.store.postgres import PostgresStore, connection, migrate, open_postgres
from opening import OPENED, open_place, place_of
from postgres_server import APP, OWNER, Server, postgres, start


@pytest.fixture
def database(tmp_path: Path) -> Iterator[tuple[Server, str]]:
    server, name = postgres(), place_of("postgres", tmp_path, empty=True).split(" ")[0].rsplit("/", 1)[1]
    yield server, name
    server.execute(f"drop database {name} with (force)")


@pytest.fixture
def store(database: tuple[Server, str]) -> Iterator[PostgresStore]:
    server, name = database
    opened = open_postgres(server.url(APP, name), "s", owner=server.url(OWNER, name))
    yield opened
    opened.close()


def note(name: str) -> Draft:
    return Draft("note", name, body=f"about {name}")


def cut(server: Server, name: str) -> None:
    """End every connection of the application to a database."""
    server.execute(
        f"select pg_terminate_backend(pid, 5000) from pg_stat_activity where (datname, usename) = ('{name}', '{APP}')"
    )


# 1


def test_reads_and_writes_go_on_when_connections_were_cut(store: PostgresStore, database: tuple[Server, str]) -> None:
    store.drawer(Items).put([prepare(note("a"))])
    cut(*database)
    assert store.drawer(Listing).counts() == {"note": 1}
    cut(*database)
    store.drawer(Items).put([prepare(note("b"))])
    cut(*database)
    store.drawer(JobQueue).enqueue("k", {})
    assert [change.seq for change in store.changes(0, 9)] == [1, 2]
    assert store.check() == []


def test_reads_and_writes_go_on_when_the_server_ends_what_was_idle(database: tuple[Server, str]) -> None:
    server, name = database
    server.execute(f"alter role {APP} in database {name} set idle_session_timeout = '100ms'")
    with closing(open_postgres(server.url(APP, name), "s", owner=server.url(OWNER, name))) as store:
        for key in ("a", "b"):
            time.sleep(0.3)
            store.drawer(Items).put([prepare(note(key))])
        time.sleep(0.3)
        assert store.drawer(Listing).counts() == {"note": 2}
        time.sleep(0.3)
        store.drawer(JobQueue).enqueue("k", {})
        time.sleep(0.3)
        with closing(open_postgres(server.url(APP, name), "another")) as other:
            assert other.drawer(Listing).counts() == {}


def test_a_read_goes_on_when_every_connection_of_a_full_pool_was_cut(
    store: PostgresStore, database: tuple[Server, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "RETRY_S", (0.01,))
    store.drawer(Items).put([prepare(note("a"))])
    many = 8
    together = threading.Barrier(many, timeout=30)

    def work() -> int:
        together.wait()
        return int(store._one("select count(*) from items"))

    with ThreadPoolExecutor(many) as threads:
        assert list(threads.map(lambda _: store._database.read(work), range(many))) == [1] * many
    assert store._database.connections >= many
    cut(*database)
    assert store.drawer(Listing).counts() == {"note": 1}


def test_another_space_is_opened_when_connections_were_cut(store: PostgresStore, database: tuple[Server, str]) -> None:
    server, name = database
    store.drawer(Listing).counts()
    cut(server, name)
    with closing(open_postgres(server.url(APP, name), "another")) as other:
        assert other.drawer(Listing).counts() == {}


def test_who_has_it_open_hears_what_keeps_it_from_connecting_as_who_opens_it_does(
    store: PostgresStore, database: tuple[Server, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "CONNECT_S", 1)
    server, name = database
    server.execute(f"alter database {name} connection limit 0")
    cut(server, name)
    with pytest.raises(Unavailable) as opening:
        open_postgres(server.url(APP, name), "s", connections=2)
    for call in (store.drawer(Listing).counts, lambda: store.drawer(Items).put([prepare(note("a"))])):
        with pytest.raises(Unavailable, match="too many connections for database") as caught:
            call()
        assert str(caught.value) == str(opening.value)
    server.execute(f"alter database {name} connection limit -1")
    monkeypatch.undo()
    assert store.drawer(Listing).counts() == {}


def test_a_read_that_was_under_way_is_made_again(store: PostgresStore, database: tuple[Server, str]) -> None:
    tries = []

    def work() -> int:
        tries.append(1)
        if len(tries) == 1:
            cut(*database)
        return int(store._one("select 1"))

    assert store._database.read(work) == 1
    assert len(tries) == 2


def test_a_backup_whose_connection_goes_at_its_end_is_made_again_whole(
    store: PostgresStore, database: tuple[Server, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.drawer(Items).put([prepare(note("a")), prepare(note("b"))])
    store.drawer(MetadataIndex).add(("k",))
    original, cuts = MetadataIndex.add, list[int]()

    def index_field(copy: MetadataIndex, path: tuple[str, ...]) -> None:
        """By now all rows are in the copy, and nothing is left to do but to end the transaction here."""
        original(copy, path)
        if not cuts:
            cuts.append(1)
            cut(*database)

    monkeypatch.setattr(MetadataIndex, "add", index_field)
    store.backup(tmp_path / "backup.db")
    assert cuts
    with closing(SqliteStore(tmp_path / "backup.db")) as copy:
        assert (copy.drawer(Listing).counts(), copy.check()) == ({"note": 2}, [])
    assert [path.name for path in tmp_path.iterdir()] == ["backup.db"]


# 2


def test_a_write_that_lost_its_connection_is_not_stored_and_says_so(
    store: PostgresStore, database: tuple[Server, str], caplog: pytest.LogCaptureFixture
) -> None:
    def write() -> None:
        with store.transaction():
            store.drawer(Items).put([prepare(note("a"))])
            cut(*database)
            store.drawer(Items).put([prepare(note("b"))])

    with pytest.raises(Unavailable, match=r"lost.*What was under way is not stored: repeat it"):
        write()
    assert (store.drawer(Listing).counts(), store.last_change()) == ({}, 0)
    assert store.drawer(Items).put([prepare(note("c"))])[0].id == 1
    assert not caplog.messages  # the error says it all


def test_a_write_that_was_idle_for_too_long_is_not_stored_and_says_so(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        store._database, "_settings", store._database._settings.replace(f"{connection._IDLE_S}s", "100ms")
    )

    def write() -> None:
        with store._database.writing():
            store.drawer(Items).put([prepare(note("a"))])
            time.sleep(0.3)
            store.drawer(Items).put([prepare(note("b"))])

    with pytest.raises(Unavailable, match=r"lost.*What was under way is not stored: repeat it"):
        write()
    assert store.drawer(Listing).counts() == {}
    store.drawer(Items).put([prepare(note("c"))])
    assert store.check() == []


def test_a_statement_that_somebody_cancelled_is_not_stored_and_not_called_slow(
    store: PostgresStore, database: tuple[Server, str]
) -> None:
    server, name = database
    server.execute(
        """create function commonplace.cancelled() returns trigger language plpgsql as
           $$ begin perform pg_cancel_backend(pg_backend_pid()); perform pg_sleep(5); return null; end $$;
           create trigger cancelled after insert on commonplace.changes
           for each row execute function commonplace.cancelled()""",
        server.url(OWNER, name),
    )
    with pytest.raises(Busy, match=r"ended the operation: .*user request\. Nothing of it was stored\. Repeat it"):
        store.drawer(Items).put([prepare(note("a"))])
    server.execute("drop trigger cancelled on commonplace.changes", server.url(OWNER, name))
    assert store.drawer(Items).put([prepare(note("a"))])[0].version == 1


def test_a_connection_lost_in_the_moment_of_storing_leaves_it_open_and_says_so(
    store: PostgresStore, database: tuple[Server, str]
) -> None:
    server, name = database
    server.execute(
        """create function commonplace.gone() returns trigger language plpgsql as
           $$ begin perform pg_terminate_backend(pg_backend_pid()); perform pg_sleep(5); return null; end $$;
           create constraint trigger gone after insert on commonplace.changes deferrable initially deferred
           for each row execute function commonplace.gone()""",
        server.url(OWNER, name),
    )
    with pytest.raises(Unavailable, match=r"may or may not be there\. Look before you repeat it"):
        store.drawer(Items).put([prepare(note("a"))])
    server.execute("drop trigger gone on commonplace.changes", server.url(OWNER, name))
    assert store.drawer(Listing).counts() == {}
    assert store.drawer(Items).put([prepare(note("a"))])[0].version == 1
    assert store.check() == []


# 3


@pytest.mark.timeout(110)
def test_a_server_that_comes_back_is_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "CONNECT_S", 1)
    monkeypatch.setattr(connection, "RETRY_S", (0.01,))
    postgres()  # which says why, where there is none
    server = start()
    try:
        migrate(server.owner, server.app)
        store = PostgresStore(server.app, "s")
        for number in range(20):
            store.drawer(Items).put([prepare(note(str(number)))])
        server.kill()
        with pytest.raises(Unavailable):
            store.drawer(Listing).counts()
        with pytest.raises(Unavailable):
            store.drawer(Items).put([prepare(note("x"))])
        server = server.again()
        monkeypatch.setattr(connection, "CONNECT_S", 60)
        assert store.drawer(Listing).counts() == {"note": 20}
        assert store.drawer(Items).put([prepare(note("x"))])[0].id == 21
        assert [change.seq for change in store.changes(0, 99)] == list(range(1, 22))
        assert store.check() == []
        store.close()
    finally:
        server.stop()


# 4

WRITER = (
    OPENED
    + """
import sys
from commonplace.ingest.prepare import prepare
from commonplace.model import Draft
from commonplace.store.items import Items

store, name = opened(sys.argv[1]), sys.argv[2]
for number in range(10_000):
    with store.transaction():
        store.drawer(Items).put([prepare(Draft("note", f"{name}-{number}", body=f"{number}"))])
        store.drawer(Items).put([prepare(Draft("note", f"{name}-{number}-twin", body=f"{number}"))])
    print(number, flush=True)
"""
)


@pytest.mark.timeout(110)
def test_a_killed_writer_leaves_whole_transactions_and_nobody_waiting(tmp_path: Path) -> None:
    place, acknowledged = place_of("postgres", tmp_path), dict[str, int]()
    for life in range(4):
        name = f"life{life}"
        command = [sys.executable, "-c", WRITER, place, name]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout
            for _ in range(5 + life):
                acknowledged[name] = int(writer.stdout.readline())
            writer.kill()
            acknowledged[name] = max([acknowledged[name], *map(int, writer.stdout.read().split())])
    store = open_place(place)
    store.drawer(Items).put([prepare(note("after"))])
    keys = {item.key for item in store.drawer(Listing).scan(Filter(), limit=100_000)}
    for name, last in acknowledged.items():
        for number in range(last + 1):
            assert {f"{name}-{number}", f"{name}-{number}-twin"} <= keys
    assert all(
        key.removesuffix("-twin") in keys and f"{key.removesuffix('-twin')}-twin" in keys for key in keys - {"after"}
    )
    changes = store.changes(0, 100_000)
    assert [change.seq for change in changes] == list(range(1, len(keys) + 1))
    assert store.check() == []
    store.close()
