"""Ids that entries had in an mcp-context-server of version 3: kept beside what was imported, found by their beginnings.

They are UUIDs. Digits alone are always a number of ours.
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
    given = text.strip().lower()
    digits = given.replace("-", "")
    if given.isdigit() or not SHORTEST <= len(digits) <= WHOLE or not _DIGITS.match(digits):
        return None
    return digits


def keep_id(store: Store, id: str, item_id: int) -> None:
    """Note under which id an entry was imported. It goes with the entry."""
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
    """Return the number of the entry whose id begins so. Raise NotFound where there is none, or several."""
    sources = [one for one in store.import_sources_at(_KIND, _path(beginning)) if one.position.startswith(beginning)]
    rows = {row.item_id: row for row in store.entries_of([source.item_id for source in sources])}
    known = [(source.position, rows[source.item_id]) for source in sources if source.item_id in rows]
    if not known:
        raise NotFound(f"There is no context entry {beginning[:SHORTEST]}….")
    if len({row.number for _, row in known}) > 1:
        raise NotFound(_several(beginning, known), code="ambiguous", candidates=[id for id, _ in known])
    return known[0][1].number


def _several(beginning: str, known: Sequence[tuple[str, EntryRow]]) -> str:
    named = ", ".join(f"{id} ({row.number})" for id, row in known[:_MOST_NAMED])
    more = f" and {len(known) - _MOST_NAMED} more" if len(known) > _MOST_NAMED else ""
    return f"Several context entries have ids that begin with {beginning}: {named}{more}. Give one of them."


def _path(id: str) -> str:
    """Ids are looked up by what every beginning of them has."""
    return f"{_PATH}/{id[:SHORTEST]}"
