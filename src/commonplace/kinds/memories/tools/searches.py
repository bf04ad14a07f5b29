"""Declarations of the seven tools that only read."""

from __future__ import annotations

from commonplace.kinds.memories.tools import finding, statistics
from commonplace.kinds.memories.tools.arguments import (
    MOST_FILTERS,
    MOST_QUERY,
    MOST_TAGS,
    Parameter,
    anything,
    boolean,
    listed,
    mapping,
    one_of,
    query,
    string,
    whole,
)
from commonplace.kinds.memories.tools.arguments import tags as read_tags
from commonplace.kinds.memories.tools.declared import declare
from commonplace.kinds.memories.tools.parameters import IDS, THREAD
from commonplace.tools.schema import BOOLEAN, INTEGER, OBJECT, STRING, STRINGS, answer, flag, many, text, texts
from commonplace.tools.tool import READ_ONLY

_WHOLE = {"type": "integer"}
_QUERY = Parameter(text("What to look for.", minLength=1, maxLength=MOST_QUERY), query)

FILTERS: dict[str, Parameter] = {
    "thread_id": Parameter({**THREAD.schema, "description": "Only this thread."}, THREAD.read),
    "source": Parameter({"type": "string", "enum": ["user", "agent"]}, one_of("user", "agent")),
    "tags": Parameter(texts("Any of these.", maxItems=MOST_TAGS), read_tags),
    "content_type": Parameter({"type": "string", "enum": ["text", "multimodal"]}, one_of("text", "multimodal")),
    "start_date": Parameter(text("Created then or later, ISO 8601."), string),
    "end_date": Parameter(text("Created then or earlier, ISO 8601."), string),
    "metadata": Parameter({"type": "object", "description": "Equal values by path, e.g. status."}, mapping),
    "metadata_filters": Parameter(
        {
            "type": "array",
            "items": {},
            "maxItems": MOST_FILTERS,
            "description": "{key, operator, value, case_sensitive, include_missing}; operators eq ne gt gte lt lte in "
            "not_in exists not_exists is_null is_not_null contains starts_with ends_with array_contains.",
        },
        listed(anything, most=MOST_FILTERS),
    ),
    "include_superseded": Parameter(flag("Also what was replaced."), boolean),
}


def pages(limit: int) -> dict[str, Parameter]:
    """Return the parameters of a page. A limit over 100 is not refused but clamped."""
    return {
        "limit": Parameter({**_WHOLE, "minimum": 1, "default": limit, "description": "At most 100."}, whole(1)),
        "offset": Parameter({**_WHOLE, "minimum": 0, "default": 0}, whole(0, 1 << 62)),
        "cursor": Parameter(text("next_cursor of the same search."), string),
        "max_tokens": Parameter({**_WHOLE, "minimum": 1, "description": "Budget for the results."}, whole(1)),
        "include_images": Parameter(flag(""), boolean),
        "explain_query": Parameter(flag("Add stats."), boolean),
    }


_ENTRIES = many(OBJECT)

SEARCH = declare(
    "search_context",
    "Search Context",
    "Entries by filters alone, newest first, each with the beginning of its text.",
    {**FILTERS, **pages(30)},
    finding.search_context,
    answer(results=_ENTRIES, count=INTEGER),
    READ_ONLY,
)

SEMANTIC = declare(
    "semantic_search_context",
    "Semantic Search Context",
    "Entries by meaning: a question or a description in plain words. Nearest first.",
    {"query": _QUERY, **FILTERS, **pages(5)},
    finding.semantic_search_context,
    answer(results=_ENTRIES, count=INTEGER, query=STRING, model=STRING),
    READ_ONLY,
    required=("query",),
)

FTS = declare(
    "fts_search_context",
    "Full-Text Search Context",
    'Entries by words. match: all words, "phrases" in quotes; prefix: beginnings of words; phrase: the words in order; '
    'boolean: AND, OR, NOT, parentheses, "phrases", word*.',
    {
        "query": _QUERY,
        "mode": Parameter(
            {"type": "string", "enum": ["match", "prefix", "phrase", "boolean"], "default": "match"},
            one_of("match", "prefix", "phrase", "boolean"),
        ),
        "highlight": Parameter(flag("Show where it matches, in <mark>."), boolean),
        **FILTERS,
        **pages(5),
    },
    finding.fts_search_context,
    answer(results=_ENTRIES, count=INTEGER, query=STRING, mode=STRING, language=STRING, fts_available=BOOLEAN),
    READ_ONLY,
    required=("query",),
)

HYBRID = declare(
    "hybrid_search_context",
    "Hybrid Search Context",
    "Entries by words and by meaning, both lists fused by rank. The best first choice.",
    {
        "query": _QUERY,
        "fusion_method": Parameter({"type": "string", "enum": ["rrf"], "default": "rrf"}, one_of("rrf")),
        "rrf_k": Parameter({**_WHOLE, "minimum": 1, "maximum": 1000}, whole(1, 1000)),
        **FILTERS,
        **pages(5),
    },
    finding.hybrid_search_context,
    answer(
        results=_ENTRIES,
        count=INTEGER,
        query=STRING,
        fusion_method=STRING,
        search_modes_used=STRINGS,
        fts_count=INTEGER,
        semantic_count=INTEGER,
    ),
    READ_ONLY,
    required=("query",),
)

GET = declare(
    "get_context_by_ids",
    "Get Context By IDs",
    "Entries whole, in the order asked for, with their images.",
    {
        "context_ids": IDS,
        "include_images": Parameter(flag("", default=True), boolean),
        "include_history": Parameter(flag("Also what they were before."), boolean),
    },
    finding.get_context_by_ids,
    answer(result=_ENTRIES),
    READ_ONLY,
    required=("context_ids",),
)

MOST_THREADS = 10_000

THREADS = declare(
    "list_threads",
    "List Threads",
    "All threads with how much is in them, the one with the latest entry first.",
    {
        "limit": Parameter(
            {**_WHOLE, "minimum": 1, "maximum": MOST_THREADS, "default": MOST_THREADS}, whole(1, MOST_THREADS)
        ),
        "offset": Parameter({**_WHOLE, "minimum": 0, "default": 0}, whole(0, 1 << 62)),
    },
    statistics.list_threads,
    answer(threads=_ENTRIES, total_threads=INTEGER),
    READ_ONLY,
)

STATISTICS = declare(
    "get_statistics",
    "Get Statistics",
    "What there is, counted, and which ways of finding work.",
    {},
    statistics.get_statistics,
    answer(
        total_entries=INTEGER,
        by_source=OBJECT,
        by_content_type=OBJECT,
        total_threads=INTEGER,
        semantic_search=OBJECT,
        fts=OBJECT,
    ),
    READ_ONLY,
)
