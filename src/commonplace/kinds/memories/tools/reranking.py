"""The second look at the beginning of a list, by a reranker that somebody serves over HTTP.

What is built into the engine for that (`search/rerank.py`) is not used here: without a reranker a list stays as it was
found, and costs what it did.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from commonplace.index.scope import Ids
from commonplace.index.words.engine import Floats
from commonplace.index.words.wanted import Atom, Wanted, atoms
from commonplace.kinds.memories.tools.lists import leads
from commonplace.kinds.memories.tools.paging import Cursor, Lister, Rows
from commonplace.lazy_dataclass import dataclass
from commonplace.model import JSON, fingerprint
from commonplace.models import open_reranker
from commonplace.search.timed import Left, within
from commonplace.text.excerpt import excerpt
from commonplace.text.languages import code_of
from commonplace.text.matches import Matcher
from commonplace.text.terms import Term, beginning, query_terms

if TYPE_CHECKING:
    from commonplace.library import Library

MOST = 50
"""Entries that are put in order, whatever the limit."""

BUDGET_S = 2.0
KEPT = 128
"""Lists whose scores are kept: the pages of one must not depend on how often a reranker says the same."""

_LONGEST_READ = 100_000
"""Characters of an entry that are looked through for matches; of a longer one only its best chunk is."""

_WORDS = ("word", "phrase")


class Reranking:
    """Who reranks for one library, how it went the last time, and what was said of earlier lists. Threads share it."""

    def __init__(self, library: Library) -> None:
        settings = library.settings
        self.enabled = settings.memory_reranking
        self._reranker = open_reranker(settings)
        self.seconds = min(BUDGET_S, settings.rerank_ms / 1000)
        self._failure = ""
        self._said: OrderedDict[bytes, Floats] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def is_on(self) -> bool:
        """Whether lists are reranked here, or at least tried to."""
        return self.enabled and self._reranker is not None

    @property
    def by_whom(self) -> tuple[str | None, str | None]:
        """Provider and model."""
        if self._reranker is None:
            return None, None
        provider, _, model = self._reranker.name.partition(":")
        return provider, model

    @property
    def problem(self) -> str:
        """Why nothing is reranked, as far as that can be told without asking anyone; "" where it is."""
        if not self.enabled:
            return "It is switched off."
        if self._reranker is None:
            return "No reranker is configured, so results keep their order. Set COMMONPLACE_RERANKER to have one."
        return getattr(self._reranker, "problem", "") or self._failure

    def scores(self, query: str, passages: Sequence[str], until: float) -> Floats:
        """0 to 1 for each passage. Raises Left where there are none by then, on the clock of `perf_counter`."""
        key = fingerprint(query, *passages)
        with self._lock:
            if key in self._said:
                self._said.move_to_end(key)
                return self._said[key]
        try:
            scores = self._asked(query, passages, until - time.perf_counter())
        except Left as left:
            self._failure = f"The last time, {left}"
            raise
        self._failure = ""
        with self._lock:
            self._said[key] = scores
            while len(self._said) > KEPT:
                self._said.popitem(last=False)
        return scores

    def _asked(self, query: str, passages: Sequence[str], seconds: float) -> Floats:
        reranker, read = self._reranker, [place for place, passage in enumerate(passages) if passage.strip()]
        scores = np.zeros(len(passages), np.float32)
        if reranker is None or not read:
            return scores
        if seconds <= 0:
            raise Left("its time was over before it was asked")

        scores[read] = within(seconds, lambda: reranker.score(query, [passages[place] for place in read]))
        return np.round(scores, 6)  # as they are shown, so that what looks equal is ordered as equals are


def reranking_of(library: Library) -> Reranking:
    return library.keeping(Reranking)


class Passages:
    """What a reranker reads of entries."""

    def __init__(self, library: Library, sought: Sequence[Atom]) -> None:
        self._library, self._sought = library, sought

    def of(self, rows: Rows, until: float) -> list[str]:
        """The matched chunk of what was found by meaning, the text around the matches of what was found by words.

        Those that cannot be read in time are not: the caller is late then anyway.
        """
        store, items, words = self._library.store, rows.items.tolist(), _by_words(rows)
        chunks = rows.chunks if rows.chunks is not None else np.zeros(len(rows), np.int64)
        bodies = {item.id: item.body or "" for item in store.heads(items, _LONGEST_READ + 1)}
        whole = [words[row] and len(bodies.get(item, "")) <= _LONGEST_READ for row, item in enumerate(items)]
        wanted = [chunk for chunk, read in zip(chunks.tolist(), whole, strict=True) if not read]
        texts = {chunk.item_id: chunk.text for chunk in store.chunks(wanted)}
        return [self._fitted(texts.get(item, bodies.get(item, "")), until) for item in items]

    def _fitted(self, text: str, until: float) -> str:
        most = self._library.settings.reranker_tokens
        if len(text) <= most or time.perf_counter() > until:
            return text
        return excerpt(text, self._matcher.find(text), most)

    @cached_property
    def _matcher(self) -> Matcher:
        library = self._library
        languages = tuple(dict.fromkeys((code_of(library.settings.memory_language), *library.lexical.languages())))
        words = " ".join(atom.text for atom in self._sought if atom.kind in _WORDS)
        begun = [beginning(atom.text) for atom in self._sought if atom.kind == "prefix"]
        terms = [*query_terms(words, languages), *(Term((form,), 1.0, "prefix") for form in begun if form)]
        # Function words match everywhere: they would draw a passage to where nothing is said.
        return Matcher([term for term in terms if term.weight >= 1] or terms, languages)


def _by_words(rows: Rows) -> NDArray[np.bool_]:
    """Which of the rows were found by their words rather than by their meaning."""
    lexical, semantic = rows.scores.get("fts_rank"), rows.scores.get("semantic_rank")
    if lexical is None or semantic is None:
        return np.full(len(rows), "fts_score" in rows.scores)
    return leads(lexical.astype(np.int64), semantic.astype(np.int64))


@dataclass(frozen=True, slots=True)
class Judged:
    """How a second look went. Where it gave nothing, `reason` says why."""

    entries: int
    ms: float
    reason: str = ""


class Look:
    """A second look for one query."""

    def __init__(self, library: Library, query: str, sought: Sequence[Atom]) -> None:
        self._reranking, self._query = reranking_of(library), query
        self._passages = Passages(library, sought)

    def at(self, rows: Rows) -> tuple[Floats | None, Judged]:
        start = time.perf_counter()
        until = start + self._reranking.seconds
        try:
            scores, reason = self._reranking.scores(self._query, self._passages.of(rows, until), until), ""
        except Left as left:
            scores, reason = None, str(left).rstrip(".")
        return scores, Judged(len(rows), (time.perf_counter() - start) * 1000, reason)

    @property
    def by_whom(self) -> tuple[str | None, str | None]:
        return self._reranking.by_whom


def look_for(library: Library, query: str, wanted: Wanted | None, *, spoken: bool = True) -> Look | None:
    """A second look for a query, None where nobody takes one or nothing is sought that could be judged.

    `spoken`: the query says what it wants as one would; of one with operators only what it looks for is judged.
    """
    if not reranking_of(library).is_on:
        return None
    sought = list(atoms(wanted, sought=True)) if wanted is not None else []
    if not spoken and not sought:
        return None
    return Look(library, query if spoken else " ".join(atom.text for atom in sought), sought)


L = TypeVar("L", bound=Lister)


class Reranked(Generic[L]):
    """A list whose beginning is in the order of a second look. Without one it is the list as it was made."""

    def __init__(self, made: L, look: Look | None) -> None:
        self.made = made
        self._look = look
        self._judged: Judged | None = None

    @property
    def loose(self) -> bool:
        return self.made.loose

    def first(self, count: int) -> Rows:
        if self._look is None:
            return self.made.first(count)
        rows = self.made.first(max(count, MOST))
        head = rows.only(np.arange(min(MOST, len(rows))))
        scores = self._scores(head)
        if scores is None:
            return rows
        order = np.lexsort((-head.items, -head.created, -scores))
        return _headed(_led(rows, order), scores[order], len(head))

    def deeper(self, rows: Rows, count: int) -> Rows:
        if not rows.head:
            return self.made.deeper(rows, count)
        column, plain = rows.scores["rerank_score"], {**rows.scores, "rerank_score": None}
        further = self.made.deeper(replace(rows, scores=plain), count)
        return _headed(further, None if column is None else column[: rows.head].astype(np.float32), rows.head)

    def again(self, cursor: Cursor, count: int) -> tuple[Rows, int]:
        """In the order that was begun, which the cursor brings along as long as not all of the head was shown."""
        if not cursor.head:
            return self.made.again(cursor, count)
        rows, _ = self.made.again(cursor, len(cursor.head) + count)
        place = {item: row for row, item in enumerate(rows.items.tolist())}
        order = np.array([place[item] for item in cursor.head if item in place], np.int64)
        shown = sum(item in place for item in cursor.head[: cursor.position])
        rows = _led(rows, order)
        scores = self._scores(rows.only(np.arange(len(order)))) if shown < len(order) else None
        return _headed(rows, scores, len(order)), shown

    def _scores(self, head: Rows) -> Floats | None:
        if self._look is None or not len(head):
            return None
        scores, self._judged = self._look.at(head)
        return scores

    @property
    def warnings(self) -> list[str]:
        if self._judged is None or not self._judged.reason:
            return []
        return [f"Reranking failed; results keep the order they had: {self._judged.reason}"]

    def stats(self) -> dict[str, JSON]:
        """`rerank_stats`, where a second look was taken."""
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


def _led(rows: Rows, first: Ids) -> Rows:
    """The same rows, these first, the others as they were."""
    rest = np.setdiff1d(np.arange(len(rows)), first, assume_unique=True)
    return rows.only(np.concatenate([first, rest]))


def _headed(rows: Rows, scores: Floats | None, head: int) -> Rows:
    """Rows of which so many at the beginning have an order of their own, and these scores."""
    column = None
    if scores is not None:
        column = np.full(len(rows), np.nan, np.float32)
        column[: len(scores)] = scores
    return replace(rows, scores={**rows.scores, "rerank_score": column}, head=head)
