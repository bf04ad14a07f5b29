"""The store on PostgreSQL, whole."""

from __future__ import annotations

from commonplace.errors import Command, Unavailable
from commonplace.store.postgres.care import PostgresCare
from commonplace.store.postgres.copying import Copies
from commonplace.store.postgres.schema import check, migrate
from commonplace.store.stored_settings import StoredSettings
from commonplace.store.transfer import MIGRATION


class PostgresStore(
    Copies,
    PostgresCare,
):
    """A store in one space of a PostgreSQL database, with everything that `Store` promises."""


def open_postgres(url: str, space: str, *, owner: str = "", connections: int = 20) -> PostgresStore:
    """Return the store of a space, made where there is none. With `owner` the schema is brought up to date first."""
    if owner:
        migrate(owner, url)
    check(url, connections)
    store = PostgresStore(url, space, connections)
    try:
        _check_whole(store, space)
    except BaseException:
        store.close()
        raise
    return store


def _check_whole(store: PostgresStore, space: str) -> None:
    mark = store.drawer(StoredSettings).get(MIGRATION)
    if isinstance(mark, dict) and not mark["complete"]:
        raise Unavailable(
            f"The space {space} of {store.name} is being filled, or that was broken off. Wait for `",
            Command("migrate"),
            "`, or run it again: it goes on where it was.",
        )
