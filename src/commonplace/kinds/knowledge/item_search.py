"""Search the five kinds, one by one or all together, with one index, one score and one order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal

import numpy as np

from commonplace.index.followers import WordIndex, WordReader
from commonplace.index.scope import Ids, Scope
from commonplace.index.words.item_ranking import ItemScores
from commonplace.index.words.lexical_query import LexicalQuery
from commonplace.kinds.knowledge.drawer import Records
from commonplace.kinds.knowledge.item_scores import HIGHEST, AnalyzedQuery, NearItems, ask, both, near
from commonplace.kinds.knowledge.item_snippets import KnowledgeHit, Shower, Snippets
from commonplace.kinds.knowledge.kinds import SOURCE_OF
from commonplace.model import Filter, Item
from commonplace.search.engine import SemanticSource
from commonplace.store.base import Store
from commonplace.store.facets import facet
from commonplace.store.filters import fold_tag, micros
from commonplace.store.items import Items
from commonplace.store.listing import Listing
from commonplace.store.messages import Messages
from commonplace.text.terms import Term

By = Literal["both", "title", "message"]
Order = Literal["relevance", "recent"]

TAGGED = HIGHEST
"""Lowest score of a character with a tag that is a whole part of the query: above what any text scores."""

_KINDS: Mapping[str, tuple[str, ...]] = {
    "notes": ("note",),
    "media": ("media",),
    "characters": ("character",),
    "prompts": ("prompt",),
    "documents": ("document",),
}


@dataclass(frozen=True, slots=True)
class SourceLimits:
    """Filters for the items of each source. Each field applies to its own source only."""

    keywords: tuple[str, ...] = ()
    media_types: tuple[str, ...] = ()
    date_from: datetime | None = None
    date_to: datetime | None = None
    by: By = "both"
    character: str | None = None
    """The key of the character a conversation has to be with."""
    sender: str | None = None
    fields: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    """Parts of the query that characters' tags are compared with, whole."""


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """One search. `without` are ids of items to leave out, before the limit applies."""

    text: str
    sources: tuple[str, ...]
    limits: SourceLimits = SourceLimits()
    order: Order = "relevance"
    limit: int = 10
    offset: int = 0
    snippet_length: int = 300
    recent: tuple[str, ...] = ()
    without: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Results:
    """One page of hits, how many there are in all, and how many were left out because of `without`."""

    hits: tuple[KnowledgeHit, ...] = ()
    total: int = 0
    skipped: int = 0
    no_terms: bool = False
    hybrid: bool = False
    """Meaning took part."""
    words_only: str = ""
    """Why meaning did not take part, where it should have; "" otherwise."""


@dataclass(slots=True)
class _Pool:
    """Candidates, among which are all that can be on the page."""

    items: list[int] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    total: int = 0

    def add(self, ranked: ItemScores) -> None:
        self.items += ranked.items.tolist()
        self.scores += ranked.scores.tolist()
        self.total += ranked.total


