"""Memories that the page deleted a moment ago, kept so that a deletion can be undone while the server runs."""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from collections.abc import Sequence

from commonplace.errors import InvalidInput
from commonplace.exchange import import_lines, lines_of
from commonplace.kinds.memories.drawer import EntryRows
from commonplace.kinds.memories.memories import Memories
from commonplace.space import Space
from commonplace.store.items import Items

MOST = 20
"""Deletions that can be undone."""
MOST_CHARS = 16_000_000
"""Characters of deleted memories that are kept, all together; of a larger deletion none is."""
_BATCH = 500


class Deletions:
    """The latest deletions of a library, each under a name that nobody can guess."""

    def __init__(self, space: Space) -> None:
        self._store = space.store
        self._kept: OrderedDict[str, list[str]] = OrderedDict()
        self._lock = threading.Lock()

    def __contains__(self, name: str) -> bool:
        return name in self._kept

    def delete(self, memories: Memories, numbers: Sequence[int]) -> tuple[str, int]:
        """Delete memories. Return the name under which that can be undone, "" where it cannot, and how many went."""
        with self._store.transaction():
            lines = self._lines([row.item_id for row in self._store.drawer(EntryRows).get(numbers)])
            count = memories.delete(numbers)
        if not lines:
            return "", count
        name = secrets.token_urlsafe(12)
        with self._lock:
            self._kept[name] = lines
            while len(self._kept) > MOST or sum(map(_chars, self._kept.values())) > MOST_CHARS:
                self._kept.popitem(last=False)
        return name, count

    def undo(self, name: str) -> bool:
        """Store what a deletion took as it was, and return whether it could be."""
        with self._lock:
            lines = self._kept.pop(name, None)
        if lines is None:
            return False
        import_lines(self._store, lines, _no_table)
        return True

    def _lines(self, item_ids: Sequence[int]) -> list[str]:
        """Return what is needed to store items again; nothing where that is too much."""
        lines, size = list[str](), 0
        for start in range(0, len(item_ids), _BATCH):
            for line in lines_of(
                self._store, self._store.drawer(Items).get(item_ids[start : start + _BATCH], body=True)
            ):
                lines.append(line)
                size += len(line)
            if size > MOST_CHARS:
                return []
        return lines


def _chars(lines: Sequence[str]) -> int:
    return sum(map(len, lines))


def _no_table(line: str) -> None:
    raise InvalidInput("A memory is no table.")
