"""Searches for whole entries and whole items by their words, over rows of the service.

Of entries the service finds the rows of each atom, and the rest is decided here. Items have one row each, scored as in
`words.item_ranking`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from commonplace.index.scope import Ids, Scope
from commonplace.index.turbopuffer.match import ANYTHING, NOTHING, BegunTitle, Best, Every, Match, WeightedMatch, either
from commonplace.index.turbopuffer.parts import Filter
from commonplace.index.turbopuffer.tallies import Terms
from commonplace.index.words.entry_search import (
    MOST_EXPANDED,
    WHOLE_WEIGHT,
    EntryHits,
    no_entry_hits,
)
from commonplace.index.words.item_ranking import BEGUN, MISSING_SHARE, SATURATION, ItemScores, Scoring, scores_of
from commonplace.index.words.lexical_query import TITLE_WEIGHT, LexicalQuery
from commonplace.index.words.phrases import is_beginning, loose_phrase
from commonplace.index.words.wanted import Atom, Join, Wanted, atoms, fold
from commonplace.model import CHUNK_BITS
from commonplace.text.analyze import exact_terms, pairs, parts_of, pieces, stems
from commonplace.text.languages import UNKNOWN
from commonplace.text.terms import Term

if TYPE_CHECKING:
    from commonplace.index.turbopuffer.remote_reader import Scored, TurbopufferReader

Members = tuple[frozenset[int], bool]
"""A set of items: (items, True if it is all but those)."""


class EntryMatches:
    """A search of one query. An `EntryFinder`. The atoms may stand in any chunks of an entry."""

    def __init__(self, reader: TurbopufferReader, wanted: Wanted, language: str) -> None:
        self._reader, self._wanted = reader, wanted
        compiler = AtomMatches(reader, language)
        self._matches = {atom: compiler.match(atom) for atom in atoms(wanted)}
        self._sought = list(dict.fromkeys(atoms(wanted, sought=True)))

    @property
    def ranks(self) -> bool:
        """Return True if the query looks for anything. Where it only refuses, the rest comes newest first."""
        return bool(self._sought)

    def best(self, k: int, scope: Scope, *, loosely: bool = False) -> EntryHits:
        """Return the best `k` entries. `loosely`: also those that have only some of the atoms, best coverage first."""
        if scope.items is not None and not len(scope.items):
            return no_entry_hits()
        rows_by_atom = {atom: self._reader.every(match, scope) for atom, match in self._matches.items()}
        covered = [{row.item for row in rows_by_atom[atom]} for atom in self._sought]
        items = set[int]().union(*covered) if loosely else self._matching(rows_by_atom, scope)
        rows = [row for atom in self._sought for row in rows_by_atom[atom] if row.item in items]
        if not items.issubset(row.item for row in rows):  # they match for what they lack, which scores nothing
            rows += [row for row in self._reader.every(ANYTHING, scope) if row.item in items]
        best = _best_rows(rows)
        count = {item: sum(item in some for some in covered) if loosely else 0 for item in best}
        order = sorted(
            best.values(), key=lambda row: (-count[row[0] >> CHUNK_BITS], -row[1], -row[2], -(row[0] >> CHUNK_BITS))
        )
        return _entry_hits(order[:k], complete=len(order) <= k)

    def _matching(self, rows_by_atom: dict[Atom, list[Scored]], scope: Scope) -> set[int]:
        """Return the items that match the whole query."""
        items_by_atom = {atom: frozenset(row.item for row in rows) for atom, rows in rows_by_atom.items()}
        items, without = fold(self._wanted, lambda atom: (items_by_atom[atom], False), _combined)
        if not without:
            return set(items)
        return {row.item for row in self._reader.every(ANYTHING, scope)} - items


def _combined(join: Join, parts: list[Members]) -> Members:
    if join == "not":
        return parts[0][0], not parts[0][1]
    if join == "or":  # as not (not a and not b)
        items, without = _combined("and", [(items, not without) for items, without in parts])
        return items, not without
    included = [items for items, without in parts if not without]
    excluded = frozenset[int]().union(*(items for items, without in parts if without))
    if not included:
        return excluded, True
    return included[0].intersection(*included[1:]) - excluded, False


def _best_rows(rows: Sequence[Scored]) -> dict[int, tuple[int, float, int]]:
    """Return (chunk, score, created) by item: the first of its best chunks, with the sum of its atoms' scores."""
    sums: defaultdict[int, float] = defaultdict(float)
    created: dict[int, int] = {}
    for row in rows:
        sums[row.chunk] += row.score
        created[row.chunk] = row.created
    best: dict[int, tuple[int, float, int]] = {}
    for chunk in sorted(sums):
        score = float(np.float32(sums[chunk]))
        if chunk >> CHUNK_BITS not in best or score > best[chunk >> CHUNK_BITS][1]:
            best[chunk >> CHUNK_BITS] = chunk, score, created[chunk]
    return best


