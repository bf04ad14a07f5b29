"""The store in a PostgreSQL database that any number of servers share."""

from commonplace.store.postgres.accounts import PostgresAccounts
from commonplace.store.postgres.connection import has_space
from commonplace.store.postgres.schema import migrate
from commonplace.store.postgres.store import PostgresStore, open_postgres

__all__ = ["PostgresAccounts", "PostgresStore", "has_space", "migrate", "open_postgres"]
