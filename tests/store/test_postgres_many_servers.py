"""Two servers, eight writers and eight readers over one PostgreSQL, while a server is killed every few seconds.

1. Every write that was acknowledged is there, exactly once, and the log has one order without gaps.
2. No reader sees a version go backwards, whichever server answers.
3. What one server has acknowledged, the other finds at once.

`MANY_SERVERS_SECONDS=60 MANY_SERVERS_KILL_EVERY=5 pytest tests/store/test_postgres_many_servers.py` is the long run.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import signal
import socket
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, field
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import pytest

from commonplace.model import Change, Filter
from commonplace.store.listing import Listing
from commonplace.store.postgres import PostgresStore
from kit.forked import forked
from opening import space_of
from postgres_server import postgres

SECONDS = float(os.environ.get("MANY_SERVERS_SECONDS", "16"))
KILL_EVERY = float(os.environ.get("MANY_SERVERS_KILL_EVERY", "4"))
WRITERS = READERS = 8
LEAST_KILLS = 2
START_S = 60
SHARED = "notes://shared"


class Serving:
    """A server in a process of its own, with a home of its own, that can be killed and comes back at its address."""

    def __init__(self, home: Path, space: str) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self._space = space
        self._environment = {
            **os.environ, "COMMONPLACE_HOME": str(home), "COMMONPLACE_STORE": postgres().app,
            "COMMONPLACE_STORE_CONNECTIONS": "12", "COMMONPLACE_MODEL": "static", "COMMONPLACE_ALLOW_WRITES": "true",
        }  # fmt: skip
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = forked("--space", self._space, "serve", "--port", str(self.port))
        self._process = subprocess.Popen(command, env=self._environment, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + START_S
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            assert self._process.poll() is None, "the server ended"
            assert time.monotonic() < deadline, "the server did not start"
            time.sleep(0.05)  # the bound of a wait for another process, not a guess at its speed

    def kill(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait(START_S)


@dataclass
class Client:
    """Somebody who calls now one server and now the other, and repeats no call that a dead one leaves unanswered."""

    servers: list[Serving]
    chance: random.Random
    strange: list[Any]
    last: Serving | None = None

    def call(self, tool: str, given: dict[str, Any], *, not_at: Serving | None = None) -> dict[str, Any] | None:
        """The answer; None where there was none, or somebody else was first."""
        server = self.chance.choice([each for each in self.servers if each is not not_at])
        with (
            suppress(OSError, http.client.HTTPException),
            closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)) as connection,
        ):
            connection.request("POST", f"/api/v1/tools/{tool}", json.dumps(given), {"content-type": "application/json"})
            reply = connection.getresponse()
            body = json.loads(reply.read())
            self.last = server
            if reply.status == 200:
                found: dict[str, Any] = body
                return found
            if reply.status != 409:
                self.strange.append((tool, reply.status, body))
        return None


@dataclass
class Run:
    """What all of them have seen."""

    servers: list[Serving]
    over: threading.Event = field(default_factory=threading.Event)
    strange: list[Any] = field(default_factory=list)
    acknowledged: list[tuple[str, str, Serving]] = field(default_factory=list)
    revisions: list[int] = field(default_factory=list)
    backwards: list[tuple[int, int]] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    reads: int = 0
    found: int = 0

    def client(self, seed: int) -> Client:
        return Client(self.servers, random.Random(seed), self.strange)

    def write(self, name: int) -> None:
        client = self.client(name)
        for number in count():
            if self.over.is_set():
                return
            key, text = f"w{name}-{number}", f"Writer {name} says pebble{name}x{number}."
            if client.call("remember", {"kind": "note", "key": key, "text": text}) and client.last:
                self.acknowledged.append((key, text, client.last))
            if revised := client.call("revise", {"uri": SHARED, "text": f"The {number}th words of {name}."}):
                self.revisions.append(int(revised["version"]))

    def read(self, name: int) -> None:
        client, seen = self.client(1000 + name), 0
        while not self.over.is_set():
            if shared := client.call("fetch", {"uri": SHARED}):
                version = int(shared["items"][0]["version"])
                if version < seen:
                    self.backwards.append((seen, version))
                seen, self.reads = version, self.reads + 1
            self._look_elsewhere(client)

    def _look_elsewhere(self, client: Client) -> None:
        """What one server has acknowledged is fetched and found at the other."""
        if not self.acknowledged:
            return
        key, text, server = self.acknowledged[-1]
        fetched = client.call("fetch", {"uri": f"notes://{key}"}, not_at=server)
        if fetched and not fetched["items"]:
            self.lost.append(f"{key} was not fetched")
        words = text.split()[-1].rstrip(".")
        page = client.call("search", {"query": words, "mode": "lexical"}, not_at=server)
        if page is not None:
            self.found += 1
            if key not in json.dumps(page):
                self.lost.append(f"{key} was not found")

    def kill(self) -> int:
        """Kill one after the other, each once the one before is back."""
        killed, ends = 0, time.monotonic() + SECONDS
        while killed < LEAST_KILLS or time.monotonic() < ends:
            self.over.wait(KILL_EVERY)
            server = self.servers[killed % 2]
            server.kill()
            server.start()
            killed += 1
        self.over.set()
        return killed


@pytest.mark.timeout(SECONDS + 100)
def test_servers_that_are_killed_lose_nothing_and_order_holds(tmp_path: Path) -> None:
    space = space_of(tmp_path)
    servers = [Serving(tmp_path / name, space) for name in ("one", "two")]
    run = Run(servers)
    try:
        for server in servers:
            server.start()
        assert run.client(0).call("remember", {"kind": "note", "key": "shared", "text": "The first words."})
        with ThreadPoolExecutor(WRITERS + READERS) as pool:
            workers = [pool.submit(run.write, name) for name in range(WRITERS)]
            workers += [pool.submit(run.read, name) for name in range(READERS)]
            try:
                killed = run.kill()
            finally:
                run.over.set()
            for worker in workers:
                worker.result(START_S)
    finally:
        for server in servers:
            server.kill()

    assert run.strange == []
    assert run.backwards == []
    assert run.lost == []
    assert min(len(run.acknowledged), run.reads, run.found, len(run.revisions)) > 10
    with closing(PostgresStore(postgres().app, space, 3)) as store:
        check_written(store, run)
    print(
        f"{killed} kills, {len(run.acknowledged)} notes and {len(run.revisions)} revisions acknowledged, "
        f"{run.reads} reads, {run.found} searches"
    )


def check_written(store: PostgresStore, run: Run) -> None:
    changes = list[Change]()
    while more := store.changes(len(changes), 10_000):
        changes += more
    assert [change.seq for change in changes] == list(range(1, len(changes) + 1))
    items = {item.key: item for item in store.drawer(Listing).scan(Filter(kinds=("note",)), limit=1_000_000, body=True)}
    put: dict[int, list[int]] = {}
    for change in changes:
        if change.op == "put":
            put.setdefault(change.item_id, []).append(change.version)
    for key, text, _ in run.acknowledged:
        assert items[key].body == text
        assert put[items[key].id] == [1]
    assert all(later == earlier + 1 for earlier, later in pairwise(put[items["shared"].id]))
    assert len(set(run.revisions)) == len(run.revisions)
    assert set(run.revisions) <= set(put[items["shared"].id])
    assert store.check() == []
