"""The calls of the documents tools: listing, outlines, sections, searches, and passages like a document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from commonplace.errors import Busy, InvalidInput, NotFound
from commonplace.kinds.documents.document_reader import Matched, match
from commonplace.kinds.documents.document_search import DocumentHit, DocumentQuery, Documents, SearchResults
from commonplace.kinds.documents.tools.document_shapes import (
    missing,
    missing_document,
    named,
    reply_with_text,
    require_sendable,
    visible,
)
from commonplace.kinds.documents.visible import Visible
from commonplace.model import JSON, Item, Stage
from commonplace.text.outline import Heading, Outline
from commonplace.tools.budget import tokens_of
from commonplace.tools.tool import Answer, Call, Reply

NO_COLLECTIONS = "No document collections found."
MOST_CANDIDATES = 20
_ATTEMPTS = 5
NO_RESULTS = "No results found for the given query."
EVERYWHERE = ["*"]


def list_collections(call: Call, given: Mapping[str, JSON]) -> Reply:
    """Answer with the collections that the caller sees, and their numbers of documents."""
    collections = visible(call).collections
    counts = call.space.part(Documents).reading.counts(collections)
    records: list[JSON] = []
    for shown in collections:
        record = {**named(shown), "documentCount": counts[shown.key]}
        optional = {"description": shown.description, "version": shown.version}
        records.append({**record, **{name: value for name, value in optional.items() if value}})
    return reply_with_text({"collections": records}, records or NO_COLLECTIONS)


def list_documents(call: Call, given: Mapping[str, JSON]) -> Answer:
    """Answer with a page of a collection's documents."""
    collection = visible(call).find(given["collection"])
    limit, offset = given["limit"], given["offset"]
    page, total = call.space.part(Documents).reading.page(collection, limit=limit, offset=offset)
    return {
        **named(collection),
        "documents": [{"id": one.id, "title": one.title, "size": one.size} for one in page],
        "total": total,
        "hasMore": offset + len(page) < total,
    }


def get_document(call: Call, given: Mapping[str, JSON]) -> Answer:
    """Answer with a whole document. Raise TooLarge where it would not fit in an answer."""
    reading = call.space.part(Documents).reading
    collection = visible(call).find(given["collection"])
    item = reading.find(collection, given["document"])
    if item is None:
        return missing_document(call, collection, given)
    summary = reading.summary(item)
    require_sendable(call, item, summary.size)
    whole = reading.find(collection, item.key, body=True)
    if whole is None:
        return missing_document(call, collection, given)
    content = whole.body or ""
    return {
        **named(collection),
        "document": whole.key,
        "title": summary.title,
        "content": content,
        "size": len(content),
        "uri": whole.uri,
    }


def get_outline(call: Call, given: Mapping[str, JSON]) -> Answer:
    """Answer with a document's headings down to `maxDepth`."""
    reading = call.space.part(Documents).reading
    collection = visible(call).find(given["collection"])
    item = reading.find(collection, given["document"])
    if item is None:
        return missing_document(call, collection, given)
    outline = reading.outline(item)
    return {
        **named(collection),
        "document": item.key,
        "title": outline.title or item.key,
        "outline": [_entry(heading) for heading in outline.headings if heading.level <= given["maxDepth"]],
    }


def get_section(call: Call, given: Mapping[str, JSON]) -> Answer:
    """Answer with one section of a document, or with the headings there are. Raise Busy while it keeps changing."""
    reading = call.space.part(Documents).reading
    collection = visible(call).find(given["collection"])
    for _ in range(_ATTEMPTS):
        item = reading.find(collection, given["document"])
        if item is None:
            return missing_document(call, collection, given)
        outline = reading.outline(item)
        matched = match(outline.headings, given["section"])
        if matched is None:
            return _missing_section(outline, given)
        answer = {**named(collection), "document": item.key, **_section(call, item, matched, given)}
        if reading.is_still(item):  # else its headings and its text may be of two versions
            return answer
    raise Busy(f'"{given["document"]}" is being changed all the time. Try again.')


def _section(call: Call, item: Item, matched: Matched, given: Mapping[str, JSON]) -> dict[str, JSON]:
    occurrence, count = given.get("occurrence", 1), len(matched.headings)
    if occurrence > count:
        raise InvalidInput(
            f'occurrence must be at most {count}, which is how many headings match "{given["section"]}", '
            f"not {occurrence}.",
            argument="occurrence",
        )
    heading = matched.headings[occurrence - 1]
    with_subsections = given["includeSubsections"]
    require_sendable(call, item, (heading.char_end if with_subsections else heading.own_char_end) - heading.char_start)
    section = call.space.part(Documents).reading.section(item, heading, with_subsections=with_subsections)
    record: dict[str, JSON] = {
        "section": heading.title,
        "level": heading.level,
        "content": section.text,
        "startLine": section.start_line,
        "endLine": section.end_line,
        "path": list(heading.path),
        "matchedBy": matched.by,
        "occurrence": occurrence,
        "occurrences": count,
    }
    if count > 1:
        record["candidates"] = [_candidate(heading, number) for number, heading in enumerate(matched.headings, start=1)]
    return record


def _missing_section(outline: Outline, given: Mapping[str, JSON]) -> Reply:
    message = f'Section "{given["section"]}" not found in document "{given["document"]}".'
    headings = outline.headings[:MOST_CANDIDATES]
    candidates = [_candidate(heading, heading.occurrence) for heading in headings]
    return missing(message, [heading.title for heading in headings[:5]], {"candidates": candidates})


def _entry(heading: Heading) -> dict[str, JSON]:
    record = {"level": heading.level, "text": heading.title, "line": heading.line}
    return {**record, "slug": heading.slug, "path": list(heading.path)}


def _candidate(heading: Heading, occurrence: int) -> dict[str, JSON]:
    return {
        "section": heading.title,
        "level": heading.level,
        "line": heading.line,
        "path": list(heading.path),
        "occurrence": occurrence,
    }


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
