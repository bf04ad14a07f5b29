"""The tools that search: for one question, for several at once, and for passages like a document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from commonplace.errors import InvalidInput, NotFound
from commonplace.kinds.documents.documents import Documents
from commonplace.kinds.documents.finding import DocumentHit, DocumentQuery, SearchResults
from commonplace.kinds.documents.tools.shapes import missing_document, named, reply_with_text, visible
from commonplace.kinds.documents.visible import Visible
from commonplace.model import JSON, Stage
from commonplace.tools.budget import tokens_of
from commonplace.tools.tool import Answer, Call, Reply

NO_RESULTS = "No results found for the given query."
EVERYWHERE = ["*"]


def search(call: Call, given: Mapping[str, JSON]) -> Reply:
    """Answer one query with passages of documents."""
    query = _query(visible(call), given, given, rerank=given["rerank"])
    (results,) = call.space.part(Documents).finding.search([query])
    records: list[JSON] = [_record(hit) for hit in results.hits]
    return reply_with_text({"results": records, **_report(results)}, records or NO_RESULTS, results.notes)


def search_batch(call: Call, given: Mapping[str, JSON]) -> Answer:
    """Answer several queries, embedded and searched together; within `max_tokens` where that is given."""
    collections = visible(call)
    queries = [_query_at(collections, given, index) for index in range(len(given["queries"]))]
    results = call.space.part(Documents).finding.search(queries)
    notes = list(dict.fromkeys(note for one in results for note in one.notes))
    more: dict[str, JSON] = {"notes": notes} if notes else {}
    records = [[_record(hit) for hit in one.hits] for one in results]
    texts = [query.query for query in queries]
    if "max_tokens" in given:
        return _fitted(texts, records, more, given["max_tokens"])
    answers = [{"query": text, "results": hits} for text, hits in zip(texts, records, strict=True)]
    return {"results": answers, **more}


def find_related(call: Call, given: Mapping[str, JSON]) -> Answer:
    """Answer with passages like a document, or like a text from it."""
    collections = visible(call)
    collection = collections.find(given["collection"])
    names = given.get("collections")
    among = (collection,) if names is None else collections.some(None if names == EVERYWHERE else names)
    item = call.space.part(Documents).reading.find(collection, given["document"])
    if item is None:
        return missing_document(call, collection, given)
    results = call.space.part(Documents).finding.related(
        item, among, chunk=given.get("chunk"), limit=given["limit"], same_document=given["sameDocument"]
    )
    related: list[JSON] = [{**_record(hit), "document": hit.item.key} for hit in results.hits]
    return {"source": {**named(collection), "document": item.key}, "related": related, **_report(results)}


def _query(
    collections: Visible, given: Mapping[str, JSON], part: Mapping[str, JSON], *, rerank: bool = False
) -> DocumentQuery:
    """Return the query of `part`, an element of `queries` or the arguments themselves, with the call's options."""
    return DocumentQuery(
        part["query"],
        collections.some(part.get("collections")),
        limit=given["limit"],
        max_distance=given.get("maxDistance"),
        hybrid=given["hybridSearch"],
        rerank=rerank,
    )


def _query_at(collections: Visible, given: Mapping[str, JSON], index: int) -> DocumentQuery:
    """Return the query at this index. Raise NotFound, which names the argument, for an unknown collection."""
    try:
        return _query(collections, given, given["queries"][index])
    except NotFound as unknown:
        argument = f"queries[{index}].collections"
        sentence, advice = str(unknown).split("\n", 1)
        message = f"{sentence}\nIt is named in {argument}. {advice}"
        raise NotFound(message, code=unknown.code, **unknown.details, argument=argument) from None


def _record(hit: DocumentHit) -> dict[str, JSON]:
    record: dict[str, JSON] = {
        **named(hit.collection),
        "documentId": hit.item.key,
        "documentTitle": hit.title,
        "sectionHeading": hit.section,
        "content": hit.chunk.text,
        "relevanceScore": hit.score,
        "distance": hit.distance,
        "chunkIndex": hit.chunk.ordinal + 1,
        "totalChunks": hit.item.chunk_count,
        "startLine": hit.chunk.line_start,
        "endLine": hit.chunk.line_end,
        "matchLine": hit.match_line,
        "matchHeading": hit.match_heading,
        "uri": hit.item.uri,
    }
    for name in ("sectionHeading", "matchHeading"):
        if record[name] is None:  # before the first heading
            del record[name]
    return record


def _report(results: SearchResults) -> dict[str, JSON]:
    record: dict[str, JSON] = {"stages": [_stage(stage) for stage in results.stages]}
    return {**record, "notes": list(results.notes)} if results.notes else record


def _stage(stage: Stage) -> dict[str, JSON]:
    record = {"stage": stage.name, "status": stage.status}
    return {**record, "reason": stage.reason} if stage.reason else record


def _fitted(
    queries: Sequence[str], records: Sequence[Sequence[dict[str, JSON]]], more: dict[str, JSON], max_tokens: int
) -> dict[str, JSON]:
    """Return the answers within `max_tokens`, taking from each in turn its best hit that is left.

    A passage that answers several queries is shown once. Each answer counts as `repeated` the hits that are shown
    elsewhere, and as `leftOut` those that did not fit. Raise InvalidInput where even answers without hits do not fit.
    """
    entries: list[dict[str, JSON]] = [{"query": query, "results": [], "repeated": 0, "leftOut": 0} for query in queries]
    frame = {"results": entries, **more, "tokens": max_tokens}
    used = tokens_of(frame) + len(entries)  # a digit more for the counts of each
    if used > max_tokens:
        raise InvalidInput(
            f"max_tokens must be at least {used} for these queries without any result, not {max_tokens}.",
            argument="max_tokens",
        )
    places: set[str] = set()
    for rank in range(max(map(len, records), default=0)):
        for entry, hits in zip(entries, records, strict=True):
            if rank >= len(hits):
                continue
            place = f"{hits[rank]['uri']}#{hits[rank]['chunkIndex']}"
            size = tokens_of(hits[rank]) + 1
            if place in places:
                entry["repeated"] += 1
            elif entry["leftOut"] or used + size > max_tokens:
                entry["leftOut"] += 1
            else:
                places.add(place)
                entry["results"].append(hits[rank])
                used += size
    return {"results": entries, **more, "tokens": tokens_of({"results": entries, **more})}
