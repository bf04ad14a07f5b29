"""Rerank the beginning of a list by a reranker that somebody serves over HTTP.

The engine's built-in reranker (`search/rerank.py`) is not used here: without a configured reranker a list stays as
it was found, and costs what it did.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from commonplace.index.scope import Ids
from commonplace.index.words.snapshot import Floats
from commonplace.index.words.wanted import Atom, Wanted, atoms
from commonplace.kinds.memories.tools.entry_lists import leads
from commonplace.kinds.memories.tools.paging import Cursor, Lister, ListRows
from commonplace.model import JSON, fingerprint
from commonplace.models import open_reranker
from commonplace.search.engine import StageOmitted, within
from commonplace.store.chunks import Chunks
from commonplace.store.items import Items
from commonplace.text.excerpt import excerpt
from commonplace.text.languages import code_of
from commonplace.text.matches import Matcher
from commonplace.text.terms import Term, beginning, query_terms

if TYPE_CHECKING:
    from commonplace.space import Space


MOST = 50
"""Entries that are reranked, whatever the limit."""

BUDGET_S = 2.0
KEPT = 128
"""Lists whose scores are cached: the pages of one list must not depend on a reranker repeating itself exactly."""

_LONGEST_READ = 100_000
"""Characters of an entry that are searched for matches; of a longer entry only the best chunk is read."""

_WORDS = ("word", "phrase")


class Reranking:
    """The reranker of one library, its last failure, and a cache of scores. Threads share it."""

    def __init__(self, space: Space) -> None:
        settings = space.settings
        self.enabled = settings.memory_reranking
        self._reranker = open_reranker(settings)
        self.seconds = min(BUDGET_S, settings.rerank_ms / 1000)
        self._failure = ""
        self._said: OrderedDict[bytes, Floats] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def is_on(self) -> bool:
        """Return whether lists are reranked here, or at least tried to."""
        return self.enabled and self._reranker is not None

    @property
    def by_whom(self) -> tuple[str | None, str | None]:
        """Return the provider and the model, None for either that there is not."""
        if self._reranker is None:
            return None, None
        provider, _, model = self._reranker.name.partition(":")
        return provider, model

    @property
    def problem(self) -> str:
        """Return why nothing is reranked, "" where it is. No provider is contacted for this."""
        if not self.enabled:
            return "It is switched off."
        if self._reranker is None:
            return "No reranker is configured, so results keep their order. Set COMMONPLACE_RERANKER to have one."
        return getattr(self._reranker, "problem", "") or self._failure

    def scores(self, query: str, passages: Sequence[str], until: float) -> Floats:
        """Return a score from 0 to 1 for each passage.

        `until` is a time on the clock of `perf_counter`. Raise StageOmitted where there are no scores by then.
        """
        key = fingerprint(query, *passages)
        with self._lock:
            if key in self._said:
                self._said.move_to_end(key)
                return self._said[key]
        try:
            scores = self._asked(query, passages, until - time.perf_counter())
        except StageOmitted as left:
            self._failure = f"The last time, {left}"
            raise
        self._failure = ""
        with self._lock:
            self._said[key] = scores
            while len(self._said) > KEPT:
                self._said.popitem(last=False)
        return scores

    def _asked(self, query: str, passages: Sequence[str], seconds: float) -> Floats:
        """Return the reranker's scores, rounded to six places, 0 for blank passages."""
        reranker, read = self._reranker, [place for place, passage in enumerate(passages) if passage.strip()]
        scores = np.zeros(len(passages), np.float32)
        if reranker is None or not read:
            return scores
        if seconds <= 0:
            raise StageOmitted("its time was over before it was asked")

        scores[read] = within(seconds, lambda: reranker.score(query, [passages[place] for place in read]))
        return np.round(scores, 6)  # as they are shown, so that what looks equal is ordered as equals are


def reranking_of(space: Space) -> Reranking:
    """Return the reranking of a library."""
    return space.part(Reranking)


class Passages:
    """The texts of entries as a reranker reads them."""

    def __init__(self, space: Space, sought: Sequence[Atom]) -> None:
        self._library, self._sought = space, sought

    def of(self, rows: ListRows, until: float) -> list[str]:
        """Return the matched chunk of rows found by meaning, the text around the matches of rows found by words.

        After `until` texts are returned unshortened: the caller is late by then anyway.
        """
        store, items, words = self._library.store, rows.items.tolist(), _by_words(rows)
        chunks = rows.chunks if rows.chunks is not None else np.zeros(len(rows), np.int64)
        bodies = {item.id: item.body or "" for item in store.drawer(Items).heads(items, _LONGEST_READ + 1)}
        read_whole = [words[row] and len(bodies.get(item, "")) <= _LONGEST_READ for row, item in enumerate(items)]
        wanted_chunks = [chunk for chunk, read in zip(chunks.tolist(), read_whole, strict=True) if not read]
        texts = {chunk.item_id: chunk.text for chunk in store.drawer(Chunks).get(wanted_chunks)}
        return [self._fitted(texts.get(item, bodies.get(item, "")), until) for item in items]

    def _fitted(self, text: str, until: float) -> str:
        most = self._library.settings.reranker_tokens
        if len(text) <= most or time.perf_counter() > until:
            return text
        return excerpt(text, self._matcher.find(text), most)

    @cached_property
    def _matcher(self) -> Matcher:
        space = self._library
        languages = tuple(dict.fromkeys((code_of(space.settings.memory_language), *space.lexical.languages())))
        words = " ".join(atom.text for atom in self._sought if atom.kind in _WORDS)
        prefixes = [beginning(atom.text) for atom in self._sought if atom.kind == "prefix"]
        terms = [*query_terms(words, languages), *(Term((form,), 1.0, "prefix") for form in prefixes if form)]
        # Function words match everywhere: they would draw a passage to where nothing is said.
        return Matcher([term for term in terms if term.weight >= 1] or terms, languages)


