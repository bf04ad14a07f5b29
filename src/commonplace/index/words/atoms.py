"""Words, phrases and beginnings as the queries tantivy runs, each of them matching exactly what it says."""

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
"""What `F#` itself counts beside its letters: enough for entries that have it to come before those that do not."""

MOST_EXPANDED = 64
"""Words a beginning stands for that are ranked each by itself; further ones match too, but add nothing to a score."""


class Atoms:
    """The atoms of one search over one commit. In no language (UNKNOWN) words match as they are written."""

    def __init__(self, snapshot: Snapshot, language: str) -> None:
        self._searcher, self._schema = snapshot.searcher, snapshot.schema
        self._languages = () if language == UNKNOWN else tuple(dict.fromkeys((language, *snapshot.languages)))
        stemmed = sum(snapshot.searcher.doc_freq("language", known) for known in self._languages)
        texts = snapshot.counted - snapshot.searcher.doc_freq("mark", "position")
        self._spelled = not self._languages or stemmed < texts
        """Whether some text is stemmed in other ways: it is found by its words as they are written."""

    def query(self, atom: Atom) -> Query:
        """What matches the atom within one chunk."""
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
        return _either([self._stemmed(piece, terms, len(terms) - 1), self._adjacent(parts)])

    def _stemmed(self, piece: str, terms: Sequence[str], place: int) -> Query:
        """One of a word's terms, by the stems that the languages give it."""
        forms = dict.fromkeys(stems(piece, language).split()[place] for language in self._languages)
        found = [Query.term_query(self._schema, "body", form, "freq") for form in forms]
        return _either([*found, self._exact(terms[place])] if self._spelled else found)

    def _exact(self, term: str) -> Query:
        return Query.term_query(self._schema, "words", term, "position")

    def _run(self, run: str) -> Query:
        """Text without spaces: its pairs adjacent, which is the run itself, wherever it stands."""
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
        return _either([self._beginning_of(terms[-1]), *followed])

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


def _either(queries: Sequence[Query]) -> Query:
    return queries[0] if len(queries) == 1 else Query.disjunction_max_query(list(queries))


def _all(queries: Sequence[Query]) -> Query:
    if not queries:
        return Query.empty_query()
    return queries[0] if len(queries) == 1 else Query.boolean_query([(Occur.Must, query) for query in queries])
