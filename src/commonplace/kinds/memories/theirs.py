"""UUIDs that entries had in an mcp-context-server of version 3, kept beside imported entries and found by prefix.

A text of digits alone is always an entry number of ours, never the prefix of a UUID.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from commonplace.errors import NotFound
from commonplace.store.base import Store
from commonplace.store.rows import EntryRow, ImportSource

SHORTEST, WHOLE = 8, 32
"""Hexadecimal digits of the beginning of an id, and of all of it."""
_KIND, _PATH = "memory", "context-server"
_DIGITS = re.compile(r"[0-9a-f]+\Z")
_MOST_NAMED = 5


def id_of(text: str) -> str | None:
    """Return the hexadecimal digits of an id or of its beginning; None for what is neither, or a number of ours."""
    trimmed = text.strip().lower()
    digits = trimmed.replace("-", "")
    if trimmed.isdigit() or not SHORTEST <= len(digits) <= WHOLE or not _DIGITS.match(digits):
        return None
    return digits


def keep_id(store: Store, id: str, item_id: int) -> None:
    """Note the id under which an entry was imported. It is removed with the entry."""
    store.set_import_source(ImportSource(_KIND, _path(id), id, b"", item_id, 1))


def has_id(store: Store, item_id: int) -> bool:
    """Return whether an entry was imported under an id."""
    return any(source.kind == _KIND for source in store.import_sources_of(item_id))


def number_of(store: Store, id: str) -> int | None:
    """Return the number here of the entry that was imported under exactly this id, or None."""
    source = store.import_source(_KIND, _path(id), id)
    rows = store.entries_of([source.item_id]) if source else []
    return rows[0].number if rows else None


def number_called(store: Store, beginning: str) -> int:
    """Return the number of the entry whose id begins with `beginning`. Raise NotFound where none or several do."""
    sources = [one for one in store.import_sources_at(_KIND, _path(beginning)) if one.position.startswith(beginning)]
    rows = {row.item_id: row for row in store.entries_of([source.item_id for source in sources])}
    matches = [(source.position, rows[source.item_id]) for source in sources if source.item_id in rows]
    if not matches:
        raise NotFound(f"There is no context entry {beginning[:SHORTEST]}….")
    if len({row.number for _, row in matches}) > 1:
        raise NotFound(_several(beginning, matches), code="ambiguous", candidates=[id for id, _ in matches])
    return matches[0][1].number


def _several(beginning: str, known: Sequence[tuple[str, EntryRow]]) -> str:
    listing = ", ".join(f"{id} ({row.number})" for id, row in known[:_MOST_NAMED])
    more = f" and {len(known) - _MOST_NAMED} more" if len(known) > _MOST_NAMED else ""
    return f"Several context entries have ids that begin with {beginning}: {listing}{more}. Give one of them."


def _path(id: str) -> str:
    """Return the path an id is stored under: the part that every accepted prefix of it has."""
    return f"{_PATH}/{id[:SHORTEST]}"
