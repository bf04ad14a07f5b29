"""The five kinds of one library, by the names callers know them by."""

from __future__ import annotations

from pathlib import Path

from commonplace.errors import NotFound
from commonplace.index.base import MakeWords, WordIndex
from commonplace.kinds.knowledge.finding import Finding
from commonplace.kinds.knowledge.kinds import KIND_OF
from commonplace.kinds.knowledge.reading import Reading
from commonplace.kinds.knowledge.whole import whole_index
from commonplace.model import Item, parse_uri
from commonplace.search.pipeline import SemanticSource
from commonplace.settings import Settings
from commonplace.store.base import Store

_LABELS = {"media": "media item", "chats": "conversation"}


class Knowledge:
    """Made once per library."""

    def __init__(
        self,
        store: Store,
        passages: WordIndex,
        indexes: Path,
        settings: Settings,
        semantic: SemanticSource,
        make: MakeWords | None = None,
    ) -> None:
        """`passages` is the index of chunks; that of whole items, which `make` makes, lives in `indexes` beside it."""
        self.store = store
        self.index = whole_index(store, indexes, settings.language, make)
        meaning = semantic if settings.knowledge_search == "hybrid" else None
        self.finding = Finding(store, self.index, passages, meaning)
        self.reading = Reading(store, self.index)

    def item(self, source: str, given: str | int, *, body: bool = True) -> tuple[Item, str | None]:
        """The item of a source by its id, its address or, for prompts, its name; and the message an address names."""
        kind, text = KIND_OF[source], str(given)
        found, message = None, None
        if "://" in text:
            parts = parse_uri(text)
            if parts and parts[0] == "message" and kind == "conversation":
                message = parts[2]
                found = self._talk(parts[1] or "", message, body=body)
            elif parts and parts[0] == kind:
                found = self.store.item(kind, None, parts[2], body=body)
        else:
            found = self._named(text, body=body) if kind == "prompt" else None
            found = found or self.store.item(kind, None, text, body=body)
        if found is None:
            label = _LABELS.get(source, kind)
            raise NotFound(f'There is no {label} "{text}". Find one with {source}.search.')
        return found, message

    def _talk(self, conversation: str, message: str, *, body: bool) -> Item | None:
        if self.store.item("message", conversation, message, body=False) is None:
            return None
        return self.store.item("conversation", "", conversation, body=body)

    def _named(self, name: str, *, body: bool) -> Item | None:
        found = self.store.items(self.store.named("prompt", name), body=body)
        exact = [item for item in found if item.title == name] or found
        return exact[0] if exact else None

    def character(self, given: str | int) -> str | None:
        """The key of a character by its id or address, if there is one."""
        try:
            return self.item("characters", given, body=False)[0].key
        except NotFound:
            return None
