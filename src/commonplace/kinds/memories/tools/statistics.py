"""The tools that list threads and count entries."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from commonplace.errors import CommonplaceError
from commonplace.kinds.memories.drawer import EntryRows
from commonplace.kinds.memories.entry import ThreadRow
from commonplace.kinds.memories.memories import Memories
from commonplace.kinds.memories.tools.entry_json import shown_micros
from commonplace.kinds.memories.tools.entry_reranking import reranking_of
from commonplace.model import JSON
from commonplace.models.hurry import hurried
from commonplace.tools.tool import Call

if TYPE_CHECKING:
    from commonplace.space import Space

_MIB = 1 << 20
ASKED_S = 2.0
"""Seconds in which a provider has to answer when its dimensions are asked for the first time."""


def backend_of(space: Space) -> str:
    """Return the name of the database as mcp-context-server has it."""
    return "postgresql" if space.settings.store else "sqlite"


def embedded_entries(space: Space) -> tuple[int, int, int]:
    """Return the counts of entries with vectors, of their vectors, and of entries that lack some."""
    model = space.embedding.serving()
    return space.store.drawer(EntryRows).embedded(model.id if model else 0)


def list_threads(call: Call, args: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return the reply of the tool of this name."""
    space = call.space
    space.part(Memories).sweep()
    rows, total = space.store.drawer(EntryRows).threads(limit=args["limit"], offset=args["offset"])
    return {"threads": [_thread(row) for row in rows], "total_threads": total}


def _thread(row: ThreadRow) -> dict[str, JSON]:
    agent = row.entries - row.from_user
    return {
        "thread_id": row.thread,
        "entry_count": row.entries,
        "source_types": (row.from_user > 0) + (agent > 0),
        "sources": {"user": row.from_user, "agent": agent},
        "multimodal_count": row.multimodal,
        "first_entry": shown_micros(row.first_at),
        "last_entry": shown_micros(row.last_at),
        "last_id": row.last_id,
    }


def get_statistics(call: Call, args: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return the reply of the tool of this name."""
    space = call.space
    space.part(Memories).sweep()
    tally = space.store.drawer(EntryRows).tally()
    return {
        "total_entries": tally.entries,
        "by_source": {"user": tally.from_user, "agent": tally.entries - tally.from_user},
        "by_content_type": {"text": tally.entries - tally.multimodal, "multimodal": tally.multimodal},
        "total_images": tally.images,
        "unique_tags": tally.tags,
        "total_threads": tally.threads,
        "avg_entries_per_thread": round(tally.entries / tally.threads, 2) if tally.threads else 0.0,
        "most_active_threads": [{"thread_id": thread, "count": count} for thread, count in tally.active],
        "top_tags": [{"tag": tag, "count": count} for tag, count in tally.common],
        "backend": backend_of(space),
        "database_size_mb": _size_mb(space, tally.bytes),
        "connection_metrics": space.store.metrics(),
        "superseded_entries": tally.superseded,
        "expiring_entries": tally.expiring,
        "semantic_search": _semantic(space, tally.entries),
        "fts": _fts(space, tally.entries),
        "chunking": _chunking(space),
        "reranking": _reranking(space),
        "summary": _summary(space, tally.summaries, tally.entries),
    }


def _size_mb(space: Space, stored: int) -> float:
    """Return the MiB of everything of the space: database, write-ahead log, indexes.

    A file that vanishes counts nothing.
    """
    total = stored if space.settings.store else 0  # a SQLite file is in the folder, which is counted below
    for path in space.folder.rglob("*"):
        total += _size(path)
    return max(round(total / _MIB, 2), 0.01) if total else 0.0


def _size(path: Path) -> int:
    try:
        return path.stat().st_size if path.is_file() else 0
    except OSError:
        return 0


def _share(part: int, whole: int) -> float:
    """Return a part as a percentage of the whole, 100 where the whole is 0."""
    return round(part / whole * 100, 2) if whole else 100.0


def _semantic(space: Space, total: int) -> dict[str, JSON]:
    settings = space.settings
    enabled = settings.memory_semantic and settings.memory_embedding
    message = "" if enabled else "It is switched off."
    name, dims = space.embedding.chosen, 0
    if enabled:
        try:
            embedder = space.embedding.embedder()
            name = embedder.name
            with hurried(ASKED_S):
                dims = embedder.dims
                _ = embedder.related  # a provider's first answer gives this, even where dims are set
            message = getattr(embedder, "problem", "")
        except CommonplaceError as problem:
            message = str(problem)
    covered, vectors, lacking = embedded_entries(space)
    record: dict[str, JSON] = {
        "enabled": enabled,
        "available": enabled and not message,
        "backend": backend_of(space),
        "model": name,
        "dimensions": dims or None,
        "context_count": covered,
        "embedding_count": vectors,
        "average_chunks_per_entry": round(vectors / covered, 2) if covered else 0.0,
        "coverage_percentage": _share(covered, total),
        "pending": lacking,
    }
    return {**record, "message": message} if enabled and message else record


def _fts(space: Space, total: int) -> dict[str, JSON]:
    enabled, indexed, message = space.settings.memory_lexical, 0, ""
    try:
        space.lexical.catch_up()
        indexed = total
    except CommonplaceError as problem:
        message = str(problem)
    record: dict[str, JSON] = {
        "enabled": enabled,
        "available": enabled and not message,
        "language": space.settings.memory_language,
        "backend": backend_of(space),
        "engine": "tantivy",
        "indexed_entries": indexed,
        "coverage_percentage": _share(indexed, total),
    }
    return {**record, "message": message} if enabled and message else record


def _chunking(space: Space) -> dict[str, JSON]:
    settings = space.settings
    return {
        "enabled": settings.memory_chunking,
        "available": settings.memory_chunking,
        "chunk_size": settings.memory_chunk_size,
        "chunk_overlap": settings.memory_chunk_overlap,
        "aggregation": "max",
    }


def _reranking(space: Space) -> dict[str, JSON]:
    reranking = reranking_of(space)
    provider, model = reranking.by_whom
    enabled, problem = reranking.enabled, reranking.problem
    record: dict[str, JSON] = {"enabled": enabled, "available": not problem, "provider": provider, "model": model}
    return {**record, "message": problem} if enabled and problem else record


def _summary(space: Space, summaries: int, total: int) -> dict[str, JSON]:
    settings, writer = space.settings, space.part(Memories).summaries
    provider, model = writer.writer
    message = writer.problem
    record: dict[str, JSON] = {
        "enabled": settings.memory_summaries,
        "available": writer.enabled and not message,
        "provider": provider,
        "model": model,
        "summary_count": summaries,
        "coverage_percentage": _share(summaries, total),
        "min_content_length": settings.memory_summary_least,
    }
    return {**record, "message": message} if settings.memory_summaries and message else record
