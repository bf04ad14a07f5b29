"""Searches for documents: the scope, the request to the engine, and hits with their lines and contexts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from commonplace.errors import Command, InvalidInput, NotFound
from commonplace.kinds.documents.document_names import DocumentNames
from commonplace.kinds.documents.folders.folder_collections import Collection
from commonplace.model import JSON, Chunk, Filter, Item, Stage
from commonplace.qmd.tools.document_texts import Contexts
from commonplace.qmd.tools.file_names import Shelves, address, shelves
from commonplace.search.blend import share_of
from commonplace.search.question import HybridAnswer, PlacedHit, Question, RankedList, Search, read_document
from commonplace.space import Space
from commonplace.store.chunks import Chunks
from commonplace.store.items import Items
from commonplace.store.listing import Listing
from commonplace.store.rows import Name
from commonplace.text.matches import Matcher
from commonplace.text.snippet import Match, best_line, numbered
from commonplace.text.terms import Term
from commonplace.tools.tool import Call, Reply

LONGEST_QUERY = 100_000
LONGEST_ECHO = 200
SNIPPET = 300
EMBED = Command("embed", "qmd")
"""The command that makes vectors, as agents are told it."""
INTENT = 0.3
"""The weight of a term of the intent, beside 1 of the query's, when the best line is chosen."""

NOTHING_ASKED = "Error: provide either 'query' (plain text) or 'searches' (typed sub-queries)"
BOTH_ASKED = "Error: 'query' and 'searches' are mutually exclusive; provide only one"


@dataclass(frozen=True, slots=True)
class QmdHit:
    """A hit: a document, its best passage, and the best line there."""

    docid: str
    name: Name
    item: Item
    chunk: Chunk
    score: float
    context: str | None
    best: int
    """The best line, from 0, within the passage."""
    matches: Sequence[Match]
    placed: PlacedHit

    @property
    def line(self) -> int:
        return self.chunk.line_start + self.best

    def snippet(self, length: int = SNIPPET) -> str:
        """Return the best line and its neighbors, each with its number in the file."""
        return numbered(self.chunk.text, self.chunk.line_start, self.best, length, self.matches)


@dataclass(frozen=True, slots=True)
class QmdResults:
    """The results of one search, and what its stages did."""

    results: tuple[QmdHit, ...]
    lists: tuple[RankedList, ...]
    stages: tuple[Stage, ...]
    notes: tuple[str, ...]


def scope(space: Space, there: Shelves, asked: Sequence[str]) -> Filter | None:
    """Return the filter of these collections, or of all included by default; None if that is none. Raise NotFound."""
    collections, packaged = there.collections, there.packaged
    known = {collection.name: collection for collection in collections}
    if asked:
        names = dict.fromkeys(asked)
        unknown = [name for name in names if name not in known]
        others = space.store.drawer(Listing).parents("document").keys() - packaged.keys() if unknown else frozenset()
        for name in unknown:
            if name not in others:
                available = ", ".join(sorted({*known, *others})) or "none"
                raise NotFound(
                    f"Collection not found: {name}. Available collections: {available}.", code="collection_not_found"
                )
        return Filter(kinds=("document",), parents=tuple(sorted(names)))
    if all(collection.included for collection in collections) and not packaged:
        return Filter(kinds=("document",))
    left_out = {*packaged, *(collection.name for collection in collections if not collection.included)}
    parents = tuple(name for name in space.store.drawer(Listing).parents("document") if name not in left_out)
    return Filter(kinds=("document",), parents=parents) if parents else None


def find(
    space: Space,
    searches: Sequence[Search],
    *,
    collections: Sequence[str] = (),
    plain: bool = False,
    limit: int = 10,
    min_score: float = 0.0,
    intent: str = "",
    rerank: bool = False,
    candidates: int = 30,
) -> QmdResults:
    """Run searches over the named collections, or the included ones, and return the hits."""
    there = shelves(space)
    filter = scope(space, there, collections)
    if filter is None:
        return QmdResults((), (), (), ())
    question = Question(tuple(searches), filter, plain, limit, min_score, intent, rerank, candidates, EMBED)
    answer = space.hybrid.find(question)
    return QmdResults(_presented(space, there.collections, answer), answer.lists, answer.stages, answer.notes)


def _presented(space: Space, collections: Sequence[Collection], answer: HybridAnswer) -> tuple[QmdHit, ...]:
    """Return the hits, reading only what is shown. A document that was just removed is left out."""
    store, ids = space.store, [hit.item_id for hit in answer.hits]
    if not ids:
        return ()
    chunks = {chunk.id: chunk for chunk in store.drawer(Chunks).get([hit.chunk_id for hit in answer.hits])}
    items = {item.id: item for item in store.drawer(Items).get(ids)}
    docids = store.drawer(DocumentNames).docids(ids)
    contexts = Contexts(space, collections)
    lines = _Lines(answer)
    results = []
    for hit in answer.hits:
        item, chunk = items.get(hit.item_id), chunks.get(hit.chunk_id)
        if item is None or chunk is None or hit.item_id not in docids:
            continue
        best, matches = lines.of(chunk.text)
        name = Name(item.id, item.parent, item.key)
        context = contexts.of(item.parent, item.key)
        results.append(QmdHit(f"#{docids[item.id]}", name, item, chunk, hit.score, context, best, matches, hit))
    return tuple(results)


