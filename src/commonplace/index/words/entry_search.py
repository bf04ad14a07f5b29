"""A search for whole entries by their words: one hit for each, at its best chunk, in a total and stable order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from tantivy import Occur, Query

from commonplace.index.scope import Ids, Scope, distinct, firsts
from commonplace.index.words.lexical_query import beginning_query, phrase_query, scope_queries
from commonplace.index.words.phrases import is_beginning, loose_phrase
from commonplace.index.words.snapshot import MANY, Floats, Snapshot, engine
from commonplace.index.words.wanted import Atom, Join, Wanted, atoms, fold
from commonplace.lazy_dataclass import dataclass
from commonplace.model import CHUNK_BITS
from commonplace.text.analyze import exact_terms, pairs, parts_of, pieces, stems
from commonplace.text.languages import UNKNOWN

FEWEST = 64
"""Chunks asked for at first: a cut among equal scores would mean asking again."""

MOST_LISTED = 5_000
"""Item ids pushed down as a list; more are checked while fetching."""

RESCORED = 500
"""Chunks whose scores are asked for at a time."""

DEEPEST = 32
"""Groups inside groups that are compiled for tantivy: it recurses, and some thousand would end the process."""

_ATOM_CEILING = 256.0
"""More than any one atom can score."""


@dataclass(frozen=True, slots=True)
class EntryHits:
    """Entries that match, best first; those with equal scores newest first, then by descending id."""

    items: Ids
    chunks: Ids
    """The best chunk of each."""
    scores: Floats
    created: Ids
    complete: bool
    """True if no further entries match."""

    def __len__(self) -> int:
        return len(self.items)

    def take(self, rows: slice | NDArray[np.bool_] | Ids, *, complete: bool) -> EntryHits:
        """Return some of the entries, by places or a mask."""
        return EntryHits(self.items[rows], self.chunks[rows], self.scores[rows], self.created[rows], complete)


def no_entry_hits() -> EntryHits:
    """Return the hits of a search that matches nothing."""
    none = np.empty(0, np.int64)
    return EntryHits(none, none, np.empty(0, np.float32), none, complete=True)


class EntrySearch:
    """A search of one query over one commit. An `EntryFinder`.

    The atoms may stand anywhere in an entry. tantivy matches entries of one chunk; entries of several are matched
    here, from the chunks in which each atom is found.
    """

    def __init__(self, snapshot: Snapshot, language: str, wanted: Wanted) -> None:
        self._searcher, self._schema = snapshot.searcher, snapshot.schema
        self._wanted = wanted
        compiler = Atoms(snapshot, language)
        self._queries = {atom: compiler.query(atom) for atom in atoms(wanted)}
        self._sought = list(dict.fromkeys(atoms(wanted, sought=True)))
        self._many = self._searcher.doc_freq("parts", MANY) > 0
        self._deep = fold(wanted, lambda atom: 0, lambda join, parts: 1 + max(parts)) > DEEPEST
        self._refuses = any(True for _ in atoms(wanted, sought=False))
        self._counted = snapshot.counted - self._searcher.doc_freq("mark", "position")

    @property
    def ranks(self) -> bool:
        """Return True if the query looks for anything. Where it only refuses, the rest comes newest first."""
        return bool(self._sought)

    def best(self, k: int, scope: Scope, *, loosely: bool = False) -> EntryHits:
        """Return the best `k` entries. `loosely`: also those that have only some of the atoms, best coverage first."""
        if scope.items is not None and not len(scope.items):
            return no_entry_hits()
        pushed = scope if scope.items is None or len(scope.items) <= MOST_LISTED else replace(scope, items=None)
        checked = scope.items if pushed is not scope else None
        if self._deep and not loosely:
            return _merged(no_entry_hits(), self._by_sets(pushed, checked, [], loosely=False), k)
        single = self._loose() if loosely else self._strict()
        many = Query.term_query(self._schema, "parts", MANY, "basic")
        hits = self._top(self._scoped(single, pushed, [(Occur.MustNot, many)] if self._many else []), k, checked)
        if self._many:
            only_many = [(Occur.Must, Query.const_score_query(many, 0.0))]
            hits = _merged(hits, self._by_sets(pushed, checked, only_many, loosely=loosely), k)
        if loosely and len(hits):
            hits = self._rescored(hits)
        return hits

    # queries

    def _strict(self) -> Query:
        return fold(self._wanted, self._queries.__getitem__, _compile)

    def _loose(self) -> Query:
        """Return the query for entries with any atom: each adds more than all scores together, so coverage ranks."""
        least = _ATOM_CEILING * len(self._sought)
        parts: list[tuple[Occur, Query]] = []
        for atom in self._sought:
            parts += [
                (Occur.Should, self._queries[atom]),
                (Occur.Should, Query.const_score_query(self._queries[atom], least)),
            ]
        return Query.boolean_query(parts)

    def _ranking(self) -> Query:
        return Query.boolean_query([(Occur.Should, self._queries[atom]) for atom in self._sought])

    def _scoped(self, query: Query, scope: Scope, more: Sequence[tuple[Occur, Query]] = ()) -> Query:
        """Return a query restricted to a scope. The filter adds 0, so that a score does not depend on it."""
        if scope.kinds and not self._refuses and self._all_of(scope.kinds):
            scope = replace(scope, kinds=())  # they would be looked up for every match, and admit all of them
        within = [(Occur.Must, Query.const_score_query(part, 0.0)) for part in scope_queries(self._schema, scope)]
        if not scope.kinds and self._refuses:  # the marker document has no kind, and would match a refusal
            more = [*more, (Occur.MustNot, Query.term_query(self._schema, "mark", "position", "basic"))]
        return Query.boolean_query([(Occur.Must, query), *within, *more]) if within or more else query

    def _all_of(self, kinds: Sequence[str]) -> bool:
        return sum(self._searcher.doc_freq("kind", kind) for kind in kinds) == self._counted

    # entries of one chunk

    def _top(self, query: Query, k: int, checked: Ids | None) -> EntryHits:
        """Return the best `k` entries of one chunk; search deeper while too few are allowed or the last ones tie."""
        total = self._searcher.num_docs
        share = 1.0 if checked is None else max(len(checked), 1) / max(total, 1)
        depth = min(max(FEWEST, int((k + 1) / share * 1.2)), max(total, FEWEST) + 1)
        while True:
            keys, hits = self._hits(query, depth)
            complete = len(hits) < depth
            last = keys[-1] if len(keys) else 0
            if checked is not None:
                allowed = np.isin(hits.items, checked)
                keys, hits = keys[allowed], hits.take(allowed, complete=complete)
            if complete or (len(keys) >= k and keys[k - 1] > last):
                break
            depth = min(max(total, 1), depth * 8) + 1
        ordered = _ordered(hits, complete=complete)
        return ordered if complete and len(ordered) <= k else ordered.take(slice(k), complete=False)

    def _hits(self, query: Query, depth: int) -> tuple[NDArray[np.generic], EntryHits]:
        """Return the sort keys and the chunks of the best hits. Tantivy orders equal keys in its own way."""
        order = None if self.ranks else "created"
        hits = engine(lambda: self._searcher.search(query, depth, count=False, order_by_field=order).hits)
        if not hits:
            return np.empty(0, np.float32), no_entry_hits()
        keys, addresses = zip(*hits, strict=True)
        places = list(addresses)
        chunks = np.array(engine(lambda: self._searcher.fast_field_values("chunk", places)), np.int64)
        if not self.ranks:
            created = np.array(keys, np.int64)
            scores = np.zeros(len(keys), np.float32)
            return created, EntryHits(chunks >> CHUNK_BITS, chunks, scores, created, complete=False)
        created = np.array(engine(lambda: self._searcher.fast_field_values("created", places)), np.int64)
        scores = np.array(keys, np.float32)
        return scores, EntryHits(chunks >> CHUNK_BITS, chunks, scores, created, complete=False)

    # entries of many chunks, and queries too deep for tantivy

    def _by_sets(
        self, scope: Scope, checked: Ids | None, extra: Sequence[tuple[Occur, Query]], *, loosely: bool
    ) -> EntryHits:
        """Return all entries that match across their chunks, computed from the items in which each atom is found."""

        def every(query: Query) -> EntryHits:
            limit = self._searcher.num_docs + 1
            return self._hits(self._scoped(query, scope, extra), limit)[1]

        items_by_atom = {atom: distinct(every(query).items) for atom, query in self._queries.items()}
        covered = [items_by_atom[atom] for atom in self._sought]
        if loosely:
            matching = distinct(np.concatenate(covered)) if covered else np.empty(0, np.int64)
        else:
            matching = self._matching(items_by_atom, lambda: distinct(every(Query.all_query()).items))
        if checked is not None:
            matching = np.intersect1d(matching, checked)
        if not len(matching):
            return no_entry_hits()
        rows = every(self._ranking() if self.ranks else Query.all_query())
        if len(np.setdiff1d(matching, rows.items)):  # they match for what they lack, which scores nothing
            everything = Query.const_score_query(Query.all_query(), 0.0)
            rows = every(Query.boolean_query([(Occur.Must, everything), (Occur.Should, self._ranking())]))
        best = _best_chunks(rows.take(np.isin(rows.items, matching), complete=True))
        if not loosely:
            return best
        counts = np.sum([np.isin(best.items, items) for items in covered], axis=0)
        lifted = best.scores + np.float32(_ATOM_CEILING * len(self._sought)) * counts.astype(np.float32)
        return EntryHits(best.items, best.chunks, lifted.astype(np.float32), best.created, complete=True)

    def _matching(self, items_by_atom: dict[Atom, Ids], everything: Callable[[], Ids]) -> Ids:
        """Return the items that match the whole query. A set is (items, True if it is all but those)."""

        def combine(join: Join, parts: list[tuple[Ids, bool]]) -> tuple[Ids, bool]:
            if join == "not":
                return parts[0][0], not parts[0][1]
            if join == "or":  # as not (not a and not b)
                items, without = combine("and", [(items, not without) for items, without in parts])
                return items, not without
            included = [items for items, without in parts if not without]
            excluded = [items for items, without in parts if without]
            out = distinct(np.concatenate(excluded)) if excluded else np.empty(0, np.int64)
            if not included:
                return out, True
            inside = included[0]
            for items in included[1:]:
                inside = np.intersect1d(inside, items, assume_unique=True)
            return np.setdiff1d(inside, out, assume_unique=True), False

        items, without = fold(self._wanted, lambda atom: (items_by_atom[atom], False), combine)
        return np.setdiff1d(everything(), items, assume_unique=True) if without else items

    def _rescored(self, hits: EntryHits) -> EntryHits:
        """Return the hits with their plain scores, without the addition that put coverage first."""
        chunks = hits.chunks.tolist()
        scores: dict[int, float] = {}
        for start in range(0, len(chunks), RESCORED):
            part = chunks[start : start + RESCORED]
            each = [(Occur.Should, Query.term_query(self._schema, "chunk", chunk)) for chunk in part]
            chunk_filter = Query.const_score_query(Query.boolean_query(each), 0.0)
            _, rows = self._hits(
                Query.boolean_query([(Occur.Must, self._ranking()), (Occur.Must, chunk_filter)]), len(part) + 1
            )
            scores.update(zip(rows.chunks.tolist(), rows.scores.tolist(), strict=True))
        exact = np.array([scores.get(chunk, 0.0) for chunk in chunks], np.float32)
        return EntryHits(hits.items, hits.chunks, exact, hits.created, hits.complete)


def _compile(join: Join, parts: list[Query]) -> Query:
    if join == "not":
        everything = Query.const_score_query(Query.all_query(), 0.0)
        return Query.boolean_query([(Occur.Must, everything), (Occur.MustNot, parts[0])])
    occur = Occur.Must if join == "and" else Occur.Should
    return Query.boolean_query([(occur, part) for part in parts])


def _ordered(hits: EntryHits, *, complete: bool) -> EntryHits:
    return hits.take(np.lexsort((-hits.items, -hits.created, -hits.scores)), complete=complete)


def _best_chunks(rows: EntryHits) -> EntryHits:
    """Return one hit per item: its best chunk, the first of equals."""
    rows = rows.take(np.lexsort((rows.chunks, -rows.scores)), complete=True)
    _, first = firsts(rows.items)
    return _ordered(rows.take(first, complete=True), complete=True)


def _merged(one: EntryHits, other: EntryHits, k: int) -> EntryHits:
    both = EntryHits(
        np.concatenate([one.items, other.items]),
        np.concatenate([one.chunks, other.chunks]),
        np.concatenate([one.scores, other.scores]),
        np.concatenate([one.created, other.created]),
        complete=one.complete,
    )
    ordered = _ordered(both, complete=one.complete)
    return ordered if one.complete and len(ordered) <= k else ordered.take(slice(k), complete=False)


# atoms as queries of the index


WHOLE_WEIGHT = 8.0
"""The boost of `F#` itself beside its letter: entries that have it come before those that have only the letter."""

MOST_EXPANDED = 64
"""Completions of a beginning that are ranked each by itself; further ones match, but add nothing to a score."""


class Atoms:
    """A compiler of the atoms of one search over one commit. In UNKNOWN language words match as they are written."""

    def __init__(self, snapshot: Snapshot, language: str) -> None:
        self._searcher, self._schema = snapshot.searcher, snapshot.schema
        self._languages = () if language == UNKNOWN else tuple(dict.fromkeys((language, *snapshot.languages)))
        stemmed = sum(snapshot.searcher.doc_freq("language", known) for known in self._languages)
        texts = snapshot.counted - snapshot.searcher.doc_freq("mark", "position")
        self._spelled = not self._languages or stemmed < texts
        """True if some text is stemmed in other languages: it is found by its words as they are written."""

    def query(self, atom: Atom) -> Query:
        """Return the query for the chunks in which the atom is found."""
        if atom.kind == "phrase":
            return self._phrase(atom.text)
        make = self._word if atom.kind == "word" else self._beginning
        parts = [make(kind, piece) for token in atom.text.split() for kind, piece in pieces(token)]
        return _all([part for part in parts if part is not None])

    # words

    def _word(self, kind: str, piece: str) -> Query | None:
        if kind == "run":
            return self._run(piece)
        terms = exact_terms(piece)
        if len(terms) <= 1:
            return self._stemmed(piece, terms, 0) if terms else None
        if len(terms) == 2:  # letters, and the same with the symbols after them
            whole = Query.boost_query(self._exact(terms[1]), WHOLE_WEIGHT)
            return Query.boolean_query([(Occur.Must, self._stemmed(piece, terms, 0)), (Occur.Should, whole)])
        parts = parts_of(terms)
        if parts is None:
            return self._adjacent(terms)
        return _best_of([self._stemmed(piece, terms, len(terms) - 1), self._adjacent(parts)])

    def _stemmed(self, piece: str, terms: Sequence[str], place: int) -> Query:
        """Return the query for one of a word's terms, by its stem in each of the languages."""
        forms = dict.fromkeys(stems(piece, language).split()[place] for language in self._languages)
        stemmed = [Query.term_query(self._schema, "body", form, "freq") for form in forms]
        return _best_of([*stemmed, self._exact(terms[place])] if self._spelled else stemmed)

    def _exact(self, term: str) -> Query:
        return Query.term_query(self._schema, "words", term, "position")

    def _run(self, run: str) -> Query:
        """Return the query for a run of an unspaced script: its pairs one after the other, wherever it stands."""
        *adjacent, last = pairs(run)
        return self._adjacent(adjacent) if adjacent else self._beginning_of(last)

    def _adjacent(self, terms: Sequence[str]) -> Query:
        return Query.phrase_query(self._schema, "words", list(terms)) if len(terms) > 1 else self._exact(terms[0])

    # beginnings

    def _beginning(self, kind: str, piece: str) -> Query | None:
        if kind != "word":
            return self._word(kind, piece)
        terms = exact_terms(piece)
        if not terms:
            return None
        parts = parts_of(terms)
        if not parts:
            return self._beginning_of(terms[-1])
        *before, last = parts
        followed = [self._adjacent([*before, word]) for word, _ in self._words(last)]
        return _best_of([self._beginning_of(terms[-1]), *followed])

    def _beginning_of(self, prefix: str) -> Query:
        words = self._words(prefix)
        if not words:
            return Query.empty_query()
        ranked = Query.boolean_query([(Occur.Should, self._exact(word)) for word, _ in words])
        if len(words) < MOST_EXPANDED:
            return ranked
        every = Query.const_score_query(beginning_query(self._schema, prefix), 0.0)
        return Query.boolean_query([(Occur.Must, every), (Occur.Should, ranked)])

    def _words(self, prefix: str) -> list[tuple[str, int]]:
        return engine(lambda: self._searcher.terms_with_prefix("words", prefix, limit=MOST_EXPANDED))

    # phrases

    def _phrase(self, text: str) -> Query:
        phrase = loose_phrase(text, lambda term: self._searcher.doc_freq("words", term))
        if is_beginning(phrase):
            return self._beginning_of(phrase[0][0])
        return phrase_query(self._schema, phrase) if phrase else Query.empty_query()


def _best_of(queries: Sequence[Query]) -> Query:
    """Return a query that matches what any of some match, and scores as the best of them."""
    return queries[0] if len(queries) == 1 else Query.disjunction_max_query(list(queries))


def _all(queries: Sequence[Query]) -> Query:
    if not queries:
        return Query.empty_query()
    return queries[0] if len(queries) == 1 else Query.boolean_query([(Occur.Must, query) for query in queries])
