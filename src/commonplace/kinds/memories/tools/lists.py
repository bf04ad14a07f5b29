"""The lists that the four searches walk: newest first, by words, by meaning, and both fused."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from commonplace.errors import CommonplaceError, NotFound, Unavailable
from commonplace.index.base import WordReader
from commonplace.index.scope import Ids
from commonplace.index.words.engine import Floats
from commonplace.index.words.entries import EntryHits, no_entry_hits
from commonplace.index.words.wanted import Wanted, joined
from commonplace.kinds.memories.boolean import LexicalMode, Reading, match_atoms
from commonplace.kinds.memories.ranked import ByMeaning, ByWords
from commonplace.kinds.memories.tools.paging import Column, Cursor, Rows
from commonplace.lazy_dataclass import dataclass
from commonplace.model import Filter
from commonplace.store.rows import Moment
from commonplace.text.languages import code_of

if TYPE_CHECKING:
    from commonplace.library import Library

DEEPEST = 1000
"""How far the semantic and the hybrid search reach, in entries."""

FROZEN = 100
"""Rows of a list by time that its first page freezes at least."""

WHOLE = 1 << 20
"""Rows of a list that is frozen whole: a walk where a filter decides must not lose what is changed meanwhile."""

RELAXED = "No entry has all the words, so entries with some of them are shown, those with the most first."
T = TypeVar("T")


@dataclass(slots=True)
class ByTime:
    """Entries newest first."""

    library: Library
    filter: Filter
    upto: int = field(init=False)
    hidden: Ids = field(init=False)
    loose: bool = False

    def first(self, count: int) -> Rows:
        self.upto, self.hidden = self.library.store.last_item(), replaced(self.library, self.filter)
        return self._rows(self.filter, max(count, FROZEN))

    def deeper(self, rows: Rows, count: int) -> Rows:
        last = Moment(int(rows.items[-1]), int(rows.created[-1]))
        wanted = WHOLE if is_narrow(self.filter) else count - len(rows) + len(self.hidden)
        return rows.followed_by(without(self._rows(whoever_replaced(self.filter), wanted, last), self.hidden))

    def again(self, cursor: Cursor, count: int) -> tuple[Rows, int]:
        self.upto, self.hidden = cursor.upto, replaced(self.library, self.filter)
        behind = self._rows(self.filter, max(count, FROZEN), cursor.last)
        shown = Rows(_ids([cursor.last.item_id]), _ids([cursor.last.created_at]), complete=False)
        return shown.followed_by(behind), 1

    def _rows(self, filter: Filter, count: int, after: Moment | None = None) -> Rows:
        found = self.library.store.newest(filter, limit=count, after=after, upto=self.upto)
        items, created = _ids([moment.item_id for moment in found]), _ids([moment.created_at for moment in found])
        return Rows(items, created, complete=len(found) < count)


@dataclass(slots=True)
class ByTheirWords:
    """Entries by their words, as deep as anyone walks. What was written since the first page changes nothing in it."""

    library: Library
    filter: Filter
    reading: Reading
    language: str
    relaxes: bool
    loose: bool = False
    reader: WordReader | None = None
    upto: int | None = None
    """The last item that was there when the list was begun, where it is made again."""
    hidden: Ids = field(init=False)

    def first(self, count: int) -> Rows:
        self.hidden = replaced(self.library, self.filter)
        found = self._found(self.filter, count, None if self.relaxes else False)
        self.loose, self.reader = found.relaxed, found.reader
        return lexical_rows(found.found)

    def deeper(self, rows: Rows, count: int) -> Rows:
        wanted = WHOLE if is_narrow(self.filter) else count + len(self.hidden)
        later = self.library.store.last_item() - self.upto if self.upto is not None else 0
        further = lexical_rows(self._found(whoever_replaced(self.filter), wanted + later, self.loose).found)
        if self.upto is not None:
            further = without_later(further, self.upto)
        return rows.followed_by(without(further, self.hidden))

    def again(self, cursor: Cursor, count: int) -> tuple[Rows, int]:
        self.loose, self.upto, self.hidden = cursor.loose, cursor.upto, replaced(self.library, self.filter)
        wanted = cursor.position + count
        while True:
            found = self._found(self.filter, wanted, self.loose)
            self.reader = found.reader
            rows = lexical_rows(found.found)
            known = without_later(rows, cursor.upto)
            if rows.complete or len(known) >= cursor.position + count:
                return known, place_of(known, cursor)
            wanted *= 4

    def _found(self, filter: Filter, count: int, loosely: bool | None) -> ByWords:
        if self.reading.wanted is None:
            return self.library.lexical.ask(lambda reader: ByWords(no_entry_hits(), False, reader))
        return by_words(
            self.library, self.reading.wanted, filter, count, self.language, loosely=loosely, reader=self.reader
        )


@dataclass(slots=True)
class Leg:
    """One of the lists of a ranked search: how it went."""

    found: EntryHits = field(default_factory=no_entry_hits)
    ran: bool = False
    ms: float = 0.0
    reason: str = ""
    """Why it did not run."""
    model: str = ""
    embedding_ms: float = 0.0


class Ranked:
    """A list that is made whole: at most `DEEPEST` entries."""

    loose = False
    upto: int | None = None
    """The last item that was there when the list was begun, where it is made again."""

    def first(self, count: int) -> Rows:
        return self.whole()

    def deeper(self, rows: Rows, count: int) -> Rows:
        return rows

    def again(self, cursor: Cursor, count: int) -> tuple[Rows, int]:
        self.loose, self.upto = cursor.loose, cursor.upto
        rows = without_later(self.whole(), cursor.upto)
        return rows, place_of(rows, cursor)

    def whole(self) -> Rows:
        raise NotImplementedError


class ByTheirMeaning(Ranked):
    """Entries by the distance of their best chunk."""

    def __init__(self, library: Library, filter: Filter, query: str) -> None:
        self._library, self._filter, self._query = library, filter, query
        self.leg = Leg()

    @property
    def is_cut(self) -> bool:
        return not self.leg.found.complete

    def whole(self) -> Rows:
        self.leg = by_meaning(self._library, self._query, self._filter)
        found = self.leg.found
        scores: dict[str, Column] = {
            "semantic_distance": found.scores,
            "semantic_rank": None,
            "rerank_score": None,
        }
        return Rows(found.items, found.created, True, scores, found.chunks)


class Fused(Ranked):
    """Both lists with the same filters, fused by their ranks alone."""

    def __init__(self, library: Library, filter: Filter, query: str, rrf_k: int) -> None:
        self._library, self._filter, self._query = library, filter, query
        self.rrf_k = rrf_k
        settings = library.settings
        words = [word for word in match_atoms(query) if len(getattr(word, "text", "")) >= 2]
        self.mode: LexicalMode = "match" if len(words) < settings.memory_or_threshold else "boolean"
        self._asked = match_atoms(query)
        self.words, self.meaning = Leg(), Leg()
        self.both = 0

    @property
    def is_cut(self) -> bool:
        return not (self.words.found.complete and self.meaning.found.complete)

    def whole(self) -> Rows:
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
        found = by_words(self._library, wanted, self._filter, DEEPEST, code, loosely=relaxes)
        self.loose = found.relaxed
        listed = found.found
        return Leg(listed if len(listed) <= DEEPEST else listed.take(slice(DEEPEST), complete=False), ran=True)

    def _fused(self) -> Rows:
        """Σ 1 / (k + rank) over the lists an entry is in, ties newest first."""
        words, meaning = (self._as_begun(leg) for leg in (self.words, self.meaning))
        items, first = np.unique(np.concatenate([words.items, meaning.items]), return_index=True)
        created = np.concatenate([words.created, meaning.created])[first]
        lexical, semantic = _ranks(words, items), _ranks(meaning, items)
        chunks = np.where(leads(lexical, semantic), _chunks(words, lexical), _chunks(meaning, semantic))
        self.both = int(np.count_nonzero((lexical > 0) & (semantic > 0)))
        rrf = _reciprocal(lexical, self.rrf_k) + _reciprocal(semantic, self.rrf_k)
        columns: dict[str, Column] = {
            "semantic_distance": _scores(meaning, semantic),
            "semantic_rank": semantic,
            "fts_score": _scores(words, lexical),
            "fts_rank": lexical,
            "rrf": rrf,
        }
        order = np.lexsort((-items, -created, -rrf))
        scores = {key: column[order] for key, column in columns.items() if column is not None}
        return Rows(items[order], created[order], True, {**scores, "rerank_score": None}, chunks[order])

    def _as_begun(self, leg: Leg) -> EntryHits:
        """Without what was stored since: it would move everything behind it down in one list and not in the other."""
        if self.upto is not None:
            leg.found = leg.found.take(leg.found.items <= self.upto, complete=leg.found.complete)
        return leg.found


def _ranks(found: EntryHits, items: Ids) -> Ids:
    """The place of each item in a list, from 1; 0 where it is not in it."""
    ranks = np.zeros(len(items), np.int64)
    ranks[np.searchsorted(items, found.items)] = np.arange(1, len(found) + 1)
    return ranks


def _reciprocal(ranks: Ids, k: int) -> NDArray[np.float64]:
    return np.where(ranks > 0, 1.0 / (k + ranks), 0.0)


def _scores(found: EntryHits, ranks: Ids) -> Floats:
    scores: Floats = np.append(found.scores, np.float32(np.nan))
    return scores[ranks - 1]


def _chunks(found: EntryHits, ranks: Ids) -> Ids:
    return np.append(found.chunks, 0)[ranks - 1]


def leads(lexical: Ids, semantic: Ids) -> NDArray[np.bool_]:
    """Which entries stand higher in the list by words than in the one by meaning. Rank 0: it is not in the list."""
    leading: NDArray[np.bool_] = (lexical > 0) & ((semantic == 0) | (lexical <= semantic))
    return leading


def _ids(numbers: Sequence[int]) -> Ids:
    return np.array(numbers, np.int64)


def by_words(
    library: Library,
    wanted: Wanted,
    filter: Filter,
    count: int,
    language: str,
    *,
    loosely: bool | None,
    reader: WordReader | None = None,
) -> ByWords:
    return library.ranked.by_words(wanted, filter, count, language=language, loosely=loosely, reader=reader)


def by_meaning(library: Library, query: str, filter: Filter) -> Leg:
    """The semantic list. A library that has no vectors yet, but could, has none that match."""
    start = time.perf_counter()
    try:
        made = library.ranked.by_meaning(query, filter, DEEPEST)
    except (Unavailable, NotFound) as missing:
        if missing.code != "vector_index_missing" or not library.settings.memory_embedding:
            raise Unavailable(str(missing)) from missing
        made = ByMeaning(no_entry_hits(), _model_to_come(library, query), 0.0)
    ms = (time.perf_counter() - start) * 1000
    return Leg(made.found, True, ms, model=made.model, embedding_ms=made.embedding_ms)


def _model_to_come(library: Library, query: str) -> str:
    """The model the first vectors will be made with. One that cannot read the query now is none."""
    try:
        embedder = library.embedding.embedder()
        embedder.embed_queries([query])
        return embedder.name
    except CommonplaceError as missing:
        raise Unavailable(str(missing)) from missing


def _leg(make: Callable[[], Leg]) -> Leg:
    start = time.perf_counter()
    try:
        leg = make()
    except CommonplaceError as error:
        return Leg(reason=str(error))
    leg.ms = (time.perf_counter() - start) * 1000
    return leg


def lexical_rows(found: EntryHits) -> Rows:
    scores: dict[str, Column] = {"fts_score": found.scores, "fts_rank": None, "rerank_score": None}
    return Rows(found.items, found.created, found.complete, scores, found.chunks)


def is_narrow(filter: Filter) -> bool:
    """Whether a filter asks for something of an entry that an update can change."""
    entries = filter.entries
    return bool(filter.where or filter.tags or (entries is not None and entries.multimodal is not None))


def replaced(library: Library, filter: Filter) -> Ids:
    """The entries a filter hides because newer ones have replaced them, as of now."""
    hides = filter.entries is not None and not filter.entries.superseded
    return _ids(library.store.superseded_items() if hides else [])


def whoever_replaced(filter: Filter) -> Filter:
    """The same without that: a list goes on with what was hidden when it was begun."""
    return filter if filter.entries is None else replace(filter, entries=replace(filter.entries, superseded=True))


def without(rows: Rows, hidden: Ids) -> Rows:
    return rows.only(np.isin(rows.items, hidden, invert=True)) if len(hidden) else rows


def without_later(rows: Rows, upto: int) -> Rows:
    return rows.only(rows.items <= upto)


def place_of(rows: Rows, cursor: Cursor) -> int:
    """Where to go on: behind the last entry that was shown, or at the same place where that one is gone."""
    shown = np.flatnonzero(rows.items == cursor.last.item_id)
    return int(shown[0]) + 1 if len(shown) else min(cursor.position, len(rows))
