"""Looking words up: turbopuffer finds the candidates, the ledger says whether they match and what they score."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace

import numpy as np

from commonplace.index.base import Near
from commonplace.index.scope import Ids, Scope
from commonplace.index.turbopuffer.entries import EntryMatches
from commonplace.index.turbopuffer.errors import Missing, NotReady
from commonplace.index.turbopuffer.items import ItemMatches
from commonplace.index.turbopuffer.ledger import Ledger
from commonplace.index.turbopuffer.match import CONTENT, NEVER, Every, Match, Vocabulary
from commonplace.index.turbopuffer.parts import MOST_HITS, Filter, Hit, Part, all_of, one_of, token_of
from commonplace.index.turbopuffer.rows import GENERATION, TABLE
from commonplace.index.turbopuffer.scope import LISTED, conditions, is_place
from commonplace.index.turbopuffer.settings import is_table
from commonplace.index.turbopuffer.tallies import Terms
from commonplace.index.turbopuffer.wire import Wire
from commonplace.index.vectors.scan import unit
from commonplace.index.words.engine import Floats, common_of
from commonplace.index.words.items import Scoring
from commonplace.index.words.query import LexicalQuery
from commonplace.index.words.reader import CHUNKS_PER_ITEM, MOST_MARKS
from commonplace.index.words.wanted import Wanted
from commonplace.lazy_dataclass import dataclass
from commonplace.model import CHUNK_BITS
from commonplace.text.terms import Term

MOST_LISTED = 16_000
"""Item ids a search lists; more are checked here."""

LEAST_DEPTH, PER_HIT = 200, 4
"""How deep the service looks for each hit wanted: its order is near ours, not the same."""

SPARE = 50
"""Further chunks looked at beyond the nearest that are wanted."""

LONGEST_QUERY = 8_000
"""Bytes of terms the service ranks by."""

SCORED = 2_000
"""Rows whose terms are in memory at a time."""


@dataclass(frozen=True, slots=True)
class Scored:
    """A row that matches."""

    chunk: int
    score: float
    created: int

    @property
    def item(self) -> int:
        return self.chunk >> CHUNK_BITS


@dataclass(frozen=True, slots=True)
class Look:
    """What the service brought up, with distances that are higher for better hits, whatever it ranked by."""

    hits: Sequence[Hit]
    cut: float | None
    """What it left out is no better than this; None where it left out nothing."""


Requests = list[tuple[str, list[Part]]]
"""Namespaces, and what each is asked."""


class Candidates:
    """The service's side of a search: which rows are worth a look."""

    def __init__(self, wire: Wire, ledger: Ledger) -> None:
        self._wire, self._ledger = wire, ledger
        self.missing: set[str] = set()
        """Namespaces whose rows are counted here and which the service does not have."""

    def ranked(self, tokens: Sequence[str], need: Filter | None, scope: Scope, depth: int) -> Look:
        """The best rows by BM25, in the service's eyes."""
        return self._look(self._by_words(tokens, need, scope, depth), 1.0)

    def nearest(self, towards: Floats, scope: Scope, depth: int) -> Look:
        """The nearest rows, as near as the service can tell."""
        return self._look(self._by_meaning(towards, scope, depth), -1.0)

    def together(self, words: tuple[Sequence[str], Filter | None, Scope, int], near: tuple[Floats, Scope, int]) -> None:
        """Ask for what `ranked` and `nearest` will be asked for, in one request to each namespace."""
        parts: defaultdict[str, list[Part]] = defaultdict(list)
        for namespace, some in (*self._by_meaning(*near), *self._by_words(*words)):
            parts[namespace] += some
        for namespace, all_parts in parts.items():
            with self._noting(namespace):
                self._wire.prefetch(namespace, all_parts)

    def scope_of(self, items: Ids | None, without: Ids | None) -> Scope:
        """The scope of a search by meaning."""
        return self._wire.scope_of(items, without)

    def _by_words(self, tokens: Sequence[str], need: Filter | None, scope: Scope, depth: int) -> Requests:
        return self._requests((CONTENT, "BM25", _cut(tokens)), need, scope, depth)

    def _by_meaning(self, towards: Floats, scope: Scope, depth: int) -> Requests:
        return self._requests(("vector", "ANN", tuple(towards.tolist())), ("embedded", "Eq", True), scope, depth)

    def every(self, need: Filter | None, scope: Scope) -> Iterator[list[Hit]]:
        """All rows that have what is needed, some at a time, in the order of their chunks."""
        for namespace, filters in self._places(scope):
            for each in filters:
                after = -1
                while True:
                    further: Filter = ("chunk", "Gt", after)
                    asked = all_of([*filter(None, (each, need)), *([further] if after >= 0 else [])])
                    hits = self._query(namespace, [Part(("chunk", "asc"), asked, MOST_HITS)])[0]
                    yield hits
                    if len(hits) < MOST_HITS:
                        break
                    after = hits[-1].chunk

    def _query(self, namespace: str, parts: Sequence[Part]) -> list[list[Hit]]:
        with self._noting(namespace):
            return self._wire.query(namespace, parts)

    @contextmanager
    def _noting(self, namespace: str) -> Iterator[None]:
        """A namespace that is asked has rows, as far as is known here: where it is not there, it is not ready."""
        try:
            yield
        except Missing:
            self.missing.add(namespace)
            raise

    def _requests(self, rank_by: tuple[object, ...], need: Filter | None, scope: Scope, depth: int) -> Requests:
        return [
            (namespace, [Part(rank_by, all_of([*filter(None, (each, need))]), depth) for each in filters])
            for namespace, filters in self._places(scope)
        ]

    def _look(self, requests: Requests, better: float) -> Look:
        """`better`: the sign of what comes first."""
        found: dict[str, tuple[int, float]] = {}
        cuts: list[float] = []
        for namespace, parts in requests:
            for part, hits in zip(parts, self._query(namespace, parts), strict=True):
                found.update((hit.id, (hit.chunk, better * hit.distance)) for hit in hits)
                cuts += [better * hits[-1].distance] if len(hits) >= part.limit else []
        return Look([Hit(each, *place) for each, place in found.items()], max(cuts) if cuts else None)

    def _places(self, scope: Scope) -> Iterator[tuple[str, list[Filter | None]]]:
        """The namespaces to ask, and for each the conditions to ask with, of which a row meets at most one."""
        few = scope.items is not None and len(scope.items) <= MOST_LISTED and not is_place(scope)
        listed = scope.items.tolist() if few and scope.items is not None else None
        among = [None] if listed is None else [tuple(listed[at : at + LISTED]) for at in range(0, len(listed), LISTED)]
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
            yield namespace, [all_of([*fields, *([("item", "In", ids)] if ids is not None else [])]) for ids in among]

    def _of_table(self, namespace: str, scope: Scope) -> Iterator[Filter]:
        """The table, and the generations of it that are there: a row of any other is stale."""
        if scope.parents:
            yield one_of("table_id", scope.parents)
        if not any(facet.startswith(GENERATION) for facet in scope.must):
            yield one_of("generation", self._ledger.generations(namespace))