def _entry_hits(rows: Sequence[tuple[int, float, int]], *, complete: bool) -> EntryHits:
    chunks = np.array([chunk for chunk, _, _ in rows], np.int64)
    scores = np.array([score for _, score, _ in rows], np.float32)
    return EntryHits(
        chunks >> CHUNK_BITS, chunks, scores, np.array([created for _, _, created in rows], np.int64), complete
    )


class AtomMatches:
    """A compiler of the atoms of one search, which match exactly what those of `words.atoms` match."""

    def __init__(self, reader: TurbopufferReader, language: str) -> None:
        self._vocabulary, ledger = reader.vocabulary, reader.ledger
        self._ledger = ledger
        self._languages = () if language == UNKNOWN else tuple(dict.fromkeys((language, *reader.languages())))
        stemmed = sum(count for known, count in ledger.languages() if known in self._languages)
        self._spelled = not self._languages or stemmed < reader.vocabulary.rows
        """True if some text is stemmed in other languages: it is found by its words as they are written."""

    def match(self, atom: Atom) -> Match:
        """Return the condition on chunks in which the atom is found."""
        if atom.kind == "phrase":
            return self._phrase(atom.text)
        make = self._word if atom.kind == "word" else self._beginning
        parts = [make(kind, piece) for token in atom.text.split() for kind, piece in pieces(token)]
        required = tuple(part for part in parts if part is not None)
        return Every(required) if required else NOTHING

    # words

    def _word(self, kind: str, piece: str) -> Match | None:
        if kind == "run":
            return self._run(piece)
        terms = exact_terms(piece)
        if len(terms) <= 1:
            return self._stemmed(piece, terms, 0) if terms else None
        if len(terms) == 2:  # letters, and the same with the symbols after them
            return Every((self._stemmed(piece, terms, 0),), (WeightedMatch(self._exact(terms[1]), WHOLE_WEIGHT),))
        parts = parts_of(terms)
        if parts is None:
            return self._vocabulary.adjacent(terms)
        return Best((self._stemmed(piece, terms, len(terms) - 1), self._vocabulary.adjacent(parts)))

    def _stemmed(self, piece: str, terms: Sequence[str], place: int) -> Match:
        """Return the condition for one of a word's terms, by its stem in each of the languages."""
        forms = dict.fromkeys(stems(piece, language).split()[place] for language in self._languages)
        stemmed = [self._vocabulary.adjacent((form,), "body") for form in forms]
        return Best((*stemmed, self._exact(terms[place])) if self._spelled else tuple(stemmed))

    def _exact(self, term: str) -> Match:
        return self._vocabulary.adjacent((term,))

    def _run(self, run: str) -> Match:
        """Return the condition for a run of an unspaced script: its pairs adjacent, wherever it stands."""
        *adjacent, last = pairs(run)
        return self._vocabulary.adjacent(adjacent) if adjacent else self._beginning_of(last)

    # beginnings

    def _beginning(self, kind: str, piece: str) -> Match | None:
        if kind != "word":
            return self._word(kind, piece)
        terms = exact_terms(piece)
        if not terms:
            return None
        parts = parts_of(terms)
        if not parts:
            return self._beginning_of(terms[-1])
        *before, last = parts
        followed = [self._vocabulary.adjacent((*before, word)) for word in self._words(last)]
        return Best((self._beginning_of(terms[-1]), *followed))

    def _beginning_of(self, prefix: str) -> Match:
        """Return the condition for a beginning: its first completions add scores, further ones match and add none."""
        words = self._words(prefix)
        ranked = tuple(map(self._exact, words))
        if len(words) < MOST_EXPANDED:
            return Every(others=ranked) if words else NOTHING
        every = self._vocabulary.beginning(prefix, 0.0)
        return Every((every,), ranked)

    def _words(self, prefix: str) -> list[str]:
        return self._ledger.beginning(prefix, MOST_EXPANDED)

    # phrases

    def _phrase(self, text: str) -> Match:
        phrase = loose_phrase(text, lambda term: self._ledger.occurs("words", term))
        if is_beginning(phrase):
            return self._beginning_of(phrase[0][0])
        return self._vocabulary.phrase(phrase) if phrase else NOTHING


