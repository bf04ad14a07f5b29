"""A pool of connections that says why it has none to give."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import psycopg
from psycopg_pool import ConnectionPool, PoolTimeout

from commonplace.errors import Unavailable
from commonplace.store.postgres.problems import refused

Connection = psycopg.Connection[tuple[Any, ...]]


class PooledConnection(Connection):
    """A connection of a pool, which notes why it could not be made: the pool alone knows how long it has waited."""

    refusals: ClassVar[dict[str, psycopg.Error]] = {}
    """What the last attempt at an address has failed with."""

    @classmethod
    def connect(cls, conninfo: str = "", **kwargs: Any) -> Self:
        try:
            connection = super().connect(conninfo, **kwargs)
        except psycopg.Error as error:
            cls.refusals[conninfo] = error
            raise
        cls.refusals.pop(conninfo, None)
        return connection


class Pool(ConnectionPool[Connection]):
    """A pool that raises the reason it has no connection, as opening the library now would."""

    def getconn(self, timeout: float | None = None) -> Connection:
        try:
            return super().getconn(timeout)
        except PoolTimeout as error:
            url = str(self.conninfo)
            if (refusal := PooledConnection.refusals.get(url)) is None:
                raise
            # Unavailable, even where it is a wrong setting: it was right when the library was opened.
            raise Unavailable(str(refused(url, refusal, "COMMONPLACE_STORE"))) from error
