"""The Python API: a space with all its kinds."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from commonplace.errors import Busy, InvalidInput, Unavailable, VersionConflict
from commonplace.index.followers import WordIndex
from commonplace.kinds.tables import has_tables
from commonplace.model import Filter, Item
from commonplace.settings import Settings
from commonplace.space import Space, space_folder
from commonplace.store.items import Items
from commonplace.store.job_queue import JobQueue
from commonplace.store.listing import Listing
from commonplace.store.opening import restore_store

if TYPE_CHECKING:  # each is loaded when it is asked for: a search from the command line needs none of them
    from commonplace.ingest.embedding import Progress
    from commonplace.ingest.switching import Switch
    from commonplace.kinds.documents.document_search import Documents
    from commonplace.kinds.documents.folders.library_folders import Folders, Report
    from commonplace.kinds.knowledge.knowledge import Knowledge
    from commonplace.kinds.memories.memories import Memories
    from commonplace.kinds.tables.json_tables import Tables
    from commonplace.tools.sessions import Sessions

log = logging.getLogger(__name__)

_HELD_BY = frozenset({"collection", "conversation", "character"})  # kinds that others belong to


class Library(Space):
    """A space: everything one user keeps. Threads may share it; any number of processes may open the same one.

    A process that is forked opens it again: what it has from its parent is refused.

    >>> with Library.open(home) as library:
    ...     library.put(Draft("note", "tea", title="Tea", body="Oolong wants water just off the boil."))
    ...     library.search("how hot for oolong").hits[0].uri
    'notes://tea'
    """

    # the kinds

    @property
    def folders(self) -> Folders:
        """Return the collections of files."""
        from commonplace.kinds.documents.folders.library_folders import Folders

        return self.part(Folders)

    @property
    def documents(self) -> Documents:
        """Return the documents of collections: listed, outlined, read in sections, and searched."""
        from commonplace.kinds.documents.document_search import Documents

        return self.part(Documents)

    @property
    def memories(self) -> Memories:
        """Return the entries of agents' threads."""
        from commonplace.kinds.memories.memories import Memories

        return self.part(Memories)

    @property
    def knowledge(self) -> Knowledge:
        """Return notes, media, chats, characters and prompts."""
        from commonplace.kinds.knowledge.knowledge import Knowledge

        return self.part(Knowledge)

    @property
    def tables(self) -> Tables:
        """Return JSON tables, their tools and instances."""
        from commonplace.kinds.tables.json_tables import Tables

        return self.part(Tables)

    @property
    def sessions(self) -> Sessions:
        """Return the record of what callers have seen already."""
        from commonplace.tools.sessions import Sessions

        return Sessions(self.store, self.settings)

    # writing

    def delete(self, uri: str, *, expected_version: int | None = None) -> None:
        """Remove an item and everything that hangs on it: a conversation's messages, a collection's documents."""
        self._delete(self.get(uri, body=False), expected_version)

    def delete_where(self, filter: Filter) -> int:
        """Remove every item a filter matches with everything that hangs on it. Return how many matched.

        Raise InvalidInput for an empty filter.
        """
        if not filter:
            raise InvalidInput("Say what to delete: an empty filter would delete everything.")
        items = self.store.drawer(Items).get(self.store.drawer(Listing).select(filter).tolist())
        alone = [item.id for item in items if item.kind not in _HELD_BY]
        for item in items:
            if item.kind in _HELD_BY:
                self._delete(item, None)
        self.store.drawer(Items).delete(alone)
        return len(items)

    def _delete(self, item: Item, expected_version: int | None) -> None:
        from commonplace.kinds.knowledge.records import delete_item

        if item.kind != "collection":
            delete_item(self.store, item, expected_version)
            return
        if expected_version is not None and expected_version != item.version:
            raise VersionConflict(item.uri, expected_version, item.version)
        self.folders.remove(item.key)

    def add_folder(
        self,
        root: Path,
        name: str | None = None,
        pattern: str | None = None,
        *,
        ignore: Iterable[str] | None = None,
        gitignore: bool | None = None,
        progress: Progress | None = None,
    ) -> Report:
        """Make a folder a collection, or bring it level again. Return what was done; a bad file never stops it.

        An argument that is left out stays as it was.
        """
        collection = self.folders.ensure(root, name, pattern=pattern, ignore=ignore, gitignore=gitignore)
        return self.folders.update(collection.name, progress=progress)

    def export(self, filter: Filter = Filter()) -> Iterator[str]:
        """Return every matching item as a line of JSON with what hangs on it.

        Without a filter there are tables too, but no keys of theirs.
        """
        from commonplace.exchange import export_lines

        self.sweep()
        with_tables = not filter and has_tables(self.store)
        return chain(export_lines(self.store, filter), self.tables.exchange.lines() if with_tables else ())

    def import_(self, lines: Iterable[str]) -> int:
        """Store what `export` wrote and return how many lines that were."""
        from commonplace.exchange import import_lines

        return import_lines(self.store, lines, lambda line: self.tables.exchange.keep(line))

    # care

    def embed(self, progress: Progress | None = None, *, kind: str | None = None) -> int:
        """Make the vectors that are missing, or those of one kind, and return how many chunks gained one.

        The first call chooses the model. Where nobody has chosen one and a better one was pulled since, the library
        goes over to that. Summaries that memories lack are written, too, where somebody writes them.
        """
        count = self.upkeep.embed(progress) if kind is None else self.embedding.embed(progress, kind)
        if kind in (None, "memory"):
            self.memories.summaries.catch_up(progress)
        return count

    def tend(self, stopping: Callable[[], bool]) -> bool:
        """Make what vectors and summaries are pending, in small steps, and return whether something is left for later.

        For a worker beside the calls: the first vectors of documents are never made here, only by those who ask. Where
        nobody has chosen the model and a better one has come, its vectors are made while the old ones answer.
        """
        is_left = False
        try:
            if self.settings.memory_embedding:
                is_left = self.upkeep.run(stopping)
        except (Unavailable, Busy) as error:
            log.info("Vectors are put off: %s", error)
            is_left = True
        is_left = self._tend_tables(stopping) or is_left
        if not self.store.drawer(JobQueue).total():  # most servers never load what writes summaries
            return is_left
        return self.memories.summaries.work(stopping) or is_left

    def _tend_tables(self, stopping: Callable[[], bool]) -> bool:
        """Index what is pending of tables, where there are any, and return whether something is left."""
        if not has_tables(self.store):  # most servers never load what indexes tables
            return False
        from commonplace.kinds.tables.node_drawer import JobDrawer

        jobs = self.store.drawer(JobDrawer)
        if not jobs.jobs():
            return False
        while not stopping() and self.tables.jobs.step():
            pass
        return bool(jobs.jobs())

    def switch(self, model: str) -> Switch:
        """Return the way to another model: its cost, and `run`, which makes its vectors while the old ones answer."""
        from commonplace.ingest.switching import Switch

        return Switch(self.store, self.embedding, model)

    def doctor(self) -> list[str]:
        """Look everything over, reading every byte, and return what is wrong, one sentence each."""
        from commonplace.models import check_helpers

        problems = self.store.check()
        for index in self._word_indexes():
            index.catch_up()
            problems += index.check()
        return problems + self.embedding.check() + check_helpers(self.settings)

    def rebuild(self) -> None:
        """Make every index anew from the store. Never needed, always safe."""
        for index in self._word_indexes():
            index.reset()
            index.catch_up()
        vectors = self.embedding.index()
        if vectors is not None and not self._remote:  # where a service has them, they are in the rows of the passages
            vectors.reset()
        if vectors is not None:
            vectors.catch_up()

    def _word_indexes(self) -> list[WordIndex]:
        """Return the index of passages, and that of whole items where somebody has searched those."""
        return [self.lexical, *([self.knowledge.index] if self.knowledge.index.exists() else [])]

    def backup(self, target: Path) -> None:
        """Write a complete, consistent copy of the space to one file, while others go on reading and writing."""
        self.store.backup(target.resolve())  # a link stays, and what it leads to is replaced


def restore(source: Path, home: Path, space: str = "default", settings: Settings | None = None) -> None:
    """Put a backup in the place of a space. All that was there is replaced in one transaction."""
    folder = space_folder(home, space)
    restore_store(settings or Settings.load(home=home), folder, source)
    import shutil  # with what it loads, 2 ms that a search does without

    for stale in folder.glob("index-*"):
        shutil.rmtree(stale, ignore_errors=True)