# whole items


class ItemMatches:
    """A search of one query, in any of several scopes. An `ItemFinder`."""

    def __init__(
        self, reader: TurbopufferReader, query: LexicalQuery, scopes: Sequence[Scope], *, missing: int, scoring: Scoring
    ) -> None:
        """Prepare the query. `missing`: how many of its words no item has."""
        self._scoring = scoring
        self._reader, self._query, self._scopes, self._missing = reader, query, scopes, missing
        self._ceiling = self._highest()

    def best(self, count: int, without: Ids | None = None) -> ItemScores:
        """Return all items that match, however many `count` asks for. `without` are left out."""
        if not self._query.terms or not self._scopes:
            return ItemScores(np.empty(0, np.int64), np.empty(0, np.float64), 0)
        ranking = _Covering(
            tuple(map(self._term, self._query.terms)),
            tuple(term.weight >= 1 for term in self._query.terms),
            0.0 if self._missing else self._ceiling,
        )
        scores = self._scores(Every((*self._phrases(), ranking), refused=self._refused()), without)
        items = np.array(sorted(scores), np.int64)
        raw = np.array([scores[item] for item in items.tolist()], np.float64)
        return ItemScores(items, scores_of(raw, self._ceiling, self._scoring), len(items))

    def allowed(self) -> Ids:
        """Return all items of the scopes that the query's phrases and exclusions admit, whatever words they have."""
        scores = self._scores(Every((*self._phrases(), ANYTHING), refused=self._refused()), None)
        return np.array(sorted(scores), np.int64)

    def _term(self, term: Term) -> Match:
        match = self._reader.vocabulary.term(term)
        return Every((match,), (BegunTitle(term.forms, term.weight),)) if term.match == "prefix" else match

    def _scores(self, match: Match, without: Ids | None) -> dict[int, float]:
        """Return the scores of the items that match, by item."""
        rows = {row.item: row.score for scope in self._scopes for row in self._reader.every(match, scope)}
        for item in () if without is None else without.tolist():
            rows.pop(item, None)
        return rows

    def _phrases(self) -> Iterable[Match]:
        """Return the required phrases, which add 0 to a score."""
        return (WeightedMatch(self._reader.vocabulary.phrase(phrase), 0.0) for phrase in self._query.phrases)

    def _refused(self) -> tuple[Match, ...]:
        return tuple(map(self._reader.vocabulary.phrase, self._query.excluded))

    def _highest(self) -> float:
        """Return a score that no item reaches, from the terms that the library has."""
        vocabulary = self._reader.vocabulary

        def most(term: Term) -> float:
            if term.match != "word":
                return term.weight * BEGUN
            title = max(vocabulary.idf_of("title", form) for form in term.forms)
            body = max(map(vocabulary.idf, term.forms))
            return term.weight * SATURATION * (body + TITLE_WEIGHT * title)

        each = [most(term) for term in self._query.terms]
        return max(sum(each) + self._missing * MISSING_SHARE * sum(each) / max(len(each), 1), 1e-6)


@dataclass(frozen=True, slots=True)
class _Covering:
    """A match of any of the terms, with a ceiling added for all content words and another for all words."""

    terms: tuple[Match, ...]
    content: tuple[bool, ...]
    ceiling: float

    def score(self, row: Terms) -> float | None:
        """Return the row's score; None if it has none of the terms."""
        scores = [term.score(row) for term in self.terms]
        matching = [score for score in scores if score is not None]
        if not matching:
            return None
        content = self.content if any(self.content) else (True,) * len(self.terms)
        lacking = [is_content for score, is_content in zip(scores, content, strict=True) if score is None]
        return sum(matching) + self.ceiling * ((not any(lacking)) + (not lacking))

    def need(self) -> Filter | None:
        """Return a filter that all matches pass; None if there is none."""
        return either([term.need() for term in self.terms])

    def tokens(self) -> Sequence[str]:
        """Return the terms to rank candidates by."""
        return tuple(token for term in self.terms for token in term.tokens())
