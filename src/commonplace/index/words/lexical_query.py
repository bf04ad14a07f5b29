"""Queries for chunks, compiled to the queries of tantivy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import regex
from tantivy import FieldType, Occur, Query, Schema

from commonplace.index.scope import Scope
from commonplace.index.words.phrases import Phrase
from commonplace.lazy_dataclass import dataclass
from commonplace.text.terms import Term, ends_in_beginning

TITLE_WEIGHT = 0.3
"""The weight of a term in the title, on top of the body, which repeats the title (docs/benchmarks.md)."""


COMMON = 2.0
"""The idf below which a word is common: one chunk in seven has it."""

MOST_APART = 16
"""Common words of a query that are nested one after another: each is another query around those before."""


@dataclass(frozen=True, slots=True)
class LexicalQuery:
    """A query whose terms are alternatives, phrases required, exclusions refused. All of them are analyzed terms."""

    terms: tuple[Term, ...] = ()
    phrases: tuple[Phrase, ...] = ()
    excluded: tuple[Phrase, ...] = ()
    by_name: bool = True
    """True if a document matches that has a term in its key alone."""

    def __bool__(self) -> bool:
        return bool(self.terms or self.phrases)

    @property
    def title(self) -> str:
        """Return the field of titles that is searched."""
        return "title" if self.by_name else "headline"


TermQueries = Sequence[Sequence[Query]]
"""The queries of each term of a query: in the text first, then in the title."""


def term_queries(schema: Schema, query: LexicalQuery) -> TermQueries:
    """Return the queries of each term, which `compile_query` and `compile_scores` of one search share."""
    return [list(term_queries_of(schema, term, query.title if term.titled else None)) for term in query.terms]


def compile_query(schema: Schema, query: LexicalQuery, terms: TermQueries, scope: Scope) -> Query:
    """Return the query for a scope. The filter adds 0, so that a score does not depend on it."""
    matching = [(Occur.Should, part) for parts in terms for part in parts]
    parts = [(Occur.Must, phrase_query(schema, phrase)) for phrase in query.phrases]
    parts += [(Occur.MustNot, phrase_query(schema, phrase)) for phrase in query.excluded]
    parts += [(Occur.Must, Query.const_score_query(part, 0.0)) for part in scope_queries(schema, scope)]
    if not parts:
        return Query.boolean_query(matching)
    if matching:
        required = Occur.Should if query.phrases else Occur.Must
        parts.append((required, Query.boolean_query(matching)))
    return Query.boolean_query(parts)


def compile_scores(
    schema: Schema, query: LexicalQuery, terms: TermQueries, chunks: Sequence[int], idf: Callable[[str], float]
) -> Query:
    """Return a query that matches just these chunks: they score as in `compile_query`, and 0 where that does not match.

    Common words are nested around the required chunks, one after another: of their postings only those of these chunks
    are then read. As alternatives all of them would be, window by window (1.4 ms against 0.7 for fifty of 100,000
    chunks).
    """
    # Alternatives, not a set: four times quicker to make and to run for a few dozen (bench/engine.py, row hybrid).
    each = [(Occur.Should, Query.term_query(schema, "chunk", chunk)) for chunk in chunks]
    chunk_filter = Query.const_score_query(Query.boolean_query(each), 0.0)
    if query.phrases or query.excluded:
        return Query.boolean_query(
            [(Occur.Must, compile_query(schema, query, terms, Scope())), (Occur.Must, chunk_filter)]
        )
    idfs = [idf(term.forms[0]) for term in query.terms]
    common = [place for place, term in enumerate(query.terms) if term.match == "word" and idfs[place] < COMMON]
    nested = sorted(common, key=idfs.__getitem__)[:MOST_APART]
    scored = chunk_filter
    for place in nested:
        scored = Query.boolean_query([(Occur.Must, scored), (Occur.Should, terms[place][0])])
    others = [(Occur.Should, part) for place, parts in enumerate(terms) for part in parts[place in nested :]]
    return Query.boolean_query([(Occur.Must, scored), *others])


def compile_marks(schema: Schema, terms: Sequence[Term], items: Sequence[int]) -> Query:
    """Return a query that scores a chunk of these items with the sum of 2ⁿ over the places n of the terms it has."""
    marks = [
        (Occur.Should, Query.const_score_query(either_query(list(term_queries_of(schema, term))), float(1 << place)))
        for place, term in enumerate(terms)
    ]
    each = [(Occur.Should, Query.term_query(schema, "item", item)) for item in items]
    item_filter = Query.const_score_query(Query.boolean_query(each), 0.0)  # quicker than a set up to some hundreds
    return Query.boolean_query([(Occur.Must, item_filter), (Occur.Must, Query.boolean_query(marks))])


def compile_all(schema: Schema, terms: Sequence[Term], known: Mapping[int, Sequence[Query]]) -> Query:
    """Return the query for chunks with all terms, in text or title. `known`: queries made before, by a term's id."""
    each = [either_query(list(known.get(id(term)) or term_queries_of(schema, term))) for term in terms]
    return each[0] if len(each) == 1 else Query.boolean_query([(Occur.Must, query) for query in each])


