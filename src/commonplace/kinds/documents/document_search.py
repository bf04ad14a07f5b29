"""Search for passages of documents that answer a question or resemble a text, within given collections."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from commonplace.errors import Command, Sentence, Unavailable
from commonplace.kinds.documents.document_reader import DocumentReader
from commonplace.kinds.documents.outlines import Outlines
from commonplace.kinds.documents.visible import Shown
from commonplace.model import Chunk, Filter, Hit, Item, Page, Stage
from commonplace.search.engine import Semantic, in_time
from commonplace.search.legs import cosine_of
from commonplace.search.pipeline import Pipeline, meaning_of
from commonplace.search.request import MOST_HITS, Request
from commonplace.space import Space
from commonplace.store.base import Store
from commonplace.store.rows import DocumentRow

Floats = NDArray[np.float32]

MOST_PER_DOCUMENT = 2
"""The most passages of one document among related passages."""
MOSTLY = 0.8
"""The similarity from which two texts count as the same: the share of characters that both have in the same order."""
TELLING_CHARS = 2_000
"""The beginning of a document that picks the matching line of a related passage; 20 times that without vectors,
where its words have to find the passages too."""
ROUNDING = 1e-6
NOT_RERANKED = "Not reranked: a second look needs words and meaning together. Leave hybridSearch at true for one."


@dataclass(frozen=True, slots=True)
class DocumentQuery:
    """A search of documents: the text, the collections to search, and its options."""

    query: str
    collections: tuple[Shown, ...]
    limit: int = 10
    max_distance: float | None = None
    """The greatest cosine distance of a hit, from 0 to 2; None: any, known or not."""
    hybrid: bool = True
    """False: by meaning alone."""
    rerank: bool = False


@dataclass(frozen=True, slots=True)
class DocumentHit:
    """A passage of a document that matches a query, with its place and score."""

    collection: Shown
    item: Item
    title: str
    section: str | None
    """The heading at or before the passage's first word; None before the first heading."""
    chunk: Chunk
    score: float
    distance: float | None
    """The cosine distance from the query, from 0 to 2; None where it is not known."""
    match_line: int
    match_heading: str | None


