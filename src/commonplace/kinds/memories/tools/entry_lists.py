"""The lists that the four searches walk: newest first, by words, by meaning, and both fused."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from commonplace.errors import CommonplaceError, NotFound, Unavailable
from commonplace.index.followers import WordReader
from commonplace.index.scope import Ids, firsts
from commonplace.index.words.entry_search import EntryHits, no_entry_hits
from commonplace.index.words.snapshot import Floats
from commonplace.index.words.wanted import Wanted, joined
from commonplace.kinds.memories.ranked_lists import ByMeaning, ByWords, RankedLists
from commonplace.kinds.memories.tools.paging import Column, Cursor, ListRows
from commonplace.kinds.memories.word_query import LexicalMode, ParsedQuery, match_atoms
from commonplace.model import Filter
from commonplace.search.engine import reciprocal
from commonplace.store.items import Items
from commonplace.store.listing import Listing
from commonplace.store.outdated import Outdated
from commonplace.store.rows import Moment
from commonplace.text.languages import code_of

if TYPE_CHECKING:
    from commonplace.space import Space


DEEPEST = 1000
"""Most entries that the semantic and the hybrid search rank."""

FROZEN = 100
"""Rows that the first page of a list by time freezes at least."""

WHOLE = 1 << 20
"""Rows of a list that is frozen whole: a walk through a filter must not lose entries that change meanwhile."""

RELAXED = "No entry has all the words, so entries with some of them are shown, those with the most first."
T = TypeVar("T")


@dataclass(slots=True)
class ByTime:
    """A list of entries, newest first."""

    space: Space
    filter: Filter
    upto: int = field(init=False)
    hidden: Ids = field(init=False)
    loose: bool = False

    def first(self, count: int) -> ListRows:
        self.upto, self.hidden = self.space.store.drawer(Items).last(), superseded_items(self.space, self.filter)
        return self._rows(self.filter, max(count, FROZEN))

    def deeper(self, rows: ListRows, count: int) -> ListRows:
        last = Moment(int(rows.items[-1]), int(rows.created[-1]))
        count_wanted = WHOLE if is_narrow(self.filter) else count - len(rows) + len(self.hidden)
        return rows.followed_by(without(self._rows(with_superseded(self.filter), count_wanted, last), self.hidden))

    def again(self, cursor: Cursor, count: int) -> tuple[ListRows, int]:
        self.upto, self.hidden = cursor.upto, superseded_items(self.space, self.filter)
        rest = self._rows(self.filter, max(count, FROZEN), cursor.last)
        shown = ListRows(_ids([cursor.last.item_id]), _ids([cursor.last.created_at]), complete=False)
        return shown.followed_by(rest), 1

    def _rows(self, filter: Filter, count: int, after: Moment | None = None) -> ListRows:
        """Return the next `count` entries after a moment."""
        moments = self.space.store.drawer(Listing).newest(filter, limit=count, after=after, upto=self.upto)
        items, created = _ids([moment.item_id for moment in moments]), _ids([moment.created_at for moment in moments])
        return ListRows(items, created, complete=len(moments) < count)


@dataclass(slots=True)
class ByTheirWords:
    """A list of entries by words, of any depth. Writes after the first page do not change it."""

    space: Space
    filter: Filter
    reading: ParsedQuery
    language: str
    relaxes: bool
    loose: bool = False
    reader: WordReader | None = None
    upto: int | None = None
    """The last item there was when the list was begun, where it is made again from a cursor."""
    hidden: Ids = field(init=False)

    def first(self, count: int) -> ListRows:
        self.hidden = superseded_items(self.space, self.filter)
        result = self._found(self.filter, count, None if self.relaxes else False)
        self.loose, self.reader = result.relaxed, result.reader
        return lexical_rows(result.found)

    def deeper(self, rows: ListRows, count: int) -> ListRows:
        count_wanted = WHOLE if is_narrow(self.filter) else count + len(self.hidden)
        later = self.space.store.drawer(Items).last() - self.upto if self.upto is not None else 0
        further = lexical_rows(self._found(with_superseded(self.filter), count_wanted + later, self.loose).found)
        if self.upto is not None:
            further = without_later(further, self.upto)
        return rows.followed_by(without(further, self.hidden))

    def again(self, cursor: Cursor, count: int) -> tuple[ListRows, int]:
        self.loose, self.upto, self.hidden = cursor.loose, cursor.upto, superseded_items(self.space, self.filter)
        count_wanted = cursor.position + count
        while True:
            result = self._found(self.filter, count_wanted, self.loose)
            self.reader = result.reader
            rows = lexical_rows(result.found)
            earlier_rows = without_later(rows, cursor.upto)
            if rows.complete or len(earlier_rows) >= cursor.position + count:
                return earlier_rows, place_of(earlier_rows, cursor)
            count_wanted *= 4

    def _found(self, filter: Filter, count: int, loosely: bool | None) -> ByWords:
        if self.reading.wanted is None:
            return self.space.lexical.ask(lambda reader: ByWords(no_entry_hits(), False, reader))
        return by_words(
            self.space, self.reading.wanted, filter, count, self.language, loosely=loosely, reader=self.reader
        )


@dataclass(slots=True)
class Leg:
    """One of the lists of a ranked search, and how it went: milliseconds, model, and why it did not run."""

    found: EntryHits = field(default_factory=no_entry_hits)
    ran: bool = False
    ms: float = 0.0
    reason: str = ""
    """Why it did not run."""
    model: str = ""
    embedding_ms: float = 0.0


class WholeLister:
    """A list that is made whole at once: at most `DEEPEST` entries."""

    loose = False
    upto: int | None = None
    """The last item there was when the list was begun, where it is made again from a cursor."""

    def first(self, count: int) -> ListRows:
        return self.whole()

    def deeper(self, rows: ListRows, count: int) -> ListRows:
        return rows

    def again(self, cursor: Cursor, count: int) -> tuple[ListRows, int]:
        self.loose, self.upto = cursor.loose, cursor.upto
        rows = without_later(self.whole(), cursor.upto)
        return rows, place_of(rows, cursor)

    def whole(self) -> ListRows:
        """Return the whole list."""
        raise NotImplementedError


class ByTheirMeaning(WholeLister):
    """A list of entries by the distance of their nearest chunk."""

    def __init__(self, space: Space, filter: Filter, query: str) -> None:
        self._library, self._filter, self._query = space, filter, query
        self.leg = Leg()

    @property
    def is_cut(self) -> bool:
        return not self.leg.found.complete

    def whole(self) -> ListRows:
        self.leg = by_meaning(self._library, self._query, self._filter)
        entries = self.leg.found
        scores: dict[str, Column] = {
            "semantic_distance": entries.scores,
            "semantic_rank": None,
            "rerank_score": None,
        }
        return ListRows(entries.items, entries.created, True, scores, entries.chunks)


class FusedLists(WholeLister):
    """Both lists with the same filter, fused by their ranks alone."""

    def __init__(self, space: Space, filter: Filter, query: str, rrf_k: int) -> None:
        self._library, self._filter, self._query = space, filter, query
        self.rrf_k = rrf_k
        settings = space.settings
        words = [word for word in match_atoms(query) if len(getattr(word, "text", "")) >= 2]
        self.mode: LexicalMode = "match" if len(words) < settings.memory_or_threshold else "boolean"
        self._asked = match_atoms(query)
        self.words, self.meaning = Leg(), Leg()
        self.both = 0

    @property
    def is_cut(self) -> bool:
        return not (self.words.found.complete and self.meaning.found.complete)

    def whole(self) -> ListRows:
        settings = self._library.settings
        if settings.memory_lexical:
            self.words = _leg(self._by_words)
        if settings.memory_semantic and settings.memory_embedding:
            self.meaning = _leg(lambda: by_meaning(self._library, self._query, self._filter))
        legs = [leg for leg in (self.words, self.meaning) if leg.ran]
        if not legs:
            reasons = [leg.reason for leg in (self.words, self.meaning) if leg.reason]
            raise Unavailable(f"Hybrid search failed: {'; '.join(reasons) or 'both of its lists are switched off'}")
        return self._fused()

    def _by_words(self) -> Leg:
        wanted = joined("or" if self.mode == "boolean" else "and", self._asked)
        if wanted is None:
            return Leg(ran=True)
        code = code_of(self._library.settings.memory_language)
        relaxes = None if self.mode == "match" and not self.loose else self.loose
        result = by_words(self._library, wanted, self._filter, DEEPEST, code, loosely=relaxes)
        self.loose = result.relaxed
        entries = result.found
        return Leg(entries if len(entries) <= DEEPEST else entries.take(slice(DEEPEST), complete=False), ran=True)

    def _fused(self) -> ListRows:
        """Return Σ 1 / (k + rank) over the lists an entry is in, highest first, ties newest first."""
        words, meaning = (self._as_begun(leg) for leg in (self.words, self.meaning))
        fusion = reciprocal([words.items, meaning.items], k=self.rrf_k)
        items, (lexical, semantic), rrf = fusion.ids, fusion.ranks, fusion.total
        _, first = firsts(np.concatenate([words.items, meaning.items]))
        created = np.concatenate([words.created, meaning.created])[first]
        chunks = np.where(leads(lexical, semantic), _chunks(words, lexical), _chunks(meaning, semantic))
        self.both = int(np.count_nonzero((lexical > 0) & (semantic > 0)))
        columns: dict[str, Column] = {
            "semantic_distance": _scores(meaning, semantic),
            "semantic_rank": semantic,
            "fts_score": _scores(words, lexical),
            "fts_rank": lexical,
            "rrf": rrf,
        }
        order = np.lexsort((-items, -created, -rrf))
        scores = {key: column[order] for key, column in columns.items() if column is not None}
        return ListRows(items[order], created[order], True, {**scores, "rerank_score": None}, chunks[order])

    def _as_begun(self, leg: Leg) -> EntryHits:
        """Return a leg's list without entries stored since: they would shift the ranks of only one list."""
        if self.upto is not None:
            leg.found = leg.found.take(leg.found.items <= self.upto, complete=leg.found.complete)
        return leg.found


