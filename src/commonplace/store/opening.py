"""Open the store and the accounts that the settings name: files of this home, or a PostgreSQL database."""

from __future__ import annotations

import errno
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias

from commonplace.settings import BadSetting, Settings
from commonplace.store.base import Store
from commonplace.store.sqlite.store import SqliteStore

if TYPE_CHECKING:  # psycopg is an extra, and takes a moment to load; most commands know no users
    from commonplace.store.postgres import PostgresAccounts, PostgresStore
    from commonplace.store.sqlite.accounts import Accounts

DATABASE = "library.db"
AnyAccounts: TypeAlias = "Accounts | PostgresAccounts"


def open_store(settings: Settings, folder: Path) -> Store:
    """Return the store of a space, which has the name of its folder, made where there is none."""
    if not settings.store:
        _make(folder)
        return SqliteStore(folder / DATABASE)
    store: PostgresStore = _postgres(settings).open_postgres(
        settings.store, folder.name, owner=settings.store_owner, connections=settings.store_connections
    )
    return store


def _make(folder: Path) -> None:
    """Make a space's folder, which nobody but its owner looks into. Raise BadSetting where the home cannot be one.

    SQLite would call that a broken file. A full disk is another matter, and so is a file of the home that is in the
    way.
    """
    home = folder.parent.parent
    try:
        str(folder).encode()
        folder.mkdir(0o700, parents=True, exist_ok=True)
    except UnicodeEncodeError as error:  # SQLite opens what is named in UTF-8
        raise BadSetting(f"home cannot be {str(home)!a}: its name is no text in UTF-8. Name another folder.") from error
    except OSError as error:
        in_the_way = error.errno in (errno.EEXIST, errno.ENOTDIR) and home.is_dir()
        if in_the_way or error.errno in (errno.ENOSPC, errno.EDQUOT):
            return
        raise BadSetting(
            f"home cannot be {home}: {error.strerror or error}. Name a folder that may be written to."
        ) from error


def restore_store(settings: Settings, folder: Path, source: Path) -> None:
    """Put a backup in the place of a space's store, also of a file that is too damaged to be opened."""
    if not settings.store:
        from commonplace.store.sqlite.restoring import restore_file  # nothing else needs it

        restore_file(folder / DATABASE, source)
        return
    store = open_store(settings, folder)
    try:
        store.restore(source)
    finally:
        store.close()


def has_space(settings: Settings, space: str) -> bool:
    """Return whether a space is in the database that servers share. It is not made by asking."""
    return bool(_postgres(settings).has_space(settings.store, space, settings.store_connections))


def open_accounts(settings: Settings, path: Path | None = None) -> AnyAccounts:
    """Return the users and keys of a home: in `path` or its own file, or in the database where one is set."""
    if not settings.store:
        from commonplace.store.accounts import FILE
        from commonplace.store.sqlite.accounts import Accounts

        return Accounts(path or settings.home.expanduser() / FILE)
    accounts: AnyAccounts = _postgres(settings).PostgresAccounts(
        settings.store, owner=settings.store_owner, connections=settings.store_connections
    )
    return accounts


def has_accounts(settings: Settings, path: Path | None = None) -> bool:
    """Return whether there are any users. No file is made by asking."""
    from commonplace.store.accounts import FILE

    if not settings.store and not (path or settings.home.expanduser() / FILE).exists():
        return False
    accounts = open_accounts(settings, path)
    try:
        return bool(accounts.users())
    finally:
        accounts.close()


def check_postgres(settings: Settings) -> None:
    """Raise BadSetting for an address that is none, or with what to install where the driver is missing."""
    _postgres(settings)


def _postgres(settings: Settings) -> ModuleType:
    if not settings.store.startswith(("postgresql://", "postgres://")):
        raise BadSetting("store must be an address that begins with postgresql://, or unset for a file.")
    try:
        from commonplace.store import postgres
    except ImportError as error:
        raise BadSetting("PostgreSQL needs psycopg. Run: pip install 'commonplace-mcp[postgres]'") from error
    return postgres
