"""The reader of words: turbopuffer proposes candidates, the ledger decides whether they match and what they score."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

import numpy as np

from commonplace.index.followers import VectorQuery
from commonplace.index.scope import Ids, Scope
from commonplace.index.turbopuffer.ledger import Ledger
from commonplace.index.turbopuffer.match import CONTENT, NEVER, Every, LedgerVocabulary, Match
from commonplace.index.turbopuffer.parts import MOST_HITS, Filter, ServiceHit, Subquery, all_of, one_of, token_of
from commonplace.index.turbopuffer.rows import GENERATION, LISTED, TABLE, conditions, is_place
from commonplace.index.turbopuffer.service_errors import NamespaceMissing, NotReady
from commonplace.index.turbopuffer.service_settings import is_table
from commonplace.index.turbopuffer.tallies import Terms
from commonplace.index.turbopuffer.whole_matches import EntryMatches, ItemMatches
from commonplace.index.turbopuffer.wire import TurbopufferWire
from commonplace.index.vectors.scan import unit
from commonplace.index.words.item_ranking import Scoring
from commonplace.index.words.lexical_query import LexicalQuery
from commonplace.index.words.lexical_reader import CHUNKS_PER_ITEM, MOST_MARKS
from commonplace.index.words.snapshot import Floats, common_of
from commonplace.index.words.wanted import Wanted
from commonplace.model import CHUNK_BITS
from commonplace.text.terms import Term

MOST_LISTED = 16_000
"""Item ids that a request lists; longer lists are checked here."""

LEAST_DEPTH, PER_HIT = 200, 4
"""Candidates requested: at least, and for each hit. The service's order is close to ours, but not the same."""

SPARE = 50
"""Candidates requested beyond the number of nearest chunks."""

LONGEST_QUERY = 8_000
"""Bytes of the terms that the service ranks by."""

SCORED = 2_000
"""Rows whose terms are in memory at a time."""


@dataclass(frozen=True, slots=True)
class Scored:
    """A chunk that matches, with its score."""

    chunk: int
    score: float
    created: int

    @property
    def item(self) -> int:
        """Return the id of the chunk's item."""
        return self.chunk >> CHUNK_BITS


@dataclass(frozen=True, slots=True)
class Shortlist:
    """The candidates of one request, with distances that are higher for better hits, whatever the ranking was."""

    hits: Sequence[ServiceHit]
    cut: float | None
    """The best distance that a row left out may have; None if no row was left out."""


Requests = list[tuple[str, list[Subquery]]]
"""Namespaces, and the subqueries for each."""


