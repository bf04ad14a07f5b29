"""The folders of files of a library, as one object: `library.folders`."""

from __future__ import annotations

import os
import shlex
import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from commonplace.errors import AlreadyExists, Command, CommonplaceError, InvalidInput, NotFound
from commonplace.ingest.files.endings import DEFAULT_PATTERN
from commonplace.kinds.documents.folders import folder_collections
from commonplace.kinds.documents.folders.folder_collections import Collection, Context
from commonplace.kinds.documents.folders.locks import collection_lock, last_look, move_look
from commonplace.kinds.documents.folders.update import FolderState, Report, state_of, update
from commonplace.kinds.documents.sync import Progress
from commonplace.model import each
from commonplace.space import Space
from commonplace.store.listing import Listing

Outcome = Report | CommonplaceError
"""The report of an update, or the error that prevented it."""


class Folders:
    """The collections of a library that are folders on disk."""

    def __init__(self, space: Space) -> None:
        self._store, self._folder, self._lexical = space.store, space.folder, space.lexical
        self._embedding = space.embedding
        self._shared = bool(space.settings.store)  # other machines may have folders in the same store

    # listing

    def all(self) -> list[Collection]:
        """Return every collection, sorted by name."""
        return folder_collections.all_collections(self._store)

    def get(self, name: str) -> Collection:
        """Return a collection. Raise NotFound with `Collection not found: {name}` where there is none."""
        return folder_collections.find_collection(self._store, name)

    def locate(self, path: str | Path) -> list[tuple[Collection, str]]:
        """Return the collections that hold a path, innermost first, with the path inside each ("": its root)."""
        return folder_collections.locate(self._store, path)

    def overlapping(self, root: Path, name: str | None = None) -> list[tuple[Collection, str]]:
        """Return the other collections that have files of a folder, and where: `vault/ops`, as filters take it."""
        return folder_collections.overlapping(self._store, root, _name_of(root) if name is None else name)

    def changed_at(self, name: str) -> datetime | None:
        """Return when a document of a collection was last added, changed or removed; None before the first."""
        return folder_collections.changed_at(self._store, name)

    # adding and changing

    def add(
        self,
        root: Path,
        name: str | None = None,
        *,
        pattern: str = DEFAULT_PATTERN,
        ignore: Iterable[str] = (),
        gitignore: bool = True,
        included: bool = True,
    ) -> Collection:
        """Make a folder a collection, without reading it yet: `update` does.

        Raise AlreadyExists where the name is taken, or another collection has this folder and pattern; NotFound where
        there is no such folder; InvalidInput for a bad name, pattern or ignore glob.
        """
        name = _name_of(root) if name is None else name
        collection = Collection(name, root, pattern, each(ignore), gitignore, included)
        return folder_collections.create(self._store, collection)

    def ensure(
        self,
        root: Path,
        name: str | None = None,
        *,
        pattern: str | None = None,
        ignore: Iterable[str] | None = None,
        gitignore: bool | None = None,
    ) -> Collection:
        """Return the collection of this name, made where there is none, and changed in what is given.

        Raise AlreadyExists where the name belongs to another folder.
        """
        name = _name_of(root) if name is None else name
        try:
            collection = self.get(name)
        except NotFound:
            return self.add(
                root, name, pattern=pattern or DEFAULT_PATTERN, ignore=ignore or (), gitignore=gitignore is not False
            )
        here = os.path.realpath(os.path.expanduser(root))
        if str(collection.root) != here:
            sentence = f"Collection '{name}' already exists: it is {collection.root}. "
            if collection.root.exists():
                raise AlreadyExists(f"{sentence}Give this one another --name.")
            move = Command(f"collections move {shlex.quote(name)} {shlex.quote(here)}")
            raise AlreadyExists(f"{sentence}If that folder is here now: ", move)
        return self.change(name, pattern=pattern, ignore=ignore, gitignore=gitignore)

    def change(
        self,
        name: str,
        *,
        pattern: str | None = None,
        ignore: Iterable[str] | None = None,
        gitignore: bool | None = None,
        included: bool | None = None,
    ) -> Collection:
        """Change the settings that are given, and return the collection. The next update follows them."""

        globs = None if ignore is None else each(ignore)

        def edit(collection: Collection) -> Collection:
            return replace(
                collection,
                pattern=collection.pattern if pattern is None else pattern,
                ignore=collection.ignore if globs is None else globs,
                gitignore=collection.gitignore if gitignore is None else gitignore,
                included=collection.included if included is None else included,
            )

        return folder_collections.change(self._store, name, edit)

    def rename(self, old: str, new: str) -> None:
        """Rename a collection with its documents, vectors and folder_collections."""
        with collection_lock(self._folder, old, new):
            collection = self.get(old)
            folder_collections.rename(self._store, old, new)
            move_look(self._folder, collection, replace(collection, name=new))

    def move(self, name: str, root: Path) -> Collection:
        """Point a collection at another folder. Raise NotFound where none of its files is there."""
        with collection_lock(self._folder, name):
            return folder_collections.move(self._store, name, root)

    def remove(self, name: str) -> int:
        """Remove a collection with its documents and contexts, and return their number. No file is touched."""
        with collection_lock(self._folder, name):
            return folder_collections.remove(self._store, name)

    def update_command(self, name: str) -> str:
        """Return the command that a person wants run in the root before an update, or "". Nothing here ever runs it."""
        return folder_collections.update_command(self._store, name)

    def set_update_command(self, name: str, command: str) -> None:
        """Store the command to run before an update; an empty one removes it."""
        folder_collections.set_update_command(self._store, name, command)

    # updating

    def states(self) -> list[FolderState]:
        """Return the state of each collection, sorted by name. Writes nothing."""
        return [state_of(self._store, self._folder, collection) for collection in self.all()]

    def update(self, name: str, *, force: bool = False, dry: bool = False, progress: Progress | None = None) -> Report:
        """Bring one collection level with its folder, and return what was done.

        `force` reads every file again, whatever its time says. `dry` reports what would be done, and writes nothing.
        Raise NotFound, and keep all documents, where the root cannot be read.
        """
        return update(self._store, name, self._folder, force=force, dry=dry, progress=progress)

    def update_all(self, names: Iterable[str] = (), *, force: bool = False) -> dict[str, Outcome]:
        """Update these collections, or all, and return the report or error of each by name. An error ends no other."""
        outcomes: dict[str, Outcome] = {}
        for name in dict.fromkeys(names) or [collection.name for collection in self.all()]:
            try:
                outcomes[name] = self.update(name, force=force)
            except CommonplaceError as error:
                outcomes[name] = error
        return outcomes

    def watch(
        self,
        stop: threading.Event,
        *,
        names: Iterable[str] = (),
        unread: bool = True,
        embed: bool = True,
        updated: Callable[[str, Report], None] = lambda name, report: None,
        failed: Callable[[str, str], None] = lambda name, sentence: None,
        patience: float = 30.0,
    ) -> bool:
        """Update now, then whenever files change, until `stop` is set or a backup has replaced the store.

        Runs in any thread. `unread`: also folders that were never read from this home, such as one that is just being
        added. `embed`: make vectors too, if the library has any already. `updated` is called with each collection that
        changed and its report; `failed` with a collection and a sentence, perhaps from another thread, and with an
        empty name where embedding or the store failed. Return whether the embedding that was under way at the end
        finished within `patience` seconds.
        """
        from commonplace.kinds.documents.folders.watch import EmbeddingThread, Watch, until

        embedder = EmbeddingThread(self._embedding, stop, lambda sentence: failed("", sentence)) if embed else None

        def wanted(collection: Collection) -> bool:
            return unread or self._was_read(collection)

        def changed(name: str, report: Report) -> None:
            if embedder is not None:
                embedder.want()
            updated(name, report)
            self._lexical.catch_up(until(stop))  # the next search goes on with what is left

        if embedder is not None:
            embedder.start()
            embedder.want()
        try:
            Watch(self._store, self._folder, stop, names=names, wanted=wanted, updated=changed, failed=failed).run()
        finally:
            answered = True
            if embedder is not None:
                stop.set()
                answered = embedder.finish(patience)
        return answered

    def _was_read(self, collection: Collection) -> bool:
        """Return whether a folder is known to lie on this machine.

        It is where this home has read it, and where the store, used by this machine alone, has documents of it.
        """
        if last_look(self._folder, collection) is not None:
            return True
        return not self._shared and collection.name in self._store.drawer(Listing).parents("document")

    # contexts

    def set_context(self, collection: str | None, path: str, text: str) -> None:
        """Describe everything (`None`), a collection (path ""), a folder in it, or a file."""
        folder_collections.set_context(self._store, collection, path, text)

    def remove_context(self, collection: str | None, path: str = "") -> None:
        """Remove a description. Raise NotFound where there is none."""
        folder_collections.remove_context(self._store, collection, path)

    def contexts(self) -> list[Context]:
        """Return all descriptions: the one on everything first, then by collection and path."""
        return folder_collections.all_contexts(self._store)

    def context_of(self, collection: str, path: str) -> str | None:
        """Return the descriptions that apply to a document, general first, with blank lines between, or None."""
        return folder_collections.context_of(self._store, collection, path)


def _name_of(root: Path) -> str:
    name = os.path.basename(os.path.realpath(os.path.expanduser(root)))
    try:
        folder_collections.check_name(name)
    except InvalidInput as error:
        raise InvalidInput(f"{error} Give this one a --name.") from None
    return name


__all__ = ["DEFAULT_PATTERN", "Collection", "Context", "FolderState", "Folders", "Outcome", "Progress", "Report"]
