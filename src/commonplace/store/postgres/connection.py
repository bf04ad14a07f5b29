"""Transactions on a PostgreSQL server: pooled connections, one writer of a space at a time, nothing kept in between."""

from __future__ import annotations

import logging
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import psycopg
from psycopg.pq import TransactionStatus

from commonplace.errors import Busy, InvalidInput, StorageBroken, Unavailable
from commonplace.model import JSON
from commonplace.store.postgres.pooling import Connection, Pool, PooledConnection
from commonplace.store.postgres.problems import LOCK_S, STATEMENT_S, Lost, explained, is_lost
from commonplace.store.postgres.urls import checked, shown

SCHEMA = "commonplace"
CONNECT_S = 10
GONE_S = 15
"""How long a server may leave unacknowledged what it was sent: one that is gone without a word sends no error."""
RETRY_S = (0.05, 0.5, 2.0)
"""How long is waited before what only reads, or has not begun to write, is tried again."""

CLOCK = "(extract(epoch from statement_timestamp()) * 1000000)::bigint"
"""Microseconds by the server's clock. Leases go by it, since those of the machines that share it may be apart."""

_SPACE = re.compile(r"[a-z0-9@][a-z0-9._-]{0,63}")
_IDLE_S = 600
_WRITE = "begin isolation level read committed read write"
_NUMBERS = ("change", "item", "entry", "part")
R = TypeVar("R")


@dataclass(slots=True)
class Transaction:
    """A transaction of one thread. `numbers` are those given out last, which are stored when it ends."""

    connection: Connection
    numbers: dict[str, int] | None = None
    """None: it only reads, or does not write to the log."""

    def next(self, of: str, count: int = 1) -> int:
        """Return the first of `count` numbers that nothing else has or will have."""
        first = self._given(of)[of] + 1
        self._given(of)[of] += count
        return first

    def skip(self, of: str, upto: int) -> None:
        """Give out no number up to this one any more."""
        self._given(of)[of] = max(self._given(of)[of], upto)

    def _given(self, of: str) -> dict[str, int]:
        if self.numbers is None:
            raise StorageBroken(f"A number of {of} was asked for outside a write. This is a bug: report it.")
        return self.numbers


