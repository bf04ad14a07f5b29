"""Items that are not shown any more: whoever looks next removes those that have expired; newer ones replace others."""

from __future__ import annotations

from commonplace.store.session import Drawer, reads


class Outdated(Drawer):
    """A view of what kinds keep beside their items. A search asks it, which knows no kind."""

    @reads
    def expired(self, now: int) -> list[int]:
        """Return the items that expire at or before `now`, in microseconds, the earliest first."""
        query = "select item_id from memories where expires_at is not null and expires_at <= :now order by expires_at"
        return [item_id for (item_id,) in self._db.all(query, {"now": now})]

    @reads
    def superseded(self) -> list[int]:
        """Return the items that newer ones have replaced, ascending."""
        query = "select item_id from memories where id in (select older from supersessions) order by item_id"
        return [item_id for (item_id,) in self._db.all(query)]