class TurbopufferReader:
    """One moment of the ledger, for one search."""

    def __init__(self, wire: Wire, ledger: Ledger, fallback_language: str) -> None:
        self.ledger, self.vocabulary = ledger, Vocabulary(ledger)
        self._wire, self._fallback = wire, fallback_language
        self.candidates = Candidates(wire, ledger)

    @property
    def missing(self) -> set[str]:
        """Namespaces with rows that the service turned out not to have."""
        return self.candidates.missing

    # words

    def languages(self) -> tuple[str, ...]:
        """The languages that stem this library's queries, commonest first."""
        return common_of(dict(self.ledger.languages()), self.vocabulary.rows) or (self._fallback,)

    def rarer(self) -> tuple[str, ...]:
        """The library's other languages."""
        common = self.languages()
        return tuple(language for language, count in self.ledger.languages() if count and language not in common)

    def idf(self, form: str) -> float:
        """How much a stem tells, as BM25 has it; 0 when no chunk has it."""
        return self.vocabulary.idf(form)

    def knows(self, language: str, form: str) -> bool:
        """Whether a chunk in a language has a stem."""
        return bool(self.idf(form)) and self.ledger.says(language, form)

    def begins(self, prefix: str) -> bool:
        """Whether any indexed word begins so."""
        return bool(self.ledger.beginning(prefix, 1))

    def occurs(self, word: str) -> bool:
        """Whether an exact word is indexed, or was until a moment ago."""
        return self.ledger.occurs("words", word) > 0

    def is_all(self, kinds: Sequence[str]) -> bool:
        """Whether there is nothing but items of these kinds."""
        return sum(self.ledger.tally(f"kind:{kind}") for kind in set(kinds)) == self.vocabulary.rows

    # passages

    def passages(self) -> int:
        """How many chunks there are."""
        return self.vocabulary.rows

    def having(self, terms: tuple[Term, ...], most: int) -> Ids:
        """The chunks with all of these terms, ascending; none where too many have them, or each one of them.

        The service is asked only where one of the terms is so rare that there can be few such chunks.
        """
        depth = CHUNKS_PER_ITEM * most
        rare = min(sum(self.ledger.occurs("body", form) for form in term.forms) for term in terms)
        if rare > depth:
            return np.empty(0, np.int64)
        match = Every(tuple(map(self.vocabulary.term, terms)))
        chunks = np.unique(np.array([row.chunk for row in self.every(match, Scope())], np.int64))
        return chunks if len(np.unique(chunks >> CHUNK_BITS)) <= most else np.empty(0, np.int64)

    def search(self, query: LexicalQuery, k: int, scope: Scope) -> tuple[Ids, Floats]:
        """Chunk ids and BM25 scores, best first, ties by id. Never fewer than `k` where that many match the scope."""
        if not query or k <= 0 or (scope.items is not None and not len(scope.items)):
            return np.empty(0, np.int64), np.empty(0, np.float32)
        found = self._best(query, k, scope)
        return _arrays(sorted(found, key=lambda row: (-row.score, row.chunk))[:k])

    def expect(self, query: LexicalQuery, k: int, scope: Scope, near: Near) -> None:
        """Both ways of finding are about to be asked: the service is asked for both at once."""
        (_, tokens, need), towards = self._asked(query), unit(near.query)
        depths = first_depth(k), near_depth(k)
        self._wire.forget()
        among = self._wire.expected(near, scope)
        if towards is None or need == NEVER or not tokens or max(depths) > MOST_HITS:
            return
        with suppress(NotReady):
            self.candidates.together((tokens, need, scope, depths[0]), (towards, among, depths[1]))

    def waiting(self) -> bool:
        """Whether the service has yet to answer something that it was asked in this search."""
        return self._wire.waiting

    def scores(self, query: LexicalQuery, chunks: Ids) -> Floats:
        """The BM25 scores these chunks have; 0 where nothing matches."""
        if not query or not len(chunks):
            return np.zeros(len(chunks), np.float32)
        known = {row.chunk: row.score for row in self._scored(self.vocabulary.query(query), chunks.tolist())}
        return np.array([known.get(chunk, 0.0) for chunk in chunks.tolist()], np.float32)

    def marks(self, terms: Sequence[Term], items: Ids) -> Iterator[tuple[Ids, Ids]]:
        """Which terms the chunks of these items have: chunk ids and, for each, a bit per term, the first the lowest."""
        chunks = self.ledger.chunks_of(items.tolist()) if len(terms) else []
        for start in range(0, len(terms) if len(items) else 0, MOST_MARKS):
            matches = [self.vocabulary.term(term) for term in terms[start : start + MOST_MARKS]]
            marked: dict[int, int] = {}
            for row in self._terms(chunks):
                bits = sum(1 << place for place, match in enumerate(matches) if match.score(row) is not None)
                if bits:
                    marked[row.chunk] = bits
            yield np.array(list(marked), np.int64), np.array(list(marked.values()), np.int64)

    def holders(self, query: LexicalQuery, scope: Scope) -> Ids:
        """The items in scope with a passage that answers a query, ascending, however many there are."""
        return np.unique(np.array([row.item for row in self.every(self.vocabulary.query(query), scope)], np.int64))

    def every(self, match: Match, scope: Scope) -> list[Scored]:
        """All rows in scope that match, in no order."""
        need = match.need()
        if need == NEVER or (scope.items is not None and not len(scope.items)):
            return []
        found: list[Scored] = []
        try:
            for hits in self.candidates.every(need, scope):
                found += self._scored(match, self.live(hits, scope))
        except NotReady:
            pass  # what it has answered so far is all there is to show for now
        return found

    # whole entries and items

    def entries(self, wanted: Wanted, language: str) -> EntryMatches:
        """A search for whole entries, stemmed as this language and the library's own are."""
        return EntryMatches(self, wanted, language)

    def items(self, query: LexicalQuery, scopes: Sequence[Scope], *, missing: int, scoring: Scoring) -> ItemMatches:
        """A search for whole items in any of these scopes. `missing`: how many words of it are nowhere."""
        return ItemMatches(self, query, scopes, missing=missing, scoring=scoring)

    # candidates

    def _asked(self, query: LexicalQuery) -> tuple[Match, Sequence[str], Filter | None]:
        """A query, the terms to rank by, and what else rows must have: to have one of the terms is understood."""
        match = self.vocabulary.query(query)
        need = match.need()
        return match, match.tokens(), need if query.phrases or need == NEVER else None

    def _best(self, query: LexicalQuery, k: int, scope: Scope) -> list[Scored]:
        """The best `k` rows at least, as far as the service brings them up.

        It is asked for more while too few match or the last of ours may tie with what it left out.
        """
        match, tokens, need = self._asked(query)
        if need == NEVER:
            return []
        depth = first_depth(k)
        while tokens and depth <= MOST_HITS:
            try:
                look = self.candidates.ranked(tokens, need, scope, depth)
            except NotReady:
                return []
            found = self._scored(match, self.live(look.hits, scope))
            if _settled(found, look, k):
                return found
            depth = deeper(depth)
        return self.every(match, scope)

    def live(self, hits: Sequence[Hit], scope: Scope) -> list[int]:
        """The chunks of hits that are still what they were when they were sent, and that the scope lets through."""
        known = self.ledger.ids(hit.chunk for hit in hits)
        live = [hit.chunk for hit in hits if hit.chunk in known and known[hit.chunk][1] == hit.id]
        chunks = np.unique(np.array(live, np.int64))
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
    """How deep to look for the best `k` by words."""
    return max(LEAST_DEPTH, PER_HIT * k)


