"""The messages of conversations, in the order in which they were said."""

from __future__ import annotations

from collections.abc import Sequence

from commonplace.store.dialect import NO_LIMIT, Tuned
from commonplace.store.session import Drawer, reads

# SQLite has an index of the fields themselves; a server has the columns `seat` and `label` of them.
_MESSAGES = Tuned(
    sqlite="""select id from items where kind = 'message' and parent = :conversation
              order by fields ->> '$.index', id limit :limit offset :first""",
    postgres="""select id from items
                where kind = 'message' and parent_head = left(:conversation, 100) and parent = :conversation
                order by seat nulls first, id limit :limit offset :first""",
)
_OPENINGS = Tuned(
    sqlite="""select items.parent, body from rows(:places key text) as wanted
                cross join items indexed by messages_in_order
                  on items.kind = 'message' and items.parent = wanted.key and fields ->> '$.index' = 0
                join bodies on item_id = items.id""",
    postgres="""select parent, body from items join bodies on item_id = items.id where kind = 'message'
                  and parent_head in each(:heads text) and parent in each(:conversations text) and seat = 0""",
)
_WITH_CHARACTER = Tuned(
    sqlite="""select id, key from items
              where kind = 'conversation' and fields ->> '$.character' = :character order by id""",
    postgres="""select id, key from items where kind = 'conversation'
                  and label_head = left(:character, 100) and label = :character order by id""",
)


class Messages(Drawer):
    """A view of items: conversations, and the messages below them."""

    @reads
    def of(self, conversation: str, first: int = 0, limit: int = NO_LIMIT) -> list[int]:
        """Return the item ids of a conversation's messages in its order, from one on."""
        rows = self._db.all(_MESSAGES, {"conversation": conversation, "first": first, "limit": limit})
        return [item for (item,) in rows]

    @reads
    def openings(self, conversations: Sequence[str]) -> dict[str, str]:
        """Return the first message of each of these conversations."""
        values = {
            "places": [(key,) for key in conversations],
            "heads": [key[:100] for key in conversations],
            "conversations": conversations,
        }
        return dict(self._db.all(_OPENINGS, values))

    @reads
    def conversations_with(self, character: str) -> list[tuple[int, str]]:
        """Return the ids and keys of the conversations with a character."""
        return [(item, key) for item, key in self._db.all(_WITH_CHARACTER, {"character": character})]
