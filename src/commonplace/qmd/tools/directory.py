"""The names of all documents and collections, kept in memory from one change to the next.

Globs and suggestions look through the documents, and every search begins with the collections.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from weakref import WeakKeyDictionary

from commonplace.kinds.documents.folders.folder_collections import Collection, all_collections, packages
from commonplace.library import Library
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


_kept: WeakKeyDictionary[Library, Directory] = WeakKeyDictionary()
_shelves: WeakKeyDictionary[Library, Shelves] = WeakKeyDictionary()


def shelves(library: Library) -> Shelves:
    """Return the collections as they are now."""
    store = library.store
    change, known = store.last_change(), _shelves.get(library)
    if known is None or known.change != change:
        known = _shelves[library] = Shelves(change, all_collections(store), packages(store))
    return known


def directory(library: Library) -> Directory:
    """Return the names as they are now, also after another process changed them: the change number tells."""
    change = library.store.last_change()
    known = _kept.get(library)
    if known is None or known.change != change:
        known = Directory(change, *_files(library))
        if len(known.ids) <= MOST_KEPT:
            _kept[library] = known
    return known


def _files(library: Library) -> tuple[list[int], list[str]]:
    ids, files = library.store.document_files()
    packaged = shelves(library).packaged
    if not packaged:
        return ids, files
    kept = [at for at, file in enumerate(files) if file.partition("/")[0] not in packaged]
    return [ids[at] for at in kept], [files[at] for at in kept]


def folded(text: str) -> str:
    return text.lower() if text.isascii() else normalized("NFC", text).casefold()
