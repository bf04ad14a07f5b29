"""The one search: parse, plan, retrieve, filter, fuse, rerank, calibrate, present. Every surface runs this."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from commonplace.errors import Unavailable
from commonplace.index.followers import WordIndex, WordReader
from commonplace.index.scope import Ids
from commonplace.lazy_dataclass import dataclass
from commonplace.model import CHUNK_BITS, Item, Page
from commonplace.search.engine import (
    EMBED_S,
    Floats,
    Legs,
    Proposed,
    Recipe,
    Semantic,
    SemanticSource,
    Stages,
    in_time,
    no_passages,
    rank,
)
from commonplace.search.legs import LexicalLeg, VectorLeg, Weights, trust_for
from commonplace.search.look import Look, Scopes
from commonplace.search.plan import LexicalPlan, plan_lexical, plan_telling
from commonplace.search.present import Presenter, RankedRows
from commonplace.search.ranking import (
    Ranking,
    best_per_item,
    doubts,
    enough,
    few_per_item,
    near_enough,
    ordered,
    rows_of,
    tied,
)
from commonplace.search.request import MOST_HITS, NO_WORD, Parsed, Request, parse
from commonplace.search.rerank import CANDIDATES, RerankCandidates, RerankQuery, SecondLook, reordered
from commonplace.search.scale import NO_SCALE
from commonplace.search.widen import READ, Widened, why_not, widened
from commonplace.store.base import Store
from commonplace.store.items import Items
from commonplace.store.messages import Messages

T = TypeVar("T")
NOT_FOUND = "No text has a word of the query, nor one like it."
ONLY_EXCLUDED = "The query has nothing but exclusions, so their words were looked for."
MOST_TELLING = 8
"""Words of a text that show where what is like it matches."""


@dataclass(frozen=True, slots=True)
class _UnreadPage:
    """A page before anything of it is read."""

    request: Request
    ranking: Ranking
    skipped: Ranking
    plan: LexicalPlan
    stages: Stages
    notes: tuple[str, ...]
    enough: Ids
    """The rows that score enough."""
    fresh: Ids
    """Those of them that no page before had."""

    @property
    def answer(self) -> RankedRows:
        return RankedRows(self.request, self.ranking, self.fresh[: self.request.limit].tolist(), self.plan)

    def page(self, presenter: Presenter, answer: RankedRows) -> Page:
        limit = self.request.limit
        return Page(
            tuple(self.stages.timed("present", lambda: presenter.hits(answer))),
            self.stages.done,
            self.notes,
            more=len(self.fresh) > limit,
            found=len(self.enough),
            items=tuple(dict.fromkeys((self.ranking.chunks[self.enough] >> CHUNK_BITS).tolist())),
            skipped=int(np.count_nonzero(enough(self.skipped.scores, self.request.min_score))),
            tied=tied(self.ranking.scores[self.fresh[: limit + 1]], limit),
            unplaced=self.ranking.unplaced,
        )


class Pipeline:
    """The engine of searches over one space. Each call reads indexes and store anew, once for all of its requests."""

    def __init__(self, store: Store, lexical: WordIndex, semantic: SemanticSource) -> None:
        self._store = store
        self._lexical = lexical
        self._semantic = semantic
        self._second_look = SecondLook(store)
        self._scopes = Scopes(store)

    def search(self, request: Request) -> Page:
        """Return the page of a request."""
        return self.search_all([request])[0]

    def search_all(self, requests: Sequence[Request]) -> list[Page]:
        """Return a page for each request, in their order, as each would have alone."""
        return self._with_look(lambda look: self._pages([self._unread_page(request, look) for request in requests]))

    def candidates(self, request: Request) -> tuple[RerankQuery, RerankCandidates]:
        """Return the query and the candidates of a second look, for learning its weights."""

        def work(look: Look) -> tuple[RerankQuery, RerankCandidates]:
            parsed, stages = parse(request.text), Stages()
            lexical = LexicalLeg(look.words, plan_lexical(parsed, look.words), look.scope(request))
            vector = self._vector_leg(request, parsed, look, stages)
            wide = lexical, vector
            if vector is not None and (first := self._expansion_seed(request, vector, stages)) is not request:
                wider = self._expand(self._rank_page(lexical, vector, first, stages), lexical, vector, look, stages)
                wide = wider.lexical, wider.vector
            ranking = self._rank_page(*wide, replace(request, rerank=True), stages)
            return self._rerank_query(lexical, vector, request, look), _candidates(ranking)

        return self._with_look(work)

    def related(self, item: Item, request: Request) -> Page:
        """Return what is like an item: its most telling words in the lexical leg, the mean of its vectors in the other.
        A conversation says what its messages do, which are not like it.
        """
        messages = self._store.drawer(Messages).of(item.key) if item.kind == "conversation" else []
        request = replace(request, exclude=request.exclude.union(messages))
        return self._with_look(lambda look: self._related(item, messages, request, look))

    def like(self, text: str, vector: Floats | None, request: Request) -> Page:
        """Return passages near a vector, or with the most telling words of the text it stands for if there is none."""
        return self._with_look(lambda look: self._like(text, vector, request, look))

    def _with_look(self, work: Callable[[Look], T]) -> T:
        return self._lexical.ask(lambda words: work(Look(words, self._semantic, self._scopes)))

    def _unread_page(self, request: Request, look: Look) -> _UnreadPage:
        """Return a page without its hits, which are read later for all pages at once."""
        stages, words = Stages(), look.words
        parsed, scope = parse(request.text), look.scope(request)
        lexical = LexicalLeg(words, stages.timed("plan", lambda: _plan_for(parsed, words, request)), scope)
        vector = self._vector_leg(request, parsed, look, stages)
        notes = [ONLY_EXCLUDED] if parsed.only_excluded else []
        if not lexical.plan.query and not vector:
            notes.append(NOT_FOUND if lexical.plan.mass else NO_WORD)
        first = self._expansion_seed(request, vector, stages)
        ranking = self._rank_page(lexical, vector, first, stages)
        skipped = self._skipped(lexical, vector, request, look)
        if lexical.plan.query.phrases and not len(ranking.chunks) and not len(skipped.chunks):
            lexical = LexicalLeg(words, _plan_for(replace(parsed, phrases=()), words, request), scope)
            ranking = self._rank_page(lexical, vector, first, stages)
            skipped = self._skipped(lexical, vector, request, look)
            notes.append("No passage has the quoted phrase, so its words were looked for.")
        if vector is not None and first is not request:
            wider = self._expand(ranking, lexical, vector, look, stages)
            ranking = self._rank_page(wider.lexical, wider.vector, request, stages)
            skipped = self._skipped(wider.lexical, wider.vector, request, look)
            notes += [wider.note] if request.explain else []
        ranking = self._rerank(ranking, lexical, vector, request, look, stages)
        notes += doubts(lexical, vector, ranking, only_meaning=request.mode == "semantic")
        rows = np.flatnonzero(enough(ranking.scores, request.min_score))
        fresh = _new_rows(ranking, rows, request)
        return _UnreadPage(request, ranking, skipped, lexical.plan, stages, tuple(notes), rows, fresh)

    def _pages(self, unread: Sequence[_UnreadPage]) -> list[Page]:
        """Return the pages. All hits are read at once, and that time is counted in the first page's presentation."""
        answers = [page.answer for page in unread]
        first = unread[0].stages if unread else Stages()
        presenter = first.timed("present", lambda: Presenter(self._store, answers))
        return [page.page(presenter, answer) for page, answer in zip(unread, answers, strict=True)]

    def _related(self, item: Item, messages: Sequence[int], request: Request, look: Look) -> Page:
        stages = Stages()
        texts = [item, *(self._store.drawer(Items).get(messages, body=True) if messages else ())]
        plan = plan_telling("\n".join(f"{text.title}\n{text.body or ''}" for text in texts), look.words)
        lexical = LexicalLeg(look.words, plan, look.scope(request))
        vector = self._vector_leg_of([text.id for text in texts], request, look, stages)
        ranking = self._rank_enough(lexical, vector, request.limit + 1, request, stages)
        others = np.flatnonzero(ranking.chunks >> CHUNK_BITS != item.id)
        answer = RankedRows(request, ranking, others[: request.limit].tolist(), plan)
        hits = Presenter(self._store, [answer]).hits(answer)
        return Page(tuple(hits), stages.done, more=len(others) > request.limit, found=len(others))

    def _like(self, text: str, vector: Floats | None, request: Request, look: Look) -> Page:
        stages, words = Stages(), look.words
        # With a vector they only tell which line of a passage matches, and a few tell that.
        telling = plan_telling(text, words) if vector is None else plan_telling(text, words, MOST_TELLING)
        plan = _with_naming(telling, request)
        leg, scope = None, look.scope(request)
        if vector is not None:
            semantic, items = look.semantic(), look.items(request)
            leg = VectorLeg(semantic.index, semantic.embedder, vector, items, trust=1.0, without=scope.without)
        request = replace(request, mode="semantic" if leg else "lexical")
        ranking = self._rank_enough(LexicalLeg(words, plan, scope), leg, request.limit, request, stages)
        answer = RankedRows(request, ranking, range(min(request.limit, len(ranking.chunks))), plan)
        hits = Presenter(self._store, [answer]).hits(answer)
        return Page(tuple(hits), stages.done, more=len(ranking.chunks) > request.limit, found=len(ranking.chunks))

    def _vector_leg_of(self, item_ids: Sequence[int], request: Request, look: Look, stages: Stages) -> VectorLeg | None:
        """Return the leg by the mean vector of items; None, with the stage skipped, where there is none."""
        semantic = in_time(look.semantic, None)
        if isinstance(semantic, Unavailable):
            stages.skip("vector", semantic.reason)
            return None
        mean = semantic.mean_of(*item_ids)
        if mean is None:
            stages.skip("vector", "the item has no vectors yet")
            return None
        items, without = look.items(request), look.scope(request).without
        return VectorLeg(semantic.index, semantic.embedder, mean, items, trust=1.0, without=without)

    # plan

    def _vector_leg(self, request: Request, parsed: Parsed, look: Look, stages: Stages) -> VectorLeg | None:
        """Return the leg by meaning; None, with the stage skipped, if it cannot run. Raise Unavailable if it must."""
        if request.mode == "lexical":
            stages.skip("vector", "only words were asked for")
            return None
        meaning, must = _meaning(parsed), request.mode == "semantic"

        def work() -> tuple[Semantic, Floats]:
            semantic = look.semantic()  # the first contact with a provider included
            if request.vector is not None:
                return semantic, request.vector
            return semantic, stages.timed("embed", lambda: semantic.embedder.embed_queries([meaning])[0])

        side = in_time(work, None if must else EMBED_S)
        if isinstance(side, Unavailable):
            if must:
                raise side
            stages.skip("vector", side.reason)
            return None
        semantic, query = side
        trust = trust_for(meaning, semantic.embedder, look.words.languages()[0])
        items, without = look.items(request), look.scope(request).without
        return VectorLeg(semantic.index, semantic.embedder, query, items, trust, without)

    # retrieve, fuse, calibrate

    def _rank_page(self, lexical: LexicalLeg, vector: VectorLeg | None, request: Request, stages: Stages) -> Ranking:
        """Return the ranking as far as the page reaches, or as a second look does: that is the same for all pages."""
        wanted = request.reach
        if request.rerank and wanted < CANDIDATES:
            request, wanted = replace(request, offset=0, shown=frozenset(), limit=CANDIDATES), CANDIDATES
        return self._rank_enough(lexical, vector, wanted, request, stages)

    def _expansion_seed(self, request: Request, vector: VectorLeg | None, stages: Stages) -> Request:
        """Return the request for the first pass: unchanged, or for the READ items whose words will expand the query."""
        if not request.expand:
            return request
        reason = "only meaning was asked for" if request.mode == "semantic" else why_not(vector)
        if reason:
            stages.skip("expand", reason)
            return request
        return replace(request, offset=0, shown=frozenset(), limit=READ, per_item=True, rerank=False)

    def _expand(self, ranking: Ranking, lexical: LexicalLeg, vector: VectorLeg, look: Look, stages: Stages) -> Widened:
        best, mean_of = _candidates(ranking), look.semantic().mean_of
        return stages.timed("expand", lambda: widened(self._store, best, lexical, vector, mean_of))

    def _rerank(
        self,
        ranking: Ranking,
        lexical: LexicalLeg,
        vector: VectorLeg | None,
        request: Request,
        look: Look,
        stages: Stages,
    ) -> Ranking:
        if not request.rerank or request.mode == "semantic":
            stages.skip("rerank", "only meaning was asked for" if request.rerank else "it was not asked for")
            return ranking
        query, candidates = self._rerank_query(lexical, vector, request, look), _candidates(ranking)
        values = stages.timed("rerank", lambda: self._second_look.scores(query, candidates))
        seen = len(values)
        unknown = np.isnan(ranking.vector[:seen])
        fresh = ranking.scale.scores(ranking.chunks[:seen], values, unknown).astype(np.float32)
        rows, scores = reordered(fresh, ranking.scores)
        return replace(rows_of(ranking, rows), scores=scores)

    def _rerank_query(self, lexical: LexicalLeg, vector: VectorLeg | None, request: Request, look: Look) -> RerankQuery:
        mean_of = look.semantic().mean_of if vector is not None else None
        return RerankQuery(meaning_of(request.text), lexical.plan, lexical.index.languages()[0], vector, mean_of)

    def _rank_enough(
        self, lexical: LexicalLeg, vector: VectorLeg | None, wanted: int, request: Request, stages: Stages
    ) -> Ranking:
        """Return enough passages for the page, however many of them belong to the same few items."""
        if vector is not None and vector.items is not None:
            # They were read for the vectors, and tell an index by words what its fields let through.
            lexical = replace(lexical, scope=replace(lexical.scope, known=vector.items))
        legs = Legs(lexical, vector, by_words=request.mode != "semantic")
        return rank(recipe_of(request, vector, wanted, stages), legs, wanted, stages)

    def _skipped(self, lexical: LexicalLeg, vector: VectorLeg | None, request: Request, look: Look) -> Ranking:
        """Return the ranking of the items that are left out, which is empty where none are."""
        left_out = request.exclude.difference(look.replaced(request)) if request.exclude else ()
        without = np.array(sorted(left_out), dtype=np.int64)
        if not len(without):
            chunks, scores = no_passages()
            return Ranking(chunks, scores, scores, scores, Weights(0.0, 0.0), NO_SCALE)
        items = without if lexical.scope.items is None else np.intersect1d(without, lexical.scope.items)
        words = replace(lexical, scope=replace(lexical.scope, items=items, without=None))
        if vector is not None:
            near = without if vector.items is None else np.intersect1d(without, vector.items)
            vector = replace(vector, items=near, without=None)
        return self._rank_enough(words, vector, len(without), replace(request, per_item=True), Stages())


