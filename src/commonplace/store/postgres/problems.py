"""Errors of a PostgreSQL server, its addresses and its rights, as ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import errors
from psycopg_pool import PoolTimeout, TooManyRequests

from commonplace.errors import (
    LONE_SURROGATE,
    NUMBER_TAKEN,
    AlreadyExists,
    Busy,
    CommonplaceError,
    InvalidInput,
    StorageBroken,
    StorageFull,
    Unavailable,
)
from commonplace.settings import BadSetting
from commonplace.store.postgres.urls import shown, without_secrets

LOCK_S = 30
STATEMENT_S = 60
_WRONG_SETTING = (
    ("authentication failed", "Check the user and the password"),
    ("no password supplied", "Put the password into the address, or into a .pgpass file"),
    ("no pg_hba.conf entry", "Let this machine in, in the server's pg_hba.conf"),
    ("does not exist", "Create the database and its roles first (docs/operations.md)"),
    ("no such ", "Create the database and its roles first (docs/operations.md)"),  # pgbouncer's words
    ("is not permitted to log in", "Name a role that may log in"),
    ("permission denied for database", "Grant the role the right to connect"),
    ("certificate", "Check sslmode and the certificates"),
)
"""What libpq and the server say when an attempt to connect fails: no code comes with it."""
_PASSING = (
    ("too many ", "Try again when fewer use it, or let it give more"),
    ("slots are reserved", "Try again when fewer use it, or let it give more"),
    ("no more connections", "Try again when fewer use it, or let it give more"),  # pgbouncer's words
    ("the database system is", "Try again in a moment"),  # it starts, or ends
)
"""The same, of a server that is there: the address is right."""


_AT_THE_CONNECTION = (psycopg.OperationalError, psycopg.InterfaceError, psycopg.InternalError)
"""What comes when a connection goes. InternalError: what a pooler said of that was taken for an answer."""


_ENDED = ("25P03", "25P04", "57P05")
"""A server ends connections that were idle, in a transaction or not, or whose transaction took too long for it."""

_TAKEN = (errors.DuplicateTable, errors.DuplicateObject, errors.DuplicateFunction)
"""What comes where a schema holds tables and the like that are not ours."""


class Lost(Unavailable):
    """The connection broke while nothing of the transaction under way was stored."""

    def __init__(self, why: str) -> None:
        super().__init__(f"{why} What was under way is not stored: repeat it.")
        self.why = why


class DatabaseFull(StorageFull):
    """The server's disk has no room: not the caller's disk, so the service is what is missing."""

    exit_code = 69


def refused(url: str, error: psycopg.Error, setting: str) -> CommonplaceError:
    """Return why a connection could not be made to the address that a setting names."""
    name, said = shown(url), without_secrets(_said(error), url)
    for words, advice in _WRONG_SETTING:
        if words in said:
            return BadSetting(f"{name} cannot be used: {said}. {advice}, and check {setting}.")
    for words, advice in _PASSING:
        if words in said:
            return Unavailable(f"{name} gives no connection: {said}. {advice}.")
    return Unavailable(f"{name} cannot be reached: {said}. Check that the server runs and that {setting} is right.")


def is_lost(error: BaseException) -> bool:
    """Return whether the connection is what failed: the same may well succeed on another."""
    if isinstance(error, Lost):
        return True
    if isinstance(error, errors.AdminShutdown | errors.CrashShutdown | errors.CannotConnectNow):
        return True
    if isinstance(error, psycopg.Error) and error.sqlstate in _ENDED:
        return True
    if not isinstance(error, _AT_THE_CONNECTION) or _is_waited_for(error):
        return False
    return error.sqlstate is None or error.sqlstate.startswith("08")  # 08: a pooler's own words, too


def _is_waited_for(error: psycopg.Error) -> bool:
    """Return whether no connection was to be had in the time one is waited for, here or at a pooler."""
    at_a_pooler = isinstance(error, errors.ProtocolViolation) and "query_wait_timeout" in str(error)
    return at_a_pooler or isinstance(error, PoolTimeout | TooManyRequests)


@contextmanager
def explained(name: str) -> Iterator[None]:
    """Raise PostgreSQL's errors as ours, with what to do."""
    try:
        yield
    except CommonplaceError:
        raise
    except UnicodeEncodeError as error:
        raise InvalidInput(LONE_SURROGATE) from error
    except psycopg.Error as error:
        found = _translated(name, error)
        if found is None:
            raise
        raise found from error


