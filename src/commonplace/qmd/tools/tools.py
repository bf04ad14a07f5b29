"""The qmd profile: six tools with the check of their arguments, a resource and a prompt."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from commonplace.errors import CommonplaceError, InvalidInput, NotFound
from commonplace.model import JSON
from commonplace.qmd.tools.document_texts import MIME_TYPE, Contexts, commented, get, multi_get, read, shown
from commonplace.qmd.tools.file_names import LONGEST, AmbiguousName, Excluded, NoDocument, locate
from commonplace.qmd.tools.index_status import instructions, status
from commonplace.qmd.tools.searches import LONGEST_QUERY, query, search, vsearch
from commonplace.tools.arguments import Signature, check
from commonplace.tools.profile import Profile, Prompts, Resources
from commonplace.tools.schema import (
    BOOLEAN,
    INTEGER,
    NUMBER,
    STRING,
    Schema,
    answer,
    flag,
    integer,
    many,
    maybe,
    obj,
    text,
)
from commonplace.tools.tool import READ_ONLY, Call, Tool

_SURROGATE = re.compile("[\ud800-\udfff]")


def checked(tool: str, signature: Signature, arguments: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return the arguments with defaults, 5.0 as 5. Raise InvalidInput that names the argument and all there are."""
    try:
        given = check(tool, signature, {_written(name): _writable(value) for name, value in arguments.items()})
    except InvalidInput as refused:
        message = str(refused)
        if " takes: " not in message and "It takes" not in message:
            message = f"{message} {tool} takes: {', '.join(signature.properties)}."
        raise InvalidInput(message) from None
    for name, value in given.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise InvalidInput(f"{name} must be a finite number, not {value}.")
        if isinstance(value, float) and signature.properties[name].get("type") == "integer":
            given[name] = int(value)
    if not str(given.get("query", "x")).strip():
        raise InvalidInput("query must not be empty")
    return given


def _writable(value: JSON) -> JSON:
    """Return the value with U+FFFD for what is no character, so that every text can be echoed."""
    if isinstance(value, str):
        return _written(value)
    if isinstance(value, list):
        return [_writable(each) for each in value]
    return {_written(name): _writable(each) for name, each in value.items()} if isinstance(value, dict) else value


def _written(text: str) -> str:
    """Return the text with U+FFFD for halves of surrogate pairs, which JSON can escape and UTF-8 cannot have."""
    return text if text.isascii() else _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)


def _query(description: str) -> Schema:
    return text(description, maxLength=LONGEST_QUERY)


_FIND: dict[str, Schema] = {
    "limit": integer("How many results.", default=10, least=1, most=500),
    "collection": text("Only this collection."),
    "collections": {"type": "array", "items": STRING, "minItems": 1, "maxItems": 50, "description": "Only these."},
    "explain": flag("Add what went into each score."),
}
_INTENT = text("What you are after: steers, does not search.", maxLength=2000)


def _min_score(default: float) -> Schema:
    described = "0.8: very likely about it; 0.5: partly."
    return {"type": "number", "description": described, "default": default, "minimum": 0, "maximum": 1}


def _record(**properties: Schema) -> Schema:
    """Return the schema of a list's entry, without `required`: the list of tools is to be short."""
    return {"type": "object", "properties": properties}


_FOUND = answer(
    results=many(
        _record(
            docid=STRING,
            file=STRING,
            title=STRING,
            score=NUMBER,
            context=maybe(STRING),
            line=INTEGER,
            snippet=STRING,
            uri=STRING,
        )
    ),
    stages={"type": "array"},
)

_LINES: dict[str, Schema] = {
    "maxLines": {"type": "integer", "minimum": 1, "description": "How many lines at most."},
    "lineNumbers": flag("Put its number before every line."),
}

SEARCH = Tool(
    name="search",
    title="Keyword Search",
    description=(
        "Find documents by their words: fast, no model. Words are alternatives and documents with all of them come "
        'first; "a phrase" is required, -word excludes, pre* is a beginning. Returns files with scores, lines and '
        "snippets; read on with get."
    ),
    input=obj(required=("query",), query=_query("Words and phrases."), minScore=_min_score(0), **_FIND),
    output=_FOUND,
    annotations=READ_ONLY,
    handler=search,
    check=checked,
)

