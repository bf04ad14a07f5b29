"""Many threads and processes on one store.

1. No write is lost or logged twice, no caller ever hears that something is locked.
2. Everyone sees everyone's writes in the next call.
3. A thread that ends gives its connection back.
4. A process that was forked opens the store itself: what it has from its parent is refused, at once.
5. Who is interrupted while others write goes on writing afterwards, and keeps nobody from it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import apsw
import pytest

from commonplace.ingest.prepare import prepare
from commonplace.model import Draft, Filter
from commonplace.store import SqliteStore
from commonplace.store.base import Store
from commonplace.store.items import Items
from commonplace.store.job_queue import JobQueue
from commonplace.store.listing import Listing
from commonplace.store.stored_settings import StoredSettings
from opening import OPENED, open_place, open_store, place_of

WRITER = (
    OPENED
    + """
import sys
from commonplace.ingest.prepare import prepare
from commonplace.model import Draft
from commonplace.store.items import Items
from commonplace.store.stored_settings import StoredSettings

name, count = sys.argv[2], int(sys.argv[3])
print("ready", flush=True)
sys.stdin.readline()
store = opened(sys.argv[1])
for number in range(count):
    store.drawer(Items).put([prepare(Draft("note", f"{name}-{number}", body=f"{name} wrote {number}"))])
    store.drawer(Items).put([prepare(Draft("note", "shared", body=f"{name} {number}"))])
    if number % 3 == 0:
        store.drawer(Items).delete([store.drawer(Items).find("note", "", f"{name}-{number}").id])
print(store.drawer(StoredSettings).settle("who", name), flush=True)
store.close()
"""
)

FORKED = (
    OPENED
    + """
import os, sys, threading
from commonplace.errors import StorageBroken
from commonplace.ingest.prepare import prepare
from commonplace.model import Draft
from commonplace.store.items import Items

store = opened(sys.argv[1])
store.drawer(Items).put([prepare(Draft("note", "parent", body="x"))])
inside, leave = threading.Event(), threading.Event()

def hold():
    with store.transaction():
        inside.set()
        leave.wait(30)

holder = threading.Thread(target=hold)
if "holding" in sys.argv:
    holder.start()
    inside.wait(30)
child = os.fork()
if not child:
    for use in (lambda: store.drawer(Items).put([prepare(Draft("note", "lost", body="x"))]), store.last_change):
        try:
            print(use(), flush=True)
        except StorageBroken as error:
            print(error, flush=True)
    store.close()
    if "holding" not in sys.argv:
        mine = opened(sys.argv[1])
        mine.drawer(Items).put([prepare(Draft("note", "child", body="x"))])
        mine.close()
    sys.stdout.flush()
    os._exit(0)
os.waitpid(child, 0)
leave.set()
if "holding" in sys.argv:
    holder.join()