def near_depth(k: int) -> int:
    """How deep to look for the nearest `k`, whose order the service knows better."""
    return max(LEAST_DEPTH, k + SPARE)


def deeper(depth: int) -> int:
    """Four times as deep, and as deep as can be asked for once before giving up."""
    return MOST_HITS if depth < MOST_HITS < 4 * depth else 4 * depth


def _settled(found: Sequence[Scored], look: Look, k: int) -> bool:
    """Whether nothing that was left out ties with the best `k`, in the service's eyes."""
    if look.cut is None:
        return True
    if len(found) < k:
        return False
    theirs = {hit.chunk: hit.distance for hit in look.hits}
    ours = sorted(found, key=lambda row: (-row.score, row.chunk))[:k]
    return all(theirs[row.chunk] > look.cut for row in ours)


def _cut(tokens: Sequence[str]) -> tuple[str, ...]:
    """As many different terms as a query may have."""
    kept: list[str] = []
    room = LONGEST_QUERY
    for token in dict.fromkeys(map(token_of, tokens)):
        room -= len(token.encode()) + 1
        if room < 0:
            break
        kept.append(token)
    return tuple(kept)


def _arrays(rows: Sequence[Scored]) -> tuple[Ids, Floats]:
    return np.array([row.chunk for row in rows], np.int64), np.array([row.score for row in rows], np.float32)
