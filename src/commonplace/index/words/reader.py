"""Looking things up in one commit of the lexical index."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from tantivy import Occur, Query, Searcher

from commonplace.index.base import Near
from commonplace.index.scope import Ids, Scope, distinct
from commonplace.index.words.engine import Floats, Snapshot, engine, fetch, hits
from commonplace.index.words.entries import EntrySearch
from commonplace.index.words.items import ItemSearch, Scoring
from commonplace.index.words.query import (
    LexicalQuery,
    TermQueries,
    beginning_query,
    compile_all,
    compile_marks,
    compile_query,
    compile_scores,
    term_queries,
)
from commonplace.index.words.wanted import Wanted
from commonplace.model import CHUNK_BITS
from commonplace.text.terms import Term

MOST_LISTED = 5_000  # item ids pushed down as a list; more are checked while fetching

MOST = 0.5  # of all chunks: to look at what was found is then quicker than to look for nothing else

MOST_MARKS = 24

CHUNKS_PER_ITEM = 3  # of items that have all of some words: overlapping chunks have them twice


class LexicalReader:
    """One commit, for one search: what is asked of it twice is answered the same."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._terms: tuple[LexicalQuery, TermQueries] | None = None

    def languages(self) -> tuple[str, ...]:
        """The languages that stem this library's queries, commonest first."""
        return self._snapshot.languages

    def rarer(self) -> tuple[str, ...]:
        """The library's other languages."""
        return self._snapshot.rarer

    def idf(self, form: str) -> float:
        """How much a stem tells, as BM25 has it; 0 when no chunk has it."""
        known = self._snapshot.idfs.get(form)  # asked several times for every term of a query
        return engine(lambda: self._snapshot.idf(form)) if known is None else known

    def knows(self, language: str, form: str) -> bool:
        """Whether a chunk in a language has a stem."""
        snapshot = self._snapshot
        if not self.idf(form):
            return False
        both = [
            (Occur.Must, Query.term_query(snapshot.schema, "language", language, "basic")),
            (Occur.Must, Query.term_query(snapshot.schema, "body", form, "freq")),
        ]
        return len(hits(snapshot.searcher, Query.boolean_query(both), 1)[0]) > 0

    def begins(self, prefix: str) -> bool:
        """Whether any indexed word begins so."""
        snapshot = self._snapshot
        if not engine(lambda: snapshot.searcher.terms_with_prefix("words", prefix, limit=1)):
            return False
        # A removed chunk's words are there until tantivy merges its segment.
        return not snapshot.removed or len(hits(snapshot.searcher, beginning_query(snapshot.schema, prefix), 1)[0]) > 0

    def occurs(self, word: str) -> bool:
        """Whether an exact word is indexed, or was until a moment ago."""
        return engine(lambda: self._snapshot.searcher.doc_freq("words", word)) > 0

    def entries(self, wanted: Wanted, language: str) -> EntrySearch:
        """A search for whole entries, stemmed as this language and the library's own are."""
        return EntrySearch(self._snapshot, language, wanted)

    def items(self, query: LexicalQuery, scopes: Sequence[Scope], *, missing: int, scoring: Scoring) -> ItemSearch:
        """A search for whole items in any of these scopes. `missing`: how many words of it are nowhere."""
        return ItemSearch(self._snapshot, query, scopes, missing=missing, scoring=scoring)

    def search(self, query: LexicalQuery, k: int, scope: Scope) -> tuple[Ids, Floats]:
        """Chunk ids and BM25 scores, best first, ties by id. Never fewer than `k` where that many match the scope."""
        snapshot, items, without = self._snapshot, scope.items, scope.without
        if not query or (items is not None and not len(items)):
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)
        if items is None and scope.known is not None and (share := self._share(scope)) >= MOST:
            return fetch(snapshot.searcher, self._compiled(query, Scope()), k, scope.known, without, share)
        if items is None or len(items) <= MOST_LISTED:
            return fetch(snapshot.searcher, self._compiled(query, scope), k, None, without)
        fields = Scope(scope.kinds, scope.parents, scope.tags, scope.created, scope.updated)
        return fetch(snapshot.searcher, self._compiled(query, fields), k, items, without)

    def _compiled(self, query: LexicalQuery, scope: Scope) -> Query:
        return compile_query(self._snapshot.schema, query, self._terms_of(query), scope)

    def _terms_of(self, query: LexicalQuery) -> TermQueries:
        """Kept for the next to ask: after the best of all chunks come the scores of those that the vectors found."""
        if self._terms is None or self._terms[0] is not query:
            self._terms = query, term_queries(self._snapshot.schema, query)
        return self._terms[1]

    def _share(self, scope: Scope) -> float:
        """How much of all chunks may be in scope at most, by each of the values it asks for one of."""
        chosen = (("kind", scope.kinds), ("parent", scope.parents), ("tag", scope.tags), ("facet", scope.facets))
        asked = (*chosen, *(("facet", (facet,)) for facet in scope.must))
        count = self._snapshot.searcher.doc_freq
        found = [engine(lambda f=f, v=v: sum(count(f, value) for value in v)) for f, v in asked if v]  # type: ignore[misc]
        return min(found, default=0) / max(self._snapshot.counted, 1)

    def expect(self, query: LexicalQuery, k: int, scope: Scope, near: Near) -> None:
        """Nothing is gained by asking both ways of finding at once here."""

    def waiting(self) -> bool:
        """Nothing here has to be waited for."""
        return False

    def scores(self, query: LexicalQuery, chunks: Ids) -> Floats:
        """The BM25 scores these chunks have; 0 where nothing matches."""
        if not query or not len(chunks):
            return np.zeros(len(chunks), dtype=np.float32)
        snapshot, wanted = self._snapshot, chunks.tolist()
        scoring = compile_scores(snapshot.schema, query, self._terms_of(query), wanted, self.idf)
        found, values = hits(snapshot.searcher, scoring, len(wanted))
        known = dict(zip(found.tolist(), values.tolist(), strict=True))
        return np.array([known.get(chunk, 0.0) for chunk in wanted], dtype=np.float32)

    def marks(self, terms: Sequence[Term], items: Ids) -> Iterator[tuple[Ids, Ids]]:
        """Which terms the chunks of these items have: chunk ids and, for each, a bit per term, the first the lowest.

        One pair for every `MOST_MARKS` terms: so many powers of two add up exactly in the engine's 32-bit scores.
        """
        snapshot, wanted = self._snapshot, items.tolist()
        for start in range(0, len(terms) if wanted else 0, MOST_MARKS):
            query = compile_marks(snapshot.schema, terms[start : start + MOST_MARKS], wanted)
            chunks, sums = _all(snapshot.searcher, query, 4 * len(wanted))
            yield chunks, sums.astype(np.int64)

    def is_all(self, kinds: Sequence[str]) -> bool:
        """Whether there is nothing but items of these kinds: a filter that lets everything through costs a lot."""
        count = self._snapshot.searcher.doc_freq
        among = engine(lambda: count("mark", "position") + sum(count("kind", kind) for kind in kinds))
        return among == self._snapshot.counted

    def passages(self) -> int:
        """How many chunks there are."""
        return self._snapshot.counted

    def having(self, terms: tuple[Term, ...], most: int) -> Ids:
        """The chunks with all of these terms, ascending; none where more than `most` items have them."""
        snapshot, depth = self._snapshot, CHUNKS_PER_ITEM * most
        query, parts = self._terms or (LexicalQuery(), ())
        known = dict(zip(map(id, query.terms), parts, strict=True))
        chunks, _ = hits(snapshot.searcher, compile_all(snapshot.schema, terms, known), depth + 1)
        if len(chunks) > depth or len(set((chunks >> CHUNK_BITS).tolist())) > most:
            return np.empty(0, np.int64)
        return np.sort(chunks)

    def holders(self, query: LexicalQuery, scope: Scope) -> Ids:
        """The items in scope with a passage that answers a query, ascending, however many there are."""
        snapshot = self._snapshot
        chunks, _ = _all(snapshot.searcher, self._compiled(query, scope), 1000)
        return distinct(chunks >> CHUNK_BITS)


def _all(searcher: Searcher, query: Query, expected: int) -> tuple[Ids, Floats]:
    """Every chunk that answers, and its score."""
    depth = max(1, expected)
    while True:
        chunks, scores = hits(searcher, query, depth)
        if len(chunks) < depth:
            return chunks, scores
        depth *= 4