class _Lines:
    """The choice of a passage's best line: the one with most of the query."""

    def __init__(self, answer: HybridAnswer) -> None:
        terms = [*_content_terms(answer.terms), *answer.intent]
        self._matcher = Matcher(terms, answer.languages)
        count = len(terms) - len(answer.intent)
        self._weights = dict.fromkeys(range(count, len(terms)), INTENT)

    def of(self, text: str) -> tuple[int, list[Match]]:
        matches = self._matcher.find(text)
        return best_line(text, matches, self._weights), matches


def _content_terms(terms: Sequence[Term]) -> Sequence[Term]:
    """Return the terms without function words, which match everywhere; all if there are no others."""
    return [term for term in terms if term.weight >= 1 or term.match != "word"] or terms


# tools


def search(call: Call, given: Mapping[str, JSON]) -> Reply:
    return _reply(_asked(call, given, (Search("lex", given["query"]),), plain=True), given, given["query"])


def vsearch(call: Call, given: Mapping[str, JSON]) -> Reply:
    return _reply(_asked(call, given, (Search("vec", given["query"]),), plain=True), given, given["query"])


def query(call: Call, given: Mapping[str, JSON]) -> Reply:
    text, typed = given.get("query"), given.get("searches")
    if text is not None and typed is not None:
        raise InvalidInput(BOTH_ASKED)
    if text is None and typed is None:
        raise InvalidInput(NOTHING_ASKED)
    intent = given.get("intent", "")
    if text is not None:
        document = read_document(text)
        searches = document.searches if document else (Search("lex", text), Search("vec", text))
        plain, intent = document is None, (document.intent if document else "") or intent
    else:
        searches = tuple(Search(one["type"], one["query"]) for one in typed or ())
        plain, text = False, "\n".join(map(str, searches))
    found = _asked(
        call, {**given, "intent": intent}, searches, plain=plain, rerank=given["rerank"],
        candidates=given["candidateLimit"],
    )  # fmt: skip
    return _reply(found, given, text)


def _asked(
    call: Call,
    given: Mapping[str, JSON],
    searches: Sequence[Search],
    *,
    plain: bool = False,
    rerank: bool = False,
    candidates: int = 30,
) -> QmdResults:
    if not all(one.text.strip() for one in searches):
        raise InvalidInput("query must not be empty")
    named = [*([given["collection"]] if "collection" in given else []), *given.get("collections", ())]
    return find(
        call.space, searches, collections=named, plain=plain, limit=given["limit"], min_score=given["minScore"],
        intent=given.get("intent", ""), rerank=rerank, candidates=candidates,
    )  # fmt: skip


def _reply(found: QmdResults, given: Mapping[str, JSON], text: str) -> Reply:
    records = [record(found, result, explain=given["explain"]) for result in found.results]
    return Reply(
        [{"type": "text", "text": summary(found, text)}],
        {"results": records, "stages": [_stage(stage) for stage in found.stages]},
    )


def record(found: QmdResults, result: QmdHit, *, explain: bool = False) -> dict[str, JSON]:
    """Return a hit as the tools' record."""
    file = result.name.file
    shown: dict[str, JSON] = {
        "docid": result.docid,
        "file": file,
        "title": result.item.title,
        "score": rounded(result.score),
        "context": result.context,
        "line": result.line,
        "snippet": result.snippet(),
        "uri": address(file),
    }
    return {**shown, "explain": explained(found, result.placed)} if explain else shown


def summary(found: QmdResults, text: str) -> str:
    """Return the hits as text, one line each, for people and agents."""
    echo = " ".join(text.split())
    echo = echo if len(echo) <= LONGEST_ECHO else f"{echo[:LONGEST_ECHO]}…"
    count = len(found.results)
    if not count:
        lines = [f'No results found for "{echo}"']
    else:
        lines = [f'Found {count} {"result" if count == 1 else "results"} for "{echo}":', ""]
        lines += [
            f"{one.docid} {round(100 * rounded(one.score))}% {one.name.file} - {one.item.title}"
            for one in found.results
        ]
    if found.notes:
        lines += ["", *(f"Note: {note}" for note in found.notes)]
    return "\n".join(lines)


def rounded(score: float) -> float:
    """Return a score to two decimals, half up."""
    return math.floor(score * 100 + 0.5) / 100


def explained(found: QmdResults, hit: PlacedHit) -> dict[str, JSON]:
    """Return everything that went into a score, unrounded."""
    contributions = [_contribution(found.lists[place.list], hit, place.list) for place in hit.fused.places]
    return {
        "ftsScores": [one["backendScore"] for one in contributions if one["source"] == "fts"],
        "vectorScores": [one["backendScore"] for one in contributions if one["source"] == "vec"],
        "rrf": {
            "rank": hit.rank,
            "weight": share_of(hit.rank),
            "baseScore": hit.fused.base,
            "topRankBonus": hit.fused.bonus,
            "totalScore": hit.fused.total,
            "contributions": contributions,
        },
        "retrievalScore": hit.retrieval,
        "rerankScore": hit.reranked,
        "blendedScore": hit.score,
    }


def _contribution(made: RankedList, hit: PlacedHit, number: int) -> dict[str, JSON]:
    place = next(place for place in hit.fused.places if place.list == number)
    return {
        "source": "fts" if made.search.kind == "lex" else "vec",
        "queryType": "original" if made.role == "original" else made.search.kind,
        "query": made.search.text,
        "rank": place.rank,
        "weight": made.weight,
        "backendScore": made.listed.scores[place.rank - 1],
        "rrfContribution": place.worth,
    }


def _stage(stage: Stage) -> dict[str, JSON]:
    shown: dict[str, JSON] = {"stage": stage.name, "status": stage.status, "ms": round(stage.ms, 1)}
    return {**shown, "reason": stage.reason} if stage.reason else shown
