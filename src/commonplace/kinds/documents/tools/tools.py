"""The declarations of the eight documents tools."""

from __future__ import annotations

from commonplace.kinds.documents.tools.document_calls import (
    find_related,
    get_document,
    get_outline,
    get_section,
    list_collections,
    list_documents,
    search,
    search_batch,
)
from commonplace.kinds.documents.tools.document_shapes import (
    ALWAYS,
    COLLECTION,
    COLLECTIONS,
    DOCUMENT,
    ITEM,
    LONGEST_QUERY,
    MISSING,
    MOST_NAMED,
    NAMES,
    RESULT,
    STAGES,
    checked,
    either,
)
from commonplace.tools.schema import (
    BOOLEAN,
    INTEGER,
    STRING,
    STRINGS,
    Schema,
    answer,
    flag,
    integer,
    many,
    obj,
    text,
    texts,
)
from commonplace.tools.tool import READ_ONLY, Tool

_MAX_DISTANCE: Schema = {
    "type": "number",
    "minimum": 0,
    "maximum": 2,
    "description": "Only passages at most this cosine distance from the query: 0 is the same, 1 unrelated.",
}
_HYBRID = flag("Words and meaning together; false: meaning alone.", default=True)
_QUERY = text("What to look for, in plain words.", minLength=1, maxLength=LONGEST_QUERY)
_HEADING: dict[str, Schema] = {"level": INTEGER, "line": INTEGER, "path": STRINGS}
_PLACED = ("level", "line", "path")
_CANDIDATES = many(answer(required=("section", "occurrence", *_PLACED), section=STRING, occurrence=INTEGER, **_HEADING))

LIST_COLLECTIONS = Tool(
    name="documents_list_collections",
    title="List Collections",
    description="List the collections of documentation: what each is called, how many documents it has, what it is.",
    input=obj(),
    output=answer(
        collections=many(
            answer(
                required=("collection", "documentCount"),
                **NAMES,
                documentCount=INTEGER,
                description=STRING,
                version=STRING,
            )
        )
    ),
    annotations=READ_ONLY,
    handler=list_collections,
    check=checked,
    within_view=True,
)

LIST_DOCUMENTS = Tool(
    name="documents_list_documents",
    title="List Documents",
    description="List the documents of a collection by id, with their titles and sizes in characters, page by page.",
    input=obj(
        required=("collection",),
        collection=COLLECTION,
        limit=integer("How many.", default=100, least=1, most=1000),
        offset={"type": "integer", "description": "How many to skip.", "default": 0, "minimum": 0, "maximum": 2**53},
    ),
    output=answer(
        required=("collection", "documents", "total", "hasMore"),
        **NAMES,
        documents=many(answer(id=STRING, title=STRING, size=INTEGER)),
        total=INTEGER,
        hasMore=BOOLEAN,
    ),
    annotations=READ_ONLY,
    handler=list_documents,
    check=checked,
    within_view=True,
)

GET_DOCUMENT = Tool(
    name="documents_get_document",
    title="Get Document",
    description=(
        "Read a whole document, unchanged. A long one costs many tokens: look at documents_get_outline first and read "
        "the section you need with documents_get_section."
    ),
    input=obj(required=("collection", "document"), collection=COLLECTION, document=DOCUMENT),
    output=either(
        ("collection", "document", "title", "content", "size", "uri"),
        ("found", "message", "suggestions"),
        **NAMES,
        document=STRING,
        title=STRING,
        content=STRING,
        size=INTEGER,
        uri=STRING,
        **MISSING,
        suggestions=STRINGS,
    ),
    annotations=READ_ONLY,
    handler=get_document,
    check=checked,
    within_view=True,
)

GET_OUTLINE = Tool(
    name="documents_get_outline",
    title="Get Outline",
    description="List the headings of a document with their levels and lines, to choose a section to read.",
    input=obj(
        required=("collection", "document"),
        collection=COLLECTION,
        document=DOCUMENT,
        maxDepth=integer("The deepest level of heading to list.", default=3, least=1, most=6),
    ),
    output=either(
        ("collection", "document", "title", "outline"),
        ("found", "message", "suggestions"),
        **NAMES,
        document=STRING,
        title=STRING,
        outline=many(answer(required=("text", "slug", *_PLACED), text=STRING, slug=STRING, **_HEADING)),
        **MISSING,
        suggestions=STRINGS,
    ),
    annotations=READ_ONLY,
    handler=get_outline,
    check=checked,
    within_view=True,
)

