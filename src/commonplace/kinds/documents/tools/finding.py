"""Tools that find: one question, several at once, and what is like a document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from commonplace.errors import InvalidInput, NotFound
from commonplace.kinds.documents.finding import DocumentHit, DocumentQuery, SearchResults
from commonplace.kinds.documents.tools.shapes import missing_document, named, said, visible
from commonplace.kinds.documents.visible import Visible
from commonplace.model import JSON, Stage
from commonplace.tools.budget import tokens_of
from commonplace.tools.tool import Answer, Call, Reply

NO_RESULTS = "No results found for the given query."
EVERYWHERE = ["*"]


def search(call: Call, given: Mapping[str, JSON]) -> Reply:
    question = _question(visible(call), given, given, rerank=given["rerank"])
    (found,) = call.library.documents.finding.search([question])
    records: list[JSON] = [_record(result) for result in found.results]
    return said({"results": records, **_report(found)}, records or NO_RESULTS, found.notes)


def search_batch(call: Call, given: Mapping[str, JSON]) -> Answer:
    seen = visible(call)
    questions = [_placed_question(seen, given, number) for number in range(len(given["queries"]))]
    found = call.library.documents.finding.search(questions)
    notes = list(dict.fromkeys(note for one in found for note in one.notes))
    more: dict[str, JSON] = {"notes": notes} if notes else {}
    records = [[_record(result) for result in one.results] for one in found]
    queries = [question.query for question in questions]
    if "max_tokens" in given:
        return _packed(queries, records, more, given["max_tokens"])
    results = [{"query": query, "results": hits} for query, hits in zip(queries, records, strict=True)]
    return {"results": results, **more}


def find_related(call: Call, given: Mapping[str, JSON]) -> Answer:
    seen = visible(call)
    collection = seen.find(given["collection"])
    names = given.get("collections")
    among = (collection,) if names is None else seen.some(None if names == EVERYWHERE else names)
    item = call.library.documents.reading.find(collection, given["document"])
    if item is None:
        return missing_document(call, collection, given)
    found = call.library.documents.finding.related(
        item, among, chunk=given.get("chunk"), limit=given["limit"], same_document=given["sameDocument"]
    )
    related: list[JSON] = [{**_record(result), "document": result.item.key} for result in found.results]
    return {"source": {**named(collection), "document": item.key}, "related": related, **_report(found)}


def _question(
    seen: Visible, given: Mapping[str, JSON], asked: Mapping[str, JSON], *, rerank: bool = False
) -> DocumentQuery:
    return DocumentQuery(
        asked["query"],
        seen.some(asked.get("collections")),
        limit=given["limit"],
        max_distance=given.get("maxDistance"),
        hybrid=given["hybridSearch"],
        rerank=rerank,
    )


def _placed_question(seen: Visible, given: Mapping[str, JSON], number: int) -> DocumentQuery:
    try:
        return _question(seen, given, given["queries"][number])
    except NotFound as unknown:
        argument = f"queries[{number}].collections"
        sentence, there = str(unknown).split("\n", 1)
        message = f"{sentence}\nIt is named in {argument}. {there}"
        raise NotFound(message, code=unknown.code, **unknown.details, argument=argument) from None


def _record(result: DocumentHit) -> dict[str, JSON]:
    record: dict[str, JSON] = {
        **named(result.collection),
        "documentId": result.item.key,
        "documentTitle": result.title,
        "sectionHeading": result.section,
        "content": result.chunk.text,
        "relevanceScore": result.score,
        "distance": result.distance,
        "chunkIndex": result.chunk.ordinal + 1,
        "totalChunks": result.item.chunk_count,
        "startLine": result.chunk.line_start,
        "endLine": result.chunk.line_end,
        "matchLine": result.match_line,
        "matchHeading": result.match_heading,
        "uri": result.item.uri,
    }
    for name in ("sectionHeading", "matchHeading"):
        if record[name] is None:  # before the first heading
            del record[name]
    return record


def _report(found: SearchResults) -> dict[str, JSON]:
    record: dict[str, JSON] = {"stages": [_stage(stage) for stage in found.stages]}
    return {**record, "notes": list(found.notes)} if found.notes else record


def _stage(stage: Stage) -> dict[str, JSON]:
    record = {"stage": stage.name, "status": stage.status}
    return {**record, "reason": stage.reason} if stage.reason else record


def _packed(
    queries: Sequence[str], records: Sequence[Sequence[dict[str, JSON]]], more: dict[str, JSON], max_tokens: int
) -> dict[str, JSON]:
    """What fits of every answer, best first in turn; a passage that answers several questions is shown once."""
    entries: list[dict[str, JSON]] = [{"query": query, "results": [], "repeated": 0, "leftOut": 0} for query in queries]
    frame = {"results": entries, **more, "tokens": max_tokens}
    used = tokens_of(frame) + len(entries)  # a digit more for the counts of each
    if used > max_tokens:
        raise InvalidInput(
            f"max_tokens must be at least {used} for these queries without any result, not {max_tokens}.",
            argument="max_tokens",
        )
    shown: set[str] = set()
    for rank in range(max(map(len, records), default=0)):
        for entry, hits in zip(entries, records, strict=True):
            if rank >= len(hits):
                continue
            place = f"{hits[rank]['uri']}#{hits[rank]['chunkIndex']}"
            size = tokens_of(hits[rank]) + 1
            if place in shown:
                entry["repeated"] += 1
            elif entry["leftOut"] or used + size > max_tokens:
                entry["leftOut"] += 1
            else:
                shown.add(place)
                entry["results"].append(hits[rank])
                used += size
    return {"results": entries, **more, "tokens": tokens_of({"results": entries, **more})}
