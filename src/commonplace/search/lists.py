"""One search as one ranked list of items: by words, judged over whole items, or by meaning, at their best passage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commonplace.index.followers import WordReader
from commonplace.index.scope import Ids, Scope, among, distinct, firsts
from commonplace.index.words.lexical_query import LexicalQuery
from commonplace.index.words.lexical_reader import MOST_MARKS
from commonplace.index.words.phrases import phrases
from commonplace.model import CHUNK_BITS
from commonplace.search.blend import by_words
from commonplace.search.engine import Semantic, deepen, with_lacking
from commonplace.search.legs import OTHER_SCRIPT, Floats, LexicalLeg, VectorLeg, trust_for, weight_of
from commonplace.search.plan import LexicalPlan, plan_lexical
from commonplace.search.request import Parsed
from commonplace.search.scale import (
    TELLS,
    completed,
    evidence_line,
    highest,
    least_of,
    pressed,
    pressed_nearness,
)
from commonplace.text.terms import Term

NamesOf = Callable[[Sequence[int]], Mapping[int, str]]
"""A function that returns the names of items: the last resort between equals."""

NONE: Ids = np.empty(0, np.int64)

INTENT = 0.5
"""What a term of the intent counts beside one of the query where the best passage of an item is chosen."""


@dataclass(frozen=True, slots=True)
class Listed:
    """Items best first, each with its score from 0 to 1 and its best passage."""

    items: tuple[int, ...] = ()
    scores: tuple[float, ...] = ()
    chunks: tuple[int, ...] = ()
    together: frozenset[int] = frozenset()
    """The items with all words of the query in one passage, where few have that."""
    apart: bool = False
    """Whether the first is nearer than strangers can be expected to be."""


@dataclass(frozen=True, slots=True)
class Depth:
    """The depth of a list: the items it has, where there are so many, and how many of the first need exact places."""

    items: int
    ordered: int


@dataclass(frozen=True, slots=True)
class Bounds:
    """The scope that a query's phrases and exclusions leave, and notes on those that were let go."""

    scope: Scope
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _RankedPassages:
    """Passages best first, and the items they belong to, ascending, with where each has its first passage."""

    chunks: Ids
    scores: Floats
    items: Ids
    first: Ids
    exhausted: bool
    """Whether there are no more passages."""

    def only(self, which: NDArray[Any]) -> _RankedPassages:
        """Return the same with some of the items."""
        return _RankedPassages(self.chunks, self.scores, self.items[which], self.first[which], self.exhausted)

    @property
    def best(self) -> Floats:
        """Return the score of each item's first passage."""
        return self.scores[self.first]


