"""The parts of a library, each made when somebody first asks for it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar, cast
from urllib.parse import urlsplit
from uuid import uuid4

from commonplace.index.base import WordIndex
from commonplace.index.words.index import LexicalIndex
from commonplace.network import require_allowed
from commonplace.search.pipeline import Pipeline, Semantic
from commonplace.settings import Settings
from commonplace.store.base import Store

if TYPE_CHECKING:  # each is loaded when it is asked for: a search from the command line needs none of them
    from commonplace.index.turbopuffer.space import TurbopufferSpace
    from commonplace.ingest.embedding import Embedding
    from commonplace.ingest.upkeep import Upkeep
    from commonplace.kinds.documents.documents import Documents
    from commonplace.kinds.documents.folders.folders import Folders
    from commonplace.kinds.knowledge.knowledge import Knowledge
    from commonplace.kinds.memories.memories import Memories
    from commonplace.kinds.memories.ranked_lists import RankedLists
    from commonplace.kinds.tables import Tables
    from commonplace.search.hybrid import Hybrid
    from commonplace.store.table_base import TableStore
    from commonplace.tools.sessions import Sessions

K = TypeVar("K")


class LibraryParts:
    """The store, the indexes and the kinds of one library, and their end."""

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

    @cached_property
    def embedding(self) -> Embedding:
        """Return the vectors, and the model that makes them."""
        from commonplace.ingest.embedding import Embedding

        make = self._remote.vectors if self._remote else None
        return Embedding(self.store, self._indexes, self.settings, make)

    @cached_property
    def upkeep(self) -> Upkeep:
        """Return the upkeep of vectors that nobody has to ask for."""
        from commonplace.ingest.upkeep import Upkeep

        return Upkeep(self.store, self.embedding, self.settings)

    @cached_property
    def folders(self) -> Folders:
        """Return the collections of files."""
        from commonplace.kinds.documents.folders.folders import Folders

        return Folders(self.store, self.folder, self.lexical, self.embedding, shared=bool(self.settings.store))

    @cached_property
    def sessions(self) -> Sessions:
        """Return the record of what callers have seen already."""
        from commonplace.tools.sessions import Sessions

        return Sessions(self.store, self.settings)

    @cached_property
    def ranked(self) -> RankedLists:
        """Return lists of memory entries, by words and by meaning."""
        from commonplace.kinds.memories.ranked_lists import RankedLists

        return RankedLists(self.store, self.lexical, self._semantic)

    @cached_property
    def memories(self) -> Memories:
        """Return the entries of agents' threads."""
        from commonplace.kinds.memories.memories import Memories

        return Memories(self.store, self.embedding, self.settings)

    @cached_property
    def knowledge(self) -> Knowledge:
        """Return notes, media, chats, characters and prompts."""
        from commonplace.kinds.knowledge.knowledge import Knowledge

        make = self._remote.words if self._remote else None
        return Knowledge(self.store, self.lexical, self._indexes, self.settings, self._semantic, make)

    @cached_property
    def documents(self) -> Documents:
        """Return the documents of collections: listed, outlined, read in sections, and searched."""
        from commonplace.kinds.documents.documents import Documents

        return Documents(self.store, self._pipeline, self._semantic)

    @cached_property
    def hybrid(self) -> Hybrid:
        """Return typed searches, fused by rank, of which every stage has a budget."""
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
        """Return JSON tables, their tools and instances."""
        from commonplace.kinds.tables import Tables

        service, space = self._remote.passages if self._remote else None, self.folder.name
        return Tables(self.store, self.lexical, self.embedding, self.settings, self._semantic, space, service)

    def keeping(self, kind: Callable[[Self], K]) -> K:
        """Return what a surface keeps for as long as the library is open, made by the first call."""
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


def _remote(store: Store, folder: Path, settings: Settings, identity: str) -> TurbopufferSpace | None:
    """Return the service that holds the indexes; None where they are kept here."""
    if settings.index == "local":
        return None
    from commonplace.index.turbopuffer.settings import service
    from commonplace.index.turbopuffer.space import TurbopufferSpace

    require_allowed(urlsplit(service().base_url).hostname or "", "index = turbopuffer", offline=settings.offline)
    return TurbopufferSpace(settings, folder.name, identity, store)


def _identity(store: Store) -> str:
    """Return a name for the index folders, so that indexes of another store are never taken for this one's."""
    return str(store.settle("identity", uuid4().hex[:12]))
