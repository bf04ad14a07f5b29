"""Atoms of a boolean query (words, phrases, beginnings) as tantivy queries that match exactly what the atom says."""

from __future__ import annotations

from collections.abc import Sequence

from tantivy import Occur, Query

from commonplace.index.words.engine import Snapshot, engine
from commonplace.index.words.phrases import is_beginning, loose_phrase
from commonplace.index.words.query import beginning_query, phrase_query
from commonplace.index.words.wanted import Atom
from commonplace.text.analyze import exact_terms, pairs, parts_of, pieces, stems
from commonplace.text.languages import UNKNOWN

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
