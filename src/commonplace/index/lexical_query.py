"""What is looked for, as the queries tantivy runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import regex
from tantivy import FieldType, Occur, Query, Schema

from commonplace.index.scope import Scope
from commonplace.text.terms import Term

TITLE_WEIGHT = 0.3
"""What a term in the title adds to the same term in the body, which repeats the title (docs/benchmarks.md)."""


@dataclass(frozen=True, slots=True)
class LexicalQuery:
    """Terms are alternatives, phrases are required, exclusions are refused. All of them are already analysed."""

    terms: tuple[Term, ...] = ()
    phrases: tuple[tuple[str, ...], ...] = ()
    excluded: tuple[tuple[str, ...], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.terms or self.phrases)


def compile_query(schema: Schema, query: LexicalQuery, scope: Scope) -> Query:
    """One tantivy query. What filters never scores, so that a score does not depend on the filter."""
    matching = [(Occur.Should, part) for term in query.terms for part in _term(schema, term)]
    parts = [(Occur.Must, _phrase(schema, phrase)) for phrase in query.phrases]
    parts += [(Occur.MustNot, _phrase(schema, phrase)) for phrase in query.excluded]
    parts += [(Occur.Must, Query.const_score_query(part, 0.0)) for part in _scope(schema, scope)]
    if not parts:
        return Query.boolean_query(matching)
    if matching:
        required = Occur.Should if query.phrases else Occur.Must
        parts.append((required, Query.boolean_query(matching)))
    return Query.boolean_query(parts)


def _term(schema: Schema, term: Term) -> Iterator[Query]:
    if term.match == "prefix":
        yield Query.boost_query(_prefix(schema, term.forms[0]), term.weight)
        return
    if term.match != "word":
        distance = 1 if term.match == "typo" else 2
        yield Query.boost_query(Query.fuzzy_term_query(schema, "words", term.forms[0], distance), term.weight)
        return
    for field, weight in (("body", term.weight), ("title", term.weight * TITLE_WEIGHT)):
        forms = [Query.term_query(schema, field, form, "freq") for form in term.forms]
        either = forms[0] if len(forms) == 1 else Query.disjunction_max_query(forms)
        yield Query.boost_query(either, weight)


def _prefix(schema: Schema, prefix: str) -> Query:
    return Query.regex_query(schema, "words", regex.escape(prefix, special_only=True) + ".*")


def _phrase(schema: Schema, terms: tuple[str, ...]) -> Query:
    if len(terms) == 1:
        return Query.term_query(schema, "words", terms[0], "position")
    return Query.phrase_query(schema, "words", list(terms))


def _scope(schema: Schema, scope: Scope) -> Iterator[Query]:
    for field, values in (("kind", scope.kinds), ("parent", scope.parents), ("tag", scope.tags)):
        if len(values) == 1:
            yield Query.term_query(schema, field, values[0], "basic")
        elif values:
            yield Query.term_set_query(schema, field, list(values))
    for field, (low, high) in (("created", scope.created), ("updated", scope.updated)):
        if low is not None or high is not None:
            yield Query.range_query(schema, field, FieldType.Integer, low, high)
    if scope.items is not None:
        yield Query.term_set_query(schema, "item", scope.items.tolist())
