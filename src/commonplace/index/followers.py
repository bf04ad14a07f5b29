"""The interfaces of an index, whichever engine is behind it: the local ones and turbopuffer's both implement them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from commonplace.errors import Unavailable
from commonplace.index.scope import Ids, Scope
from commonplace.index.words.wanted import Wanted
from commonplace.lazy_dataclass import dataclass
from commonplace.model import Change, IndexedItem
from commonplace.text.terms import Term

if TYPE_CHECKING:  # these modules load tantivy, which an index elsewhere does not need
    from commonplace.index.vectors.scan import Halves
    from commonplace.index.words.entry_search import EntryHits
    from commonplace.index.words.item_ranking import ItemScores, Scoring
    from commonplace.index.words.lexical_query import LexicalQuery
    from commonplace.index.words.snapshot import Floats

T = TypeVar("T")
Progress = Callable[[int, int], None]
"""Called with (done, total)."""


class Follower(Protocol):
    """An index derived from the log, and disposable: `reset` then `catch_up` rebuilds it."""

    def position(self) -> int:
        """Return the number of the last change in the latest durable commit; 0 when empty."""
        ...

    def catch_up(self) -> int:
        """Apply what is pending and return the position. Safe to kill, to repeat, and to run in many processes."""
        ...

    def reset(self) -> None:
        """Remove everything, the position included."""
        ...


class IndexDamaged(Exception):
    """An index file is missing, cut short or altered. Never reaches a caller: the index is rebuilt from the store."""


class Unacknowledged(Unavailable):
    """A service took a write and has not acknowledged it yet."""

    code = "index_busy"


class WordSource(Protocol):
    """The source that an index of words follows. The store implements it."""

    def last_change(self) -> int:
        """Return the number of the latest change; 0 when there is none."""
        ...

    def changes(self, after: int, limit: int) -> list[Change]:
        """Return the first `limit` changes after one, in order."""
        ...

    def indexed(self, item_ids: Sequence[int]) -> list[IndexedItem]:
        """Return those of these items that exist, with the texts to index."""
        ...


class EntryFinder(Protocol):
    """A search for whole entries: words, phrases and beginnings, joined by and, or and not."""

    @property
    def ranks(self) -> bool:
        """Return True if the query looks for anything. Where it only refuses, the rest comes newest first."""
        ...

    def best(self, k: int, scope: Scope, *, loosely: bool = False) -> EntryHits:
        """Return the best `k` entries. `loosely`: also those that have only some of the atoms, best coverage first."""
        ...


class ItemFinder(Protocol):
    """A search for whole items, over an index that has one entry for each."""

    def best(self, count: int, without: Ids | None = None) -> ItemScores:
        """Return at least the best `count` items, and all that tie with the last of them. `without` are left out."""
        ...

    def allowed(self) -> Ids:
        """Return all items of the scopes that the query's phrases and exclusions admit, whatever words they have."""
        ...


@dataclass(frozen=True, slots=True)
class VectorQuery:
    """The question that the index of vectors is about to be asked in the same search."""

    query: Floats
    items: Ids | None
    without: Ids | None


class WordReader(Protocol):
    """A reader of one commit of an index of words, for one search: the same question always has the same answer."""

    def languages(self) -> tuple[str, ...]:
        """Return the languages that stem this library's queries, commonest first."""
        ...

    def rarer(self) -> tuple[str, ...]:
        """Return the library's other languages."""
        ...

    def idf(self, form: str) -> float:
        """Return the inverse document frequency of a stem, as BM25 defines it; 0 when no chunk has it."""
        ...

    def knows(self, language: str, form: str) -> bool:
        """Return True if a chunk in a language has a stem."""
        ...

    def begins(self, prefix: str) -> bool:
        """Return True if an indexed word begins with `prefix`."""
        ...

    def occurs(self, word: str) -> bool:
        """Return True if an exact word is indexed, or was until a moment ago."""
        ...

    def entries(self, wanted: Wanted, language: str) -> EntryFinder:
        """Return a search for whole entries, stemmed as this language and the library's own are."""
        ...

    def items(self, query: LexicalQuery, scopes: Sequence[Scope], *, missing: int, scoring: Scoring) -> ItemFinder:
        """Return a search for whole items in any of these scopes.

        `missing`: how many words of the query no item has. `scoring`: see `words.items.Scoring`.
        """
        ...

    def search(self, query: LexicalQuery, k: int, scope: Scope) -> tuple[Ids, Floats]:
        """Return chunk ids and BM25 scores, best first, ties by id; `k` of them where that many match the scope."""
        ...

    def expect(self, query: LexicalQuery, k: int, scope: Scope, near: VectorQuery) -> None:
        """Announce the next calls of `search` and of the vector index: a service may answer both in one request."""
        ...

    def waiting(self) -> bool:
        """Return True if a service has not answered a request of this search yet."""
        ...

    def scores(self, query: LexicalQuery, chunks: Ids) -> Floats:
        """Return the BM25 score of each chunk, on the same scale as those of `search`; 0 where nothing matches."""
        ...

    def marks(self, terms: Sequence[Term], items: Ids) -> Iterator[tuple[Ids, Ids]]:
        """Yield chunk ids of these items and, for each, a bit mask of the terms it has; the first term is bit 0.

        There is one pair for every `words.reader.MOST_MARKS` terms.
        """
        ...

    def is_all(self, kinds: Sequence[str]) -> bool:
        """Return True if the index has no items of other kinds."""
        ...

    def passages(self) -> int:
        """Return the number of chunks."""
        ...

    def having(self, terms: tuple[Term, ...], most: int) -> Ids:
        """Return the chunks with all of these terms, ascending; none if more than `most` items have them."""
        ...

    def holders(self, query: LexicalQuery, scope: Scope) -> Ids:
        """Return all items in scope with a chunk that matches a query, ascending."""
        ...


