"""Whole entries by their words: the rows of each atom from the service, the rest decided here."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from commonplace.index.scope import Scope
from commonplace.index.turbopuffer.match import ANYTHING, NOTHING, Best, Every, Match, Times
from commonplace.index.words.atoms import (
    MOST_EXPANDED,
    WHOLE_WEIGHT,
)
from commonplace.index.words.entries import Found, nothing_found
from commonplace.index.words.phrases import is_beginning, loose_phrase
from commonplace.index.words.wanted import Atom, Join, Wanted, atoms, fold
from commonplace.model import CHUNK_BITS
from commonplace.text.analyze import exact_terms, pairs, parts_of, pieces, stems
from commonplace.text.languages import UNKNOWN

if TYPE_CHECKING:
    from commonplace.index.turbopuffer.reader import Scored, TurbopufferReader

Members = tuple[frozenset[int], bool]
"""Items, and whether it is all but those."""


class EntryMatches:
    """One query. Words may stand anywhere in an entry, in whatever chunks."""

    def __init__(self, reader: TurbopufferReader, wanted: Wanted, language: str) -> None:
        self._reader, self._wanted = reader, wanted
        known = AtomMatches(reader, language)
        self._matches = {atom: known.match(atom) for atom in atoms(wanted)}
        self._sought = list(dict.fromkeys(atoms(wanted, sought=True)))

    @property
    def ranks(self) -> bool:
        """Whether anything is looked for. Where things are only refused, the rest comes newest first."""
        return bool(self._sought)

    def best(self, k: int, scope: Scope, *, loosely: bool = False) -> Found:
        """The first `k` entries. `loosely`: any that have some of what is sought, best coverage first."""
        if scope.items is not None and not len(scope.items):
            return nothing_found()
        held = {atom: self._reader.every(match, scope) for atom, match in self._matches.items()}
        covered = [{row.item for row in held[atom]} for atom in self._sought]
        items = set[int]().union(*covered) if loosely else self._matching(held, scope)
        rows = [row for atom in self._sought for row in held[atom] if row.item in items]
        if not items.issubset(row.item for row in rows):  # let through for what they have not, which scores nothing
            rows += [row for row in self._reader.every(ANYTHING, scope) if row.item in items]
        best = _best_rows(rows)
        count = {item: sum(item in some for some in covered) if loosely else 0 for item in best}
        order = sorted(
            best.values(), key=lambda row: (-count[row[0] >> CHUNK_BITS], -row[1], -row[2], -(row[0] >> CHUNK_BITS))
        )
        return _found(order[:k], complete=len(order) <= k)

    def _matching(self, held: dict[Atom, list[Scored]], scope: Scope) -> set[int]:
        """The items that the whole lets through."""
        items = {atom: frozenset(row.item for row in rows) for atom, rows in held.items()}
        found, without = fold(self._wanted, lambda atom: (items[atom], False), _combined)
        if not without:
            return set(found)
        return {row.item for row in self._reader.every(ANYTHING, scope)} - found


def _combined(join: Join, parts: list[Members]) -> Members:
    if join == "not":
        return parts[0][0], not parts[0][1]
    if join == "or":  # as not (not a and not b)
        items, without = _combined("and", [(items, not without) for items, without in parts])
        return items, not without
    among = [items for items, without in parts if not without]
    refused = frozenset[int]().union(*(items for items, without in parts if without))
    if not among:
        return refused, True
    return among[0].intersection(*among[1:]) - refused, False


def _best_rows(rows: Sequence[Scored]) -> dict[int, tuple[int, float, int]]:
    """Of each item its best chunk, the first of equals, with the sum of what its atoms score and when it was made."""
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


def _found(rows: Sequence[tuple[int, float, int]], *, complete: bool) -> Found:
    chunks = np.array([chunk for chunk, _, _ in rows], np.int64)
    scores = np.array([score for _, score, _ in rows], np.float32)
    return Found(
        chunks >> CHUNK_BITS, chunks, scores, np.array([created for _, _, created in rows], np.int64), complete
    )


class AtomMatches:
    """The atoms of one search, each matching exactly what `lexical_atoms` lets it match."""

    def __init__(self, reader: TurbopufferReader, language: str) -> None:
        self._vocabulary, ledger = reader.vocabulary, reader.ledger
        self._ledger = ledger
        self._languages = () if language == UNKNOWN else tuple(dict.fromkeys((language, *reader.languages())))
        stemmed = sum(count for known, count in ledger.languages() if known in self._languages)
        self._spelled = not self._languages or stemmed < reader.vocabulary.rows
        """Whether some text is stemmed in other ways: it is found by its words as they are written."""

    def match(self, atom: Atom) -> Match:
        """What matches the atom within one chunk."""
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
            return Every((self._stemmed(piece, terms, 0),), (Times(self._exact(terms[1]), WHOLE_WEIGHT),))
        parts = parts_of(terms)
        if parts is None:
            return self._vocabulary.adjacent(terms)
        return Best((self._stemmed(piece, terms, len(terms) - 1), self._vocabulary.adjacent(parts)))

    def _stemmed(self, piece: str, terms: Sequence[str], place: int) -> Match:
        """One of a word's terms, by the stems that the languages give it."""
        forms = dict.fromkeys(stems(piece, language).split()[place] for language in self._languages)
        found = [self._vocabulary.adjacent((form,), "body") for form in forms]
        return Best((*found, self._exact(terms[place])) if self._spelled else tuple(found))

    def _exact(self, term: str) -> Match:
        return self._vocabulary.adjacent((term,))

    def _run(self, run: str) -> Match:
        """Text without spaces: its pairs adjacent, which is the run itself, wherever it stands."""
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
        """Each of the first words adds its own worth; further ones match too, but add nothing."""
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
