"""The memory profile: thirteen tools with which agents keep and find context entries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from commonplace.kinds.memories.memories import Memories
from commonplace.kinds.memories.tools import search_calls, statistics, store_calls
from commonplace.kinds.memories.tools.argument_readers import (
    MOST_FILTERS,
    MOST_QUERY,
    MOST_TAGS,
    Parameter,
    accept,
    anything,
    boolean,
    listed,
    mapping,
    one_of,
    own_numbers,
    query,
    string,
    whole,
)
from commonplace.kinds.memories.tools.argument_readers import tags as read_tags
from commonplace.kinds.memories.tools.environment import aliases, prepare
from commonplace.kinds.memories.tools.parameters import (
    ATOMIC,
    DELETED,
    DELETED_BATCH,
    ENTRIES,
    IDS,
    REVISED,
    STORED,
    THREAD,
    UPDATES,
)
from commonplace.model import JSON
from commonplace.settings import Settings
from commonplace.tools.profile import Profile
from commonplace.tools.schema import (
    BOOLEAN,
    INTEGER,
    OBJECT,
    STRING,
    STRINGS,
    Schema,
    answer,
    flag,
    many,
    obj,
    text,
    texts,
)
from commonplace.tools.tool import ADDS, CHANGES, READ_ONLY, Answer, Call, Handler, Tool

if TYPE_CHECKING:
    from commonplace.space import Space


# the six tools that write


_DELETES = {**CHANGES, "idempotentHint": True}
_BATCH = answer(success=BOOLEAN, total=INTEGER, succeeded=INTEGER, failed=INTEGER, results=many(OBJECT), message=STRING)


def declare(
    name: str,
    title: str,
    description: str,
    parameters: Mapping[str, Parameter],
    handler: Handler,
    output: Schema,
    annotations: Mapping[str, bool],
    required: tuple[str, ...] = (),
) -> Tool:
    """Return a tool of this profile: its schema and its check come from the same parameters."""
    properties = {each: parameter.schema for each, parameter in parameters.items()}
    check = accept(parameters, required)

    def handle(call: Call, args: Mapping[str, JSON]) -> Answer:
        return handler(call, own_numbers(call, args))

    return Tool(
        name, title, description, obj(required=required, **properties), output, annotations, handle, check=check
    )


STORE = declare(
    "store_context",
    "Store Context",
    "Keep something for later in a thread: a message, a decision, a result. Storing the thread's latest text again "
    "updates that entry. Found by every search at once.",
    STORED,
    store_calls.store_context,
    answer(
        success=BOOLEAN,
        context_id=INTEGER,
        thread_id=STRING,
        message=STRING,
        uri=STRING,
        version=INTEGER,
        deduplicated=BOOLEAN,
    ),
    ADDS,
    required=("thread_id", "source", "text"),
)

UPDATE = declare(
    "update_context",
    "Update Context",
    "Change an entry: its text, metadata, tags, images or expiry. What is left out stays; lists replace, [] and {} "
    "clear. Thread, source and creation time never change.",
    REVISED,
    store_calls.update_context,
    answer(success=BOOLEAN, context_id=INTEGER, updated_fields=STRINGS, message=STRING, version=INTEGER),
    CHANGES,
    required=("context_id",),
)

DELETE = declare(
    "delete_context",
    "Delete Context",
    "Delete entries for good, by their ids or a whole thread. dry_run only says what would go.",
    DELETED,
    store_calls.delete_context,
    answer(success=BOOLEAN, deleted_count=INTEGER, message=STRING),
    _DELETES,
)

STORE_BATCH = declare(
    "store_context_batch",
    "Store Context (Batch)",
    "Store up to 100 entries at once. atomic: all or none; otherwise each stands alone and results say which failed.",
    {"entries": ENTRIES, "atomic": ATOMIC},
    store_calls.store_context_batch,
    _BATCH,
    ADDS,
    required=("entries",),
)

UPDATE_BATCH = declare(
    "update_context_batch",
    "Update Context (Batch)",
    "Update up to 100 entries at once, in order. atomic: all or none; otherwise each stands alone.",
    {"updates": UPDATES, "atomic": ATOMIC},
    store_calls.update_context_batch,
    _BATCH,
    CHANGES,
    required=("updates",),
)

DELETE_BATCH = declare(
    "delete_context_batch",
    "Delete Context (Batch)",
    "Delete all entries that satisfy every criterion given. source goes with another criterion. dry_run only says "
    "what would go.",
    DELETED_BATCH,
    store_calls.delete_context_batch,
    answer(success=BOOLEAN, deleted_count=INTEGER, message=STRING, criteria_used=STRINGS),
    _DELETES,
)


# the seven tools that only read


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
    search_calls.search_context,
    answer(results=_ENTRIES, count=INTEGER),
    READ_ONLY,
)

SEMANTIC = declare(
    "semantic_search_context",
    "Semantic Search Context",
    "Entries by meaning: a question or a description in plain words. Nearest first.",
    {"query": _QUERY, **FILTERS, **pages(5)},
    search_calls.semantic_search_context,
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
    search_calls.fts_search_context,
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
    search_calls.hybrid_search_context,
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
    search_calls.get_context_by_ids,
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


# the profile


TOOLS = (
    STORE,
    SEARCH,
    GET,
    DELETE,
    UPDATE,
    THREADS,
    STATISTICS,
    SEMANTIC,
    FTS,
    HYBRID,
    STORE_BATCH,
    UPDATE_BATCH,
    DELETE_BATCH,
)

_INSTRUCTIONS = """\
Context that agents and users share, kept in threads. Store what should be known later with store_context: one entry \
per message, decision or result, with the thread it belongs to, who said it, and metadata and tags to filter by. \
Before working on something, look for what is known: hybrid_search_context finds by words and meaning, \
fts_search_context by words, semantic_search_context by meaning, search_context by filters alone, newest first. \
Searches show the beginning of each entry; get_context_by_ids reads them whole. Filters go with every search: \
thread_id, source, tags, dates, metadata and metadata_filters (16 operators). Correct an entry with update_context, \
replace it with store_context's supersedes, remove it with delete_context; dry_run shows what a delete would take. \
expires_at or ttl_seconds make an entry forget itself. Ids are integers; replies also give a version, which \
expected_version guards against lost updates. Batch tools take up to 100 items in one call. list_threads and \
get_statistics say what there is."""


def instructions(space: Space) -> str:
    """Return the instructions for an agent that has never seen the server. Raise BadSetting for a wrong setting."""
    space.part(Memories).sweep()  # opens the memories, so that a wrong setting is reported at start and not by a call
    return space.settings.memory_instructions or _INSTRUCTIONS


def hidden(settings: Settings) -> set[str]:
    """Return the names of the tools that the settings turn off."""
    off = {name.strip().lower() for name in settings.memory_disabled_tools.split(",")}
    if not settings.memory_lexical:
        off.add(FTS.name)
    if not (settings.memory_semantic and settings.memory_embedding):
        off.add(SEMANTIC.name)
    if not settings.memory_hybrid or {FTS.name, SEMANTIC.name} <= off:
        off.add(HYBRID.name)
    return off


PROFILE = Profile("memory", TOOLS, instructions, always_writes=True, hidden=hidden, variables=aliases, prepare=prepare)
