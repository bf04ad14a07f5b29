"""The space that everything above the engine builds on: one user's store, indexes, vectors, searches and settings."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self, TypeVar, cast, runtime_checkable
from urllib.parse import urlsplit
from uuid import uuid4

from commonplace.batches import batches
from commonplace.errors import InvalidInput, NotFound
from commonplace.index.followers import MakeWords, ServiceIndex, WordIndex
from commonplace.index.words.lexical_index import LexicalIndex
from commonplace.model import Change, Draft, Filter, Item, Mode, Page, each, parse_uri
from commonplace.network import require_allowed
from commonplace.search.engine import Semantic
from commonplace.search.pipeline import Pipeline
from commonplace.search.request import Request
from commonplace.settings import Settings
from commonplace.store.items import Items
from commonplace.store.listing import Listing
from commonplace.store.opening import open_store
from commonplace.store.outdated import Outdated
from commonplace.store.stored_settings import StoredSettings

if TYPE_CHECKING:  # each is loaded when it is asked for: a search from the command line needs none of them
    from commonplace.index.turbopuffer.indexes import TurbopufferSpace
    from commonplace.ingest.embedding import Embedding, Progress
    from commonplace.ingest.library_status import Status
    from commonplace.ingest.upkeep import Upkeep
    from commonplace.search.hybrid import Hybrid
    from commonplace.store.base import Store
    from commonplace.store.session import Drawer
    from commonplace.text.outline import Heading

P = TypeVar("P")
D = TypeVar("D", bound="Drawer")

BATCH_ITEMS = 500
BATCH_CHARS = 8_000_000
"""Items and characters in one transaction of a bulk write: enough to be fast, little enough to let others in."""


SPACES = "spaces"
"""The folder of a home that holds those of its spaces."""
_SPACE = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


@runtime_checkable
class Closing(Protocol):
    """A part that holds what has to be given back."""

    def close(self) -> None: ...


class Space:
    """The store, the indexes and the search of one user's items, and the parts that kinds add.

    It knows no kind: a kind is a part, made once for each space by `part`.
    """

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

    def __init__(self, store: Store, folder: Path, settings: Settings) -> None:
        self.store = store
        self.settings = settings
        self.folder = folder
        identity = _identity(store)
        self.indexes = folder / f"index-{identity}"
        self._remote = _remote(store, folder, settings, identity)
        self.make_words: MakeWords = self._remote.words if self._remote else LexicalIndex
        """The class of an index by words: kept here, or at a service."""
        self.lexical: WordIndex = self.make_words(self.indexes / "lexical", store, settings.language)
        self.engine = Pipeline(store, self.lexical, self.semantic)
        self._parts: dict[object, object] = {}

    @property
    def service(self) -> ServiceIndex | None:
        """Return the service's index of passages; None where indexes are kept here."""
        return self._remote.passages if self._remote else None

    @cached_property
    def embedding(self) -> Embedding:
        """Return the vectors, and the model that makes them."""
        from commonplace.ingest.embedding import Embedding

        make = self._remote.vectors if self._remote else None
        return Embedding(self.store, self.indexes, self.settings, make)

    @cached_property
    def upkeep(self) -> Upkeep:
        """Return the upkeep of vectors that nobody has to ask for."""
        from commonplace.ingest.upkeep import Upkeep

        return Upkeep(self.store, self.embedding, self.settings)

    @cached_property
    def hybrid(self) -> Hybrid:
        """Return typed searches, fused by rank, of which every stage has a budget."""
        from commonplace.models import open_generator, open_reranker
        from commonplace.search.engine import Budgets
        from commonplace.search.hybrid import Hybrid
        from commonplace.search.rerank import SecondLook

        settings = self.settings
        budgets = Budgets(settings.expand_ms / 1000, settings.embed_query_ms / 1000, settings.rerank_ms / 1000)
        return Hybrid(
            self.store,
            self.lexical,
            self.semantic,
            lambda parents: self.embedding.documents_lacking(parents),  # loaded when meaning is asked for
            budgets=budgets,
            generator=open_generator(settings),
            reranker=open_reranker(settings),
            look=SecondLook(self.store),
        )

    def drawer(self, kind: type[D]) -> D:
        """Return the drawer of this class: the statements of one noun, opened by the first call."""
        return self.store.drawer(kind)

    def semantic(self) -> Semantic:
        """Return the vector side of a search. Raise Unavailable with the reason where there is none."""
        return Semantic(*self.embedding.ready(), self.embedding.mean_of)

    def part(self, kind: Callable[[Space], P]) -> P:
        """Return the part of this class, made of this space by the first call and kept as long as the space is open."""
        part = self._parts.get(kind)
        if part is None:  # made by two threads at once, the first one stays
            part = self._parts.setdefault(kind, kind(self))
        return cast(P, part)

    def sweep(self) -> None:
        """Remove what has expired, whoever looks next. Costs a look at an index where nothing has."""
        if expired := self.store.drawer(Outdated).expired(time.time_ns() // 1000):
            self.store.drawer(Items).delete(expired)

    # writing

    def put(self, draft: Draft, *, expected_version: int | None = None) -> Item:
        """Store an item, or replace the one with the same kind, parent and key. Durable when it returns."""
        from commonplace.ingest.prepare import prepare

        return self.store.drawer(Items).put([prepare(draft, expected_version)])[0]

    def put_many(self, drafts: Iterable[Draft], progress: Progress | None = None) -> int:
        """Store many items in bounded transactions and return how many. A crash keeps the whole batches before it."""
        from commonplace.ingest.prepare import prepare

        stored = 0
        writes = map(prepare, drafts)
        for batch in batches(writes, lambda write: len(write.draft.body), most=BATCH_ITEMS, most_size=BATCH_CHARS):
            self.store.drawer(Items).put(batch)
            stored += len(batch)
            if progress:
                progress(stored, stored)
        return stored

    # reading

    def get(self, uri: str, *, body: bool = True) -> Item:
        """Return the item at an address such as `notes://tea` or `docs://guides/tea.md`.

        Raise NotFound where there is none.
        """
        self.sweep()
        parts = parse_uri(uri)
        item = self.store.drawer(Items).find(*parts, body=body) if parts else None
        if item is None:
            raise NotFound(f"There is no {uri}. Find it with a search.")
        return item

    def outline(self, uri: str) -> list[Heading]:
        """Return the headings of an item, or the definitions of code, with the lines and characters of each section."""
        from commonplace.text.outline import contents

        item = self.get(uri)
        return contents(item.body or "", item.format)

    def section(self, uri: str, heading: str) -> str:
        """Return the text of one section: named by its slug, its title, or its titles joined by ` › `.

        Raise NotFound, which lists the headings, where there is none.
        """
        item = self.get(uri)
        place = self.heading(item, heading)
        return (item.body or "")[place.char_start : place.char_end]

    def heading(self, item: Item, name: str) -> Heading:
        """Return the heading of an item that goes by this slug, title, or path of titles joined by ` › `.

        Raise NotFound, which lists the headings, where there is none.
        """
        from commonplace.text.outline import contents

        headings = contents(item.body or "", item.format)
        folded = name.casefold()
        for candidate in sorted(headings, key=lambda heading: heading.slug != name):  # a slug is of one alone
            if folded in (candidate.slug.casefold(), candidate.title.casefold(), " › ".join(candidate.path).casefold()):
                return candidate
        titles = ", ".join(f'"{candidate.title}"' for candidate in headings[:20]) or "none"
        raise NotFound(f'{item.uri} has no heading "{name}". Its headings: {titles}.')

    def changes(self, after: int = 0, limit: int = 1000) -> list[Change]:
        """Return the log after a change number, oldest first."""
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
        return self.engine.search(Request(text, mode, filter, *page, rerank=rerank, expand=expand))

    def related(self, uri: str, *, filter: Filter = Filter(), limit: int = 10) -> Page:
        """Return items like this one, by what it says."""
        return self.engine.related(self.get(uri), Request(uri, filter=filter, limit=limit))

    def _ids_of(self, uris: Collection[str]) -> list[int]:
        return self.store.drawer(Listing).ids_of([parts for parts in map(parse_uri, each(uris)) if parts])

    def status(self) -> Status:
        """Return what is here. Never loads a model."""
        from commonplace.ingest.library_status import Status
        from commonplace.ingest.suited import better_model
        from commonplace.ingest.switching import switching

        self.sweep()
        coverage = self.embedding.coverage()
        return Status(
            items={kind: count for kind, count in self.store.drawer(Listing).counts().items() if kind != "collection"},
            collections=self.store.drawer(Listing).parents("document"),
            chunks=coverage.total,
            changes=self.store.last_change(),
            indexed=self.lexical.position(),
            coverage=coverage,
            better_model=better_model(self.embedding.chosen, self.settings, self.store),
            switching=switching(self.store, self.embedding),
            index_trouble=self._remote.trouble() if self._remote else "",
            pending=self.upkeep.pending() if coverage.pending > 0 else None,
        )

    def close(self) -> None:
        """Give back what the parts, the store and the indexes hold."""
        for part in self._parts.values():
            if isinstance(part, Closing):
                part.close()
        self._parts.clear()
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
    from commonplace.index.turbopuffer.indexes import TurbopufferSpace
    from commonplace.index.turbopuffer.service_settings import service
    from commonplace.store.embeddings import Embeddings

    require_allowed(urlsplit(service().base_url).hostname or "", "index = turbopuffer", offline=settings.offline)
    return TurbopufferSpace(settings, folder.name, identity, store, store.drawer(Embeddings))


def _identity(store: Store) -> str:
    """Return a name for the index folders, so that indexes of another store are never taken for this one's."""
    return str(store.drawer(StoredSettings).settle("identity", uuid4().hex[:12]))


def space_folder(home: Path, space: str) -> Path:
    """Return the folder of a space, wherever the process goes.

    Its name is a plain word: no caller can name another folder.
    """
    if not _SPACE.fullmatch(space):
        raise InvalidInput(f"A space is named with a-z, 0-9, dots, dashes and underscores, not {space!r}.")
    return (home.expanduser() / SPACES / space).absolute()