GET_SECTION = Tool(
    name="documents_get_section",
    title="Get Section",
    description=(
        "Read one section of a document: by its heading, its web anchor, its path (Parent > Child) or a part of the "
        "heading. Where several headings match, candidates lists them and occurrence picks one."
    ),
    input=obj(
        required=("collection", "document", "section"),
        collection=COLLECTION,
        document=DOCUMENT,
        section=text("The heading, such as Installation, #installation or Setup > Linux.", minLength=1, maxLength=500),
        includeSubsections=flag("With the sections under it.", default=True),
        occurrence={"type": "integer", "minimum": 1, "description": "Which of several headings that match, from 1."},
    ),
    output=either(
        ("collection", "document", "section", "level", "content", "startLine", "endLine"),
        ("found", "message"),
        **NAMES,
        document=STRING,
        section=STRING,
        level=INTEGER,
        content=STRING,
        startLine=INTEGER,
        endLine=INTEGER,
        path=STRINGS,
        matchedBy=STRING,
        occurrence=INTEGER,
        occurrences=INTEGER,
        candidates=_CANDIDATES,
        **MISSING,
        suggestions=STRINGS,
    ),
    annotations=READ_ONLY,
    handler=get_section,
    check=checked,
    within_view=True,
)

SEARCH = Tool(
    name="documents_search",
    title="Search Documents",
    description=(
        "Find passages of documentation by words and by meaning. Ask in plain words; a quoted phrase is required and "
        "-word excludes one. Each hit is a passage with its document, section, lines and a relevance from 0 to 1 "
        "(above 0.8 very likely about it, below 0.2 hardly ever). Read on with documents_get_section and matchHeading."
    ),
    input=obj(
        required=("query",),
        query=_QUERY,
        collections=COLLECTIONS,
        limit=integer("How many passages.", default=10, least=1, most=100),
        maxDistance=_MAX_DISTANCE,
        hybridSearch=_HYBRID,
        rerank=flag("Take a second, slower look at the best; not with hybridSearch false."),
    ),
    output=answer(required=("results",), results=many(ITEM), stages=STAGES, notes=STRINGS),
    annotations=READ_ONLY,
    handler=search,
    check=checked,
    within_view=True,
)

SEARCH_BATCH = Tool(
    name="documents_search_batch",
    title="Search Several",
    description=(
        "Ask up to ten questions at once; each is answered as documents_search answers it. With max_tokens the whole "
        "answer fits in it and a passage that answers several questions is shown once: repeated and leftOut count what "
        "is missing from each."
    ),
    input=obj(
        required=("queries",),
        queries={
            "type": "array",
            "minItems": 1,
            "maxItems": 10,
            "description": "The questions, each over its own collections.",
            "items": obj(required=("query",), query=_QUERY, collections=COLLECTIONS),
        },
        limit=integer("How many passages for each.", default=5, least=1, most=100),
        maxDistance=_MAX_DISTANCE,
        hybridSearch=_HYBRID,
        max_tokens={
            "type": "integer",
            "minimum": 100,
            "maximum": 200_000,
            "description": "How much to return at most, all questions together.",
        },
    ),
    output=answer(
        required=("results",),
        results=many(
            answer(required=("query", "results"), query=STRING, results=many(ITEM), repeated=INTEGER, leftOut=INTEGER)
        ),
        notes=STRINGS,
        tokens=INTEGER,
    ),
    annotations=READ_ONLY,
    handler=search_batch,
    check=checked,
    within_view=True,
)

FIND_RELATED = Tool(
    name="documents_find_related",
    title="Find Related",
    description=(
        "Find passages like a document, or like a text from it: further reading. Looks in the document's own "
        'collection unless collections names others, or all of them with ["*"].'
    ),
    input=obj(
        required=("collection", "document"),
        collection=COLLECTION,
        document=DOCUMENT,
        chunk=text("A text from it, to follow instead of the whole document.", minLength=1, maxLength=8000),
        limit=integer("How many passages.", default=5, least=1, most=50),
        sameDocument=flag("Passages of the document itself, too."),
        collections=texts('Where to look; ["*"]: everywhere.', minItems=1, maxItems=MOST_NAMED),
    ),
    output=either(
        ("source", "related"),
        ("found", "message", "suggestions"),
        source=answer(required=("collection", "document"), **NAMES, document=STRING),
        related=many(answer(required=(*ALWAYS, "document"), **RESULT, document=STRING)),
        stages=STAGES,
        notes=STRINGS,
        **MISSING,
        suggestions=STRINGS,
    ),
    annotations=READ_ONLY,
    handler=find_related,
    check=checked,
    within_view=True,
)

TOOLS = (
    LIST_COLLECTIONS,
    LIST_DOCUMENTS,
    GET_DOCUMENT,
    GET_OUTLINE,
    GET_SECTION,
    SEARCH,
    SEARCH_BATCH,
    FIND_RELATED,
)
