"""Whole entries by their words: one row for each, at its best chunk, in an order that is total and stable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from tantivy import Occur, Query

from commonplace.index.scope import Ids, Scope, distinct, firsts
from commonplace.index.words.atoms import Atoms
from commonplace.index.words.engine import MANY, Floats, Snapshot, engine
from commonplace.index.words.query import scope_queries
from commonplace.index.words.wanted import Atom, Join, Wanted, atoms, fold
from commonplace.lazy_dataclass import dataclass
from commonplace.model import CHUNK_BITS

FEWEST = 64
"""Chunks asked for at first: a cut among equal scores would mean asking again."""

MOST_LISTED = 5_000
"""Item ids pushed down as a list; more are checked while fetching."""

RESCORED = 500
"""Chunks whose scores are asked for at a time."""

DEEPEST = 32
"""Groups inside groups that tantivy is given: it recurses, and would end the process at some thousand."""

_ATOM_CEILING = 256.0
"""More than any one atom can score."""


@dataclass(frozen=True, slots=True)
class Found:
    """Entries, best first; those that score the same newest first, then by id, descending."""

    items: Ids
    chunks: Ids
    """The best chunk of each."""
    scores: Floats
    created: Ids
    complete: bool
    """Whether there are no more of them."""

    def __len__(self) -> int:
        return len(self.items)

    def take(self, rows: slice | NDArray[np.bool_] | Ids, *, complete: bool) -> Found:
        return Found(self.items[rows], self.chunks[rows], self.scores[rows], self.created[rows], complete)


def nothing_found() -> Found:
    none = np.empty(0, np.int64)
    return Found(none, none, np.empty(0, np.float32), none, complete=True)


class EntrySearch:
    """One query over one commit.

    Words may stand anywhere in an entry. Where an entry is one chunk, tantivy decides; an entry of many is decided
    here, from the chunks in which each atom was found.
    """

    def __init__(self, snapshot: Snapshot, language: str, wanted: Wanted) -> None:
        self._searcher, self._schema = snapshot.searcher, snapshot.schema
        self._wanted = wanted
        known = Atoms(snapshot, language)
        self._queries = {atom: known.query(atom) for atom in atoms(wanted)}
        self._sought = list(dict.fromkeys(atoms(wanted, sought=True)))
        self._many = self._searcher.doc_freq("parts", MANY) > 0
        self._deep = fold(wanted, lambda atom: 0, lambda join, parts: 1 + max(parts)) > DEEPEST
        self._refuses = any(True for _ in atoms(wanted, sought=False))
        self._counted = snapshot.counted - self._searcher.doc_freq("mark", "position")

    @property
    def ranks(self) -> bool:
        """Whether anything is looked for. Where things are only refused, the rest comes newest first."""
        return bool(self._sought)

    def best(self, k: int, scope: Scope, *, loosely: bool = False) -> Found:
        """The first `k` entries. `loosely`: any that have some of what is sought, best coverage first."""
        if scope.items is not None and not len(scope.items):
            return nothing_found()
        pushed = scope if scope.items is None or len(scope.items) <= MOST_LISTED else _without_items(scope)
        checked = scope.items if pushed is not scope else None
        if self._deep and not loosely:
            return _merged(nothing_found(), self._by_sets(pushed, checked, [], loosely=False), k)
        single = self._loose() if loosely else self._strict()
        many = Query.term_query(self._schema, "parts", MANY, "basic")
        found = self._top(self._scoped(single, pushed, [(Occur.MustNot, many)] if self._many else []), k, checked)
        if self._many:
            apart = [(Occur.Must, Query.const_score_query(many, 0.0))]
            found = _merged(found, self._by_sets(pushed, checked, apart, loosely=loosely), k)
        if loosely and len(found):
            found = self._rescored(found)
        return found

    # queries

    def _strict(self) -> Query:
        return fold(self._wanted, self._queries.__getitem__, _compile)

    def _loose(self) -> Query:
        """Each atom found counts more than all scores together, so that coverage comes first."""
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
        """What filters never scores, so that a score does not depend on the filter."""
        if scope.kinds and not self._refuses and self._all_of(scope.kinds):
            scope = replace(scope, kinds=())  # they would be looked up for every match, and let all of them through
        within = [(Occur.Must, Query.const_score_query(part, 0.0)) for part in scope_queries(self._schema, scope)]
        if not scope.kinds and self._refuses:  # the index's own mark is of no kind, and holds nothing that is refused
            more = [*more, (Occur.MustNot, Query.term_query(self._schema, "mark", "position", "basic"))]
        return Query.boolean_query([(Occur.Must, query), *within, *more]) if within or more else query

    def _all_of(self, kinds: Sequence[str]) -> bool:
        return sum(self._searcher.doc_freq("kind", kind) for kind in kinds) == self._counted

    # entries of one chunk

    def _top(self, query: Query, k: int, checked: Ids | None) -> Found:
        """Asks for more while too few are allowed or the last ones are equal."""
        total = self._searcher.num_docs
        share = 1.0 if checked is None else max(len(checked), 1) / max(total, 1)
        depth = min(max(FEWEST, int((k + 1) / share * 1.2)), max(total, FEWEST) + 1)
        while True:
            keys, found = self._hits(query, depth)
            complete = len(found) < depth
            last = keys[-1] if len(keys) else 0
            if checked is not None:
                allowed = np.isin(found.items, checked)
                keys, found = keys[allowed], found.take(allowed, complete=complete)
            if complete or (len(keys) >= k and keys[k - 1] > last):
                break
            depth = min(max(total, 1), depth * 8) + 1
        ordered = _ordered(found, complete=complete)
        return ordered if complete and len(ordered) <= k else ordered.take(slice(k), complete=False)

    def _hits(self, query: Query, depth: int) -> tuple[NDArray[np.generic], Found]:
        """Chunks by what they are ordered by. Tantivy gives equal ones in an order of its own."""
        order = None if self.ranks else "created"
        hits = engine(lambda: self._searcher.search(query, depth, count=False, order_by_field=order).hits)
        if not hits:
            return np.empty(0, np.float32), nothing_found()
        keys, addresses = zip(*hits, strict=True)
        places = list(addresses)
        chunks = np.array(engine(lambda: self._searcher.fast_field_values("chunk", places)), np.int64)
        if not self.ranks:
            created = np.array(keys, np.int64)
            found = Found(chunks >> CHUNK_BITS, chunks, np.zeros(len(keys), np.float32), created, complete=False)
            return created, found
        created = np.array(engine(lambda: self._searcher.fast_field_values("created", places)), np.int64)
        scores = np.array(keys, np.float32)
        return scores, Found(chunks >> CHUNK_BITS, chunks, scores, created, complete=False)

    # entries of many chunks, and queries too deep for tantivy

    def _by_sets(
        self, scope: Scope, checked: Ids | None, apart: Sequence[tuple[Occur, Query]], *, loosely: bool
    ) -> Found:
        """All entries that match, whatever chunks they match in, by the items in which each atom was found."""

        def every(query: Query) -> Found:
            limit = self._searcher.num_docs + 1
            return self._hits(self._scoped(query, scope, apart), limit)[1]

        held = {atom: distinct(every(query).items) for atom, query in self._queries.items()}
        covered = [held[atom] for atom in self._sought]
        if loosely:
            matching = distinct(np.concatenate(covered)) if covered else np.empty(0, np.int64)
        else:
            matching = self._matching(held, lambda: distinct(every(Query.all_query()).items))
        if checked is not None:
            matching = np.intersect1d(matching, checked)
        if not len(matching):
            return nothing_found()
        rows = every(self._ranking() if self.ranks else Query.all_query())
        if len(np.setdiff1d(matching, rows.items)):  # let through for what they have not, which scores nothing
            everything = Query.const_score_query(Query.all_query(), 0.0)
            rows = every(Query.boolean_query([(Occur.Must, everything), (Occur.Should, self._ranking())]))
        best = _best_chunks(rows.take(np.isin(rows.items, matching), complete=True))
        if not loosely:
            return best
        counts = np.sum([np.isin(best.items, items) for items in covered], axis=0)
        lifted = best.scores + np.float32(_ATOM_CEILING * len(self._sought)) * counts.astype(np.float32)
        return Found(best.items, best.chunks, lifted.astype(np.float32), best.created, complete=True)

    def _matching(self, held: dict[Atom, Ids], everything: Callable[[], Ids]) -> Ids:
        """The items that the whole lets through. A set is (items, whether it is all but those)."""

        def combine(join: Join, parts: list[tuple[Ids, bool]]) -> tuple[Ids, bool]:
            if join == "not":
                return parts[0][0], not parts[0][1]
            if join == "or":  # as not (not a and not b)
                items, without = combine("and", [(items, not without) for items, without in parts])
                return items, not without
            among = [items for items, without in parts if not without]
            refused = [items for items, without in parts if without]
            out = distinct(np.concatenate(refused)) if refused else np.empty(0, np.int64)
            if not among:
                return out, True
            inside = among[0]
            for items in among[1:]:
                inside = np.intersect1d(inside, items, assume_unique=True)
            return np.setdiff1d(inside, out, assume_unique=True), False

        items, without = fold(self._wanted, lambda atom: (held[atom], False), combine)
        return np.setdiff1d(everything(), items, assume_unique=True) if without else items

    def _rescored(self, found: Found) -> Found:
        """Scores without what put coverage first."""
        chunks = found.chunks.tolist()
        scores: dict[int, float] = {}
        for start in range(0, len(chunks), RESCORED):
            part = chunks[start : start + RESCORED]
            each = [(Occur.Should, Query.term_query(self._schema, "chunk", chunk)) for chunk in part]
            among = Query.const_score_query(Query.boolean_query(each), 0.0)
            _, rows = self._hits(
                Query.boolean_query([(Occur.Must, self._ranking()), (Occur.Must, among)]), len(part) + 1
            )
            scores.update(zip(rows.chunks.tolist(), rows.scores.tolist(), strict=True))
        exact = np.array([scores.get(chunk, 0.0) for chunk in chunks], np.float32)
        return Found(found.items, found.chunks, exact, found.created, found.complete)


def _compile(join: Join, parts: list[Query]) -> Query:
    if join == "not":
        everything = Query.const_score_query(Query.all_query(), 0.0)
        return Query.boolean_query([(Occur.Must, everything), (Occur.MustNot, parts[0])])
    occur = Occur.Must if join == "and" else Occur.Should
    return Query.boolean_query([(occur, part) for part in parts])


def _ordered(found: Found, *, complete: bool) -> Found:
    return found.take(np.lexsort((-found.items, -found.created, -found.scores)), complete=complete)


def _best_chunks(rows: Found) -> Found:
    """One row per item: its best chunk, the first of equals."""
    rows = rows.take(np.lexsort((rows.chunks, -rows.scores)), complete=True)
    _, first = firsts(rows.items)
    return _ordered(rows.take(first, complete=True), complete=True)


def _merged(one: Found, other: Found, k: int) -> Found:
    both = Found(
        np.concatenate([one.items, other.items]),
        np.concatenate([one.chunks, other.chunks]),
        np.concatenate([one.scores, other.scores]),
        np.concatenate([one.created, other.created]),
        complete=one.complete,
    )
    ordered = _ordered(both, complete=one.complete)
    return ordered if one.complete and len(ordered) <= k else ordered.take(slice(k), complete=False)


def _without_items(scope: Scope) -> Scope:
    return Scope(scope.kinds, scope.parents, scope.tags, scope.created, scope.updated)
