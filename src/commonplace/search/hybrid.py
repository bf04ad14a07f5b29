"""Several typed searches as one answer: a ranked list each, fused by rank, scored on one scale, reranked and explained.

The legs, the plan and the indexes are the ones every search uses. What differs is what a contract asks for: items are
judged over all of their text, lists are fused by reciprocal ranks, and the number of a hit is calibrated apart from
its place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Literal

from commonplace.errors import Unavailable
from commonplace.index.base import WordIndex, WordReader
from commonplace.index.scope import Ids, Scope
from commonplace.lazy_dataclass import dataclass
from commonplace.model import Filter, Stage
from commonplace.models.generator import Generator
from commonplace.models.hurry import hurried
from commonplace.models.reranker import Reranker
from commonplace.search.blend import (
    OTHER,
    OWN,
    Fused,
    Fusion,
    belief,
    blended,
    falling,
    on_scale_of,
    retrieved,
    stands_out,
)
from commonplace.search.expand import Expansion
from commonplace.search.fuse import weigh
from commonplace.search.legs import LexicalLeg, told
from commonplace.search.lists import NONE, Depth, Listed, MeaningSearch, WordSearch, best_of
from commonplace.search.parse import Parsed, parse
from commonplace.search.pipeline import SemanticSource
from commonplace.search.plan import LexicalPlan, plan_lexical
from commonplace.search.rerank import SecondLook, time_for
from commonplace.search.rerank_fused import FusedLook, Meaning
from commonplace.search.scale import CLOSE, NOT_CLOSE, TELLS, highest
from commonplace.search.timed import Budgets, Clock, Left, Stages, within
from commonplace.search.typed import Search
from commonplace.store.base import Store
from commonplace.text.terms import Term, query_terms

LEAST_DOCUMENTS = 100
PER_HIT = 5
MODELS_S = 4.5
"""What all stages with a model may take together, whatever each may: so an answer is there within five seconds."""

_STAGES = ("lexical", "vector", "expand", "rerank")


Role = Literal["original", "typed", "variant"]
"""Whose search it is: the caller's own text, one that the caller typed, or one that a generator wrote."""


@dataclass(frozen=True, slots=True)
class Question:
    """What to find. `plain` is one text in the caller's own words, asked in one way or in both.

    Where it is asked in both, a generator may put it otherwise.
    """

    searches: tuple[Search, ...]
    filter: Filter
    plain: bool = False
    limit: int = 10
    min_score: float = 0.0
    intent: str = ""
    rerank: bool = False
    candidates: int = 30
    """How many of the best a reranker looks at."""
    embed: str = "commonplace embed"
    """The command that makes vectors, as this caller types it."""

    @property
    def no_vectors(self) -> str:
        """The sentence for a library without vectors."""
        return f"Vector index not found. Run '{self.embed}' first to create embeddings."


@dataclass(frozen=True, slots=True)
class Made:
    """A list, the search it answers, and what it weighs."""

    search: Search
    weight: float
    listed: Listed
    role: Role


@dataclass(frozen=True, slots=True)
class Placed:
    """One hit before it is presented: an item at its best passage, and what went into its score."""

    item_id: int
    chunk_id: int
    score: float
    rank: int
    """Among the fused, from 1."""
    retrieval: float
    reranked: float | None
    fused: Fused


@dataclass(frozen=True, slots=True)
class Answer:
    """Hits best first, and what the caller should know."""

    hits: tuple[Placed, ...]
    lists: tuple[Made, ...]
    stages: tuple[Stage, ...]
    notes: tuple[str, ...]
    terms: tuple[Term, ...]
    """What the words of the searches became, for snippets."""
    intent: tuple[Term, ...]
    languages: tuple[str, ...]


