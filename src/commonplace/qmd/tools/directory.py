"""The names of all documents and collections, kept in memory from one change to the next.

Globs and suggestions look through the documents, and every search begins with the collections.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from weakref import WeakKeyDictionary

from commonplace.kinds.documents.document_names import DocumentNames
from commonplace.kinds.documents.folders.folder_collections import Collection, all_collections, packages
from commonplace.space import Space
from commonplace.text.normal import normalized

MOST_KEPT = 100_000
"""The most names kept in memory; a larger library reads them each time."""


@dataclass(frozen=True)
class Directory:
    """Every document's id and `collection/path`, by collection and path, as of one change."""

    change: int
    ids: Sequence[int]
    files: Sequence[str]

    @cached_property
    def folded(self) -> Sequence[str]:
        """The files in the form in which case does not count."""
        together = "\0".join(self.files)
        return self.files if (lower := folded(together)) == together else lower.split("\0")

    @cached_property
    def lasts(self) -> Sequence[str]:
        """The last component of each folded file."""
        return [file[file.rfind("/") + 1 :] for file in self.folded]


@dataclass(frozen=True, slots=True)
class Shelves:
    """Every collection of files, and the packages beside them, names by key, as of one change."""

    change: int
    collections: Sequence[Collection]
    packaged: Mapping[str, str]


_kept: WeakKeyDictionary[Space, Directory] = WeakKeyDictionary()
_shelves: WeakKeyDictionary[Space, Shelves] = WeakKeyDictionary()


def shelves(space: Space) -> Shelves:
    """Return the collections as they are now."""
    store = space.store
    change, known = store.last_change(), _shelves.get(space)
    if known is None or known.change != change:
        known = _shelves[space] = Shelves(change, all_collections(store), packages(store))
    return known


def directory(space: Space) -> Directory:
    """Return the names as they are now, also after another process changed them: the change number tells."""
    change = space.store.last_change()
    known = _kept.get(space)
    if known is None or known.change != change:
        known = Directory(change, *_files(space))
        if len(known.ids) <= MOST_KEPT:
            _kept[space] = known
    return known


def _files(space: Space) -> tuple[list[int], list[str]]:
    ids, files = space.store.drawer(DocumentNames).all()
    packaged = shelves(space).packaged
    if not packaged:
        return ids, files
    kept = [at for at, file in enumerate(files) if file.partition("/")[0] not in packaged]
    return [ids[at] for at in kept], [files[at] for at in kept]


def folded(text: str) -> str:
    return text.lower() if text.isascii() else normalized("NFC", text).casefold()
