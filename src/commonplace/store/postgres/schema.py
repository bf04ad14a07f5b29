"""The schema: made and changed by its owner, and checked, with server and role, before it is used."""

from __future__ import annotations

from contextlib import closing, nullcontext
from importlib import resources

import psycopg
from psycopg import sql

from commonplace.settings import BadSetting
from commonplace.store.postgres.connection import SCHEMA, lent, options
from commonplace.store.postgres.pooling import Connection
from commonplace.store.postgres.problems import explained, explained_to_owner, owner_advice, refused
from commonplace.store.postgres.urls import checked, shown
from commonplace.store.spelling import folded

LEAST_VERSION = 14
_LOCK = 0x636F6D6D6F6E  # "common": one migrates at a time, whichever server it comes from

_ROWS = 5_000


def load_migrations() -> list[str]:
    """Return the numbered SQL files, in order."""
    folder = resources.files("commonplace.store.postgres").joinpath("migrations")
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda file: file.name)
    return [file.read_text(encoding="utf-8") for file in files]


def migrate(owner: str, app: str) -> int:
    """Bring the schema up to date as its owner, let the role of `app` use it, and return its number.

    A migration commits together with the record of it. Servers of the version before may go on meanwhile.
    """
    with closing(connect(app)) as connection:
        role = connection.info.user
    name = shown(owner)
    with (
        closing(connect(owner, "COMMONPLACE_STORE_OWNER")) as connection,
        explained(name),
        explained_to_owner(name, SCHEMA),
    ):
        _check_server(connection, name)
        if role == connection.info.user:
            raise BadSetting(f"COMMONPLACE_STORE and COMMONPLACE_STORE_OWNER both are {role}. Use two roles.")
        while _migrate_once(connection, role, name):
            pass
        return _version(connection) or 0


def _migrate_once(connection: Connection, role: str, name: str) -> bool:
    migrations = load_migrations()
    with connection.transaction():
        for limit in ("statement_timeout", "lock_timeout"):  # it takes what it takes, whatever is set for the role
            connection.execute(f"set local {limit} = 0".encode())
        connection.execute("select pg_advisory_xact_lock(%s)", (_LOCK,))
        number = _version(connection) or 0
        if number == 0:
            connection.execute(f"create schema if not exists {SCHEMA}".encode())
            if connection.execute("select has_schema_privilege(%s, 'usage')", (SCHEMA,)).fetchone() == (False,):
                # A schema that may not be used is passed over in a search path: tables would go into pg_temp.
                raise BadSetting(f"{name} has a schema {SCHEMA} of another role. {owner_advice(SCHEMA)}")
        connection.execute(f"set local search_path = {SCHEMA}, pg_temp".encode())
        if number < len(migrations):
            connection.execute(
                "create table if not exists schema_versions "
                "(number integer primary key, applied_at timestamptz not null default now())"
            )
            connection.execute(migrations[number].encode())
            if number in _FILLED:
                _FILLED[number](connection)
            connection.execute("insert into schema_versions (number) values (%s)", (number + 1,))
        _grant(connection, role)
    return number + 1 < len(migrations)


def _fill_stems(connection: Connection) -> None:
    """Fill in the names by which documents are found in any case: the tables' owner sees those of every space."""
    with connection.cursor() as names, connection.cursor() as cursor:
        names.execute("select space, item_id, backwards from document_names")
        while rows := names.fetchmany(_ROWS):
            cursor.executemany(
                "update document_names set ending = %s, stem = %s where space = %s and item_id = %s",
                [(*folded(backwards), space, item_id) for space, item_id, backwards in rows],
            )


_FILLED = {3: _fill_stems}
"""What no statement can fill in after a migration, by the number of those before it."""


def _grant(connection: Connection, role: str) -> None:
    user, schema = sql.Identifier(role), sql.Identifier(SCHEMA)
    for statement in (
        "grant usage on schema {schema} to {user}",
        "grant select, insert, update, delete on all tables in schema {schema} to {user}",
        "grant usage on all sequences in schema {schema} to {user}",
        "revoke insert, update, delete on {schema}.schema_versions from {user}",
    ):
        connection.execute(sql.SQL(statement).format(schema=schema, user=user))


def check(app: str, connections: int = 0) -> None:
    """Refuse, with what to do, a server, a role or a schema that cannot be used.

    Where this process has a pool of so many connections already, one of those is used: the server may give no other.
    """
    name = shown(app)
    with (
        explained(name),
        lent(app, connections) as ours,
        closing(connect(app)) if ours is None else nullcontext(ours) as connection,
    ):
        _check_server(connection, name)
        _check_role(connection, name)
        known, there = len(load_migrations()), _version(connection)
        if there is None or there < known:
            raise BadSetting(
                f"The schema of {name} is at {there or 0} and this Commonplace needs {known}. Open it once with "
                "COMMONPLACE_STORE_OWNER set to the address of the schema's owner."
            )
        if there > known + 1:
            raise BadSetting(
                f"{name} was written by a newer Commonplace (schema {there}, this one knows {known}). "
                "Upgrade Commonplace to open it."
            )


def connect(url: str, setting: str = "COMMONPLACE_STORE") -> Connection:
    """Return a connection of its own to the address that a setting names. Raise why there can be none."""
    try:
        return psycopg.connect(checked(url, setting), **options())
    except psycopg.Error as error:
        raise refused(url, error, setting) from error


def _check_server(connection: Connection, name: str) -> None:
    version = connection.info.server_version // 10_000
    if version < LEAST_VERSION:
        raise BadSetting(f"{name} is PostgreSQL {version}. Commonplace needs {LEAST_VERSION} or newer: upgrade it.")
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise BadSetting(f"{name} is a database in {encoding}. Create one with encoding 'UTF8' and use that.")
    row = connection.execute("select pg_is_in_recovery() or current_setting('transaction_read_only')::bool").fetchone()
    if row and row[0]:
        raise BadSetting(f"{name} is read-only, a replica perhaps. Set COMMONPLACE_STORE to the primary server.")


def _check_role(connection: Connection, name: str) -> None:
    """Raise an error for a role that row-level security does not bind: it keeps spaces apart."""
    row = connection.execute(
        """select rolsuper, rolbypassrls,
             exists (select 1 from pg_class join pg_namespace on relnamespace = pg_namespace.oid
                     where nspname = %s and relkind = 'r' and pg_has_role(current_user, relowner, 'usage'))
           from pg_roles where rolname = current_user""",
        (SCHEMA,),
    ).fetchone()
    if row and any(row):
        why = "a superuser" if row[0] else "free of row-level security" if row[1] else "the schema's owner"
        raise BadSetting(
            f"The role of {name} is {why}, so nothing would keep users apart. Use a role of its own for "
            "COMMONPLACE_STORE (docs/operations.md)."
        )


def _version(connection: Connection) -> int | None:
    """Return the number of the schema, or None where there is none yet, or it may not be seen."""
    row = connection.execute(
        "select case when has_schema_privilege(n.oid, 'usage') then to_regclass(%s) end "
        "from pg_namespace n where nspname = %s",
        (f"{SCHEMA}.schema_versions", SCHEMA),
    ).fetchone()
    if row is None or row[0] is None:
        return None
    found = connection.execute(f"select coalesce(max(number), 0) from {SCHEMA}.schema_versions".encode()).fetchone()
    return int(found[0]) if found else None