VSEARCH = Tool(
    name="vsearch",
    title="Semantic Search",
    description="Find documents by what they mean, also where they use other words. Needs a vector index (qmd embed).",
    input=obj(
        required=("query",),
        query=_query("A question or description in plain words."),
        minScore=_min_score(0.3),
        intent=_INTENT,
        **_FIND,
    ),
    output=_FOUND,
    annotations=READ_ONLY,
    handler=vsearch,
    check=checked,
)

QUERY = Tool(
    name="query",
    title="Hybrid Search",
    description=(
        "Find documents by words and meaning together: the best results. Give either query, in plain words, or "
        "searches, a list of your own: lex (keywords), vec (a question), hyde (what an answer might say); the first "
        "counts double. Without vectors it goes by words and says so."
    ),
    input=obj(
        required=(),
        query=_query("What to look for."),
        searches={
            "type": "array",
            "minItems": 1,
            "maxItems": 10,
            "description": "Typed searches instead of query.",
            "items": obj(
                required=("type", "query"),
                type={"type": "string", "enum": ["lex", "vec", "hyde"]},
                query={"type": "string", "maxLength": LONGEST_QUERY},
            ),
        },
        minScore=_min_score(0),
        intent=_INTENT,
        candidateLimit=integer("How many of the best are reranked.", default=30, least=1, most=100),
        rerank=flag("Take a second, slower look at the best.", default=True),
        **_FIND,
    ),
    output=_FOUND,
    annotations=READ_ONLY,
    handler=query,
    check=checked,
)

GET = Tool(
    name="get",
    title="Get Document",
    description=(
        "Read a document by the file, uri or docid of a result. file.md:100 starts at line 100 and file.md:100:40 "
        "shows 40 lines from there. Suggests similar names where there is none."
    ),
    input=obj(
        required=("file",),
        file=text("A path such as notes/plan.md, a docid such as #3fa91c, or a qmd:// address.", maxLength=LONGEST),
        fromLine={"type": "integer", "description": "The first line, from 1."},
        **_LINES,
    ),
    output=None,
    annotations=READ_ONLY,
    handler=get,
    check=checked,
)

MULTI_GET = Tool(
    name="multi_get",
    title="Get Documents",
    description=(
        "Read many documents by a glob (journals/2025-05*.md) or a list (a.md, #3fa91c, notes/*.md). Large ones are "
        "skipped and named: read those with get."
    ),
    input=obj(
        required=("pattern",),
        pattern=text("A glob, or names, docids and globs between commas.", maxLength=2 * LONGEST),
        maxBytes={"type": "integer", "minimum": 1, "default": 10240, "description": "Skip larger documents."},
        **_LINES,
    ),
    output=None,
    annotations=READ_ONLY,
    handler=multi_get,
    check=checked,
)

STATUS = Tool(
    name="status",
    title="Index Status",
    description="Collections, how many documents they hold, and how many of them need embedding.",
    input=obj(),
    output=answer(
        totalDocuments=INTEGER,
        needsEmbedding=INTEGER,
        hasVectorIndex=BOOLEAN,
        collections=many(
            _record(name=STRING, path=STRING, pattern=STRING, documents=INTEGER, lastUpdated=maybe(STRING))
        ),
    ),
    annotations=READ_ONLY,
    handler=status,
    check=checked,
)

TOOLS = (SEARCH, VSEARCH, QUERY, GET, MULTI_GET, STATUS)


DESCRIPTION = "How to effectively search your knowledge base with QMD"