def _plan_for(parsed: Parsed, words: WordReader, request: Request) -> LexicalPlan:
    return _with_naming(plan_lexical(parsed, words), request)


def _with_naming(plan: LexicalPlan, request: Request) -> LexicalPlan:
    return plan if request.by_name else replace(plan, query=replace(plan.query, by_name=False))


def _new_rows(ranking: Ranking, rows: Ids, request: Request) -> Ids:
    """Return the rows that no page before had."""
    rows = rows[request.offset :]
    if not request.shown:
        return rows
    items = (ranking.chunks[rows] >> CHUNK_BITS).tolist()
    return rows[[item not in request.shown for item in items]]


def meaning_of(text: str) -> str:
    """Return the part of a query that is embedded: its words and beginnings."""
    return _meaning(parse(text))


def _meaning(parsed: Parsed) -> str:
    return " ".join((parsed.words, *parsed.prefixes))


def _candidates(ranking: Ranking) -> RerankCandidates:
    return RerankCandidates(ranking.chunks, ranking.lexical, ranking.vector, ranking.weights).first(CANDIDATES)


def recipe_of(request: Request, vector: VectorLeg | None, wanted: int, stages: Stages) -> Recipe[Ranking]:
    """Return the recipe of the default search: passages by the weighted mean of both legs, an item at its best.

    Every candidate has exact scores of both, so the order is that of the scores, however deep the legs were asked.
    """
    least = _least_nearness(vector, request)
    reach = request.reach + 1 if least == -np.inf else MOST_HITS  # one more than shown, to know whether there is more

    def fusion(legs: Legs, found: Proposed) -> Ranking:
        fused = legs.vector is not None and legs.by_words
        ranking = stages.timed("fuse", lambda: ordered(legs, found, reach)) if fused else ordered(legs, found, reach)
        ranking = near_enough(ranking, least)
        if request.per_item:
            return best_per_item(ranking)
        return few_per_item(ranking, request.most_per_item) if request.most_per_item else ranking

    return Recipe(fusion, lambda ranking: len(ranking.chunks) > wanted, least)


def _least_nearness(vector: VectorLeg | None, request: Request) -> float:
    """Return the least score of the vector leg that a passage needs, on the leg's scale; infinity without the leg."""
    if request.least_cosine is None:
        return -np.inf
    return float(vector.scaled(np.array(request.least_cosine))) if vector else np.inf