class PostgresDatabase:
    """One space of a database. Threads share it; none holds more than one connection."""

    def __init__(self, url: str, space: str, connections: int) -> None:
        if not _SPACE.fullmatch(space):
            raise InvalidInput(f"A space is named with a-z, 0-9, dots, dashes and underscores, not {space!r}.")
        self.name = shown(url)
        self.space = space
        self.uses = self.failures = 0
        self._pools = _Shared(url, connections)
        self._local = threading.local()
        self._turn = threading.Lock()
        self._closed = False
        self._process = os.getpid()
        self._settings = _settings(space)
        try:
            with self.changing() as db:
                db.execute("insert into spaces default values on conflict do nothing")
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if not self._closed and os.getpid() == self._process:  # else the connections are another process's
            self._pools.release()
        self._closed = True

    def metrics(self) -> dict[str, JSON]:
        """Return this process's use of the database: connections, queries, transactions that failed."""
        return {
            "active_connections": self.connections,
            "total_queries": self.uses,
            "failed_queries": self.failures,
            "circuit_state": "healthy",
        }

    @property
    def connections(self) -> int:
        return int(self._pools.pool.get_stats().get("pool_size", 0))

    @property
    def current(self) -> Transaction | None:
        """Return this thread's transaction, or None."""
        return getattr(self._local, "transaction", None)

    @property
    def under_way(self) -> Transaction:
        """Return this thread's transaction. Raise StorageBroken where there is none."""
        transaction = self.current
        if transaction is None:
            raise StorageBroken("The database was used outside a transaction. This is a bug: report it.")
        return transaction

    @property
    def db(self) -> Connection:
        """Return the connection of this thread's transaction. Raise StorageBroken where there is none."""
        connection = self.under_way.connection
        self.uses += 1
        return connection

    def read(self, work: Callable[[], R]) -> R:
        """Return what `work` reads, all of it of one state. It is repeated on another connection where one was lost."""
        if self.current is not None:
            return work()
        for wait in RETRY_S:
            try:
                return self._read(work)
            except (psycopg.Error, Lost) as error:
                if not is_lost(error):
                    raise
                self._pools.pool.check()  # what broke one connection has broken the others of the pool, too
                time.sleep(wait)
        return self._read(work)

    def _read(self, work: Callable[[], R]) -> R:
        connection = self._take()
        with self._under_way(Transaction(connection)), connection.pipeline():  # so that only what is read is waited for
            connection.execute("begin isolation level repeatable read read only")
            connection.execute(self._settings.encode())
            result = work()
            connection.execute("commit")
            return result

    @contextmanager
    def writing(self) -> Iterator[Transaction]:
        """Yield a transaction: all of it is durable when the block ends, none of it when the block raises.

        Inside another such block of the same thread it is a part of that one, undone alone when it alone raises.
        Writers of a space wait for each other, so the log has one order and no gaps; readers wait for nobody.
        """
        if self.current is not None:
            with self._part(self.current) as outer:
                yield outer
            return
        self._check_process()
        if not self._turn.acquire(timeout=LOCK_S):
            raise Busy(f"{self.name} has been busy for {LOCK_S} s. Try again when the running import is done.")
        try:
            lock = f"select {', '.join(_NUMBERS)} from spaces for update"
            connection, row = self._begin(f"{_WRITE}; {self._settings}; {lock}")
            with self._under_way(Transaction(connection)) as transaction:
                if row is None:
                    raise StorageBroken(f"The space {self.space} of {self.name} is gone. Open the library again.")
                before = dict(zip(_NUMBERS, row, strict=True))
                transaction.numbers = dict(before)
                yield transaction
                self._commit(connection, transaction.numbers if transaction.numbers != before else None)
        finally:
            self._turn.release()

    @contextmanager
    def changing(self) -> Iterator[Connection]:
        """Yield a transaction as `writing` does, for rows that are not of the log: nobody waits for anybody."""
        if self.current is not None:
            with self._part(self.current) as outer:
                yield outer.connection
            return
        connection, _ = self._begin(f"{_WRITE}; {self._settings}")
        with self._under_way(Transaction(connection)):
            yield connection
            self._commit(connection)

    @contextmanager
    def _under_way(self, transaction: Transaction) -> Iterator[Transaction]:
        self._local.transaction = transaction
        try:
            yield transaction
        except BaseException as error:
            self.failures += isinstance(error, psycopg.Error)
            raise
        finally:
            self._local.transaction = None
            self._end(transaction.connection)

    @staticmethod
    @contextmanager
    def _part(outer: Transaction) -> Iterator[Transaction]:
        kept = None if outer.numbers is None else dict(outer.numbers)
        try:
            with outer.connection.transaction():  # psycopg: a savepoint
                yield outer
        except BaseException:
            outer.numbers = kept
            raise

    def _commit(self, connection: Connection, numbers: dict[str, int] | None = None) -> None:
        if connection.info.transaction_status is TransactionStatus.INERROR:
            raise StorageBroken("A statement had failed and the transaction went on. This is a bug: report it.")
        given = ", ".join(f"{name} = {int(number)}" for name, number in (numbers or {}).items())
        try:
            connection.execute((f"update spaces set {given}; commit" if given else "commit").encode())
        except psycopg.Error as error:
            if not is_lost(error):
                raise
            raise Unavailable(
                f"The connection to {self.name} was lost while it stored this: it may or may not be there. "
                "Look before you repeat it."
            ) from error

    def _begin(self, statements: str) -> tuple[Connection, tuple[Any, ...] | None]:
        """A connection on which a transaction has begun, and the row that the last of these statements found.

        A connection that turns out to be dead is replaced: nothing has been done on it.
        """
        for wait in (*RETRY_S, None):
            connection = self._take()
            try:
                cursor = connection.execute(statements.encode())
                while cursor.nextset():
                    pass
                return connection, cursor.fetchone() if cursor.description else None
            except BaseException as error:
                self._end(connection)
                if wait is None or not (isinstance(error, psycopg.Error) and is_lost(error)):
                    raise
                self._pools.pool.check()
                time.sleep(wait)
        raise StorageBroken("unreachable")

    def _check_process(self) -> None:
        """Raise StorageBroken in a forked process: two that send through one connection spoil what both say."""
        if os.getpid() != self._process:
            raise StorageBroken(
                f"{self.name} was opened before this process was forked. Open the library again in this one."
            )

    def _take(self) -> Connection:
        self._check_process()
        if self._closed:
            raise StorageBroken(f"{self.name} is closed. Open the library again.")
        return self._pools.pool.getconn(CONNECT_S)

    def _end(self, connection: Connection) -> None:
        """Undo what is not committed, and give the connection back; a broken one is replaced by the pool."""
        try:
            if not connection.closed and connection.info.transaction_status is not TransactionStatus.IDLE:
                connection.execute("rollback")
        except psycopg.Error:
            connection.close()
        finally:
            self._pools.pool.putconn(connection)


