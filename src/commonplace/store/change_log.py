"""The log: every mutation of an item, in the order of commits, that indexes and embedders follow."""

from __future__ import annotations

from collections.abc import Sequence

from commonplace.model import Change, Op
from commonplace.store.session import Drawer, reads


class ChangeLog(Drawer):
    """A row per change, numbered without gaps."""

    replaced = False
    """Whether another process has put a backup in the store's place since it was opened: indexes of the old log are not
    fit for the new one. Known as of the last call of `last`."""
    identity: str | None = None
    """Which log that call has seen. The numbers of changes mean something in their own log alone."""

    def last(self) -> int:
        """Return the number of the last change, 0 where there is none, and refresh `replaced` and `identity`."""
        number, identity = self._db.read(self._last)
        self.replaced = self.replaced or self.identity not in (None, identity)
        self.identity = identity
        return number

    @reads
    def changes(self, after: int, limit: int) -> list[Change]:
        """Return at most `limit` changes in order, from just after a number."""
        rows = self._db.all(
            "select seq, op, item_id, version from changes where seq > :after order by seq limit :limit",
            {"after": after, "limit": limit},
        )
        return [Change(*row) for row in rows]

    def append(self, op: Op, items: Sequence[tuple[int, int]]) -> None:
        """Log a change of each (item, version it has now), in this order. Belongs into a write."""
        if items:
            first = self._db.next("change", len(items))
            self._db.run_all(
                "insert into changes (seq, op, item_id, version) values (:seq, :op, :item, :version)",
                [(seq, op, item_id, version) for seq, (item_id, version) in enumerate(items, start=first)],
            )

    def _last(self) -> tuple[int, str | None]:
        row = self._db.row(
            """select (select coalesce(max(seq), 0) from changes),
                 (select value from settings where name = 'identity')"""
        )
        return (int(row[0]), row[1]) if row else (0, None)
