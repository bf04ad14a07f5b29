"""Passages of documents that answer a question, or are like another: the engine's own search, held to collections."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from commonplace.errors import Unavailable
from commonplace.kinds.documents.reading import DocumentReader
from commonplace.kinds.documents.visible import Shown
from commonplace.lazy_dataclass import dataclass
from commonplace.model import Chunk, Filter, Hit, Item, Page, Stage
from commonplace.models.hurry import hurried
from commonplace.search.legs import cosine_of
from commonplace.search.pipeline import EMBED_S, Pipeline, Semantic, meaning_of
from commonplace.search.request import MOST_HITS, Request
from commonplace.store.base import Store
from commonplace.store.rows import DocumentRow

Floats = NDArray[np.float32]

MOST_PER_DOCUMENT = 2
"""How many passages of one document are related to anything."""
MOSTLY = 0.8
"""How alike two texts are that are mostly the same: the share of their characters that stand in both in this order."""
TELLING_CHARS = 2_000
"""How much of a document decides which line of a related passage matches; without vectors all of it decides more."""
ROUNDING = 1e-6
NOT_RERANKED = "Not reranked: a second look needs words and meaning together. Leave hybridSearch at true for one."


@dataclass(frozen=True, slots=True)
class DocumentQuery:
    """One search, as it is asked."""

    query: str
    collections: tuple[Shown, ...]
    limit: int = 10
    max_distance: float | None = None
    hybrid: bool = True
    rerank: bool = False


@dataclass(frozen=True, slots=True)
class DocumentHit:
    """A passage of a document that answers."""

    collection: Shown
    item: Item
    title: str
    section: str | None
    """The heading at or before the passage's first word."""
    chunk: Chunk
    score: float
    distance: float | None
    match_line: int
    match_heading: str | None