def _settings(space: str) -> str:
    """Return the settings of one transaction, which end with it, so that any pooler may stand in between."""
    settings = {
        "search_path": f"{SCHEMA}, pg_temp",
        "commonplace.space": space,
        "statement_timeout": f"{STATEMENT_S}s",
        "lock_timeout": f"{LOCK_S}s",
        "idle_in_transaction_session_timeout": f"{_IDLE_S}s",
        "row_security": "on",
    }
    return "select " + ", ".join(f"set_config('{name}', '{value}', true)" for name, value in settings.items())


class _Shared:
    """The pool of an address, shared by every space open in this process, and not in one it was forked from."""

    _open: dict[tuple[str, int, int], tuple[Pool, int]] = {}
    _lock = threading.Lock()

    def __init__(self, url: str, connections: int) -> None:
        self._key = (url, connections, os.getpid())
        with self._lock:
            pool, users = self._open.get(self._key) or (_pool(url, connections), 0)
            self._open[self._key] = (pool, users + 1)
            self.pool = pool

    def release(self) -> None:
        with self._lock:
            pool, users = self._open.pop(self._key)
            if users > 1:
                self._open[self._key] = (pool, users - 1)
                return
        pool.close()

    @classmethod
    @contextmanager
    def lent(cls, url: str, connections: int) -> Iterator[Connection | None]:
        """Return a connection of the pool that this process has for an address already, or None."""
        with cls._lock:
            is_open = (url, connections, os.getpid()) in cls._open
        if not is_open:
            yield None
            return
        shared = cls(url, connections)  # nobody closes it meanwhile
        try:
            shared.pool.check()  # nobody has noticed yet, perhaps, that the server was started anew
            with shared.pool.connection(CONNECT_S) as connection:
                yield connection
        finally:
            shared.release()


lent = _Shared.lent


def has_space(url: str, space: str, connections: int) -> bool:
    """Return whether a space has been made."""
    if not _SPACE.fullmatch(space):
        return False
    shared = _Shared(url, connections)
    try:
        with explained(shown(url)), shared.pool.connection(CONNECT_S) as connection, connection.transaction():
            connection.execute(_settings(space).encode())
            return connection.execute("select 1 from spaces").fetchone() is not None
    finally:
        shared.release()


def options() -> dict[str, Any]:
    """Return how connections are made: nothing is prepared, for poolers that hand each transaction on."""
    return {
        "autocommit": True, "prepare_threshold": None, "connect_timeout": CONNECT_S, "application_name": "commonplace",
        "client_encoding": "UTF8",
        "keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3, "tcp_user_timeout": GONE_S * 1000,
    }  # fmt: skip


def _is_news(record: logging.LogRecord) -> bool:
    """Return whether a line of the pool's log says more than that a connection was lost, as our own errors do."""
    return not str(record.msg).startswith(("discarding ", "error ignored "))


for _name in ("psycopg", "psycopg.pool"):
    logging.getLogger(_name).addFilter(_is_news)


def _read_backslashes(connection: Connection) -> None:
    """Tell libpq how to write bytes: a pipeline would hear too late what a connection says of backslashes."""
    if connection.info.parameter_status("standard_conforming_strings") == "off":
        connection.execute("set standard_conforming_strings = on")  # poolers keep this one for who has set it


def _pool(url: str, connections: int) -> Pool:
    checked(url, "COMMONPLACE_STORE")  # a pool would write into the log what is wrong with it, and the address, too
    return Pool(
        url, connection_class=PooledConnection, kwargs=options(), min_size=1, max_size=connections, open=True,
        max_idle=300, timeout=CONNECT_S, reconnect_timeout=CONNECT_S, num_workers=1, name="commonplace",
        configure=_read_backslashes,
    )  # fmt: skip
