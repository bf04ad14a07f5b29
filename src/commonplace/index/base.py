"""What search asks of an index, whichever engine is behind it. The local ones and turbopuffer's both give it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from commonplace.errors import Unavailable
from commonplace.index.follower import Follower
from commonplace.index.scope import Ids, Scope
from commonplace.index.words.wanted import Wanted
from commonplace.lazy_dataclass import dataclass
from commonplace.model import Change, IndexedItem
from commonplace.text.terms import Term

if TYPE_CHECKING:  # they bring tantivy along, which an index elsewhere need not load
    from commonplace.index.vectors.scan import Halves
    from commonplace.index.words.engine import Floats
    from commonplace.index.words.entries import Found
    from commonplace.index.words.items import Ranked, Scoring
    from commonplace.index.words.query import LexicalQuery

T = TypeVar("T")
Progress = Callable[[int, int], None]
"""Called with (done, total)."""


class Unacknowledged(Unavailable):
    """A service has taken what was written and does not say yet that it has it."""

    code = "index_busy"


class WordSource(Protocol):
    """What an index of words follows. The store implements it."""

    def last_change(self) -> int: ...
    def changes(self, after: int, limit: int) -> list[Change]: ...
    def indexed(self, item_ids: Sequence[int]) -> list[IndexedItem]: ...


class EntryFinder(Protocol):
    """A search for whole entries: words, phrases and beginnings, joined by and, or and not."""

    @property
    def ranks(self) -> bool:
        """Whether anything is looked for. Where things are only refused, the rest comes newest first."""
        ...

    def best(self, k: int, scope: Scope, *, loosely: bool = False) -> Found:
        """The first `k` entries. `loosely`: any that have some of what is sought, best coverage first."""
        ...


class ItemFinder(Protocol):
    """A search for whole items, over an index that has one entry for each."""

    def best(self, count: int, without: Ids | None = None) -> Ranked:
        """At least the best `count` items, and all that score as the last of them does; `without` may not answer."""
        ...

    def allowed(self) -> Ids:
        """All items of the scopes that the query's phrases and exclusions let through, whatever words they have."""
        ...


@dataclass(frozen=True, slots=True)
class Near:
    """What the vector side of a search is going to be asked."""

    query: Floats
    items: Ids | None
    without: Ids | None


class WordReader(Protocol):
    """The words of one moment, for one search: what is asked of it twice is answered the same."""

    def languages(self) -> tuple[str, ...]:
        """The languages that stem this library's queries, commonest first."""
        ...

    def rarer(self) -> tuple[str, ...]:
        """The library's other languages."""
        ...

    def idf(self, form: str) -> float:
        """How much a stem tells, as BM25 has it; 0 when no chunk has it."""
        ...

    def knows(self, language: str, form: str) -> bool:
        """Whether a chunk in a language has a stem."""
        ...

    def begins(self, prefix: str) -> bool:
        """Whether any indexed word begins so."""
        ...

    def occurs(self, word: str) -> bool:
        """Whether an exact word is indexed, or was until a moment ago."""
        ...

    def entries(self, wanted: Wanted, language: str) -> EntryFinder:
        """A search for whole entries, stemmed as this language and the library's own are."""
        ...

    def items(self, query: LexicalQuery, scopes: Sequence[Scope], *, missing: int, scoring: Scoring) -> ItemFinder:
        """A search for whole items in any of these scopes. `missing`: how many words of it are nowhere."""
        ...

    def search(self, query: LexicalQuery, k: int, scope: Scope) -> tuple[Ids, Floats]:
        """Chunk ids and BM25 scores, best first, ties by id. Never fewer than `k` where that many match the scope."""
        ...

    def expect(self, query: LexicalQuery, k: int, scope: Scope, near: Near) -> None:
        """Says that `search` and the vector index are about to be asked so: one request may do for both."""
        ...

    def waiting(self) -> bool:
        """Whether an index elsewhere has yet to answer something that it was asked in this search."""
        ...

    def scores(self, query: LexicalQuery, chunks: Ids) -> Floats:
        """The BM25 scores these chunks have, on the same scale as those of `search`; 0 where nothing matches."""
        ...

    def marks(self, terms: Sequence[Term], items: Ids) -> Iterator[tuple[Ids, Ids]]:
        """Which terms the chunks of these items have: chunk ids and, for each, a bit per term, the first the lowest.

        One pair for every `lexical_reader.MOST_MARKS` terms.
        """
        ...

    def is_all(self, kinds: Sequence[str]) -> bool:
        """Whether there is nothing but items of these kinds."""
        ...

    def passages(self) -> int:
        """How many chunks there are."""
        ...

    def having(self, terms: tuple[Term, ...], most: int) -> Ids:
        """The chunks with all of these terms, ascending; none where more than `most` items have them."""
        ...

    def holders(self, query: LexicalQuery, scope: Scope) -> Ids:
        """The items in scope with a passage that answers a query, ascending, however many there are."""
        ...