class WordSearch:
    """Lists by words over one scope of one commit."""

    def __init__(self, reader: WordReader, depth: Depth, names_of: NamesOf, intent: tuple[Term, ...] = ()) -> None:
        self._reader, self._depth, self._names_of, self._intent = reader, depth, names_of, intent

    def bounds(self, parsed: Parsed, scope: Scope) -> Bounds:
        """Return the scope that phrases and exclusions leave: they hold for whole items, wherever a phrase stands.

        A phrase that no item has is let go, and so are all of them where no item has them all: its words still rank.
        """
        notes: list[str] = []
        items: Ids | None = None
        for phrase in parsed.phrases:
            holders = self._holders(phrase, scope)
            if holders is None or not len(holders):
                notes.append(f'no document has the phrase "{phrase}", so its words were looked for.')
            else:
                items = holders if items is None else np.intersect1d(items, holders)
        if items is not None and not len(items):
            notes.append("no document has all the phrases, so their words were looked for.")
            items = None
        excluded = [ids for phrase in parsed.excluded if (ids := self._holders(phrase, scope)) is not None]
        without = distinct(np.concatenate(excluded)) if excluded else None
        return Bounds(replace(scope, items=items, without=without), tuple(notes))

    def find(self, parsed: Parsed, scope: Scope) -> tuple[Listed, LexicalPlan]:
        """Return the list, and the plan it was made with. Terms that nothing in scope has were guessed at."""
        parsed = replace(parsed, phrases=(), excluded=())
        plan = plan_lexical(parsed, self._reader)
        listed, seen, complete = self._ranked(plan, scope)
        absent = self._absent(plan, scope, seen, complete)
        if absent:
            plan = plan_lexical(parsed, _InScope(self._reader, scope, absent))
            listed, _, _ = self._ranked(plan, scope)
        return listed, plan

    def _holders(self, phrase: str, scope: Scope) -> Ids | None:
        sought = phrases(phrase, self._reader.occurs)
        return self._reader.holders(LexicalQuery(phrases=sought), scope) if sought else None

    def _absent(self, plan: LexicalPlan, scope: Scope, seen: int, complete: bool) -> frozenset[str]:
        """Return the forms of words that the library has and the scope has not."""
        missing = [
            term for place, term in enumerate(plan.query.terms) if term.match == "word" and not seen >> place & 1
        ]
        if not complete:
            missing = [term for term in missing if not len(self._reader.search(LexicalQuery((term,)), 1, scope)[0])]
        return frozenset(form for term in missing for form in term.forms)

    def _ranked(self, plan: LexicalPlan, scope: Scope) -> tuple[Listed, int, bool]:
        """Return the list, the terms that any of it is known to have as bits, and whether those are all there are."""
        leg = LexicalLeg(self._reader, plan, scope)
        if 2 * self._depth.ordered < self._depth.items and (sure := self._sure(leg)):
            return sure
        found = _deep(leg.candidates, self._depth.items)
        if not len(found.chunks):
            return Listed(), 0, True
        tally = self._tally(plan, found)
        return self._listed(tally, found, leg.complete()), tally.seen, found.exhausted

    def _sure(self, leg: LexicalLeg) -> tuple[Listed, int, bool] | None:
        """Return the first of the list where they are sure without the rest of it, else None.

        Items with all terms stand before all others and by their strength. So where there are enough of them among
        the strongest, no weaker one need be looked at.
        """
        wanted = self._depth.ordered
        found = _deep(leg.candidates, 2 * wanted + 1)
        if len(found.items) <= 2 * wanted:
            return None
        last = found.first.max()
        few = found.only(found.first < last)
        tally = self._tally(leg.plan, few)
        sure = tally.complete() & (few.best > found.scores[last])
        if np.count_nonzero(sure) < wanted or len(complete := leg.complete()):
            return None
        return self._listed(tally, few, complete), tally.seen, False

    def _tally(self, plan: LexicalPlan, found: _RankedPassages) -> _Tally:
        tally = _Tally(plan, found, len(self._intent))
        for number, (marked, marks) in enumerate(self._reader.marks((*plan.query.terms, *self._intent), found.items)):
            tally.add(marked, marks, number * MOST_MARKS)
        return tally

    def _listed(self, tally: _Tally, found: _RankedPassages, complete: Ids) -> Listed:
        """Return the list. `complete`: the passages with all words, in scope or not, where few items have one."""
        items, line = found.items, evidence_line(tally.mass, self._reader.passages())
        together = among(items, distinct(complete >> CHUNK_BITS))
        most = highest(tally.telling)
        sure = most * pressed(line.slope * found.best.astype(np.float64) + line.start)
        scores = by_words(sure, tally.covered(), tally.complete(), together, least_of(complete))
        scores *= most if tally.telling < TELLS else 1.0
        order = settled(np.lexsort((found.first, -scores)), scores, items, self._depth.ordered, self._names_of)
        passages = tally.passages()[order]
        return Listed(
            tuple(items[order].tolist()),
            tuple(scores[order].tolist()),
            tuple(passages.tolist()),
            frozenset(items[together].tolist()),
        )