@contextmanager
def explained_to_owner(name: str, schema: str) -> Iterator[None]:
    """Raise the errors of making or changing the schema: a missing right, or something else of its name."""
    try:
        yield
    except errors.InsufficientPrivilege as error:
        raise BadSetting(f"{name} cannot be used: {_said(error)}. {owner_advice(schema)}") from error
    except _TAKEN as error:
        raise BadSetting(
            f"{name} has a schema {schema} of something else: {_said(error)}. Use a database of its own."
        ) from error


def owner_advice(schema: str) -> str:
    return f"COMMONPLACE_STORE_OWNER must name a role that may make and change the schema {schema}."


def _translated(name: str, error: psycopg.Error) -> CommonplaceError | None:
    said = _said(error)
    if _is_waited_for(error):
        return Unavailable(f"{name} gives no connection: {said}. Check that it runs, and try again.")
    if is_lost(error):
        return Lost(f"The connection to {name} was lost: {said}.")
    match error:
        case errors.LockNotAvailable():
            return Busy(f"{name} has been busy for {LOCK_S} s. Try again when the running import is done.")
        case errors.QueryCanceled() if "timeout" in said:
            return Busy(f"{name} took longer than {STATEMENT_S} s. Ask for less, or try again when it is less busy.")
        case errors.QueryCanceled():  # pg_cancel_backend
            return Busy(f"{name} ended the operation: {said}. Nothing of it was stored. Repeat it.")
        case errors.UniqueViolation() if error.diag.constraint_name == "memories_pkey":
            return AlreadyExists(NUMBER_TAKEN)
        case errors.DeadlockDetected() | errors.SerializationFailure():
            return Busy(f"{name} was changed by another at the same moment. Repeat the call.")
        case errors.ReadOnlySqlTransaction() | errors.FeatureNotSupported():  # a replica supports no writing
            return BadSetting(f"{name} is read-only, a replica perhaps. Set COMMONPLACE_STORE to the primary server.")
        case errors.DiskFull():
            return DatabaseFull(f"{name} has no room: {said}. Free some of its disk and repeat; nothing was lost.")
        case errors.InsufficientPrivilege() | errors.UndefinedTable() | errors.InvalidSchemaName():
            return BadSetting(f"{name} cannot be used: {said}. Open it once with COMMONPLACE_STORE_OWNER set.")
        case errors.ProgramLimitExceeded():
            return InvalidInput(f"Something is longer than {name} can keep: {said}. Shorten it.")
        case errors.OutOfMemory() | errors.TooManyConnections() | errors.ConfigurationLimitExceeded():
            return Unavailable(f"{name} is out of resources: {said}. Try again, or give the server more.")
        case errors.DataCorrupted() | errors.IndexCorrupted():
            return StorageBroken(f"{name} is damaged: {said}. Restore it from a backup.")
        case psycopg.DataError() if "NUL" in said or isinstance(error, errors.UntranslatableCharacter):
            return InvalidInput("The query contains U+0000, which is never stored. Remove it.")
    return None


def _said(error: psycopg.Error) -> str:
    """Return the server's own words, on one line and without a full stop."""
    text = error.diag.message_primary or str(error)
    text = text.replace("connection failed: ", "")
    for advice in ("Is the server running", "This probably means"):
        text = text.split(advice)[0]
    return " ".join(text.split()).rstrip(".")