class WordIndex(Follower, Protocol):
    """Finds passages by their words."""

    def exists(self) -> bool:
        """Whether it was ever made."""
        ...

    def catch_up(self, progress: Progress | None = None) -> int: ...

    def check(self) -> list[str]:
        """What is wrong with it, one sentence each, after reading all of it that can be read."""
        ...

    def ask(self, work: Callable[[WordReader], T]) -> T:
        """Do something with a reader that is level with the log."""
        ...

    def languages(self) -> tuple[str, ...]:
        """The languages that stem this library's queries, commonest first."""
        ...

    def search(self, query: LexicalQuery, k: int, scope: Scope) -> tuple[Ids, Floats]:
        """As a reader's."""
        ...

    def places(self, chunks: Sequence[int]) -> Mapping[int, tuple[str, str]]:
        """The namespace and the document's id of each chunk that a service holds."""
        ...


class ServiceIndex(Protocol):
    """What else can be asked of an index of words that a service holds."""

    def position(self) -> int:
        """The last change that the service has acknowledged."""
        ...

    def catch_up(self, progress: Progress | None = None) -> int: ...

    def trouble(self) -> str:
        """Why something is still pending, in one sentence; empty where nothing went wrong."""
        ...

    def position_of(self, fingerprint: str) -> int:
        """The same, of rows that have the vectors of a model."""
        ...

    def use(self, fingerprint: str, dims: int) -> None:
        """Keep the vectors of this model from now on."""
        ...

    def raise_since(self, moment: float) -> None:
        """Raise what kept the service from being caught up with since then (`time.monotonic`): it was asked enough."""
        ...

    def refusals(self) -> Sequence[tuple[int, str]]:
        """The chunks that the service would not take, and why."""
        ...

    def doubt(self, project_id: str, table_id: str) -> None:
        """Have the rows of a table compared with what was sent, and put right, before the next search."""
        ...

    def clean(self, tables: Sequence[tuple[str, str]], *, others: bool, dry_run: bool) -> tuple[int, int]:
        """Remove the rows of these tables that nothing explains, and of `others` that are none of them all rows.

        Tables are named by their projects and themselves. Returns how many rows that were, and how many tables could
        not be looked at.
        """
        ...


MakeWords = Callable[[Path, WordSource, str], WordIndex]
"""Makes an index of words of a folder, what it follows, and the language of texts whose own cannot be told."""


class NearSource(Protocol):
    """What an index of vectors follows."""

    def last_change(self) -> int: ...
    def changes(self, after: int, limit: int) -> list[Change]: ...
    def vectors_of(self, item_ids: Sequence[int]) -> tuple[Ids, Halves]: ...


class NearIndex(Follower, Protocol):
    """Finds passages by their vectors."""

    def __len__(self) -> int:
        """How many passages have a vector here."""
        ...

    def compact(self) -> None:
        """Catch up, and give back the room of what is gone."""
        ...

    def check(self) -> list[str]:
        """What is wrong with it, one sentence each; [] when nothing is."""
        ...

    def search(self, query: Floats, k: int, items: Ids | None = None, without: Ids | None = None) -> tuple[Ids, Floats]:
        """The chunks nearest to the query and their exact cosines, best first, ties by chunk id.

        `items`: the sorted, unique ids of the items that may answer; None lets all of them. `without`: the same of
        those that may not.
        """
        ...

    def scores(self, query: Floats, chunk_ids: Ids) -> Floats:
        """The exact cosine of each chunk; NaN for one that has no vector."""
        ...

    def sample(self) -> Floats:
        """The vectors of some chunks, evenly spaced; all of them where they are few."""
        ...


MakeVectors = Callable[[Path, NearSource, int, str], NearIndex]
"""Makes an index of vectors of a folder, what it follows, how many dimensions they have, and their fingerprint."""
