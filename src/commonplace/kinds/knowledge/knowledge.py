"""The five kinds of one library, by the names callers know them by."""

from __future__ import annotations

from collections.abc import Sequence

from commonplace.errors import NotFound
from commonplace.index.followers import WordIndex
from commonplace.kinds.knowledge.drawer import Records
from commonplace.kinds.knowledge.item_reading import ItemReader
from commonplace.kinds.knowledge.item_search import KnowledgeSearch
from commonplace.kinds.knowledge.kinds import KIND_OF
from commonplace.model import Change, IndexedItem, Item, parse_uri
from commonplace.space import Space
from commonplace.store.base import Store
from commonplace.store.items import Items
from commonplace.store.lasting_names import LastingNames

FOLDER = "whole"


class _Whole:
    """The log as this index reads it: whole items in place of chunks."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def last_change(self) -> int:
        return self._store.last_change()

    def changes(self, after: int, limit: int) -> list[Change]:
        return self._store.changes(after, limit)

    def indexed(self, item_ids: Sequence[int]) -> list[IndexedItem]:
        return self._store.drawer(Records).whole(item_ids)


def whole_index(space: Space) -> WordIndex:
    """Return the space's index of whole items, kept where its index of passages is."""
    return space.make_words(space.indexes / FOLDER, _Whole(space.store), space.settings.language)


_LABELS = {"media": "media item", "chats": "conversation"}


class Knowledge:
    """The five kinds of one library."""

    def __init__(self, space: Space) -> None:
        """Set up search and reading. The index of whole items lives beside that of passages."""
        self.store = space.store
        self.index = whole_index(space)
        meaning = space.semantic if space.settings.knowledge_search == "hybrid" else None
        self.finding = KnowledgeSearch(self.store, self.index, space.lexical, meaning)
        self.reading = ItemReader(self.store, self.index)

    def item(self, source: str, id_or_uri: str | int, *, body: bool = True) -> tuple[Item, str | None]:
        """Return an item by its id, its address or, for prompts, its name; and the message that an address names.

        Raise NotFound.
        """
        kind, text = KIND_OF[source], str(id_or_uri)
        item, message = None, None
        if "://" in text:
            parts = parse_uri(text)
            if parts and parts[0] == "message" and kind == "conversation":
                message = parts[2]
                item = self._talk(parts[1] or "", message, body=body)
            elif parts and parts[0] == kind:
                item = self.store.drawer(Items).find(kind, None, parts[2], body=body)
        else:
            item = self._named(text, body=body) if kind == "prompt" else None
            item = item or self.store.drawer(Items).find(kind, None, text, body=body)
        if item is None:
            label = _LABELS.get(source, kind)
            raise NotFound(f'There is no {label} "{text}". Find one with {source}.search.')
        return item, message

    def _talk(self, conversation: str, message: str, *, body: bool) -> Item | None:
        """Return a conversation that has this message, or None."""
        if self.store.drawer(Items).find("message", conversation, message, body=False) is None:
            return None
        return self.store.drawer(Items).find("conversation", "", conversation, body=body)

    def _named(self, name: str, *, body: bool) -> Item | None:
        """Return the prompt with a name, of several the one spelled exactly so."""
        prompts = self.store.drawer(Items).get(self.store.drawer(LastingNames).named("prompt", name), body=body)
        exact = [item for item in prompts if item.title == name] or prompts
        return exact[0] if exact else None

    def character(self, id_or_uri: str | int) -> str | None:
        """Return the key of a character by its id or address, or None."""
        try:
            return self.item("characters", id_or_uri, body=False)[0].key
        except NotFound:
            return None