def either_query(queries: list[Query]) -> Query:
    """Return a query that matches what any of some match, and scores the sum of those that do."""
    return queries[0] if len(queries) == 1 else Query.boolean_query([(Occur.Should, query) for query in queries])


def term_queries_of(schema: Schema, term: Term, title: str | None = "title") -> Iterator[Query]:
    """Yield the queries of one term: in the text, then in a field of titles; typos and beginnings in the text alone."""
    if term.match == "prefix":
        yield Query.boost_query(beginning_query(schema, term.forms[0]), term.weight)
        return
    if term.match != "word":
        distance = 1 if term.match == "typo" else 2
        yield Query.boost_query(Query.fuzzy_term_query(schema, "words", term.forms[0], distance), term.weight)
        return
    fields = [("body", term.weight), (title, term.weight * TITLE_WEIGHT)] if title else [("body", term.weight)]
    for field, weight in fields:
        forms = [Query.term_query(schema, field, form, "freq") for form in term.forms]
        either = forms[0] if len(forms) == 1 else Query.disjunction_max_query(forms)
        yield Query.boost_query(either, weight)


def beginning_query(schema: Schema, prefix: str) -> Query:
    """Return the query for words that begin with `prefix`. All of them score the same."""
    return Query.regex_query(schema, "words", _beginning(prefix))


def begun_title(schema: Schema, term: Term) -> Query:
    """Return the query for titles that a beginning is in. They hold stems, so a whole word matches by its stems."""
    begun, *whole = term.forms
    patterns = [_beginning(begun), *(regex.escape(form, special_only=True) for form in whole)]
    titles = Query.regex_query(schema, "title", "|".join(f"({pattern})" for pattern in patterns))
    return Query.boost_query(Query.const_score_query(titles, TITLE_WEIGHT), term.weight)


def _begun_phrase(schema: Schema, terms: tuple[str, ...]) -> Query:
    """Return the query for adjacent terms of which the last is a beginning. All matches score the same."""
    *before, last = terms
    if not before:
        return beginning_query(schema, last)
    patterns: list[str | tuple[int, str]] = [
        *(regex.escape(term, special_only=True) for term in before),
        _beginning(last),
    ]
    return Query.const_score_query(Query.regex_phrase_query(schema, "words", patterns), 1.0)


def _beginning(prefix: str) -> str:
    return regex.escape(prefix, special_only=True) + ".*"


def phrase_query(schema: Schema, phrase: Phrase) -> Query:
    """Return the query for a phrase, in any of its alternatives."""
    ways = [_sequence(schema, terms) for terms in phrase]
    return ways[0] if len(ways) == 1 else Query.disjunction_max_query(ways)


def _sequence(schema: Schema, terms: tuple[str, ...]) -> Query:
    if ends_in_beginning(terms):
        return _begun_phrase(schema, terms)
    if len(terms) == 1:
        return Query.term_query(schema, "words", terms[0], "position")
    return Query.phrase_query(schema, "words", list(terms))


def scope_queries(schema: Schema, scope: Scope) -> Iterator[Query]:
    """Yield the queries that a scope requires, one for each of its fields. `without` is not among them."""
    fields = (("kind", scope.kinds), ("parent", scope.parents), ("tag", scope.tags))
    for field, values in (*fields, ("facet", scope.facets), ("part", scope.parts)):
        if len(values) == 1:
            yield Query.term_query(schema, field, values[0], "basic")
        elif values:
            yield Query.term_set_query(schema, field, list(values))
    for facet in scope.must:
        yield Query.term_query(schema, "facet", facet, "basic")
    for field, (low, high) in (("created", scope.created), ("updated", scope.updated)):
        if low is not None or high is not None:
            yield Query.range_query(schema, field, FieldType.Integer, low, high)
    if scope.items is not None:
        yield Query.term_set_query(schema, "item", scope.items.tolist())