class Hybrid:
    """Runs typed searches over one space."""

    def __init__(
        self,
        store: Store,
        lexical: WordIndex,
        semantic: SemanticSource,
        lacking: Callable[[Sequence[str]], int],
        *,
        budgets: Budgets = Budgets(),
        generator: Generator | None = None,
        reranker: Reranker | None = None,
        look: SecondLook | None = None,
    ) -> None:
        """`lacking`: how many documents of these parents, or of all, have a passage without a vector.

        `look`: what is built in, for where there is no reranker.
        """
        self.store, self.semantic, self.budgets, self.reranker, self.look = store, semantic, budgets, reranker, look
        self.expansion = Expansion(generator) if generator else None
        self._lexical, self._lacking = lexical, lacking
        self._pending: dict[tuple[str, ...], tuple[int, int]] = {}

    def find(self, question: Question) -> Answer:
        """Raises Unavailable where only meaning is asked for and nothing in scope has a vector."""
        return self._lexical.ask(lambda words: _Finding(self, question, words).run())

    def names_of(self, items: Sequence[int]) -> Mapping[int, str]:
        return self.store.files_of(items)

    def pending(self, parents: tuple[str, ...]) -> int:
        """How many documents in scope lack vectors, counted once per change."""
        change = self.store.last_change()
        known = self._pending.get(parents)
        if known is None or known[0] != change:
            if len(self._pending) >= 100:
                self._pending.clear()
            known = self._pending[parents] = change, self._lacking(parents)
        return known[1]


@dataclass(frozen=True, slots=True)
class _Task:
    """A search with what its text means here: where its phrases and exclusions let it look, and its plain words."""

    search: Search
    weight: float
    parsed: Parsed
    scope: Scope
    role: Role

    @property
    def meaning(self) -> str:
        return " ".join((self.parsed.words, *self.parsed.prefixes))


