"""JSON tables: data by place, tools bound to places, instances that serve those, and a search of what is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace.store.stored_settings import StoredSettings

if TYPE_CHECKING:
    from commonplace.store.base import Store

LISTED = "tables.state"
"""The setting that counts the changes of what can be listed. Where it is absent there never was a table."""


def has_tables(store: Store) -> bool:
    """Return whether there ever was a project, a table or an instance. Nothing of this kind is loaded for it."""
    return bool(store.drawer(StoredSettings).get(LISTED))
