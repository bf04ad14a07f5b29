"""The prompt `query`: how to search well, as one message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from commonplace.errors import NotFound
from commonplace.model import JSON
from commonplace.tools.profile import Prompts
from commonplace.tools.tool import Call

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


def get(call: Call, name: str, arguments: Mapping[str, str]) -> Mapping[str, JSON]:
    if name != "query":
        raise NotFound(f"There is no prompt {name!r}. The only one is query.")
    message = {"role": "user", "content": {"type": "text", "text": GUIDE.rstrip("\n")}}
    return {"description": DESCRIPTION, "messages": [message]}


PROMPTS = Prompts(page=page, get=get)
