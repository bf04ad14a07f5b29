"""Looking things up in one commit of the lexical index."""

from __future__ import annotations

import numpy as np
from tantivy import Occur, Query

from commonplace.index.engine import Floats, Snapshot, engine, fetch, hits
from commonplace.index.lexical_query import LexicalQuery, compile_query
from commonplace.index.scope import Ids, Scope

MOST_LISTED = 5_000  # item ids pushed down as a list; more are checked while fetching


class LexicalReader:
    """One commit, for one search: what is asked of it twice is answered the same."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def languages(self) -> tuple[str, ...]:
        """The languages that stem this library's queries, commonest first."""
        return self._snapshot.languages

    def idf(self, form: str) -> float:
        """How much a stem tells, as BM25 has it; 0 when no chunk has it."""
        return engine(lambda: self._snapshot.idf(form))

    def begins(self, prefix: str) -> bool:
        """Whether any indexed word begins so."""
        return bool(engine(lambda: self._snapshot.searcher.terms_with_prefix("words", prefix, limit=1)))

    def search(self, query: LexicalQuery, k: int, scope: Scope) -> tuple[Ids, Floats]:
        """Chunk ids and BM25 scores, best first, ties by id. Never fewer than `k` where that many match the scope."""
        snapshot, items = self._snapshot, scope.items
        if not query or (items is not None and not len(items)):
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)
        if items is None or len(items) <= MOST_LISTED:
            return fetch(snapshot.searcher, compile_query(snapshot.schema, query, scope), k, None)
        fields = Scope(scope.kinds, scope.parents, scope.tags, scope.created, scope.updated)
        return fetch(snapshot.searcher, compile_query(snapshot.schema, query, fields), k, items)

    def scores(self, query: LexicalQuery, chunks: Ids) -> Floats:
        """The BM25 scores these chunks have; 0 where nothing matches."""
        if not query or not len(chunks):
            return np.zeros(len(chunks), dtype=np.float32)
        snapshot, wanted = self._snapshot, chunks.tolist()
        # Alternatives, not a set: four times quicker to make and to run for a few dozen (bench/engine.py, row hybrid).
        each = [(Occur.Should, Query.term_query(snapshot.schema, "chunk", chunk)) for chunk in wanted]
        among = Query.const_score_query(Query.boolean_query(each), 0.0)
        both = Query.boolean_query([(Occur.Must, compile_query(snapshot.schema, query, Scope())), (Occur.Must, among)])
        found, values = hits(snapshot.searcher, both, len(wanted))
        known = dict(zip(found.tolist(), values.tolist(), strict=True))
        return np.array([known.get(chunk, 0.0) for chunk in wanted], dtype=np.float32)
