"""The Library: the one object everything above the engine talks to, and the Python API."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from functools import cached_property
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar, cast
from urllib.parse import urlsplit
from uuid import uuid4

from commonplace.batches import batches
from commonplace.errors import Busy, InvalidInput, NotFound, Unavailable, VersionConflict
from commonplace.index.base import WordIndex
from commonplace.index.words.index import LexicalIndex
from commonplace.model import Change, Draft, Filter, Item, Mode, Page, each, parse_uri
from commonplace.network import require_allowed
from commonplace.search.pipeline import Pipeline, Semantic
from commonplace.search.request import Request
from commonplace.settings import Settings
from commonplace.store.base import Store
from commonplace.store.opening import open_store, restore_store

if TYPE_CHECKING:  # each is loaded when it is asked for: a search from the command line needs none of them
    from commonplace.index.turbopuffer.space import TurbopufferSpace
    from commonplace.ingest.embedding import Embedding, Progress
    from commonplace.ingest.status import Status
    from commonplace.ingest.switching import Switch
    from commonplace.ingest.upkeep import Upkeep
    from commonplace.kinds.documents.documents import Documents
    from commonplace.kinds.documents.folders.folders import Folders, Report
    from commonplace.kinds.knowledge import Knowledge
    from commonplace.kinds.memories import Memories
    from commonplace.kinds.memories.ranked import RankedLists
    from commonplace.kinds.tables import Tables
    from commonplace.search.hybrid import Hybrid
    from commonplace.store.table_base import TableStore
    from commonplace.text.outline import Heading
    from commonplace.tools.sessions import Sessions

log = logging.getLogger(__name__)

BATCH_ITEMS = 500
BATCH_CHARS = 8_000_000
"""How much one transaction of a bulk write holds: enough to be fast, little enough to let others in."""

_HELD_BY = frozenset({"collection", "conversation", "character"})  # kinds that others belong to
SPACES = "spaces"
"""The folder of a home that holds those of its spaces."""
_SPACE = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
K = TypeVar("K")


class Library:
    """One space: everything one user keeps. Threads may share it; any number of processes may open the same one.

    A process that is forked opens it again: what it has from its parent is refused.

    >>> with Library.open(home) as library:
    ...     library.put(Draft("note", "tea", title="Tea", body="Oolong wants water just off the boil."))
    ...     library.search("how hot for oolong").hits[0].uri
    'notes://tea'
    """

    def __init__(self, store: TableStore, folder: Path, settings: Settings) -> None:
        self.store = store
        self.settings = settings
        self.folder = folder
        identity = _identity(store)
        self._indexes = folder / f"index-{identity}"
        self._remote = _remote(store, folder, settings, identity)
        make = self._remote.words if self._remote else LexicalIndex
        self.lexical: WordIndex = make(self._indexes / "lexical", store, settings.language)
        self._pipeline = Pipeline(store, self.lexical, self._semantic)
        self._kept: dict[object, object] = {}
        self._keeping = threading.Lock()

    @classmethod
    def open(cls, home: Path | str | None = None, space: str = "default", settings: Settings | None = None) -> Self:
        """Open a space of a home, creating it where there is none."""
        settings = settings or Settings.load(home=Path(home) if home is not None else None)
        folder = space_folder(Path(home) if home is not None else settings.home, space)
        store = open_store(settings, folder)
        if settings.store:
            with suppress(OSError):  # who needs it says what is wrong
                folder.mkdir(parents=True, exist_ok=True)
        try:
            return cls(store, folder, settings)
        except BaseException:
            store.close()
            raise

    @cached_property
    def embedding(self) -> Embedding:
        """The vectors, and the model that makes them."""
        from commonplace.ingest.embedding import Embedding

        make = self._remote.vectors if self._remote else None
        return Embedding(self.store, self._indexes, self.settings, make)

    @cached_property
    def upkeep(self) -> Upkeep:
        """Vectors that nobody has to ask for."""
        from commonplace.ingest.upkeep import Upkeep

        return Upkeep(self.store, self.embedding, self.settings)

    @cached_property
    def folders(self) -> Folders:
        """Collections of files."""
        from commonplace.kinds.documents.folders.folders import Folders

        return Folders(self.store, self.folder, self.lexical, self.embedding, shared=bool(self.settings.store))

    @cached_property
    def sessions(self) -> Sessions:
        """What callers have seen already."""
        from commonplace.tools.sessions import Sessions

        return Sessions(self.store, self.settings)

    @cached_property
    def ranked(self) -> RankedLists:
        """Lists of memory entries, by words and by meaning."""
        from commonplace.kinds.memories.ranked import RankedLists

        return RankedLists(self.store, self.lexical, self._semantic)

    @cached_property
    def memories(self) -> Memories:
        """The entries of agents' threads."""
        from commonplace.kinds.memories import Memories

        return Memories(self.store, self.embedding, self.settings)

    @cached_property
    def knowledge(self) -> Knowledge:
        """Notes, media, chats, characters and prompts."""
        from commonplace.kinds.knowledge import Knowledge

        make = self._remote.words if self._remote else None
        return Knowledge(self.store, self.lexical, self._indexes, self.settings, self._semantic, make)

    @cached_property
    def documents(self) -> Documents:
        """Documents of collections: listed, outlined, read in sections, and searched."""
        from commonplace.kinds.documents.documents import Documents

        return Documents(self.store, self._pipeline, self._semantic)

    @cached_property
    def hybrid(self) -> Hybrid:
        """Typed searches, fused by rank, of which every stage has a budget."""
        from commonplace.models import open_generator, open_reranker
        from commonplace.search.hybrid import Hybrid
        from commonplace.search.rerank import SecondLook
        from commonplace.search.timed import Budgets

        settings = self.settings
        budgets = Budgets(settings.expand_ms / 1000, settings.embed_query_ms / 1000, settings.rerank_ms / 1000)
        return Hybrid(
            self.store,
            self.lexical,
            self._semantic,
            lambda parents: self.embedding.documents_lacking(parents),  # loaded when meaning is asked for
            budgets=budgets,
            generator=open_generator(settings),
            reranker=open_reranker(settings),
            look=SecondLook(self.store),
        )

    @cached_property
    def tables(self) -> Tables:
        """JSON tables, their tools and instances."""
        from commonplace.kinds.tables import Tables

        service, space = self._remote.passages if self._remote else None, self.folder.name
        return Tables(self.store, self.lexical, self.embedding, self.settings, self._semantic, space, service)

    def sweep(self) -> None:
        """What has expired is gone, whoever looks. Costs a look at an index where nothing has."""
        if expired := self.store.expired(time.time_ns() // 1000):
            self.store.delete(expired)

    def keeping(self, kind: Callable[[Self], K]) -> K:
        """What a surface keeps for as long as the library is open, made by the first call."""
        with self._keeping:
            if kind not in self._kept:
                self._kept[kind] = kind(self)
            return cast(K, self._kept[kind])

    def _semantic(self) -> Semantic:
        return Semantic(*self.embedding.ready(), self.embedding.mean_of)

    def close(self) -> None:
        self._kept.clear()
        if "tables" in self.__dict__:
            self.tables.close()
        self.store.close()
        if self._remote:
            self._remote.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # writing

    def put(self, draft: Draft, *, expected_version: int | None = None) -> Item:
        """Store an item, or replace the one with the same kind, parent and key. Durable when it returns."""
        from commonplace.ingest.prepare import prepare

        return self.store.put([prepare(draft, expected_version)])[0]

    def put_many(self, drafts: Iterable[Draft], progress: Progress | None = None) -> int:
        """Store many items in bounded transactions; returns how many. A crash keeps the whole batches before it."""
        from commonplace.ingest.prepare import prepare

        done = 0
        writes = map(prepare, drafts)
        for batch in batches(writes, lambda write: len(write.draft.body), most=BATCH_ITEMS, most_size=BATCH_CHARS):
            self.store.put(batch)
            done += len(batch)
            if progress:
                progress(done, done)
        return done

    def delete(self, uri: str, *, expected_version: int | None = None) -> None:
        """Remove an item and everything that hangs on it: a conversation's messages, a collection's documents."""
        self._delete(self.get(uri, body=False), expected_version)

    def delete_where(self, filter: Filter) -> int:
        """Remove every item a filter matches with everything that hangs on it; returns how many matched."""
        if not filter:
            raise InvalidInput("Say what to delete: an empty filter would delete everything.")
        items = self.store.items(self.store.select(filter).tolist())
        alone = [item.id for item in items if item.kind not in _HELD_BY]
        for item in items:
            if item.kind in _HELD_BY:
                self._delete(item, None)
        self.store.delete(alone)
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
        """Make a folder a collection, or bring it level again. Says what it did; a bad file never stops it.

        What is left out stays as it was.
        """
        collection = self.folders.ensure(root, name, pattern=pattern, ignore=ignore, gitignore=gitignore)
        return self.folders.update(collection.name, progress=progress)

    def export(self, filter: Filter = Filter()) -> Iterator[str]:
        """Every matching item as a line of JSON with what hangs on it; without a filter, tables too, but no keys."""
        from commonplace.exchange import export_lines

        self.sweep()
        with_tables = not filter and (self.store.projects() or self.store.instances())
        return chain(export_lines(self.store, filter), self.tables.exchange.lines() if with_tables else ())

    def import_(self, lines: Iterable[str]) -> int:
        """Store what `export` wrote; returns how many lines that were."""
        from commonplace.exchange import import_lines

        return import_lines(self.store, lines, lambda line: self.tables.exchange.keep(line))

    # reading

    def get(self, uri: str, *, body: bool = True) -> Item:
        """The item at an address such as `notes://tea` or `qmd://docs/guide.md`."""
        self.sweep()
        parts = parse_uri(uri)
        item = self.store.item(*parts, body=body) if parts else None
        if item is None:
            raise NotFound(f"There is no {uri}. Find it with a search.")
        return item

    def outline(self, uri: str) -> list[Heading]:
        """The headings of an item, or the definitions of code, with the lines and characters of their sections."""
        from commonplace.text.outline import contents

        item = self.get(uri)
        return contents(item.body or "", item.format)

    def section(self, uri: str, heading: str) -> str:
        """The text of one section: named by its slug, its title, or its titles joined by ` › `."""
        item = self.get(uri)
        found = self.heading(item, heading)
        return (item.body or "")[found.char_start : found.char_end]

    def heading(self, item: Item, name: str) -> Heading:
        """The heading of an item that goes by this slug, title, or path of titles joined by ` › `."""
        from commonplace.text.outline import contents

        headings = contents(item.body or "", item.format)
        wanted = name.casefold()
        for found in sorted(headings, key=lambda heading: heading.slug != name):  # a slug is of one alone
            if wanted in (found.slug.casefold(), found.title.casefold(), " › ".join(found.path).casefold()):
                return found
        titles = ", ".join(f'"{found.title}"' for found in headings[:20]) or "none"
        raise NotFound(f'{item.uri} has no heading "{name}". Its headings: {titles}.')

    def changes(self, after: int = 0, limit: int = 1000) -> list[Change]:
        """The log after a change number, oldest first."""
        return self.store.changes(after, limit)

    # finding

    def search(
        self,
        text: str,
        *,
        mode: Mode = "auto",
        filter: Filter = Filter(),
        limit: int = 10,
        offset: int = 0,
        min_score: float = 0.0,
        snippet_length: int = 300,
        per_item: bool = True,
        explain: bool = False,
        exclude: Collection[str] = (),
        shown: Collection[int] = (),
        rerank: bool = False,
        expand: bool = False,
    ) -> Page:
        """Find passages by their words, their meaning, or both. Sees every write that returned before it.

        `auto` uses meaning where there are vectors and says so where there are none. `exclude`: addresses of items to
        leave out, before the limit; the others answer as they would anyway. `shown`: ids of items that pages before
        had, which are passed over wherever they are by now; `offset` only counts. `rerank`: look at the best a second
        time. `expand`: look for what the best have in common, too, as far as the model reads the question's language.
        """
        self.sweep()
        left_out = frozenset(self._ids_of(exclude)) if exclude else frozenset()
        page = (limit, offset, min_score, snippet_length, per_item, explain, left_out, frozenset(shown))
        return self._pipeline.search(Request(text, mode, filter, *page, rerank=rerank, expand=expand))

    def related(self, uri: str, *, filter: Filter = Filter(), limit: int = 10) -> Page:
        """Items like this one, by what it says."""
        return self._pipeline.related(self.get(uri), Request(uri, filter=filter, limit=limit))

    def _ids_of(self, uris: Collection[str]) -> list[int]:
        return self.store.ids_of([parts for parts in map(parse_uri, each(uris)) if parts])

    # care

    def embed(self, progress: Progress | None = None, *, kind: str | None = None) -> int:
        """Make the vectors that are missing, or those of one kind; the first call chooses the model.

        Where nobody has chosen one and a better one was pulled since, the library goes over to that. Summaries that
        memories lack are written, too, where somebody writes them. Returns how many chunks gained a vector.
        """
        made = self.upkeep.embed(progress) if kind is None else self.embedding.embed(progress, kind)
        if kind in (None, "memory"):
            self.memories.summaries.catch_up(progress)
        return made

    def tend(self, stopping: Callable[[], bool]) -> bool:
        """Make what vectors and summaries are pending, in small steps; returns whether something is left for later.

        For a worker beside the calls: the first vectors of documents are never made here, only by those who ask. Where
        nobody has chosen the model and a better one has come, its vectors are made while the old ones answer.
        """
        left = False
        try:
            if self.settings.memory_embedding:
                left = self.upkeep.run(stopping)
        except (Unavailable, Busy) as error:
            log.info("Vectors are put off: %s", error)
            left = True
        left = self._tend_tables(stopping) or left
        if not self.store.job_total():  # most servers never load what writes summaries
            return left
        return self.memories.summaries.work(stopping) or left

    def _tend_tables(self, stopping: Callable[[], bool]) -> bool:
        """What is left to index of tables, where there are any."""
        if not self.store.table_jobs():
            return False
        while not stopping() and self.tables.jobs.step():
            pass
        return bool(self.store.table_jobs())

    def switch(self, model: str) -> Switch:
        """The way to another model: what it costs, and `run`, which makes its vectors while the old ones answer."""
        from commonplace.ingest.switching import Switch

        return Switch(self.store, self.embedding, model)

    def status(self) -> Status:
        """What is here. Never loads a model."""
        from commonplace.ingest.status import Status
        from commonplace.ingest.suited import better_model
        from commonplace.ingest.switching import switching

        self.sweep()
        coverage = self.embedding.coverage()
        return Status(
            items={kind: count for kind, count in self.store.counts().items() if kind != "collection"},
            collections=self.store.parents("document"),
            chunks=coverage.total,
            changes=self.store.last_change(),
            indexed=self.lexical.position(),
            coverage=coverage,
            better_model=better_model(self.embedding.chosen, self.settings, self.store),
            switching=switching(self.store, self.embedding),
            index_trouble=self._remote.trouble() if self._remote else "",
            pending=self.upkeep.pending() if coverage.pending > 0 else None,
        )

    def doctor(self) -> list[str]:
        """Look everything over, reading every byte; returns what is wrong, one sentence each."""
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
        """That of passages, and that of whole items where somebody has searched those."""
        return [self.lexical, *([self.knowledge.index] if self.knowledge.index.exists() else [])]

    def backup(self, target: Path) -> None:
        """A complete, consistent copy of the space in one file, while others go on reading and writing."""
        self.store.backup(target.resolve())  # a link stays, and what it leads to is replaced


def space_folder(home: Path, space: str) -> Path:
    """Where a space lives, wherever the process goes. Its name is a plain word: no caller can name another folder."""
    if not _SPACE.fullmatch(space):
        raise InvalidInput(f"A space is named with a-z, 0-9, dots, dashes and underscores, not {space!r}.")
    return (home.expanduser() / SPACES / space).absolute()


def restore(source: Path, home: Path, space: str = "default", settings: Settings | None = None) -> None:
    """Put a backup in the place of a space. What was there is replaced in one transaction."""
    folder = space_folder(home, space)
    restore_store(settings or Settings.load(home=home), folder, source)
    import shutil  # with what it loads, 2 ms that a search does without

    for stale in folder.glob("index-*"):
        shutil.rmtree(stale, ignore_errors=True)


def _remote(store: Store, folder: Path, settings: Settings, identity: str) -> TurbopufferSpace | None:
    """The service that holds the indexes, where they are not kept here."""
    if settings.index == "local":
        return None
    from commonplace.index.turbopuffer.settings import service
    from commonplace.index.turbopuffer.space import TurbopufferSpace

    require_allowed(urlsplit(service().base_url).hostname or "", "index = turbopuffer", offline=settings.offline)
    return TurbopufferSpace(settings, folder.name, identity, store)


def _identity(store: Store) -> str:
    """Names the index folders, so that indexes of another store are never taken for this one's."""
    return str(store.settle("identity", uuid4().hex[:12]))
