"""Several typed searches as one answer: a ranked list each, fused by rank, scored on one scale, reranked and explained.

The legs, the plan and the indexes are the ones every search uses. What differs is what a contract asks for: items are
judged over all of their text, lists are fused by reciprocal ranks, and the number of a hit is calibrated apart from
its place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from commonplace.errors import Sentence, Unavailable
from commonplace.index.followers import WordIndex, WordReader
from commonplace.index.scope import Ids, Scope
from commonplace.models.roles import Generator, Reranker
from commonplace.search.blend import OTHER, OWN, belief, blended, on_scale_of, stands_out
from commonplace.search.engine import Budgets, Clock, SemanticSource, StageOmitted, Stages, in_time, within
from commonplace.search.legs import LexicalLeg, telling_for, weigh
from commonplace.search.lists import NONE, Depth, Listed, MeaningSearch, WordSearch
from commonplace.search.plan import LexicalPlan, plan_lexical
from commonplace.search.question import (
    Expansion,
    HybridAnswer,
    PlacedHit,
    Question,
    RankedList,
    Role,
    Search,
    SearchTask,
    merged,
    passages_to_rerank,
)
from commonplace.search.request import Parsed, parse
from commonplace.search.rerank import FusedLook, Meaning, SecondLook, time_for
from commonplace.search.scale import CLOSE, NOT_CLOSE, TELLS, highest
from commonplace.store.base import Store
from commonplace.store.items import Items
from commonplace.store.listing import Listing
from commonplace.text.terms import Term, query_terms

LEAST_DOCUMENTS = 100
PER_HIT = 5
MODELS_S = 4.5
"""What all stages with a model may take together, whatever each may: so an answer is there within five seconds."""

_STAGES = ("lexical", "vector", "expand", "rerank")


class Hybrid:
    """The engine of typed searches over one space."""

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
        """Keep what searches use.

        `lacking`: returns how many documents of these parents, or of all, have a passage without a vector.

        `look`: what is built in, for where there is no reranker.
        """
        self.store, self.semantic, self.budgets, self.reranker, self.look = store, semantic, budgets, reranker, look
        self.expansion = Expansion(generator) if generator else None
        self._lexical, self._lacking = lexical, lacking
        self._pending: dict[tuple[str, ...], tuple[int, int]] = {}

    def find(self, question: Question) -> HybridAnswer:
        """Return the answer. Raise Unavailable where only meaning is asked for and nothing in scope has a vector."""
        return self._lexical.ask(lambda words: _HybridSearch(self, question, words).run())

    def names_of(self, items: Sequence[int]) -> Mapping[int, str]:
        return self.store.drawer(Items).files(items)

    def pending(self, parents: tuple[str, ...]) -> int:
        """Return the number of documents in scope that lack vectors, counted once per change."""
        change = self.store.last_change()
        known = self._pending.get(parents)
        if known is None or known[0] != change:
            if len(self._pending) >= 100:
                self._pending.clear()
            known = self._pending[parents] = change, self._lacking(parents)
        return known[1]


class _HybridSearch:
    """A search for the answer to one question, on one commit of the index."""

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

    def run(self) -> HybridAnswer:
        question = self._question
        tasks = self._tasks()
        meanings = self._meanings(tasks)
        lists = self._by_words(tasks) + self._by_meaning(tasks, meanings)
        lists += self._by_variants(lists, meanings)
        hits = self._rerank(self._merged(lists))
        if meanings is not None:
            self._note_pending()
        far = bool(hits) and (hits[0].score < CLOSE or self._only_meaning)
        if far and not any(one.listed.apart for one in lists) and any(map(_tells, self._plans.values())):
            self._notes.append(NOT_CLOSE)
        shown = tuple(hit for hit in hits if hit.score >= question.min_score)[: question.limit]
        self._forget_useless(lists, shown)
        stages = tuple(sorted(self._stages.done, key=lambda stage: _STAGES.index(stage.name)))
        terms = tuple(self._terms.values())
        return HybridAnswer(shown, tuple(lists), stages, tuple(self._notes), terms, self._intent, self._languages)

    # lists

    def _tasks(self) -> list[SearchTask]:
        """Return a task per search.

        A plain text means the same in both of its searches; of typed ones only `lex` has a syntax.
        """
        question, tasks = self._question, list[SearchTask]()
        for number, search in enumerate(question.searches):
            if question.plain and tasks:
                tasks.append(replace(tasks[0], search=search))
            elif question.plain:
                tasks.append(self._task(search, OWN, "original"))
            else:
                tasks.append(self._task(search, OWN if number == 0 else OTHER, "typed"))
        return tasks

    def _task(self, search: Search, weight: float, role: Role) -> SearchTask:
        if search.kind != "lex":
            return SearchTask(search, weight, Parsed(search.text), self._scope, role)
        parsed = parse(search.text)
        bounds = self._words.bounds(parsed, self._scope)
        self._notes += [note for note in bounds.notes if note not in self._notes]
        return SearchTask(search, weight, parsed, bounds.scope, role)

    def _by_words(self, tasks: Sequence[SearchTask]) -> list[RankedList]:
        return [
            RankedList(
                task.search, task.weight, self._stages.timed("lexical", partial(self._word_list, task)), task.role
            )
            for task in tasks
            if task.search.kind == "lex"
        ]

    def _word_list(self, task: SearchTask) -> Listed:
        if task.parsed.only_excluded:
            return Listed()
        listed, plan = self._words.find(task.parsed, task.scope)
        self._plans.setdefault(task.meaning, plan)
        self._add_terms(plan.query.terms, plan.languages)
        if task.role != "variant" and listed.items:
            self._notes += [note for note in plan.guesses if note not in self._notes]
        if listed.items:
            self._mass = max(self._mass, plan.mass)
        return listed

    def _add_terms(self, terms: Sequence[Term], languages: Sequence[str]) -> None:
        """Add terms that are looked for, and the languages they were stemmed in."""
        self._terms.update({term.forms: term for term in terms})
        self._languages = tuple(dict.fromkeys((*self._languages, *languages)))

    def _meanings(self, tasks: Sequence[SearchTask]) -> MeaningSearch | None:
        """Return the vector side, if these searches need one and it is there; otherwise the stage says why not."""
        wanted = [task for task in tasks if task.search.kind != "lex"]
        if not wanted:
            return None
        seconds = None if self._only_meaning else self._clock.left(self._engine.budgets.embed)
        semantic = in_time(self._engine.semantic, seconds)
        if isinstance(semantic, Unavailable):
            missing = semantic.code == "vector_index_missing"
            if self._only_meaning:
                raise (Unavailable(self._question.no_vectors, code=semantic.code) if missing else semantic) from None
            self._skip_vector(self._question.no_vectors if missing else Sentence(semantic.reason.capitalized(), "."))
            return None
        meanings = MeaningSearch(semantic, self._depth, self._engine.names_of)
        if not self._only_meaning and not meanings.reads(" ".join(task.meaning for task in wanted), self._languages):
            self._skip_vector(f"The model {semantic.embedder.name} does not read this script.")
            return None
        return meanings

    def _skip_vector(self, reason: str) -> None:
        self._stages.skip("vector", reason)
        self._notes.append(Sentence("keyword search only. ", reason))

    def _by_meaning(self, tasks: Sequence[SearchTask], meanings: MeaningSearch | None) -> list[RankedList]:
        wanted = [task for task in tasks if task.search.kind != "lex" and not task.parsed.only_excluded]
        if meanings is None or not wanted:
            return []
        if self._only_meaning:
            for task in wanted:
                plan = self._plan(task.meaning)
                self._add_terms([term for term in plan.query.terms if term.match == "word"], plan.languages)
        try:
            lists = self._stages.timed("vector", lambda: self._near_lists(wanted, meanings))
        except StageOmitted as left:
            self._stages.leave("vector", left)
            reason = str(left).removesuffix(".")
            self._notes.append(f"keyword search only. Embedding the query was left out: {reason}.")
            return []
        bounded = any(task.scope.items is not None for task in wanted)
        if not bounded and not any(listed.items for listed in lists) and self._pending():
            if self._only_meaning:
                raise Unavailable(self._question.no_vectors, code="vector_index_missing")
            self._skip_vector(self._question.no_vectors)
            return []
        pairs = zip(wanted, lists, strict=True)
        return [RankedList(task.search, task.weight, listed, task.role) for task, listed in pairs]

    def _pending(self) -> int:
        return self._engine.pending(self._question.filter.parents)

    def _near_lists(self, tasks: Sequence[SearchTask], meanings: MeaningSearch) -> list[Listed]:
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
        everything = self._engine.store.drawer(Listing).select(self._question.filter)
        return [
            meanings.find(vector, task.scope, everything, self._reader.passages(), alike=True)
            if task.search.kind == "hyde"
            else meanings.find(
                vector,
                task.scope,
                everything,
                self._reader.passages(),
                self._highest_nearness(task.meaning, meanings),
                complete=self._complete_passages(task),
            )
            for task, vector in zip(tasks, vectors, strict=True)
        ]

    def _complete_passages(self, task: SearchTask) -> Ids:
        """Return the passages in scope with all words of a text, where they are few and no list by words has them."""
        leg = LexicalLeg(self._reader, self._plan(task.meaning), task.scope)
        return leg.inside(leg.complete()) if self._only_meaning else NONE

    def _highest_nearness(self, text: str, meanings: MeaningSearch) -> float:
        """Return the highest score by nearness to a text: low where its words say nothing."""
        return highest(telling_for(self._plan(text), meanings.semantic.embedder))

    def _plan(self, text: str) -> LexicalPlan:
        """Return the plan of a text's words in this library, made once."""
        if text not in self._plans:
            self._plans[text] = plan_lexical(Parsed(text), self._reader)
        return self._plans[text]

    def _by_variants(self, lists: Sequence[RankedList], meanings: MeaningSearch | None) -> list[RankedList]:
        question, expansion = self._question, self._engine.expansion
        if not question.plain or len(question.searches) == 1:
            return []
        reason = "no generator is configured" if expansion is None else None
        if reason is None and not question.intent and stands_out(lists[0].listed.scores):
            reason = "the best keyword match stands out"
        if expansion is None or reason is not None:
            self._stages.skip("expand", str(reason))
            return []
        text = question.searches[0].text
        try:
            seconds = self._clock.left(self._engine.budgets.expand)
            variants = self._stages.timed("expand", lambda: expansion.variants(text, self._languages, seconds))
        except StageOmitted as left:
            self._stages.leave("expand", left)
            return []
        tasks = [self._task(variant, OTHER, "variant") for variant in variants]
        return self._by_words(tasks) + (self._near_variants(tasks, meanings) if lists[1:] else [])

    def _near_variants(self, tasks: Sequence[SearchTask], meanings: MeaningSearch | None) -> list[RankedList]:
        """Return the lists by meaning of the variants; none where that is late: the query itself has been searched."""
        wanted = [task for task in tasks if task.search.kind != "lex" and not task.parsed.only_excluded]
        if meanings is None or not wanted:
            return []
        try:
            lists = self._stages.timed("vector", lambda: self._near_lists(wanted, meanings))
        except StageOmitted as left:
            self._stages.leave("expand", left)
            return []
        return [
            RankedList(task.search, task.weight, found, task.role) for task, found in zip(wanted, lists, strict=True)
        ]

    # one order, one scale

    def _merged(self, lists: Sequence[RankedList]) -> list[PlacedHit]:
        """Return as many of the best as may be shown or reranked."""
        question = self._question
        most = question.limit + (question.candidates if question.rerank else 0)
        return merged(lists, most, belief(weigh(self._mass, self._nearness)), self._engine.names_of)

    def _rerank(self, hits: list[PlacedHit]) -> list[PlacedHit]:
        question, engine = self._question, self._engine
        if not question.rerank or (engine.reranker is None and engine.look is None):
            if question.rerank or len(question.searches) > 1:
                self._stages.skip("rerank", "no reranker is configured" if question.rerank else "it was not asked for")
            return hits
        first = hits[: question.candidates]
        try:
            scores = self._stages.timed("rerank", lambda: self._rerank_scores(first))
        except StageOmitted as left:
            self._stages.leave("rerank", left)
            return hits
        looked_at = [
            replace(hit, score=blended(hit.rank, hit.retrieval, score), reranked=score)
            for hit, score in zip(first, scores, strict=True)
        ]
        return sorted([*looked_at, *hits[len(first) :]], key=lambda hit: (-hit.score, hit.rank))

    def _rerank_scores(self, hits: Sequence[PlacedHit]) -> Sequence[float | None]:
        """Return scores of the configured reranker, or else of the built-in one, which keeps to its time by itself."""
        engine, text = self._engine, self._question.searches[0].text
        seconds = self._clock.left(engine.budgets.rerank)
        if engine.reranker is None:
            assert engine.look is not None  # noqa: S101  # the caller has seen to it
            look = FusedLook(engine.look, self._reader, parse(text), self._meaning)
            scores = look.scores([hit.chunk_id for hit in hits], min(time_for(self._clock.spent), seconds))
            return on_scale_of([hit.retrieval for hit in hits], scores)
        asked = f"{self._question.intent}\n{text}" if self._question.intent else text
        reranker, passages = engine.reranker, passages_to_rerank(engine.store, hits)
        return within(seconds, lambda: list(reranker.score(asked, passages)))

    # what else there is to say

    def _note_pending(self) -> None:
        pending = self._pending()
        if pending and not any(note.startswith("keyword search only") for note in self._notes):
            have = "document has" if pending == 1 else "documents have"
            self._notes.append(
                Sentence(
                    f"{pending} {have} no vectors yet and could be found by words only. Run '",
                    self._question.embed,
                    "' to make them.",
                )
            )

    def _forget_useless(self, lists: Sequence[RankedList], hits: Sequence[PlacedHit]) -> None:
        """Forget variants that brought no hit: they are not worth remembering."""
        variants = {number for number, one in enumerate(lists) if one.role == "variant"}
        if not variants or self._engine.expansion is None:
            return
        if not any(place.list in variants for hit in hits for place in hit.fused.places):
            self._engine.expansion.forget(self._question.searches[0].text)


def _tells(plan: LexicalPlan) -> bool:
    """Return whether a plan has words that say which texts are meant, or that no text has."""
    return bool(plan.unknown) or plan.telling >= TELLS
