"""What a library offers of folders of files: one object, `library.folders`."""

from __future__ import annotations

import os
import shlex
import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from commonplace.errors import AlreadyExists, CommonplaceError, InvalidInput, NotFound
from commonplace.index.base import WordIndex
from commonplace.ingest.embedding import Embedding
from commonplace.ingest.files.read import DEFAULT_PATTERN
from commonplace.kinds.documents.folders import collections, contexts
from commonplace.kinds.documents.folders.collections import Collection
from commonplace.kinds.documents.folders.contexts import Context
from commonplace.kinds.documents.folders.level import FolderState, state_of
from commonplace.kinds.documents.folders.locks import collection_lock
from commonplace.kinds.documents.folders.looks import last_look, move_look
from commonplace.kinds.documents.folders.update import Progress, Report, update
from commonplace.model import each
from commonplace.store.base import Store

Outcome = Report | CommonplaceError
"""What an update did, or why it could not."""


class Folders:
    """The collections of a library that are folders on disk."""

    def __init__(
        self, store: Store, folder: Path, lexical: WordIndex, embedding: Embedding, *, shared: bool = False
    ) -> None:
        """`shared`: other machines may have folders in the same store."""
        self._store, self._folder, self._lexical, self._embedding = store, folder, lexical, embedding
        self._shared = shared

    # which there are

    def all(self) -> list[Collection]:
        """By name."""
        return collections.all_collections(self._store)

    def get(self, name: str) -> Collection:
        """Raises NotFound with `Collection not found: {name}`."""
        return collections.find_collection(self._store, name)

    def locate(self, path: str | Path) -> list[tuple[Collection, str]]:
        """The collections a path on disk is in, innermost first, and the path inside each; "" for a root itself."""
        return collections.locate(self._store, path)

    def overlapping(self, root: Path, name: str | None = None) -> list[tuple[Collection, str]]:
        """Return the other collections that have files of a folder, and where: `vault/ops`, as filters take it."""
        return collections.overlapping(self._store, root, _name_of(root) if name is None else name)

    def changed_at(self, name: str) -> datetime | None:
        """When a document of it was last added, changed or removed; None before the first."""
        return collections.changed_at(self._store, name)

    # making and changing

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
        """Make a folder a collection; `update` then reads it. AlreadyExists for a taken name, or the same once more."""
        made = Collection(_name_of(root) if name is None else name, root, pattern, each(ignore), gitignore, included)
        return collections.create(self._store, made)

    def ensure(
        self,
        root: Path,
        name: str | None = None,
        *,
        pattern: str | None = None,
        ignore: Iterable[str] | None = None,
        gitignore: bool | None = None,
    ) -> Collection:
        """The collection of a folder: made where there is none, changed where something else is asked for."""
        name = _name_of(root) if name is None else name
        try:
            found = self.get(name)
        except NotFound:
            return self.add(
                root, name, pattern=pattern or DEFAULT_PATTERN, ignore=ignore or (), gitignore=gitignore is not False
            )
        here = os.path.realpath(os.path.expanduser(root))
        if str(found.root) != here:
            hint = f"If that folder is here now: commonplace collections move {shlex.quote(name)} {shlex.quote(here)}"
            raise AlreadyExists(
                f"Collection '{name}' already exists: it is {found.root}. "
                f"{'Give this one another --name.' if found.root.exists() else hint}"
            )
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
        """Change what is given; the next update follows it."""

        def edit(found: Collection) -> Collection:
            return replace(
                found,
                pattern=found.pattern if pattern is None else pattern,
                ignore=found.ignore if ignored is None else ignored,
                gitignore=found.gitignore if gitignore is None else gitignore,
                included=found.included if included is None else included,
            )

        ignored = None if ignore is None else each(ignore)
        return collections.change(self._store, name, edit)

    def rename(self, old: str, new: str) -> None:
        """Documents, vectors and contexts move along."""
        with collection_lock(self._folder, old, new):
            found = self.get(old)
            collections.rename(self._store, old, new)
            move_look(self._folder, found, replace(found, name=new))

    def move(self, name: str, root: Path) -> Collection:
        """Its files are in another folder now; `update` then reads that. NotFound where none of them are there."""
        with collection_lock(self._folder, name):
            return collections.move(self._store, name, root)

    def remove(self, name: str) -> int:
        """Forget a collection, its documents and contexts; no file is touched. Returns how many documents went."""
        with collection_lock(self._folder, name):
            return collections.remove(self._store, name)

    def update_command(self, name: str) -> str:
        """What a person wants run in the root before an update, or nothing. Nothing here ever runs it."""
        return collections.update_command(self._store, name)

    def set_update_command(self, name: str, command: str) -> None:
        """An empty one is none."""
        collections.set_update_command(self._store, name, command)

    # keeping level

    def states(self) -> list[FolderState]:
        """Return how each collection stands to its folder, by name. Nothing is written."""
        return [state_of(self._store, self._folder, collection) for collection in self.all()]

    def update(self, name: str, *, force: bool = False, dry: bool = False, progress: Progress | None = None) -> Report:
        """Bring one collection level with its folder. NotFound, and nothing lost, when its root cannot be read.

        `dry` says what would happen, and writes nothing.
        """
        return update(self._store, name, self._folder, force=force, dry=dry, progress=progress)

    def update_all(self, names: Iterable[str] = (), *, force: bool = False) -> dict[str, Outcome]:
        """The same for these collections, or all; one that fails is its own affair."""
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
        """Update now, then whenever files change, until `stop` is set. Embeds too, where there are vectors already.

        It also ends once a backup was put in the place of the store. `unread`: also folders that nobody has read from
        this home yet, such as one that is just being added. Runs in any thread. `updated` and `failed` are told what
        happened to a collection; `failed` may be called from another thread, with an empty name when it is embedding or
        the store that failed. A model that is asked for vectors when the end comes is waited for this many seconds;
        returns whether it has answered.
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
        """Whether a folder is known to be one of this machine. What has documents of it in a store of its own, is."""
        if last_look(self._folder, collection) is not None:
            return True
        return not self._shared and collection.name in self._store.parents("document")

    # contexts

    def set_context(self, collection: str | None, path: str, text: str) -> None:
        """Describe everything (`None`), a collection (path ""), a folder in it, or a file."""
        contexts.set_context(self._store, collection, path, text)

    def remove_context(self, collection: str | None, path: str = "") -> None:
        """Raises NotFound where there is none."""
        contexts.remove_context(self._store, collection, path)

    def contexts(self) -> list[Context]:
        """All of them: the one on everything first, then by collection and path."""
        return contexts.all_contexts(self._store)

    def context_of(self, collection: str, path: str) -> str | None:
        """What applies to a document: general first, a blank line between; None where nothing does."""
        return contexts.context_of(self._store, collection, path)


def _name_of(root: Path) -> str:
    name = os.path.basename(os.path.realpath(os.path.expanduser(root)))
    try:
        collections.check_name(name)
    except InvalidInput as error:
        raise InvalidInput(f"{error} Give this one a --name.") from None
    return name


__all__ = ["DEFAULT_PATTERN", "Collection", "Context", "FolderState", "Folders", "Outcome", "Progress", "Report"]