class _Tally:
    """A tally of the terms that whole items have, and of the passages that have most of them."""

    def __init__(self, plan: LexicalPlan, found: _RankedPassages, intents: int) -> None:
        self._found = found
        terms, self.mass, self.telling = plan.query.terms, plan.mass or 1.0, plan.telling
        content = [term.weight >= 1 for term in terms]
        asked = [1.0 if counts or not any(content) else 0.0 for counts in content]
        self._shares = np.array([*plan.shares, *[0.0] * intents])
        self._worths = np.array([*asked, *[INTENT] * intents])
        self._telling = np.array([*(term.weight >= 1 or term.match != "word" for term in terms), *[False] * intents])
        self._held = np.zeros(len(found.items))
        self._told = np.zeros(len(found.items))
        self._marked: list[tuple[Ids, Ids, NDArray[np.float64]]] = []
        """Chunks, the places of their items, and what they are worth by some of the terms."""
        self.seen = 0

    def add(self, chunks: Ids, marks: Ids, first: int) -> None:
        """Add marks of the terms from number `first` on, of chunks in any order."""
        if not len(chunks):
            return
        terms = slice(first, first + MOST_MARKS)
        bits = np.arange(len(self._shares[terms]))
        owners = np.searchsorted(self._found.items, chunks >> CHUNK_BITS)
        self._marked.append((chunks, owners, (marks[:, None] >> bits & 1) @ self._worths[terms]))
        union = np.zeros(len(self._held), dtype=np.int64)
        np.bitwise_or.at(union, owners, marks)
        held = (union[:, None] >> bits & 1) * self._shares[terms]
        self._held += held.sum(axis=1)
        self._told += held @ self._telling[terms]
        self.seen |= int(np.bitwise_or.reduce(union)) << first

    def covered(self) -> NDArray[np.float64]:
        """Return the share of the query's mass that each item has."""
        return np.minimum(1.0, self._held / self.mass)

    def complete(self) -> NDArray[np.bool_]:
        """Return which items have every term but function words. A term that was guessed at counts as missing."""
        wanted = self.mass - float(self._shares[~self._telling].sum())
        return self._told >= wanted * (1 - 1e-9)

    def passages(self) -> Ids:
        """Return the passage of each item with the most terms; among equals the one ranked best, then the first."""
        best = self._found.chunks[self._found.first]
        if self._marked:
            chunks, owners, worths = self._marked[0] if len(self._marked) == 1 else self._together()
            order = np.lexsort((chunks, self._ranks(chunks), -worths))[::-1]
            best[owners[order]] = chunks[order]  # an item's last one stays, which is its best
        return best

    def _together(self) -> tuple[Ids, Ids, NDArray[np.float64]]:
        """Return the chunks, each once, with their owners and their worth by all terms."""
        chunks, owners, worths = map(np.concatenate, zip(*self._marked, strict=True))
        unique, first, places = np.unique(chunks, return_index=True, return_inverse=True)
        worth = np.zeros(len(unique))
        np.add.at(worth, places, worths)
        return unique, owners[first], worth

    def _ranks(self, chunks: Ids) -> Ids:
        """Return the ranks of these passages among those found, from 0; after all of them for others."""
        ranked = self._found.chunks
        by_id = np.argsort(ranked)
        nearest = by_id[np.minimum(np.searchsorted(ranked, chunks, sorter=by_id), len(by_id) - 1)]
        return np.where(ranked[nearest] == chunks, nearest, len(by_id))


class MeaningSearch:
    """Lists by meaning over one vector index."""

    def __init__(self, semantic: Semantic, depth: Depth, names_of: NamesOf) -> None:
        self.semantic, self._depth, self._names_of = semantic, depth, names_of

    def reads(self, text: str, languages: Sequence[str]) -> bool:
        """Return whether the model knows the letters a text is written in."""
        return trust_for(text, self.semantic.embedder, languages[0]) > OTHER_SCRIPT

    def weight(self, text: str, languages: Sequence[str]) -> float:
        """Return the weight of the model for a text, as in every fusion by evidence."""
        return weight_of(self.semantic.embedder, trust_for(text, self.semantic.embedder, languages[0]))

    def embedded(self, texts: Sequence[tuple[bool, str]]) -> list[Floats]:
        """Return vectors of questions; of imagined answers where the flag is set."""
        embedder = self.semantic.embedder
        imagined = [text for is_imagined, text in texts if is_imagined]
        texts_of_questions = [text for is_imagined, text in texts if not is_imagined]
        answers = iter(embedder.embed_passages(imagined) if imagined else ())
        questions = iter(embedder.embed_queries(texts_of_questions) if texts_of_questions else ())
        return [next(answers if is_imagined else questions) for is_imagined, _ in texts]

    def find(
        self,
        vector: Floats,
        scope: Scope,
        everything: Ids,
        passages: int,
        most: float = 1.0,
        *,
        complete: Ids = NONE,
        alike: bool = False,
    ) -> Listed:
        """Return the items nearest to a vector, each at its nearest passage. `everything`: what a filter lets answer.

        `passages`: how many the library has. `most`: what none of them scores more than. `complete`: passages in scope
        with all the words that were asked for, which come first. `alike`: the vector is that of a passage.
        """
        items = everything if scope.items is None else scope.items
        leg = VectorLeg(self.semantic.index, self.semantic.embedder, vector, items, 1.0, scope.without)
        found = _deep(
            lambda depth: _foremost(with_lacking(leg, leg.candidates(depth), complete), complete), self._depth.items
        )
        scaled, line = found.best, leg.line(alike=alike)
        scores = most * (pressed if alike else pressed_nearness)(line.slope * scaled + line.start)
        if len(complete):
            scores = completed(scores, among(found.items, distinct(complete >> CHUNK_BITS)), least_of(complete))
        order = settled(np.lexsort((found.first, -scores)), scores, found.items, self._depth.ordered, self._names_of)
        chunks, scores = found.chunks[found.first[order]], scores[order]
        apart = len(chunks) > 0 and leg.is_apart(float(scaled.max()), passages)
        return Listed(tuple(found.items[order].tolist()), tuple(scores.tolist()), tuple(chunks.tolist()), apart=apart)