GUIDE = """\
# QMD - Quick Markdown Search

QMD is your on-device search engine for markdown knowledge bases. Use it to find information across your notes, \
documents, and meeting transcripts.

## Available Tools

### 1. search (Fast keyword search)
Best for: Finding documents with specific keywords or phrases.
- Uses BM25 full-text search
- Fast, no LLM required
- Good for exact matches
- Use `collection` parameter to filter to a specific collection

### 2. vsearch (Semantic search)
Best for: Finding conceptually related content even without exact keyword matches.
- Uses vector embeddings
- Understands meaning and context
- Good for "how do I..." or conceptual queries
- Use `collection` parameter to filter to a specific collection

### 3. query (Hybrid search - highest quality)
Best for: Important searches where you want the best results.
- Combines keyword + semantic search
- Expands your query with variations
- Re-ranks results with LLM
- Slower but most accurate
- Use `searches` instead of `query` to say yourself what to look for: typed `lex`, `vec` and `hyde` entries
- Use `intent` to say what you are after; it steers without searching
- Use `collection` parameter to filter to a specific collection

### 4. get (Retrieve document)
Best for: Getting the full content of a single document you found.
- Use the file path from search results
- Supports line ranges: `file.md:100`, `file.md:100:40` or fromLine/maxLines parameters
- Suggests similar files if not found

### 5. multi_get (Retrieve multiple documents)
Best for: Getting content from multiple files at once.
- Use glob patterns: `journals/2025-05*.md`
- Or comma-separated: `file1.md, file2.md`
- Skips files over maxBytes (default 10KB) - use get for large files

### 6. status (Index info)
Shows collection info, document counts, and embedding status.

## Resources

You can also access documents directly via the `qmd://` URI scheme:
- Discover documents with the search tools; there is no listing
- Read a document: `resources/read` with uri `qmd://notes/path/to/file.md`

## Search Strategy

1. **Start with search** for quick keyword lookups
2. **Use vsearch** when keywords aren't working or for conceptual queries
3. **Use query** for important searches or when you need high confidence
4. **Use get** to retrieve a single full document
5. **Use multi_get** to batch retrieve multiple related files

## Tips

- Use `minScore: 0.5` to filter low-relevance results
- Use `collection: "notes"` to search only in a specific collection
- Check the "Context" field - it describes what kind of content the file contains
- File paths start with their collection's name (e.g., `notes/pages/meeting.md`)
- For glob patterns, match on display_path (e.g., `journals/2025-*.md`)
"""


def page(call: Call, cursor: str | None) -> tuple[Sequence[Mapping[str, JSON]], str | None]:
    return ({"name": "query", "title": "QMD Query Guide", "description": DESCRIPTION},), None


def guide(call: Call, name: str, arguments: Mapping[str, str]) -> Mapping[str, JSON]:
    if name != "query":
        raise NotFound(f"There is no prompt {name!r}. The only one is query.")
    message = {"role": "user", "content": {"type": "text", "text": GUIDE.rstrip("\n")}}
    return {"description": DESCRIPTION, "messages": [message]}


PROMPTS = Prompts(page=page, get=guide)


TEMPLATE: Mapping[str, JSON] = {
    "uriTemplate": "qmd://{+path}",
    "name": "document",
    "title": "QMD Document",
    "description": "A markdown document from your QMD knowledge base. Use search tools to discover documents.",
    "mimeType": MIME_TYPE,
}


def content(call: Call, uri: str) -> Mapping[str, JSON]:
    """Return a document with its lines numbered. Errors carry the address and similar names."""
    try:
        located = locate(call.space, uri)
        item = read(call.space, located.name)
    except (NoDocument, AmbiguousName, Excluded) as error:
        error.details = {"uri": uri, "suggestions": list(error.suggestions)}
        raise
    except CommonplaceError as error:
        error.details = {**error.details, "uri": uri}
        raise
    text = shown(item.body or "", located.first or 1, located.lines, numbered=True).text
    context = Contexts(call.space).of(item.parent, item.key)
    return {
        "uri": uri,
        "name": located.name.file,
        "title": item.title,
        "mimeType": MIME_TYPE,
        "text": commented(context, text),
    }


RESOURCES = Resources(read=content, templates=(TEMPLATE,))


PROFILE = Profile("qmd", TOOLS, instructions, resources=RESOURCES, prompts=PROMPTS)