class Candidates:
    """The requests of a search to the service, which return candidates."""

    def __init__(self, wire: TurbopufferWire, ledger: Ledger) -> None:
        self._wire, self._ledger = wire, ledger
        self.missing: set[str] = set()
        """Namespaces with rows in the ledger that the service does not have."""

    def ranked(self, tokens: Sequence[str], need: Filter | None, scope: Scope, depth: int) -> Shortlist:
        """Return the best rows by the service's BM25."""
        return self._look(self._by_words(tokens, need, scope, depth), 1.0)

    def nearest(self, towards: Floats, scope: Scope, depth: int) -> Shortlist:
        """Return the nearest rows by the service's approximate search."""
        return self._look(self._by_meaning(towards, scope, depth), -1.0)

    def prefetch(self, words: tuple[Sequence[str], Filter | None, Scope, int], near: tuple[Floats, Scope, int]) -> None:
        """Fetch ahead the answers of `ranked` and `nearest`, in one request to each namespace."""
        parts: defaultdict[str, list[Subquery]] = defaultdict(list)
        for namespace, some in (*self._by_meaning(*near), *self._by_words(*words)):
            parts[namespace] += some
        for namespace, all_parts in parts.items():
            with self._noting_missing(namespace):
                self._wire.prefetch(namespace, all_parts)

    def scope_of(self, items: Ids | None, without: Ids | None) -> Scope:
        """Return the scope of a search by meaning."""
        return self._wire.scope_of(items, without)

    def _by_words(self, tokens: Sequence[str], need: Filter | None, scope: Scope, depth: int) -> Requests:
        return self._requests((CONTENT, "BM25", _fitting(tokens)), need, scope, depth)

    def _by_meaning(self, towards: Floats, scope: Scope, depth: int) -> Requests:
        return self._requests(("vector", "ANN", tuple(towards.tolist())), ("embedded", "Eq", True), scope, depth)

    def every(self, need: Filter | None, scope: Scope) -> Iterator[list[ServiceHit]]:
        """Yield all rows that pass a filter, in batches, in the order of their chunks."""
        for namespace, filters in self._places(scope):
            for each in filters:
                after = -1
                while True:
                    further: Filter = ("chunk", "Gt", after)
                    condition = all_of([*filter(None, (each, need)), *([further] if after >= 0 else [])])
                    hits = self._query(namespace, [Subquery(("chunk", "asc"), condition, MOST_HITS)])[0]
                    yield hits
                    if len(hits) < MOST_HITS:
                        break
                    after = hits[-1].chunk

    def _query(self, namespace: str, parts: Sequence[Subquery]) -> list[list[ServiceHit]]:
        with self._noting_missing(namespace):
            return self._wire.query(namespace, parts)

    @contextmanager
    def _noting_missing(self, namespace: str) -> Iterator[None]:
        """Note a namespace that turns out not to exist: only namespaces with rows in the ledger are searched."""
        try:
            yield
        except NamespaceMissing:
            self.missing.add(namespace)
            raise

    def _requests(self, rank_by: tuple[object, ...], need: Filter | None, scope: Scope, depth: int) -> Requests:
        return [
            (namespace, [Subquery(rank_by, all_of([*filter(None, (each, need))]), depth) for each in filters])
            for namespace, filters in self._places(scope)
        ]

    def _look(self, requests: Requests, better: float) -> Shortlist:
        """Return the candidates of some requests. `better`: 1 if higher distances are better, -1 if lower ones are."""
        chunks: dict[str, tuple[int, float]] = {}
        cuts: list[float] = []
        for namespace, parts in requests:
            for part, part_hits in zip(parts, self._query(namespace, parts), strict=True):
                chunks.update((hit.id, (hit.chunk, better * hit.distance)) for hit in part_hits)
                cuts += [better * part_hits[-1].distance] if len(part_hits) >= part.limit else []
        hits = [ServiceHit(identity, *values) for identity, values in chunks.items()]
        return Shortlist(hits, max(cuts) if cuts else None)

    def _places(self, scope: Scope) -> Iterator[tuple[str, list[Filter | None]]]:
        """Yield the namespaces to search, and the filters to search each with, of which a row passes at most one."""
        few = scope.items is not None and len(scope.items) <= MOST_LISTED and not is_place(scope)
        listed = scope.items.tolist() if few and scope.items is not None else None
        lists = [None] if listed is None else [tuple(listed[at : at + LISTED]) for at in range(0, len(listed), LISTED)]
        if listed is not None:
            namespaces = self._ledger.namespaces_of(listed)
        else:
            namespaces = self._ledger.namespaces(scope.kinds, scope.parents)
        for namespace in namespaces:
            fields = conditions(scope)
            if is_table(namespace):
                if scope.kinds and TABLE not in scope.kinds:
                    continue
                fields = [*conditions(replace(scope, kinds=())), *self._of_table(namespace, scope)]
            yield namespace, [all_of([*fields, *([("item", "In", ids)] if ids is not None else [])]) for ids in lists]

    def _of_table(self, namespace: str, scope: Scope) -> Iterator[Filter]:
        """Yield the filters for a table and its present generations: a row of any other is stale."""
        if scope.parents:
            yield one_of("table_id", scope.parents)
        if not any(facet.startswith(GENERATION) for facet in scope.must):
            yield one_of("generation", self._ledger.generations(namespace))