def settled(order: Ids, scores: NDArray[Any], items: Ids, first: int, names_of: NamesOf) -> Ids:
    """Return an order by falling score in which equals stand by name, as far as they reach into the first so many.

    Names are looked up only where there are equals.
    """
    ranked = scores[order]
    same = ranked[1:] == ranked[:-1]
    end = first
    while end < len(ranked) and same[end - 1]:
        end += 1
    pairs = np.flatnonzero(same[: end - 1])
    if not len(pairs):
        return order
    tied = np.zeros(len(ranked), np.bool_)
    tied[pairs] = tied[pairs + 1] = True
    equal = np.flatnonzero(tied)
    names = names_of(items[order[equal]].tolist())
    places = sorted(equal.tolist(), key=lambda place: (-ranked[place], names.get(int(items[order[place]]), "")))
    order = order.copy()
    order[equal] = order[places]
    return order


def best_of(lists: Iterable[Listed]) -> dict[int, float]:
    """Return the highest score of every item in any of these lists."""
    best: dict[int, float] = {}
    for listed in lists:
        for item, score in zip(listed.items, listed.scores, strict=True):
            best[item] = max(score, best.get(item, 0.0))
    return best


class _InScope:
    """The vocabulary of a scope, as far as a plan asks: some words of the library's are not in it."""

    def __init__(self, reader: WordReader, scope: Scope, absent: frozenset[str]) -> None:
        self._reader, self._scope, self._absent = reader, scope, absent

    def languages(self) -> tuple[str, ...]:
        return self._reader.languages()

    def rarer(self) -> tuple[str, ...]:
        return self._reader.rarer()

    def idf(self, form: str) -> float:
        return 0.0 if form in self._absent else self._reader.idf(form)

    def knows(self, language: str, form: str) -> bool:
        return form not in self._absent and self._reader.knows(language, form)

    def begins(self, prefix: str) -> bool:
        begun = LexicalQuery((Term((prefix,), 1.0, "prefix"),))
        return bool(len(self._reader.search(begun, 1, self._scope)[0]))

    def occurs(self, word: str) -> bool:
        return self._reader.occurs(word)

    def passages(self) -> int:
        return self._reader.passages()


def _foremost(found: tuple[Ids, Floats], passages: Ids) -> tuple[Ids, Floats]:
    """Return candidates with some passages of them before all others."""
    if not len(passages):
        return found
    order = np.argsort(~among(found[0], passages), kind="stable")
    return found[0][order], found[1][order]


def _deep(candidates: Callable[[int], tuple[Ids, Floats]], documents: int) -> _RankedPassages:
    """Return passages of `documents` items, if there are as many, however many belong to the same few."""

    def ranked(depth: int) -> _RankedPassages:
        chunks, scores = candidates(depth)
        return _RankedPassages(chunks, scores, *firsts(chunks >> CHUNK_BITS), len(chunks) < depth)

    found = deepen(2 * documents, ranked, lambda found: found.exhausted or len(found.items) >= documents)
    if len(found.items) <= documents:
        return found
    return found.only(np.sort(np.argpartition(found.first, documents)[:documents]))
