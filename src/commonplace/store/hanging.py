"""What hangs on items: the rows that a kind keeps beside them, written in the transaction that writes them.

A kind names its drawers here, as text. They are imported at the first write of an item of that kind, so that whoever
only reads, or writes other kinds, loads none of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any, Protocol

from commonplace.model import Item
from commonplace.store.rows import NumberedWrite
from commonplace.store.session import D, Drawer, StoreSession

OUTLINES = "commonplace.kinds.documents.outlines:Outlines"
NAMES = "commonplace.store.lasting_names:LastingNames"
HANGING: Mapping[str, tuple[str, ...]] = {
    "document": (OUTLINES, "commonplace.kinds.documents.document_names:DocumentNames"),
    "memory": ("commonplace.store.metadata_index:MetadataIndex", "commonplace.kinds.memories.drawer:EntryRows"),
    **dict.fromkeys(("note", "media", "conversation", "character", "prompt"), (NAMES,)),
}
"""The drawers that hang on items of each kind, as `module:class`, in the order in which they are told."""


class Opens(Protocol):
    """A store, or its session: each opens drawers."""

    def drawer(self, kind: type[D]) -> D: ...


class Hanging(Drawer):
    """A drawer of rows that hang on items. Its methods run in the transaction that writes the items."""

    def added(self, writes: Sequence[NumberedWrite]) -> None:
        """Store what hangs on new items. They, their texts and their passages are stored already."""
        raise NotImplementedError

    def changed(self, old: Item, write: NumberedWrite) -> None:
        """Store what hangs on the next version of an item."""
        self.removed([old.id])
        self.added([write])

    def unchanged(self, old: Item, write: NumberedWrite) -> None:
        """Store what newer rules read off an item that is written again as it was."""

    def removed(self, item_ids: Sequence[int]) -> None:
        """Remove what hangs on items that go. They are still stored."""
        raise NotImplementedError


def hanging_on(session: StoreSession, kind: str) -> list[Hanging]:
    """Return the drawers that hang on items of a kind."""
    return [session.drawer(loaded(name)) for name in HANGING.get(kind, ())]


@cache
def loaded(name: str) -> type[Hanging]:
    """Return the class that a name of `HANGING` stands for."""
    module, _, attribute = name.partition(":")
    found: type[Hanging] = getattr(import_module(module), attribute)
    return found


def headings_at(session: Opens, places: Sequence[tuple[int, int]]) -> list[tuple[str, ...]]:
    """Return the path of the heading at or above each (document, line): a search shows it and knows no kind."""
    outlines: Any = session.drawer(loaded(OUTLINES))
    paths: list[tuple[str, ...]] = outlines.headings_at(places)
    return paths
