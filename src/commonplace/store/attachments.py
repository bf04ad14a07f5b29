"""Attachments: files that hang on items, each stored once however many items have it."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Sequence

from commonplace.errors import InvalidInput
from commonplace.model import JSON
from commonplace.store.rows import Attachment
from commonplace.store.session import Drawer, reads, writes
from commonplace.store.shaping import json_text


class Attachments(Drawer):
    """A row per file, and a row per item that has it."""

    @writes
    def attach(self, item_id: int, attachments: Sequence[tuple[Attachment, dict[str, JSON]]]) -> None:
        """Replace the attachments of an item, each with its fields. Raise InvalidInput where the item is not stored."""
        if self._db.row("select 1 from items where id = :item", {"item": item_id}) is None:
            raise InvalidInput("Attachments belong to a stored item. Store the item first.")
        if any(hashlib.sha256(attachment.data).digest() != attachment.hash for attachment, _ in attachments):
            raise InvalidInput("An attachment's hash is the SHA-256 of its data.")
        replaced = self.detach([item_id])
        self._db.run_all(
            "insert into attachments (hash, data) values (:hash, :data) on conflict key(hash) do nothing",
            [(attachment.hash, attachment.data) for attachment, _ in attachments],
        )
        self._db.run_all(
            """insert into item_attachments (item_id, position, hash, media_type, fields)
               values (:item, :position, :hash, :type, :fields)""",
            [
                (item_id, position, attachment.hash, attachment.media_type, json_text(fields))
                for position, (attachment, fields) in enumerate(attachments)
            ],
        )
        self.drop_unattached(replaced)

    @reads
    def of(self, item_id: int) -> list[tuple[Attachment, dict[str, JSON]]]:
        """Return the attachments of an item with their fields, in order."""
        return self._of_many([item_id]).get(item_id, [])

    @reads
    def of_many(self, item_ids: Sequence[int]) -> dict[int, list[tuple[Attachment, dict[str, JSON]]]]:
        """Return the attachments of items with their fields, in order, by item id."""
        return self._of_many(item_ids)

    def detach(self, item_ids: Sequence[int]) -> set[bytes]:
        """Take the attachments of items off them, and return the hashes. Belongs into a write."""
        query = "delete from item_attachments where item_id in each(:items int) returning hash"
        return {hash for (hash,) in self._db.all(query, {"items": item_ids})}

    def drop_unattached(self, hashes: Iterable[bytes]) -> None:
        """Remove those of some files that no item has any more. Belongs into a write."""
        if hashes := list(hashes):
            self._db.run(
                """delete from attachments where hash in each(:hashes bytes)
                   and not exists (select 1 from item_attachments where item_attachments.hash = attachments.hash)""",
                {"hashes": hashes},
            )

    def _of_many(self, item_ids: Sequence[int]) -> dict[int, list[tuple[Attachment, dict[str, JSON]]]]:
        rows = self._db.all(
            """select item_id, hash, media_type, data, fields from item_attachments join attachments using (hash)
               where item_id in each(:items int) order by item_id, position""",
            {"items": item_ids},
        )
        attachments: dict[int, list[tuple[Attachment, dict[str, JSON]]]] = defaultdict(list)
        for item_id, hash, media_type, data, fields in rows:
            attachments[item_id].append((Attachment(hash, media_type, data), json.loads(fields)))
        return attachments
