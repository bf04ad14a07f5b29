"""The store on PostgreSQL, whole."""

from __future__ import annotations

from commonplace.errors import Unavailable
from commonplace.store.postgres.care import Care
from commonplace.store.postgres.copying import Copies
from commonplace.store.postgres.files import Files
from commonplace.store.postgres.keeping import Keeping
from commonplace.store.postgres.knowledge import Records
from commonplace.store.postgres.listings import Listings
from commonplace.store.postgres.naming import Names
from commonplace.store.postgres.outlines import Outlines
from commonplace.store.postgres.schema import check, migrate
from commonplace.store.postgres.sessions import Sessions
from commonplace.store.postgres.table_nodes import TableNodes
from commonplace.store.postgres.vectors import Vectors
from commonplace.store.transfer import MIGRATION


class PostgresStore(Sessions, Records, Listings, Names, Outlines, TableNodes, Files, Vectors, Keeping, Copies, Care):
    """Everything the Store interface promises, in one space of a PostgreSQL database."""


def open_postgres(url: str, space: str, *, owner: str = "", connections: int = 20) -> PostgresStore:
    """Open a space, making it where there is none. With the owner's address the schema is brought up to date first."""
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
    mark = store.setting(MIGRATION)
    if isinstance(mark, dict) and not mark["complete"]:
        raise Unavailable(
            f"The space {space} of {store.name} is being filled, or that was broken off. Wait for "
            "`commonplace migrate`, or run it again: it goes on where it was."
        )