class WordIndex(Follower, Protocol):
    """An index that finds chunks by their words."""

    def exists(self) -> bool:
        """Return True if the index was ever created."""
        ...

    def catch_up(self, progress: Progress | None = None) -> int:
        """Apply what is pending and return the position."""
        ...

    def check(self) -> list[str]:
        """Return what is wrong with the index, one sentence each, after reading all of it that can be read."""
        ...

    def ask(self, work: Callable[[WordReader], T]) -> T:
        """Return `work` of a reader that is level with the log."""
        ...

    def languages(self) -> tuple[str, ...]:
        """Return the languages that stem this library's queries, commonest first."""
        ...

    def search(self, query: LexicalQuery, k: int, scope: Scope) -> tuple[Ids, Floats]:
        """Return what `WordReader.search` of a reader that is level with the log returns."""
        ...

    def places(self, chunks: Sequence[int]) -> Mapping[int, tuple[str, str]]:
        """Return the namespace and the row's id of each chunk that a service holds, by chunk id."""
        ...


class ServiceIndex(Protocol):
    """The further methods of an index of words that a service holds."""

    def position(self) -> int:
        """Return the last change that the service has acknowledged."""
        ...

    def catch_up(self, progress: Progress | None = None) -> int:
        """Apply what is pending and return the position."""
        ...

    def trouble(self) -> str:
        """Return why something is still pending, in one sentence; empty where nothing went wrong."""
        ...

    def position_of(self, fingerprint: str) -> int:
        """Return the last change whose vectors of this model the service has acknowledged; 0 if its rows hold none."""
        ...

    def use(self, fingerprint: str, dims: int) -> None:
        """Keep the vectors of this model from now on."""
        ...

    def raise_since(self, moment: float) -> None:
        """Raise the error of a `catch_up` that failed since `moment` (`time.monotonic`), so that nobody waits twice."""
        ...

    def refusals(self) -> Sequence[tuple[int, str]]:
        """Return the chunks that the service rejected, and why."""
        ...

    def doubt(self, project_id: str, table_id: str) -> None:
        """Mark a table's rows as in doubt: before the next search they are compared with what was sent, and mended."""
        ...

    def clean(self, tables: Sequence[tuple[str, str]], *, others: bool, dry_run: bool) -> tuple[int, int]:
        """Remove the unknown rows of these tables (project id, table id) and, with `others`, those of all other tables.

        Returns how many rows that were, and how many tables could not be looked at. `dry_run` only counts.
        """
        ...


MakeWords = Callable[[Path, WordSource, str], WordIndex]
"""Makes an index of words from (folder, source, language of texts whose own language is unknown)."""


class VectorSource(Protocol):
    """The source that an index of vectors follows."""

    def last_change(self) -> int:
        """Return the number of the latest change; 0 when there is none."""
        ...

    def changes(self, after: int, limit: int) -> list[Change]:
        """Return the first `limit` changes after one, in order."""
        ...

    def vectors_of(self, item_ids: Sequence[int]) -> tuple[Ids, Halves]:
        """Return ids and unit vectors of all chunks of these items that have a vector of the current model."""
        ...


class NearIndex(Follower, Protocol):
    """An index that finds chunks by their vectors."""

    def __len__(self) -> int:
        """Return the number of chunks with a vector."""
        ...

    def compact(self) -> None:
        """Catch up, and free the disk space of removed vectors."""
        ...

    def check(self) -> list[str]:
        """Return what is wrong with the index, one sentence each; [] when nothing is."""
        ...

    def search(self, query: Floats, k: int, items: Ids | None = None, without: Ids | None = None) -> tuple[Ids, Floats]:
        """Return the `k` chunks nearest to the query and their exact cosines, best first, ties by chunk id.

        `items`: the sorted, unique ids of the items to search; None searches all. `without`: of those to leave out.
        """
        ...

    def scores(self, query: Floats, chunk_ids: Ids) -> Floats:
        """Return the exact cosine of each chunk; NaN for one that has no vector."""
        ...

    def sample(self) -> Floats:
        """Return the vectors of some chunks, evenly spaced; of all where they are few."""
        ...


MakeVectors = Callable[[Path, VectorSource, int, str], NearIndex]
"""Makes an index of vectors from (folder, source, dimensions, fingerprint of the model)."""