@dataclass(frozen=True, slots=True)
class SearchResults:
    """The results of one search, what its stages did, and what a caller should know."""

    results: tuple[DocumentHit, ...]
    stages: tuple[Stage, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Meanings:
    """What queries mean, or why nobody knows."""

    semantic: Semantic | None
    vectors: dict[str, Floats]
    reason: str = ""


class DocumentSearch:
    """Searches over the collections a caller names. All queries of a call are embedded at once."""

    def __init__(
        self, store: Store, reading: DocumentReader, pipeline: Pipeline, semantic: Callable[[], Semantic]
    ) -> None:
        self._store, self._reading = store, reading
        self._pipeline, self._semantic = pipeline, semantic

    def search(self, questions: Sequence[DocumentQuery]) -> list[SearchResults]:
        """An answer to each, in their order. One alone is answered as it is among others."""
        texts = [meaning_of(question.query) for question in questions]
        meanings = self._meanings(list(dict.fromkeys(texts)))
        filters = {question.collections: _filter(question.collections) for question in questions}
        asked = [
            (question, _request(question, filters[question.collections], meanings, meanings.vectors.get(text)))
            for question, text in zip(questions, texts, strict=True)
            if question.collections
        ]
        pages = self._pages([request for _, request in asked])
        among = [question.collections for question, _ in asked]
        results = self._results([page.hits for page in pages], among, meanings.semantic)
        answers = (
            _found(*one, meanings) for one in zip([question for question, _ in asked], pages, results, strict=True)
        )
        return [next(answers) if question.collections else SearchResults(()) for question in questions]

    def related(
        self,
        item: Item,
        among: Sequence[Shown],
        *,
        chunk: str | None = None,
        limit: int = 5,
        same_document: bool = False,
    ) -> SearchResults:
        """Passages like a document, or like a text from it; at most two of any one document."""
        if not chunk and not item.chunk_count:
            return SearchResults((), notes=(f'"{item.key}" has no text, so nothing is related to it.',))
        vector, reason = self._vector_like(item, chunk)
        text = chunk or self._store.body_part(item.id, 0, TELLING_CHARS if vector is not None else 20 * TELLING_CHARS)
        request = Request(
            text="",
            filter=_filter(among),
            limit=limit,
            snippet_length=0,
            per_item=False,
            by_name=False,
            explain=True,
            exclude=frozenset() if same_document else frozenset([item.id]),
            most_per_item=MOST_PER_DOCUMENT,
        )
        notes = (f"By its most telling words: {reason}.",) if reason else ()
        hits, page = self._unlike(request, text, vector, chunk)
        (results,) = self._results([hits], [among], self._semantic() if vector is not None else None)
        return SearchResults(tuple(results[:limit]), page.stages, notes)

    def _unlike(self, request: Request, text: str, vector: Floats | None, chunk: str | None) -> tuple[list[Hit], Page]:
        """Enough hits for the page, without passages that mostly say the same as the text given."""
        wanted, given = request.limit, _plain(chunk or "")
        while True:
            page = self._pipeline.like(text, vector, request)
            hits = [hit for hit in page.hits if not given or not _mostly_same(given, _plain(hit.chunk.text))]
            if len(hits) >= wanted or not page.more or request.limit >= MOST_HITS:
                return hits, page
            request = replace(request, limit=min(4 * request.limit, MOST_HITS))

    def _vector_like(self, item: Item, chunk: str | None) -> tuple[Floats | None, str]:
        try:
            with hurried(EMBED_S):
                semantic = self._semantic()
                if chunk:
                    return semantic.embedder.embed_passages([chunk])[0], ""
        except Unavailable as error:
            return None, error.reason
        vector = semantic.mean_of(item.id)
        return vector, "" if vector is not None else "the document has no vectors yet; `commonplace embed` makes them"

    def _meanings(self, texts: Sequence[str]) -> _Meanings:
        try:
            with hurried(EMBED_S):  # the first contact with a provider included
                semantic = self._semantic()
                vectors = semantic.embedder.embed_queries(texts)
        except Unavailable as error:
            return _Meanings(None, {}, error.reason)
        return _Meanings(semantic, dict(zip(texts, vectors, strict=True)))

    def _pages(self, requests: Sequence[Request]) -> list[Page]:
        """Hits as far as their scores fall after the last that is shown, so that equals are ordered whole."""
        pages = self._pipeline.search_all(requests)
        cut = [place for place, page in enumerate(pages) if page.tied and requests[place].limit < MOST_HITS]
        if cut:
            deeper = [replace(requests[place], limit=min(4 * requests[place].limit, MOST_HITS)) for place in cut]
            for place, page in zip(cut, self._pages(deeper), strict=True):
                pages[place] = page
        return pages

    def _results(
        self, found: Sequence[Sequence[Hit]], among: Sequence[Sequence[Shown]], semantic: Semantic | None
    ) -> list[list[DocumentHit]]:
        """The hits of each search, with what is kept of their documents."""
        rows = self._reading.settled(self._store.document_rows(list({hit.item.id for hits in found for hit in hits})))
        visible = [{shown.key: shown for shown in collections} for collections in among]
        kept = [
            [hit for hit in hits if hit.item.id in rows and hit.parent in by_key]
            for hits, by_key in zip(found, visible, strict=True)
        ]
        every = [hit for hits in kept for hit in hits]
        places = [
            *((hit.item.id, _first_line(hit.chunk)) for hit in every),
            *((hit.item.id, hit.line) for hit in every),
        ]
        headings = [path[-1] if path else None for path in self._store.headings_at(places)] if places else []
        spoken = iter(zip(headings[: len(every)], headings[len(every) :], strict=True))
        return [
            _in_order([_result(hit, by_key[hit.parent], rows[hit.item.id], next(spoken), semantic) for hit in hits])
            for hits, by_key in zip(kept, visible, strict=True)
        ]


def _request(question: DocumentQuery, filter: Filter, meanings: _Meanings, vector: Floats | None) -> Request:
    return Request(
        question.query,
        mode="lexical" if meanings.semantic is None else "auto" if question.hybrid else "semantic",
        filter=filter,
        limit=question.limit,
        snippet_length=0,
        per_item=False,
        by_name=False,
        explain=True,
        vector=vector,
        least_cosine=None if question.max_distance is None else 1.0 - question.max_distance - ROUNDING,
        rerank=question.rerank,
    )


def _found(question: DocumentQuery, page: Page, results: Sequence[DocumentHit], meanings: _Meanings) -> SearchResults:
    if question.max_distance is not None:
        bound = question.max_distance
        results = [result for result in results if result.distance is not None and result.distance <= bound]
    notes = list(page.notes)
    if meanings.semantic is None:
        notes.append(f"By words only: {meanings.reason}.")
    elif question.rerank and not question.hybrid:
        notes.append(NOT_RERANKED)
    if page.unplaced:
        many = "1 passage was" if page.unplaced == 1 else f"{page.unplaced} passages were"
        notes.append(f"{many} left out: no distance is known yet.")
    stages = tuple(_told(stage, meanings.reason) for stage in page.stages)
    return SearchResults(tuple(results[: question.limit]), stages, tuple(notes))


def _result(
    hit: Hit, collection: Shown, row: DocumentRow, headings: tuple[str | None, str | None], semantic: Semantic | None
) -> DocumentHit:
    section, matched = headings
    title = row.title or hit.item.key
    distance = _distance(hit, semantic)
    return DocumentHit(collection, hit.item, title, section, hit.chunk, hit.score, distance, hit.line, matched)


def _in_order(results: Sequence[DocumentHit]) -> list[DocumentHit]:
    """The best first, equal scores by collection, document and chunk."""
    return sorted(results, key=lambda one: (-one.score, one.collection.label, one.item.key, one.chunk.ordinal))


def _filter(collections: Sequence[Shown]) -> Filter:
    return Filter(kinds=("document",), parents=tuple(sorted(shown.key for shown in collections)))


def _first_line(chunk: Chunk) -> int:
    """The line of a passage's first character that is not blank."""
    return chunk.line_start + chunk.text.count("\n", 0, len(chunk.text) - len(chunk.text.lstrip()))


def _distance(hit: Hit, semantic: Semantic | None) -> float | None:
    scaled = hit.explain.get("vector") if hit.explain else None
    if scaled is None or semantic is None:
        return None
    return round(min(2.0, max(0.0, 1.0 - cosine_of(scaled, semantic.embedder))), 6)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _mostly_same(one: str, other: str) -> bool:
    """By characters: not every script has blanks between its words."""
    from rapidfuzz.distance import Indel  # only a text that was given needs it

    return Indel.normalized_similarity(one, other) >= MOSTLY


def _told(stage: Stage, reason: str) -> Stage:
    """Why there was no vector leg: not because nobody asked for it."""
    return replace(stage, reason=reason) if reason and stage.name == "vector" else stage
