"""The memory profile: thirteen tools with which agents keep and find context entries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace.kinds.memories import Memories
from commonplace.kinds.memories.tools.declared import DELETE, DELETE_BATCH, STORE, STORE_BATCH, UPDATE, UPDATE_BATCH
from commonplace.kinds.memories.tools.searches import FTS, GET, HYBRID, SEARCH, SEMANTIC, STATISTICS, THREADS
from commonplace.settings import Settings
from commonplace.tools.profile import Profile

if TYPE_CHECKING:
    from commonplace.space import Space

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


PROFILE = Profile("memory", TOOLS, instructions, always_writes=True, hidden=hidden)