class _Finding:
    """One question on its way to an answer."""

    def __init__(self, engine: Hybrid, question: Question, words: WordReader) -> None:
        self._engine, self._question, self._clock = engine, question, Clock(MODELS_S)
        self._stages, self._notes = Stages(), list[str]()
        self._terms: dict[tuple[str, ...], Term] = {}
        self._reader = words
        self._meaning: Meaning | None = None
        self._plans: dict[str, LexicalPlan] = {}
        self._mass = self._nearness = 0.0  # what the words that are looked for weigh, and what their meaning does
        self._languages = words.languages()
        intent = query_terms(question.intent, self._languages) if question.intent else ()
        self._intent = tuple(term for term in intent if term.weight >= 1)
        items = max(LEAST_DOCUMENTS, PER_HIT * question.limit)
        alone = len(question.searches) == 1 and not question.rerank
        self._depth = Depth(items, question.limit if alone else items)
        self._words = WordSearch(words, self._depth, engine.names_of, self._intent)
        self._only_meaning = all(search.kind != "lex" for search in question.searches)
        kinds = question.filter.kinds
        self._scope = Scope(kinds=() if words.is_all(kinds) else kinds, parents=question.filter.parents)

    def run(self) -> Answer:
        question = self._question
        tasks = self._tasks()
        meanings = self._meanings(tasks)
        made = self._by_words(tasks) + self._by_meaning(tasks, meanings)
        made += self._by_variants(made, meanings)
        hits = self._reranked(self._scored(made))
        if meanings is not None:
            self._note_pending()
        far = bool(hits) and (hits[0].score < CLOSE or self._only_meaning)
        if far and not any(one.listed.apart for one in made) and any(map(_tells, self._plans.values())):
            self._notes.append(NOT_CLOSE)
        kept = tuple(hit for hit in hits if hit.score >= question.min_score)[: question.limit]
        self._forget_useless(made, kept)
        stages = tuple(sorted(self._stages.done, key=lambda stage: _STAGES.index(stage.name)))
        terms = tuple(self._terms.values())
        return Answer(kept, tuple(made), stages, tuple(self._notes), terms, self._intent, self._languages)

    # lists

    def _tasks(self) -> list[_Task]:
        """A plain text means the same in both of its searches; of typed ones only `lex` has a syntax."""
        question, tasks = self._question, list[_Task]()
        for number, search in enumerate(question.searches):
            if question.plain and tasks:
                tasks.append(replace(tasks[0], search=search))
            elif question.plain:
                tasks.append(self._task(search, OWN, "original"))
            else:
                tasks.append(self._task(search, OWN if number == 0 else OTHER, "typed"))
        return tasks

    def _task(self, search: Search, weight: float, role: Role) -> _Task:
        if search.kind != "lex":
            return _Task(search, weight, Parsed(search.text), self._scope, role)
        parsed = parse(search.text)
        bounds = self._words.bounds(parsed, self._scope)
        self._notes += [note for note in bounds.notes if note not in self._notes]
        return _Task(search, weight, parsed, bounds.scope, role)

    def _by_words(self, tasks: Sequence[_Task]) -> list[Made]:
        return [
            Made(task.search, task.weight, self._stages.timed("lexical", partial(self._word_list, task)), task.role)
            for task in tasks
            if task.search.kind == "lex"
        ]

    def _word_list(self, task: _Task) -> Listed:
        if task.parsed.only_excluded:
            return Listed()
        listed, plan = self._words.find(task.parsed, task.scope)
        self._plans.setdefault(task.meaning, plan)
        self._learn(plan.query.terms, plan.languages)
        if task.role != "variant" and listed.items:
            self._notes += [note for note in plan.guesses if note not in self._notes]
        if listed.items:
            self._mass = max(self._mass, plan.mass)
        return listed

    def _learn(self, terms: Sequence[Term], languages: Sequence[str]) -> None:
        """What is looked for, and in which languages."""
        self._terms.update({term.forms: term for term in terms})
        self._languages = tuple(dict.fromkeys((*self._languages, *languages)))

    def _meanings(self, tasks: Sequence[_Task]) -> MeaningSearch | None:
        """The vector side, if these searches need one and it is there; otherwise the stage says why not."""
        wanted = [task for task in tasks if task.search.kind != "lex"]
        if not wanted:
            return None
        try:
            with hurried(None if self._only_meaning else self._clock.left(self._engine.budgets.embed)):
                semantic = self._engine.semantic()
        except Unavailable as error:
            missing = error.code == "vector_index_missing"
            if self._only_meaning:
                raise (Unavailable(self._question.no_vectors, code=error.code) if missing else error) from None
            why = f"{error.reason[:1].upper()}{error.reason[1:]}."
            self._go_without(self._question.no_vectors if missing else why)
            return None
        meanings = MeaningSearch(semantic, self._depth, self._engine.names_of)
        if not self._only_meaning and not meanings.reads(" ".join(task.meaning for task in wanted), self._languages):
            self._go_without(f"The model {semantic.embedder.name} does not read this script.")
            return None
        return meanings

    def _go_without(self, reason: str) -> None:
        self._stages.skip("vector", reason)
        self._notes.append(f"keyword search only. {reason}")

    def _by_meaning(self, tasks: Sequence[_Task], meanings: MeaningSearch | None) -> list[Made]:
        wanted = [task for task in tasks if task.search.kind != "lex" and not task.parsed.only_excluded]
        if meanings is None or not wanted:
            return []
        if self._only_meaning:
            for task in wanted:
                plan = self._plan(task.meaning)
                self._learn([term for term in plan.query.terms if term.match == "word"], plan.languages)
        try:
            lists = self._stages.timed("vector", lambda: self._near(wanted, meanings))
        except Left as left:
            self._stages.leave("vector", left)
            reason = str(left).removesuffix(".")
            self._notes.append(f"keyword search only. Embedding the query was left out: {reason}.")
            return []
        bounded = any(task.scope.items is not None for task in wanted)
        if not bounded and not any(listed.items for listed in lists) and self._pending():
            if self._only_meaning:
                raise Unavailable(self._question.no_vectors, code="vector_index_missing")
            self._go_without(self._question.no_vectors)
            return []
        pairs = zip(wanted, lists, strict=True)
        return [Made(task.search, task.weight, listed, task.role) for task, listed in pairs]

    def _pending(self) -> int:
        return self._engine.pending(self._question.filter.parents)

    def _near(self, tasks: Sequence[_Task], meanings: MeaningSearch) -> list[Listed]:
        texts = [(task.search.kind == "hyde", task.meaning) for task in tasks]
        if self._only_meaning:  # without it there would be no answer at all
            vectors = meanings.embedded(texts)
        else:
            seconds = self._clock.left(self._engine.budgets.embed)
            vectors = within(seconds, lambda: meanings.embedded(texts))
        if self._meaning is None and tasks[0].search.text == self._question.searches[0].text:
            self._meaning = Meaning(meanings.semantic, vectors[0])
        weights = [meanings.weight(task.meaning, self._languages) for task in tasks]
        self._nearness = max(self._nearness, *weights)
        everything = self._engine.store.select(self._question.filter)
        return [
            meanings.find(vector, task.scope, everything, self._reader.passages(), alike=True)
            if task.search.kind == "hyde"
            else meanings.find(
                vector,
                task.scope,
                everything,
                self._reader.passages(),
                self._most(task.meaning, meanings),
                complete=self._complete(task),
            )
            for task, vector in zip(tasks, vectors, strict=True)
        ]

    def _complete(self, task: _Task) -> Ids:
        """The passages in scope with all words of a text, where they are few and no list by words has them."""
        leg = LexicalLeg(self._reader, self._plan(task.meaning), task.scope)
        return leg.inside(leg.complete()) if self._only_meaning else NONE

    def _most(self, text: str, meanings: MeaningSearch) -> float:
        """What nothing scores more than by its nearness to a text: little, where its words say nothing."""
        return highest(told(self._plan(text), meanings.semantic.embedder))

    def _plan(self, text: str) -> LexicalPlan:
        """What the words of a text mean to this library."""
        if text not in self._plans:
            self._plans[text] = plan_lexical(Parsed(text), self._reader)
        return self._plans[text]

    def _by_variants(self, made: Sequence[Made], meanings: MeaningSearch | None) -> list[Made]:
        question, expansion = self._question, self._engine.expansion
        if not question.plain or len(question.searches) == 1:
            return []
        reason = "no generator is configured" if expansion is None else None
        if reason is None and not question.intent and stands_out(made[0].listed.scores):
            reason = "the best keyword match stands out"
        if expansion is None or reason is not None:
            self._stages.skip("expand", str(reason))
            return []
        text = question.searches[0].text
        try:
            seconds = self._clock.left(self._engine.budgets.expand)
            variants = self._stages.timed("expand", lambda: expansion.variants(text, self._languages, seconds))
        except Left as left:
            self._stages.leave("expand", left)
            return []
        tasks = [self._task(variant, OTHER, "variant") for variant in variants]
        return self._by_words(tasks) + (self._near_variants(tasks, meanings) if made[1:] else [])

    def _near_variants(self, tasks: Sequence[_Task], meanings: MeaningSearch | None) -> list[Made]:
        """What is near the variants. Where that is late, the query itself has been searched by meaning all the same."""
        wanted = [task for task in tasks if task.search.kind != "lex" and not task.parsed.only_excluded]
        if meanings is None or not wanted:
            return []
        try:
            lists = self._stages.timed("vector", lambda: self._near(wanted, meanings))
        except Left as left:
            self._stages.leave("expand", left)
            return []
        return [Made(task.search, task.weight, found, task.role) for task, found in zip(wanted, lists, strict=True)]

    # one order, one scale

    def _scored(self, made: Sequence[Made]) -> list[Placed]:
        """The best in the fused order, with scores that fall along it: as many as may be shown or reranked."""
        fusion = Fusion([(one.listed.items, one.weight) for one in made])
        wanted = self._question.limit + (self._question.candidates if self._question.rerank else 0)
        if len(made) == 1:
            order, scores = fusion.items, list(made[0].listed.scores)
        else:
            words, meaning = (
                best_of(one.listed for one in made if (one.search.kind == "lex") == lex) for lex in (1, 0)
            )
            first = frozenset[int]().union(*(one.listed.together for one in made if one.role != "variant"))
            order = self._order(
                {item: (item not in first, -fusion.of(item).total, -words.get(item, 0.0)) for item in fusion.items}
            )
            share = belief(weigh(self._mass, self._nearness))
            scores = falling([retrieved(words.get(item, 0.0), share * meaning.get(item, 0.0)) for item in order])
        return [
            Placed(item, _passage(made, fused), score, rank, score, None, fused)
            for rank, (item, score) in enumerate(zip(order[:wanted], scores, strict=False), start=1)
            for fused in (fusion.of(item),)
        ]

    def _order(self, keys: Mapping[int, tuple[bool, float, float]]) -> list[int]:
        """Items by their keys; equals by name, which is looked up only where there are any."""
        order = sorted(keys, key=keys.__getitem__)
        equal = {item for pair in pairwise(order) if keys[pair[0]] == keys[pair[1]] for item in pair}
        if not equal:
            return order
        names = self._engine.names_of(sorted(equal))
        return sorted(order, key=lambda item: (keys[item], names.get(item, "")))

    def _reranked(self, hits: list[Placed]) -> list[Placed]:
        question, engine = self._question, self._engine
        if not question.rerank or (engine.reranker is None and engine.look is None):
            if question.rerank or len(question.searches) > 1:
                self._stages.skip("rerank", "no reranker is configured" if question.rerank else "it was not asked for")
            return hits
        first = hits[: question.candidates]
        try:
            scores = self._stages.timed("rerank", lambda: self._second_scores(first))
        except Left as left:
            self._stages.leave("rerank", left)
            return hits
        looked_at = [
            replace(hit, score=blended(hit.rank, hit.retrieval, score), reranked=score)
            for hit, score in zip(first, scores, strict=True)
        ]
        return sorted([*looked_at, *hits[len(first) :]], key=lambda hit: (-hit.score, hit.rank))

    def _second_scores(self, hits: Sequence[Placed]) -> Sequence[float | None]:
        """By the reranker that is configured, or else by what is built in, which keeps to its time by itself."""
        engine, text = self._engine, self._question.searches[0].text
        seconds = self._clock.left(engine.budgets.rerank)
        if engine.reranker is None:
            assert engine.look is not None  # noqa: S101  # the caller has seen to it
            look = FusedLook(engine.look, self._reader, parse(text), self._meaning)
            scores = look.scores([hit.chunk_id for hit in hits], min(time_for(self._clock.spent), seconds))
            return on_scale_of([hit.retrieval for hit in hits], scores)
        asked = f"{self._question.intent}\n{text}" if self._question.intent else text
        reranker, passages = engine.reranker, self._passages(hits)
        return within(seconds, lambda: list(reranker.score(asked, passages)))

    def _passages(self, hits: Sequence[Placed]) -> list[str]:
        """What a reranker reads of each: where the passage stands, then what it says."""
        chunks = {chunk.id: chunk for chunk in self._engine.store.chunks([hit.chunk_id for hit in hits])}
        titles = {item.id: item.title for item in self._engine.store.items([hit.item_id for hit in hits])}
        texts = []
        for hit in hits:
            chunk = chunks.get(hit.chunk_id)
            place = dict.fromkeys(filter(None, (titles.get(hit.item_id, ""), *(chunk.headings if chunk else ()))))
            texts.append("\n".join(filter(None, (" › ".join(place), chunk.text if chunk else ""))))
        return texts

    # what else there is to say

    def _note_pending(self) -> None:
        pending = self._pending()
        if pending and not any(note.startswith("keyword search only") for note in self._notes):
            have = "document has" if pending == 1 else "documents have"
            self._notes.append(
                f"{pending} {have} no vectors yet and could be found by words only. "
                f"Run '{self._question.embed}' to make them."
            )

    def _forget_useless(self, made: Sequence[Made], hits: Sequence[Placed]) -> None:
        """Variants that brought no hit are not worth remembering."""
        variants = {number for number, one in enumerate(made) if one.role == "variant"}
        if not variants or self._engine.expansion is None:
            return
        if not any(place.list in variants for hit in hits for place in hit.fused.places):
            self._engine.expansion.forget(self._question.searches[0].text)


def _tells(plan: LexicalPlan) -> bool:
    """Whether words were asked for that say which texts are meant, or that no text has."""
    return bool(plan.unknown) or plan.telling >= TELLS


def _passage(made: Sequence[Made], fused: Fused) -> int:
    """The passage that the first list with the item found: lists by words come first."""
    first = fused.places[0]
    return made[first.list].listed.chunks[first.rank - 1]