def _scores(found: EntryHits, ranks: Ids) -> Floats:
    """Return the score of each item by its rank, NaN for rank 0."""
    scores: Floats = np.append(found.scores, np.float32(np.nan))
    return scores[ranks - 1]


def _chunks(found: EntryHits, ranks: Ids) -> Ids:
    """Return the chunk of each item by its rank, 0 for rank 0."""
    return np.append(found.chunks, 0)[ranks - 1]


def leads(lexical: Ids, semantic: Ids) -> NDArray[np.bool_]:
    """Return which entries rank higher by words than by meaning. Rank 0: not in the list."""
    leading: NDArray[np.bool_] = (lexical > 0) & ((semantic == 0) | (lexical <= semantic))
    return leading


def _ids(numbers: Sequence[int]) -> Ids:
    return np.array(numbers, np.int64)


def by_words(
    space: Space,
    wanted: Wanted,
    filter: Filter,
    count: int,
    language: str,
    *,
    loosely: bool | None,
    reader: WordReader | None = None,
) -> ByWords:
    return space.part(RankedLists).by_words(wanted, filter, count, language=language, loosely=loosely, reader=reader)


def by_meaning(space: Space, query: str, filter: Filter) -> Leg:
    """Return the semantic list.

    A library that has no vectors yet, but could, has an empty one. Raise Unavailable where it could not.
    """
    start = time.perf_counter()
    try:
        result = space.part(RankedLists).by_meaning(query, filter, DEEPEST)
    except (Unavailable, NotFound) as missing:
        if missing.code != "vector_index_missing" or not space.settings.memory_embedding:
            raise Unavailable(str(missing)) from missing
        result = ByMeaning(no_entry_hits(), _model_to_come(space, query), 0.0)
    ms = (time.perf_counter() - start) * 1000
    return Leg(result.found, True, ms, model=result.model, embedding_ms=result.embedding_ms)


