"""The reader of one commit of the index of words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from tantivy import Occur, Query, Searcher

from commonplace.index.followers import VectorQuery
from commonplace.index.scope import Ids, Scope, distinct
from commonplace.index.words.entry_search import EntrySearch
from commonplace.index.words.item_ranking import ItemSearch, Scoring
from commonplace.index.words.lexical_query import (
    LexicalQuery,
    TermQueries,
    beginning_query,
    compile_all,
    compile_marks,
    compile_query,
    compile_scores,
    term_queries,
)
from commonplace.index.words.snapshot import Floats, Snapshot, engine, fetch, hits
from commonplace.index.words.wanted import Wanted
from commonplace.model import CHUNK_BITS
from commonplace.text.terms import Term

MOST_LISTED = 5_000  # item ids pushed down as a list; more are checked while fetching

MOST_SHARE = 0.5  # of all chunks: above it checking the hits is quicker than a filter in the query

MOST_MARKS = 24  # terms in one pass of `marks`: sums of so many powers of two are exact in 32-bit floats

CHUNKS_PER_ITEM = 3  # that have all of some words: overlapping chunks have them twice


class LexicalReader:
    """A `WordReader` of one commit, for one search: the same question always has the same answer."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._terms: tuple[LexicalQuery, TermQueries] | None = None

    def languages(self) -> tuple[str, ...]:
        """Return the languages that stem this library's queries, commonest first."""
        return self._snapshot.languages

    def rarer(self) -> tuple[str, ...]:
        """Return the library's other languages."""
        return self._snapshot.rarer

    def idf(self, form: str) -> float:
        """Return the inverse document frequency of a stem, as BM25 defines it; 0 when no chunk has it."""
        idf = self._snapshot.idfs.get(form)  # asked several times for every term of a query
        return engine(lambda: self._snapshot.idf(form)) if idf is None else idf

    def knows(self, language: str, form: str) -> bool:
        """Return True if a chunk in a language has a stem."""
        snapshot = self._snapshot
        if not self.idf(form):
            return False
        both = [
            (Occur.Must, Query.term_query(snapshot.schema, "language", language, "basic")),
            (Occur.Must, Query.term_query(snapshot.schema, "body", form, "freq")),
        ]
        return len(hits(snapshot.searcher, Query.boolean_query(both), 1)[0]) > 0

    def begins(self, prefix: str) -> bool:
        """Return True if an indexed word begins with `prefix`."""
        snapshot = self._snapshot
        if not engine(lambda: snapshot.searcher.terms_with_prefix("words", prefix, limit=1)):
            return False
        # A removed chunk's words are there until tantivy merges its segment.
        return not snapshot.removed or len(hits(snapshot.searcher, beginning_query(snapshot.schema, prefix), 1)[0]) > 0

    def occurs(self, word: str) -> bool:
        """Return True if an exact word is indexed, or was until a moment ago."""
        return engine(lambda: self._snapshot.searcher.doc_freq("words", word)) > 0

    def entries(self, wanted: Wanted, language: str) -> EntrySearch:
        """Return a search for whole entries, stemmed as this language and the library's own are."""
        return EntrySearch(self._snapshot, language, wanted)

    def items(self, query: LexicalQuery, scopes: Sequence[Scope], *, missing: int, scoring: Scoring) -> ItemSearch:
        """Return a search for whole items in any of these scopes. `missing`: how many of its words no item has."""
        return ItemSearch(self._snapshot, query, scopes, missing=missing, scoring=scoring)

    def search(self, query: LexicalQuery, k: int, scope: Scope) -> tuple[Ids, Floats]:
        """Return chunk ids and BM25 scores, best first, ties by id; `k` of them where that many match the scope."""
        snapshot, items, without = self._snapshot, scope.items, scope.without
        if not query or (items is not None and not len(items)):
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)
        if items is None and scope.known is not None and (share := self._share(scope)) >= MOST_SHARE:
            return fetch(snapshot.searcher, self._compiled(query, Scope()), k, scope.known, without, share)
        if items is None or len(items) <= MOST_LISTED:
            return fetch(snapshot.searcher, self._compiled(query, scope), k, None, without)
        return fetch(snapshot.searcher, self._compiled(query, replace(scope, items=None)), k, items, without)

    def _compiled(self, query: LexicalQuery, scope: Scope) -> Query:
        return compile_query(self._snapshot.schema, query, self._terms_of(query), scope)

    def _terms_of(self, query: LexicalQuery) -> TermQueries:
        """Return the queries of each term, kept because a search calls `search` and `scores` with the same query."""
        if self._terms is None or self._terms[0] is not query:
            self._terms = query, term_queries(self._snapshot.schema, query)
        return self._terms[1]

    def _share(self, scope: Scope) -> float:
        """Return the largest share of all chunks that may be in scope, by its most selective field."""
        fields = (("kind", scope.kinds), ("parent", scope.parents), ("tag", scope.tags), ("facet", scope.facets))
        all_fields = (*fields, *(("facet", (facet,)) for facet in scope.must))
        count = self._snapshot.searcher.doc_freq
        counts = [
            engine(lambda field=field, values=values: sum(count(field, value) for value in values))  # type: ignore[misc]
            for field, values in all_fields
            if values
        ]
        return min(counts, default=0) / max(self._snapshot.counted, 1)

    def expect(self, query: LexicalQuery, k: int, scope: Scope, near: VectorQuery) -> None:
        """Do nothing: a local index gains nothing from knowing the next calls."""

    def waiting(self) -> bool:
        """Return False: a local index always answers at once."""
        return False

    def scores(self, query: LexicalQuery, chunks: Ids) -> Floats:
        """Return the BM25 score of each chunk; 0 where nothing matches."""
        if not query or not len(chunks):
            return np.zeros(len(chunks), dtype=np.float32)
        snapshot, chunk_ids = self._snapshot, chunks.tolist()
        scoring = compile_scores(snapshot.schema, query, self._terms_of(query), chunk_ids, self.idf)
        matching, scores = hits(snapshot.searcher, scoring, len(chunk_ids))
        scores_by_chunk = dict(zip(matching.tolist(), scores.tolist(), strict=True))
        return np.array([scores_by_chunk.get(chunk, 0.0) for chunk in chunk_ids], dtype=np.float32)

    def marks(self, terms: Sequence[Term], items: Ids) -> Iterator[tuple[Ids, Ids]]:
        """Yield chunk ids of these items and, for each, a bit mask of the terms it has; the first term is bit 0.

        There is one pair for every `MOST_MARKS` terms: so many powers of two add up exactly in tantivy's 32-bit scores.
        """
        snapshot, item_ids = self._snapshot, items.tolist()
        for start in range(0, len(terms) if item_ids else 0, MOST_MARKS):
            query = compile_marks(snapshot.schema, terms[start : start + MOST_MARKS], item_ids)
            chunks, sums = _all(snapshot.searcher, query, 4 * len(item_ids))
            yield chunks, sums.astype(np.int64)

    def is_all(self, kinds: Sequence[str]) -> bool:
        """Return True if the index has no items of other kinds: a filter that admits everything costs a lot."""
        count = self._snapshot.searcher.doc_freq
        documents = engine(lambda: count("mark", "position") + sum(count("kind", kind) for kind in kinds))
        return documents == self._snapshot.counted

    def passages(self) -> int:
        """Return the number of chunks."""
        return self._snapshot.counted

    def having(self, terms: tuple[Term, ...], most: int) -> Ids:
        """Return the chunks with all of these terms, ascending; none if more than `most` items have them."""
        snapshot, depth = self._snapshot, CHUNKS_PER_ITEM * most
        query, parts = self._terms or (LexicalQuery(), ())
        known = dict(zip(map(id, query.terms), parts, strict=True))
        chunks, _ = hits(snapshot.searcher, compile_all(snapshot.schema, terms, known), depth + 1)
        if len(chunks) > depth or len(set((chunks >> CHUNK_BITS).tolist())) > most:
            return np.empty(0, np.int64)
        return np.sort(chunks)

    def holders(self, query: LexicalQuery, scope: Scope) -> Ids:
        """Return all items in scope with a chunk that matches a query, ascending."""
        snapshot = self._snapshot
        chunks, _ = _all(snapshot.searcher, self._compiled(query, scope), 1000)
        return distinct(chunks >> CHUNK_BITS)


def _all(searcher: Searcher, query: Query, expected: int) -> tuple[Ids, Floats]:
    """Return every chunk that matches, and its score; search deeper until there are no more."""
    depth = max(1, expected)
    while True:
        chunks, scores = hits(searcher, query, depth)
        if len(chunks) < depth:
            return chunks, scores
        depth *= 4