def _by_words(rows: ListRows) -> NDArray[np.bool_]:
    """Return which rows were found by words rather than by meaning."""
    lexical, semantic = rows.scores.get("fts_rank"), rows.scores.get("semantic_rank")
    if lexical is None or semantic is None:
        return np.full(len(rows), "fts_score" in rows.scores)
    return leads(lexical.astype(np.int64), semantic.astype(np.int64))


@dataclass(frozen=True, slots=True)
class RerankOutcome:
    """The outcome of a second look: how many entries, milliseconds, and why it gave nothing, "" where it did."""

    entries: int
    ms: float
    reason: str = ""


class EntryReranker:
    """A reranker of entries for one query."""

    def __init__(self, space: Space, query: str, sought: Sequence[Atom]) -> None:
        self._reranking, self._query = reranking_of(space), query
        self._passages = Passages(space, sought)

    def at(self, rows: ListRows) -> tuple[Floats | None, RerankOutcome]:
        """Return the scores of rows, None where there are none in time, and the outcome."""
        start = time.perf_counter()
        until = start + self._reranking.seconds
        try:
            scores, reason = self._reranking.scores(self._query, self._passages.of(rows, until), until), ""
        except StageOmitted as left:
            scores, reason = None, str(left).rstrip(".")
        return scores, RerankOutcome(len(rows), (time.perf_counter() - start) * 1000, reason)

    @property
    def by_whom(self) -> tuple[str | None, str | None]:
        return self._reranking.by_whom


def look_for(space: Space, query: str, wanted: Wanted | None, *, spoken: bool = True) -> EntryReranker | None:
    """Return a second look for a query; None without a reranker, or where the query has no words to judge.

    `spoken`: the query is natural language; of one with operators only the words it looks for are judged.
    """
    if not reranking_of(space).is_on:
        return None
    sought = list(atoms(wanted, sought=True)) if wanted is not None else []
    if not spoken and not sought:
        return None
    return EntryReranker(space, query if spoken else " ".join(atom.text for atom in sought), sought)


L = TypeVar("L", bound=Lister)


class Reranked(Generic[L]):
    """A list whose beginning is in the order of a second look. Without one it is the list as it was made."""

    def __init__(self, made: L, look: EntryReranker | None) -> None:
        self.made = made
        self._look = look
        self._judged: RerankOutcome | None = None

    @property
    def loose(self) -> bool:
        return self.made.loose

    def first(self, count: int) -> ListRows:
        """Return at least the first `count` rows, or all, of which the first `MOST` are reranked."""
        if self._look is None:
            return self.made.first(count)
        rows = self.made.first(max(count, MOST))
        head = rows.only(np.arange(min(MOST, len(rows))))
        scores = self._scores(head)
        if scores is None:
            return rows
        order = np.lexsort((-head.items, -head.created, -scores))
        return _with_head(_moved_to_front(rows, order), scores[order], len(head))

    def deeper(self, rows: ListRows, count: int) -> ListRows:
        if not rows.head:
            return self.made.deeper(rows, count)
        column, plain = rows.scores["rerank_score"], {**rows.scores, "rerank_score": None}
        further = self.made.deeper(replace(rows, scores=plain), count)
        return _with_head(further, None if column is None else column[: rows.head].astype(np.float32), rows.head)

    def again(self, cursor: Cursor, count: int) -> tuple[ListRows, int]:
        """Return the list in the order that was begun; the cursor carries that while not all of the head was shown."""
        if not cursor.head:
            return self.made.again(cursor, count)
        rows, _ = self.made.again(cursor, len(cursor.head) + count)
        place = {item: row for row, item in enumerate(rows.items.tolist())}
        order = np.array([place[item] for item in cursor.head if item in place], np.int64)
        shown_count = sum(item in place for item in cursor.head[: cursor.position])
        rows = _moved_to_front(rows, order)
        scores = self._scores(rows.only(np.arange(len(order)))) if shown_count < len(order) else None
        return _with_head(rows, scores, len(order)), shown_count

    def _scores(self, head: ListRows) -> Floats | None:
        """Return the scores of the head, None where there are none, and note the outcome."""
        if self._look is None or not len(head):
            return None
        scores, self._judged = self._look.at(head)
        return scores

    @property
    def warnings(self) -> list[str]:
        """Return a warning where the second look failed."""
        if self._judged is None or not self._judged.reason:
            return []
        return [f"Reranking failed; results keep the order they had: {self._judged.reason}"]

    def stats(self) -> dict[str, JSON]:
        """Return `rerank_stats`, where a second look was taken."""
        if self._look is None or self._judged is None:
            return {}
        provider, model = self._look.by_whom
        judged = self._judged
        record: dict[str, JSON] = {
            "provider": provider,
            "model": model,
            "candidates": judged.entries,
            "reranked": 0 if judged.reason else judged.entries,
            "execution_time_ms": round(judged.ms, 3),
        }
        return {"rerank_stats": {**record, "message": judged.reason} if judged.reason else record}


def _moved_to_front(rows: ListRows, first: Ids) -> ListRows:
    """Return the rows with the ones at `first` first, the others in their order."""
    rest = np.setdiff1d(np.arange(len(rows)), first, assume_unique=True)
    return rows.only(np.concatenate([first, rest]))


def _with_head(rows: ListRows, scores: Floats | None, head: int) -> ListRows:
    """Return rows of which the first `head` are reranked, with their scores."""
    column = None
    if scores is not None:
        column = np.full(len(rows), np.nan, np.float32)
        column[: len(scores)] = scores
    return replace(rows, scores={**rows.scores, "rerank_score": column}, head=head)
