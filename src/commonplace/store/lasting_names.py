"""Names that last: the UUIDs, titles and numbers by which items are known, whatever becomes of their addresses."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import uuid4

from commonplace.model import Item
from commonplace.store.dialect import Tuned
from commonplace.store.filters import fold_value
from commonplace.store.hanging import Hanging
from commonplace.store.rows import NumberedWrite
from commonplace.store.session import reads, writes

_NAMED = Tuned(
    sqlite="select item_id from records where kind = :kind and folded = :folded order by item_id",
    postgres="""select item_id from records
                where kind = :kind and folded_head = left(:folded, 100) and folded = :folded order by item_id""",
)
_TITLES = Tuned(
    sqlite="""select records.item_id, title from records join items on items.id = records.item_id
              where records.kind = :kind and records.folded > :after order by records.folded limit :limit""",
    postgres="""select item_id, title from records join items on items.id = item_id
                where records.kind = :kind and folded_head >= left(:after, 100) and records.folded > :after
                order by folded_head, records.folded limit :limit""",
)


class LastingNames(Hanging):
    """A row per note, medium, conversation, character and prompt, and the last number of each kind.

    On SQLite triggers keep the rows.
    """

    @reads
    def uids(self, item_ids: Sequence[int]) -> dict[int, str]:
        """Return the UUIDs by which export and import know these items, by id."""
        return dict(self._db.all("select item_id, uid from records where item_id in each(:ids int)", {"ids": item_ids}))

    @reads
    def item_of_uid(self, kind: str, uid: str) -> int | None:
        """Return the id of the item of a kind with this UUID, or None."""
        row = self._db.row("select item_id from records where uid = :uid and kind = :kind", {"uid": uid, "kind": kind})
        return int(row[0]) if row else None

    @writes
    def set_uid(self, item_id: int, uid: str) -> None:
        """Give an item another UUID."""
        self._db.run("update records set uid = :uid where item_id = :item", {"uid": uid, "item": item_id})

    @reads
    def named(self, kind: str, title: str) -> list[int]:
        """Return the ids of a kind's items with this title, case ignored."""
        return [item for (item,) in self._db.all(_NAMED, {"kind": kind, "folded": fold_value(title)})]

    @reads
    def titles(self, kind: str, after: str, limit: int) -> list[tuple[int, str]]:
        """Return ids and titles of a kind's items in the order of their folded titles, from just after one."""
        rows = self._db.all(_TITLES, {"kind": kind, "after": after, "limit": limit})
        return [(item_id, title) for item_id, title in rows]

    @writes
    def next_number(self, kind: str) -> int:
        """Return a number for an item of a kind that none ever had."""
        row = self._db.row(
            """insert into counters (kind, last) values (:kind, 1)
               on conflict key(kind) do update set last = counters.last + 1 returning last""",
            {"kind": kind},
        )
        return int(row[0]) if row else 1

    @writes
    def take_number(self, kind: str, number: int) -> None:
        """Give out no number up to this one any more."""
        self._db.run(
            """insert into counters (kind, last) values (:kind, :number)
               on conflict key(kind) do update set last = greatest(counters.last, excluded.last)""",
            {"kind": kind, "number": number},
        )

    def added(self, writes: Sequence[NumberedWrite]) -> None:
        """Give new items a UUID, and the title that they are found by."""
        if self._db.dialect == "postgres":
            self._db.run_all(
                "insert into records (item_id, kind, uid, folded) values (:item, :kind, :uid, :folded)",
                [
                    (item_id, write.draft.kind, str(uuid4()), fold_value(write.draft.title))
                    for item_id, _, write in writes
                ],
            )

    def changed(self, old: Item, write: NumberedWrite) -> None:
        """Store another title of an item."""
        title = write.write.draft.title
        if self._db.dialect == "postgres" and title != old.title:
            values = {"folded": fold_value(title), "item": old.id}
            self._db.run("update records set folded = :folded where item_id = :item", values)

    def removed(self, item_ids: Sequence[int]) -> None:
        """Remove the rows of items that go."""
        if self._db.dialect == "postgres":
            self._db.run("delete from records where item_id in each(:ids int)", {"ids": item_ids})
