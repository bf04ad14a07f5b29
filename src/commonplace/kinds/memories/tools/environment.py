"""Environment variables of mcp-context-server, read as weaker names of our own settings."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commonplace.kinds.memories import Memories
from commonplace.kinds.memories.fields import typed_fields
from commonplace.kinds.memories.tools.provided import embedder_of, reranker_of, store_of, summarizer_of
from commonplace.kinds.memories.tools.variables import Parse, among, as_it_is, boolean, switch, whole
from commonplace.settings import PREFIX

if TYPE_CHECKING:
    from commonplace.space import Space

log = logging.getLogger(__name__)

LANGUAGES = (
    "arabic", "armenian", "basque", "catalan", "danish", "dutch", "english", "finnish", "french", "german", "greek",
    "hindi", "hungarian", "indonesian", "irish", "italian", "lithuanian", "nepali", "norwegian", "portuguese",
    "romanian", "russian", "serbian", "simple", "spanish", "swedish", "tamil", "turkish", "yiddish",
)  # fmt: skip


def _fields(name: str, value: str) -> str:
    """Return a list of fields as it is. Raise BadSetting where a path in it is malformed."""
    typed_fields(value, name)
    return value


HONOURED: Mapping[str, tuple[str, Parse]] = {
    "ENABLE_FTS": ("memory_lexical", switch),
    "ENABLE_SEMANTIC_SEARCH": ("memory_semantic", switch),
    "ENABLE_HYBRID_SEARCH": ("memory_hybrid", switch),
    "ENABLE_EMBEDDING_GENERATION": ("memory_embedding", switch),
    "ENABLE_SUMMARY_GENERATION": ("memory_summaries", switch),
    "ENABLE_RERANKING": ("memory_reranking", switch),
    "ENABLE_CHUNKING": ("memory_chunking", switch),
    "CHUNK_SIZE": ("memory_chunk_size", whole(100, 10_000)),
    "CHUNK_OVERLAP": ("memory_chunk_overlap", whole(0, 500)),
    "FTS_LANGUAGE": ("memory_language", among(*LANGUAGES)),
    "HYBRID_RRF_K": ("memory_rrf_k", whole(1, 1000)),
    "HYBRID_FTS_OR_THRESHOLD": ("memory_or_threshold", whole(2, 20)),
    "SEARCH_TRUNCATION_LENGTH": ("memory_truncation", whole(50, 1000)),
    "SUMMARY_MIN_CONTENT_LENGTH": ("memory_summary_least", whole(0, 10_000)),
    "SUMMARY_MAX_TOKENS": ("memory_summary_tokens", whole(50, 16_384)),
    "SUMMARY_PROMPT": ("memory_summary_prompt", as_it_is),
    "LOG_LEVEL": ("log_level", among("debug", "info", "warning", "error", "critical")),
    "MAX_IMAGE_SIZE_MB": ("memory_max_image_mb", whole(1, 200)),
    "MAX_TOTAL_SIZE_MB": ("memory_max_images_mb", whole(1, 1000)),
    "METADATA_INDEXED_FIELDS": ("memory_indexed_fields", _fields),
    "METADATA_INDEX_SYNC_MODE": ("memory_index_sync", among("strict", "auto", "warn", "additive")),
    "DISABLED_TOOLS": ("memory_disabled_tools", as_it_is),
    "MCP_SERVER_INSTRUCTIONS": ("memory_instructions", as_it_is),
}
"""Variables of mcp-context-server: our setting for each, and the reader of its value."""

_CHECKED: Mapping[str, Parse] = {
    "CHUNK_AGGREGATION": among("max"),
    "OLLAMA_AUTO_PULL": boolean,
    "SUMMARY_OLLAMA_TRUNCATE": boolean,
}
_WITHOUT_EFFECT = (
    "POOL_", "RETRY_", "CIRCUIT_BREAKER_", "QUEUE_", "SHUTDOWN_", "SQLITE_", "VOYAGE_", "HUGGINGFACEHUB_", "LANGSMITH_",
    "FTS_RERANK_", "CHUNK_DEDUP_OVERFETCH", "HYBRID_RRF_OVERFETCH", "RERANKING_OVERFETCH", "SEARCH_DEFAULT_SORT_BY",
    "FASTMCP_STATELESS_HTTP", "OLLAMA_PULL_TIMEOUT_S", "RERANKING_CACHE_DIR", "POSTGRESQL_SCHEMA",
    "POSTGRESQL_POOL_MIN", "POSTGRESQL_POOL_TIMEOUT_S", "POSTGRESQL_COMMAND_TIMEOUT_S", "POSTGRESQL_CONNECT_TIMEOUT_S",
    "POSTGRESQL_STATEMENT_CACHE_SIZE", "POSTGRESQL_SESSION_", "POSTGRESQL_MIGRATION_", "POSTGRESQL_MAX_",
    "POSTGRESQL_TCP_", "RERANKING_CHARS_PER_TOKEN", "RERANKING_INTRA_OP_THREADS", "RERANKING_CPU_MEM_ARENA",
)  # fmt: skip


def aliases(environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings that mcp-context-server's variables name, where our own variables do not name them.

    Raise BadSetting for a value that cannot be read.
    """
    values: dict[str, Any] = {}
    for name, (setting, parse) in HONOURED.items():
        if environment.get(name) and not environment.get(PREFIX + setting.upper()):
            value = parse(name, environment[name])
            values |= {} if value is None else {setting: value}
    for name, parse in _CHECKED.items():
        if environment.get(name):
            parse(name, environment[name])
    for read in (embedder_of, summarizer_of, reranker_of, store_of):
        provided = read(environment)
        values |= {name: value for name, value in provided.items() if not environment.get(PREFIX + name.upper())}
    if environment.get("DB_PATH") and not environment.get(f"{PREFIX}HOME"):
        values["home"] = home_beside(Path(os.path.expanduser(environment["DB_PATH"])))
    return values


def home_beside(database: Path) -> Path:
    """Return the home for a client that names a database file: the folder beside it."""
    return database.with_name(database.name + ".commonplace")


def without_effect(environment: Mapping[str, str] = os.environ) -> list[str]:
    """Return the variables of mcp-context-server that are set and mean nothing here, sorted."""
    return sorted(name for name in environment if name.startswith(_WITHOUT_EFFECT))


def adopt_database(space: Space, environment: Mapping[str, str]) -> None:
    """Import the file at DB_PATH, once, at the first start beside it. The file itself is never written."""
    path = environment.get("DB_PATH")
    if not path or environment.get(f"{PREFIX}HOME"):
        return
    database = Path(os.path.expanduser(path))
    if not database.is_file() or space.store.setting("imported_context_server") is not None:
        return
    report = space.part(Memories).import_context_server(database)
    space.store.set_setting("imported_context_server", str(database))
    log.warning("Imported %d entries from %s", report.stored, database)