class TurbopufferReader:
    """A `WordReader` of one moment of the ledger, for one search."""

    def __init__(self, wire: TurbopufferWire, ledger: Ledger, fallback_language: str) -> None:
        self.ledger, self.vocabulary = ledger, LedgerVocabulary(ledger)
        self._wire, self._fallback = wire, fallback_language
        self.candidates = Candidates(wire, ledger)

    @property
    def missing(self) -> set[str]:
        """Return the namespaces with rows in the ledger that the service does not have."""
        return self.candidates.missing

    # words

    def languages(self) -> tuple[str, ...]:
        """Return the languages that stem this library's queries, commonest first."""
        return common_of(dict(self.ledger.languages()), self.vocabulary.rows) or (self._fallback,)

    def rarer(self) -> tuple[str, ...]:
        """Return the library's other languages."""
        common = self.languages()
        return tuple(language for language, count in self.ledger.languages() if count and language not in common)

    def idf(self, form: str) -> float:
        """Return the inverse document frequency of a stem, as BM25 defines it; 0 when no chunk has it."""
        return self.vocabulary.idf(form)

    def knows(self, language: str, form: str) -> bool:
        """Return True if a chunk in a language has a stem."""
        return bool(self.idf(form)) and self.ledger.says(language, form)

    def begins(self, prefix: str) -> bool:
        """Return True if an indexed word begins with `prefix`."""
        return bool(self.ledger.beginning(prefix, 1))

    def occurs(self, word: str) -> bool:
        """Return True if an exact word is indexed."""
        return self.ledger.occurs("words", word) > 0

    def is_all(self, kinds: Sequence[str]) -> bool:
        """Return True if the index has no items of other kinds."""
        return sum(self.ledger.tally(f"kind:{kind}") for kind in set(kinds)) == self.vocabulary.rows

    # passages

    def passages(self) -> int:
        """Return the number of chunks."""
        return self.vocabulary.rows

    def having(self, terms: tuple[Term, ...], most: int) -> Ids:
        """Return the chunks with all of these terms, ascending; none if too many have them.

        None come back either if every term is common: the service is asked only if one is so rare that there can be
        few such chunks.
        """
        depth = CHUNKS_PER_ITEM * most
        rare = min(sum(self.ledger.occurs("body", form) for form in term.forms) for term in terms)
        if rare > depth:
            return np.empty(0, np.int64)
        match = Every(tuple(map(self.vocabulary.term, terms)))
        chunks = np.unique(np.array([row.chunk for row in self.every(match, Scope())], np.int64))
        return chunks if len(np.unique(chunks >> CHUNK_BITS)) <= most else np.empty(0, np.int64)

    def search(self, query: LexicalQuery, k: int, scope: Scope) -> tuple[Ids, Floats]:
        """Return chunk ids and BM25 scores, best first, ties by id; `k` of them where that many match the scope."""
        if not query or k <= 0 or (scope.items is not None and not len(scope.items)):
            return np.empty(0, np.int64), np.empty(0, np.float32)
        rows = self._best(query, k, scope)
        return _arrays(sorted(rows, key=lambda row: (-row.score, row.chunk))[:k])

    def expect(self, query: LexicalQuery, k: int, scope: Scope, near: VectorQuery) -> None:
        """Fetch ahead the answers of the next `search` and search by vector, in one request to each namespace."""
        (_, tokens, need), towards = self._compiled(query), unit(near.query)
        depths = first_depth(k), near_depth(k)
        self._wire.forget()
        near_scope = self._wire.expected(near, scope)
        if towards is None or need == NEVER or not tokens or max(depths) > MOST_HITS:
            return
        with suppress(NotReady):
            self.candidates.prefetch((tokens, need, scope, depths[0]), (towards, near_scope, depths[1]))

    def waiting(self) -> bool:
        """Return True if the service has not answered a request of this search yet."""
        return self._wire.waiting

    def scores(self, query: LexicalQuery, chunks: Ids) -> Floats:
        """Return the BM25 score of each chunk; 0 where nothing matches."""
        if not query or not len(chunks):
            return np.zeros(len(chunks), np.float32)
        scores = {row.chunk: row.score for row in self._scored(self.vocabulary.query(query), chunks.tolist())}
        return np.array([scores.get(chunk, 0.0) for chunk in chunks.tolist()], np.float32)

    def marks(self, terms: Sequence[Term], items: Ids) -> Iterator[tuple[Ids, Ids]]:
        """Yield chunk ids of these items and, for each, a bit mask of the terms it has; the first term is bit 0."""
        chunks = self.ledger.chunks_of(items.tolist()) if len(terms) else []
        for start in range(0, len(terms) if len(items) else 0, MOST_MARKS):
            matches = [self.vocabulary.term(term) for term in terms[start : start + MOST_MARKS]]
            masks: dict[int, int] = {}
            for row in self._terms(chunks):
                bits = sum(1 << place for place, match in enumerate(matches) if match.score(row) is not None)
                if bits:
                    masks[row.chunk] = bits
            yield np.array(list(masks), np.int64), np.array(list(masks.values()), np.int64)

    def holders(self, query: LexicalQuery, scope: Scope) -> Ids:
        """Return all items in scope with a chunk that matches a query, ascending."""
        return np.unique(np.array([row.item for row in self.every(self.vocabulary.query(query), scope)], np.int64))

    def every(self, match: Match, scope: Scope) -> list[Scored]:
        """Return all rows in scope that match, in no order; those answered so far if the service stops answering."""
        need = match.need()
        if need == NEVER or (scope.items is not None and not len(scope.items)):
            return []
        rows: list[Scored] = []
        with suppress(NotReady):
            for hits in self.candidates.every(need, scope):
                rows += self._scored(match, self.live(hits, scope))
        return rows

    # whole entries and items

    def entries(self, wanted: Wanted, language: str) -> EntryMatches:
        """Return a search for whole entries, stemmed as this language and the library's own are."""
        return EntryMatches(self, wanted, language)

    def items(self, query: LexicalQuery, scopes: Sequence[Scope], *, missing: int, scoring: Scoring) -> ItemMatches:
        """Return a search for whole items in any of these scopes. `missing`: how many of its words no item has."""
        return ItemMatches(self, query, scopes, missing=missing, scoring=scoring)

    # candidates

    def _compiled(self, query: LexicalQuery) -> tuple[Match, Sequence[str], Filter | None]:
        """Return the match of a query, the terms to rank by, and a filter besides having one of those terms."""
        match = self.vocabulary.query(query)
        need = match.need()
        return match, match.tokens(), need if query.phrases or need == NEVER else None

    def _best(self, query: LexicalQuery, k: int, scope: Scope) -> list[Scored]:
        """Return at least the best `k` rows among the service's candidates.

        More candidates are requested while too few match or the last of them may tie with one that was left out.
        """
        match, tokens, need = self._compiled(query)
        if need == NEVER:
            return []
        depth = first_depth(k)
        while tokens and depth <= MOST_HITS:
            try:
                shortlist = self.candidates.ranked(tokens, need, scope, depth)
            except NotReady:
                return []
            rows = self._scored(match, self.live(shortlist.hits, scope))
            if _settled(rows, shortlist, k):
                return rows
            depth = deeper(depth)
        return self.every(match, scope)

    def live(self, hits: Sequence[ServiceHit], scope: Scope) -> list[int]:
        """Return the chunks of hits whose rows are not superseded and that the scope admits, ascending."""
        places = self.ledger.ids(hit.chunk for hit in hits)
        chunk_ids = [hit.chunk for hit in hits if hit.chunk in places and places[hit.chunk][1] == hit.id]
        chunks = np.unique(np.array(chunk_ids, np.int64))
        if scope.items is not None:
            chunks = chunks[np.isin(chunks >> CHUNK_BITS, scope.items)]
        if scope.without is not None:
            chunks = chunks[np.isin(chunks >> CHUNK_BITS, scope.without, invert=True)]
        return [int(chunk) for chunk in chunks]

    def _scored(self, match: Match, chunks: Sequence[int]) -> list[Scored]:
        rows = ((row, match.score(row)) for row in self._terms(chunks))
        return [Scored(row.chunk, score, row.created) for row, score in rows if score is not None]

    def _terms(self, chunks: Sequence[int]) -> Iterator[Terms]:
        for start in range(0, len(chunks), SCORED):
            yield from self.ledger.terms(chunks[start : start + SCORED])


