"""The tools that list and read: collections, documents, outlines and sections."""

from __future__ import annotations

from collections.abc import Mapping

from commonplace.errors import Busy, InvalidInput
from commonplace.kinds.documents.documents import Documents
from commonplace.kinds.documents.sections import Matched, match
from commonplace.kinds.documents.tools.shapes import (
    missing,
    missing_document,
    named,
    reply_with_text,
    require_sendable,
    visible,
)
from commonplace.model import JSON, Item
from commonplace.text.outline import Heading, Outline
from commonplace.tools.tool import Answer, Call, Reply

NO_COLLECTIONS = "No document collections found."
MOST_CANDIDATES = 20
_ATTEMPTS = 5


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
