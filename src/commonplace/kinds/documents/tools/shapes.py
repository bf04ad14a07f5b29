"""What all documents tools have in common: whose collections, answers of two shapes, and how arguments are refused."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence

from commonplace.errors import InvalidInput, TooLarge
from commonplace.kinds.documents.packages import declared
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
    """What this caller sees now: declarations are looked at anew with every call."""
    view, library = call.view, call.library
    theirs = library.folder.name != view.space
    return Visible.of(declared(library, view.project, view.with_global, theirs=theirs), view)


def named(collection: Shown) -> dict[str, JSON]:
    """A collection in an answer: its name, and its id where that is not the name."""
    record: dict[str, JSON] = {"collection": collection.label}
    return (
        record if collection.label == collection.collection_id else {**record, "collectionId": collection.collection_id}
    )


def said(structured: dict[str, JSON], words: JSON, notes: Sequence[str] = ()) -> Reply:
    """An answer whose text is not its own JSON: a sentence, or the bare list of the same records; notes follow."""
    first = words if isinstance(words, str) else json.dumps(words, ensure_ascii=False, separators=(",", ":"))
    return Reply([{"type": "text", "text": block} for block in (first, *notes)], structured)


def missing_document(call: Call, collection: Shown, given: Mapping[str, JSON]) -> Reply:
    """The answer where there is no such document. Suggestions are of the same collection."""
    message = f'Document "{given["document"]}" not found in collection "{given["collection"]}".'
    suggestions = call.library.documents.reading.suggestions(collection, given["document"])
    return missing(message, suggestions, {"suggestions": suggestions})


def missing(message: str, offered: Sequence[str], more: Mapping[str, JSON]) -> Reply:
    words = f"{message}\nDid you mean: {', '.join(offered)}?" if offered else message
    return said({"found": False, "message": message, **more}, words)


def bounded(call: Call, item: Item, characters: int) -> None:
    """Refuse to read what could not be sent."""
    most = call.library.settings.result_tokens * CHARS_PER_TOKEN
    if characters > most:
        raise TooLarge(
            f'That part of "{item.key}" has {characters} characters, and at most {most} are sent. Look at its '
            "headings with documents_get_outline and read a smaller section with documents_get_section."
        )


def checked(tool: str, signature: Signature, arguments: Mapping[str, JSON]) -> dict[str, JSON]:
    """The arguments with defaults. A place in a list is written `queries[3].query`; blanks are no text."""
    try:
        given = check(tool, signature, _told(arguments))
    except InvalidInput as refused:
        place = str(refused.details.get("argument", ""))
        message = str(refused).replace(place, _bracketed(place), 1) if place else str(refused)
        details = {**refused.details, "argument": _bracketed(place)} if place else refused.details
        if place.split(".")[-1] == "collections" and "at least 1 entry" in message:
            message = f"{_bracketed(place)} must have 1 to {MOST_NAMED} names, not 0: leave it out to name none."
        raise InvalidInput(message, code=refused.code, **details) from None
    _check_texts(given, "")
    return given


def _told(arguments: Mapping[str, JSON]) -> Mapping[str, JSON]:
    """The arguments without what is null in a query: there, too, it means that nothing was given."""
    queries = arguments.get("queries")
    if not isinstance(queries, list):
        return arguments
    told = [
        {name: value for name, value in query.items() if value is not None} if isinstance(query, dict) else query
        for query in queries
    ]
    return {**arguments, "queries": told}


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
    """An answer that has one set of properties, or the other where there is no such thing, or says what went wrong."""
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