def first_depth(k: int) -> int:
    """Return the number of candidates to request for the best `k` by words."""
    return max(LEAST_DEPTH, PER_HIT * k)


def near_depth(k: int) -> int:
    """Return the number of candidates to request for the nearest `k`, whose order the service knows better."""
    return max(LEAST_DEPTH, k + SPARE)


def deeper(depth: int) -> int:
    """Return the next depth: four times as deep, but `MOST_HITS` once before going beyond it, which ends the search."""
    return MOST_HITS if depth < MOST_HITS < 4 * depth else 4 * depth


def _settled(rows: Sequence[Scored], shortlist: Shortlist, k: int) -> bool:
    """Return True if no row that was left out ties with the best `k`, by the service's scores."""
    if shortlist.cut is None:
        return True
    if len(rows) < k:
        return False
    theirs = {hit.chunk: hit.distance for hit in shortlist.hits}
    ours = sorted(rows, key=lambda row: (-row.score, row.chunk))[:k]
    return all(theirs[row.chunk] > shortlist.cut for row in ours)


def _fitting(tokens: Sequence[str]) -> tuple[str, ...]:
    """Return the first different terms, as many as fit in a query."""
    fitting: list[str] = []
    room = LONGEST_QUERY
    for token in dict.fromkeys(map(token_of, tokens)):
        room -= len(token.encode()) + 1
        if room < 0:
            break
        fitting.append(token)
    return tuple(fitting)


def _arrays(rows: Sequence[Scored]) -> tuple[Ids, Floats]:
    return np.array([row.chunk for row in rows], np.int64), np.array([row.score for row in rows], np.float32)