@dataclass(frozen=True, slots=True)
class SearchResults:
    """The hits of one search, best first, with a report of its stages and notes for the caller."""

    hits: tuple[DocumentHit, ...]
    stages: tuple[Stage, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _QueryVectors:
    """The vectors of queries by text, or the reason why there are none."""

    semantic: Semantic | None
    by_text: dict[str, Floats]
    reason: str = ""


class DocumentSearch:
    """A search over the collections that a caller names. All queries of one call are embedded at once."""

    def __init__(
        self, store: Store, reading: DocumentReader, pipeline: Pipeline, semantic: Callable[[], Semantic]
    ) -> None:
        self._store, self._reading = store, reading
        self._pipeline, self._semantic = pipeline, semantic

    def search(self, queries: Sequence[DocumentQuery]) -> list[SearchResults]:
        """Return the results of each query, in their order. A query has the same results alone and among others.

        A query without collections has no results. Without a model, or where it does not answer in time, queries are
        searched by words only, and a note says so.
        """
        texts = [meaning_of(query.query) for query in queries]
        vectors = self._vectors_of(list(dict.fromkeys(texts)))
        filters = {query.collections: _filter(query.collections) for query in queries}
        requests = [
            (query, _request(query, filters[query.collections], vectors, vectors.by_text.get(text)))
            for query, text in zip(queries, texts, strict=True)
            if query.collections
        ]
        pages = self._pages([request for _, request in requests])
        collections = [query.collections for query, _ in requests]
        hits = self._document_hits([page.hits for page in pages], collections, vectors.semantic)
        results = (
            _results(query, page, page_hits, vectors)
            for (query, _), page, page_hits in zip(requests, pages, hits, strict=True)
        )
        return [next(results) if query.collections else SearchResults(()) for query in queries]

    def related(
        self,
        item: Item,
        among: Sequence[Shown],
        *,
        chunk: str | None = None,
        limit: int = 5,
        same_document: bool = False,
    ) -> SearchResults:
        """Return up to `limit` passages of `among` that are like a document, or like `chunk`, a text from it.

        At most `MOST_PER_DOCUMENT` are of any one document. Passages of the document itself are left out unless
        `same_document` is set, and passages that mostly repeat `chunk` always.
        """
        if not chunk and not item.chunk_count:
            return SearchResults((), notes=(f'"{item.key}" has no text, so nothing is related to it.',))
        vector, reason = self._vector_like(item, chunk)
        text = chunk or self._store.drawer(Outlines).text(
            item.id, 0, TELLING_CHARS if vector is not None else 20 * TELLING_CHARS
        )
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
        page_hits, page = self._unlike(request, text, vector, chunk)
        (hits,) = self._document_hits([page_hits], [among], self._semantic() if vector is not None else None)
        return SearchResults(tuple(hits[:limit]), page.stages, notes)

    def _unlike(self, request: Request, text: str, vector: Floats | None, chunk: str | None) -> tuple[list[Hit], Page]:
        """Return the page like `text`, and its hits without those that mostly repeat `chunk`.

        Searches deeper until the hits are as many as `request` allows, or there are no more.
        """
        limit, plain_chunk = request.limit, _plain(chunk or "")
        while True:
            page = self._pipeline.like(text, vector, request)
            hits = [
                hit for hit in page.hits if not plain_chunk or not _mostly_same(plain_chunk, _plain(hit.chunk.text))
            ]
            if len(hits) >= limit or not page.more or request.limit >= MOST_HITS:
                return hits, page
            request = replace(request, limit=min(4 * request.limit, MOST_HITS))

    def _vector_like(self, item: Item, chunk: str | None) -> tuple[Floats | None, str]:
        """Return the vector of `chunk`, or the mean of the document's, and ""; or None and the reason."""

        def work() -> Floats | None:
            semantic = self._semantic()
            return semantic.embedder.embed_passages([chunk])[0] if chunk else semantic.mean_of(item.id)

        vector = in_time(work)
        if isinstance(vector, Unavailable):
            return None, vector.reason
        lacking = Sentence("the document has no vectors yet; `", Command("embed"), "` makes them")
        return vector, "" if vector is not None else lacking

    def _vectors_of(self, texts: Sequence[str]) -> _QueryVectors:
        def work() -> _QueryVectors:
            semantic = self._semantic()
            return _QueryVectors(semantic, dict(zip(texts, semantic.embedder.embed_queries(texts), strict=True)))

        vectors = in_time(work)
        return _QueryVectors(None, {}, vectors.reason) if isinstance(vectors, Unavailable) else vectors

    def _pages(self, requests: Sequence[Request]) -> list[Page]:
        """Return a page for each request, continued until its last score falls.

        So hits of equal score are all there, and can be put in order before the page is cut to its limit.
        """
        pages = self._pipeline.search_all(requests)
        tied = [index for index, page in enumerate(pages) if page.tied and requests[index].limit < MOST_HITS]
        if tied:
            deeper = [replace(requests[index], limit=min(4 * requests[index].limit, MOST_HITS)) for index in tied]
            for index, page in zip(tied, self._pages(deeper), strict=True):
                pages[index] = page
        return pages

    def _document_hits(
        self, pages: Sequence[Sequence[Hit]], among: Sequence[Sequence[Shown]], semantic: Semantic | None
    ) -> list[list[DocumentHit]]:
        """Return the hits of each page with their documents' titles and headings, in order.

        Hits whose documents have just been removed, or are in none of the page's collections, are left out.
        """
        item_ids = list({hit.item.id for hits in pages for hit in hits})
        rows = self._reading.with_outlines(self._store.drawer(Outlines).rows(item_ids))
        collections = [{shown.key: shown for shown in page_collections} for page_collections in among]
        visible_hits = [
            [hit for hit in hits if hit.item.id in rows and hit.parent in by_key]
            for hits, by_key in zip(pages, collections, strict=True)
        ]
        all_hits = [hit for hits in visible_hits for hit in hits]
        lines = [
            *((hit.item.id, _first_line(hit.chunk)) for hit in all_hits),
            *((hit.item.id, hit.line) for hit in all_hits),
        ]
        headings = (
            [path[-1] if path else None for path in self._store.drawer(Outlines).headings_at(lines)] if lines else []
        )
        pairs = iter(zip(headings[: len(all_hits)], headings[len(all_hits) :], strict=True))
        return [
            _in_order(
                [_document_hit(hit, by_key[hit.parent], rows[hit.item.id], next(pairs), semantic) for hit in hits]
            )
            for hits, by_key in zip(visible_hits, collections, strict=True)
        ]


def _request(query: DocumentQuery, filter: Filter, vectors: _QueryVectors, vector: Floats | None) -> Request:
    return Request(
        query.query,
        mode="lexical" if vectors.semantic is None else "auto" if query.hybrid else "semantic",
        filter=filter,
        limit=query.limit,
        snippet_length=0,
        per_item=False,
        by_name=False,
        explain=True,
        vector=vector,
        least_cosine=None if query.max_distance is None else 1.0 - query.max_distance - ROUNDING,
        rerank=query.rerank,
    )


def _results(query: DocumentQuery, page: Page, hits: Sequence[DocumentHit], vectors: _QueryVectors) -> SearchResults:
    """Return the hits within the query's distance and limit, with the page's stages and notes."""
    if query.max_distance is not None:
        bound = query.max_distance
        hits = [hit for hit in hits if hit.distance is not None and hit.distance <= bound]
    notes = list(page.notes)
    if vectors.semantic is None:
        notes.append(f"By words only: {vectors.reason}.")
    elif query.rerank and not query.hybrid:
        notes.append(NOT_RERANKED)
    if page.unplaced:
        many = "1 passage was" if page.unplaced == 1 else f"{page.unplaced} passages were"
        notes.append(f"{many} left out: no distance is known yet.")
    stages = tuple(_with_reason(stage, vectors.reason) for stage in page.stages)
    return SearchResults(tuple(hits[: query.limit]), stages, tuple(notes))


def _document_hit(
    hit: Hit, collection: Shown, row: DocumentRow, headings: tuple[str | None, str | None], semantic: Semantic | None
) -> DocumentHit:
    section, match_heading = headings
    title = row.title or hit.item.key
    distance = _distance(hit, semantic)
    return DocumentHit(collection, hit.item, title, section, hit.chunk, hit.score, distance, hit.line, match_heading)


def _in_order(hits: Sequence[DocumentHit]) -> list[DocumentHit]:
    """Return the best first, equal scores by collection, document and chunk."""
    return sorted(hits, key=lambda hit: (-hit.score, hit.collection.label, hit.item.key, hit.chunk.ordinal))


def _filter(collections: Sequence[Shown]) -> Filter:
    return Filter(kinds=("document",), parents=tuple(sorted(shown.key for shown in collections)))


def _first_line(chunk: Chunk) -> int:
    """Return the line of a passage's first character that is not blank."""
    return chunk.line_start + chunk.text.count("\n", 0, len(chunk.text) - len(chunk.text.lstrip()))


def _distance(hit: Hit, semantic: Semantic | None) -> float | None:
    """Return the cosine distance of a hit from its query, from 0 to 2 and to six digits, or None."""
    scaled = hit.explain.get("vector") if hit.explain else None
    if scaled is None or semantic is None:
        return None
    return round(min(2.0, max(0.0, 1.0 - cosine_of(scaled, semantic.embedder))), 6)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _mostly_same(one: str, other: str) -> bool:
    """Return whether two texts are alike by characters: not every script has blanks between its words."""
    from rapidfuzz.distance import Indel  # slow to load, and only a text to compare needs it

    return Indel.normalized_similarity(one, other) >= MOSTLY


def _with_reason(stage: Stage, reason: str) -> Stage:
    """Return the stage of vectors with the reason why there were none; any other as it is."""
    return replace(stage, reason=reason) if reason and stage.name == "vector" else stage


class Documents:
    """The reader and the search of one space's documents. It checks no rights: callers pass what may be seen."""

    def __init__(self, space: Space) -> None:
        self.reading = DocumentReader(space.store)
        self.finding = DocumentSearch(space.store, self.reading, space.engine, space.semantic)