class KnowledgeSearch:
    """A searcher over one library. It caches nothing: index and store are asked each time."""

    def __init__(
        self, store: Store, whole: WordIndex, passages: WordIndex, semantic: SemanticSource | None = None
    ) -> None:
        """Set up a search by words; with `semantic` also by meaning."""
        self._store, self._whole, self._passages, self._semantic = store, whole, passages, semantic

    def search(self, search: SearchRequest) -> Results:
        """Return one page of all items that match. It sees every write that returned before it."""
        return self._whole.ask(lambda reader: self._search(search, reader))

    def _search(self, search: SearchRequest, reader: WordReader) -> Results:
        query = ask(search.text, reader)
        tagged = self._tagged(search)
        if query.empty and not len(tagged):
            return Results(no_terms=True)
        close = near(self._semantic, search.text, query.languages[0]) if self._semantic else NearItems()
        scopes = self._scopes(search, query)
        page_end = search.offset + search.limit
        without = np.array(sorted(search.without), dtype=np.int64) if search.without else None
        pool = self._pool(search, query, reader, scopes, tagged, close, without)
        skipped = 0
        if without is not None:
            left_out = [inner for scope in scopes if (inner := _among(scope, without)) is not None]
            left_out_tagged = np.intersect1d(tagged, without)
            skipped = self._pool(search, query, reader, left_out, left_out_tagged, close, None).total
        page = self._page(search, pool)[search.offset : page_end]
        shower = Shower(self._store, Snippets(query, self._recent(search, reader)), search.snippet_length)
        hits = shower.hits([(pool.items[n], pool.scores[n]) for n in page], search.limits.fields)
        return Results(tuple(hits), pool.total, skipped, hybrid=close.ran, words_only=close.reason)

    def _recent(self, search: SearchRequest, reader: WordReader) -> list[Term]:
        """Return the terms of the session's earlier queries."""
        terms = [term for text in search.recent for term in ask(text, reader).query.terms]
        return list(dict.fromkeys(terms))

    # scopes

    def _scopes(self, search: SearchRequest, asked: AnalyzedQuery) -> list[Scope]:
        """Return the scopes in the index that the sources and their filters allow."""
        limits = search.limits
        scopes: list[Scope] = []
        for source in search.sources:
            if source == "chats":
                scopes += self._chat_scopes(limits)
                continue
            scope = Scope(kinds=_KINDS[source])
            if source == "notes" and limits.keywords:
                scope = replace(scope, tags=tuple(dict.fromkeys(map(fold_tag, limits.keywords))))
            elif source == "media":
                types = tuple(dict.fromkeys(facet("media_type", name) for name in limits.media_types))
                dates = (_micros(limits.date_from), _micros(limits.date_to))
                scope = replace(scope, facets=types, created=dates)
            elif source == "prompts" and limits.fields:
                scope = replace(scope, items=self._in_fields(asked.query, limits.fields))
            scopes.append(scope)
        return [scope for scope in scopes if scope.items is None or len(scope.items)]

    def _in_fields(self, query: LexicalQuery, fields: tuple[str, ...]) -> Ids:
        """Return the prompts in which these fields alone match. Their scores do not change by it."""
        scope = Scope(kinds=("prompt",), parts=fields)
        needed = [LexicalQuery(query.terms), *(LexicalQuery(phrases=(phrase,)) for phrase in query.phrases)]

        def holders(reader: WordReader) -> Ids:
            items = reader.holders(needed[0], scope)
            for phrase in needed[1:]:
                items = np.intersect1d(items, reader.holders(phrase, scope), assume_unique=True)
            return items

        return self._passages.ask(holders) if query.terms else np.empty(0, np.int64)

    def _chat_scopes(self, limits: SourceLimits) -> list[Scope]:
        message, title = Scope(kinds=("message",)), Scope(kinds=("conversation",))
        if limits.character is not None:
            talks = self._store.drawer(Messages).conversations_with(limits.character)
            if not talks:
                return []
            message = replace(message, parents=tuple(key for _, key in talks))
            title = replace(title, items=np.array([item for item, _ in talks], dtype=np.int64))
        if limits.sender is not None:
            names = (limits.sender, "user") if limits.sender.strip().casefold() == "human" else (limits.sender,)
            senders = tuple(facet(field, name) for name in names for field in ("sender", "role"))
            return [replace(message, facets=tuple(dict.fromkeys(senders)))] if limits.by != "title" else []
        return {"both": [message, title], "title": [title], "message": [message]}[limits.by]

    def _tagged(self, search: SearchRequest) -> Ids:
        """Return the characters that have a tag which is a whole part of the query."""
        if "characters" not in search.sources or not search.limits.tags:
            return np.empty(0, np.int64)
        return self._store.drawer(Listing).select(Filter(kinds=("character",), tags=search.limits.tags))

    # candidates

    def _pool(
        self,
        search: SearchRequest,
        asked: AnalyzedQuery,
        reader: WordReader,
        scopes: Sequence[Scope],
        tagged: Ids,
        close: NearItems,
        without: Ids | None,
    ) -> _Pool:
        """Return the candidates: tagged characters, near items, then the best by words that are neither."""
        count = 1 << 30 if search.order == "recent" else search.offset + search.limit
        pool = _Pool()
        pooled = _union(without, tagged)
        if len(tagged):
            self._add_tagged(asked, reader, tagged if without is None else np.setdiff1d(tagged, without), pool)
        if close.scores:
            pooled = _union(pooled, self._add_near(asked, reader, scopes, close, pooled, pool))
        pool.add(reader.items(asked.query, scopes, missing=asked.missing, scoring=asked.scoring).best(count, pooled))
        return pool

    def _add_near(
        self,
        asked: AnalyzedQuery,
        reader: WordReader,
        scopes: Sequence[Scope],
        close: NearItems,
        done: Ids | None,
        pool: _Pool,
    ) -> Ids:
        """Add near items, scored with what their words add. Return their ids."""
        items = np.array(sorted(close.scores), dtype=np.int64)
        if done is not None:
            items = np.setdiff1d(items, done)
        inside = [within for scope in scopes if (within := _among(scope, items)) is not None]
        search = reader.items(asked.query, inside, missing=asked.missing, scoring=asked.scoring)
        allowed, ranked = search.allowed(), search.best(1 << 30)
        word_scores = dict(zip(ranked.items.tolist(), ranked.scores.tolist(), strict=True))
        for item in allowed.tolist():
            pool.items.append(item)
            pool.scores.append(both(word_scores.get(item, 0.0), close.scores[item]))
        pool.total += len(allowed)
        return allowed

    def _add_tagged(self, asked: AnalyzedQuery, reader: WordReader, tagged: Ids, pool: _Pool) -> None:
        if not len(tagged):
            return
        scope = Scope(kinds=("character",), items=tagged)
        ranked = reader.items(asked.query, [scope], missing=asked.missing, scoring=asked.scoring).best(len(tagged))
        word_scores = dict(zip(ranked.items.tolist(), ranked.scores.tolist(), strict=True))
        bound = bool(asked.query.phrases or asked.query.excluded)
        for item in tagged.tolist():
            if item not in word_scores and bound:
                continue  # it lacks a phrase, or has what is excluded
            pool.items.append(item)
            pool.scores.append(round(TAGGED + (1 - TAGGED) * word_scores.get(item, 0.0), 4))
            pool.total += 1

    # order

    def _page(self, search: SearchRequest, pool: _Pool) -> list[int]:
        """Return indexes into the pool, in order, as far as the page needs them."""
        page_end = search.offset + search.limit
        rows = list(range(len(pool.items)))
        if search.order == "relevance" and len(rows) > page_end:
            least = sorted(pool.scores, reverse=True)[page_end - 1]
            rows = [row for row in rows if pool.scores[row] >= least]
        changed = self._store.drawer(Records).last_modified([pool.items[row] for row in rows])
        recent = search.order == "recent"

        def first(row: int) -> tuple[float, float]:
            moment, score = -changed.get(pool.items[row], 0), -pool.scores[row]
            return (moment, score) if recent else (score, moment)

        keys = {row: first(row) for row in rows}
        rows.sort(key=keys.__getitem__)
        return self._settled(rows, keys, [pool.items[row] for row in rows], page_end)

    def _settled(
        self, rows: list[int], keys: Mapping[int, tuple[float, float]], items: Sequence[int], wanted: int
    ) -> list[int]:
        """Return the rows with ties ordered by address, which is looked up only for ties."""
        first_rows = rows[: wanted + 1]
        while len(first_rows) < len(rows) and keys[rows[len(first_rows)]] == keys[first_rows[-1]]:
            first_rows.append(rows[len(first_rows)])
        tied = [n for n in range(len(first_rows)) if any(
            0 <= m < len(first_rows) and keys[first_rows[m]] == keys[first_rows[n]] for m in (n - 1, n + 1)
        )]  # fmt: skip
        uris = {item.id: item.uri for item in self._store.drawer(Items).get([items[n] for n in tied])}
        uri_by_row = {first_rows[n]: uris.get(items[n], "") for n in tied}
        return sorted(first_rows, key=lambda row: (keys[row], uri_by_row.get(row, "")))


def _union(one: Ids | None, other: Ids) -> Ids | None:
    if not len(other):
        return one
    return other if one is None else np.union1d(one, other)


def _among(scope: Scope, items: Ids) -> Scope | None:
    inside = items if scope.items is None else np.intersect1d(scope.items, items)
    return replace(scope, items=inside) if len(inside) else None


def _micros(moment: datetime | None) -> int | None:
    return micros(moment) if moment else None


def source_of(item: Item) -> str:
    """Return the source of an item: `notes`, `media`, `chats`, `characters`, `prompts` or `documents`."""
    return SOURCE_OF.get(item.kind, "documents")
