"""A search for whole items by their words, over an index that has one entry for each: their number, and the best.

The ceiling is more than BM25 can give any item for the query. An item is ranked by

    BM25  +  a ceiling if it has every content word  +  a ceiling if it has every word

So an item that has all words comes before one that has some. The caller's `Scoring` makes the score from BM25 and the
number of ceilings. Both depend on the item, the query and the library, never on the scope or the number of items
requested.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tantivy import Occur, Query

from commonplace.index.scope import Ids, Scope, distinct
from commonplace.index.words.lexical_query import (
    TITLE_WEIGHT,
    LexicalQuery,
    begun_title,
    either_query,
    phrase_query,
    scope_queries,
    term_queries_of,
)
from commonplace.index.words.snapshot import Floats, Snapshot, counted_hits, engine, hits
from commonplace.lazy_dataclass import dataclass
from commonplace.model import CHUNK_BITS
from commonplace.text.terms import Term

SPARE = 1.05
"""The factor by which a ceiling is above the highest score."""

SATURATION = 2.2 * SPARE
"""The most that a term can add to BM25, in multiples of its idf, with k1 at 1.2."""

BEGUN = (1 + TITLE_WEIGHT) * SPARE
"""The most that a beginning can add: the same in any text, and more in a title."""

MISSING_SHARE = 0.5
"""The share of a mean word by which a word that no item has raises the ceiling: it was asked for."""

_FEWEST = 64
"""Items asked for at first: a cut among equal scores would mean asking again."""

Scores = NDArray[np.float64]

Scoring = Callable[[Scores, Scores], Scores]
"""A function from BM25 and the number of ceilings to scores from 0 to 1, rising with both, ceilings first."""


@dataclass(frozen=True, slots=True)
class ItemScores:
    """The best items and their scores, in no particular order. Any other match scores less than each of them."""

    items: Ids
    scores: Scores
    total: int
    """The number of items that match, these included."""


class ItemSearch:
    """A search of one query over one commit, in any of several scopes. An `ItemFinder`."""

    def __init__(
        self, snapshot: Snapshot, query: LexicalQuery, scopes: Sequence[Scope], *, missing: int, scoring: Scoring
    ) -> None:
        """Prepare the query. `missing`: how many of its words no item has."""
        self._scoring = scoring
        self._searcher, self._schema = snapshot.searcher, snapshot.schema
        self._query, self._missing, self._scopes = query, missing, scopes
        self._ceiling = _ceiling(snapshot, query, missing)
        self._counted = snapshot.counted - snapshot.searcher.doc_freq("mark", "position")
        self._words = [either_query(list(term_queries_of(self._schema, term))) for term in query.terms]
        content = [place for place, term in enumerate(query.terms) if term.weight >= 1]
        self._content = content or list(range(len(query.terms)))

    def best(self, count: int, without: Ids | None = None) -> ItemScores:
        """Return at least the best `count` items, and all that tie with the last of them. `without` are left out."""
        if not self._query.terms or not self._scopes:
            return _nothing()
        parts = [(Occur.Must, _any(self._words)), *self._within(without), *self._bound()]
        ranking = Query.boolean_query([*parts, *self._titled(), *self._bonuses()])
        depth = min(max(self._searcher.num_docs, 1), max(_FEWEST, count + 32))
        while True:
            chunks, scores, total = counted_hits(self._searcher, ranking, depth)
            final_scores = self._final_scores(scores)
            if depth >= total or final_scores[count - 1] > final_scores[-1]:
                return ItemScores(chunks >> CHUNK_BITS, final_scores, total)
            depth = min(total, depth * 4)

    def allowed(self) -> Ids:
        """Return all items of the scopes that the query's phrases and exclusions admit, whatever words they have."""
        if not self._scopes:
            return np.empty(0, np.int64)
        parts = [(Occur.Must, _silent(_any([self._scope(scope) for scope in self._scopes]))), *self._bound()]
        query = Query.boolean_query(parts)
        return distinct(hits(self._searcher, query, self._count(query))[0] >> CHUNK_BITS)

    def _bound(self) -> list[tuple[Occur, Query]]:
        required = [(Occur.Must, _silent(phrase_query(self._schema, phrase))) for phrase in self._query.phrases]
        return [*required, *((Occur.MustNot, phrase_query(self._schema, phrase)) for phrase in self._query.excluded)]

    def _within(self, without: Ids | None) -> list[tuple[Occur, Query]]:
        within = []
        if not self._unbound():
            within.append((Occur.Must, _silent(_any([self._scope(scope) for scope in self._scopes]))))
        if without is not None and len(without):
            within.append((Occur.MustNot, Query.term_set_query(self._schema, "item", without.tolist())))
        return within

    def _unbound(self) -> bool:
        """Return True if the scopes admit everything: a filter would still be looked up for every match."""
        kinds = [kind for scope in self._scopes for kind in scope.kinds]
        if any(scope.items is not None or scope != Scope(kinds=scope.kinds) for scope in self._scopes):
            return False
        return sum(self._searcher.doc_freq("kind", kind) for kind in set(kinds)) == self._counted

    def _scope(self, scope: Scope) -> Query:
        parts = list(scope_queries(self._schema, scope))
        return parts[0] if len(parts) == 1 else Query.boolean_query([(Occur.Must, part) for part in parts])

    def _titled(self) -> list[tuple[Occur, Query]]:
        begun = [term for term in self._query.terms if term.match == "prefix"]
        return [(Occur.Should, begun_title(self._schema, term)) for term in begun]

    def _bonuses(self) -> list[tuple[Occur, Query]]:
        if self._missing:
            return []
        bonuses = []
        for places in (self._content, range(len(self._words))):
            every = [(Occur.Must, self._words[place]) for place in places]
            bonuses.append((Occur.Should, Query.const_score_query(Query.boolean_query(every), self._ceiling)))
        return bonuses

    def _final_scores(self, raw: Floats) -> Scores:
        return scores_of(raw.astype(np.float64), self._ceiling, self._scoring)

    def _count(self, query: Query) -> int:
        result: Any = engine(lambda: self._searcher.search(query, 1, count=True))
        return int(result.count or 0)


def scores_of(raw: Scores, ceiling: float, scoring: Scoring) -> Scores:
    """Return the scores of items, from 0.0001 to 1, to four places, from BM25 plus ceilings."""
    ceilings = np.floor(raw / ceiling)
    return np.clip(np.round(scoring(raw - ceilings * ceiling, ceilings), 4), 0.0001, 1.0)


def _ceiling(snapshot: Snapshot, query: LexicalQuery, missing: int) -> float:
    """Return a score that no passage reaches, from the terms that the library has."""

    def most(term: Term) -> float:
        if term.match != "word":
            return term.weight * BEGUN
        titles = [count for form in term.forms if (count := snapshot.searcher.doc_freq("title", form))]
        rare = math.log(1 + (snapshot.counted - min(titles) + 0.5) / (min(titles) + 0.5)) if titles else 0.0
        body = max(map(snapshot.idf, term.forms))
        return term.weight * SATURATION * (body + TITLE_WEIGHT * rare)

    each = [most(term) for term in query.terms]
    return max(sum(each) + missing * MISSING_SHARE * sum(each) / max(len(each), 1), 1e-6)


def _silent(query: Query) -> Query:
    return Query.const_score_query(query, 0.0)


def _any(queries: Sequence[Query]) -> Query:
    return queries[0] if len(queries) == 1 else Query.boolean_query([(Occur.Should, query) for query in queries])


def _nothing() -> ItemScores:
    return ItemScores(np.empty(0, np.int64), np.empty(0, np.float64), 0)