store.drawer(Items).put([prepare(Draft("note", "parent again", body="x"))])
print(sorted(item.key for item in store.drawer(Items).get([1, 2, 3])), store.check(), flush=True)
store.close()
"""
)


@pytest.mark.timeout(100)
@pytest.mark.parametrize("way", ["idle", "holding"])
def test_a_forked_process_is_told_to_open_the_store_itself(backend: str, tmp_path: Path, way: str) -> None:
    place = place_of(backend, tmp_path)
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKED, place, way]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=90)
    assert ran.stderr == ""
    *refused, kept = ran.stdout.splitlines()
    assert len(refused) == 2
    assert all(
        "was opened before this process was forked. Open the library again in this one." in said for said in refused
    )
    keys = ["child", "parent", "parent again"] if way == "idle" else ["parent", "parent again"]
    assert kept == f"{keys} []"


@pytest.mark.timeout(100)
def test_four_processes_write_at_once_and_nothing_is_lost(backend: str, tmp_path: Path) -> None:
    place, count = place_of(backend, tmp_path, empty=True), 25
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, place, name, str(count)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in "abcd"
    ]
    for writer in writers:
        assert writer.stdout
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:  # all of them open the new store, and migrate it, at the same moment
        assert writer.stdin
        writer.stdin.write("go\n")
        writer.stdin.flush()
    answers = [writer.communicate(timeout=90) for writer in writers]
    assert [error for _, error in answers] == [""] * 4
    assert len({said for said, _ in answers}) == 1

    store = open_place(place)
    changes = store.changes(0, 10_000)
    deleted = -(-count // 3)
    assert [change.seq for change in changes] == list(range(1, len(changes) + 1))
    assert len(changes) == 4 * (2 * count + deleted)
    assert store.drawer(Listing).counts() == {"note": 4 * (count - deleted) + 1}
    shared = store.drawer(Items).find("note", "", "shared")
    assert shared is not None
    assert shared.version == 4 * count
    assert store.check() == []
    store.close()


def test_many_threads_share_one_store(store: Store) -> None:
    def work(name: int) -> None:
        for number in range(8):
            item = store.drawer(Items).put([prepare(Draft("note", f"{name}-{number}", body="x"))])[0]
            assert store.drawer(Items).get([item.id])[0].key == f"{name}-{number}"
            assert item.id in store.drawer(Listing).select(Filter(kinds=("note",)))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert store.drawer(Listing).counts() == {"note": 64}
    assert [change.seq for change in store.changes(0, 100)] == list(range(1, 65))
    assert store.check() == []


def test_only_one_of_many_threads_gets_a_job(store: Store) -> None:
    store.drawer(JobQueue).enqueue("k", {})
    with ThreadPoolExecutor(8) as pool:
        claims = list(pool.map(lambda _: store.drawer(JobQueue).claim("k", 60), range(16)))
    assert sum(claim is not None for claim in claims) == 1


def test_a_writer_that_failed_lets_the_next_one_in(store: Store) -> None:
    bad = prepare(Draft("note", "x"), 7)
    with pytest.raises(Exception, match="no notes://x"):
        store.drawer(Items).put([bad])
    done = threading.Thread(target=lambda: store.drawer(Items).put([prepare(Draft("note", "y"))]))
    done.start()
    done.join(10)
    assert store.drawer(Listing).counts() == {"note": 1}


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts open files where the system shows them")
def test_a_thread_that_ends_gives_its_connection_back(sqlite: SqliteStore) -> None:
    def opened() -> int:
        return sum("library.db" in os.readlink(f"/proc/self/fd/{fd}") for fd in _descriptors())

    sqlite.drawer(Items).put([prepare(Draft("note", "x"))])
    before = opened()
    for _ in range(20):
        thread = threading.Thread(target=sqlite.drawer(Listing).counts)
        thread.start()
        thread.join()
    assert opened() <= before + 3


def _descriptors() -> list[str]:
    return [fd for fd in os.listdir("/proc/self/fd") if os.path.islink(f"/proc/self/fd/{fd}")]


def test_a_restore_waits_for_no_one_and_readers_see_old_or_new(store: Store, backend: str, tmp_path: Path) -> None:
    store.drawer(Items).put([prepare(Draft("note", str(n), body="old " * 500)) for n in range(50)])
    backup = tmp_path / "backup" / "b.db"
    backup.parent.mkdir()
    store.backup(backup)
    store.drawer(Items).put([prepare(Draft("note", str(n), body="new " * 500)) for n in range(100)])
    other = open_store(backend, tmp_path)
    stop, seen = threading.Event(), set()

    def read() -> None:
        while not stop.is_set():
            seen.add(len(other.drawer(Listing).scan(Filter())))
            seen.add(other.drawer(Listing).counts()["note"])

    def write() -> None:
        number = 0
        while not stop.is_set():
            other.drawer(StoredSettings).set("n", number)
            number += 1

    threads = [threading.Thread(target=read), threading.Thread(target=write)]
    for thread in threads:
        thread.start()
    try:
        store.restore(backup)
    finally:
        stop.set()
        for thread in threads:
            thread.join(30)
    assert seen <= {50, 100}
    assert other.drawer(Listing).counts() == store.drawer(Listing).counts() == {"note": 50}
    assert store.check() == []
    other.close()


def test_what_is_read_in_one_call_belongs_together(store: Store, backend: str, tmp_path: Path) -> None:
    other, stop = open_store(backend, tmp_path), threading.Event()
    store.drawer(Items).put([prepare(Draft("note", "x", body="0", title="0", tags=("0",)))])

    def write() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            name = str(number)
            other.drawer(Items).put([prepare(Draft("note", "x", body=name, title=name, tags=(name,)))])

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for _ in range(400):
            item = store.drawer(Items).find("note", "", "x")
            assert item is not None
            assert item.body == item.title == item.tags[0]
            (told,) = store.indexed([item.id])
            assert told.title == told.tags[0] == told.chunks[0][2]
    finally:
        stop.set()
        thread.join(30)
    other.close()


def test_a_writer_interrupted_while_it_waits_for_another_leaves_no_transaction_behind(tmp_path: Path) -> None:
    path = tmp_path / "library.db"
    store, other = SqliteStore(path), apsw.Connection(str(path))
    other.execute("begin immediate")

    def interrupt_then_let_go() -> None:
        os.kill(os.getpid(), signal.SIGINT)  # heard when SQLite returns: when the transaction has just begun
        other.execute("rollback")

    later = threading.Timer(0.3, interrupt_then_let_go)
    later.start()
    with pytest.raises(KeyboardInterrupt):
        store.drawer(Items).put([prepare(Draft("note", "interrupted", body="x"))])
    later.join()
    other.execute("begin immediate; rollback")
    store.drawer(Items).put([prepare(Draft("note", "after", body="x"))])
    assert store.drawer(Items).find("note", "", "interrupted") is None
    store.close()