def _model_to_come(space: Space, query: str) -> str:
    """Return the name of the model that will make the first vectors.

    Raise Unavailable where it cannot embed the query.
    """
    try:
        embedder = space.embedding.embedder()
        embedder.embed_queries([query])
        return embedder.name
    except CommonplaceError as missing:
        raise Unavailable(str(missing)) from missing


def _leg(make: Callable[[], Leg]) -> Leg:
    """Return the leg that `make` makes, timed; where it raises, one with the reason."""
    start = time.perf_counter()
    try:
        leg = make()
    except CommonplaceError as error:
        return Leg(reason=str(error))
    leg.ms = (time.perf_counter() - start) * 1000
    return leg


def lexical_rows(found: EntryHits) -> ListRows:
    """Return the rows of a list by words."""
    scores: dict[str, Column] = {"fts_score": found.scores, "fts_rank": None, "rerank_score": None}
    return ListRows(found.items, found.created, found.complete, scores, found.chunks)


def is_narrow(filter: Filter) -> bool:
    """Return whether a filter depends on something that an update of an entry can change."""
    entries = filter.entries
    return bool(filter.where or filter.tags or (entries is not None and entries.multimodal is not None))


def superseded_items(space: Space, filter: Filter) -> Ids:
    """Return the items a filter hides now because newer entries supersede them."""
    hides = filter.entries is not None and not filter.entries.superseded
    return _ids(space.store.drawer(Outdated).superseded() if hides else [])


def with_superseded(filter: Filter) -> Filter:
    """Return the filter with superseded entries let through: a list goes on with what it hid when it was begun."""
    return filter if filter.entries is None else replace(filter, entries=replace(filter.entries, superseded=True))


def without(rows: ListRows, hidden: Ids) -> ListRows:
    """Return the rows without hidden items."""
    return rows.only(np.isin(rows.items, hidden, invert=True)) if len(hidden) else rows


def without_later(rows: ListRows, upto: int) -> ListRows:
    """Return the rows without items stored after `upto`."""
    return rows.only(rows.items <= upto)


def place_of(rows: ListRows, cursor: Cursor) -> int:
    """Return the row to go on at: after the last entry shown, or at the same position where that one is gone."""
    rows_shown = np.flatnonzero(rows.items == cursor.last.item_id)
    return int(rows_shown[0]) + 1 if len(rows_shown) else min(cursor.position, len(rows))
