"""The parts that all documents tools share: a caller's collections, answers, schemas, and checks of arguments."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence

from commonplace.errors import InvalidInput, TooLarge
from commonplace.kinds.documents.document_search import Documents
from commonplace.kinds.documents.packages.declarations import declared
from commonplace.kinds.documents.visible import Shown, Visible
from commonplace.model import JSON, Item
from commonplace.tools.arguments import Signature, check
from commonplace.tools.schema import INTEGER, NUMBER, STRING, Schema, answer, many, maybe, text, texts
from commonplace.tools.tool import Call, Reply

MOST_NAMED = 50
LONGEST_QUERY = 2000
CHARS_PER_TOKEN = 4
_PLACE = re.compile(r"\.(\d+)")
_TEXTS = ("collection", "document", "section", "query", "chunk")


def visible(call: Call) -> Visible:
    """Return the collections this caller sees now. Declarations are looked at anew with every call."""
    view, space = call.view, call.space
    theirs = space.folder.name != view.space
    return Visible.of(declared(space, view.project, view.with_global, theirs=theirs), view)


def named(collection: Shown) -> dict[str, JSON]:
    """Return a collection as answers name it: its label, and its id where that is not the label."""
    record: dict[str, JSON] = {"collection": collection.label}
    return (
        record if collection.label == collection.collection_id else {**record, "collectionId": collection.collection_id}
    )


def reply_with_text(structured: dict[str, JSON], words: JSON, notes: Sequence[str] = ()) -> Reply:
    """Return a reply whose text is not its own JSON: a sentence, or the bare list of records, followed by the notes."""
    first = words if isinstance(words, str) else json.dumps(words, ensure_ascii=False, separators=(",", ":"))
    return Reply([{"type": "text", "text": block} for block in (first, *notes)], structured)


def missing_document(call: Call, collection: Shown, given: Mapping[str, JSON]) -> Reply:
    """Return the reply for a document that does not exist, with suggestions from the same collection."""
    message = f'Document "{given["document"]}" not found in collection "{given["collection"]}".'
    suggestions = call.space.part(Documents).reading.suggestions(collection, given["document"])
    return missing(message, suggestions, {"suggestions": suggestions})


def missing(message: str, offered: Sequence[str], more: Mapping[str, JSON]) -> Reply:
    """Return a reply that says `found: false`, with what the caller may have meant."""
    words = f"{message}\nDid you mean: {', '.join(offered)}?" if offered else message
    return reply_with_text({"found": False, "message": message, **more}, words)


def require_sendable(call: Call, item: Item, characters: int) -> None:
    """Raise TooLarge where this many characters of a document would not fit in an answer."""
    most = call.space.settings.result_tokens * CHARS_PER_TOKEN
    if characters > most:
        raise TooLarge(
            f'That part of "{item.key}" has {characters} characters, and at most {most} are sent. Look at its '
            "headings with documents_get_outline and read a smaller section with documents_get_section."
        )


def checked(tool: str, signature: Signature, arguments: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return the arguments with defaults. Raise InvalidInput where one is not as the signature says.

    An element of a list is written `queries[3].query` in errors. A text of blanks is refused.
    """
    try:
        given = check(tool, signature, _without_nulls(arguments))
    except InvalidInput as refused:
        place = str(refused.details.get("argument", ""))
        message = str(refused).replace(place, _bracketed(place), 1) if place else str(refused)
        details = {**refused.details, "argument": _bracketed(place)} if place else refused.details
        if place.split(".")[-1] == "collections" and "at least 1 entry" in message:
            message = f"{_bracketed(place)} must have 1 to {MOST_NAMED} names, not 0: leave it out to name none."
        raise InvalidInput(message, code=refused.code, **details) from None
    _check_texts(given, "")
    return given


def _without_nulls(arguments: Mapping[str, JSON]) -> Mapping[str, JSON]:
    """Return the arguments without nulls in `queries`: there, too, null is the same as left out."""
    queries = arguments.get("queries")
    if not isinstance(queries, list):
        return arguments
    cleaned_queries = [
        {name: value for name, value in query.items() if value is not None} if isinstance(query, dict) else query
        for query in queries
    ]
    return {**arguments, "queries": cleaned_queries}


def _check_texts(given: Mapping[str, JSON], place: str) -> None:
    for name, value in given.items():
        if name in _TEXTS and isinstance(value, str) and not value.strip():
            shown = f"{place}{name}"
            raise InvalidInput(f"{shown} must have a character that is not blank, not {value!r}.", argument=shown)
        if isinstance(value, float) and not math.isfinite(value):
            raise InvalidInput(f"{place}{name} must be a finite number, not {value}.", argument=f"{place}{name}")
        if name == "queries":
            for number, query in enumerate(value):
                _check_texts(query, f"queries[{number}].")


def _bracketed(place: str) -> str:
    return _PLACE.sub(r"[\1]", place)


def either(one: tuple[str, ...], other: tuple[str, ...], /, **properties: Schema) -> Schema:
    """Return the schema of an answer that has all properties of `one`, or all of `other`, or an error."""
    shapes = [{"required": list(one)}, {"required": list(other)}, {"required": ["error"]}]
    return {"type": "object", "properties": properties, "anyOf": shapes}


COLLECTION = text("The collection: an alias, a name or an id, as documents_list_collections shows them.", minLength=1)
DOCUMENT = text("The document's id, as listings and hits show it.", minLength=1)
COLLECTIONS = texts("Only these collections; left out: all.", minItems=1, maxItems=MOST_NAMED)
MISSING: dict[str, Schema] = {"found": {"type": "boolean"}, "message": STRING}
NAMES: dict[str, Schema] = {"collection": STRING, "collectionId": STRING}
STAGES = many(answer(required=("stage", "status"), stage=STRING, status=STRING, reason=STRING))
RESULT: dict[str, Schema] = {
    **NAMES,
    "documentId": STRING,
    "documentTitle": STRING,
    "sectionHeading": STRING,
    "content": STRING,
    "relevanceScore": NUMBER,
    "distance": maybe(NUMBER),
    "chunkIndex": INTEGER,
    "totalChunks": INTEGER,
    "startLine": INTEGER,
    "endLine": INTEGER,
    "matchLine": INTEGER,
    "matchHeading": STRING,
    "uri": STRING,
}
ALWAYS = tuple(name for name in RESULT if name not in ("collectionId", "sectionHeading", "matchHeading"))
ITEM = answer(required=ALWAYS, **RESULT)
